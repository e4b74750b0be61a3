"""Gibbs sampling: each variable in turn is drawn given all others (Geman and Geman 1984)."""

from __future__ import annotations

import math
from typing import NamedTuple

from crfkit._types import FloatArray, IntArray
from crfkit.compiler.jit import kernel, part
from crfkit.kernels.graph.arrays import FactorTables
from crfkit.kernels.graph.links import Links

# The generator of L'Ecuyer (1988): two states, multiplied modulo two primes.
FIRST_MODULUS, SECOND_MODULUS = 2147483563, 2147483399
FIRST_FACTOR, SECOND_FACTOR = 40014, 40692


class Chains(NamedTuple):
    """One chain for each graph."""

    values: IntArray  # (V,) the state that each variable is in
    random: IntArray  # (S, 2) the states of a generator, from 1 on
    marginals: FloatArray  # (state_ptr[-1],) sums of conditional probabilities
    beliefs: FloatArray  # (Z,)
    conditional: FloatArray  # (largest number of states,)


@part
def _uniform(random: IntArray, s: int) -> float:
    """Draw a number between 0 and 1."""
    random[s, 0] = random[s, 0] * FIRST_FACTOR % FIRST_MODULUS
    random[s, 1] = random[s, 1] * SECOND_FACTOR % SECOND_MODULUS
    drawn = random[s, 0] - random[s, 1]
    if drawn < 1:
        drawn += FIRST_MODULUS - 1
    return float(drawn / FIRST_MODULUS)


@part
def _entry(graph: FactorTables, links: Links, chains: Chains, a: int) -> int:
    """Return the entry of the values of a factor, with the first state of the variable of a."""
    f = links.factor[a]
    entry = graph.score_ptr[f]
    for b in range(graph.scope_ptr[f], graph.scope_ptr[f + 1]):
        if b != a:
            entry += links.stride[b] * chains.values[graph.scope[b]]
    return int(entry)


@part
def _condition(graph: FactorTables, links: Links, chains: Chains, v: int) -> None:
    """Write the probabilities of the states of a variable, given the values of all others."""
    size, shares = graph.sizes[v], chains.conditional
    for x in range(size):
        shares[x] = 0.0
    for i in range(links.places_ptr[v], links.places_ptr[v + 1]):
        a = links.places[i]
        entry = _entry(graph, links, chains, a)
        for x in range(size):
            shares[x] += graph.scores[entry + x * links.stride[a]]
    top, total = -math.inf, 0.0
    for x in range(size):
        top = max(top, shares[x])
    for x in range(size):
        shares[x] = math.exp(shares[x] - top) if shares[x] > -math.inf else 0.0
        total += shares[x]
    scale = 1.0 / total if total > 0.0 else 0.0  # in a graph that allows nothing
    for x in range(size):
        shares[x] *= scale


@part
def _collect(graph: FactorTables, links: Links, chains: Chains, v: int, weight: float) -> None:
    """Add the probabilities of the states of a variable to its sums and to those of factors."""
    for x in range(graph.sizes[v]):
        chains.marginals[graph.state_ptr[v] + x] += weight * chains.conditional[x]
    for i in range(links.places_ptr[v], links.places_ptr[v + 1]):
        a = links.places[i]
        f, entry = links.factor[a], _entry(graph, links, chains, a)
        share = weight / (graph.scope_ptr[f + 1] - graph.scope_ptr[f])
        for x in range(graph.sizes[v]):
            chains.beliefs[entry + x * links.stride[a]] += share * chains.conditional[x]


@kernel
def draw_sweeps(
    graph: FactorTables, links: Links, n_sweeps: int, weight: float, chains: Chains
) -> None:
    """Draw all variables in turn, some times; add up probabilities where these have a weight."""
    for s in range(graph.variable_ptr.shape[0] - 1):
        begin, end = graph.variable_ptr[s], graph.variable_ptr[s + 1]
        for _ in range(n_sweeps):
            for v in range(begin, end):
                _condition(graph, links, chains, v)
                if weight > 0.0:
                    _collect(graph, links, chains, v, weight)
                left, x, last = _uniform(chains.random, s), 0, 0
                for y in range(graph.sizes[v]):
                    if chains.conditional[y] > 0.0:
                        last = y
                while x < last and left >= chains.conditional[x]:
                    left -= chains.conditional[x]
                    x += 1
                while x < last and chains.conditional[x] == 0.0:  # rounding
                    x += 1
                chains.values[v] = x
