"""The k best paths of second-order chains.

Shapes as in :mod:`crfkit.kernels.second_order.arrays`.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from crfkit._types import CodeArray, FloatArray, IntArray
from crfkit.compiler.dispatch import implements
from crfkit.compiler.exact import exact_sum
from crfkit.compiler.jit import kernel, part
from crfkit.kernels.k_best import (
    BestPaths,
    PathLists,
    list_paths,
    node_before,
    score_choices,
    write,
)
from crfkit.kernels.second_order.arrays import LiveLabels, SecondOrderScores, Step, step_into
from crfkit.kernels.second_order.max import BestRooms, all_best_states


class SecondOrderPaths(NamedTuple):
    """One sequence: a node is a state of a token, or what follows the last token."""

    scores: SecondOrderScores
    live: LiveLabels
    s: int
    starts: IntArray  # (R,) where the states of each token start
    best: FloatArray  # their best scores


@part
def _is_end(problem: SecondOrderPaths, row: int) -> bool:
    """Whether a row is that of the last node, after all tokens."""
    offsets, s = problem.scores.offsets, problem.s
    ended: bool = offsets[s] + row == offsets[s + 1]
    return ended


@part
def _step(problem: SecondOrderPaths, row: int) -> Step:
    """Return the step to the token of a row."""
    begin = problem.scores.offsets[problem.s]
    return step_into(problem.scores, problem.live, problem.s, begin + row, problem.starts)


@implements(score_choices, SecondOrderPaths)
def _score_states(problem: SecondOrderPaths, row: int, column: int, sums: FloatArray) -> int:
    """``best_{t-1}(h, i) + pair(h, i, j)`` for all ``h``; at the end, the states by last labels."""
    best, label = problem.best, problem.live.label
    if row == 0:
        sums[0] = 0.0
        return 1
    if _is_end(problem, row):
        last = _step(problem, row - 1)
        for b in range(last.n_j):
            for a in range(last.n_i):
                sums[b * last.n_i + a] = best[last.new + a * last.n_j + b]
        return last.n_i * last.n_j
    at = _step(problem, row)
    a, j = column // at.n_j, label[at.first_j + column % at.n_j]
    for c in range(at.n_h):
        pair = problem.scores.pair[at.group + label[at.first_h + c], label[at.first_i + a], j]
        sums[c] = exact_sum(best[at.old + c * at.n_i + a], pair)
    return at.n_h


@implements(node_before, SecondOrderPaths)
def _state_before(problem: SecondOrderPaths, row: int, column: int, choice: int) -> tuple[int, int]:
    """Return the token before, and its state: the choice tells the label two before."""
    if row == 0:
        return -1, 0
    if _is_end(problem, row):
        last = _step(problem, row - 1)
        return row - 1, (choice % last.n_i) * last.n_j + choice // last.n_i
    at = _step(problem, row)
    return row - 1, choice * at.n_i + column // at.n_j


@implements(write, SecondOrderPaths)
def _write_labels(
    problem: SecondOrderPaths, n: int, lists: PathLists, codes: CodeArray, place: int
) -> None:
    """Write the labels of a path."""
    t = 0
    while not _is_end(problem, t):
        at = _step(problem, t)
        codes[place + t] = problem.live.label[at.first_j + lists.column[n, t] % at.n_j]
        t += 1


@kernel
def second_order_k_best(
    scores: SecondOrderScores,
    live: LiveLabels,
    most: IntArray,  # (S,) how many paths of each sequence
    rooms: BestRooms,
    lists: PathLists,  # of a row for each token and one more, of as many choices as states
    found: BestPaths,  # out
) -> None:
    """Find the paths of the largest scores; of equal ones, the lowest last labels come first."""
    first, place, starts, best = 0, 0, rooms.starts, rooms.best
    for s in range(most.shape[0]):
        length = scores.offsets[s + 1] - scores.offsets[s]
        all_best_states(scores, live, s, rooms)
        paths, count, alive = SecondOrderPaths(scores, live, s, starts, best), 0, length == 0
        if length > 0:  # else no state was written
            for state in range(starts[length - 1], starts[length]):
                alive = alive or best[state] > -math.inf
        if alive:
            count = list_paths(paths, length, length, most[s], lists, first, place, found)
        found.counts[s] = count
        first += count
        place += count * length
