"""From factors to the flat arrays that methods of inference read."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from crfkit._types import FloatArray, IntArray
from crfkit.compiler.jit import frozen
from crfkit.kernels.graph.arrays import FactorTables
from crfkit.kernels.graph.scores import score_values, sum_singles


def starts(lengths: ArrayLike) -> IntArray:
    """Return where parts of some lengths start that stand in turn, and the end, (n + 1,)."""
    return frozen(np.append(0, np.cumsum(lengths)).astype(np.int64))


def factor_tables(
    sizes: Sequence[int], scopes: Sequence[Sequence[int]], tables: Sequence[FloatArray]
) -> FactorTables:
    """Return one factor graph.

    Parameters
    ----------
    sizes : sequence of V ints
        How many states each variable has.
    scopes : sequence of F sequences of ints
        The variables of each factor, by their places in `sizes`.
    tables : sequence of F arrays
        Scores, in nats; an axis for each variable of the factor.

    Raises
    ------
    ValueError
        If a table does not have the shape that the variables of its factor say.
    """
    states = frozen(np.array(sizes, np.int64))
    for f, (scope, table) in enumerate(zip(scopes, tables, strict=True)):
        shape = tuple(int(states[v]) for v in scope)
        if np.shape(table) != shape:
            raise ValueError(
                f"factor {f}: its table has the shape {np.shape(table)}, its variables the "
                f"numbers of states {shape}."
            )
    flat = [np.ravel(table) for table in tables]
    return FactorTables(
        sizes=states,
        state_ptr=starts(states),
        scope=frozen(np.array([v for scope in scopes for v in scope], np.int64)),
        scope_ptr=starts([*map(len, scopes)]),
        scores=frozen(np.concatenate([np.empty(0), *flat]).astype(np.float64)),
        score_ptr=starts([*map(len, flat)]),
        variable_ptr=starts([len(states)]),
        factor_ptr=starts([len(tables)]),
    )


def side_by_side(graphs: Sequence[FactorTables]) -> FactorTables:
    """Return several batches of factor graphs as one."""
    if not graphs:
        return factor_tables([], [], [])._replace(variable_ptr=starts([]), factor_ptr=starts([]))

    def joined(name: str) -> IntArray:
        return starts(np.concatenate([np.diff(getattr(graph, name)) for graph in graphs]))

    first = np.cumsum([0, *(len(graph.sizes) for graph in graphs)])
    scopes = [graph.scope + at for graph, at in zip(graphs, first[:-1], strict=True)]
    return FactorTables(
        sizes=frozen(np.concatenate([graph.sizes for graph in graphs])),
        state_ptr=joined("state_ptr"),
        scope=frozen(np.concatenate(scopes)),
        scope_ptr=joined("scope_ptr"),
        scores=frozen(np.concatenate([graph.scores for graph in graphs])),
        score_ptr=joined("score_ptr"),
        variable_ptr=joined("variable_ptr"),
        factor_ptr=joined("factor_ptr"),
    )


def tables_of(graph: FactorTables, s: int) -> tuple[list[int], list[list[int]], list[FloatArray]]:
    """Return the sizes, scopes and tables of one of several factor graphs, numbered from 0."""
    first, last = (int(v) for v in graph.variable_ptr[s : s + 2])
    scopes, tables = [], []
    for f in range(int(graph.factor_ptr[s]), int(graph.factor_ptr[s + 1])):
        scope = graph.scope[graph.scope_ptr[f] : graph.scope_ptr[f + 1]]
        table = graph.scores[graph.score_ptr[f] : graph.score_ptr[f + 1]]
        scopes.append((scope - first).tolist())
        tables.append(table.reshape(graph.sizes[scope]))
    return graph.sizes[first:last].tolist(), scopes, tables


def graph_of(graph: FactorTables, s: int) -> FactorTables:
    """Return one of several factor graphs."""
    v, f = graph.variable_ptr[s : s + 2], graph.factor_ptr[s : s + 2]
    variables, factors = slice(v[0], v[1] + 1), slice(f[0], f[1] + 1)
    states, scopes, scores = (
        ptr[part] for ptr, part in (
            (graph.state_ptr, variables), (graph.scope_ptr, factors), (graph.score_ptr, factors)
        )
    )  # fmt: skip
    return FactorTables(
        *map(frozen, (
            graph.sizes[v[0] : v[1]], states - states[0],
            graph.scope[scopes[0] : scopes[-1]] - v[0], scopes - scopes[0],
            graph.scores[scores[0] : scores[-1]], scores - scores[0], v - v[0], f - f[0],
        ))
    )  # fmt: skip


def log2_states(graph: FactorTables, s: int) -> float:
    """Return the logarithm, to the base 2, of the number of all combinations of values."""
    own = graph.sizes[graph.variable_ptr[s] : graph.variable_ptr[s + 1]]
    return math.fsum(np.log2(own).tolist())


def single_scores(graph: FactorTables) -> FloatArray:
    """Return the sums of the factors of one variable, (state_ptr[-1],)."""
    single = np.zeros(graph.state_ptr[-1])
    for s in range(len(graph.factor_ptr) - 1):
        sum_singles(graph, s, single)
    return single


def scores_of(graph: FactorTables, values: IntArray) -> FloatArray:
    """Return the score of the values of all variables, (V,), for each graph, (S,)."""
    total = np.empty(len(graph.factor_ptr) - 1)
    score_values(graph, frozen(values), total)
    return total
