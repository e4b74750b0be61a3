"""Tokens that are dicts or lists of strings, read by a kernel: see `crfkit.kernels.text.tokens`."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from threading import Lock, get_ident
from typing import Any, NamedTuple

import numpy as np

from crfkit._types import CodeArray, FloatArray, IntArray
from crfkit.compiler.jit import for_types_of, frozen
from crfkit.compiler.objects import can_read_objects
from crfkit.kernels.text.tokens import (
    DEPTH,
    FRAME,
    FULL,
    N_ASKED,
    NO_ROOM,
    NO_VALUES,
    RARE,
    Kinds,
    NameTable,
    Reading,
    entries_number,
    table_spread,
    tokens_read,
)

LEAST, MOST = 1 << 8, 1 << 17  # pairs that a table has room for
ENTRIES = 1 << 10  # that there is room for at first
_KINDS = Kinds(*map(id, (dict, list, tuple, str, float, np.float64, int, True, False)))


class Entries(NamedTuple):
    """What was read of tokens: entries, as of the kernel, with numbers of attributes."""

    entries: CodeArray  # (n,)
    indptr: IntArray  # (N + 1,) where those of each token begin, and the end
    values: FloatArray  # (v,) of the entries that stand for one


class _Prefixes(dict[int, str]):
    """What names begin with, by their node."""

    def __init__(self, names: list[str], table: NameTable) -> None:
        super().__init__({0: ""})
        self.names, self.table = names, table

    def __missing__(self, node: int) -> str:
        above = int(self.table.pairs[2 * node - 1])
        prefix = self[node] = f"{self[above]}{self.names[node - 1]}:"
        return prefix


class TokenReader:
    """Reads tokens, one thread at a time, and remembers the names that they have.

    Parameters
    ----------
    look_up : callable
        Gives the numbers of names, `SKIP` for one that is to be skipped.
    most : int
        How many names are remembered; where there are more, all are forgotten.
    """

    keeps_zeros = False  # whether there are entries of attributes of value 0

    def __init__(self, look_up: Callable[[list[str]], list[int]], most: int = MOST) -> None:
        self._look_up, self._most = look_up, most
        self._lock, self._reading = Lock(), 0
        self._entries, self._values = np.empty(ENTRIES, np.int32), np.empty(0)
        self._sizes, self._overflow = np.zeros(4, np.int64), np.zeros(1, np.int64)
        self._frames = np.zeros(DEPTH * FRAME, np.int64)
        self.forget()

    def forget(self) -> None:
        """Forget all names."""
        self._names = list[str]()
        self._make(LEAST)

    def read(self, tokens: list[Any], first: int = 0) -> Entries:
        """Read tokens from one on: all, or those before one of a rarer form, maybe none."""
        thread = get_ident()
        if self._reading == thread or not can_read_objects():  # called by the collector meanwhile
            return Entries(self._entries[:0], np.zeros(1, np.int64), self._values[:0])
        with self._lock:
            self._reading = thread
            try:
                return self._read(tokens, first)
            except BaseException:
                self.forget()  # what was asked for may not have been found out
                raise
            finally:
                self._reading = 0

    def _read(self, tokens: list[Any], first: int) -> Entries:
        indptr, forgot = np.empty(len(tokens) - first + 1, np.int64), False
        read, number = _kernels()
        while True:
            out = self._reading_into(indptr)
            end = read(id(tokens), first, self._table, _KINDS, out)
            n_asked, why = self._sizes[N_ASKED:].tolist()
            if n_asked:
                self._find_out(self._asked[:n_asked].tolist())
            if end > first or why in (0, RARE):
                break
            forgot = self._make_room(why, forgot)
        number(self._numbers, self.keeps_zeros, out)
        n_entries, n_values = self._sizes[:N_ASKED].tolist()
        entries, values = self._entries[:n_entries].copy(), self._values[:n_values].copy()
        self._make_room(why, forgot)  # for the tokens that follow
        return Entries(entries, indptr[: end - first + 1], values)

    def _reading_into(self, indptr: IntArray) -> Reading:
        """Return what the kernels write."""
        return Reading(self._entries, indptr, self._values, self._asked, self._sizes, self._frames,
                       self._overflow)  # fmt: skip

    def _make_room(self, why: int, forgot: bool) -> bool:
        """Make room for what there was none; returns whether all names have been forgotten."""
        if why == NO_ROOM:
            self._entries = np.empty(2 * len(self._entries), np.int32)
        elif why == NO_VALUES:
            self._values = np.empty(max(ENTRIES, 2 * len(self._values)))
        elif why == FULL and len(self._asked) >= self._most and not forgot:
            self.forget()
            return True
        elif why == FULL:
            self._grow()
        return forgot

    def _find_out(self, asked: list[int]) -> None:
        """Look up the names of pairs."""
        names, prefixes = self._names, self._prefixes
        nodes = self._table.pairs[1::2][asked].tolist()
        whole = [prefixes[node] + names[pair] for node, pair in zip(nodes, asked, strict=True)]
        self._table.numbers[asked] = self._look_up(whole)

    def _make(self, size: int) -> None:
        """Make an empty table for so many pairs."""
        self._table = NameTable(
            np.full(4 * size, -1), np.empty(2 * size, np.int64), np.empty(size, np.int32),
            np.zeros(1, np.int64), id(self._names),
        )  # fmt: skip
        self._asked, self._numbers = np.empty(size, np.int32), frozen(self._table.numbers)
        self._prefixes = _Prefixes(self._names, self._table)

    def _grow(self) -> None:
        """Double the room of the table."""
        old, prefixes = self._table, self._prefixes
        self._make(2 * len(old.numbers))
        for name in ("pairs", "numbers", "n_pairs"):
            before = getattr(old, name)
            getattr(self._table, name)[: len(before)] = before
        table_spread(frozen(old.slots), self._table)
        self._prefixes.update(prefixes)


@cache
def _kernels() -> tuple[Callable[..., int], Callable[..., None]]:
    """Return what reads tokens and what numbers their entries.

    To look at the types of their arguments would take longer than to read a few tokens.
    """
    reader = TokenReader(lambda names: [])
    out = reader._reading_into(np.zeros(1, np.int64))
    return (
        for_types_of(tokens_read, 0, 0, reader._table, _KINDS, out),
        for_types_of(entries_number, reader._numbers, False, out),
    )
