"""The k best segmentations; shapes as in :mod:`crfkit.kernels.semimarkov.arrays`."""

from __future__ import annotations

import math
from typing import NamedTuple

from crfkit._types import CodeArray, IntArray
from crfkit.compiler.dispatch import implements
from crfkit.compiler.exact import exact_sum
from crfkit.compiler.jit import kernel, part
from crfkit.kernels.k_best import (
    BestPaths,
    PathLists,
    extended,
    list_paths,
    next_choice,
    node_before,
    write,
)
from crfkit.kernels.semimarkov.arrays import SegmentScores, SegmentTables, SegmentViterbi
from crfkit.kernels.semimarkov.max import _find, best_prefixes


class SegmentPaths(NamedTuple):
    """One sequence of ``T`` tokens as a graph.

    In row ``2 t`` are the segments that begin at token ``t``, by their labels, and the choice is
    the label before; in row ``2 t - 1`` are those that end before it, and the choice is their
    length; row ``2 T`` is what follows the last one.
    """

    scores: SegmentScores
    search: SegmentViterbi  # the best scores of what begins and ends
    begin: int
    length: int


@part
def _transition(problem: SegmentPaths, t: int, before: int, label: int) -> float:
    """Return the score of a transition into a token; 0 behind the last one."""
    scores = problem.scores
    if t == problem.length:
        return 0.0
    table = scores.transition_index[
        problem.begin + t if scores.transition_index.shape[0] > 1 else 0
    ]
    transition: float = scores.pair[table * scores.pair.shape[1] + before, label]
    return transition


@part
def _rest(
    problem: SegmentPaths, t: int, label: int, length: int, q: int, run: float, score: float
) -> float:
    """Add the scores of a segment that ends at `t` to that of its beginning, but for its end.

    `run` is what its tokens after the first one add, `q` the place of its row, -1 if it has none.
    """
    scores, size = problem.scores, problem.scores.pair.shape[1]
    lengths = scores.n_transitions
    score = exact_sum(exact_sum(score, run), scores.pair[lengths + length - 1, label])
    if length == 1:
        score = exact_sum(score, scores.unary[problem.begin + t, 3 * size + label])
    if q >= 0:
        row = lengths + scores.n_lengths + scores.ends.row[q]
        score = exact_sum(score, scores.pair[row, label])
    return score


@implements(next_choice, SegmentPaths)
def _next_choice(
    problem: SegmentPaths, row: int, column: int, below: float, after: int
) -> tuple[float, int]:
    """Return the best label before those that begin, or the best length of those that end."""
    scores, search = problem.scores, problem.search
    if row == 0:
        return (0.0, 0) if after < 0 else (-math.inf, 0)
    top, choice = -math.inf, 0
    if row % 2 == 0:
        before = row // 2
        for i in range(scores.pair.shape[1]):
            score = exact_sum(search.best[before, i], _transition(problem, before, i, column))
            if score > top and (score < below or (score == below and i > after)):
                top, choice = score, i
        return top, choice
    t, run = row // 2, 0.0
    q, high = scores.ends.ptr[problem.begin + t], scores.ends.ptr[problem.begin + t + 1]
    for d in range(1, min(t + 1, scores.n_lengths) + 1):
        own = q < high and scores.ends.length[q] == d
        score = search.begins[t - d + 1, column]
        score = _rest(problem, t, column, d, q if own else -1, run, score)
        if own:
            q += 1
        if score > top and (score < below or (score == below and d > after)):
            top, choice = score, d
        run = exact_sum(run, scores.unary[problem.begin + t - d + 1, column])
    return top, choice


@implements(node_before, SegmentPaths)
def _node_before(problem: SegmentPaths, row: int, column: int, choice: int) -> tuple[int, int]:
    """Return where the segment before ends, or where the segment begins."""
    if row % 2 == 1:
        return row + 1 - 2 * choice, column
    return row - 1, choice


@implements(extended, SegmentPaths)
def _extended(problem: SegmentPaths, row: int, column: int, choice: int, score: float) -> float:
    """Add what the beginning of a segment, or the end of the one before, and the choice add."""
    scores, size, begin = problem.scores, problem.scores.pair.shape[1], problem.begin
    t, run = row // 2, 0.0
    if row % 2 == 0:
        score = exact_sum(score, scores.unary[begin + t - 1, 2 * size + choice])
        return exact_sum(score, _transition(problem, t, choice, column))
    for u in range(t, t - choice + 1, -1):
        run = exact_sum(run, scores.unary[begin + u, column])
    score = exact_sum(score, scores.unary[begin + t - choice + 1, size + column])
    ends = scores.ends
    q = _find(ends.length, ends.ptr[begin + t], ends.ptr[begin + t + 1], choice)
    return _rest(problem, t, column, choice, q, run, score)


@implements(write, SegmentPaths)
def _write(
    problem: SegmentPaths, row: int, column: int, choice: int, codes: CodeArray, place: int
) -> None:
    """Write the codes of a segment that ends."""
    if row % 2 == 1:
        stop = row // 2 + 1
        for t in range(stop - choice, stop):
            codes[place + t] = column
        codes[place + stop - choice] = problem.scores.pair.shape[1] + column


@kernel
def semimarkov_k_best(
    scores: SegmentScores,
    tables: SegmentTables,  # the same scores
    most: IntArray,  # (S,) how many segmentations of each sequence
    search: SegmentViterbi,  # workspace; of the codes there are none
    lists: PathLists,  # (2 T + 1, K) for the longest sequence; entries as of `chain_k_best`
    found: BestPaths,  # out
) -> None:
    """Find the segmentations of the largest scores.

    Of equal ones, those of the lowest last label come first, then those of the shortest last
    segment, and so on.
    """
    first, place = 0, 0
    for s in range(found.counts.shape[0]):
        begin, end = scores.offsets[s], scores.offsets[s + 1]
        length = end - begin
        if length > 0:
            best_prefixes(tables, scores.ends, scores.transition_index, begin, end, 0, search)
        paths = SegmentPaths(scores, search, begin, length)
        count = list_paths(paths, 2 * length, length, most[s], lists, first, place, found)
        found.counts[s] = count
        first += count
        place += count * length
