"""Bounds of the optimum that solvers of margins have in common: by tangents, and by the dual."""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import Any, NamedTuple, cast

import numpy as np

from crfkit._types import Counts, FloatArray, Potentials
from crfkit.compiler.jit import frozen
from crfkit.kernels.solvers.vector import vector_dot
from crfkit.labels.costs import find_cost
from crfkit.losses import HingeLoss
from crfkit.objective.batch import Objective
from crfkit.objective.stochastic import StochasticObjective
from crfkit.solvers.base import SolverLog, check_convex_sums
from crfkit.solvers.stochastic.base import Search
from crfkit.structures import Capability

# How far rounding may take bounds from what they are, as a share of the objective; a bound that is
# above the objective by more than the second share is none.
ROUNDING, IMPOSSIBLE = 1e-11, 1e-6


class Tangent(NamedTuple):
    """A batch at some parameters: ``loss(w) >= offset + gradient . w`` over its places, (n,)."""

    value: float
    offset: float
    gradient: FloatArray


def tangent(batches: StochasticObjective, bound: Any, scale: float, index: int) -> Tangent:
    """Return the tangent of the loss of a batch at ``scale`` times some bound parameters."""
    scores = batches.scores(bound, index)
    scores = scores.with_arrays(*(scale * array for array in scores.arrays()))
    value, residual = batches.value_and_residual(scores, index)
    return Tangent(value, value - _inner(scores, residual), batches.gradient(index, residual))


def _inner(scores: Potentials, residual: Counts) -> float:
    """Return the inner product of scores, of which some may be ``-inf``, and a gradient to them."""
    pairs = ((scores.unary, residual.unary), (scores.pair, residual.pair))
    return float(sum(np.sum(a[b != 0.0] * b[b != 0.0]) for a, b in pairs))


def check_l2(solver: Any, objective: Objective) -> None:
    """Raise ValueError if there is no L2 penalty: without one, there is no bound."""
    if not objective.penalty.l2 > 0.0:
        raise ValueError(
            f"solver {type(solver).__name__} needs an L2 penalty, but c2=0. Use solver='sgd'."
        )


def certified_distance(search: Any, value: float) -> tuple[float, float]:
    """Return NaN for the gradient norm, and the gap to `lower_bound`, NaN for an inexact loss."""
    gap = certified_gap(value, search.lower_bound)
    return math.nan, gap if has_exact_values(search.batches) else math.nan


def why_certified(solver: Any, search: Any, w: FloatArray, log: SolverLog) -> str | None:
    """Return that the gap is below `tol` times the objective, or None."""
    value = log.history[-1].value
    exact = has_exact_values(search.batches)
    gap = certified_gap(value, search.lower_bound, exact=exact)
    note = "" if exact else ", as far as searches have found labelings"
    return f"the gap {gap:.3g} is below tol{note}" if gap <= solver.tol * abs(value) else None


def certified_gap(value: float, lower_bound: float, *, exact: bool = True) -> float:
    """Return how far a value is above the optimum at most, with rounding as a share of it.

    NaN where a bound is clearly above an exact value: of scores much larger than that.
    """
    if exact and lower_bound - value > IMPOSSIBLE * abs(value):
        return math.nan
    return float(max(value - lower_bound, 0.0) + ROUNDING * abs(value))


def has_exact_values(objective: Any) -> bool:
    """Whether a loss is computed exactly, not from labelings found by an approximate search."""
    bounded = Capability.BOUNDED_SEARCH in objective.structure.capabilities
    return not (bounded or misses_labelings(objective.loss))


def misses_labelings(loss: Any) -> bool:
    """Whether a loss has an approximate search of its own."""
    return bool(loss.rescaling == "slack" and loss.search == "approximate")


def check_convex(solver: Any, objective: Objective) -> None:
    """Raise ValueError if the loss of an objective is not convex."""
    name, loss = type(solver).__name__, type(objective.loss).__name__
    check_convex_sums(solver, objective)
    if not (objective.has_convex_loss and objective.has_sequence_weights):
        raise ValueError(
            f"solver {name} needs a convex loss, and the same weight for all tokens of a "
            f"sequence; {loss} with these weights is none."
        )


def check_dual(solver: Any, objective: Objective) -> None:
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
    if not find_cost(cast(HingeLoss, loss).cost, objective.model.n_codes).is_additive:
        raise ValueError(
            f"solver {name} needs a cost that is a sum over tokens: cost='hamming', a dict or "
            "a matrix. Use another solver for this cost."
        )


def check_fixed(structure: Any) -> None:
    """Raise ValueError if scores have a part that is not learned."""
    if not structure.has_only_hard_constraints:
        raise ValueError(
            "this solver needs scores that are sums of weights, but those of lengths have a "
            "fixed part, as with length='poisson'. Use solver='bcfw', or other lengths."
        )


class DualSearch(Search):
    """The dual problem of a margin, and the parameters `w` that a method has got to in it.

    For ``sum_i v_i max_y (cost_i(y) + w (f_i(y) - f_i(y_i))) + c2 |w|^2`` it is to maximize
    ``sum_i v_i E_i cost_i(y) - c2 |w|^2`` with ``w = sum_i v_i (f_i(y_i) - E_i f_i(y)) / (2 c2)``
    over the distributions that the means ``E_i`` are taken of (Taskar, Guestrin and Koller 2003,
    section 3; equations 43 to 45 of Gupta's report on conditional random fields).
    """

    distance = certified_distance

    def __init__(self, batches: Any) -> None:
        check_fixed(batches.structure)
        self.batches, self.w = batches, np.zeros(batches.n_parameters)
        self.c2 = float(batches.penalty.l2)
        self.cost: Any = find_cost(batches.loss.cost, batches.model.n_codes)

    @abstractmethod
    def expected_cost(self) -> float:
        """Return the expected cost of all sequences, weighted."""

    def augmented(self, bound: Any, index: int) -> Potentials:
        """Return the scores of a batch with the costs added: the gradient of the dual."""
        scores: Potentials = self.batches.scores(bound, index)
        return scores.plus_unary(self.cost.added(self.batches.labels(index)))

    def weights(self) -> FloatArray:
        """Return the parameters, a new array."""
        return self.w.copy()

    def evaluate(self, w: FloatArray) -> tuple[FloatArray, float]:
        """Return the parameters and the objective there."""
        return w, float(self.batches.value(w))

    @property
    def lower_bound(self) -> float:
        """The dual: no parameters have a smaller objective."""
        return self.expected_cost() - self.c2 * inner(self.w, self.w)


def inner(a: FloatArray, b: FloatArray) -> float:
    """Return the inner product of two arrays of one shape, added up in one order."""
    return vector_dot(frozen(np.ravel(a)), frozen(np.ravel(b)))
