"""What numba compiles for, made when something is compiled: machine code from the disk needs none.

To make it, numba starts LLVM, which takes 4 MB. Until then, what a kernel tells it is kept.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numba
from numba.core.codegen import get_host_cpu_features, ll
from numba.core.descriptors import TargetDescriptor
from numba.core.registry import CPUDispatcher, cpu_target

from crfkit.compiler.interrupts import held_interrupts


class LateContext:
    """Stands for numba's context of this machine."""

    def __init__(self) -> None:
        self._made: Any = None
        self._waiting: list[tuple[Any, ...]] = []

    @property
    def typing_context(self) -> Any:
        """What finds types, which takes little."""
        return cpu_target.typing_context

    @property
    def is_made(self) -> bool:
        """Whether something was compiled in this process."""
        return self._made is not None

    def make(self) -> Any:
        """Return the context itself, which knows of all kernels that were loaded before."""
        if self._made is None:
            self._made = cpu_target.target_context
            for described in self._waiting:
                self._made.insert_user_function(*described)
            self._waiting.clear()
        return self._made

    def insert_user_function(self, *described: Any) -> None:
        """Take in the machine code of a kernel that was loaded."""
        if self._made is None:
            self._waiting.append(described)
        else:
            self._made.insert_user_function(*described)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.make(), name)


CONTEXT = LateContext()


class _Target(TargetDescriptor):  # type: ignore[misc]
    """The target of numba, whose context is found by a function when it is asked for."""

    options = cpu_target.options

    def __init__(self, context: Callable[[], Any]) -> None:
        super().__init__("cpu")
        self._context = context

    @property
    def typing_context(self) -> Any:
        return cpu_target.typing_context

    @property
    def target_context(self) -> Any:
        return self._context()


_TARGET, _LATE = _Target(CONTEXT.make), _Target(lambda: CONTEXT)


class KernelDispatcher(CPUDispatcher):  # type: ignore[misc]
    """Compiles or loads a kernel for the types of its arguments, and calls it."""

    targetdescr = _TARGET

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self.targetdescr = _LATE
        super().__init__(*args, **kwargs)
        del self.targetdescr
        self._compiler.targetdescr = _TARGET

    def compile(self, sig: Any) -> Any:
        """Compile or load a kernel for some types, and keep it; then an interrupt is heard."""
        with held_interrupts:
            return super().compile(sig)


@cache
def machine() -> tuple[str, str, str]:
    """Return what machine code is compiled for: the system, the processor and its features."""
    name = numba.config.CPU_NAME or ll.get_host_cpu_name()
    features = numba.config.CPU_FEATURES
    if features is None:
        features = get_host_cpu_features()
    return ll.get_process_triple(), name, features
