"""Lists of the best labelings of the sequences of a batch."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from crfkit._types import CodeArray, FloatArray, IntArray, Potentials
from crfkit.compiler.simd import WIDTH, padded
from crfkit.kernels.k_best import BestPaths, PathLists


class RankedCodes(NamedTuple):
    """The best labelings of each sequence, of which sequence ``s`` has ``n_s``."""

    codes: CodeArray  # (sum of n_s T_s,) those of the first sequence, the best first, and so on
    scores: FloatArray  # (sum of n_s,)
    counts: IntArray  # (S,) n_s

    def offsets(self, offsets: IntArray) -> IntArray:
        """Return where the labelings start in `codes`, and the end, given that of sequences."""
        lengths = np.repeat(np.diff(offsets), self.counts)
        return np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)


def labelings_at_most(potentials: Potentials, k: int) -> IntArray:
    """Return `k`, or how many labelings a sequence has at most where these are fewer, (S,)."""
    lengths, size = np.diff(potentials.offsets), potentials.n_labels
    more = size + (potentials.n_codes > size)  # each further token has a label, or goes on
    counts, most = [1, size], min(int(k), np.iinfo(np.int32).max)
    while counts[-1] < most and len(counts) <= lengths.max(initial=0):
        counts.append(counts[-1] * more)
    return np.minimum(counts, most)[np.minimum(lengths, len(counts) - 1)].astype(np.int64)


def empty_paths(potentials: Potentials, most: IntArray) -> BestPaths:
    """Return room for so many labelings, (S,), of the sequences."""
    codes = int(most @ np.diff(potentials.offsets))
    return BestPaths(np.empty(codes, np.int32), np.empty(int(most.sum())), np.empty_like(most))


def empty_lists(potentials: Potentials, most: IntArray, rows: int, choices: int) -> PathLists:
    """Return the workspace of lists: rows of nodes, and choices of a node, at most."""
    count, width = int(most.max(initial=1)), padded(rows)
    column, choice, other = np.empty((3, count, width), np.int32)
    loss, open_ = np.empty((2, count, width))
    top, next_row, heap = np.empty((3, count), np.int32)
    score, next_score = np.empty((2, count))
    return PathLists(
        column, choice, other, loss, open_, top, score, next_row, next_score, heap,
        np.empty((rows, potentials.n_labels), np.int32), np.empty(padded(choices)),
        np.empty(WIDTH),
    )  # fmt: skip


def ranked(structure: Any, potentials: Potentials, found: BestPaths) -> RankedCodes:
    """Return what was found; raise NoPathError if a sequence has no labeling."""
    if not found.counts.all():
        structure.argmax(potentials)  # raises, and tells where
    used = int(found.counts @ np.diff(potentials.offsets))
    return RankedCodes(found.codes[:used], found.scores[: int(found.counts.sum())], found.counts)
