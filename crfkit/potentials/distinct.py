"""Rows of attributes that are equal, found once."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from crfkit._types import IdArray, IntArray
from crfkit.data import PackedSequences

_MIX = (np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB))


def distinct_rows(data: PackedSequences, begin: int, end: int) -> tuple[PackedSequences, IdArray]:
    """Return the distinct rows among the tokens ``begin:end``, and which of them each token has.

    Equal rows have equal scores, so a table of pair scores is needed for each distinct row only:
    dozens instead of thousands, where the attributes of transitions are tags. They come as one
    sequence, in the order of their first appearance.
    """
    tokens, row_of = distinct_tokens(data, begin, end)
    return data.take_tokens(tokens), row_of


def distinct_tokens(data: PackedSequences, begin: int, end: int) -> tuple[IntArray, IdArray]:
    """Return the first token of each distinct row, and which of them each token has."""
    keys = _row_keys(data, begin, end)
    _, first, row_of = np.unique(keys, return_index=True, return_inverse=True)
    if not _equal_rows(data, begin + np.arange(end - begin), begin + first[row_of]):
        first = row_of = np.arange(end - begin)  # two different rows have the same key
    order = np.argsort(first)
    rank = np.empty(len(order), np.uint32)
    rank[order] = np.arange(len(order), dtype=np.uint32)
    return begin + first[order], rank[row_of]


def _mix(numbers: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Spread numbers over 64 bits (the finalizer of SplitMix64; Steele, Lea and Flood 2014)."""
    numbers = (numbers ^ (numbers >> np.uint64(30))) * _MIX[0]
    numbers = (numbers ^ (numbers >> np.uint64(27))) * _MIX[1]
    mixed: NDArray[np.uint64] = np.bitwise_xor(numbers, numbers >> np.uint64(31))
    return mixed


def _row_keys(data: PackedSequences, begin: int, end: int) -> NDArray[np.uint64]:
    """Return a number for each row; equal rows have equal ones."""
    low, high = data.indptr[begin], data.indptr[end]
    entries = _mix(data.indices[low:high].astype(np.uint64) + np.uint64(1))
    if data.values is not None:
        entries = _mix(entries ^ data.values[low:high].view(np.uint64))
    sums = np.concatenate([np.zeros(1, np.uint64), np.cumsum(entries, dtype=np.uint64)])
    bounds = data.indptr[begin : end + 1] - low
    keys: NDArray[np.uint64] = sums[bounds[1:]] - sums[bounds[:-1]]
    if data.dense is not None:
        for column in np.ascontiguousarray(data.dense[begin:end].T):
            keys = _mix(keys ^ (column + 0.0).view(np.uint64))
    return keys


def _equal_rows(data: PackedSequences, ours: IntArray, theirs: IntArray) -> bool:
    """Whether rows are equal, pair by pair."""
    a, b = data.take_tokens(ours), data.take_tokens(theirs)
    blocks = ("indptr", "indices", "values", "dense")
    return all(np.array_equal(getattr(a, name), getattr(b, name)) for name in blocks)
