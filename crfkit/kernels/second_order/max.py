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

# Steps from more labels read tables in the order that suits them.
FEW = 8


class BestRooms(NamedTuple):
    """Rooms of the recurrence, and the tables in another order."""

    starts: IntArray  # (R,) where the states of each token of a sequence start, and the end
    best: FloatArray  # the best scores of the states of any sequence
    row: FloatArray  # (K,) those of the states of one token that have the same last label
    # (K, M (K + 1), K), read-only: ``pair[h, i, j]`` at ``[j, h, i]``; (0, 0, 0) if it is not known
    by_last: FloatArray


@part
def best_states(scores: SecondOrderScores, live: LiveLabels, at: Step, rooms: BestRooms) -> None:
    """``best_t(i, j) = unary_t(j) + max_h (best_{t-1}(h, i) + pair(h, i, j))``."""
    if at.n_j < scores.unary.shape[1] and _by_last(at, rooms):
        for b in range(at.n_j):
            own = scores.unary[at.t, live.label[at.first_j + b]]
            _best_with_last(live, at, b, own, rooms)
    else:
        _best_by_rows(scores, live, at, rooms.best)


@part
def _by_last(at: Step, rooms: BestRooms) -> bool:
    """Whether a step from many labels reads the tables by their last labels."""
    return max(at.n_h, at.n_i) > FEW and rooms.by_last.shape[0] > 0


@part
def _best_by_rows(scores: SecondOrderScores, live: LiveLabels, at: Step, best: FloatArray) -> None:
    """Write the best scores of the states of a token, in the order of `pair`."""
    pair, label, unary = scores.pair, live.label, scores.unary
    whole = at.n_j == pair.shape[2]  # all labels live: in the order of the tables
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
        row = at.new + a * at.n_j
        if whole:
            for b in range(at.n_j):
                best[row + b] += unary[at.t, b]
        else:
            for b in range(at.n_j):
                best[row + b] += unary[at.t, label[at.first_j + b]]


@part
def _best_with_last(live: LiveLabels, at: Step, b: int, own: float, rooms: BestRooms) -> None:
    """Write those of one label and its own score; its tables stand together in `by_last`."""
    label, best, row, n_i, n_j = live.label, rooms.best, rooms.row, at.n_i, at.n_j
    j = label[at.first_j + b]
    if n_i < row.shape[0]:
        for a in range(n_i):
            top = _best_of_many(live, at, a, j, rooms)
            best[at.new + a * n_j + b] = top + own
        return
    for a in range(n_i):
        row[a] = -math.inf
    for c in range(at.n_h):
        h, old = at.group + label[at.first_h + c], at.old + c * n_i
        for a in range(n_i):
            score = best[old + a] + rooms.by_last[j, h, a]
            row[a] = score if score > row[a] else row[a]
    for a in range(n_i):
        best[at.new + a * n_j + b] = row[a] + own


@part
def _best_of_many(live: LiveLabels, at: Step, a: int, j: int, rooms: BestRooms) -> float:
    """Return the largest score of the labels two before; two at a time, which need not wait."""
    i, top, other = live.label[at.first_i + a], -math.inf, -math.inf
    for c in range(0, at.n_h - 1, 2):
        old, p = at.old + c * at.n_i + a, at.first_h + c
        score = rooms.best[old] + rooms.by_last[j, at.group + live.label[p], i]
        top = score if score > top else top
        score = rooms.best[old + at.n_i] + rooms.by_last[j, at.group + live.label[p + 1], i]
        other = score if score > other else other
    if at.n_h % 2:
        c = at.n_h - 1
        h = at.group + live.label[at.first_h + c]
        score = rooms.best[at.old + c * at.n_i + a] + rooms.by_last[j, h, i]
        top = score if score > top else top
    return other if other > top else top


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
            best_states(scores, live, at, rooms)


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
                 rooms: BestRooms) -> int:  # fmt: skip
    """Return the number of the lowest label two before that the best path to a state has."""
    top, came, turned = -math.inf, 0, _by_last(at, rooms)
    i, j = live.label[at.first_i + a], live.label[at.first_j + b]
    for c in range(at.n_h):
        score, h = rooms.best[at.old + c * at.n_i + a], at.group + live.label[at.first_h + c]
        score += rooms.by_last[j, h, i] if turned else scores.pair[h, i, j]
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
            a, b = _best_before(scores, live, at, a, b, rooms), a
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
