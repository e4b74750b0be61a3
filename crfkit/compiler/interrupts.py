"""Ctrl-C while numba works."""

from __future__ import annotations

import signal
import threading
from typing import Any, Self


class HeldInterrupts:
    """Lets an interrupt wait until numba is done: ``with held_interrupts: ...``, also nested.

    Numba and LLVM call functions of Python in which an exception is printed, and lost.
    """

    def __init__(self) -> None:
        self._depth, self._came, self._usual = 0, False, None

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():  # no other one is interrupted
            if self._depth == 0:
                self._came, self._usual = False, _handler()
                if self._usual is not None:
                    signal.signal(signal.SIGINT, self._note)
            self._depth += 1
        return self

    def __exit__(self, *_: object) -> None:
        if threading.current_thread() is threading.main_thread() and self._depth:
            self._depth -= 1
            if self._depth == 0 and self._usual is not None:
                signal.signal(signal.SIGINT, self._usual)
                if self._came:
                    signal.raise_signal(signal.SIGINT)

    def _note(self, *_: object) -> None:
        self._came = True


def _handler() -> Any:
    """Return the function that an interrupt calls, None if there is none."""
    handler = signal.getsignal(signal.SIGINT)
    return handler if callable(handler) else None


held_interrupts = HeldInterrupts()
