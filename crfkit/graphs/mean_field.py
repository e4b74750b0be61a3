"""A lower bound of log Z by independent variables."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from crfkit._params import check_number, check_whole
from crfkit._types import BoolArray, FloatArray
from crfkit.graphs.allowed import allowed_values, graphs_that_forbid
from crfkit.graphs.chance import of_states
from crfkit.graphs.links import links_of
from crfkit.graphs.methods import LOWER, SumMethod, Sums
from crfkit.kernels.graph.arrays import FactorTables
from crfkit.kernels.graph.links import Links
from crfkit.kernels.graph.mean_field import MeanFieldSums, ascend


class MeanField(SumMethod):
    """A lower bound of log Z: the best product of distributions of single variables.

    Each variable in turn gets its best distribution, given the others, so the bound rises until it
    has a maximum, one of several (Saul, Jaakkola and Jordan 1996). Marginals are those of the
    product, the beliefs of factors are products, and where two sets of values are about as good,
    it tends to know but one. Exact where no factor has two variables.

    The first start is uniform; where scores forbid something, values that are allowed, found by
    search: a product may only reach what is allowed whatever the others are.

    Parameters
    ----------
    max_iter : int, default=1000
        The largest number of sweeps over the variables.
    tol : float, default=1e-9
        Marginals have settled when none changes by more.
    n_starts : int, default=1
        The best bound of so many starts is taken; those after the first are random.
    random_state : int, default=0
        Of the random starts.

    Raises
    ------
    ValueError
        If no allowed values are found.

    Examples
    --------
    >>> from crfkit.graphs.enumeration import Enumeration
    >>> from crfkit.graphs.mean_field import MeanField
    >>> from crfkit.graphs.tables import factor_tables
    >>> agree = [[1.0, 0.0], [0.0, 1.0]]
    >>> ring = factor_tables([2, 2, 2], [[0, 1], [1, 2], [2, 0], [0]], [agree] * 3 + [[0.0, 1.0]])
    >>> for method in (MeanField(), Enumeration()):
    ...     print(method.sums(ring).log_partition.round(3))
    [4.386]
    [4.654]
    """

    bound: ClassVar[str] = LOWER

    def __init__(
        self, max_iter: int = 1000, tol: float = 1e-9, n_starts: int = 1, random_state: int = 0
    ) -> None:
        self.max_iter = max_iter
        self.tol = tol
        self.n_starts = n_starts
        self.random_state = random_state

    def sums(self, graph: FactorTables) -> Sums:
        """Return the bound of log Z, and the marginals of the product that has it."""
        check_whole("max_iter", self.max_iter, 1)
        check_number("tol", self.tol)
        check_whole("n_starts", self.n_starts, 1)
        check_whole("random_state", self.random_state)
        links, forbids = links_of(graph), graphs_that_forbid(graph)
        best, some = self._risen(graph, links, forbids, 0)
        for turn in range(1, self.n_starts):
            other, _ = self._risen(graph, links, forbids, turn)
            _take(best, graph, other, other.log_partition > best.log_partition)
        if not some.all():
            nothing = MeanFieldSums(
                np.full_like(best.log_partition, -np.inf), np.zeros_like(best.marginals),
                np.zeros_like(best.beliefs), ~some, np.zeros_like(best.n_iter), best.expected,
            )  # fmt: skip
            _take(best, graph, nothing, ~some)
        arity = np.diff(graph.scope_ptr)
        owner = np.repeat(np.arange(len(some)), np.diff(graph.factor_ptr))
        exact = ~some
        exact |= np.bincount(owner, arity > 1, minlength=len(some)) == 0.0
        return Sums(*best[:3], exact, best.converged, best.n_iter)

    def _risen(
        self, graph: FactorTables, links: Links, forbids: BoolArray, turn: int
    ) -> tuple[MeanFieldSums, BoolArray]:
        """Return where a start leads, and which graphs have values that are allowed."""
        count, n_states = len(graph.factor_ptr) - 1, int(graph.state_ptr[-1])
        sums = MeanFieldSums(
            np.empty(count), np.empty(n_states), np.empty(len(graph.scores)),
            np.empty(count, np.bool_), np.empty(count, np.int64),
            np.empty(graph.sizes.max(initial=1)),
        )  # fmt: skip
        chance = of_states(graph, self.random_state, turn)
        some = np.ones(count, bool)
        sums.marginals[:] = -np.log1p(-chance) if turn else 1.0
        if forbids.any():
            values, some = allowed_values(graph, links, chance if turn else np.zeros(n_states))
            single = np.zeros(n_states)
            single[graph.state_ptr[:-1] + values] = 1.0
            states = np.diff(graph.state_ptr[graph.variable_ptr])
            sums.marginals[:] = np.where(np.repeat(forbids, states), single, sums.marginals)
        totals = np.add.reduceat(np.append(sums.marginals, 0.0), graph.state_ptr[:-1])
        sums.marginals[:] /= np.repeat(totals, graph.sizes)
        ascend(graph, links, float(self.tol), self.max_iter, sums)
        return sums, some


def _take(
    best: MeanFieldSums, graph: FactorTables, other: MeanFieldSums, chosen: BoolArray
) -> None:  # fmt: skip
    """Write what others have found of some graphs."""
    states = np.repeat(chosen, np.diff(graph.state_ptr[graph.variable_ptr]))
    entries = np.repeat(chosen, np.diff(graph.score_ptr[graph.factor_ptr]))
    which: tuple[FloatArray | BoolArray, ...] = (chosen, states, entries, chosen, chosen)
    for own, new, mask in zip(best[:5], other[:5], which, strict=True):
        own[mask] = new[mask]
