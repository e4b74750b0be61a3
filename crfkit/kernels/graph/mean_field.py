"""Coordinate ascent of the bound of mean field: independent variables.

``log Z >= sum_f E[scores_f] + sum_v H(q_v)`` for all products of distributions ``q_v`` of single
variables. Given the others, the best ``q_v`` is proportional to the exponential of the expected
scores.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from crfkit._types import BoolArray, FloatArray, IntArray
from crfkit.compiler.jit import kernel, part
from crfkit.kernels.graph.arrays import FactorTables
from crfkit.kernels.graph.links import Links


class MeanFieldSums(NamedTuple):
    """What comes out, and workspaces."""

    log_partition: FloatArray  # (S,)
    marginals: FloatArray  # (state_ptr[-1],) before: where to start
    beliefs: FloatArray  # (Z,)
    converged: BoolArray  # (S,)
    n_iter: IntArray  # (S,)
    expected: FloatArray  # (largest number of states,)


@kernel
def _weigh(graph: FactorTables, links: Links, sums: MeanFieldSums, f: int, but: int) -> None:
    """Write the probability of each entry of a factor, without that of one place."""
    begin, length = graph.score_ptr[f], graph.score_ptr[f + 1] - graph.score_ptr[f]
    for e in range(begin, begin + length):
        sums.beliefs[e] = 1.0
    for a in range(graph.scope_ptr[f], graph.scope_ptr[f + 1]):
        if a == but:
            continue
        v = graph.scope[a]
        size, stride = graph.sizes[v], links.stride[a]
        for e in range(0, length, stride):
            share = sums.marginals[graph.state_ptr[v] + (e // stride) % size]
            for i in range(begin + e, begin + e + stride):
                sums.beliefs[i] *= share


@part
def _renew(graph: FactorTables, links: Links, sums: MeanFieldSums, v: int) -> float:
    """Let a variable have its best distribution, given the others; return the change."""
    size, states, expected = graph.sizes[v], graph.state_ptr[v], sums.expected
    for x in range(size):
        expected[x] = 0.0
    for n in range(links.places_ptr[v], links.places_ptr[v + 1]):
        a = links.places[n]
        f, stride = links.factor[a], links.stride[a]
        _weigh(graph, links, sums, f, a)
        for e in range(graph.score_ptr[f], graph.score_ptr[f + 1]):
            if sums.beliefs[e] > 0.0:  # a product of 0 and -inf is 0 here
                x = ((e - graph.score_ptr[f]) // stride) % size
                expected[x] += sums.beliefs[e] * graph.scores[e]
    top, total, change = -math.inf, 0.0, 0.0
    for x in range(size):
        top = max(top, expected[x])
    for x in range(size):
        expected[x] = math.exp(expected[x] - top) if expected[x] > -math.inf else 0.0
        total += expected[x]
    scale = 1.0 / total if total > 0.0 else 0.0  # nothing is left of a graph that allows nothing
    for x in range(size):
        share = scale * expected[x]
        change = max(change, abs(share - sums.marginals[states + x]))
        sums.marginals[states + x] = share
    return change


@part
def _bound(graph: FactorTables, links: Links, sums: MeanFieldSums, s: int) -> float:
    """Write the beliefs of factors; return the bound."""
    total = 0.0
    for f in range(graph.factor_ptr[s], graph.factor_ptr[s + 1]):
        _weigh(graph, links, sums, f, -1)
        for e in range(graph.score_ptr[f], graph.score_ptr[f + 1]):
            if sums.beliefs[e] > 0.0:
                total += sums.beliefs[e] * graph.scores[e]
    for x in range(
        graph.state_ptr[graph.variable_ptr[s]], graph.state_ptr[graph.variable_ptr[s + 1]]
    ):
        if sums.marginals[x] > 0.0:
            total -= sums.marginals[x] * math.log(sums.marginals[x])
    return total


@kernel
def ascend(
    graph: FactorTables, links: Links, tol: float, max_iter: int, sums: MeanFieldSums
) -> None:
    """Renew the distributions of all variables in turn until they change by no more than `tol`."""
    for s in range(graph.variable_ptr.shape[0] - 1):
        n, change = 0, 2.0
        while n < max_iter and change > tol:
            n, change = n + 1, 0.0
            for v in range(graph.variable_ptr[s], graph.variable_ptr[s + 1]):
                change = max(change, _renew(graph, links, sums, v))
        sums.n_iter[s] = n
        sums.converged[s] = change <= tol
        sums.log_partition[s] = _bound(graph, links, sums, s)
