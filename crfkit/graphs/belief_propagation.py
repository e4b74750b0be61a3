"""Loopy belief propagation."""

from __future__ import annotations

from typing import ClassVar

from crfkit._params import check_number, check_option, check_whole
from crfkit.graphs.links import links_of, propagated
from crfkit.graphs.methods import NONE, SumMethod, Sums
from crfkit.kernels.graph.arrays import FactorTables
from crfkit.kernels.graph.messages import Schedule

SCHEDULES = ("residual", "sweeps")


class BeliefPropagation(SumMethod):
    """Messages that factors send to their variables until they settle (Pearl 1988).

    Exact on forests, where two sweeps are enough. On graphs with cycles messages may not settle;
    where they do, log Z and marginals may still be far off, and nothing tells: log Z is minus the
    free energy of Bethe at a fixed point (Yedidia, Freeman and Weiss 2005), no bound. Values that
    messages forbid are forbidden, and where all of a variable are, no combination is allowed.

    Parameters
    ----------
    damping : float, default=0.0
        The share of the old message in a new one, in logarithms; below 1. It may help where
        messages do not settle.
    max_iter : int, default=500
        The largest number of sweeps, or of as many single messages.
    tol : float, default=1e-9
        Messages have settled when none would change by more: logarithms, large ones in
        proportion.
    schedule : {"residual", "sweeps"}, default="residual"
        Which message is sent next: the one that would change most (Elidan, McGraw and Koller 2006),
        or all in turn, backwards and forwards, along an order that is breadth first.

    Examples
    --------
    >>> from crfkit.graphs.belief_propagation import BeliefPropagation
    >>> from crfkit.graphs.tables import factor_tables
    >>> agree = [[1.0, 0.0], [0.0, 1.0]]
    >>> ring = factor_tables([2, 2, 2], [[0, 1], [1, 2], [2, 0], [0]], [agree] * 3 + [[0.0, 1.0]])
    >>> sums = BeliefPropagation().sums(ring)
    >>> sums.marginals[:2].round(3), sums.exact, sums.converged
    (array([0.232, 0.768]), array([False]), array([ True]))
    """

    bound: ClassVar[str] = NONE

    def __init__(
        self,
        damping: float = 0.0,
        max_iter: int = 500,
        tol: float = 1e-9,
        schedule: str = "residual",
    ) -> None:
        self.damping = damping
        self.max_iter = max_iter
        self.tol = tol
        self.schedule = schedule

    def sums(self, graph: FactorTables) -> Sums:
        """Return log Z and the marginals; exact on forests."""
        check_number("damping", self.damping)
        if self.damping >= 1.0:
            raise ValueError(f"damping={self.damping!r} must be below 1.")
        check_whole("max_iter", self.max_iter, 1)
        check_number("tol", self.tol)
        check_option("schedule", self.schedule, SCHEDULES)
        way = Schedule(
            self.schedule == "residual", float(self.damping), False, float(self.tol), self.max_iter
        )
        return propagated(graph, links_of(graph), way)[0]
