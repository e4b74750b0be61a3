"""Exact answers by a look at all combinations of values."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from scipy.special import logsumexp

from crfkit._types import FloatArray
from crfkit.graphs.methods import EXACT, BudgetError, Maximum, MaxMethod, SumMethod, Sums
from crfkit.graphs.tables import log2_states, tables_of
from crfkit.kernels.graph.arrays import FactorTables

MOST_STATES = 1 << 22


class Enumeration(SumMethod, MaxMethod):
    """Sums and maxima over all combinations of values, at most 2^22: for few variables, and tests.

    Of equal scores the first combination wins, the last variable counting fastest.

    Examples
    --------
    >>> from crfkit.graphs.tables import factor_tables
    >>> graph = factor_tables([2, 2], [[0, 1]], [[[1.0, 0.0], [0.0, 1.0]]])
    >>> Enumeration().sums(graph).log_partition.round(3)
    array([2.006])
    """

    bound: ClassVar[str] = EXACT
    is_convex: ClassVar[bool] = True

    def sums(self, graph: FactorTables) -> Sums:
        """Return log Z and the marginals."""
        count = len(graph.factor_ptr) - 1
        log_z, marginals, beliefs = np.full(count, -np.inf), list[FloatArray](), list[FloatArray]()
        for s in range(count):
            scores, scopes = all_scores(graph, s), tables_of(graph, s)[1]
            log_z[s] = logsumexp(scores)
            joint = np.exp(scores - log_z[s]) if log_z[s] > -np.inf else np.zeros_like(scores)
            marginals += [_marginal(joint, [v]) for v in range(joint.ndim)]
            beliefs += [_marginal(joint, scope) for scope in scopes]
        return Sums(
            log_z, np.concatenate([np.empty(0), *marginals]),
            np.concatenate([np.empty(0), *beliefs]),
            np.ones(count, bool), np.ones(count, bool), np.zeros(count, np.int64),
        )  # fmt: skip

    def maximum(self, graph: FactorTables) -> Maximum:
        """Return the values of the largest score."""
        count = len(graph.factor_ptr) - 1
        best, values = np.empty(count), [np.empty(0, np.int64)]
        for s in range(count):
            scores = all_scores(graph, s)
            place = np.unravel_index(np.argmax(scores), scores.shape)
            best[s] = scores[place]
            values.append(np.array(place, np.int64))
        return Maximum(np.concatenate(values), best, best.copy(), np.zeros(count, np.int64))


def all_scores(graph: FactorTables, s: int) -> FloatArray:
    """Return the scores of all combinations of values of a graph, an axis for each variable.

    BudgetError if there are too many.
    """
    if (bits := log2_states(graph, s)) > np.log2(MOST_STATES):
        raise BudgetError(
            s, f"there are 2^{bits:.1f} combinations of values; at most 2^22 are enumerated."
        )
    sizes, scopes, tables = tables_of(graph, s)
    total = np.zeros(sizes)
    for scope, table in zip(scopes, tables, strict=True):
        shape = np.ones(len(sizes), np.int64)
        shape[scope] = table.shape
        total += table.transpose(np.argsort(scope)).reshape(shape)
    return total


def _marginal(joint: FloatArray, variables: list[int]) -> FloatArray:
    """Return the probabilities of the values of some variables, flat."""
    others = tuple(v for v in range(joint.ndim) if v not in variables)
    table: FloatArray = joint.sum(axis=others)
    return table.transpose(np.argsort(np.argsort(variables))).ravel()
