"""A solver: steepest descent with the step lengths of Barzilai and Borwein."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from crfkit._types import FloatArray, SolverResult
from crfkit.solvers.base import Callback, Solver, SolverLog, check_match


class GradientDescent(Solver):
    """Steps along the negative gradient, as long as the last two points tell (Barzilai, Borwein).

    A step is halved until it decreases the objective enough (Armijo 1966), so that the objective
    never rises (Barzilai and Borwein 1988, equation 5, with Raydan 1997).

    Parameters
    ----------
    max_iter : int, default=1000
        Iterations at most.
    tol : float, default=1e-6
        Stop where the objective fell by less than this, relatively, over ten iterations.
    gtol : float, default=1e-5
        Stop where the norm of the gradient is below this, times the norm of the parameters.
    """

    needs_of_loss: ClassVar[tuple[str, ...]] = ("is_smooth",)

    def __init__(self, max_iter: int = 1000, tol: float = 1e-6, gtol: float = 1e-5) -> None:
        self.max_iter = max_iter
        self.tol = tol
        self.gtol = gtol

    def solve(
        self, objective: Any, start: FloatArray, callback: Callback | None = None
    ) -> SolverResult:
        """Minimize an objective."""
        check_match(self, objective)
        log = SolverLog(objective, callback)
        return log.guard(lambda: self._descend(objective, start.copy(), log))

    def _descend(self, objective: Any, w: FloatArray, log: SolverLog) -> SolverResult:
        value, gradient = objective.value_and_grad(w)
        length = 1.0 / max(1.0, float(np.linalg.norm(gradient)))
        while not log.add(w, value, float(np.linalg.norm(gradient))):
            norm, size = log.history[-1].gradient_norm, max(1.0, float(np.linalg.norm(w)))
            if norm <= self.gtol * size:
                return log.result("the gradient norm is below gtol", converged=True)
            if self.tol > 0.0 and log.has_stalled(10, self.tol):
                return log.result("the objective fell by less than tol", converged=True)
            if log.history[-1].iteration >= self.max_iter:
                message = f"max_iter={self.max_iter} iterations were not enough"
                return log.result(message, converged=False)
            following = self._search(objective, w, value, gradient, length)
            if following is None:
                return log.result("no step decreases the objective", converged=True)
            value, moved, slope = following
            step, change = moved - w, slope - gradient
            w, gradient = moved, slope
            curvature = float(step @ change)
            length = float(step @ step) / curvature if curvature > 0.0 else 2.0 * length
        return log.result("stopped by a callback", converged=False)

    def _search(
        self, objective: Any, w: FloatArray, value: float, gradient: FloatArray, length: float
    ) -> tuple[float, FloatArray, FloatArray] | None:
        """Return the value, the point and its gradient after a step; None if there is none."""
        square = float(gradient @ gradient)
        for _ in range(60):
            moved = w - length * gradient
            found, slope = objective.value_and_grad(moved)
            if np.isfinite(found) and found <= value - 1e-4 * length * square:
                return found, moved, slope
            length *= 0.5
        return None
