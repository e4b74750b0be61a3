"""The rules of the house, read off the syntax trees of the package."""

import ast
import functools
import gc
import re
import statistics
from pathlib import Path

import pytest

import crfkit
from tests.architecture import Sources, body, parameters, room_of

ROOT = Path(crfkit.__file__).parent
LEVELS = {
    "_version": 0, "_params": 0, "_other_names": 0, "_types": 0, "_warnings": 0, "_lazy": 0,
    "_callbacks": 0, "_displays": 0, "_doc_links": 0, "_progress": 0, "_search_progress": 0,
    "_parallel": 0, "_tables": 0, "compiler": 0,
    "progress": 1, "kernels": 1, "data": 1,
    "structures": 2, "features": 2, "labels": 2,
    "potentials": 3, "losses": 3, "metrics": 3, "testing": 3, "model_selection": 3,
    "constraints": 3, "graphs": 3, "text": 3,
    "active_learning": 4, "objective": 4, "oracles": 4, "inference": 4, "io": 4,
    "solvers": 5, "datasets": 5, "generative": 5,
    "training": 6, "persistence": 6,
    "estimators": 7,
    "calibration": 8, "collective": 8, "compat": 8, "demo": 8,
    "inspection": 9, "cli": 9, "": 9, "warmup": 8,
}  # fmt: skip
# Constants, checks of parameters, records: they import nothing, all may import them.
BASE = {"_doc_links", "_lazy", "_progress", "_version", "_params", "_types", "_warnings"}


@functools.cache
def sources():
    """The package, read once, by the process that tests it; no garbage is looked for in it."""
    gc.disable()
    found = Sources(ROOT)
    gc.freeze()
    gc.enable()
    return found


def imported(kind=""):
    """Yield the modules (of a room) and the full names of the modules that they import."""
    for path, node in sources().nodes((ast.Import, ast.ImportFrom), kind):
        package = ["crfkit", *path.split("/")[:-1]]
        if isinstance(node, ast.Import):
            yield from ((path, alias.name) for alias in node.names)
        else:
            base = package[: len(package) - node.level + 1] if node.level else []
            yield path, ".".join([*base, *([node.module] if node.module else [])])


def may_import(source, target):
    """Whether a module of one room may import from another."""
    return source == target or target in BASE or LEVELS[target] < LEVELS[source]


def body_lines(function):
    lines = body(function)
    return lines[-1].end_lineno - lines[0].lineno + 1 if lines else 0


def test_every_room_has_a_level():
    assert {room_of(path) for path in sources().texts} <= set(LEVELS)
    assert set(LEVELS.values()) <= set(range(10))


def test_imports_point_downwards():
    upwards = []
    for path, name in imported():
        package, _, rest = name.partition(".")
        if package == "crfkit" and not may_import(room_of(path), rest.split(".")[0]):
            upwards.append(f"{path} imports {name}")
    assert upwards == []


@pytest.mark.parametrize(
    ("package", "home"),
    [
        (
            "numba",
            {
                "compiler/bfloat.py",
                "compiler/blocks.py",
                "compiler/cache.py",
                "compiler/dispatch.py",
                "compiler/jit.py",
                "compiler/objects.py",
                "compiler/simd.py",
                "compiler/instructions.py",
                "compiler/stored.py",
                "compiler/target.py",
            },
        ),
        (
            "llvmlite",
            {
                "compiler/bfloat.py",
                "compiler/blocks.py",
                "compiler/objects.py",
                "compiler/simd.py",
                "compiler/instructions.py",
            },
        ),
        ("joblib", {"_parallel.py"}),
    ],
)
def test_a_package_is_imported_in_one_place(package, home):
    users = {path for path, name in imported() if name.split(".")[0] == package}
    assert users == home


def loaded_with(module):
    """The modules of the package that are imported with one of them."""
    found, new = set(), {module}
    while new:
        found |= new
        new = {name for path in new for name in loaded_by(path)} - found
    return found


