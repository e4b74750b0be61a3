"""Newton's method with the Hessian as a matrix, for few parameters."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from crfkit._types import FloatArray
from crfkit.compiler.jit import frozen
from crfkit.kernels.solvers.quadratic import descend_coordinates
from crfkit.objective.batch import Objective
from crfkit.solvers.base import Check, at_least_one
from crfkit.solvers.batch.base import BatchSolver, Point, Vectors
from crfkit.solvers.batch.line_search import ARMIJO, ROUNDING, wolfe_search

# A matrix of more parameters would be too large, and too slow to factor.
MOST_PARAMETERS = 4096
# The matrix is computed before the first step, and after so many more, and twice as many, and so on
# again; each time from at least so many sequences a parameter.
PERIOD, SAMPLE = 4, 3
# Parts of the diagonal that are added to it, the first that makes the matrix positive definite.
RIDGES = (1e-9, 1e-7, 1e-5, 1e-3, 1e-1, 1e1, 1e3)
# The inner problem with an L1 norm: sweeps over all coordinates, and parts of the way from there
# to the minimum over those that are not 0, the first of which that is better is gone.
SWEEPS, SHARES = 200, (1.0, 0.5, 0.25, 0.125)


class DenseCurvature:
    """The Hessian of some step before, and what the steps since then tell (BFGS).

    Without an L1 norm it is factored, and the changes are applied to its inverse, one after the
    other (the two-loop recursion of Nocedal 1980); else the matrix itself is changed. All is said
    in coordinates along `directions`, shape (Q, P), of which no two share a parameter.
    """

    def __init__(self, objective: Objective) -> None:
        self._objective = objective
        self._directions, self._counts, self._l1 = sp.csr_array((0, 0)), np.empty(0), np.empty(0)
        self._steps, self._due, self._period = 0, 0, PERIOD
        self._sequences: int | None = SAMPLE * objective.n_parameters
        self._matrix = np.empty((0, 0))
        self._factor: Any = None
        self._pairs: list[tuple[FloatArray, FloatArray, float]] = []

    def __len__(self) -> int:
        return len(self._pairs)

    def clear(self) -> None:
        """Have the Hessian computed for the next step, from all sequences."""
        self._due, self._sequences = self._steps, None
        self._pairs.clear()

    def add(self, before: Point, after: Point) -> None:
        """Learn from a step, unless its curvature is not clearly positive."""
        self._steps += 1
        step = self._directions @ (after.w - before.w) / self._counts
        change = self._directions @ (after.gradient - before.gradient)
        curvature = float(step @ change)
        if not curvature > 1e-12 * float(change @ change):
            return
        self._pairs.append((step, change, curvature))
        if self._l1.any():
            product = self._matrix @ step
            self._matrix += np.outer(change / curvature, change)
            self._matrix -= np.outer(product / float(step @ product), product)

    def direction(self, point: Point) -> tuple[FloatArray, float]:
        """Return the step to the minimum of the quadratic model, and the linear decrease."""
        if self._steps >= self._due:
            self._due, self._period = self._steps + self._period, 2 * self._period
            self._renew(point.w)
        gradient = self._directions @ point.gradient
        if not self._l1.any():
            step = -self._solve(gradient)
            return self._directions.T @ step, float(gradient @ step)
        w = self._directions @ point.w / self._counts
        model = _ShrunkenModel(*map(frozen, (self._matrix, gradient, w, self._l1)))
        step = model.minimum()
        decrease = float(gradient @ step + self._l1 @ (np.abs(w + step) - np.abs(w)))
        return self._directions.T @ step, decrease

    def _renew(self, w: FloatArray) -> None:
        """Compute the matrix, with a diagonal that is large enough for it to be definite."""
        if not self._steps:
            self._directions = self._objective.directions(w)
            self._counts = abs(self._directions).sum(axis=1)
            self._l1 = self._objective.l1 * self._counts
        found = self._objective.hessian(w, self._directions, self._sequences)
        self._pairs.clear()
        diagonal = np.abs(np.diag(found))
        diagonal = np.maximum(diagonal, 1e-9 * max(float(diagonal.max(initial=0.0)), 1e-100))
        for ridge in RIDGES:
            self._matrix = found.copy()
            self._matrix[np.diag_indices(len(found))] += ridge * diagonal
            with suppress(LinAlgError):
                self._factor = cho_factor(self._matrix, check_finite=False)
                return
        self._matrix = np.diag(np.where(np.isfinite(diagonal), diagonal, 1.0))
        self._factor = cho_factor(self._matrix, check_finite=False)

    def _solve(self, gradient: FloatArray) -> FloatArray:
        factors, left = list[float](), gradient
        for step, change, curvature in reversed(self._pairs):
            factors.append(float(step @ left) / curvature)
            left = left - factors[-1] * change
        found: FloatArray = cho_solve(self._factor, left, check_finite=False)
        for (step, change, curvature), factor in zip(self._pairs, reversed(factors), strict=True):
            found = found + (factor - float(change @ found) / curvature) * step
        return found


class _ShrunkenModel:
    """A quadratic function of a step, plus an L1 norm of the coordinates after it."""

    def __init__(
        self, matrix: FloatArray, gradient: FloatArray, w: FloatArray, l1: FloatArray
    ) -> None:
        self.matrix, self.gradient, self.w, self.l1 = matrix, gradient, w, l1
        self.step, self.product = np.zeros((2, len(w)))

    def minimum(self) -> FloatArray:
        """Return the best step: sweeps find which coordinates are 0, the others are solved for."""
        descend_coordinates(
            self.matrix, self.gradient, self.w, self.l1, SWEEPS, self.product, self.step
        )
        with suppress(LinAlgError):  # where rounding has made the matrix singular
            self._settle()
        return self.step

    def _settle(self) -> None:
        """Go towards the minimum over the free coordinates, as far as that is better."""
        before, value = self.w + self.step, self._value()
        free = np.flatnonzero(before)
        if not len(free):
            return
        signs = np.sign(before[free])
        slope = self.gradient[free] + self.product[free] + self.l1[free] * signs
        factor = cho_factor(self.matrix[np.ix_(free, free)], overwrite_a=True, check_finite=False)
        change = -cho_solve(factor, slope, check_finite=False)
        for share in SHARES:
            old, after = (self.step, self.product), before[free] + share * change
            self.step = self.step.copy()
            self.step[free] = np.where(after * signs <= 0.0, 0.0, after) - self.w[free]
            self.product = self.matrix @ self.step
            if self._value() <= value:
                return
            self.step, self.product = old

    def _value(self) -> float:
        quadratic = (self.gradient + 0.5 * self.product) @ self.step
        return float(quadratic + self.l1 @ np.abs(self.w + self.step))


@dataclass(kw_only=True, eq=False, repr=False)
class DenseNewton(BatchSolver):
    """Newton's method for few parameters, with the whole Hessian; proximal where ``c1 > 0``.

    Every few steps the matrix is computed from a sample of the sequences, at a price of a few
    passes over them; between, it learns from the steps (BFGS; Nocedal and Wright 2006, chapter 6).
    With an L1 norm a step leads to the minimum of the quadratic model plus the norm, by coordinate
    descent (Lee, Sun and Saunders 2014). For a chain whose features are sparse and whose
    transitions share their weights; for other structures the matrix takes a product with the
    Hessian for each parameter.

    Parameters
    ----------
    max_iter, tol, period, gtol
        As for :class:`LBFGS`; the gradient is the pseudo-gradient.
    max_line_search : int, default=20
        Evaluations in one line search at most.
    """

    requires: ClassVar[tuple[str, ...]] = ("value_and_grad", "hessian", "directions")
    needs_of_loss: ClassVar[tuple[str, ...]] = ("is_smooth", "has_hessian")
    handles_l1: ClassVar[bool] = True
    checks: ClassVar[dict[str, Check]] = {"max_line_search": at_least_one}

    max_iter: int = 1000
    tol: float = 1e-6
    period: int = 3
    max_line_search: int = 20

    def _memory(self, objective: Objective, vectors: Vectors) -> DenseCurvature:
        if vectors.size > MOST_PARAMETERS:
            raise ValueError(
                f"solver DenseNewton keeps a matrix of all pairs of parameters, {vectors.size:,} "
                f"of which are too many: at most {MOST_PARAMETERS:,}. Use solver='auto'."
            )
        return DenseCurvature(objective)

    def _step(
        self, objective: Objective, vectors: Vectors, point: Point, memory: DenseCurvature
    ) -> Point | None:
        direction, slope = memory.direction(point)
        if not slope < 0.0:
            return None
        evaluate: Any = partial(self._evaluate, objective, vectors)
        start = point._replace(step=0.0, slope=slope)
        if not objective.l1:
            return wolfe_search(evaluate, vectors, start, direction, 1.0, self.max_line_search)
        step = 1.0
        for _ in range(self.max_line_search):
            w = vectors.step(point.w, step, direction)
            value, gradient = evaluate(w)
            slack = ROUNDING * abs(point.value)
            if value <= point.value + ARMIJO * step * slope + slack:
                return Point(step, w, value, gradient, slope)
            step *= 0.5
        return None
