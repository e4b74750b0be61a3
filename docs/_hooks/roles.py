"""Docstrings are written with the roles of reStructuredText; this makes Markdown of them."""

from __future__ import annotations

import copy
import re
import sys
from pathlib import Path
from typing import Any

import griffe

sys.path.insert(0, str(Path(__file__).parent))

import api  # noqa: E402
from formulas import mathml  # noqa: E402

CHOICES = re.compile(r"^( *[\w, *]+ : )\{(.+?)\}", flags=re.M)
TAKEN = re.compile(r"^(?:\w+\()?([\w.]+)(?:, .*)?\)?$")
ROLE = re.compile(r":(?P<role>[a-z]+):`(?P<target>[^`]+)`")
MATH = re.compile(r"^( *)\.\. math::(?P<first>.*)\n(?P<rest>(?:(?:\1 +.*)?\n)*)", flags=re.M)
REFERENCE = re.compile(r"^( *)\.\. \[(\d+)\] ", flags=re.M)
SEE_ALSO = re.compile(r"^See Also\n-+\n((?:.+\n?)+)", flags=re.M)
ENTRY = re.compile(r"^([\w.]+(?:, [\w.]+)*) : ", flags=re.M)
INNER = re.compile(r"^( {4,})([A-Za-z_]\w*(?:, [A-Za-z_]\w*)*) : (.+)\n(?=\1 {4}\S)", flags=re.M)


def _page(name: str) -> api.Name | None:
    """Return the public name whose page describes a path, which may be that of a member."""
    known = api.names()
    by_definition = {found.defined: found for found in known.values()}
    by_room = {f"{room}.{found.name}": found for room, own in api.rooms().items() for found in own}
    return known.get(name) or by_definition.get(name) or by_room.get(name)


def _candidates(target: str, where: str) -> list[str]:
    """Return the full names that a target may stand for, best first."""
    inner = where.split(".")
    around = [".".join([*inner[:n], target]) for n in range(len(inner), 0, -1)]
    last = [found.path for found in api.names().values() if found.name == target.split(".")[0]]
    tail = target.partition(".")[2]
    return [target, *around, *(f"{path}.{tail}" if tail else path for path in last)]


def link(target: str, where: str) -> str | None:
    """Return the path of the page, or of the member on it, that a role leads to."""
    names = _candidates(target, where)
    for name in names:
        if found := _page(name):
            return found.path
    for name in names:
        owner, _, member = name.rpartition(".")
        if owner and (found := _page(owner)) and found.kind == "class":
            return f"{found.path}.{member}"
    room = target if target in api.rooms() else ""
    return room or None


def _role(match: re.Match[str], where: str) -> str:
    role, target = match["role"], match["target"]
    if role == "math":
        return mathml(target)
    short = target.startswith("~")
    target = target.lstrip("~")
    shown = target.rpartition(".")[2] if short else target.removeprefix("crfkit.")
    shown = target if target.count(".") == 1 and target in api.rooms() else shown
    return _linked(shown, target, where)


def _linked(shown: str, target: str, where: str) -> str:
    found = link(target, where)
    if not found:
        return f"`{shown}`"
    return f'<autoref identifier="{found}" optional><code>{shown}</code></autoref>'


def _see_also(entries: str, where: str) -> str:
    def line(match: re.Match[str]) -> str:
        names = match[1].split(", ")
        return f"- {', '.join(_linked(name, name, where) for name in names)}: "

    return f"See Also\n--------\n{ENTRY.sub(line, entries)}"


def _block(match: re.Match[str]) -> str:
    text = f"{match['first']}\n{match['rest']}".strip()
    formula = f"\\begin{{align*}}{text}\\end{{align*}}" if "&" in text else text
    return f"{match[1]}{mathml(' '.join(formula.split()), block=True)}\n\n"


def _literal(text: str) -> str:
    """Make ``::`` a colon: what follows is indented, and so a block in Markdown too."""
    return re.sub(r"::$", ":", text, flags=re.M)


def markdown(text: str, where: str) -> str:
    """Return a docstring of ``where`` with links, formulas and references of Markdown."""
    text = MATH.sub(_block, text)
    text = CHOICES.sub(r"\1\2", text)
    text = ROLE.sub(lambda match: _role(match, where), text)
    text = re.sub(r"\[(\d+)\]_", r"\\[\1\\]", text)  # two in a row would be a link
    text = REFERENCE.sub(r"\1\n\1\2. ", text)
    text = SEE_ALSO.sub(lambda match: _see_also(match[1], where), text)
    text = INNER.sub(r"\n\1- `\2` (\3):\n", text)
    return _literal(text)


class Roles(griffe.Extension):
    """Rewrite each docstring when its object has been read."""

    def on_object(self, *, obj: griffe.Object, **kwargs: Any) -> None:
        """Rewrite one docstring."""
        if obj.docstring:
            obj.docstring.value = markdown(obj.docstring.value, obj.path)

    def on_package(self, *, pkg: griffe.Module, **kwargs: Any) -> None:
        """Make methods of the functions that classes take from other modules."""
        for module in _modules(pkg):
            for found in module.classes.values():
                if not found.is_alias:
                    _take_functions(found)


def _modules(module: griffe.Module) -> list[griffe.Module]:
    inner = [m for m in module.modules.values() if not m.is_alias]
    return [module, *(found for m in inner for found in _modules(m))]


def _take_functions(owner: griffe.Class) -> None:
    """Make methods of what a class takes; where it has probabilities, also of what is for these."""
    for name, function in _taken(owner, of_probabilities=False):
        _add(owner, name, function)
    known = owner.members.get("has_probabilities")
    if known is not None and str(known.value) == "True":
        for base in [owner, *owner.mro()]:
            for name, function in _taken(base, of_probabilities=True):
                _add(owner, name, function)


def _taken(base: griffe.Class, of_probabilities: bool) -> list[tuple[str, griffe.Function]]:
    found = []
    for name, attribute in base.members.items():
        if name.startswith("_") or not attribute.is_attribute or attribute.value is None:
            continue
        value = str(attribute.value)
        if value.startswith("property("):
            continue
        if value.startswith("OfProbabilities(") == of_probabilities:
            match = TAKEN.match(value)
            function = _function(base, match[1] if match else name)
            found += [(name, function)] if function else []
    return found


def _add(owner: griffe.Class, name: str, function: griffe.Function) -> None:
    here = owner.members.get(name)
    if here is None or here.is_attribute:
        method = copy.copy(function)
        method.name, method.parent = name, owner
        owner.members[name] = method


def _function(owner: griffe.Class, path: str) -> griffe.Function | None:
    """Return the function that a path in the module of a class stands for, if it is one."""
    found: Any = owner.module
    for part in path.split("."):
        found = found.members.get(part)
        if found is None:
            return None
        if found.is_alias:
            try:
                found = found.final_target
            except griffe.AliasResolutionError:
                return None
    return found if found.is_function else None
