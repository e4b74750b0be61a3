"""The k best paths to a node of a graph without cycles, found one after the other.

The best path to a node is one of some choices: each leads from a node before, and adds a score.
The next best path to a node is either the next best choice, or goes on from the next best path to
the node before of a choice that was made. So a further path asks for one more path to each node
back to where it leaves the one before, and for nothing else (Jimenez and Marzal 1999, "Computing
the K shortest paths"; algorithm 3 of Huang and Chiang 2005). Of equal scores the lower choice comes
first, then the order of the paths to the node before.

A structure gives bodies to the parts that are declared here, for its class of problems: the best
scores of all nodes, and what choices add. A node has a row and a column; the last one, to which all
paths of a sequence lead, is in column 0. Sums are rounded as they are written (`exact_sum`): what
is computed again is the same.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from crfkit._types import CodeArray, FloatArray, IntArray
from crfkit.compiler.dispatch import dispatched
from crfkit.compiler.jit import part

# What stands for an entry: it is not known yet, or there is none.
UNKNOWN, NONE = -1, -2
# Entries that a further path needs at most for each node on it: two candidates, and the best path.
ENTRIES = 3


class PathLists(NamedTuple):
    """Paths to nodes, as far as they are known, and candidates for the next: linked entries."""

    first: CodeArray  # (R, W) of nodes: the best path, `UNKNOWN` if nobody has asked for it
    last: CodeArray  # (R, W) the last that is known
    candidates: CodeArray  # (R, W) the first candidate
    newest: CodeArray  # (R, W) the last choice that became a candidate
    score: FloatArray  # (E,) of entries: the score, without what the node itself adds
    choice: CodeArray  # (E,)
    before: CodeArray  # (E,) the path to the node before; `UNKNOWN` stands for the best one
    after: CodeArray  # (E,) of a path, the next to the same node; of a candidate, another
    asked: CodeArray  # (R, 2) nodes that are asked for their next path
    used: IntArray  # (1,) how many entries there are


class BestPaths(NamedTuple):
    """The best labelings of all sequences, one after the other."""

    codes: CodeArray  # (sum of limit_s T_s,)
    scores: FloatArray  # (sum of limit_s,)
    counts: IntArray  # (S,) how many labelings were found


@dispatched
def next_choice(problem: Any, row: int, column: int, below: float, after: int) -> tuple[float, int]:
    """Return the best choice of those that come after another, and the score of its best path.

    After all that score more than `below`, or as much and are no higher than `after`. The score,
    which does not hold what the node itself adds, is ``-inf`` if there is none.
    """
    raise NotImplementedError


@dispatched
def node_before(problem: Any, row: int, column: int, choice: int) -> tuple[int, int]:
    """Return row and column of the node that a choice leads from; row -1 where a path starts."""
    raise NotImplementedError


@dispatched
def extended(problem: Any, row: int, column: int, choice: int, score: float) -> float:
    """Return the score of a path to the node before, and of a choice that goes on from there.

    Both without what the last node adds, summed as for `next_choice`.
    """
    raise NotImplementedError


@dispatched
def write(problem: Any, row: int, column: int, choice: int, codes: CodeArray, place: int) -> None:
    """Write the codes that a node and a choice stand for; those of a path start at `place`."""


@part
def _add_candidate(row: int, column: int, score: float, choice: int, before: int,
                   lists: PathLists) -> int:  # fmt: skip
    """Add a candidate to those of a node; returns its entry."""
    entry: int = lists.used[0]
    lists.used[0] += 1
    lists.score[entry], lists.choice[entry] = score, choice
    lists.before[entry], lists.after[entry] = before, lists.candidates[row, column]
    lists.candidates[row, column] = entry
    return entry


@part
def _take_best(row: int, column: int, lists: PathLists) -> int:
    """Take the best candidate of a node: of equal ones, that of the lowest choice."""
    best, linked, previous = NONE, NONE, NONE
    entry: int = lists.candidates[row, column]
    while entry != NONE:
        better = best == NONE or lists.score[entry] > lists.score[best]
        if not better and lists.score[entry] == lists.score[best]:
            better = lists.choice[entry] < lists.choice[best]
        if better:
            best, linked = entry, previous
        previous, entry = entry, lists.after[entry]
    if best != NONE:
        if linked == NONE:
            lists.candidates[row, column] = lists.after[best]
        else:
            lists.after[linked] = lists.after[best]
        lists.after[best] = UNKNOWN
    return best


@part
def _add_path(problem: Any, row: int, column: int, lists: PathLists) -> int:
    """Find the next best path to a node, given that to the node before the last one."""
    below, after, last = math.inf, -1, NONE
    if lists.first[row, column] == UNKNOWN:
        lists.candidates[row, column] = NONE
    else:
        last = lists.last[row, column]
        below, after = lists.score[last], lists.choice[last]
        if lists.before[last] >= 0 and lists.after[lists.before[last]] >= 0:
            following = lists.after[lists.before[last]]
            score = extended(problem, row, column, after, lists.score[following])
            _add_candidate(row, column, score, after, following, lists)
    if last == NONE or last == lists.newest[row, column]:
        score, choice = next_choice(problem, row, column, below, after)
        if score > -math.inf:
            newest = _add_candidate(row, column, score, choice, UNKNOWN, lists)
            lists.newest[row, column] = newest
    found = _take_best(row, column, lists)
    if last == NONE:
        lists.first[row, column] = found
    else:
        lists.after[last] = found
    if found != NONE:
        lists.last[row, column] = found
    return found


@part
def _next_path(problem: Any, final: int, lists: PathLists) -> int:
    """Find the next best path to the last node; returns its entry, or `NONE`.

    Nodes are asked from the last one back to the first of which the next path is known.
    """
    row, column, depth = final, 0, 0
    while row >= 0:
        lists.asked[depth, 0], lists.asked[depth, 1] = row, column
        depth += 1
        if lists.first[row, column] == UNKNOWN:
            break
        last = lists.last[row, column]
        if lists.before[last] < 0 or lists.after[lists.before[last]] != UNKNOWN:
            break
        row, column = node_before(problem, row, column, lists.choice[last])
    found = NONE
    for d in range(depth - 1, -1, -1):
        found = _add_path(problem, lists.asked[d, 0], lists.asked[d, 1], lists)
    return found


@part
def _write_path(
    problem: Any, final: int, entry: int, lists: PathLists, codes: CodeArray, place: int
) -> None:
    """Write a path from its end, and note the paths that it goes on from."""
    row, column = final, 0
    while True:
        choice = lists.choice[entry]
        write(problem, row, column, choice, codes, place)
        row, column = node_before(problem, row, column, choice)
        if row < 0:
            return
        if lists.before[entry] == UNKNOWN:
            if lists.first[row, column] == UNKNOWN:
                _add_path(problem, row, column, lists)
            lists.before[entry] = lists.first[row, column]
        entry = lists.before[entry]


@part
def list_paths(
    problem: Any,
    final: int,  # the row of the last node
    length: int,  # how many codes a labeling has
    most: int,  # how many paths are to be found
    lists: PathLists,
    first: int,  # where its scores start
    place: int,  # where its codes start
    found: BestPaths,
) -> int:
    """List the best paths of a sequence; returns how many there are."""
    lists.used[0] = 0
    for r in range(final + 1):
        for c in range(lists.first.shape[1]):
            lists.first[r, c] = UNKNOWN
    for n in range(most):
        entry = _next_path(problem, final, lists)
        if entry == NONE:
            return n
        found.scores[first + n] = lists.score[entry]
        _write_path(problem, final, entry, lists, found.codes, place + n * length)
    return most