def loaded_by(path):
    """Yield the modules that a module imports, not those that its functions do."""
    for node in sources().trees[path].body:
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
        else:
            continue
        for name in names:
            parts = name.split(".")[1:] if name.split(".")[0] == "crfkit" else []
            stems = ["/".join(parts[: i + 1]) for i in range(len(parts))]
            files = [file for stem in stems for file in (f"{stem}.py", f"{stem}/__init__.py")]
            yield from (file for file in files if file in sources().trees)


@pytest.mark.parametrize("module", ["estimators/crf.py", "cli/__init__.py"])
def test_what_few_models_need_is_imported_when_it_is_asked_for(module):
    """Not with the first fit, nor with ``crfkit --help``."""
    loaded = loaded_with(module)
    assert "training/fit.py" in loaded or "cli/options/train.py" in loaded
    assert {path for path in loaded if room_of(path) in ("constraints", "calibration")} == set()
    parts = ("chain_samples.py", "segment_samples.py", "chain_spans.py", "segment_spans.py")
    assert loaded.isdisjoint(f"structures/{part}" for part in parts)


def test_scikit_learn_is_used_by_public_names_only():
    for path, name in imported():
        private = any(part.startswith("_") for part in name.split(".")[1:])
        assert not (name.startswith("sklearn") and private), f"{path} imports {name}"


def test_classes_of_kernels_are_groups_of_arrays():
    for path, node in sources().nodes(ast.ClassDef, "kernels"):
        assert [ast.unparse(base) for base in node.bases] == ["NamedTuple"], f"{path} {node.name}"
        fields = node.body[1:] if ast.get_docstring(node) else node.body
        assert all(isinstance(field, ast.AnnAssign) for field in fields), f"{path} {node.name}"


def test_kernels_are_scalar_loops():
    """Slices and NumPy calls make the compiler ten times slower; callers allocate."""
    for path, node in sources().nodes(ast.Slice, "kernels"):
        raise AssertionError(f"{path}:{node.lineno}")
    for path, node in sources().nodes(ast.Call, "kernels"):
        if isinstance(node.func, ast.Attribute):
            assert ast.unparse(node.func.value) == "math", f"{path}:{node.lineno}"
    for path, name in imported("kernels"):
        assert name.split(".")[0] != "numpy", path


def test_every_kernel_tells_what_it_computes():
    for path, node in sources().nodes(ast.FunctionDef, "kernels"):
        assert ast.get_docstring(node), f"{path}:{node.lineno} {node.name}"


def test_functions_are_short():
    lengths = {f"{path}:{f.lineno} {f.name}": body_lines(f) for path, f in sources().functions}
    assert [name for name, length in lengths.items() if length > 60] == []
    assert statistics.median(lengths.values()) <= 8


def test_modules_are_short():
    texts = sources().texts.items()
    assert [path for path, text in texts if len(text.splitlines()) > 500] == []


def test_estimators_only_assign_their_parameters_which_are_eighteen_at_most():
    """Beside `features`, and what is said of segments, which has a class of its own."""
    named = [c for c in sources().classes if not c.path.startswith("estimators/_")]
    public = [c for c in named if room_of(c.path) == "estimators"]
    fields = {
        c.name: [
            n
            for n in c.node.body
            if isinstance(n, ast.AnnAssign) and ast.unparse(n.target) != "features"
        ]
        for c in public
        if any("dataclass" in ast.unparse(d) for d in c.node.decorator_list)
    }
    assert {"CRFClassifier", "StructuredPerceptron", "SemiMarkovCRF"} <= set(fields)
    own = {
        name: {ast.unparse(n.target) for n in nodes} - {ast.unparse(n.target) for n in of_segments}
        for of_segments in [fields["Segments"]]
        for name, nodes in fields.items()
    }
    assert max(map(len, own.values())) <= 18
    assert not any({"__init__", "__post_init__"} & set(c.methods) for c in public)


