"""Sums over the segmentations of one sequence by logarithms: slow, and exact for any scores.

Shapes as in :mod:`crfkit.kernels.semimarkov.arrays`.
"""

from __future__ import annotations

import math

from crfkit._types import FloatArray
from crfkit.compiler.jit import kernel
from crfkit.kernels.chain.sum import OK
from crfkit.kernels.semimarkov.arrays import LogSegmentWorkspace, SegmentScores, reached


@kernel
def _log_add(most: float, rest: float, score: float) -> tuple[float, float]:
    """Add ``exp(score)`` to a sum ``exp(most) rest``."""
    if score == -math.inf:
        return most, rest
    if score > most:
        return score, rest * math.exp(most - score) + 1.0
    return most, rest + math.exp(score - most)


@kernel
def _log_of(most: float, rest: float) -> float:
    """Return the logarithm of ``exp(most) rest``."""
    return most + math.log(rest) if most > -math.inf else -math.inf


@kernel
def _forward_log(
    scores: SegmentScores, begin: int, end: int, workspace: LogSegmentWorkspace
) -> None:
    """``alpha_{e+1}(k)``: log of the share of ``k`` in what ends at ``e``, whose sum is `norm`."""
    unary, pair, index, spans = scores.unary, scores.pair, scores.transition_index, scores.ends
    alpha, begins, norm = workspace.alpha, workspace.begins, workspace.norm
    size, lengths = pair.shape[1], scores.n_transitions
    rows = lengths + scores.n_lengths
    stride = 0 if index.shape[0] == 1 else 1
    for t in range(begin, end):
        row, first = t - begin, index[t * stride] * size
        whole, rest = -math.inf, 0.0
        for k in range(size):
            most, sums = (0.0, 1.0) if row == 0 else (-math.inf, 0.0)
            if row > 0:
                for i in range(size):
                    most, sums = _log_add(most, sums, alpha[row, i] + pair[first + i, k])
            begins[row, k] = unary[t, size + k] + _log_of(most, sums)
            run, q = 0.0, spans.ptr[t]
            most, sums = -math.inf, 0.0
            for d in range(1, min(row + 1, scores.n_lengths) + 1):
                score = begins[row - d + 1, k] + run + pair[lengths + d - 1, k]
                if d == 1:
                    score += unary[t, 3 * size + k]
                if q < spans.ptr[t + 1] and spans.length[q] == d:
                    score += pair[rows + spans.row[q], k]
                    q += 1
                most, sums = _log_add(most, sums, score)
                run += unary[t - d + 1, k] - (norm[t - d] if d <= row else 0.0)
            alpha[row + 1, k] = unary[t, 2 * size + k] + _log_of(most, sums)
            whole, rest = _log_add(whole, rest, alpha[row + 1, k])
        norm[t] = _log_of(whole, rest) if whole > -math.inf else 0.0
        for k in range(size):
            alpha[row + 1, k] -= norm[t]


@kernel
def semimarkov_sum_log(
    scores: SegmentScores,
    s: int,
    weight: float,
    workspace: LogSegmentWorkspace,
    out: FloatArray,  # (N, 4 K) out: expected counts
    of_pair: FloatArray,  # (M K + L + R, K) out, added to
    log_z: FloatArray,  # (S,) out
) -> int:
    """Sum one sequence that is not empty; returns `OK`, or the position that no segment leads to.

    What goes on is relative to the sum of what ends: logarithms do not grow with the length.
    """
    unary, pair, index, starts = scores.unary, scores.pair, scores.transition_index, scores.starts
    begin: int = scores.offsets[s]
    end, lengths = scores.offsets[s + 1], scores.n_transitions
    alpha, begins, norm = workspace.alpha, workspace.begins, workspace.norm
    ends, beta, size = workspace.ends, workspace.beta, pair.shape[1]
    stride = 0 if index.shape[0] == 1 else 1
    _forward_log(scores, begin, end, workspace)
    position = reached(alpha, -math.inf, begin, end, size)
    if position < end:
        return position
    log_z[s] = 0.0
    for t in range(begin, end):
        log_z[s] += norm[t]
    for k in range(size):
        beta[0, k] = 0.0
    for t in range(end - 1, begin - 1, -1):
        row, first = t - begin, index[t * stride] * size
        for k in range(size):
            ends[row, k] = unary[t, 2 * size + k] + beta[0, k]
            out[t, 2 * size + k] = weight * math.exp(alpha[row + 1, k] + beta[0, k])
            run, q, share = -norm[t], starts.ptr[t], begins[row, k]
            most, sums = -math.inf, 0.0
            for d in range(1, min(end - t, scores.n_lengths) + 1):
                score = run + pair[lengths + d - 1, k] + ends[row + d - 1, k]
                if d == 1:
                    score += unary[t, 3 * size + k]
                place = -1
                if q < starts.ptr[t + 1] and starts.length[q] == d:
                    place = lengths + scores.n_lengths + starts.row[q]
                    score += pair[place, k]
                    q += 1
                amount = weight * math.exp(share + score) if share > -math.inf else 0.0
                if d == 1:
                    out[t, 3 * size + k] = amount
                of_pair[lengths + d - 1, k] += amount
                if place >= 0:
                    of_pair[place, k] += amount
                most, sums = _log_add(most, sums, score)
                if d < end - t:
                    run += unary[t + d, k] - norm[t + d]
            beta[1, k] = _log_of(most, sums)  # what follows a beginning here
            begun = share + beta[1, k] if share > -math.inf else -math.inf
            out[t, size + k] = weight * math.exp(begun)
        for i in range(size):
            most, sums = -math.inf, 0.0
            for j in range(size):
                score = pair[first + i, j] + unary[t, size + j] + beta[1, j]
                most, sums = _log_add(most, sums, score)
                if row > 0 and alpha[row, i] > -math.inf:
                    of_pair[first + i, j] += weight * math.exp(alpha[row, i] + score)
            beta[0, i] = _log_of(most, sums)
    _inside(out, begin, end, size, weight)
    return OK


@kernel
def _inside(out: FloatArray, begin: int, end: int, size: int, weight: float) -> None:
    """``P(goes on at t) = P(goes on at t - 1) + P(begins at t - 1) - P(ends at t - 1)``."""
    for k in range(size):
        out[begin, k] = 0.0
    for t in range(begin + 1, end):
        for k in range(size):
            inside = out[t - 1, k] + out[t - 1, size + k] - out[t - 1, 2 * size + k]
            out[t, k] = inside if inside * weight > 0.0 else 0.0
