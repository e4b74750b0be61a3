"""Sums over the values of factor graphs by junction trees.

A junction tree is planned once for all graphs of the same variables and scopes (see
:mod:`crfkit.graphs.plan`): a kernel multiplies tables into larger ones and adds them up, in the
order of the plan. The table of a clique has the variables that it shares with its parent, the
separator, as rows, and those that are eliminated in it as columns. So that what goes to the parent
are the sums of its rows; and its shares of these are the probabilities of the columns given the
row, of which all else is made: beliefs, samples, entropies and slopes.
"""

from __future__ import annotations

import math

from crfkit._types import FloatArray, IntArray
from crfkit.compiler.exact import exact_difference, exact_sum
from crfkit.compiler.jit import kernel, part
from crfkit.compiler.simd import WIDTH, decay, fill, larger, largest, load_at, store_at, subtract
from crfkit.kernels.chain.sum import NOTHING, OK, UNDERFLOW
from crfkit.kernels.graph.arrays import FactorTables
from crfkit.kernels.graph.junction_terms import (
    LEAST,
    JunctionTrees,
    JunctionWorkspace,
    add_term,
    add_up,
    checked_sum,
    clear,
    copy_term,
    multiply,
)

LOG_LEAST = math.log(LEAST)
# A table whose sum is below this is scaled before the next product.
SMALL = 1e-20
# No values of a graph are allowed.
DEAD = -3


@part
def add_exactly(total: float, lost: float, x: float) -> tuple[float, float]:
    """Add a number to a sum, and what is rounded off to another (Knuth 1969): sums may be long."""
    new = exact_sum(total, x)
    added = exact_difference(new, total)
    kept = exact_difference(new, added)
    return new, lost + exact_difference(total, kept) + exact_difference(x, added)


@part
def _largest(scores: FloatArray, begin: int, end: int) -> float:
    """Return the largest of some numbers."""
    top = -math.inf
    if end - begin >= WIDTH:
        most = load_at(scores, end - WIDTH)
        for z in range(begin, end - WIDTH, WIDTH):
            most = larger(most, load_at(scores, z))
        return largest(most)
    for z in range(begin, end):
        top = max(top, scores[z])
    return top


@part
def _raise(scores: FloatArray, begin: int, end: int, top: float, out: FloatArray, at: int) -> int:
    """Write exponentials of numbers less the largest; returns how many were too small."""
    small, size = 0, end - begin
    for z in range(begin, end):
        small += (scores[z] - top < LOG_LEAST) & (scores[z] > -math.inf)
    if size >= WIDTH:
        last, less = size - WIDTH, fill(top)
        for i in range(0, last, WIDTH):
            store_at(decay(subtract(load_at(scores, begin + i), less)), out, at + i)
        store_at(decay(subtract(load_at(scores, begin + last), less)), out, at + last)
        return small
    for i in range(size):
        out[at + i] = math.exp(scores[begin + i] - top)
    return small


@part
def _exponentials(graph: FactorTables, s: int, factor: FloatArray) -> tuple[float, float, bool]:
    """Write the exponentials of scores less the largest of each factor.

    Returns the sum of the largest, what was rounded off, and whether none that is possible became
    too small.
    """
    start, whole, lost, small = graph.score_ptr[graph.factor_ptr[s]], 0.0, 0.0, 0
    for f in range(graph.factor_ptr[s], graph.factor_ptr[s + 1]):
        begin, end = graph.score_ptr[f], graph.score_ptr[f + 1]
        top = _largest(graph.scores, begin, end)
        if top == -math.inf:
            return top, 0.0, True
        whole, lost = add_exactly(whole, lost, top)
        small += _raise(graph.scores, begin, end, top, factor, begin - start)
    return whole, lost, small == 0


@part
def _shares(
    trees: JunctionTrees, c: int, table: FloatArray, message: FloatArray
) -> tuple[float, bool]:
    """Turn rows to shares of their sums, which are the message, scaled to the sum 1.

    Returns the sum of all, and whether nothing that is possible is too small.
    """
    rows, columns, m, at = trees.rows[c], trees.columns[c], trees.message_at[c], trees.table_at[c]
    whole, small = 0.0, 0
    for r in range(rows):
        total = 0.0
        for i in range(at, at + columns):
            total += table[i]
        message[m + r] = total
        whole += total
        if total > 0.0:
            scale = 1.0 / total
            for i in range(at, at + columns):
                table[i] *= scale
        at += columns
    if not whole > 0.0:
        return 0.0, True
    for r in range(m, m + rows):
        message[r] /= whole
        small += (message[r] < LEAST) & (message[r] > 0.0)
    return whole, small == 0


