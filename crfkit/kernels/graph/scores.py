"""Scores of values of all variables."""

from __future__ import annotations

from crfkit._types import FloatArray, IntArray
from crfkit.compiler.jit import kernel, part
from crfkit.kernels.graph.arrays import FactorTables


@part
def entry_of(graph: FactorTables, f: int, values: IntArray) -> int:
    """Return the place of the score of a factor that the values of its variables choose."""
    place = 0
    for a in range(graph.scope_ptr[f], graph.scope_ptr[f + 1]):
        v = graph.scope[a]
        place = place * graph.sizes[v] + values[v]
    return int(graph.score_ptr[f] + place)


@part
def score_of(graph: FactorTables, s: int, values: IntArray) -> float:
    """Return the score of the values of a graph."""
    total = 0.0
    for f in range(graph.factor_ptr[s], graph.factor_ptr[s + 1]):
        total += graph.scores[entry_of(graph, f, values)]
    return total


@kernel
def score_values(graph: FactorTables, values: IntArray, out: FloatArray) -> None:
    """Write the score of the values, (V,), of each graph, (S,)."""
    for s in range(len(out)):
        out[s] = score_of(graph, s, values)


@kernel
def sum_singles(graph: FactorTables, s: int, single: FloatArray) -> None:
    """Add up the factors of one variable: scores of the states of a graph."""
    first, last = graph.variable_ptr[s], graph.variable_ptr[s + 1]
    for x in range(graph.state_ptr[first], graph.state_ptr[last]):
        single[x] = 0.0
    for f in range(graph.factor_ptr[s], graph.factor_ptr[s + 1]):
        if graph.scope_ptr[f + 1] - graph.scope_ptr[f] == 1:
            first = graph.state_ptr[graph.scope[graph.scope_ptr[f]]]
            start = graph.score_ptr[f]
            for k in range(graph.score_ptr[f + 1] - start):
                single[first + k] += graph.scores[start + k]
