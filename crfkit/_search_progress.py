"""How many fits of a search have ended, those in other processes too."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any, NamedTuple

from crfkit._progress import working

SECONDS = 5.0  # that a fit waits at most for the process that counts
INTERVAL = 0.2  # between two looks whether the search has ended
_connections: dict[Any, Any] = {}  # of this process to those that count


class Sender(NamedTuple):
    """Tells the process that counts, from any other one, that a fit has ended."""

    address: Any
    key: bytes
    depth: int  # of the search in the tree of tasks

    def send(self) -> None:
        """Tell it; nothing happens where it is gone."""
        try:
            if self.address not in _connections:
                _connections[self.address] = self.connect()
            connection = _connections[self.address]
            connection.send_bytes(b"1")
            if connection.poll(SECONDS):  # so that none is missing when the search ends
                connection.recv_bytes()
        except _errors():
            _connections.pop(self.address, None)

    def connect(self) -> Any:
        """Return a connection to the process that counts."""
        from multiprocessing.connection import Client  # few need it

        return Client(self.address, authkey=self.key)


class SearchProgress:
    """Shows the fits of a search as one piece of work.

    Parameters
    ----------
    total : int
        How many there are.
    depth : int
        The depth of the search in scikit-learn's tree of tasks; its fits are one deeper.
    """

    def __init__(self, total: int, depth: int) -> None:
        from multiprocessing.connection import Listener

        key = os.urandom(32)
        self._listener = Listener(authkey=key, backlog=128)
        self.sender = Sender(self._listener.address, key, depth)
        self._task, self._lock = working("search", total, "fits"), threading.Lock()
        self._ended = False
        self._task.__enter__()
        _in_thread(self._accept)

    def count(self) -> None:
        """Note that a fit has ended."""
        with self._lock:
            if not self._ended:
                self._task.advance()

    def close(self) -> None:
        """End the search."""
        with self._lock:
            self._ended = True
        with suppress(*_errors()):  # wakes the thread that waits
            self.sender.connect().close()
        self._listener.close()
        self._task.__exit__(None, None, None)

    def _accept(self) -> None:
        """Wait for processes until the end."""
        while not self._ended:
            with suppress(*_errors()):
                _in_thread(partial(self._listen, self._listener.accept()))

    def _listen(self, connection: Any) -> None:
        """Count what a process tells, until the end."""
        with connection, suppress(*_errors()):
            while not self._ended:
                if connection.poll(INTERVAL):
                    connection.recv_bytes()
                    self.count()
                    connection.send_bytes(b"1")


def depth_of(context: Any) -> int:
    """Return how deep a task lies in scikit-learn's tree of tasks."""
    depth = 0
    while context.parent is not None:
        depth, context = depth + 1, context.parent
    return depth


def is_search(context: Any) -> bool:
    """Whether a task is made of others that may run at the same time."""
    return bool(context.max_subtasks) and not context.sequential_subtasks


def _errors() -> tuple[type[Exception], ...]:
    """Return what a connection raises that has ended, or is not trusted."""
    from multiprocessing import AuthenticationError

    return OSError, EOFError, AuthenticationError


def _in_thread(work: Callable[[], None]) -> None:
    threading.Thread(target=work, daemon=True).start()
