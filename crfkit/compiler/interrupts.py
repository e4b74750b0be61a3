"""Ctrl-C while numba works."""

from __future__ import annotations

import signal
import threading
from typing import Any, Self


class HeldInterrupts:
    """Lets an interrupt wait: ``with held_interrupts: ...``, also nested, until numba is done.

    Numba and LLVM call functions of Python in which an exception is printed, and lost. Where that
    is not so, `pass_on` raises it earlier.
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
                    self._came = False
                    signal.raise_signal(signal.SIGINT)

    def pass_on(self) -> None:
        """Have an interrupt that came do what it usually does."""
        if self._came and threading.current_thread() is threading.main_thread():
            self._came = False
            signal.signal(signal.SIGINT, self._usual)
            try:
                signal.raise_signal(signal.SIGINT)
            finally:
                signal.signal(signal.SIGINT, self._note)

    def _note(self, *_: object) -> None:
        self._came = True


def _handler() -> Any:
    """Return the function that an interrupt calls, None if there is none."""
    handler = signal.getsignal(signal.SIGINT)
    return handler if callable(handler) else None


held_interrupts = HeldInterrupts()
