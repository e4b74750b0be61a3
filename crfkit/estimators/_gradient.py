"""Fitting a linear chain by minimizing a loss and an elastic net."""

from __future__ import annotations

from typing import Any

from crfkit._params import check_number
from crfkit.estimators._solving import SolvedChainClassifier, check_solver, ready_solver
from crfkit.penalties import ElasticNet
from crfkit.solvers import SOLVERS, Solver


class GradientChainClassifier(SolvedChainClassifier):
    """A linear chain whose weights minimize a sum of losses plus ``c1 sum |w| + c2 sum w**2``.

    A subclass has the parameters below and says which loss it is.
    """

    c1: float
    c2: float
    solver: str | Solver

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_number("c1", self.c1)
        check_number("c2", self.c2)
        check_solver(self.solver, SOLVERS)

    def _make_solver(self) -> Any:
        """Return the solver with its number of iterations, and its seed, set."""
        return ready_solver(self.solver, SOLVERS, self.max_iter, self.random_state)

    def _penalty(self) -> ElasticNet:
        return ElasticNet(float(self.c1), float(self.c2))
