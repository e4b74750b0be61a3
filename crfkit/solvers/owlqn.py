"""Orthant-wise limited-memory quasi-Newton, for L1 penalties."""

from __future__ import annotations

import math
from typing import ClassVar

import numpy as np

from crfkit._types import FloatArray
from crfkit.kernels.vector import vector_dot
from crfkit.solvers.base import SmoothObjective
from crfkit.solvers.lbfgs import LBFGS, CorrectionPairs
from crfkit.solvers.line_search import Point, orthant_search


class OWLQN(LBFGS):
    """Orthant-wise limited-memory quasi-Newton method (Andrew and Gao 2007).

    Minimizes a differentiable function plus ``c1 sum |w|``; many parameters end at exactly 0.

    Parameters
    ----------
    max_iter, period, gtol, memory, max_line_search
        As for :class:`LBFGS`; the gradient is the pseudo-gradient.
    tol : float, default=5e-6
        As for :class:`LBFGS`. Smaller, because the decrease slows down earlier before the end.
    """

    handles_l1: ClassVar[bool] = True

    def __init__(
        self,
        *,
        max_iter: int = 1000,
        tol: float = 5e-6,
        period: int = 10,
        gtol: float = 5e-6,
        memory: int = 6,
        max_line_search: int = 20,
    ) -> None:
        super().__init__(
            max_iter=max_iter, tol=tol, period=period, gtol=gtol, memory=memory,
            max_line_search=max_line_search,
        )  # fmt: skip

    def _evaluate(self, objective: SmoothObjective, w: FloatArray) -> tuple[float, FloatArray]:
        value, gradient = objective.value_and_grad(w)
        return value + objective.l1 * float(np.abs(w).sum()), gradient

    def _descent(self, objective: SmoothObjective, point: Point) -> FloatArray:
        return pseudo_gradient(point.w, point.gradient, objective.l1)

    def _step(
        self, objective: SmoothObjective, point: Point, pairs: CorrectionPairs
    ) -> Point | None:
        descent = self._descent(objective, point)
        direction = pairs.direction(descent)
        direction[direction * descent >= 0.0] = 0.0
        slope = vector_dot(direction, descent)
        if not slope < 0.0:
            return None
        return orthant_search(
            lambda w: self._evaluate(objective, w),
            point,
            descent,
            direction,
            1.0 if pairs else 1.0 / math.sqrt(-slope),
            self.max_line_search,
            # The first step has no curvature to tell its length: it may be far too long.
            shrink=0.5 if pairs else 0.1,
        )


def pseudo_gradient(w: FloatArray, gradient: FloatArray, l1: float) -> FloatArray:
    """Return the one-sided derivative of steepest descent (Andrew and Gao 2007, equation 4).

    Parameters
    ----------
    w : ndarray of shape (P,)
        Parameters.
    gradient : ndarray of shape (P,)
        Gradient of the differentiable part.
    l1 : float
        Weight of the L1 norm.
    """
    at_zero = np.sign(gradient) * np.maximum(np.abs(gradient) - l1, 0.0)
    return np.where(w != 0.0, gradient + l1 * np.sign(w), at_zero)
