"""The k best paths of second-order chains.

Shapes as in :mod:`crfkit.kernels.second_order.arrays`.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from crfkit._types import CodeArray, FloatArray, IntArray
from crfkit.compiler.dispatch import implements
from crfkit.compiler.exact import exact_sum
from crfkit.compiler.jit import kernel
from crfkit.kernels.k_best import (
    BestPaths,
    PathLists,
    list_paths,
    node_before,
    score_choices,
    write,
)
from crfkit.kernels.second_order.arrays import LiveLabels, SecondOrderScores, group
from crfkit.kernels.second_order.max import all_best_states


class SecondOrderPaths(NamedTuple):
    """One sequence: a node is a state of a token, or what follows the last token."""

    scores: SecondOrderScores
    live: LiveLabels
    s: int
    starts: IntArray  # (R,) where the states of each token start
    best: FloatArray  # their best scores


@implements(score_choices, SecondOrderPaths)
def _score_states(problem: SecondOrderPaths, row: int, column: int, sums: FloatArray) -> int:
    """``best_{t-1}(h, i) + pair(h, i, j)`` for all ``h``; at the end, the states by last labels."""
    scores, live, s, starts, best = problem
    ptr, begin = live.ptr, scores.offsets[s]
    if row == 0:
        sums[0] = 0.0
        return 1
    p = begin + row + s + 1
    first_h, first_i = ptr[p - 2], ptr[p - 1]
    old = starts[row - 1]
    n_h: int = first_i - first_h
    n_i: int = ptr[p] - first_i
    if begin + row == scores.offsets[s + 1]:
        for a in range(n_i):
            for c in range(n_h):
                sums[a * n_h + c] = best[old + c * n_i + a]
        return n_h * n_i
    n_j, m = ptr[p + 1] - ptr[p], group(scores, begin + row)
    a, j = column // n_j, live.label[ptr[p] + column % n_j]
    for c in range(n_h):
        pair = scores.pair[m + live.label[first_h + c], live.label[first_i + a], j]
        sums[c] = exact_sum(best[old + c * n_i + a], pair)
    return n_h


@implements(node_before, SecondOrderPaths)
def _state_before(problem: SecondOrderPaths, row: int, column: int, choice: int) -> tuple[int, int]:
    """Return the token before, and its state: the choice tells the label two before."""
    live, begin = problem.live, problem.scores.offsets[problem.s]
    if row == 0:
        return -1, 0
    p = begin + row + problem.s + 1
    n_i, n_h = live.ptr[p] - live.ptr[p - 1], live.ptr[p - 1] - live.ptr[p - 2]
    if begin + row == problem.scores.offsets[problem.s + 1]:
        return row - 1, (choice % n_h) * n_i + choice // n_h
    return row - 1, choice * n_i + column // (live.ptr[p + 1] - live.ptr[p])


@implements(write, SecondOrderPaths)
def _write_labels(
    problem: SecondOrderPaths, n: int, lists: PathLists, codes: CodeArray, place: int
) -> None:
    """Write the labels of a path."""
    live, begin, end = problem.live, problem.scores.offsets[problem.s], 0
    end = problem.scores.offsets[problem.s + 1]
    for t in range(end - begin):
        first = live.ptr[begin + t + problem.s + 1]
        n_j = live.ptr[begin + t + problem.s + 2] - first
        codes[place + t] = live.label[first + lists.column[n, t] % n_j]


@kernel
def second_order_k_best(
    scores: SecondOrderScores,
    live: LiveLabels,
    most: IntArray,  # (S,) how many paths of each sequence
    starts: IntArray,  # (R,) workspace
    best: FloatArray,  # workspace: the states of any sequence
    lists: PathLists,  # of a row for each token and one more, of as many choices as states
    found: BestPaths,  # out
) -> None:
    """Find the paths of the largest scores; of equal ones, the lowest last labels come first."""
    first, place = 0, 0
    for s in range(most.shape[0]):
        length = scores.offsets[s + 1] - scores.offsets[s]
        all_best_states(scores, live, s, starts, best)
        paths, count, alive = SecondOrderPaths(scores, live, s, starts, best), 0, length == 0
        for state in range(starts[length - 1] if length > 0 else 0, starts[length]):
            alive = alive or best[state] > -math.inf
        if alive:
            count = list_paths(paths, length, length, most[s], lists, first, place, found)
        found.counts[s] = count
        first += count
        place += count * length
