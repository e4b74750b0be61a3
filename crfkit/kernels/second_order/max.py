"""Best paths of second-order chains.

Shapes as in :mod:`crfkit.kernels.second_order.arrays`.
"""

from __future__ import annotations

import math

from crfkit._types import CodeArray, FloatArray, IntArray
from crfkit.compiler.jit import kernel, part
from crfkit.kernels.chain.sum import OK
from crfkit.kernels.second_order.arrays import LiveLabels, SecondOrderScores, Step, group, n_states


@part
def best_states(scores: SecondOrderScores, live: LiveLabels, at: Step, best: FloatArray) -> None:
    """``best_t(i, j) = unary_t(j) + max_h (best_{t-1}(h, i) + pair(h, i, j))``."""
    (t, p, old, new), unary, pair = at, scores.unary, scores.pair
    label, m = live.label, group(scores, t)
    first_h, first_i, first_j = live.ptr[p - 2], live.ptr[p - 1], live.ptr[p]
    n_i, n_j = first_j - first_i, live.ptr[p + 1] - first_j
    whole = n_j == unary.shape[1]  # all labels live: in the order of the tables
    for state in range(new, new + n_i * n_j):
        best[state] = -math.inf
    for c in range(first_i - first_h):  # in the order of the tables
        h = m + label[first_h + c]
        for a in range(n_i):
            i, row, known = label[first_i + a], new + a * n_j, best[old + c * n_i + a]
            if known == -math.inf:
                continue
            if whole:
                for b in range(n_j):
                    score = known + pair[h, i, b]
                    best[row + b] = score if score > best[row + b] else best[row + b]
            else:
                for b in range(n_j):
                    score = known + pair[h, i, label[first_j + b]]
                    best[row + b] = score if score > best[row + b] else best[row + b]
    for a in range(n_i):
        for b in range(n_j):
            best[new + a * n_j + b] += unary[t, label[first_j + b]]


@part
def all_best_states(
    scores: SecondOrderScores,
    live: LiveLabels,
    s: int,  # a sequence
    starts: IntArray,  # (R,) out: where the states of each of its tokens start, and the end
    best: FloatArray,  # out
) -> None:
    """Write the best scores of all prefixes of a sequence, by their last two labels."""
    begin, end = scores.offsets[s], scores.offsets[s + 1]
    starts[0] = 0
    for t in range(begin, end):
        p = t + s + 1
        starts[t - begin + 1] = starts[t - begin] + n_states(live, p)
        if t == begin:
            for b in range(starts[1]):
                best[b] = scores.unary[t, live.label[live.ptr[p] + b]]
        else:
            at = Step(t, p, starts[t - begin - 1], starts[t - begin])
            best_states(scores, live, at, best)


@kernel
def _dead_end(starts: IntArray, length: int, best: FloatArray) -> int:
    """Return the first token of a sequence at which no path is left."""
    for t in range(length):
        alive = False
        for state in range(starts[t], starts[t + 1]):
            if best[state] > -math.inf:
                alive = True
        if not alive:
            return t
    return OK


@part
def _best_end(live: LiveLabels, p: int, start: int, best: FloatArray) -> tuple[int, int, float]:
    """Return the best state of the token at a place, as numbers of live labels, and its score.

    Of equal ones, that of the lowest label, then of the lowest label before.
    """
    first_i, first_j = live.ptr[p - 1], live.ptr[p]
    n_i, n_j = first_j - first_i, live.ptr[p + 1] - first_j
    top, last, before = -math.inf, 0, 0
    for b in range(n_j):
        for a in range(n_i):
            score = best[start + a * n_j + b]
            if score > top:
                top, before, last = score, a, b
    return before, last, top


@part
def _trace(
    scores: SecondOrderScores,
    live: LiveLabels,
    s: int,
    starts: IntArray,
    best: FloatArray,
    labels: CodeArray,  # (N,) out
) -> tuple[int, float]:
    """Follow the best path of a sequence from its end; returns its status and score."""
    ptr, label, begin, end = live.ptr, live.label, scores.offsets[s], scores.offsets[s + 1]
    a, b, value = _best_end(live, end + s, starts[end - 1 - begin], best)
    if value == -math.inf:
        return begin + _dead_end(starts, end - begin, best), value
    for t in range(end - 1, begin - 1, -1):
        p = t + s + 1
        first_h, first_i, first_j = ptr[p - 2 if t > begin else 0], ptr[p - 1], ptr[p]
        labels[t] = label[first_j + b]
        if t == begin:
            break
        i, m, n_i = label[first_i + a], group(scores, t), first_j - first_i
        top, came = -math.inf, 0
        for c in range(first_i - first_h):
            score = best[starts[t - begin - 1] + c * n_i + a]
            score += scores.pair[m + label[first_h + c], i, labels[t]]
            if score > top:
                top, came = score, c
        a, b = came, a
    return OK, value


@kernel
def second_order_max(
    scores: SecondOrderScores,
    live: LiveLabels,
    starts: IntArray,  # (R,) workspace: one more than the longest sequence has tokens
    best: FloatArray,  # workspace: the states of any sequence
    labels: CodeArray,  # (N,) out
    value: FloatArray,  # (S,) out
    status: IntArray,  # (S,) out
) -> None:
    """Find the path of the largest score (Viterbi's algorithm over pairs of labels: He 1988).

    Of equal ones, that of the lowest last label, then of the lowest one before, and so on. The way
    back finds the label two before again, which is cheaper than to store it for all states.
    """
    for s in range(value.shape[0]):
        value[s], status[s] = 0.0, OK
        if scores.offsets[s] < scores.offsets[s + 1]:
            all_best_states(scores, live, s, starts, best)
            status[s], value[s] = _trace(scores, live, s, starts, best, labels)
