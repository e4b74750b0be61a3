"""Where the distributions of all batches are kept: in memory, or, if they are large, in a file."""

from __future__ import annotations

import os
import tempfile
import threading
import weakref
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np

from crfkit._types import FloatArray, IntArray, LabelArray, SingleArray
from crfkit.compiler.jit import frozen
from crfkit.kernels.solvers.batches import BlockIndex
from crfkit.kernels.solvers.eg import LARGEST, N_NUMBERS, ZERO
from crfkit.oracles.batches import BatchOracle

# What takes more bytes is kept in a temporary file, if there are so many labels: with fewer ones,
# to compute a potential takes not much longer than to read it.
IN_MEMORY, MANY_LABELS = 1 << 26, 64
# Potentials that are read from a file at a time, but for a larger batch.
AT_A_TIME = 1 << 16
Numbers = SingleArray | LabelArray
# Given some batches, where these are in two vectors, potentials and residuals: reads and writes.
Work = Callable[[IntArray, BlockIndex, Numbers, Numbers], None]


class DualStore(ABC):
    """Potentials and residuals of all batches: see `DualBlocks` in `crfkit.kernels.solvers.eg`.

    At first the potentials are `gold` for true labels and else 0, and the residuals are 0. They are
    `short` as in `ShortBlocks`, which needs `numbers`, (B, 6), or have 32 bits.
    """

    def __init__(self, oracle: BatchOracle, gold: float, short: bool) -> None:
        self.oracle, self.gold, self.short = oracle, gold, short
        self.kind: type = np.uint16 if short else np.float32
        self.numbers: FloatArray = np.zeros((len(oracle.index.unary) - 1, 2 * N_NUMBERS))

    def begin(self, batch: int, potentials: Numbers) -> None:
        """Write the first potentials of the labels of a batch."""
        first, step = self.oracle.true_potentials(batch, self.gold), 1.0
        if self.short:
            low, high = min(first.min(initial=0.0), 0.0), first.max(initial=0.0)
            step = (high - low) / LARGEST or 1.0
            self.numbers[batch] = 0.0
            self.numbers[batch, :2] = low, step
            first = np.rint((first - low) / step)
        potentials[:] = first

    @abstractmethod
    def reset(self) -> None:
        """Put all back to what it was at first."""

    @abstractmethod
    def work_on(self, order: IntArray, work: Work) -> None:
        """Have batches read and written, one after the other, maybe some of them at a time."""


class InMemory(DualStore):
    """Two vectors, (T,)."""

    def __init__(self, oracle: BatchOracle, gold: float, short: bool = False) -> None:
        super().__init__(oracle, gold, short)
        vectors: Any = np.zeros((2, oracle.n_potentials), self.kind)
        self.potentials, self.residuals = vectors
        self.reset()

    def reset(self) -> None:
        """Put all back to what it was at first."""
        unary = self.oracle.index.unary
        for batch in range(len(unary) - 1):
            self.begin(batch, self.potentials[unary[batch] : unary[batch + 1]])
        self.potentials[unary[-1] :] = 0
        self.residuals[:] = ZERO if self.short else 0.0

    def work_on(self, order: IntArray, work: Work) -> None:
        """Have batches read and written."""
        work(order, self.oracle.index, self.potentials, self.residuals)


class _OfThread(threading.local):
    """Room for some batches."""

    vectors: Numbers | None = None


class InFile(DualStore):
    """A temporary file, of which a few batches at a time are in memory.

    The system keeps what it has room for. A batch has its potentials of labels and of transitions,
    then the residuals of both. OSError if there is no room for such a file.
    """

    def __init__(self, oracle: BatchOracle, gold: float, short: bool = False) -> None:
        super().__init__(oracle, gold, short)
        index, size = oracle.index, 2 * np.dtype(self.kind).itemsize
        # How many of labels, and of transitions, each batch has, and where it starts in the file.
        self._counts = np.diff(index.unary), np.diff(index.pair)
        self._starts = size * np.concatenate([[0], np.cumsum(sum(self._counts))])
        self._written = np.zeros(len(self._starts) - 1, bool)
        self._room = _OfThread()
        self._file = tempfile.TemporaryFile(buffering=0)
        weakref.finalize(self, self._file.close)
        os.posix_fallocate(self._file.fileno(), 0, max(int(self._starts[-1]), 1))

    def reset(self) -> None:
        """Put all back to what it was at first."""
        self._written[:] = False

    def work_on(self, order: IntArray, work: Work) -> None:
        """Have batches read and written, some of them at a time."""
        sizes = np.cumsum(sum(counts[order] for counts in self._counts))
        groups = np.cumsum(np.diff(sizes // AT_A_TIME, prepend=0) > 0)
        for group in np.split(order, np.flatnonzero(np.diff(groups)) + 1):
            self._work_on(group, work)

    def _work_on(self, order: IntArray, work: Work) -> None:
        chosen = np.unique(order)
        unary, pair = (_places(chosen, counts) for counts in self._counts)
        pair += unary[-1]
        index = BlockIndex(frozen(unary), frozen(pair), self.oracle.index.first_pair)
        potentials, residuals = self._vectors(int(pair[-1]))
        parts = [
            [vector[ptr[batch] : ptr[batch + 1]] for vector in (potentials, residuals)
             for ptr in (unary, pair)]
            for batch in chosen.tolist()
        ]  # fmt: skip
        for batch, own in zip(chosen.tolist(), parts, strict=True):
            self._read(batch, own)
        work(frozen(order), index, potentials, residuals)
        for batch, own in zip(chosen.tolist(), parts, strict=True):
            self._write(batch, own)

    def _vectors(self, size: int) -> tuple[Numbers, Numbers]:
        """Return room of this thread for so many potentials, and residuals."""
        room = self._room.vectors
        if room is None or room.shape[1] < size:
            room = self._room.vectors = np.empty((2, size), self.kind)
        return room[0, :size], room[1, :size]

    def _read(self, batch: int, own: list[Any]) -> None:
        """Read the potentials and residuals of a batch."""
        if self._written[batch]:
            found = os.preadv(self._file.fileno(), own, int(self._starts[batch]))
            self._check(batch, found)
            return
        self.begin(batch, own[0])
        own[1][:] = 0
        for residuals in own[2:]:
            residuals[:] = ZERO if self.short else 0.0

    def _write(self, batch: int, own: list[Any]) -> None:
        """Write the potentials and residuals of a batch."""
        done = os.pwritev(self._file.fileno(), own, int(self._starts[batch]))
        self._check(batch, done)
        self._written[batch] = True

    def _check(self, batch: int, done: int) -> None:
        if done != self._starts[batch + 1] - self._starts[batch]:
            raise OSError("a temporary file of a fit could not be read or written as a whole")


def _places(chosen: IntArray, counts: IntArray) -> IntArray:
    """Return where each batch starts, if those that are chosen stand one after the other, (B + 1,).

    Only where chosen ones start and end has a meaning.
    """
    own = np.zeros(len(counts) + 1, np.int64)
    own[chosen + 1] = counts[chosen]
    return np.cumsum(own)


def make_store(oracle: BatchOracle, gold: float, n_labels: int, short: bool) -> DualStore:
    """Return the distributions of all batches, in a file if they are large and there can be one."""
    size = (4 if short else 8) * oracle.n_potentials
    if size > IN_MEMORY and n_labels >= MANY_LABELS:
        try:
            return InFile(oracle, gold, short)
        except (OSError, AttributeError):  # no room, or no such function
            pass
    return InMemory(oracle, gold, short)
