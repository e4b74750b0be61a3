"""From the attributes of a few tokens to their best labels, in one call.

Shapes as in :mod:`crfkit.kernels.chain.arrays`, and as in :mod:`crfkit.kernels.design.gather`.
"""

from __future__ import annotations

from typing import NamedTuple

from crfkit._types import CodeArray, FloatArray, IdArray, IntArray, PlaceArray
from crfkit.compiler.jit import part, quick_kernel
from crfkit.compiler.simd import readable
from crfkit.kernels.chain.max import viterbi_path
from crfkit.kernels.chain.sum import OK
from crfkit.kernels.design.gather import PairWeights, add_pairs, gather_rows, rows_in_order


class TaggingWeights(NamedTuple):
    """A model of chains that is read token by token. Read-only."""

    pairs: PairWeights
    table: FloatArray  # (H, K) full rows of weights
    pair: FloatArray  # (1, K, K) potentials of transitions
    first: FloatArray  # (1, K) added at first tokens
    last: FloatArray  # (1, K) added at last tokens
    zero: IdArray  # (1,): 0, the table of all transitions
    numbers: CodeArray  # (0,): attributes are numbered as they are


class TaggingRooms(NamedTuple):
    """Workspace for so many tokens and attributes, or more."""

    keys: IntArray  # (n,)
    ptr: IntArray  # (N + 1,)
    columns: IdArray  # (n,) attributes of tokens, in order
    values: FloatArray  # (n,)
    rows: PlaceArray  # (n,) rows of the table
    unary: FloatArray  # (N, K)
    best: FloatArray  # (N, K)


@part
def _add_tokens(weights: TaggingWeights, rooms: TaggingRooms, size: int) -> None:
    """Add up the scores of tokens; attributes with a row of the table are listed first."""
    pairs, ptr, values, unary = weights.pairs, rooms.ptr, rooms.values, rooms.unary
    begin, count = 0, 0
    for t in range(size):
        for k in range(unary.shape[1]):
            unary[t, k] = 0.0
        end = ptr[t + 1]
        for n in range(begin, end):
            attribute, value = rooms.columns[n], values[n]
            slot = pairs.slots[attribute]
            if slot < pairs.n_slots:
                rooms.rows[count] = slot
                values[count] = value
                count += 1
            else:
                add_pairs(pairs, attribute, slot, value, t, unary)
        begin, ptr[t + 1] = end, count
    gather_rows(weights.zero, readable(ptr), readable(rooms.rows), readable(values), 1, 0, size,
                weights.table, unary)  # fmt: skip


@quick_kernel
def chain_tag(
    ptr: IntArray,  # (N + 1,)
    entries: CodeArray,  # (n,) attributes, or negative where there is none
    values: FloatArray,  # (n,) or (1,)
    step: int,
    offsets: IntArray,  # (S + 1,)
    weights: TaggingWeights,
    rooms: TaggingRooms,
    labels: CodeArray,  # (N,) out
) -> int:
    """Find the best path of each sequence; returns the status of the first that has none.

    The attributes of a token are added in their order, as :func:`gather_tokens` is given them.
    """
    unary = rooms.unary
    rows_in_order(ptr, entries, weights.numbers, values, step, rooms.keys, rooms.ptr,
                  rooms.columns, rooms.values)  # fmt: skip
    _add_tokens(weights, rooms, labels.shape[0])
    for s in range(offsets.shape[0] - 1):
        begin, end = offsets[s], offsets[s + 1]
        if begin < end:
            for k in range(unary.shape[1]):
                unary[begin, k] += weights.first[0, k]
                unary[end - 1, k] += weights.last[0, k]
            path = viterbi_path(unary, weights.pair, weights.zero, begin, end, rooms.best, labels)
            if path != OK:
                return path
    return OK
