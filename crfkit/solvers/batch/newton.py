"""Trust-region Newton with conjugate gradients."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from crfkit._types import FloatArray
from crfkit.objective.batch import Objective
from crfkit.solvers.base import Check, at_least_one
from crfkit.solvers.batch.base import BatchSolver, Point, Vectors
from crfkit.solvers.batch.line_search import ROUNDING

# Share of the predicted decrease that a step must bring, and below or above which the region
# shrinks or grows (Lin, Weng and Keerthi 2008, section 2).
ACCEPT, POOR, GOOD = 1e-4, 0.25, 0.75


@dataclass(kw_only=True, eq=False, repr=False)
class NewtonCG(BatchSolver):
    """Newton's method in a trust region, its equations solved by conjugate gradients.

    Steihaug's (1983) truncated conjugate gradients in the trust region of Lin, Weng and Keerthi
    (2008); the products with the Hessian are those of Tsuboi, Unno, Kashima and Okazaki (2011):
    forward-backward on directional derivatives, which costs more than a gradient. Few steps, each
    of many products: worth it where a very exact optimum is wanted.

    Parameters
    ----------
    max_iter, tol, period, gtol
        As for :class:`LBFGS`; a step that was rejected is no iteration.
    max_products : int, default=100
        Products with the Hessian for one step at most.
    """

    requires: ClassVar[tuple[str, ...]] = ("value_and_grad", "hessian_product")
    needs_of_loss: ClassVar[tuple[str, ...]] = ("is_smooth", "has_hessian")

    checks: ClassVar[dict[str, Check]] = {"max_products": at_least_one}

    max_iter: int = 200
    tol: float = 1e-6
    period: int = 2
    max_products: int = 100

    def _memory(self, objective: Objective, vectors: Vectors) -> TrustRegion:
        return TrustRegion()

    def _step(
        self, objective: Objective, vectors: Vectors, point: Point, memory: TrustRegion
    ) -> Point | None:
        norm = vectors.size_of(point.gradient)[0]
        memory.start(norm)
        while True:
            step, residual = self._truncated_cg(objective, vectors, point, memory)
            length = vectors.size_of(step)[0]
            slope = vectors.dot(point.gradient, step)
            predicted = -0.5 * (slope - vectors.dot(step, residual))
            w = vectors.step(point.w, 1.0, step)
            if not predicted > 0.0 or np.array_equal(w, point.w):
                return None
            value, gradient = objective.value_and_grad(w)
            slack = ROUNDING * abs(point.value)
            memory.adapt(point.value - value + slack, predicted, slope, length)
            if point.value - value + slack > ACCEPT * predicted:
                return Point(1.0, w, value, gradient, slope)

    def _truncated_cg(
        self, objective: Objective, vectors: Vectors, point: Point, memory: TrustRegion
    ) -> tuple[FloatArray, FloatArray]:
        """Solve ``H step = -gradient`` inside the region; returns the step and the residual."""
        radius = memory.radius
        step, residual = np.zeros(vectors.size), -point.gradient
        direction = residual.copy()
        square = vectors.dot(residual, residual)
        wanted = memory.forcing * math.sqrt(square)
        for _ in range(self.max_products):
            if math.sqrt(square) <= wanted:
                break
            product = objective.hessian_product(point.w, direction)
            curvature = vectors.dot(direction, product)
            factor = square / curvature if curvature > 0.0 else math.inf
            ahead = step if math.isinf(factor) else vectors.step(step, factor, direction)
            if math.isinf(factor) or vectors.size_of(ahead)[0] >= radius:
                factor = _to_border(vectors, step, direction, radius)
                step = vectors.step(step, factor, direction)
                return step, vectors.step(residual, -factor, product)
            step = ahead
            residual = vectors.step(residual, -factor, product)
            before, square = square, vectors.dot(residual, residual)
            direction = vectors.step(residual, square / before, direction)
        return step, residual


class TrustRegion:
    """How far the quadratic model is trusted, and how exactly it is worth solving."""

    def __init__(self) -> None:
        self.radius = 0.0
        self.forcing = 0.1
        self._first_norm = 0.0

    def __len__(self) -> int:
        return int(self.radius > 0.0)

    def clear(self) -> None:
        """Forget the radius."""
        self.radius = 0.0

    def start(self, norm: float) -> None:
        """Prepare a step at a gradient of this norm: more exact the nearer the optimum."""
        self._first_norm = self._first_norm or norm
        self.radius = self.radius or norm
        self.forcing = min(0.1, math.sqrt(norm / self._first_norm)) if norm else 0.1

    def add(self, before: Point, after: Point) -> None:
        """Learn nothing more: the radius was adapted when the step was made."""

    def adapt(self, actual: float, predicted: float, slope: float, length: float) -> None:
        """Set the radius by how good the prediction was (Lin, Weng and Keerthi 2008, eq. 9)."""
        if not math.isfinite(actual):
            self.radius = 0.25 * min(length, self.radius)
            return
        rest = -actual - slope  # of the actual change, beyond the linear one
        factor = 4.0 if rest <= 0.0 else max(0.25, -0.5 * slope / rest)
        if actual < ACCEPT * predicted:
            self.radius = min(max(factor, 0.25) * length, 0.5 * self.radius)
        elif actual < POOR * predicted:
            self.radius = max(0.25 * self.radius, min(factor * length, 0.5 * self.radius))
        elif actual < GOOD * predicted:
            self.radius = max(0.25 * self.radius, min(factor * length, 4.0 * self.radius))
        else:
            self.radius = max(self.radius, min(factor * length, 4.0 * self.radius))


def _to_border(vectors: Vectors, step: FloatArray, direction: FloatArray, radius: float) -> float:
    """Return the positive root of ``|step + factor direction| = radius``."""
    across, square = vectors.dot(step, direction), vectors.dot(direction, direction)
    inside = max(radius * radius - vectors.dot(step, step), 0.0)
    root = math.sqrt(across * across + square * inside)
    return inside / (across + root) if across >= 0.0 else (root - across) / square
