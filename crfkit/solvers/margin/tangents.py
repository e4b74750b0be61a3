"""Linear lower bounds of convex losses, and what they say of the optimum."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from crfkit._types import Counts, FloatArray, Potentials
from crfkit.objective.stochastic import StochasticObjective
from crfkit.solvers.base import SolverLog

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


def check_l2(solver: Any, objective: Any) -> None:
    """Raise ValueError if there is no L2 penalty: without one, there is no bound."""
    if not objective.penalty.l2 > 0.0:
        raise ValueError(
            f"solver {type(solver).__name__} needs an L2 penalty, but c2=0. Use solver='sgd'."
        )


def certified_distance(search: Any, value: float) -> tuple[float, float]:
    """Return NaN for the norm of the gradient, and the gap to the `lower_bound` of a search.

    A loss whose values are themselves lower bounds leaves nothing certain: the gap is NaN then.
    """
    gap = certified_gap(value, search.lower_bound)
    return math.nan, gap if has_exact_values(search.batches.loss) else math.nan


def why_certified(search: Any, log: SolverLog, tol: float) -> str | None:
    """Return that the gap is below `tol` times the objective, or None."""
    value = log.history[-1].value
    exact = has_exact_values(search.batches.loss)
    gap = certified_gap(value, search.lower_bound, exact=exact)
    return f"the gap {gap:.3g} is below tol" if gap <= tol * abs(value) else None


def certified_gap(value: float, lower_bound: float, *, exact: bool = True) -> float:
    """Return how far a value is above the optimum at most.

    That includes rounding as far as it is a share of the value. Scores that are much larger than
    the value, as with a weight of the penalty near 0, may be rounded by more. NaN where a bound is
    above a value by more than that, though values are exact.
    """
    if exact and lower_bound - value > IMPOSSIBLE * abs(value):
        return math.nan
    return float(max(value - lower_bound, 0.0) + ROUNDING * abs(value))


def has_exact_values(loss: Any) -> bool:
    """Whether a loss is computed exactly, not from labellings found by an approximate search."""
    return not (loss.rescaling == "slack" and loss.search == "approximate")


def check_convex(solver: Any, objective: Any) -> None:
    """Raise ValueError if the loss of an objective is not convex."""
    name, loss = type(solver).__name__, objective.loss
    if not (loss.is_convex and objective.has_sequence_weights):
        raise ValueError(
            f"solver {name} needs a convex loss, and the same weight for all tokens of a "
            f"sequence; {type(loss).__name__} with these weights is none."
        )
