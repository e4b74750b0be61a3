"""Fitting a linear chain by minimizing a loss and an elastic net."""

from __future__ import annotations

import copy
from typing import Any

from crfkit._params import check_method, check_number, check_option
from crfkit.estimators._solving import SolvedChainClassifier, check_solver, ready_solver
from crfkit.estimators._training import TrainingData
from crfkit.losses import LOSSES, Loss
from crfkit.objective.penalties import ElasticNet
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


class LossChainClassifier(GradientChainClassifier):
    """Such a model with a loss that the user chooses, and a cost.

    A subclass has the parameters below.
    """

    loss: str | Loss
    cost: Any

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if isinstance(self.loss, str):
            check_option("loss", self.loss, LOSSES)
        else:
            check_method("loss", self.loss, "value_and_grad")
        if isinstance(self.cost, str):
            check_option("cost", self.cost, ("hamming", "zero_one"))

    def _loss(self, training: TrainingData) -> Loss:
        found: Loss = LOSSES[self.loss]() if isinstance(self.loss, str) else self.loss
        if not getattr(found, "takes_cost", False):
            return found
        loss: Any = copy.copy(found)
        cost = self.cost if isinstance(self.loss, str) else loss.cost
        loss.cost = cost if hasattr(cost, "total") else training.cost(cost)
        with_cost: Loss = loss
        return with_cost