@kernel
def _inside(
    trees: JunctionTrees, p: int, graph: FactorTables, s: int, work: JunctionWorkspace,
    log_z: FloatArray,
) -> int:  # fmt: skip
    """Make the tables of one graph in linear form, up to the roots; returns its status."""
    first, cliques = graph.factor_ptr[s], trees.clique_ptr[p]
    whole, lost, possible = _exponentials(graph, s, work.factor)
    if not possible:
        return UNDERFLOW
    if whole == -math.inf:
        return DEAD
    start = graph.score_ptr[first]
    for c in range(cliques, trees.clique_ptr[p + 1]):
        at, size = trees.table_at[c], trees.rows[c] * trees.columns[c]
        begin, end = trees.term_ptr[c], trees.term_ptr[c + 1]
        if begin == end:
            clear(work.table, at, size, 1.0)
        for t in range(begin, end):
            source, n, scale = trees.source[t], trees.nest[t], 1.0
            if t > begin + 1:  # of two terms, no product that is possible is 0
                total = checked_sum(work.table, at, at + size)
                if not total > 0.0:
                    return UNDERFLOW if total < 0.0 else DEAD
                if total < SMALL:
                    scale = 1.0 / total
                    whole, lost = add_exactly(whole, lost, math.log(total))
            other = work.factor if source >= 0 else work.message
            if source >= 0:
                place = graph.score_ptr[first + source] - start
            else:
                place = trees.message_at[cliques + ~source]
            if t == begin:
                copy_term(trees, n, work.table, at, other, place)
            else:
                multiply(trees, n, work.table, at, other, place, scale)
        total, possible = _shares(trees, c, work.table, work.message)
        if not possible:
            return UNDERFLOW
        if total == 0.0:
            return DEAD
        whole, lost = add_exactly(whole, lost, math.log(total))
    log_z[s] = whole + lost
    return OK


@part
def _log_shares(
    trees: JunctionTrees, c: int, table: FloatArray, message: FloatArray, is_max: bool
) -> float:
    """Turn rows of logarithms to shares of their sums, whose logarithms are the message.

    Of maxima, rows are left as they are. Returns the largest of the message, which is taken off.
    """
    rows, columns, m, at = trees.rows[c], trees.columns[c], trees.message_at[c], trees.table_at[c]
    most = -math.inf
    for r in range(m, m + rows):
        top, total = -math.inf, 0.0
        for i in range(at, at + columns):
            top = max(top, table[i])
        message[r] = top
        if not is_max and top == -math.inf:
            clear(table, at, columns, 0.0)
        elif not is_max:
            for i in range(at, at + columns):
                below = table[i] - top
                table[i] = math.exp(below) if below > NOTHING else 0.0
                total += table[i]
            message[r] = top + math.log(total)
            for i in range(at, at + columns):
                table[i] /= total
        most = max(most, message[r])
        at += columns
    for r in range(m, m + rows if most > -math.inf else m):
        message[r] -= most
    return most


@kernel
def inside_log(
    trees: JunctionTrees, p: int, graph: FactorTables, s: int, work: JunctionWorkspace,
    log_z: FloatArray, is_max: bool,
) -> int:  # fmt: skip
    """Make the tables of one graph in logarithms, up to the roots; returns its status.

    Shares of rows, as `_inside`; of maxima, the best scores of all that is below each entry.
    """
    first, cliques, whole, lost = graph.factor_ptr[s], trees.clique_ptr[p], 0.0, 0.0
    for c in range(cliques, trees.clique_ptr[p + 1]):
        at = trees.table_at[c]
        clear(work.table, at, trees.rows[c] * trees.columns[c], 0.0)
        for t in range(trees.term_ptr[c], trees.term_ptr[c + 1]):
            source, n = trees.source[t], trees.nest[t]
            if source >= 0:
                add_term(trees, n, work.table, at, graph.scores, graph.score_ptr[first + source])
            else:
                place = trees.message_at[cliques + ~source]
                add_term(trees, n, work.table, at, work.message, place)
        most = _log_shares(trees, c, work.table, work.message, is_max)
        if most == -math.inf:
            return DEAD
        whole, lost = add_exactly(whole, lost, most)
    log_z[s] = whole + lost
    return OK


@kernel
def inside(
    trees: JunctionTrees, p: int, graph: FactorTables, s: int, work: JunctionWorkspace,
    log_z: FloatArray,
) -> int:  # fmt: skip
    """Make the shares of the rows of all tables of one graph, and log Z; returns its status."""
    status: int = _inside(trees, p, graph, s, work, log_z)
    if status == UNDERFLOW:
        status = inside_log(trees, p, graph, s, work, log_z, False)
    if status == DEAD:
        log_z[s] = -math.inf
    elif trees.clique_ptr[p + 1] > trees.clique_ptr[p]:  # what roots get from above
        for c in range(trees.clique_ptr[p], trees.clique_ptr[p + 1]):
            if trees.rows[c] == 1:
                work.message[trees.message_at[c]] = 1.0
    return status


@part
def spread(trees: JunctionTrees, c: int, table: FloatArray, message: FloatArray) -> None:
    """Multiply the rows of a clique with the probabilities of its separator."""
    at, columns = trees.table_at[c], trees.columns[c]
    for r in range(trees.rows[c]):
        above = message[trees.message_at[c] + r]
        for i in range(at, at + columns):
            table[i] *= above
        at += columns


