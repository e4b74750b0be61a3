"""Generalized and improved iterative scaling."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from crfkit._types import FloatArray, IntArray
from crfkit.objective.batch import Objective
from crfkit.solvers.base import Check, at_least_one
from crfkit.solvers.batch.base import BatchSolver, Point, Vectors
from crfkit.solvers.batch.line_search import ROUNDING

# Newton's iterations for one update: each multiplies exp(T delta) by no less than 1 / e.
NEWTON_STEPS = 100
# What is asked of an objective.
COUNTED = ("value_and_grad", "observed_counts", "expected_counts", "total_counts", "l2")


class Counts:
    """Observed counts, (P,), the total counts that are told apart, (G,), and those of sequences."""

    def __init__(self, observed: FloatArray, levels: FloatArray, level_of: IntArray) -> None:
        self.observed, self.levels, self.level_of = observed, levels, level_of

    def __len__(self) -> int:
        return 0

    def clear(self) -> None:
        """Forget nothing: counts do not depend on the parameters."""

    def add(self, before: Point, after: Point) -> None:
        """Learn nothing from steps."""


def levels_of(totals: FloatArray, most: int) -> tuple[FloatArray, IntArray]:
    """Return the total counts that are told apart, and which of them each sequence has."""
    filled = np.sort(totals[totals > 0.0])
    if not len(filled):
        return np.ones(1), np.zeros(len(totals), np.int64)
    ends = np.linspace(0, len(filled), most + 1)[1:].astype(np.int64) - 1
    levels = np.unique(filled[np.maximum(ends, 0)])
    return levels, np.searchsorted(levels, totals)


def scaled(
    solver: Any, objective: Objective, vectors: Vectors, point: Point, memory: Counts
) -> Point | None:
    """Return the point that an update leads to, or None if it is not better."""
    if len(memory.levels) == 1:
        expected = [point.gradient + memory.observed - 2.0 * objective.l2 * point.w]
    else:
        expected = [
            objective.expected_counts(point.w, memory.level_of == level)
            for level in range(len(memory.levels))
        ]
    counts = np.maximum(np.array(expected), 0.0)
    w = point.w + scaling_update(point.w, memory.observed, counts, memory.levels, objective.l2)
    value, gradient = objective.value_and_grad(w)
    if not value <= point.value + ROUNDING * abs(point.value) or np.array_equal(w, point.w):
        return None
    return Point(1.0, w, value, gradient)


@dataclass(kw_only=True, eq=False, repr=False)
class GIS(BatchSolver):
    """Generalized iterative scaling: algorithm S of Lafferty, McCallum and Pereira (2001).

    Each parameter moves to the maximum of a bound of the likelihood of its own:
    ``S delta = log(observed / expected)``, where S is the largest number of features that a
    labeling of a sequence may have (what a slack feature fills up; its own weight may be left
    out, Curran and Clark 2003). With an L2 penalty the bound is penalized. Exact, and the objective
    never rises, but slow, because S grows with the length of the sequences: for study. Features
    must not be negative.

    Parameters
    ----------
    max_iter, tol, period, gtol
        As for :class:`LBFGS`. The default of `tol` is smaller as steps are.
    """

    requires: ClassVar[tuple[str, ...]] = COUNTED
    needs_of_loss: ClassVar[tuple[str, ...]] = ("is_log_likelihood",)
    needs_known_labels: ClassVar[bool] = True

    max_iter: int = 10_000
    tol: float = 1e-7

    _step = scaled

    def _memory(self, objective: Objective, vectors: Vectors) -> Counts:
        return Counts(objective.observed_counts(), *levels_of(objective.total_counts(), 1))


@dataclass(kw_only=True, eq=False, repr=False)
class IIS(BatchSolver):
    """Improved iterative scaling: algorithm T of Lafferty, McCallum and Pereira (2001).

    As :class:`GIS`, but expected counts are kept by the largest number ``T(x)`` of features of
    their sequence, and the update is the root of a polynomial in ``exp(delta)`` for each
    parameter. Larger steps, at the price of a pass for each number that is told apart. Still slow:
    for study.

    Parameters
    ----------
    max_iter, tol, period, gtol
        As for :class:`GIS`.
    max_levels : int, default=8
        How many values of ``T(x)`` are told apart at most. Others are rounded up, which keeps
        the bound.
    """

    requires: ClassVar[tuple[str, ...]] = COUNTED
    needs_of_loss: ClassVar[tuple[str, ...]] = ("is_log_likelihood",)
    needs_known_labels: ClassVar[bool] = True
    checks: ClassVar[dict[str, Check]] = {"max_levels": at_least_one}

    max_iter: int = 10_000
    tol: float = 1e-7
    max_levels: int = 8

    _step = scaled

    def _memory(self, objective: Objective, vectors: Vectors) -> Counts:
        totals = objective.total_counts()
        return Counts(objective.observed_counts(), *levels_of(totals, self.max_levels))


def scaling_update(
    w: FloatArray, observed: FloatArray, expected: FloatArray, totals: FloatArray, l2: float
) -> FloatArray:
    """Solve ``sum_g expected_g exp(T_g delta) + 2 l2 (w + delta) = observed`` for each parameter.

    By Newton's method from above, which never passes the root. `expected`, (G, P), are counts in
    the sequences of each total count T of `totals`, (G,). ValueError if a root is infinitely far.
    """
    sums = expected.sum(axis=0)
    if l2 == 0.0 and np.any((observed <= 0.0) & (sums > 0.0)):
        raise ValueError(
            "a feature never occurs with its label: without a penalty its weight has no optimum. "
            "Use c2 > 0, or only the features seen in training."
        )
    wanted = observed - 2.0 * l2 * w
    delta = _upper_bound(wanted, expected, totals, l2)
    for _ in range(NEWTON_STEPS):
        # Where nothing is expected the bound does not hold, and the exponential may overflow.
        parts = expected * np.exp(np.where(expected > 0.0, totals[:, None] * delta, 0.0))
        excess = parts.sum(axis=0) + 2.0 * l2 * delta - wanted
        slope = totals @ parts + 2.0 * l2
        change = np.divide(excess, slope, out=np.zeros_like(w), where=slope > 0.0)
        delta -= change
        if np.all(np.abs(change) <= 1e-14 * (np.abs(delta) + 1.0 / totals[-1])):
            break
    return delta


def _upper_bound(
    wanted: FloatArray, expected: FloatArray, totals: FloatArray, l2: float
) -> FloatArray:
    """Return what the roots cannot exceed: where one term alone is too large, or 0."""
    bound = wanted / (2.0 * l2) if l2 else np.full(len(wanted), np.inf)
    for counts, total in zip(expected, totals, strict=True):
        one = np.full(len(wanted), np.inf)
        possible = (counts > 0.0) & (wanted > 0.0)
        one[possible] = (np.log(wanted[possible]) - np.log(counts[possible])) / total
        bound = np.minimum(bound, one)
    rises = wanted > expected.sum(axis=0)
    return np.where(rises & np.isfinite(bound), bound, 0.0)
