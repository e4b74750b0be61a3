"""The k best values of factor graphs, by what each loses against one before it."""

from __future__ import annotations

import math
from typing import NamedTuple

from crfkit._types import FloatArray, IntArray
from crfkit.compiler.jit import kernel, part
from crfkit.kernels.chain.sum import OK
from crfkit.kernels.graph.arrays import FactorTables
from crfkit.kernels.graph.junction import inside_log, row_of, write_column
from crfkit.kernels.graph.junction_terms import JunctionTrees, JunctionWorkspace


class JunctionLists(NamedTuple):
    """What is listed of one graph of at most C cliques, and what others would lose against it."""

    loss: FloatArray  # (k, C) of the next best column of each clique; inf where another has it
    top: IntArray  # (k,) the clique from which on values are as those they were made of
    score: FloatArray  # (k,) about
    log_z: FloatArray  # (S,)
    which: IntArray  # (S,) the plan of each graph
    values: IntArray  # (k, V) out, 0 before


@part
def _next_column(work: JunctionWorkspace, at: int, columns: int, column: int) -> int:
    """Return the best column after one, of equal ones the first; -1 if there is none."""
    found, own = -1, work.table[at + column] if column >= 0 else math.inf
    for i in range(columns):
        score = work.table[at + i]
        follows = score < own or (score == own and i > column)
        if follows and score > -math.inf and (found < 0 or score > work.table[at + found]):
            found = i
    return found


@part
def _choose(
    trees: JunctionTrees, place: int, column: int, work: JunctionWorkspace, graph: FactorTables,
    s: int, n: int, lists: JunctionLists,
) -> None:  # fmt: skip
    """Write the best column of a clique after one, and what the next one loses."""
    c, begin = trees.clique_ptr[lists.which[s]] + place, graph.variable_ptr[s]
    columns = trees.columns[c]
    at = trees.table_at[c] + row_of(trees, c, lists.values, n, begin, graph) * columns
    best = _next_column(work, at, columns, column)
    other = _next_column(work, at, columns, best)
    write_column(trees, c, best, lists.values, n, begin, graph)
    lost = work.table[at + best] - work.table[at + other] if other >= 0 else math.inf
    lists.loss[n, place] = lost


@part
def _column_of(
    trees: JunctionTrees, c: int, values: IntArray, n: int, begin: int, graph: FactorTables
) -> int:
    """Return the column of a clique, given values."""
    column = 0
    for j in range(trees.separator_end[c], trees.member_ptr[c + 1]):
        v = begin + trees.members[j]
        column = column * graph.sizes[v] + values[n, v]
    return column


@part
def _least(count: int, lists: JunctionLists) -> tuple[int, int]:
    """Return which of those listed, and at which clique, what is next differs; -1 if nothing is."""
    parent, place, best = -1, -1, -math.inf
    for n in range(count):
        for c in range(lists.top[n] + 1):
            if lists.score[n] - lists.loss[n, c] > best:
                parent, place, best = n, c, lists.score[n] - lists.loss[n, c]
    return parent, place


@kernel
def junction_lists(
    trees: JunctionTrees,
    graph: FactorTables,
    work: JunctionWorkspace,
    lists: JunctionLists,
    count: IntArray,  # (S,) out: how many were found
) -> None:
    """List values by their scores, each unlike one before it at one clique first (Nilsson 1998).

    There it has the next best column, before it the same values, and after it the best: what it
    loses is the difference of two entries of that clique. So those not listed yet are parted, and
    the best of each part is known (Lawler 1972).
    """
    values = lists.values
    for s in range(count.shape[0]):
        p, begin, n = lists.which[s], graph.variable_ptr[s], 0
        cliques, place = trees.clique_ptr[p], trees.clique_ptr[p + 1] - trees.clique_ptr[p] - 1
        if inside_log(trees, p, graph, s, work, lists.log_z, True) == OK:
            lists.score[0] = lists.log_z[s]
            lists.top[0] = place
            for c in range(place, -1, -1):
                _choose(trees, c, -1, work, graph, s, 0, lists)
            n = 1
        while 0 < n < values.shape[0]:
            parent, place = _least(n, lists)
            if parent < 0:
                break
            for v in range(begin, graph.variable_ptr[s + 1]):
                values[n, v] = values[parent, v]
            lists.top[n] = place
            lists.score[n] = lists.score[parent] - lists.loss[parent, place]
            lists.loss[parent, place] = math.inf
            own = _column_of(trees, cliques + place, values, parent, begin, graph)
            for c in range(place, -1, -1):
                _choose(trees, c, own if c == place else -1, work, graph, s, n, lists)
            n += 1
        count[s] = n