@kernel
def collect(
    trees: JunctionTrees, p: int, c: int, graph: FactorTables, s: int, table: FloatArray,
    message: FloatArray, beliefs: FloatArray,
) -> None:  # fmt: skip
    """Add the table of a clique up to those of its terms: factors, separators of children.

    Beliefs of factors are left out where there is no room for any.
    """
    cliques, first, at = trees.clique_ptr[p], graph.factor_ptr[s], trees.table_at[c]
    for t in range(trees.term_ptr[c], trees.term_ptr[c + 1]):
        source = trees.source[t]
        if source >= 0 and beliefs.shape[0] == 0:
            continue
        if source >= 0:
            f = first + source
            start, size = graph.score_ptr[f], graph.score_ptr[f + 1] - graph.score_ptr[f]
            clear(beliefs, start, size, 0.0)
            add_up(trees, trees.nest[t], table, at, beliefs, start)
        else:
            child = cliques + ~source
            clear(message, trees.message_at[child], trees.rows[child], 0.0)
            add_up(trees, trees.nest[t], table, at, message, trees.message_at[child])


@kernel
def collect_variables(
    trees: JunctionTrees, p: int, graph: FactorTables, s: int, table: FloatArray,
    beliefs: FloatArray, marginals: FloatArray, certain: float,
) -> None:  # fmt: skip
    """Write what the variables of a graph have; `certain` is of those with one state."""
    begin, cliques = graph.variable_ptr[s], trees.clique_ptr[p]
    for v in range(begin, graph.variable_ptr[s + 1]):
        place, q = graph.state_ptr[v], trees.variable_ptr[p] + v - begin
        n, source = trees.home_nest[q], trees.home[q]
        clear(marginals, place, graph.sizes[v], 0.0)
        if n < 0:
            marginals[place] = certain
        elif source >= 0:
            at = graph.score_ptr[graph.factor_ptr[s] + source]
            add_up(trees, n, beliefs, at, marginals, place)
        else:
            add_up(trees, n, table, trees.table_at[cliques + ~source], marginals, place)


@kernel
def junction_sums(
    trees: JunctionTrees,
    which: IntArray,  # (S,) the plan of each graph
    graph: FactorTables,
    work: JunctionWorkspace,
    log_z: FloatArray,  # (S,) out
    marginals: FloatArray,  # (state_ptr[-1],) out, 0 before
    beliefs: FloatArray,  # (Z,) out, 0 before
) -> None:
    """Sum over the values of each graph: log Z, marginals of variables and factors.

    From the leaves of a junction tree to its roots and back (Lauritzen and Spiegelhalter 1988;
    Shafer and Shenoy 1990), in time proportional to the entries of all tables and terms.
    """
    for s in range(which.shape[0]):
        p = which[s]
        if inside(trees, p, graph, s, work, log_z) == OK:
            for c in range(trees.clique_ptr[p + 1] - 1, trees.clique_ptr[p] - 1, -1):
                spread(trees, c, work.table, work.message)
                collect(trees, p, c, graph, s, work.table, work.message, beliefs)
            collect_variables(trees, p, graph, s, work.table, beliefs, marginals, 1.0)


@part
def row_of(
    trees: JunctionTrees, c: int, values: IntArray, n: int, begin: int, graph: FactorTables
) -> int:
    """Return the row of a clique, given the values of its separator in a row of values."""
    row = 0
    for j in range(trees.member_ptr[c], trees.separator_end[c]):
        v = begin + trees.members[j]
        row = row * graph.sizes[v] + values[n, v]
    return row


@part
def write_column(
    trees: JunctionTrees, c: int, column: int, values: IntArray, n: int, begin: int,
    graph: FactorTables,
) -> None:  # fmt: skip
    """Write the values of the other variables of a clique, given a column."""
    for j in range(trees.member_ptr[c + 1] - 1, trees.separator_end[c] - 1, -1):
        v = begin + trees.members[j]
        values[n, v] = column % graph.sizes[v]
        column //= graph.sizes[v]


@kernel
def junction_max(
    trees: JunctionTrees,
    which: IntArray,  # (S,) the plan of each graph
    graph: FactorTables,
    work: JunctionWorkspace,
    score: FloatArray,  # (S,) out
    values: IntArray,  # (1, V) out, 0 before
) -> None:
    """Find the values of the largest score: of equal ones in a row, those of the first column."""
    for s in range(which.shape[0]):
        p, begin = which[s], graph.variable_ptr[s]
        score[s] = -math.inf
        if inside_log(trees, p, graph, s, work, score, True) == OK:
            for c in range(trees.clique_ptr[p + 1] - 1, trees.clique_ptr[p] - 1, -1):
                at = (
                    trees.table_at[c] + row_of(trees, c, values, 0, begin, graph) * trees.columns[c]
                )
                best = 0
                for i in range(trees.columns[c]):
                    if work.table[at + i] > work.table[at + best]:
                        best = i
                write_column(trees, c, best, values, 0, begin, graph)
        else:
            score[s] = -math.inf
