"""Public names, read from the sources without importing them, and their pages.

A room is a package whose ``__init__.py`` names what is public. A name has one page, at the first
of the rooms that have it: ``crfkit`` itself comes first.
"""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path
from typing import NamedTuple

PACKAGE = Path(__file__).resolve().parents[2] / "crfkit"
INNER = """
compat.crfsuite compat.pycrfsuite compat.sklearn_crfsuite compat.spacy generative.emissions
solvers.margin
""".split()  # rooms in rooms
EXTRA = frozenset({"crfkit.compat.spacy"})  # what imports the package of an extra
ORDER = """
crfkit estimators features data text io datasets metrics model_selection inspection inference
calibration constraints active_learning losses solvers solvers.margin generative
generative.emissions graphs collective persistence compat.sklearn_crfsuite compat.pycrfsuite
compat.crfsuite compat.spacy testing
""".split()  # the others follow, by their names
TITLES = {
    "crfkit": "crfkit: what is used most", "estimators": "Estimators",
    "features": "Features", "data": "Data", "text": "Annotated text", "io": "Files",
    "datasets": "Data sets", "metrics": "Metrics", "model_selection": "Model selection",
    "inspection": "Inspection", "inference": "Decoders", "calibration": "Calibration",
    "constraints": "Constraints", "active_learning": "Active learning", "losses": "Losses",
    "solvers": "Solvers", "solvers.margin": "Solvers of margins", "generative": "Generative models",
    "generative.emissions": "Emissions", "graphs": "Graphs and random fields",
    "collective": "Collective classification", "persistence": "Model files",
    "compat.sklearn_crfsuite": "Names of sklearn-crfsuite",
    "compat.pycrfsuite": "Names of python-crfsuite", "compat.crfsuite": "CRFsuite models",
    "compat.spacy": "A component of spaCy",
    "testing": "Checks of estimators", "structures": "Structures", "potentials": "Potentials",
}  # fmt: skip


class Name(NamedTuple):
    """A public name: its room, where it is defined, its kind, and the start of its docstring."""

    room: str
    name: str
    defined: str
    kind: str
    summary: str

    @property
    def path(self) -> str:
        """The name as users import it."""
        return f"{self.room}.{self.name}"


class Module(NamedTuple):
    """What a file says of its names."""

    tree: ast.Module
    imported: dict[str, tuple[str, str]]
    marked: frozenset[str]
    defined: dict[str, ast.stmt]


def _file(module: str) -> Path | None:
    path = PACKAGE.parent.joinpath(*module.split("."))
    for found in (path / "__init__.py", path.with_suffix(".py")):
        if found.exists():
            return found
    return None


def _targets(node: ast.stmt) -> list[str]:
    if isinstance(node, ast.FunctionDef | ast.ClassDef | ast.AsyncFunctionDef):
        return [node.name]
    targets = node.targets if isinstance(node, ast.Assign) else []
    targets = [node.target] if isinstance(node, ast.AnnAssign) else targets
    return [target.id for target in targets if isinstance(target, ast.Name)]


@cache
def _read(module: str) -> Module | None:
    path = _file(module)
    if path is None:
        return None
    tree = ast.parse(path.read_text(encoding="utf-8"))
    imported, marked = {}, set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                imported[alias.asname or alias.name] = (node.module, alias.name)
                marked |= {alias.name} if alias.asname == alias.name else set()
    defined = {name: node for node in tree.body for name in _targets(node)}
    return Module(tree, imported, frozenset(marked), defined)


def _listed(tree: ast.Module) -> list[str] | None:
    """Return the strings in what is assigned to ``__all__``, or None if nothing is."""
    found = None
    for node in tree.body:
        target = node.targets[0] if isinstance(node, ast.Assign) else getattr(node, "target", None)
        if isinstance(target, ast.Name) and target.id == "__all__":
            values = [n.value for n in ast.walk(node.value) if isinstance(n, ast.Constant)]
            found = (found or []) + [value for value in values if isinstance(value, str)]
    return found


def _public(module: str) -> list[str]:
    """Return the public names of a room."""
    read = _read(module)
    if read is None:
        return []
    listed = _listed(read.tree)
    whole = "public_names(" in ast.unparse(read.tree)
    names = set(read.marked) | set(listed or ())
    if listed is None or whole:
        own = (n for n, node in read.defined.items() if not isinstance(node, ast.Assign))
        names |= set() if module == "crfkit" else set(own)
    return sorted(name for name in names if not name.startswith("_"))


def _home(module: str, name: str) -> tuple[str, str]:
    """Return the module that defines a name, and its name there."""
    read = _read(module)
    here = read is None or name in read.defined or name not in read.imported
    if here or _file(f"{module}.{name}"):
        return module, name
    return _home(*read.imported[name])


def _comment(path: Path, node: ast.stmt) -> str:
    """Return what the lines above an assignment, or its end, say of it."""
    lines = path.read_text(encoding="utf-8").splitlines()
    found, above = [], node.lineno - 2
    while above >= 0 and lines[above].startswith("#"):
        found.insert(0, lines[above].lstrip("#: "))
        above -= 1
    return " ".join(found)


def first_sentence(text: str) -> str:
    """Return the first paragraph of a docstring up to its first period."""
    paragraph = " ".join(text.strip().split("\n\n")[0].split())
    end = paragraph.find(". ")
    return (paragraph if end < 0 else paragraph[: end + 1]).removesuffix("::")


def _described(module: str, name: str) -> tuple[str, str]:
    """Return the kind of a name and a sentence about it."""
    if _file(f"{module}.{name}"):
        read = _read(f"{module}.{name}")
        return "module", first_sentence(ast.get_docstring(read.tree) or "")
    node = _read(module).defined.get(name)
    if isinstance(node, ast.ClassDef):
        return "class", first_sentence(ast.get_docstring(node) or "")
    if isinstance(node, ast.FunctionDef):
        return "function", first_sentence(ast.get_docstring(node) or "")
    if node is None:
        return "data", ""
    body = _read(module).tree.body
    after = body[body.index(node) + 1 : body.index(node) + 2]
    below = after[0].value if after and isinstance(after[0], ast.Expr) else None
    text = below.value if isinstance(below, ast.Constant) else _comment(_file(module), node)
    return "data", first_sentence(str(text))


@cache
def rooms() -> dict[str, list[Name]]:
    """Return the public names of each room, under its full name, in the order of the menu."""
    tree = _read("crfkit").tree
    text = next(n.value.args[0] for n in tree.body if _targets(n) == ["_ROOMS"])
    constant = next(n.value for n in ast.walk(text) if isinstance(n, ast.Constant))
    known = {*constant.split(), *INNER}
    order = [room for room in ORDER if room in known or room == "crfkit"]
    order += sorted(known - set(order))
    found, homes = {}, {}
    for short in order:
        room = short if short == "crfkit" else f"crfkit.{short}"
        names = []
        for name in _public(room):
            defined = ".".join(_home(room, name))
            home = homes.setdefault(defined, room)
            names.append(Name(home, name, defined, *_described(*_home(room, name))))
        if names:
            found[room] = names
    return found


def names() -> dict[str, Name]:
    """Return all public names by the path under which each has its page."""
    return {name.path: name for found in rooms().values() for name in found}


def title_of(room: str) -> str:
    """Return what the menu calls a room."""
    short = room.removeprefix("crfkit.")
    return TITLES.get(short, short.replace("_", " ").capitalize())


def about(room: str) -> str:
    """Return the docstring of a room."""
    return ast.get_docstring(_read(room).tree) or ""
