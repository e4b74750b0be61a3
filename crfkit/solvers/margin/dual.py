"""What solvers share that hold a distribution of labellings for each sequence of a margin loss."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np

from crfkit._types import FloatArray, Potentials
from crfkit.compiler.jit import frozen
from crfkit.kernels.solvers.vector import vector_dot
from crfkit.labels.costs import find_cost
from crfkit.solvers.margin.tangents import certified_distance, check_l2
from crfkit.solvers.stochastic.base import Search


def check_dual(solver: Any, objective: Any) -> None:
    """Raise ValueError if an objective is no margin whose dual is one of tokens' labels."""
    check_l2(solver, objective)
    name, loss = type(solver).__name__, objective.loss
    if not loss.is_hinge or loss.rescaling != "margin":
        rescaled = loss.rescaling
        raise ValueError(
            f"solver {name} needs the hinge loss with margin rescaling, not "
            f"{type(loss).__name__}{f' with {rescaled} rescaling' if rescaled else ''}. Use "
            "another solver."
        )
    if not find_cost(loss.cost, objective.model.n_codes).is_additive:
        raise ValueError(
            f"solver {name} needs a cost that is a sum over tokens: cost='hamming', a dict or "
            "a matrix. Use another solver for this cost."
        )


class DualSearch(Search):
    """The dual problem of a margin, and where a method has got to in it.

    For ``sum_i v_i max_y (cost_i(y) + w (f_i(y) - f_i(y_i))) + c2 |w|^2`` it is to maximize
    ``sum_i v_i E_i cost_i(y) - c2 |w|^2`` with ``w = sum_i v_i (f_i(y_i) - E_i f_i(y)) / (2 c2)``
    over the distributions that the means ``E_i`` are taken of (Taskar, Guestrin and Koller 2003,
    section 3; equations 43 to 45 of Gupta's report on conditional random fields). ValueError if
    scores have a part that is not learned.
    """

    def __init__(self, batches: Any) -> None:
        if not batches.structure.has_only_hard_constraints:
            raise ValueError(
                "this solver needs scores that are sums of weights, but those of lengths have a "
                "fixed part, as with length='poisson'. Use solver='bcfw', or other lengths."
            )
        self.batches = batches
        self.cost: Any = find_cost(batches.loss.cost, batches.model.n_codes)

    @property
    def c2(self) -> float:
        """Weight of the squared norm."""
        return float(self.batches.penalty.l2)

    def augmented(self, bound: Any, index: int) -> Potentials:
        """Return the scores of a batch with the costs added: the gradient of the dual."""
        scores: Potentials = self.batches.scores(bound, index)
        return scores.plus_unary(self.cost.added(self.batches.labels(index)))

    @abstractmethod
    def expected_cost(self) -> float:
        """Return the expected cost of all sequences, weighted."""

    @abstractmethod
    def squared_norm(self) -> float:
        """Return the squared norm of the weights."""

    def distance(self, value: float) -> tuple[float, float]:
        """Return NaN for the norm of the gradient, and the gap."""
        return certified_distance(self, value)

    @property
    def lower_bound(self) -> float:
        """The dual: no parameters have a smaller objective."""
        return self.expected_cost() - self.c2 * self.squared_norm()


def inner(a: FloatArray, b: FloatArray) -> float:
    """Return the inner product of two arrays of one shape, added up in one order."""
    return vector_dot(frozen(np.ravel(a)), frozen(np.ravel(b)))
