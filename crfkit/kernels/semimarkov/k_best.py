"""The k best segmentations; shapes as in :mod:`crfkit.kernels.semimarkov.arrays`."""

from __future__ import annotations

from typing import NamedTuple

from crfkit._types import CodeArray, FloatArray, IntArray
from crfkit.compiler.dispatch import implements
from crfkit.compiler.exact import exact_sum
from crfkit.compiler.jit import kernel, part
from crfkit.kernels.k_best import (
    NONE,
    BestPaths,
    PathLists,
    list_paths,
    node_before,
    score_choices,
    write,
)
from crfkit.kernels.semimarkov.arrays import SegmentScores, SegmentTables, SegmentViterbi
from crfkit.kernels.semimarkov.max import best_prefixes


class SegmentPaths(NamedTuple):
    """One sequence of ``T`` tokens as a graph.

    In row ``2 t`` are the segments that begin at token ``t``, by their labels, and the choice is
    the label before; in row ``2 t + 1`` are those that end at it, and the choice is their length
    less 1; row ``2 T`` is what follows the last one.
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


@implements(score_choices, SegmentPaths)
def _score_choices(problem: SegmentPaths, row: int, column: int, sums: FloatArray) -> int:
    """Score the labels before a segment that begins, or the lengths of one that ends."""
    scores, search, t = problem.scores, problem.search, row // 2
    if row % 2 == 1:
        return _score_lengths(problem, t, column, sums)
    if t == 0:
        sums[0] = 0.0
        return 1
    size: int = scores.pair.shape[1]
    for i in range(size):
        sums[i] = exact_sum(search.best[t, i], _transition(problem, t, i, column))
    return size


@part
def _score_lengths(problem: SegmentPaths, t: int, label: int, sums: FloatArray) -> int:
    """Score the segments of a label that end at a token, but for their end."""
    scores, begins, size = problem.scores, problem.search.begins, problem.scores.pair.shape[1]
    lengths, ends = scores.n_transitions, scores.ends
    q, high, run = ends.ptr[problem.begin + t], ends.ptr[problem.begin + t + 1], 0.0
    most = min(t + 1, scores.n_lengths)
    for d in range(1, most + 1):
        score = exact_sum(begins[t - d + 1, label], run)
        score = exact_sum(score, scores.pair[lengths + d - 1, label])
        if d == 1:
            score = exact_sum(score, scores.unary[problem.begin + t, 3 * size + label])
        if q < high and ends.length[q] == d:
            own = scores.pair[lengths + scores.n_lengths + ends.row[q], label]
            score = exact_sum(score, own)
            q += 1
        sums[d - 1] = score
        run = exact_sum(run, scores.unary[problem.begin + t - d + 1, label])
    return most


@implements(node_before, SegmentPaths)
def _node_before(problem: SegmentPaths, row: int, column: int, choice: int) -> tuple[int, int]:
    """Return where the segment before ends, or where the segment begins."""
    if row % 2 == 1:
        return row - 1 - 2 * choice, column
    return row - 1, choice


@implements(write, SegmentPaths)
def _write_segments(
    problem: SegmentPaths, n: int, lists: PathLists, codes: CodeArray, place: int
) -> None:
    """Write the codes of the segments of a path."""
    size = problem.scores.pair.shape[1]
    for last in range(problem.length):
        label = lists.column[n, 2 * last + 1]
        if label != NONE:
            first = last - lists.choice[n, 2 * last + 1]
            codes[place + first] = size + label
            for t in range(first + 1, last + 1):
                codes[place + t] = label


@kernel
def semimarkov_k_best(
    scores: SegmentScores,
    tables: SegmentTables,  # the same scores
    most: IntArray,  # (S,) how many segmentations of each sequence
    search: SegmentViterbi,  # workspace; of the codes there are none
    lists: PathLists,  # of 2 T + 1 rows for the longest sequence, of K and L choices
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
