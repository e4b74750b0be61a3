"""Limited-memory BFGS."""

from __future__ import annotations

import math
from collections import deque
from typing import ClassVar

import numpy as np
from sklearn.base import BaseEstimator

from crfkit._params import check_number, check_whole
from crfkit._types import FloatArray, SolverResult
from crfkit.kernels.vector import vector_add, vector_dot
from crfkit.solvers.base import Callback, SmoothObjective, SolverLog, check_match
from crfkit.solvers.line_search import Point, wolfe_search

# Relative decrease below which a value of this size cannot be told from rounding.
PRECISION = 1e-13
SCALE = "Scale numeric features to about 1, or increase c2"


class LBFGS(BaseEstimator):  # type: ignore[misc]
    """Limited-memory BFGS with a line search for the strong Wolfe conditions.

    Two-loop recursion of Nocedal (1980) with the scaling of Liu and Nocedal (1989).

    Parameters
    ----------
    max_iter : int, default=1000
        Iterations at most.
    tol : float, default=1e-5
        Stop when the value fell by less than this, relatively, over `period` iterations.
    period : int, default=10
        See `tol`.
    gtol : float, default=1e-5
        Stop when the norm of the gradient is below this times the norm of the parameters (or 1).
    memory : int, default=6
        Number of correction pairs.
    max_line_search : int, default=20
        Evaluations in one line search at most.

    Examples
    --------
    >>> from crfkit import CRFClassifier
    >>> from crfkit.solvers import LBFGS
    >>> CRFClassifier(solver=LBFGS(tol=1e-8, max_iter=500))
    CRFClassifier(solver=LBFGS(max_iter=500, tol=1e-08))
    """

    requires: ClassVar[tuple[str, ...]] = ("value_and_grad",)
    handles_l1: ClassVar[bool] = False

    def __init__(
        self,
        *,
        max_iter: int = 1000,
        tol: float = 1e-5,
        period: int = 10,
        gtol: float = 1e-5,
        memory: int = 6,
        max_line_search: int = 20,
    ) -> None:
        self.max_iter = max_iter
        self.tol = tol
        self.period = period
        self.gtol = gtol
        self.memory = memory
        self.max_line_search = max_line_search

    def solve(
        self, objective: SmoothObjective, start: FloatArray, callback: Callback | None = None
    ) -> SolverResult:
        """Minimize an objective.

        Parameters
        ----------
        objective : SmoothObjective
            Value and gradient.
        start : ndarray of shape (P,)
            First parameters; not changed.
        callback : callable, optional
            Called with each record and its parameters; stops the search by returning True.

        Returns
        -------
        SolverResult
            With the parameters of the last finished iteration, also when interrupted by Ctrl-C.

        Raises
        ------
        ValueError
            If a parameter is out of range or the solver does not fit the objective.
        """
        self._check_parameters()
        check_match(self, objective)
        log = SolverLog(objective, callback)
        try:
            return self._iterate(objective, start, log)
        except KeyboardInterrupt:
            if not log.history:
                raise
            return log.result(
                f"interrupted by the user after {log.history[-1].iteration} iterations",
                converged=False,
                interrupted=True,
            )

    def _check_parameters(self) -> None:
        for name, least in (("max_iter", 0), ("period", 1), ("memory", 1), ("max_line_search", 1)):
            check_whole(name, getattr(self, name), least)
        for name in ("tol", "gtol"):
            check_number(name, getattr(self, name))

    def _iterate(
        self, objective: SmoothObjective, start: FloatArray, log: SolverLog
    ) -> SolverResult:
        point = self._start(objective, start)
        pairs = CorrectionPairs(self.memory)
        restarted = 0
        if log.add(point.w, point.value, self._norm(objective, point)):
            return log.result("stopped by a callback", converged=False)
        while True:
            stop = self._why_stop(log, point, restarted)
            if stop is not None:
                return log.result(stop[0], converged=stop[1])
            if log.has_stalled(self.period, self.tol, restarted):
                # A stall far from the optimum: forget the curvature and try once more.
                pairs.clear()
                restarted = len(log.history) - 1
            following = self._step(objective, point, pairs)
            if following is None and pairs:
                pairs.clear()
                following = self._step(objective, point, pairs)
            if following is None:
                return self._no_step(objective, point, log)
            pairs.add(following.w - point.w, following.gradient - point.gradient)
            point = following
            if log.add(point.w, point.value, self._norm(objective, point)):
                return log.result("stopped by a callback", converged=False)

    def _start(self, objective: SmoothObjective, start: FloatArray) -> Point:
        """Return the first point."""
        value, gradient = self._evaluate(objective, start)
        if not math.isfinite(value):
            raise ValueError(f"the objective is {value} at the start; it must be finite.")
        return Point(0.0, start.copy(), value, gradient, 0.0)

    def _evaluate(self, objective: SmoothObjective, w: FloatArray) -> tuple[float, FloatArray]:
        """Return the value to be decreased and the gradient of its differentiable part."""
        return objective.value_and_grad(w)

    def _descent(self, objective: SmoothObjective, point: Point) -> FloatArray:
        """Return the (pseudo-)gradient."""
        return point.gradient

    def _norm(self, objective: SmoothObjective, point: Point) -> float:
        gradient = self._descent(objective, point)
        return math.sqrt(vector_dot(gradient, gradient))

    def _step(
        self, objective: SmoothObjective, point: Point, pairs: CorrectionPairs
    ) -> Point | None:
        """Return the next point, or None if the line search fails."""
        direction = pairs.direction(point.gradient)
        slope = vector_dot(direction, point.gradient)
        if not slope < 0.0:
            return None
        first = 1.0 if pairs else 1.0 / math.sqrt(-slope)
        return wolfe_search(
            lambda w: self._evaluate(objective, w),
            point._replace(step=0.0, slope=slope),
            direction,
            first,
            self.max_line_search,
        )

    def _why_stop(self, log: SolverLog, point: Point, restarted: int) -> tuple[str, bool] | None:
        """Return the reason to stop and whether it is convergence, or None."""
        record = log.history[-1]
        size = max(1.0, math.sqrt(vector_dot(point.w, point.w)))
        if not math.isfinite(record.gradient_norm):
            return f"the gradient is not finite. {SCALE}", False
        if record.gradient_norm <= self.gtol * size:
            return f"the gradient norm {record.gradient_norm:.3g} is below gtol", True
        if log.has_stalled(self.period, self.tol, restarted):
            near = record.gradient_norm * size <= max(1.0, abs(record.value))
            if near:
                return f"the objective fell by less than tol in {self.period} iterations", True
            if restarted:
                return (
                    f"the objective no longer falls at {record.value:.6g}, but its gradient norm "
                    f"is still {record.gradient_norm:.3g}. {SCALE}"
                ), False
        if record.iteration >= self.max_iter:
            return (
                f"max_iter={self.max_iter} iterations were not enough: the objective is "
                f"{record.value:.6g}, the gradient norm {record.gradient_norm:.3g}. Increase "
                "max_iter, or ask for less (larger tol, larger c2)"
            ), False
        return None

    def _no_step(self, objective: SmoothObjective, point: Point, log: SolverLog) -> SolverResult:
        """Return the result where no step decreases the value: at its precision, or stuck."""
        norm = self._norm(objective, point)
        size = max(1.0, math.sqrt(vector_dot(point.w, point.w)))
        if norm * size <= PRECISION**0.5 * max(1.0, abs(point.value)):
            return log.result("no step decreases the objective: rounding errors", converged=True)
        message = (
            f"the line search found no better point in {self.max_line_search} evaluations: the "
            f"objective is {point.value:.6g}, the gradient norm {norm:.3g}. {SCALE}"
        )
        return log.result(message, converged=False)


