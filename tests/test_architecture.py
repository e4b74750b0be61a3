"""The rules of the house, read off the syntax trees of the package."""

import ast
import statistics
from pathlib import Path

import pytest

import crfkit

ROOT = Path(crfkit.__file__).parent
LEVELS = {
    "_version": 0, "_params": 0, "_types": 0, "_warnings": 0, "_parallel": 0, "compiler": 0,
    "kernels": 1, "data": 1,
    "structures": 2, "features": 2, "labels": 2,
    "potentials": 3, "losses": 3, "metrics": 3, "testing": 3,
    "objective": 4, "oracles": 4, "inference": 4, "io": 4,
    "solvers": 5, "datasets": 5,
    "training": 6, "persistence": 6,
    "estimators": 7,
    "compat": 8, "demo": 8,
    "cli": 9, "": 9, "warmup": 9,
}  # fmt: skip
# Constants, checks of parameters, records: they import nothing, all may import them.
BASE = {"_version", "_params", "_types", "_warnings"}
MODULES = sorted(ROOT.rglob("*.py"))
TREES = {path: ast.parse(path.read_text(encoding="utf-8")) for path in MODULES}
FUNCTIONS = [
    (path, node)
    for path, tree in TREES.items()
    for node in ast.walk(tree)
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
]


def room(path):
    """The first part of a module's name below crfkit."""
    first = path.relative_to(ROOT).parts[0].removesuffix(".py")
    return {"__init__": "", "__main__": "cli"}.get(first, first)


def imported(path):
    """Full names of the modules that a module imports."""
    package = ["crfkit", *path.relative_to(ROOT).parts[:-1]]
    for node in ast.walk(TREES[path]):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            yield ".".join([*base, *([node.module] if node.module else [])])


def may_import(source, target):
    """Whether a module of one room may import from another."""
    return source == target or target in BASE or LEVELS[target] < LEVELS[source]


def body_lines(function):
    body = function.body[1:] if ast.get_docstring(function) else function.body
    return body[-1].end_lineno - body[0].lineno + 1 if body else 0


def test_every_room_has_a_level():
    assert {room(path) for path in MODULES} <= set(LEVELS)
    assert set(LEVELS.values()) <= set(range(10))


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_imports_point_downwards(path):
    for name in imported(path):
        parts = name.split(".")
        if parts[0] == "crfkit":
            target = parts[1] if len(parts) > 1 else ""
            assert may_import(room(path), target), f"{room(path)} imports {name}"


@pytest.mark.parametrize(
    ("package", "home"),
    [
        ("numba", {"jit.py", "simd.py"}),
        ("llvmlite", {"simd.py"}),
        ("joblib", {"_parallel.py"}),
    ],
)
def test_a_package_is_imported_in_one_place(package, home):
    users = {
        path.name for path in MODULES for name in imported(path) if name.split(".")[0] == package
    }
    assert users == home


def test_scikit_learn_is_used_by_public_names_only():
    for path in MODULES:
        for name in imported(path):
            private = any(part.startswith("_") for part in name.split(".")[1:])
            assert not (name.startswith("sklearn") and private), f"{path} imports {name}"


def kernel_nodes(kind):
    for path in MODULES:
        if room(path) == "kernels":
            for node in ast.walk(TREES[path]):
                if isinstance(node, kind):
                    yield path, node


def test_kernels_have_no_classes():
    assert list(kernel_nodes(ast.ClassDef)) == []


def test_kernels_are_scalar_loops():
    """Slices and NumPy calls make the compiler ten times slower; callers allocate."""
    for path, node in kernel_nodes((ast.Slice, ast.Attribute)):
        inside_math = isinstance(node, ast.Attribute) and (
            (isinstance(node.value, ast.Name) and node.value.id == "math") or node.attr == "shape"
        )
        assert inside_math, f"{path}:{node.lineno}"


def test_every_kernel_tells_what_it_computes():
    for path, node in kernel_nodes(ast.FunctionDef):
        assert ast.get_docstring(node), f"{path}:{node.lineno} {node.name}"


def test_functions_are_short():
    long = [f"{path}:{f.lineno} {f.name}" for path, f in FUNCTIONS if body_lines(f) > 60]
    assert long == []
    assert statistics.median(body_lines(function) for _, function in FUNCTIONS) <= 8


def test_modules_are_short():
    assert [path for path in MODULES if len(path.read_text().splitlines()) > 500] == []


def test_estimators_only_assign_in_init_and_have_at_most_eighteen_parameters():
    """The eighteenth is the structure of a perceptron, whose names are those of its relatives."""
    for path, function in FUNCTIONS:
        if (
            room(path) == "estimators"
            and not path.stem.startswith("_")
            and function.name == "__init__"
        ):
            assert len(function.args.args) + len(function.args.kwonlyargs) - 1 <= 18
            assert all(isinstance(line, ast.Assign) for line in function.body)
