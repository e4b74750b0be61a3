"""What all solvers share that look at the whole data before each step."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, Protocol

import numpy as np

from crfkit._parallel import Result, ThreadMap
from crfkit._params import check_number, check_whole
from crfkit._types import ByteArray, FloatArray, IterationRecord, SolverResult
from crfkit.compiler.jit import frozen
from crfkit.kernels.solvers import vector as kernels
from crfkit.objective.batch import Objective
from crfkit.objective.penalties import within_bounds
from crfkit.solvers.base import (
    Callback,
    Check,
    Solver,
    SolverLog,
    at_least_one,
    check_match,
    optional_count,
)

# Relative decrease below which a value of this size cannot be told from rounding.
PRECISION = 1e-13
# Checks of the parameters of all methods.
CHECKS: dict[str, Check] = {
    "max_iter": check_whole,
    "tol": check_number,
    "period": at_least_one,
    "gtol": check_number,
}
# Of those that learn the curvature from some steps, and search along lines.
QUASI_NEWTON: dict[str, Check] = {"memory": optional_count, "max_line_search": at_least_one}
# A stall is the optimum if the norms of gradient and parameters have a product below this part of
# the value, or if it is at most so large a part of it below; else the curvature is forgotten once.
FLAT, SURE = 0.1, 0.02
# A search that knows no gap is at its end if steps in single parameters would gain less than this
# share of the objective.
NEAR = 3e-3
SCALE = "Scale numeric features to about 1, or increase c2"
# Parameters in a range: a few such vectors fit the second-level cache. The cut is the same for any
# number of threads, and so are the sums.
RANGE = 1 << 14
STALLED = "the objective fell by less than tol in {} iterations"


class Vectors:
    """Vectors of P parameters in fixed ranges, which open threads share.

    `sides` tell what 0 is to each parameter, (P,): one of `FREE`, `ORTHANT` and `NONNEGATIVE` of
    `crfkit.kernels.solvers.vector`; if not given, the border of an orthant to all.
    """

    def __init__(
        self, threads: ThreadMap, size: int, width: int = RANGE, sides: ByteArray | None = None
    ) -> None:
        self.size, self.threads = size, threads
        orthants = np.full(size, kernels.ORTHANT, np.uint8) if sides is None else sides
        self.sides: ByteArray = frozen(orthants)
        self.ranges = [slice(i, min(i + width, size)) for i in range(0, max(size, 1), width)]

    @classmethod
    def of(cls, objective: Objective, size: int) -> Vectors:
        """Return the vectors of the parameters of an objective."""
        sides = np.full(size, kernels.ORTHANT if objective.l1 else kernels.FREE, np.uint8)
        if objective.nonnegative is not None:
            sides[objective.nonnegative] = kernels.NONNEGATIVE
        return cls(objective.threads, size, sides=sides)

    def run(self, kernel: Callable[..., Result], *arguments: Any) -> list[Result]:
        """Call a kernel for each range: with the range of a vector, with the item of a list."""

        def part(argument: Any, index: int) -> Any:
            if isinstance(argument, np.ndarray):
                return argument[self.ranges[index]]
            return argument[index] if isinstance(argument, list) else argument

        def work(index: int) -> Result:
            return kernel(*[part(argument, index) for argument in arguments])

        return self.threads(work, range(len(self.ranges)))

    def total(self, shape: tuple[int, ...], kernel: Callable[..., None], *arguments: Any) -> Any:
        """Add up what a kernel writes for each range as its last argument, in their order."""
        parts = np.empty((len(self.ranges), *shape))
        self.run(kernel, *arguments, list(parts))
        return np.add.accumulate(parts)[-1]

    def dot(self, a: FloatArray, b: FloatArray) -> float:
        """Return ``a . b``."""
        parts = self.run(kernels.vector_dot, frozen(a), frozen(b))
        return float(np.add.accumulate(parts)[-1])

    def size_of(self, a: FloatArray) -> tuple[float, float]:
        """Return the Euclidean norm and the sum of the absolute values."""
        square, absolute = self.total((2,), kernels.vector_size, frozen(a))
        return math.sqrt(square), float(absolute)

    def step(self, w: FloatArray, factor: float, direction: FloatArray) -> FloatArray:
        """Return ``w + factor direction``."""
        out = np.empty(self.size)
        self.run(kernels.vector_step, frozen(w), float(factor), frozen(direction), out)
        return out

    def pseudo_gradient(self, w: FloatArray, gradient: FloatArray, l1: float) -> FloatArray:
        """Return the one-sided derivative of steepest descent (Andrew and Gao 2007, equation 4)."""
        out = np.empty(self.size)
        inputs = frozen(w), frozen(gradient), float(l1), self.sides
        self.run(kernels.orthant_gradient, *inputs, out)
        return out

    def orthant_step(
        self, w: FloatArray, factor: float, direction: FloatArray, descent: FloatArray
    ) -> tuple[FloatArray, float]:
        """Return ``w + factor direction``, 0 where a sign may not change, and the decrease."""
        moved = np.empty(self.size)
        inputs = frozen(w), float(factor), frozen(direction), frozen(descent), self.sides
        return moved, float(self.total((1,), kernels.orthant_step, *inputs, moved)[0])


class Point(NamedTuple):
    """A point at a `step` along a line; `slope` is the derivative along it."""

    step: float
    w: FloatArray  # (P,)
    value: float
    gradient: FloatArray  # (P,) of the differentiable part
    slope: float = 0.0
    descent: FloatArray = np.empty(0)  # (P,) the (pseudo-)gradient, known at the ends of lines


class Memory(Protocol):
    """What a method remembers of the steps before."""

    def __len__(self) -> int:
        """Return 0 where there is nothing to forget."""

    def clear(self) -> None:
        """Forget all."""

    def add(self, before: Point, after: Point) -> None:
        """Learn from a step."""


@dataclass(kw_only=True, eq=False, repr=False)
class BatchSolver(Solver):
    """An iteration from point to point that stops by the value and the gradient.

    A subclass is a dataclass of its parameters (those here: see :class:`~crfkit.solvers.LBFGS`),
    says what it remembers, and makes one step. The search begins at the
    nearest point to the start that is allowed. If `may_rise`, the value has stalled where it
    neither rises nor falls.
    """

    needs_of_loss: ClassVar[tuple[str, ...]] = ("is_smooth",)
    shared_checks: ClassVar[dict[str, Check]] = CHECKS
    may_rise: ClassVar[bool] = False
    # Whether a stall is convergence only where steps in single parameters would gain little.
    has_to_verify: ClassVar[bool] = False

    max_iter: int = 1000
    tol: float = 1e-5
    period: int = 10
    gtol: float = 1e-5

    def solve(
        self, objective: Objective, start: FloatArray, callback: Callback | None = None
    ) -> SolverResult:
        """Minimize an objective, see :meth:`crfkit.solvers.Solver.solve`.

        The result has the parameters of the last finished iteration, also when interrupted by
        Ctrl-C. ValueError if a parameter is out of range or the solver does not fit the objective.
        """
        self.check_parameters()
        check_match(self, objective)
        vectors, log = Vectors.of(objective, len(start)), SolverLog(objective, callback)
        return log.guard(self._iterate, objective, vectors, start, log)

    @abstractmethod
    def _memory(self, objective: Objective, vectors: Vectors) -> Memory:
        """Return the empty memory of the method."""

    @abstractmethod
    def _step(
        self, objective: Objective, vectors: Vectors, point: Point, memory: Any
    ) -> Point | None:
        """Return the next point, or None if there is none that is better."""

    def _evaluate(
        self, objective: Objective, vectors: Vectors, w: FloatArray
    ) -> tuple[float, FloatArray]:
        """Return the value to be decreased and the gradient of its differentiable part."""
        value, gradient = objective.value_and_grad(w)
        return value + (objective.l1 * vectors.size_of(w)[1] if objective.l1 else 0.0), gradient

    def _iterate(
        self, objective: Objective, vectors: Vectors, start: FloatArray, log: SolverLog
    ) -> SolverResult:
        following: Point | None = self._first_point(objective, vectors, start)
        memory, point = self._memory(objective, vectors), None
        restarted = 0
        while following is not None:
            following = following._replace(descent=self._descent(objective, vectors, following))
            if point is not None:
                memory.add(point, following)
            point = following
            if log.add(point.w, point.value, vectors.size_of(point.descent)[0]):
                return log.result("stopped by a callback", converged=False)
            size = max(1.0, vectors.size_of(point.w)[0])
            stop = self._why_stop(log, size, restarted, objective.loss.has_kinks)
            if stop is not None:
                if self.has_to_verify and stop == (STALLED.format(self.period), True):
                    stop = _as_verified(stop, objective, point)
                return log.result(stop[0], converged=stop[1])
            if self._has_stalled(log, restarted):
                # A stall far from the optimum: forget the curvature and try once more.
                memory.clear()
                restarted = len(log.history) - 1
            following = self._step(objective, vectors, point, memory)
            if following is None and memory:
                memory.clear()
                following = self._step(objective, vectors, point, memory)
        return _without_step(log, size, objective.loss.has_kinks)

    def _first_point(self, objective: Objective, vectors: Vectors, start: FloatArray) -> Point:
        """Return the nearest point that is allowed; ValueError if the value is not finite there."""
        w = within_bounds(start, objective.nonnegative)
        value, gradient = self._evaluate(objective, vectors, w)
        if not math.isfinite(value):
            raise ValueError(f"the objective is {value} at the start; it must be finite.")
        return Point(0.0, w, value, gradient)

    def _descent(self, objective: Objective, vectors: Vectors, point: Point) -> FloatArray:
        """Return the (pseudo-)gradient."""
        if not objective.l1 and objective.nonnegative is None:
            return point.gradient
        return vectors.pseudo_gradient(point.w, point.gradient, objective.l1)

    def _why_stop(
        self, log: SolverLog, size: float, restarted: int, kinks: bool
    ) -> tuple[str, bool] | None:
        """Return the reason to stop and whether it is convergence, or None.

        `size` is the norm of the parameters, or 1; `kinks` whether the loss has such.
        """
        record = log.history[-1]
        norm = record.gradient_norm
        if not math.isfinite(norm):
            return f"the gradient is not finite. {SCALE}", False
        # Not where parameters run off. With c2 the optimum of a convex objective is at most
        # norm**2 / (4 c2) below.
        most = 4.0 * log.objective.l2 * SURE * abs(record.value)
        sure = norm**2 <= most and log.objective.is_convex
        flat = norm * size <= FLAT * abs(record.value) or sure
        if norm <= self.gtol * (size if flat else 1.0):
            return f"the gradient norm {norm:.3g} is below gtol", True
        if self._has_stalled(log, restarted):
            if flat:
                return STALLED.format(self.period), True
            if restarted and kinks:
                return _at_kink(record), True
            if restarted:
                return (
                    f"the objective no longer falls at {record.value:.6g}, but its gradient norm "
                    f"is still {norm:.3g}. {SCALE}"
                ), False
        if record.iteration >= self.max_iter:
            return (
                f"max_iter={self.max_iter} iterations were not enough: the objective is "
                f"{record.value:.6g}, the gradient norm {norm:.3g}. Increase "
                "max_iter, or ask for less (larger tol, larger c2)"
            ), False
        return None

    def _has_stalled(self, log: SolverLog, since: int) -> bool:
        """Whether the objective changed too little, in the iterations from `since` on."""
        if not self.may_rise:
            return log.has_stalled(self.period, self.tol, since)
        last = [record.value for record in log.history[since:][-self.period - 1 :]]
        return len(last) > self.period and max(last) - min(last) < self.tol * abs(last[-1])


def expected_gain(objective: Objective, gradient: FloatArray) -> float:
    """Return about how much the objective would fall, each parameter moved as if it was alone.

    With the curvature at 0, where it is largest; 0 where that is not known.
    """
    if not objective.loss.has_hessian:
        return 0.0
    curvature = objective.hessian_diagonal(np.zeros(len(gradient)))
    return float(np.sum(gradient**2 / np.maximum(2.0 * curvature, np.finfo(float).tiny)))


def _as_verified(stop: tuple[str, bool], objective: Objective, point: Point) -> tuple[str, bool]:
    """Return the reason to stop, and that it is no convergence where much is left to gain."""
    gain = expected_gain(objective, point.descent)
    if gain <= NEAR * abs(point.value):
        return stop
    return f"{stop[0]}, but it may be far above its optimum. {SCALE}", False


def _at_kink(record: IterationRecord) -> str:
    """Return that a search ends at a kink, also after the curvature was forgotten."""
    return (
        f"the objective no longer falls at {record.value:.6g}: the loss has kinks, and the "
        f"gradient next to one, here of the norm {record.gradient_norm:.3g}, does not vanish"
    )


def _without_step(log: SolverLog, size: float, kinks: bool) -> SolverResult:
    """Return the result where no step decreases the value: at its precision, or stuck."""
    value, norm = log.history[-1].value, log.history[-1].gradient_norm
    if norm * size <= PRECISION**0.5 * max(1.0, abs(value)):
        return log.result("no step decreases the objective: rounding errors", converged=True)
    if kinks:
        return log.result(_at_kink(log.history[-1]), converged=True)
    message = (
        f"no step was found that decreases the objective: it is {value:.6g}, the gradient norm "
        f"{norm:.3g}. {SCALE}"
    )
    return log.result(message, converged=False)
