"""Chains and forests whose transitions are normalized at each token.

Shapes as in :mod:`crfkit.kernels.chain.arrays`.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from crfkit._types import FloatArray, IntArray
from crfkit.compiler.jit import kernel
from crfkit.kernels._strips import product
from crfkit.kernels.chain.arrays import ChainScores
from crfkit.kernels.chain.sum import TINY

# A difference of sums that is a smaller share of them has lost digits; a larger number than this
# may have overflowed.
LEAST_REST, MOST_MASS = 1e-2, 1e300


class LocalExponentials(NamedTuple):
    """Exponentials of the scores of labels, and of transitions relative to each label before.

    Read-only.
    """

    node: FloatArray  # (N, K) exp(unary - shift)
    shift: FloatArray  # (N,) the largest unary score of each token
    leaving: FloatArray  # (M, K, K) exp(pair[m, i, j] - top[m, i]) at [m, j, i]
    top: FloatArray  # (M, K) the largest score of a transition from each label


@kernel
def _log_sum(scores: ChainScores, m: int, t: int, i: int, shift: float) -> float:
    """``log sum_j exp(unary_t(j) - shift + pair(i, j))``."""
    top = -math.inf
    for j in range(scores.unary.shape[1]):
        top = max(top, scores.unary[t, j] - shift + scores.pair[m, i, j])
    if top == -math.inf:
        return top
    total = 0.0
    for j in range(scores.unary.shape[1]):
        total += math.exp(scores.unary[t, j] - shift + scores.pair[m, i, j] - top)
    return top + math.log(total)


@kernel
def local_shift(
    scores: ChainScores,
    exponentials: LocalExponentials,
    before: IntArray,  # (N,) the token that the transition into each one comes from, -1 for none
    sums: FloatArray,  # (1, K) workspace
    out: FloatArray,  # (N, K) the unary scores, which are changed
) -> None:
    """Subtract what makes the probabilities of labels, given the one before, add up to 1.

    With ``N_t(i) = log sum_j exp(unary_t(j) + pair_t(i, j))`` the score of the label i at the token
    before t falls by ``N_t(i)``, or to ``-inf`` where it leads to no label; those of a first token
    fall by the logarithm of their sum. A constant may be taken from either token: from t itself.
    """
    node, shift = exponentials.node, exponentials.shift
    leaving, top = exponentials.leaving, exponentials.top
    index, size = scores.transition_index, node.shape[1]
    stride = 0 if index.shape[0] == 1 else 1
    for t in range(node.shape[0]):
        if shift[t] == -math.inf:
            continue
        origin, own, total = before[t], shift[t], 0.0
        if origin < 0:
            for k in range(size):
                total += node[t, k]
            own += math.log(total)
        for k in range(size):
            out[t, k] -= own
        if origin < 0:
            continue
        m = index[t * stride]
        product(node, t, leaving, m, sums, 0)
        for i in range(size):
            if sums[0, i] >= TINY:
                out[origin, i] -= math.log(sums[0, i]) + top[m, i]
                continue
            norm = _log_sum(scores, m, t, i, shift[t])
            out[origin, i] = out[origin, i] - norm if norm > -math.inf else norm


class ListedExponentials(NamedTuple):
    """The same of a chain whose transitions all have the score 0, but for E listed ones.

    Read-only.
    """

    node: FloatArray  # (N, K) exp(unary - shift)
    shift: FloatArray  # (N,) the largest unary score of each token
    ptr: IntArray  # (K + 1,) where the transitions from each label are listed, and the end
    target: IntArray  # (E,) the labels that they lead to, rising for each label
    value: FloatArray  # (E,) their scores
    gain: FloatArray  # (E,) exp(value) - 1


@kernel
def _log_sum_listed(unary: FloatArray, t: int, i: int, exponentials: ListedExponentials) -> float:
    """``log sum_j exp(unary_t(j) - shift + value(i, j))``."""
    shift, top, total = exponentials.shift[t], -math.inf, 0.0
    for turn in range(2):
        e = exponentials.ptr[i]
        for j in range(unary.shape[1]):
            score = unary[t, j] - shift
            if e < exponentials.ptr[i + 1] and exponentials.target[e] == j:
                score += exponentials.value[e]
                e += 1
            if turn == 0:
                top = max(top, score)
            else:
                total += math.exp(score - top)
        if top == -math.inf:
            return top
    return top + math.log(total)


@kernel
def local_shift_listed(
    unary: FloatArray,  # (N, K) scores
    exponentials: ListedExponentials,
    before: IntArray,  # (N,) as for `local_shift`
    out: FloatArray,  # (N, K) the unary scores, which are changed
) -> None:
    """Do as `local_shift`, in time ``O(K + E)`` a token: all transitions, and what listed ones add.

    Where that difference loses digits, its terms are added up one by one.
    """
    node, shift, ptr = exponentials.node, exponentials.shift, exponentials.ptr
    target, gain = exponentials.target, exponentials.gain
    for t in range(unary.shape[0]):
        if shift[t] == -math.inf:
            continue
        origin, own, total = before[t], shift[t], 0.0
        for k in range(unary.shape[1]):
            total += node[t, k]
        if origin < 0:
            own += math.log(total)
        for k in range(unary.shape[1]):
            out[t, k] -= own
        if origin < 0:
            continue
        for i in range(unary.shape[1]):
            mass = total
            for e in range(ptr[i], ptr[i + 1]):
                mass += node[t, target[e]] * gain[e]
            if total * LEAST_REST < mass < MOST_MASS:
                out[origin, i] -= math.log(mass)
                continue
            norm = _log_sum_listed(unary, t, i, exponentials)
            out[origin, i] = out[origin, i] - norm if norm > -math.inf else norm
