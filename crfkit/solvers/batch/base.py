"""What all solvers share that look at the whole data before each step."""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import Any, ClassVar, Protocol

from crfkit._params import check_number, check_whole
from crfkit._types import FloatArray, SolverResult
from crfkit.solvers.base import Callback, SmoothObjective, Solver, SolverLog, check_match
from crfkit.solvers.batch.line_search import Point
from crfkit.solvers.batch.vectors import Vectors

# Relative decrease below which a value of this size cannot be told from rounding.
PRECISION = 1e-13
SCALE = "Scale numeric features to about 1, or increase c2"


class Memory(Protocol):
    """What a method remembers of the steps before."""

    def __len__(self) -> int:
        """Return 0 where there is nothing to forget."""

    def clear(self) -> None:
        """Forget all."""

    def add(self, before: Point, after: Point) -> None:
        """Learn from a step."""


class BatchSolver(Solver):
    """An iteration from point to point that stops by the value and the gradient.

    A subclass has the parameters `max_iter`, `tol`, `period` and `gtol` (see
    :class:`~crfkit.solvers.LBFGS`), says what it remembers, and makes one step.
    """

    needs_of_loss: ClassVar[tuple[str, ...]] = ("is_smooth",)
    # Whether the value may rise for a while: it has stalled where it neither rises nor falls.
    may_rise: ClassVar[bool] = False

    max_iter: int
    tol: float
    period: int
    gtol: float

    def solve(
        self, objective: SmoothObjective, start: FloatArray, callback: Callback | None = None
    ) -> SolverResult:
        """Minimize an objective.

        Parameters
        ----------
        objective : SmoothObjective
            With the methods that the solver requires.
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
        return log.guard(lambda: self._iterate(objective, start, log))

    def _check_parameters(self) -> None:
        for name, least in (("max_iter", 0), ("period", 1)):
            check_whole(name, getattr(self, name), least)
        for name in ("tol", "gtol"):
            check_number(name, getattr(self, name))
        self._check_own_parameters()

    def _check_own_parameters(self) -> None:
        """Raise ValueError if a parameter that other methods do not have is out of range."""

    @abstractmethod
    def _memory(self, objective: Any, vectors: Vectors) -> Memory:
        """Return the empty memory of the method."""

    @abstractmethod
    def _step(self, objective: Any, vectors: Vectors, point: Point, memory: Any) -> Point | None:
        """Return the next point, or None if there is none that is better."""

    def _evaluate(
        self, objective: SmoothObjective, vectors: Vectors, w: FloatArray
    ) -> tuple[float, FloatArray]:
        """Return the value to be decreased and the gradient of its differentiable part."""
        value, gradient = objective.value_and_grad(w)
        return value + vectors.l1_value(w, objective.l1), gradient

    def _descent(
        self, objective: SmoothObjective, vectors: Vectors, w: FloatArray, gradient: FloatArray
    ) -> FloatArray:
        """Return the (pseudo-)gradient."""
        return vectors.descent(w, gradient, objective.l1)

    def _iterate(
        self, objective: SmoothObjective, start: FloatArray, log: SolverLog
    ) -> SolverResult:
        vectors = Vectors(objective, len(start))
        point = self._start(objective, vectors, start)
        memory = self._memory(objective, vectors)
        restarted = 0
        if self._note(vectors, point, log):
            return log.result("stopped by a callback", converged=False)
        while True:
            stop = self._why_stop(log, vectors, point, restarted)
            if stop is not None:
                return log.result(stop[0], converged=stop[1])
            if self._has_stalled(log, restarted):
                # A stall far from the optimum: forget the curvature and try once more.
                memory.clear()
                restarted = len(log.history) - 1
            following = self._step(objective, vectors, point, memory)
            if following is None and memory:
                memory.clear()
                following = self._step(objective, vectors, point, memory)
            if following is None:
                return self._no_step(vectors, point, log)
            following = self._complete(objective, vectors, following)
            memory.add(point, following)
            point = following
            if self._note(vectors, point, log):
                return log.result("stopped by a callback", converged=False)

    def _start(self, objective: SmoothObjective, vectors: Vectors, start: FloatArray) -> Point:
        """Return the first point."""
        value, gradient = self._evaluate(objective, vectors, start)
        if not math.isfinite(value):
            raise ValueError(f"the objective is {value} at the start; it must be finite.")
        point = Point(0.0, start.copy(), value, gradient, 0.0)
        return self._complete(objective, vectors, point)

    def _complete(self, objective: SmoothObjective, vectors: Vectors, point: Point) -> Point:
        """Return a point with its descent."""
        descent = self._descent(objective, vectors, point.w, point.gradient)
        return point._replace(descent=descent)

    def _note(self, vectors: Vectors, point: Point, log: SolverLog) -> bool:
        """Write an iteration to the log; returns whether the callback asks to stop."""
        return log.add(point.w, point.value, vectors.size_of(point.descent)[0])

    def _why_stop(
        self, log: SolverLog, vectors: Vectors, point: Point, restarted: int
    ) -> tuple[str, bool] | None:
        """Return the reason to stop and whether it is convergence, or None."""
        record = log.history[-1]
        size = max(1.0, vectors.size_of(point.w)[0])
        if not math.isfinite(record.gradient_norm):
            return f"the gradient is not finite. {SCALE}", False
        if record.gradient_norm <= self.gtol * size:
            return f"the gradient norm {record.gradient_norm:.3g} is below gtol", True
        if self._has_stalled(log, restarted):
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

    def _has_stalled(self, log: SolverLog, since: int) -> bool:
        """Whether the objective changed too little, in the iterations from `since` on."""
        if not self.may_rise:
            return log.has_stalled(self.period, self.tol, since)
        last = [record.value for record in log.history[since:][-self.period - 1 :]]
        return len(last) > self.period and max(last) - min(last) < self.tol * abs(last[-1])

    def _no_step(self, vectors: Vectors, point: Point, log: SolverLog) -> SolverResult:
        """Return the result where no step decreases the value: at its precision, or stuck."""
        norm = log.history[-1].gradient_norm
        size = max(1.0, vectors.size_of(point.w)[0])
        if norm * size <= PRECISION**0.5 * max(1.0, abs(point.value)):
            return log.result("no step decreases the objective: rounding errors", converged=True)
        message = (
            f"no step was found that decreases the objective: it is {point.value:.6g}, the "
            f"gradient norm {norm:.3g}. {SCALE}"
        )
        return log.result(message, converged=False)
