"""Samples, entropies and slopes of the distributions of factor graphs, by junction trees.

All start from the probabilities of the columns of a clique given its rows, which the way up to the
roots leaves (:mod:`crfkit.kernels.graph.junction`).
"""

from __future__ import annotations

import math

from crfkit._types import FloatArray, IntArray
from crfkit.compiler.jit import kernel, part
from crfkit.kernels.chain.sum import OK
from crfkit.kernels.graph.arrays import FactorTables
from crfkit.kernels.graph.junction import collect, collect_variables, inside, row_of, spread
from crfkit.kernels.graph.junction_terms import JunctionTrees, JunctionWorkspace, add_term, clear


@part
def _draw(
    trees: JunctionTrees, c: int, graph: FactorTables, begin: int, work: JunctionWorkspace,
    uniforms: FloatArray, n: int, values: IntArray,
) -> None:  # fmt: skip
    """Draw the variables of a clique one after the other, given those of its separator."""
    size = trees.columns[c]
    at = trees.table_at[c] + row_of(trees, c, values, n, begin, graph) * size
    for j in range(trees.separator_end[c], trees.member_ptr[c + 1]):
        v = begin + trees.members[j]
        states, total = graph.sizes[v], 0.0
        size //= states
        for i in range(at, at + states * size):
            total += work.table[i]
        target, below, chosen = uniforms[n, v] * total, 0.0, -1
        for k in range(states):
            own = 0.0
            for i in range(at + k * size, at + (k + 1) * size):
                own += work.table[i]
            if own > 0.0 and (chosen < 0 or below <= target):
                chosen = k
            below += own
        values[n, v] = chosen
        at += chosen * size


@kernel
def junction_sample(
    trees: JunctionTrees,
    which: IntArray,  # (S,) the plan of each graph
    graph: FactorTables,
    work: JunctionWorkspace,
    uniforms: FloatArray,  # (n, V) from 0 to 1
    log_z: FloatArray,  # (S,) out
    values: IntArray,  # (n, V) out, 0 before
) -> None:
    """Draw values from their distribution, from the roots to the leaves (Dawid 1992)."""
    for s in range(which.shape[0]):
        p, begin = which[s], graph.variable_ptr[s]
        if inside(trees, p, graph, s, work, log_z) == OK:
            for n in range(values.shape[0]):
                for c in range(trees.clique_ptr[p + 1] - 1, trees.clique_ptr[p] - 1, -1):
                    _draw(trees, c, graph, begin, work, uniforms, n, values)


@part
def _entropy_of_row(table: FloatArray, at: int, columns: int) -> float:
    """Return the entropy of probabilities, none of whose terms is negative.

    That of the largest is taken from the sum of the others, so that what is all but certain has all
    its digits.
    """
    most, rest, total = at, 0.0, 0.0
    for i in range(at, at + columns):
        if table[i] > table[most]:
            most = i
    for i in range(at, at + columns):
        if i != most and table[i] > 0.0:
            rest += table[i]
            total -= table[i] * math.log(table[i])
    return total - (1.0 - rest) * math.log1p(-rest)


@kernel
def junction_entropy(
    trees: JunctionTrees,
    which: IntArray,  # (S,) the plan of each graph
    graph: FactorTables,
    work: JunctionWorkspace,
    log_z: FloatArray,  # (S,) out
    entropy: FloatArray,  # (S,) out
) -> None:
    """Add up the entropies of cliques given their separators: none is negative, nothing cancels."""
    for s in range(which.shape[0]):
        p, total = which[s], 0.0
        status = inside(trees, p, graph, s, work, log_z)
        first, last = trees.clique_ptr[p], trees.clique_ptr[p + 1]
        for c in range(last - 1, first - 1 if status == OK else last - 1, -1):
            at = trees.table_at[c]
            for r in range(trees.rows[c]):
                share = work.message[trees.message_at[c] + r]
                if share > 0.0:
                    total += share * _entropy_of_row(work.table, at, trees.columns[c])
                at += trees.columns[c]
            spread(trees, c, work.table, work.message)
            collect(trees, p, c, graph, s, work.table, work.message, work.none)
        entropy[s] = total


@part
def _slopes_up(
    trees: JunctionTrees, c: int, work: JunctionWorkspace
) -> None:  # fmt: skip
    """Turn slopes of logarithms of a clique to those of its shares; the message has the means.

    What all rows have in common is taken off the message: it changes no probability, and would grow
    with the graph.
    """
    at, columns, m = trees.table_at[c], trees.columns[c], trees.message_at[c]
    whole = 0.0
    for r in range(m, m + trees.rows[c]):
        mean = 0.0
        for i in range(at, at + columns):
            mean += work.table[i] * work.slope[i]
        for i in range(at, at + columns):
            work.slope[i] -= mean
        work.message_slope[r] = mean
        whole += mean
        at += columns
    for r in range(m, m + trees.rows[c]):
        work.message_slope[r] -= whole / trees.rows[c]


@part
def _slopes_down(trees: JunctionTrees, c: int, work: JunctionWorkspace) -> None:
    """Turn shares and slopes of their logarithms to beliefs and their slopes."""
    at, columns = trees.table_at[c], trees.columns[c]
    for m in range(trees.message_at[c], trees.message_at[c] + trees.rows[c]):
        share, slope = work.message[m], work.message_slope[m]
        for i in range(at, at + columns):
            own = work.table[i]
            work.table[i] = own * share
            work.slope[i] = own * (share * work.slope[i] + slope)
        at += columns


@kernel
def junction_slopes(
    trees: JunctionTrees,
    which: IntArray,  # (S,) the plan of each graph
    graph: FactorTables,
    tangent: FloatArray,  # (Z,) a direction of the scores
    work: JunctionWorkspace,
    log_z: FloatArray,  # (S,) out
    marginal_slopes: FloatArray,  # (state_ptr[-1],) out, 0 before
    belief_slopes: FloatArray,  # (Z,) out, 0 before
) -> None:
    """Differentiate marginals and beliefs along a direction of the scores.

    The slope of the logarithm of an entry is that of its terms; given a row, that of a probability
    is the probability times what its slope is above the mean, so that nothing is divided by it.
    """
    for s in range(which.shape[0]):
        p, first = which[s], graph.factor_ptr[s]
        cliques, last = trees.clique_ptr[p], trees.clique_ptr[p + 1]
        if inside(trees, p, graph, s, work, log_z) != OK:
            continue
        for c in range(cliques, last):
            at = trees.table_at[c]
            clear(work.slope, at, trees.rows[c] * trees.columns[c], 0.0)
            for t in range(trees.term_ptr[c], trees.term_ptr[c + 1]):
                source, n = trees.source[t], trees.nest[t]
                if source >= 0:
                    add_term(trees, n, work.slope, at, tangent, graph.score_ptr[first + source])
                else:
                    place = trees.message_at[cliques + ~source]
                    add_term(trees, n, work.slope, at, work.message_slope, place)
            _slopes_up(trees, c, work)
            if trees.rows[c] == 1:
                work.message_slope[trees.message_at[c]] = 0.0
        for c in range(last - 1, cliques - 1, -1):
            _slopes_down(trees, c, work)
            collect(trees, p, c, graph, s, work.table, work.message, work.none)
            collect(trees, p, c, graph, s, work.slope, work.message_slope, belief_slopes)
        collect_variables(trees, p, graph, s, work.slope, belief_slopes, marginal_slopes, 0.0)
