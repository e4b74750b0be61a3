"""The k best paths to the last node of a graph without cycles, found one after the other.

The best path to a node goes by one of some choices, each of which leads from a node before. Every
other path is like one that is listed before it, its parent, from the end back to some node; there
it makes the next best choice, and then goes on as the best path to the node before does. How much a
choice is worse than the one before it is all that the path loses, as the best scores of all nodes
are known: so the next path is found among the least losses of the listed ones (Lawler 1972; the
tree-trellis search of Soong and Huang 1991). The choices of a node are compared once: a path copies
what others that go by the same node have found from there on.

Of equal scores, that path comes first whose choice is lower at the last node where they differ.

A structure gives bodies to the parts that are declared here, for its class of problems. A node has
a row, less than those of nodes that follow it, and a column; the last node is in column 0. Sums are
rounded as they are written (`exact_sum`): what is computed again is the same.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from crfkit._types import CodeArray, FloatArray, IntArray
from crfkit.compiler.dispatch import dispatched
from crfkit.compiler.jit import part
from crfkit.compiler.simd import WIDTH, fill, larger, load, store_at, subtract

# Where nothing is.
NONE = -1


class PathLists(NamedTuple):
    """The paths of one sequence that are listed, and what others would lose against them."""

    column: CodeArray  # (n, R) of the node of each row, `NONE` where a path has none
    choice: CodeArray  # (n, R) what it chooses there
    other: CodeArray  # (n, R) the next best choice
    loss: FloatArray  # (n, R) how much less that one scores
    open: FloatArray  # (n, R) the same where no path has made that choice, else inf; R / 8 vectors
    top: CodeArray  # (n,) the row from which on a path is as its parent, where it differs
    score: FloatArray  # (n,)
    next_row: CodeArray  # (n,) where the best of those that would differ from it does
    next_score: FloatArray  # (n,) and its score
    heap: CodeArray  # (n,) paths, by these scores
    owner: CodeArray  # (R, W) of nodes: a path that goes on from there by the best choices
    sums: FloatArray  # (C,) workspace: scores of choices, with room for whole vectors
    lanes: FloatArray  # (8,) workspace


class BestPaths(NamedTuple):
    """The best labelings of all sequences, one after the other."""

    codes: CodeArray  # (sum of limit_s T_s,)
    scores: FloatArray  # (sum of limit_s,)
    counts: IntArray  # (S,) how many labelings were found


@dispatched
def score_choices(problem: Any, row: int, column: int, sums: FloatArray) -> int:
    """Write the scores of the best paths to a node by each choice; returns how many these are.

    They do not hold what the node itself adds. More may be written, up to whole vectors.
    """
    raise NotImplementedError


@dispatched
def node_before(problem: Any, row: int, column: int, choice: int) -> tuple[int, int]:
    """Return row and column of the node that a choice leads from; row -1 where a path starts."""
    raise NotImplementedError


@dispatched
def write(problem: Any, n: int, lists: PathLists, codes: CodeArray, place: int) -> None:
    """Write the codes of a path, from `place` on."""


@part
def _largest(vector: FloatArray, lists: PathLists) -> float:
    """Return the largest lane, which is a number: sooner than `largest` does."""
    s = lists.lanes
    store_at(vector, s, 0)
    a, b = s[0] if s[0] > s[1] else s[1], s[2] if s[2] > s[3] else s[3]
    c, d = s[4] if s[4] > s[5] else s[5], s[6] if s[6] > s[7] else s[7]
    a, c = a if a > b else b, c if c > d else d
    top: float = a if a > c else c
    return top


@part
def _best_choices(count: int, lists: PathLists) -> tuple[float, int, float, int]:
    """Return the largest score of a choice and the first one that has it, and the next best."""
    top, choice, second, other = lists.sums[0], 0, -math.inf, 0
    for i in range(1, count):
        score = lists.sums[i]
        if score > second:
            if score > top:
                second, other = top, choice
                top, choice = score, i
            else:
                second, other = score, i
    return top, choice, second, other


@part
def _choice_after(count: int, own: float, choice: int, lists: PathLists) -> tuple[float, int]:
    """Return the best of the choices that come after one with the score `own`, and its score."""
    top, other = -math.inf, 0
    for i in range(count):
        score = lists.sums[i]
        if score > top and (score < own or (score == own and i > choice)):
            top, other = score, i
    return top, other


@part
def _copy(numbers: CodeArray, source: int, target: int, begin: int, end: int) -> None:
    """Copy some columns of a row to another one."""
    for r in range(begin, end):
        numbers[target, r] = numbers[source, r]


@part
def _follow(problem: Any, final: int, n: int, row: int, column: int, lists: PathLists) -> None:
    """Add the best path to a node to the path `n`, and what the next best choices lose."""
    while row >= 0:
        known = lists.owner[row, column]
        if known != NONE:
            _copy(lists.column, known, n, 0, row + 1)
            _copy(lists.choice, known, n, 0, row + 1)
            _copy(lists.other, known, n, 0, row + 1)
            for r in range(row + 1):
                lists.loss[n, r] = lists.loss[known, r]
            for r in range(row + 1):
                lists.open[n, r] = lists.loss[known, r]
            return
        lists.owner[row, column] = n
        count = score_choices(problem, row, column, lists.sums)
        top, choice, second, other = _best_choices(count, lists)
        lists.column[n, row], lists.choice[n, row], lists.other[n, row] = column, choice, other
        lists.loss[n, row] = lists.open[n, row] = top - second
        if row == final:
            lists.score[n] = top
        last = row
        row, column = node_before(problem, row, column, choice)
        _skip(n, row + 1, last, lists)


@part
def _skip(n: int, begin: int, end: int, lists: PathLists) -> None:
    """Note that a path has no nodes in some rows."""
    for r in range(begin, end):
        lists.column[n, r] = lists.choice[n, r] = NONE
        lists.loss[n, r] = lists.open[n, r] = math.inf


@part
def _branch(problem: Any, final: int, parent: int, n: int, lists: PathLists) -> tuple[int, int]:
    """Make the path `n` of what differs from its parent in the next best way.

    Returns the node from which on it is to go by the best choices.
    """
    row = lists.next_row[parent]
    _copy(lists.column, parent, n, row, final + 1)
    _copy(lists.choice, parent, n, row, final + 1)
    column, choice = lists.column[parent, row], lists.other[parent, row]
    count = score_choices(problem, row, column, lists.sums)
    own = lists.sums[choice]
    score, other = _choice_after(count, own, choice, lists)
    lists.choice[n, row], lists.other[n, row] = choice, other
    lists.open[n, row], lists.open[parent, row] = own - score, math.inf
    lists.top[n], lists.score[n] = row, lists.next_score[parent]
    before, column = node_before(problem, row, column, choice)
    _skip(n, before + 1, row, lists)
    return before, column


@part
def _choose(n: int, lists: PathLists) -> None:
    """Find the row where the least is lost: of equal ones as for paths that differ there."""
    rows, least = lists.top[n] + 1, fill(-math.inf)
    for r in range(rows, -(-rows // WIDTH) * WIDTH):
        lists.open[n, r] = math.inf
    for p in range(0, rows, WIDTH):
        least = larger(least, subtract(fill(0.0), load(lists.open, n, p)))
    low = -_largest(least, lists)
    lists.next_row[n], lists.next_score[n] = NONE, lists.score[n] - low
    for r in range(rows if low < math.inf else 0):
        if lists.open[n, r] == low and (
            lists.next_row[n] == NONE or lists.other[n, r] < lists.choice[n, r]
        ):
            lists.next_row[n] = r


@part
def _comes_first(final: int, a: int, b: int, lists: PathLists) -> bool:
    """Whether what would differ from a path comes before what would differ from another."""
    score_a, score_b = float(lists.next_score[a]), float(lists.next_score[b])
    if score_a != score_b:
        return score_a > score_b
    row_a, row_b = lists.next_row[a], lists.next_row[b]
    for r in range(final, max(row_a, row_b) - 1, -1):
        one = int(lists.other[a, r] if r == row_a else lists.choice[a, r])
        two = int(lists.other[b, r] if r == row_b else lists.choice[b, r])
        if one != two:
            return one < two
    return a < b


@part
def _push(final: int, n: int, size: int, lists: PathLists) -> int:
    """Put a path on the heap, if there is what would differ from it; returns the new size."""
    if lists.next_row[n] == NONE:
        return size
    place = size
    while place > 0:
        above = (place - 1) // 2
        if not _comes_first(final, n, lists.heap[above], lists):
            break
        lists.heap[place] = lists.heap[above]
        place = above
    lists.heap[place] = n
    return size + 1


@part
def _sink(final: int, n: int, size: int, lists: PathLists) -> None:
    """Put a path in place of the first one of the heap."""
    place, below = 0, 1
    while below < size:
        if below + 1 < size and _comes_first(
            final, lists.heap[below + 1], lists.heap[below], lists
        ):
            below += 1
        if not _comes_first(final, lists.heap[below], n, lists):
            break
        lists.heap[place] = lists.heap[below]
        place, below = below, 2 * below + 1
    lists.heap[place] = n


@part
def _find_paths(problem: Any, final: int, most: int, lists: PathLists) -> int:
    """List the best paths; returns how many there are."""
    for r in range(final + 1):
        for c in range(lists.owner.shape[1]):
            lists.owner[r, c] = NONE
    count, size = 0, 0
    while count < most and (count == 0 or size > 0):
        row, column = final, 0
        lists.top[count] = final
        if count > 0:
            parent = lists.heap[0]
            row, column = _branch(problem, final, parent, count, lists)
            _choose(parent, lists)
            if lists.next_row[parent] == NONE:
                size -= 1
                parent = lists.heap[size]
            _sink(final, parent, size, lists)
        _follow(problem, final, count, row, column, lists)
        if lists.score[count] == -math.inf:
            break
        _choose(count, lists)
        size = _push(final, count, size, lists)
        count += 1
    return count


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
    count = _find_paths(problem, final, most, lists)
    for n in range(count):
        found.scores[first + n] = lists.score[n]
        write(problem, n, lists, found.codes, place + n * length)
    return count
