"""Best paths of linear chains, scores of given paths, and the adjoint of these.

Shapes as in :mod:`crfkit.kernels.chain.arrays`.
"""

from __future__ import annotations

from crfkit._types import CodeArray, FloatArray, IdArray, IntArray
from crfkit.compiler.jit import kernel
from crfkit.compiler.simd import prefetch
from crfkit.kernels.chain._viterbi import viterbi_path
from crfkit.kernels.chain.arrays import ChainScores
from crfkit.kernels.chain.sum import OK

# Scores are asked for so many tokens before they are read.
AHEAD = 16


@kernel
def chain_max(
    scores: ChainScores,
    best: FloatArray,  # (N, K) workspace
    labels: CodeArray,  # (N,) out
    value: FloatArray,  # (S,) out
    status: IntArray,  # (S,) out
) -> None:
    """Find the path of the largest score (Viterbi 1967); of equal ones, the lowest labels.

    ``best_t(j) = unary_t(j) + max_i (best_{t-1}(i) + pair(i, j))``; the way back finds the ``i``
    again, which is cheaper than to store it for all ``j``.
    """
    unary, pair, index, offsets = scores.unary, scores.pair, scores.transition_index, scores.offsets
    for s in range(offsets.shape[0] - 1):
        begin, end = offsets[s], offsets[s + 1]
        value[s] = 0.0
        status[s] = OK
        if begin < end:
            status[s] = viterbi_path(unary, pair, index, begin, end, best, labels)
            value[s] = best[end - 1, labels[end - 1]]


@kernel
def chain_score(
    scores: ChainScores,
    labels: CodeArray,  # (N,)
    value: FloatArray,  # (S,) out
) -> None:
    """``value = sum_t unary_t(y_t) + sum_{t > 1} pair_t(y_{t-1}, y_t)``."""
    unary, pair, index, offsets = scores.unary, scores.pair, scores.transition_index, scores.offsets
    stride = 0 if index.shape[0] == 1 else 1
    final = unary.shape[0] - 1
    for s in range(offsets.shape[0] - 1):
        whole, before = 0.0, 0
        for t in range(offsets[s], offsets[s + 1]):
            soon, label = min(t + AHEAD, final), labels[t]
            prefetch(unary, soon, labels[soon])
            whole += unary[t, label]
            if t > offsets[s]:
                whole += pair[index[t * stride], before, label]
            before = label
        value[s] = whole


@kernel
def chain_add_path(
    index: IdArray,  # (N,) or (1,)
    offsets: IntArray,  # (S + 1,)
    labels: CodeArray,  # (N,)
    weight: FloatArray,  # (S,)
    unary: FloatArray,  # (N, K) out, added to
    pair: FloatArray,  # (M, K, K) out, added to
) -> None:
    """Add the weight of each sequence to the parts on its path (the adjoint of the score)."""
    stride = 0 if index.shape[0] == 1 else 1
    final = unary.shape[0] - 1
    for s in range(offsets.shape[0] - 1):
        level, before = weight[s], 0
        for t in range(offsets[s], offsets[s + 1]):
            soon, label = min(t + AHEAD, final), labels[t]
            prefetch(unary, soon, labels[soon])
            unary[t, label] += level
            if t > offsets[s]:
                pair[index[t * stride], before, label] += level
            before = label
