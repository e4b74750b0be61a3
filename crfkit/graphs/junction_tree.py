"""Exact inference by junction trees."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from crfkit.graphs.methods import EXACT, Maximum, MaxMethod, SumMethod, Sums
from crfkit.graphs.plan import Plans, plans_of
from crfkit.graphs.tables import scores_of
from crfkit.kernels.graph.arrays import FactorTables
from crfkit.kernels.graph.junction import junction_max, junction_sums

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

    def __init__(self, budget: int = 1 << 22) -> None:
        self.budget = budget

    def plans(self, graph: FactorTables, choices: str = FOR_SUMS) -> Plans:
        """Return the junction trees of graphs; BudgetError where a table would be too large."""
        return plans_of(graph, self.budget, choices)

    def sums(self, graph: FactorTables) -> Sums:
        """Return log Z, and the marginals of variables and factors."""
        plans, count = self.plans(graph), len(graph.factor_ptr) - 1
        log_z, marginals = np.empty(count), np.zeros(graph.state_ptr[-1])
        beliefs = np.zeros(len(graph.scores))
        junction_sums(plans.trees, plans.which, graph, plans.workspace(), log_z, marginals, beliefs)
        every = np.ones(count, bool)
        return Sums(log_z, marginals, beliefs, every, every.copy(), np.zeros(count, np.int64))

    def maximum(self, graph: FactorTables) -> Maximum:
        """Return the values of the largest score, 0 where each combination is forbidden."""
        plans, count = self.plans(graph, FOR_MAXIMA), len(graph.factor_ptr) - 1
        score, values = np.empty(count), np.zeros(len(graph.sizes), np.int64)
        junction_max(plans.trees, plans.which, graph, plans.workspace(), score, values)
        found = np.where(score > -np.inf, scores_of(graph, values), -np.inf)
        return Maximum(values, found, found.copy(), np.zeros(count, np.int64))
