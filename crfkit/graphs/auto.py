"""The choice among searches, for each graph."""

from __future__ import annotations

from contextlib import suppress

from crfkit._params import check_whole
from crfkit.graphs.expansion import ExpansionMoves
from crfkit.graphs.junction_tree import JunctionTree
from crfkit.graphs.methods import BudgetError, Maximum, MaxMethod, each_alone
from crfkit.graphs.mplp import MPLP
from crfkit.kernels.graph.arrays import FactorTables


class AutoSearch(MaxMethod):
    """Exact search where that is cheap, else by what is best for the scores of each graph.

    A junction tree, if its tables are within a budget; a minimum cut, if all variables have two
    states and factors are associative, which is exact too; else expansion moves, if factors are
    like distances of labels, and MPLP, whose bound says how good the values are.

    Parameters
    ----------
    budget : int, default=2**18
        Largest number of entries of a table of a junction tree.
    max_iter : int, default=100
        Passes of MPLP at most.

    Examples
    --------
    >>> from crfkit.graphs.auto import AutoSearch
    >>> from crfkit.graphs.tables import factor_tables
    >>> graph = factor_tables([2, 2], [[0], [0, 1]], [[1.0, 0.0], [[0.0, 2.0], [0.0, 0.0]]])
    >>> AutoSearch().maximum(graph).values
    array([0, 1])
    """

    def __init__(self, budget: int = 1 << 18, max_iter: int = 100) -> None:
        self.budget = budget
        self.max_iter = max_iter

    def maximum(self, graph: FactorTables) -> Maximum:
        """Return values of a large score, for each graph by the method that fits it."""
        check_whole("max_iter", self.max_iter, 1)
        count = len(graph.factor_ptr) - 1
        with suppress(BudgetError):
            return JunctionTree(self.budget).maximum(graph)
        if count == 1:
            return self._without_tree(graph)
        return each_alone(self, graph)

    def _without_tree(self, graph: FactorTables) -> Maximum:
        """Return values of a large score of one graph."""
        other = MPLP(self.max_iter)
        with suppress(ValueError):  # of scores that are not like distances
            return ExpansionMoves(bound=other).maximum(graph)
        return other.maximum(graph)
