"""What of a kernel is optimized."""

import os

import numba
import pytest

from crfkit.compiler import jit

pytestmark = pytest.mark.skipif(
    os.environ.get("NUMBA_DISABLE_JIT") == "1", reason="needs the compiler"
)


@pytest.mark.parametrize(("options", "plain"), [(jit.OPTIONS, 1), (jit.QUICK_OPTIONS, 0)])
def test_only_what_translates_the_arguments_is_not_optimized(options, plain):
    def twice(x):
        return 2.0 * x

    compiled = numba.njit(**options)(twice)
    assert compiled(3.0) == 6.0
    [code] = compiled.inspect_llvm().values()
    left = [
        line for line in code.splitlines() if line.startswith("attributes") and "optnone" in line
    ]
    assert len(left) == plain
    for line in code.splitlines():
        if line.startswith("define") and "twice" in line and left:
            assert ("7cpython" in line) == line.endswith(f"{left[0].split()[1]} {{")
