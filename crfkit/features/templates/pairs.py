"""Numbers of pairs and of tuples of codes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from crfkit._types import CodeArray, IntArray
from crfkit.compiler.jit import frozen
from crfkit.kernels.text.hashing import SHIFT, pairs_find, pairs_number

_LEAST = 1024  # slots of a table without pairs


class PairTable:
    """A hash table of pairs of codes, which are numbered in the order of their appearance.

    It starts with `keys`, shape (U,): pairs ``left 2^32 + right``, in the order of their numbers.
    """

    def __init__(self, keys: IntArray | None = None) -> None:
        self._resize(_LEAST, np.zeros(0, np.int64))
        if keys is not None:
            self._resize(1 << int(4 * len(keys) + _LEAST).bit_length() - 1, keys)

    def __len__(self) -> int:
        return int(self._count[0])

    @property
    def keys(self) -> IntArray:
        """The pairs ``left 2^32 + right``, in the order of their numbers."""
        return self._keys[: len(self)].copy()

    def number(self, left: CodeArray, right: CodeArray) -> CodeArray:
        """Return the numbers of pairs, shape (N,), adding those that are new; -1 stays -1."""
        out = np.empty(len(left), np.int32)
        a, b = frozen(left), frozen(right)
        done = 0
        while True:
            done = pairs_number(a, b, done, self._slots, self._places, self._keys, self._count, out)
            if done == len(left):
                return out
            self._resize(4 * len(self._slots), self.keys)

    def find(self, left: CodeArray, right: CodeArray) -> CodeArray:
        """Return the numbers of pairs, shape (N,), -1 for those that are not in the table."""
        out = np.empty(len(left), np.int32)
        # The slots are not frozen: the search in them is compiled for the table that grows.
        pairs_find(frozen(left), frozen(right), self._slots, self._places, out)
        return out

    def _resize(self, size: int, keys: IntArray) -> None:
        self._slots = np.full(size, -1, np.int64)
        self._places = np.zeros(size, np.int32)
        self._keys = np.zeros(size // 2, np.int64)
        self._count = np.zeros(1, np.int64)
        self.number((keys // SHIFT).astype(np.int32), (keys % SHIFT).astype(np.int32))


def number_tuples(start: CodeArray, columns: Sequence[CodeArray]) -> CodeArray:
    """Return a number for each tuple of codes, shape (n,), from 0 on; -1 where one of them is -1.

    `start`, shape (n,), stands before all columns: 0, or -1 for places to leave out.
    """
    numbers = start
    for column in columns:
        numbers = PairTable().number(numbers, column)
    return numbers


def distinct_tuples(
    start: CodeArray, columns: Sequence[CodeArray]
) -> tuple[IntArray, CodeArray, list[tuple[int, ...]]]:
    """Return the places of tuples without -1, which tuple stands at each, and these tuples."""
    numbers = number_tuples(start, columns)
    places = np.flatnonzero(numbers >= 0)
    which = numbers[places]
    first = np.zeros(int(which.max(initial=-1)) + 1, np.int64)
    first[which[::-1]] = places[::-1]
    tuples = list(zip(*(codes[first].tolist() for codes in columns), strict=True))
    return places, which, tuples or [()] * len(first)
