"""Parts of kernels that are chosen by type: in other files, in other processes, in Python."""

import os

import numba
import numpy as np
import pytest

from crfkit.compiler.dispatch import dispatched, implements, interpreted
from crfkit.compiler.jit import kernel, part
from tests.processes import run_in_new_process

NO_JIT = os.environ.get("NUMBA_DISABLE_JIT") == "1"

SOLVER = """
from crfkit.compiler.dispatch import dispatched
from crfkit.compiler.jit import kernel

@dispatched
def best(problem, s): ...

@kernel
def solve(problem):
    total = 0.0
    for s in range(problem.values.shape[0]):
        total += best(problem, s)
    return total
"""
STRUCTURE = """
from typing import NamedTuple
import numpy as np

class Line(NamedTuple):
    values: np.ndarray
    slope: float

class Square(NamedTuple):
    values: np.ndarray
"""
BODIES = """
from crfkit.compiler.dispatch import implements
from crfkit.compiler.jit import part
from solver import best
from structure import Line, Square

@part
def twice(x):
    return 2.0 * x

@implements(best, Line)
def best_of_line(problem, s):
    return problem.slope * twice(problem.values[s])

@implements(best, Square)
def best_of_square(problem, s):
    return problem.values[s] ** 2
"""
RUN = """
import bodies, numpy as np
from solver import solve
from structure import Line, Square
from crfkit.compiler.dispatch import interpreted
x = np.arange(4.0)
for problem in (Line(x, 3.0), Square(x)):
    assert interpreted(solve)(problem) == solve(problem)
    print(solve(problem), end=" ")
print(sum(solve.stats.cache_hits.values()) if hasattr(solve, "stats") else "python")
"""


@pytest.fixture
def folder(tmp_path):
    for name, text in {"solver": SOLVER, "structure": STRUCTURE, "bodies": BODIES}.items():
        (tmp_path / f"{name}.py").write_text(text)
    return tmp_path


def run(folder, **environment):
    chosen = {"NUMBA_CACHE_DIR": str(folder / "cache")} | environment
    return run_in_new_process(RUN, folder, **chosen)[0].strip()


@pytest.mark.skipif(NO_JIT, reason="needs the compiler")
def test_bodies_of_other_files_are_cached_until_they_are_edited(folder):
    assert run(folder) == "36.0 14.0 0"
    assert run(folder) == "36.0 14.0 2"
    file = folder / "bodies.py"
    file.write_text(file.read_text().replace("2.0 * x", "4.0 * x"))
    assert run(folder) == "72.0 14.0 0"


def test_bodies_are_found_without_the_compiler(folder):
    assert run(folder, NUMBA_DISABLE_JIT="1") == "36.0 14.0 python"


@dispatched
def value(problem, s):
    """Return a value."""


@part
def half(x):
    return 0.5 * x


@kernel
def total(problem, size):
    result = 0.0
    for s in range(size):
        result += half(value(problem, s))
    return result


class Words:
    """A problem that is no arrays."""

    words = ("a", "bcd")


@implements(value, Words)
def value_of_words(problem, s):
    return len(problem.words[s])


def test_a_problem_may_be_any_object_in_python():
    assert interpreted(total)(Words(), 2) == 2.0
    with pytest.raises(TypeError, match="ndarray has no value"):
        interpreted(total)(np.zeros(1), 1)


@part
def _twice(x):
    return 2.0 * x


@kernel
def _four_times(x):
    return _twice(_twice(x))


@pytest.mark.skipif(NO_JIT, reason="needs the compiler")
def test_a_part_has_no_machine_code_of_its_own():
    assert _four_times(3.0) == 12.0
    _twice.compile((numba.float64,))  # where the kernel was loaded, nothing has asked for it
    for function, has_code in ((_twice, False), (_four_times, True)):
        (compiled,) = function.overloads.values()
        name = compiled.fndesc.llvm_func_name
        assert bool(compiled.library.get_pointer_to_function(name)) is has_code
