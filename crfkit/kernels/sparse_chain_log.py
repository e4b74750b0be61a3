"""Sums of logarithms on linear chains whose transitions have a score for few pairs of labels.

Shapes as in :mod:`crfkit.kernels.sparse_chain`.
"""

from __future__ import annotations

import math

from crfkit._types import FloatArray, IdArray
from crfkit.compiler.jit import kernel
from crfkit.kernels.chain.sum import NOTHING, OK, log_sum
from crfkit.kernels.sparse_chain import TRUST, SparsePattern, SparseScores, SparseSums

# Terms below the largest by more do not change a sum.
FAINT = -50.0


@kernel
def _log_unscored(work: FloatArray, ids: IdArray, begin: int, end: int) -> float:
    """``log sum_k exp(work[2, k])`` over all but the `ids`, term by term."""
    for e in range(begin, end):
        work[2, ids[e]] = -math.inf
    top: float = -math.inf
    total = 0.0
    for k in range(work.shape[1]):
        if work[2, k] > top:
            top = work[2, k]
    for k in range(work.shape[1]):
        if work[2, k] > top + FAINT:
            total += math.exp(work[2, k] - top)
    for e in range(begin, end):
        work[2, ids[e]] = work[3, ids[e]]
    return top + math.log(total) if total else top


@kernel
def _log_steps(
    work: FloatArray,  # (4, K) the last two rows: logarithms; the first: exponentials, relative to
    top: float,  # the largest logarithm
    everything: float,  # the sum of the exponentials
    ids: IdArray,
    pair: FloatArray,  # (E,) scores of the steps, 0 for those that are none of these
    begin: int,
    end: int,
) -> float:
    """``log sum_k exp(work[2, k] + score_k)``, the scored steps being those of the `ids`."""
    rest = everything
    best: float = -math.inf
    for e in range(begin, end):
        rest -= work[0, ids[e]]
        best = max(best, work[2, ids[e]] + pair[e])
    if rest <= TRUST * everything:
        unscored = _log_unscored(work, ids, begin, end)
    else:
        unscored = top + math.log(rest)
    best = max(best, unscored)
    if best == -math.inf:
        return best
    total = math.exp(unscored - best)
    for e in range(begin, end):
        below = work[2, ids[e]] + pair[e] - best
        if below > FAINT:
            total += math.exp(below)
    return best + math.log(total)


@kernel
def _raise(work: FloatArray) -> float:
    """Copy logarithms, and write their exponentials, relative to the largest, which is returned."""
    top: float = -math.inf
    for k in range(work.shape[1]):
        top = max(top, work[2, k])
    for k in range(work.shape[1]):
        work[3, k] = work[2, k]
        below = work[2, k] - top
        work[0, k] = math.exp(below) if below > NOTHING else 0.0
    return top


@kernel
def _sum_of_first(work: FloatArray) -> float:
    """Return the sum of the first row."""
    total = 0.0
    for k in range(work.shape[1]):
        total += work[0, k]
    return total


@kernel
def sparse_sum_log(
    scores: SparseScores,
    s: int,
    pattern: SparsePattern,
    weight: FloatArray,  # (S,) factor of the expected counts of each sequence
    norm: FloatArray,  # (N,) workspace
    work: FloatArray,  # (4, K) workspace
    out: SparseSums,  # the status is not written; the flow are expected transitions
) -> int:
    """Log Z and expected counts of one sequence as of `chain_sum_log`, in ``O(T (K + E))``.

    The unscored steps into a label are all minus the scored ones, relative to the largest; where
    that loses digits, they are added up one by one.
    """
    unary, begin, end, logs = scores.unary, scores.offsets[s], scores.offsets[s + 1], out.marginals
    size = unary.shape[1]
    out.log_z[s] = 0.0
    for t in range(begin, end):
        if t > begin:
            for i in range(size):
                work[2, i] = logs[t - 1, i]
            top = _raise(work)
            everything = _sum_of_first(work)
        for j in range(size):
            work[1, j] = unary[t, j]
            if t > begin:
                work[1, j] += _log_steps(
                    work, top, everything, pattern.sources, scores.pair_in,
                    pattern.in_ptr[j], pattern.in_ptr[j + 1],
                )  # fmt: skip
        norm[t] = log_sum(work, 1)
        if norm[t] == -math.inf:
            return t
        for j in range(size):
            logs[t, j] = work[1, j] - norm[t]
    _log_backward(scores, s, pattern, weight[s], norm, work, out)
    return OK


@kernel
def _log_backward(
    scores: SparseScores,
    s: int,
    pattern: SparsePattern,
    weight: float,
    norm: FloatArray,
    work: FloatArray,  # (4, K) its second row: log beta_t
    out: SparseSums,
) -> None:
    """Turn logarithms of forward vectors into marginals, and add up the scales, from behind."""
    begin, end, logs, pair = scores.offsets[s], scores.offsets[s + 1], out.marginals, scores.pair
    size = logs.shape[1]
    partial = 0.0
    for j in range(size):
        work[1, j] = 0.0
    for t in range(end - 1, begin - 1, -1):
        partial += norm[t]
        if t % 128 == 0 or t == begin:  # in runs, as in log_total
            out.log_z[s] += partial
            partial = 0.0
        for j in range(size):  # what no path reaches must not count
            reached = logs[t, j] > -math.inf
            work[2, j] = scores.unary[t, j] + work[1, j] - norm[t] if reached else -math.inf
            logs[t, j] = weight * math.exp(logs[t, j] + work[1, j]) if reached else 0.0
        if t == begin:
            return
        top = _raise(work)
        everything = _sum_of_first(work)
        for i in range(size):
            first, last = pattern.out_ptr[i], pattern.out_ptr[i + 1]
            for e in range(first, last):
                log_probability = logs[t - 1, i] + pair[e] + work[2, pattern.targets[e]]
                if log_probability > NOTHING:
                    out.flow[e] += weight * math.exp(log_probability)
            work[1, i] = _log_steps(work, top, everything, pattern.targets, pair, first, last)