# Rooms that get whatever users pass, whatever a file holds, and whatever numba is.
BOUNDARIES = {"_tables", "calibration", "cli", "compat", "compiler", "data", "features", "io",
              "labels", "inspection", "metrics", "model_selection", "persistence", "testing",
              "text", "warmup"}  # fmt: skip
# Users pass objects of these rooms, too: to ask which of them it is, is to validate an input.
INPUTS = {"data", "features", "labels"}


def hold(rule, broken):
    assert not broken, "\n".join([rule, *broken])


def test_rooms_ask_no_object_of_another_room_what_it_is():
    broken = [
        f"{path} {text}"
        for path, text, cls in sources().class_checks()
        if room_of(cls.path) not in {room_of(path), *INPUTS} and room_of(path) not in BOUNDARIES
    ]
    hold("classes of other rooms", broken)


def test_what_an_object_can_do_is_declared_and_not_probed():
    """Whether an estimator has been fitted, scikit-learn and its users ask by attributes."""
    broken = [
        f"{path} {ast.unparse(call)}"
        for path, call in sources().probes()
        if room_of(path) not in BOUNDARIES and not is_question_of_fit(call)
    ]
    hold("probes", broken)


def is_question_of_fit(call):
    name = call.args[1].value
    own = isinstance(call.args[0], ast.Name) and call.args[0].id == "self"
    return name.startswith("__") or (call.func.id == "hasattr" and own and name.endswith("_"))


def test_no_method_with_a_body_is_overridden():
    hold(
        "concrete overrides", [text for text in sources().concrete_overrides() if "__" not in text]
    )


def test_classes_inherit_from_two_classes_of_the_package_at_most():
    hold("own ancestors", [name for name, count in sources().inherited().items() if count > 3])


def test_functions_have_at_most_twelve_parameters():
    many = [f"{path} {f.name}" for path, f in sources().functions if len(parameters(f)) > 12]
    hold("more than 12 parameters", [text for text in many if not text.endswith("__init__")])


def test_few_functions_have_more_than_eight_parameters():
    many = [f"{path} {f.name}" for path, f in sources().functions if len(parameters(f)) > 8]
    assert len(many) <= 20, "\n".join(many)


def test_parameters_of_kernels_have_types():
    """The classes of a problem and of its workspace choose the parts that a kernel calls."""
    chosen = ("(problem)", "(workspace)")
    broken = [text for text in sources().untyped() if not text.endswith(chosen)]
    hold("parameters of kernels typed Any", broken)


def test_kernels_read_nothing_by_its_position_in_a_tuple():
    hold("positions in tuples", sources().positions())


PRIVATE = re.compile(r"(corner|visit|move|look)s?")
# The second is that of `ast`, the third that of the cuts of Boykov, Veksler and Zabih.
ORDINARY = re.compile(r"looks?_(up|like|ahead)|visit_(?=[A-Z])|ExpansionMoves")
# A step is one of a solver, a pipeline or a search; between two labels there is a transition.
TRANSITION = re.compile(
    r"_?(steps?_(coef|from|to|index|table|features?|names?|vocabulary|attributes|weights)_?.*"
    r"|(with|shared|observed|sparse|count|raise)_steps)|(Step|Shared|Observed|Sparse)(Features|Steps)"
)


def test_identifiers_are_words_of_the_field():
    broken = [
        f"{path} {name}"
        for path, name in sources().identifiers()
        if any(PRIVATE.fullmatch(word) for word in words(ORDINARY.sub("", name)))
        or TRANSITION.fullmatch(name)
    ]
    hold("private words", sorted(set(broken)))


def words(name):
    """The words of an identifier, in lower case."""
    parts = re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])", ORDINARY.sub("", name))
    return [word.lower() for word in parts]


def test_one_helper_finds_the_line_of_the_user_that_a_warning_is_about():
    broken = [
        path
        for path, node in sources().nodes(ast.keyword)
        if node.arg == "stacklevel" and room_of(path) != "_warnings"
    ]
    hold("numbers of stack levels", broken)
