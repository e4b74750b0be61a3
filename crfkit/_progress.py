"""What takes long tells how far it is to whoever listens; nearly free where nobody does."""

from __future__ import annotations

import sys
import threading
import time
from types import TracebackType
from typing import Any, Protocol, Self


class Task:
    """A piece of work: how much of it there is, if that is known, and how much is done."""

    def __init__(
        self, phase: str, total: float | None, unit: str, listeners: tuple[Listener, ...]
    ) -> None:
        self.phase, self.total, self.unit, self._listeners = phase, total, unit, listeners
        self.done: float = 0
        self.facts: dict[str, Any] = {}  # what else is to be shown
        self.started, self.thread = time.perf_counter(), threading.get_ident()

    def __enter__(self) -> Self:
        for listener in self._listeners:
            listener.begin(self)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:  # fmt: skip
        if kind is not None:
            self.facts["failed"] = kind.__name__
        for listener in self._listeners:
            listener.end(self)

    def update(self, done: float, **facts: Any) -> None:
        """Tell how much is done by now, and what else there is to say."""
        self.done = done
        self.tell(**facts)

    def advance(self, amount: float = 1) -> None:
        """Tell that so much more is done."""
        self.update(self.done + amount)

    def tell(self, **facts: Any) -> None:
        """Tell something else."""
        self.facts.update(facts)
        for listener in self._listeners:
            listener.update(self)


class Listener(Protocol):
    """Is told of all work of the process."""

    def begin(self, task: Task) -> None:
        """Note that a piece of work begins, within those that have not ended."""

    def update(self, task: Task) -> None:
        """Note that more of it is done."""

    def end(self, task: Task) -> None:
        """Note that it has ended."""

    def clear_line(self) -> None:
        """Make room for a line that somebody else writes to the terminal."""


_listeners: tuple[Listener, ...] = ()
_lock = threading.Lock()
_SILENT = Task("", None, "", ())


def listen(listener: Listener) -> None:
    """Tell a listener of all work from now on."""
    global _listeners
    with _lock:
        _listeners = (*_listeners, listener)


def unlisten(listener: Listener) -> None:
    """Tell a listener no longer."""
    global _listeners
    with _lock:
        _listeners = tuple(each for each in _listeners if each is not listener)


def is_heard() -> bool:
    """Whether anybody listens."""
    return bool(_listeners)


def working(phase: str, total: float | None = None, unit: str = "") -> Task:
    """Return a piece of work that begins with a block and ends with it.

    Parameters
    ----------
    phase : str
        What is done, such as "features".
    total : float, optional
        How much there is to be done.
    unit : str, optional
        Of what: sequences, iterations.
    """
    return Task(phase, total, unit, _listeners) if _listeners else _SILENT


def say(text: str) -> None:
    """Write a line to standard error, not into one that shows progress."""
    for listener in _listeners:
        listener.clear_line()
    print(text, file=sys.stderr, flush=True)
