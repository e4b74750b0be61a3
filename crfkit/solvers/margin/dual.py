"""What solvers share that hold a distribution of labellings for each sequence of a margin loss."""

from __future__ import annotations

from typing import Any

import numpy as np

from crfkit._types import FloatArray, Potentials
from crfkit.compiler.jit import frozen
from crfkit.kernels.solvers.vector import vector_dot
from crfkit.labels.costs import find_cost
from crfkit.losses.margin import HingeLoss
from crfkit.solvers.margin.tangents import CertifiedSolver


class DualMarginSolver(CertifiedSolver):
    """Passes over sequences, each of which raises the dual of a margin; a subclass says how."""

    # Each sequence is a batch, and they are visited one after the other.
    batch_tokens = 1
    batches_per_update = 1

    def _check_objective(self, objective: Any) -> None:
        super()._check_objective(objective)
        name, loss = type(self).__name__, objective.loss
        if type(loss) is not HingeLoss or loss.rescaling != "margin":
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


class DualSearch:
    """The dual problem of a margin, and where a method has got to in it.

    For ``sum_i v_i max_y (cost_i(y) + w (f_i(y) - f_i(y_i))) + c2 |w|^2`` it is to maximize
    ``sum_i v_i E_i cost_i(y) - c2 |w|^2`` with ``w = sum_i v_i (f_i(y_i) - E_i f_i(y)) / (2 c2)``
    over the distributions that the means ``E_i`` are taken of (Taskar, Guestrin and Koller 2003,
    section 3; equations 43 to 45 of Gupta's report on conditional random fields).

    Parameters
    ----------
    batches : StochasticObjective
        The data.

    Raises
    ------
    ValueError
        If scores have a part that is not learned.
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

    def weights(self) -> FloatArray:
        """Return the parameters, a new array."""
        raise NotImplementedError

    def expected_cost(self) -> float:
        """Return the expected cost of all sequences, weighted."""
        raise NotImplementedError

    @property
    def square(self) -> float:
        """The squared norm of the weights."""
        w = frozen(self.weights())
        return vector_dot(w, w)

    @property
    def lower_bound(self) -> float:
        """The dual: no parameters have a smaller objective."""
        return self.expected_cost() - self.c2 * self.square


def inner(a: FloatArray, b: FloatArray) -> float:
    """Return the inner product of two arrays of one shape, added up in one order."""
    return vector_dot(frozen(np.ravel(a)), frozen(np.ravel(b)))
