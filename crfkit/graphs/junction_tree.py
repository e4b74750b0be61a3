"""Exact inference by junction trees."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from crfkit._types import FloatArray, IntArray
from crfkit.compiler.jit import frozen
from crfkit.graphs.methods import (
    EXACT,
    BestValues,
    GraphError,
    Maximum,
    MaxMethod,
    Slopes,
    SumMethod,
    Sums,
)
from crfkit.graphs.plan import Plans, plans_of
from crfkit.graphs.tables import scores_of, tables_of
from crfkit.kernels.graph.arrays import FactorTables
from crfkit.kernels.graph.junction import junction_max, junction_sums
from crfkit.kernels.graph.junction_lists import JunctionLists, junction_lists
from crfkit.kernels.graph.junction_posterior import (
    junction_entropy,
    junction_sample,
    junction_slopes,
)
from crfkit.structures import Capability

FOR_SUMS = '"bp", "trw", "mean_field" or "gibbs"'
FOR_MAXIMA = '"expansion", "mplp", "milp", or "cut" where two labels are associative'


class JunctionTree(SumMethod, MaxMethod):
    """Exact sums and maxima, in time and memory exponential in the width of the graph alone.

    Variables are eliminated in a cheap order, those of a forest in linear time; the cliques that
    this makes are a tree, along which messages are sent to the root and back (Lauritzen and
    Spiegelhalter 1988). Variables of one state cost nothing. The order is planned once for all
    graphs of the same variables and scopes, and kept.

    Sums are computed in linear form; where a possible entry becomes too small, the graph is
    computed again in logarithms, so that scores may be of any size. Of equal maxima, the same is
    found each time.

    Parameters
    ----------
    budget : int, default=2**22
        Largest number of entries of a table, each of 8 bytes. A graph that needs a larger one is
        a BudgetError: nothing is approximated.

    Examples
    --------
    >>> import numpy as np
    >>> from crfkit.graphs.junction_tree import JunctionTree
    >>> from crfkit.graphs.tables import factor_tables
    >>> agree = np.eye(2)
    >>> ring = factor_tables([2] * 30, [[i, (i + 1) % 30] for i in range(30)], [agree] * 30)
    >>> JunctionTree().sums(ring).log_partition.round(6)
    array([39.397851])
    >>> JunctionTree().maximum(ring).score
    array([30.])
    """

    bound: ClassVar[str] = EXACT
    is_convex: ClassVar[bool] = True
    capabilities: ClassVar[frozenset[Capability]] = frozenset(
        {
            Capability.HESSIAN_PRODUCT,
            Capability.POSTERIOR,
            Capability.SAMPLE,
            Capability.ENTROPY,
            Capability.K_BEST,
        }
    )

    def __init__(self, budget: int = 1 << 22) -> None:
        self.budget = budget

    def plans(self, graph: FactorTables, choices: str = FOR_SUMS) -> Plans:
        """Return the junction trees of graphs; BudgetError where a table would be too large."""
        if self.budget < 1:
            raise ValueError(f"budget={self.budget!r}: tables have at least one entry.")
        return plans_of(graph, self.budget, choices)

    def sums(self, graph: FactorTables) -> Sums:
        """Return log Z, and the marginals of variables and factors."""
        plans, count = self.plans(graph), len(graph.factor_ptr) - 1
        log_z, marginals = np.empty(count), np.zeros(graph.state_ptr[-1])
        beliefs = np.zeros(len(graph.scores))
        junction_sums(plans.trees, plans.which, graph, plans.workspace(), log_z, marginals, beliefs)
        _check_range(graph, log_z)
        every = np.ones(count, bool)
        return Sums(log_z, marginals, beliefs, every, every.copy(), np.zeros(count, np.int64))

    def maximum(self, graph: FactorTables) -> Maximum:
        """Return the values of the largest score, 0 where each combination is forbidden."""
        plans, count = self.plans(graph, FOR_MAXIMA), len(graph.factor_ptr) - 1
        score, values = np.empty(count), np.zeros((1, len(graph.sizes)), np.int64)
        junction_max(plans.trees, plans.which, graph, plans.workspace(), score, values)
        _check_range(graph, score)
        found = np.where(score > -np.inf, scores_of(graph, values[0]), -np.inf)
        return Maximum(values[0], found, found.copy(), np.zeros(count, np.int64))

    def sample(self, graph: FactorTables, uniforms: FloatArray) -> IntArray:
        """Return values drawn from their distribution.

        Parameters
        ----------
        graph : FactorTables
            The graphs.
        uniforms : ndarray of shape (n, V)
            Random numbers from 0 to 1, of which each variable uses its own.

        Returns
        -------
        ndarray of shape (n, V)
            All 0 in a graph of which each combination is forbidden.
        """
        if uniforms.shape[1:] != graph.sizes.shape:
            raise ValueError(f"{len(graph.sizes)} variables need so many columns of numbers.")
        plans = self.plans(graph)
        log_z, values = np.empty(len(graph.factor_ptr) - 1), np.zeros(uniforms.shape, np.int64)
        work = plans.workspace()
        junction_sample(plans.trees, plans.which, graph, work, frozen(uniforms), log_z, values)
        return values

    def entropy(self, graph: FactorTables) -> FloatArray:
        """Return the entropy of each graph in nats, (S,); 0 where nothing is allowed.

        A sum of entropies of cliques given their separators: small ones have all their digits.
        """
        plans, count = self.plans(graph), len(graph.factor_ptr) - 1
        log_z, entropy = np.empty(count), np.empty(count)
        junction_entropy(plans.trees, plans.which, graph, plans.workspace(), log_z, entropy)
        return entropy

    def derivative(self, graph: FactorTables, tangent: FloatArray) -> Slopes:
        """Return the derivatives of marginals and beliefs along a direction of the scores.

        Those of beliefs are the product of the Hessian matrix of log Z and the direction.

        Parameters
        ----------
        graph : FactorTables
            The graphs.
        tangent : ndarray of shape (Z,)
            A finite number for each entry of the tables.
        """
        if tangent.shape != graph.scores.shape:
            raise ValueError(f"{len(graph.scores)} scores need as many numbers of the direction.")
        plans, log_z = self.plans(graph), np.empty(len(graph.factor_ptr) - 1)
        slopes = Slopes(np.zeros(graph.state_ptr[-1]), np.zeros(len(graph.scores)))
        work, along = plans.workspace(slopes=True), frozen(tangent)
        junction_slopes(plans.trees, plans.which, graph, along, work, log_z, *slopes)
        return slopes

    def k_best(self, graph: FactorTables, k: int) -> BestValues:
        """Return the `k` best values of each graph, the best first (Nilsson 1998).

        Those of a graph are found in time proportional to k times its cliques, and k squared.
        """
        if k < 1:
            raise ValueError(f"{k} best values are asked for: ask for one or more.")
        plans, count = self.plans(graph, FOR_MAXIMA), len(graph.factor_ptr) - 1
        most = int(np.diff(plans.trees.clique_ptr).max(initial=0))
        values, counts = np.zeros((k, len(graph.sizes)), np.int64), np.zeros(count, np.int64)
        lists = JunctionLists(
            np.empty((k, most)),
            np.empty(k, np.int64),
            np.empty(k),
            np.empty(count),
            plans.which,
            values,
        )
        work = plans.workspace()
        junction_lists(plans.trees, graph, work, lists, counts)
        scores = np.array([scores_of(graph, row) for row in values]).reshape(k, count)
        scores[np.arange(k)[:, None] >= counts] = -np.inf
        return BestValues(values, scores.T, counts)


def _check_range(graph: FactorTables, found: FloatArray) -> None:
    """Raise GraphError where an answer is not finite because scores add up to no number, (S,)."""
    for s in np.flatnonzero(~np.isfinite(found)).tolist():
        _, _, tables = tables_of(graph, s)
        largest = [abs(table[table > -np.inf]).max(initial=0.0) for table in tables]
        with np.errstate(over="ignore"):
            total = np.sum(largest)
        if total == np.inf:
            raise GraphError(
                s,
                f"its scores, up to {max(largest):g}, add up to more than numbers hold "
                f"({np.finfo(float).max:g}): make them smaller, or -inf what is forbidden.",
            )