class CorrectionPairs:
    """The last changes of parameters and gradient, which stand for the inverse Hessian.

    Parameters
    ----------
    memory : int
        How many to keep.
    """

    def __init__(self, memory: int) -> None:
        self._pairs: deque[tuple[FloatArray, FloatArray, float]] = deque(maxlen=memory)

    def __len__(self) -> int:
        return len(self._pairs)

    def clear(self) -> None:
        """Forget all pairs."""
        self._pairs.clear()

    def add(self, step: FloatArray, change: FloatArray) -> None:
        """Keep a pair, unless its curvature is not clearly positive."""
        curvature = vector_dot(step, change)
        if curvature > np.finfo(float).eps * vector_dot(change, change):
            self._pairs.append((step, change, curvature))

    def direction(self, gradient: FloatArray) -> FloatArray:
        """Return ``-H gradient`` by the two-loop recursion."""
        result = -gradient
        if not self._pairs:
            return result
        factors = []
        for step, change, curvature in reversed(self._pairs):
            factor = vector_dot(step, result) / curvature
            vector_add(-factor, change, result)
            factors.append(factor)
        _, change, curvature = self._pairs[-1]
        result *= curvature / vector_dot(change, change)
        for (step, change, curvature), factor in zip(self._pairs, reversed(factors), strict=True):
            vector_add(factor - vector_dot(change, result) / curvature, step, result)
        return result
