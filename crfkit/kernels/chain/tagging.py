"""From the attributes of a few tokens to their best labels, in one call.

Shapes as in :mod:`crfkit.kernels.chain.arrays`, and as in :mod:`crfkit.kernels.design.gather`.
"""

from __future__ import annotations

from typing import NamedTuple

from crfkit._types import CodeArray, FloatArray, IdArray, IntArray
from crfkit.compiler.jit import kernel, part
from crfkit.kernels.chain.max import viterbi_path
from crfkit.kernels.chain.sum import OK
from crfkit.kernels.design.gather import PairWeights, add_pairs, add_rows
from crfkit.kernels.text.rows import merge_row


class TaggingWeights(NamedTuple):
    """A model of chains that is read token by token. Read-only."""

    pairs: PairWeights
    table: FloatArray  # (H, K) full rows of weights
    pair: FloatArray  # (1, K, K) potentials of transitions
    index: IdArray  # (1,): 0, as all transitions share them
    first: FloatArray  # (1, K) added at first tokens
    last: FloatArray  # (1, K) added at last tokens


class TaggingRoom(NamedTuple):
    """What the kernel writes on its way."""

    columns: CodeArray  # (n,) attributes of a token, in order
    values: FloatArray  # (n,) and their values
    rows: IdArray  # (n,) those with a row in the table
    unary: FloatArray  # (N, K) in: zeros
    best: FloatArray  # (N, K)


@part
def _add_token(weights: TaggingWeights, room: TaggingRoom, size: int, t: int) -> None:
    """Add the scores of the first `size` attributes that are noted to those of a token."""
    pairs, columns, values, count = weights.pairs, room.columns, room.values, 0
    for n in range(size):
        attribute, value = columns[n], values[n]
        slot = pairs.slots[attribute]
        if slot < pairs.n_slots:
            room.rows[count] = slot
            values[count] = value
            count += 1
        else:
            add_pairs(pairs, attribute, slot, value, t, room.unary)
    add_rows(room.rows, values, 1, 0, count, weights.table, t, room.unary)


@kernel
def chain_tag(
    ptr: IntArray,  # (N + 1,)
    entries: CodeArray,  # (n,) attributes, or negative where there is none
    values: FloatArray,  # (n,) or (1,)
    step: int,
    offsets: IntArray,  # (S + 1,)
    weights: TaggingWeights,
    room: TaggingRoom,
    labels: CodeArray,  # (N,) out
) -> int:
    """Find the best path of each sequence; returns the status of the first that has none.

    The attributes of a token are added in their order, as :func:`gather_tokens` is given them.
    """
    unary = room.unary
    for t in range(unary.shape[0]):
        size = 0
        for n in range(ptr[t], ptr[t + 1]):
            if entries[n] >= 0:
                room.columns[size] = entries[n]
                room.values[size] = values[n * step]
                size += 1
        _add_token(weights, room, merge_row(room.columns, room.values, 0, size), t)
    for s in range(offsets.shape[0] - 1):
        begin, end = offsets[s], offsets[s + 1]
        if begin < end:
            for k in range(unary.shape[1]):
                unary[begin, k] += weights.first[0, k]
                unary[end - 1, k] += weights.last[0, k]
            status = viterbi_path(unary, weights.pair, weights.index, begin, end, room.best, labels)
            if status != OK:
                return status
    return OK
