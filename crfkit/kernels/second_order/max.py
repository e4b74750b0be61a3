"""Best paths of second-order chains.

Shapes as in :mod:`crfkit.kernels.second_order.arrays`.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from crfkit._types import CodeArray, FloatArray, IntArray
from crfkit.compiler.jit import kernel, part
from crfkit.kernels.chain.sum import OK
from crfkit.kernels.second_order.arrays import LiveLabels, SecondOrderScores, Step, step_into


class BestRooms(NamedTuple):
    """Rooms of the recurrence."""

    starts: IntArray  # (R,) where the states of each token of a sequence start, and the end
    best: FloatArray  # the best scores of the states of any sequence


@part
def best_states(scores: SecondOrderScores, live: LiveLabels, at: Step, best: FloatArray) -> None:
    """``best_t(i, j) = unary_t(j) + max_h (best_{t-1}(h, i) + pair(h, i, j))``."""
    unary, pair, label = scores.unary, scores.pair, live.label
    whole = at.n_j == unary.shape[1]  # all labels live: in the order of the tables
    for state in range(at.new, at.new + at.n_i * at.n_j):
        best[state] = -math.inf
    for c in range(at.n_h):  # in the order of the tables, which may be large
        h = at.group + label[at.first_h + c]
        for a in range(at.n_i):
            i, row = label[at.first_i + a], at.new + a * at.n_j
            known = best[at.old + c * at.n_i + a]
            if known == -math.inf:
                continue
            if whole:
                for b in range(at.n_j):
                    score = known + pair[h, i, b]
                    best[row + b] = score if score > best[row + b] else best[row + b]
            else:
                for b in range(at.n_j):
                    score = known + pair[h, i, label[at.first_j + b]]
                    best[row + b] = score if score > best[row + b] else best[row + b]
    for a in range(at.n_i):
        for b in range(at.n_j):
            best[at.new + a * at.n_j + b] += unary[at.t, label[at.first_j + b]]


@part
def all_best_states(
    scores: SecondOrderScores,
    live: LiveLabels,
    s: int,  # a sequence
    rooms: BestRooms,
) -> None:
    """Write the best scores of all prefixes of a sequence, by their last two labels."""
    begin, end = scores.offsets[s], scores.offsets[s + 1]
    for t in range(begin, end):
        at = step_into(scores, live, s, t, rooms.starts)
        if t == begin:
            for b in range(at.n_j):
                rooms.best[b] = scores.unary[t, live.label[at.first_j + b]]
        else:
            best_states(scores, live, at, rooms.best)


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
def _best_end(at: Step, best: FloatArray) -> tuple[int, int, float]:
    """Return the best state of the last token, as numbers of live labels, and its score.

    Of equal ones, that of the lowest label, then of the lowest label before.
    """
    top, last, before = -math.inf, 0, 0
    for b in range(at.n_j):
        for a in range(at.n_i):
            score = best[at.new + a * at.n_j + b]
            if score > top:
                top, before, last = score, a, b
    return before, last, top


@part
def _best_before(scores: SecondOrderScores, live: LiveLabels, at: Step, a: int, b: int,
                 best: FloatArray) -> int:  # fmt: skip
    """Return the number of the lowest label two before that the best path to a state has."""
    top, came = -math.inf, 0
    i, j = live.label[at.first_i + a], live.label[at.first_j + b]
    for c in range(at.n_h):
        score = best[at.old + c * at.n_i + a]
        score += scores.pair[at.group + live.label[at.first_h + c], i, j]
        if score > top:
            top, came = score, c
    return came


@part
def _trace(
    scores: SecondOrderScores, live: LiveLabels, s: int, rooms: BestRooms, labels: CodeArray
) -> tuple[int, float]:
    """Follow the best path of a sequence from its end; returns its status and score."""
    begin, end, best, a, b = scores.offsets[s], scores.offsets[s + 1], rooms.best, 0, 0
    value = 0.0
    for t in range(end - 1, begin - 1, -1):
        at = step_into(scores, live, s, t, rooms.starts)
        if t == end - 1:
            a, b, value = _best_end(at, best)
            if value == -math.inf:
                return begin + _dead_end(rooms.starts, end - begin, best), value
        labels[t] = live.label[at.first_j + b]
        if t > begin:
            a, b = _best_before(scores, live, at, a, b, best), a
    return OK, value


@kernel
def second_order_max(
    scores: SecondOrderScores,
    live: LiveLabels,
    rooms: BestRooms,
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
            all_best_states(scores, live, s, rooms)
            status[s], value[s] = _trace(scores, live, s, rooms, labels)
