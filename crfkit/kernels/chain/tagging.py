"""From the attributes of a few tokens to their best labels, in one call.

Shapes as in :mod:`crfkit.kernels.chain.arrays`, and as in :mod:`crfkit.kernels.design.gather`.
"""

from __future__ import annotations

from typing import NamedTuple

from crfkit._types import CodeArray, FloatArray, IdArray, IntArray
from crfkit.compiler.jit import kernel, part
from crfkit.kernels.chain.max import viterbi_path
from crfkit.kernels.chain.sum import OK
from crfkit.kernels.design.gather import PairWeights, add_pairs, add_rows, merge_row


class TaggingWeights(NamedTuple):
    """A model of chains that is read token by token. Read-only."""

    pairs: PairWeights
    table: FloatArray  # (H, K) full rows of weights
    pair: FloatArray  # (1, K, K) potentials of transitions
    tables: IdArray  # (1,): 0, as all transitions share them
    first: FloatArray  # (1, K) added at first tokens
    last: FloatArray  # (1, K) added at last tokens


@part
def _add_token(
    weights: TaggingWeights, columns: IdArray, values: FloatArray, size: int, t: int,
    unary: FloatArray,
) -> None:  # fmt: skip
    """Add the scores of `size` attributes to those of a token."""
    pairs, count = weights.pairs, 0
    for n in range(size):
        attribute, value = columns[n], values[n]
        slot = pairs.slots[attribute]
        if slot < pairs.n_slots:
            columns[count] = slot
            values[count] = value
            count += 1
        else:
            add_pairs(pairs, attribute, slot, value, t, unary)
    add_rows(columns, values, 1, 0, count, weights.table, t, unary)


@kernel
def chain_tag(
    ptr: IntArray,  # (N + 1,)
    entries: CodeArray,  # (n,) attributes, or negative where there is none
    values: FloatArray,  # (n,) or (1,)
    step: int,
    offsets: IntArray,  # (S + 1,)
    weights: TaggingWeights,
    columns: IdArray,  # (n,) workspace: attributes of a token, in order
    sums: FloatArray,  # (n,) workspace: their values
    unary: FloatArray,  # (N, K) workspace: zeros
    best: FloatArray,  # (N, K) workspace
    labels: CodeArray,  # (N,) out
) -> int:
    """Find the best path of each sequence; returns the status of the first that has none.

    The attributes of a token are added in their order, as :func:`gather_tokens` is given them.
    """
    for t in range(unary.shape[0]):
        size = 0
        for n in range(ptr[t], ptr[t + 1]):
            if entries[n] >= 0:
                columns[size] = entries[n]
                sums[size] = values[n * step]
                size += 1
        _add_token(weights, columns, sums, merge_row(columns, sums, 0, size), t, unary)
    for s in range(offsets.shape[0] - 1):
        begin, end = offsets[s], offsets[s + 1]
        if begin < end:
            for k in range(unary.shape[1]):
                unary[begin, k] += weights.first[0, k]
                unary[end - 1, k] += weights.last[0, k]
            status = viterbi_path(unary, weights.pair, weights.tables, begin, end, best, labels)
            if status != OK:
                return status
    return OK
