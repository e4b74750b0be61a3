"""What of a kernel is optimized, and what waits for the compiler."""

import os
import signal

import numba
import pytest
from numba.extending import overload

from crfkit.compiler import jit
from crfkit.compiler.interrupts import held_interrupts

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


@pytest.fixture
def usual_interrupts():
    handler = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    assert signal.signal(signal.SIGINT, handler) is signal.default_int_handler


@pytest.mark.usefixtures("usual_interrupts")
def test_an_interrupt_waits_for_the_compiler(monkeypatch):
    def interrupted(x):
        """Stand for what is compiled."""

    @overload(interrupted)
    def compile_interrupted(x):
        signal.raise_signal(signal.SIGINT)
        return lambda x: 2.0 * x

    compiled = numba.njit(lambda x: interrupted(x))
    monkeypatch.setattr(jit, "KERNELS", [compiled])
    with pytest.raises(KeyboardInterrupt):
        compiled(3.0)
    assert len(compiled.overloads) == 1
    assert compiled(3.0) == 6.0


@pytest.mark.usefixtures("usual_interrupts")
def test_an_interrupt_waits_for_the_end_of_all_that_holds_it():
    done = []
    with pytest.raises(KeyboardInterrupt), held_interrupts:
        with held_interrupts:
            signal.raise_signal(signal.SIGINT)
        done.append(True)
    assert done
    with held_interrupts:
        pass
