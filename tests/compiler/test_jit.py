"""What of a kernel is optimized, and what waits for the compiler."""

import os
import signal

import numba
import pytest
from numba.core import event
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
def test_an_interrupt_within_what_the_compiler_calls_is_not_lost(monkeypatch):
    came = []

    def interrupted(x):
        """Stand for what is compiled."""

    @overload(interrupted)
    def compile_interrupted(x):
        if not came:
            came.append(True)
            signal.raise_signal(signal.SIGINT)
        return lambda x: 2.0 * x

    compiled = numba.njit(lambda x: interrupted(x))
    monkeypatch.setattr(jit, "KERNELS", [compiled])
    with pytest.raises(KeyboardInterrupt):
        compiled(3.0)
    assert came
    assert compiled(3.0) == 6.0
    assert len(compiled.overloads) == 1


class Interrupting(event.Listener):
    """Interrupts the first pass of a name."""

    def __init__(self, name):
        self.name, self.came = name, False

    def on_start(self, found):
        if found.data["name"].startswith(self.name) and not self.came:
            self.came = True
            signal.raise_signal(signal.SIGINT)

    def on_end(self, found):
        pass


@pytest.mark.usefixtures("usual_interrupts")
@pytest.mark.parametrize(("name", "kept"), [("nopython_type_inference", 0), (jit.LAST_PASS, 1)])
def test_an_interrupt_ends_compiling_unless_that_is_all_but_done(monkeypatch, name, kept):
    compiled = jit._dispatcher(lambda x: 2.0 * x, **jit.OPTIONS)
    monkeypatch.setattr(jit, "KERNELS", [compiled])
    with (
        pytest.raises(KeyboardInterrupt),
        event.install_listener("numba:run_pass", Interrupting(name)),
    ):
        compiled(3.0)
    assert len(compiled.overloads) == kept
    assert compiled(3.0) == 6.0


@pytest.mark.usefixtures("usual_interrupts")
def test_an_interrupt_that_waits_is_passed_on_once():
    done = []
    with pytest.raises(KeyboardInterrupt), held_interrupts, held_interrupts:
        held_interrupts.pass_on()  # none came
        signal.raise_signal(signal.SIGINT)
        done.append(True)
        held_interrupts.pass_on()
        done.append(False)
    assert done == [True]
    with held_interrupts:
        held_interrupts.pass_on()


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
