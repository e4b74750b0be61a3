"""Resilient propagation."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from crfkit._params import check_positive
from crfkit._types import FloatArray
from crfkit.compiler.jit import frozen
from crfkit.kernels.solvers.vector import sign_step
from crfkit.objective.batch import Objective
from crfkit.solvers.base import Check
from crfkit.solvers.batch.base import BatchSolver, Point, Vectors

# How often all steps are halved where the objective is not finite.
RETRIES = 60


@dataclass(kw_only=True, eq=False, repr=False)
class Rprop(BatchSolver):
    """Resilient propagation: a step for each parameter, told by signs of the gradient alone.

    Rprop of Riedmiller and Braun (1993) without going back (the variant iRprop- of Igel and Huesken
    2000). With an L1 penalty the signs are those of the pseudo-gradient, and a parameter stops at
    0 before it changes its sign, as in Wapiti (Lavergne, Cappe and Yvon 2010). The objective may
    rise for a while; nothing is searched along a line, so an iteration is one evaluation.

    Parameters
    ----------
    max_iter, tol, period, gtol
        As for :class:`LBFGS`.
    step : float, default=0.1
        First step of each parameter.
    max_step : float, default=50.0
        Largest step.
    """

    handles_l1: ClassVar[bool] = True
    may_rise: ClassVar[bool] = True

    checks: ClassVar[dict[str, Check]] = {"step": check_positive, "max_step": check_positive}

    step: float = 0.1
    max_step: float = 50.0

    def _memory(self, objective: Objective, vectors: Vectors) -> StepSizes:
        return StepSizes(self.step, self.max_step, vectors)

    def _step(
        self, objective: Objective, vectors: Vectors, point: Point, memory: StepSizes
    ) -> Point | None:
        for _ in range(RETRIES):
            w = memory.moved(point, projected=objective.l1 > 0.0)
            if np.array_equal(w, point.w) and not memory.resting:
                return None
            value, gradient = self._evaluate(objective, vectors, w)
            if math.isfinite(value):
                return Point(1.0, w, value, gradient)
            memory.halve()
        return None


class StepSizes:
    """The step of each parameter, and the gradient of the step before."""

    def __init__(self, step: float, largest: float, vectors: Vectors) -> None:
        self._first, self._largest, self._vectors = step, largest, vectors
        self.resting = False
        self.clear()

    def __len__(self) -> int:
        return int(self._last.any())

    def clear(self) -> None:
        """Start again with the first steps."""
        self._sizes = np.full(self._vectors.size, min(self._first, self._largest))
        self._last = np.zeros(self._vectors.size)

    def add(self, before: Point, after: Point) -> None:
        """Learn nothing more: steps are adapted when they are made."""

    def halve(self) -> None:
        """Halve all steps, and forget the gradient."""
        self._sizes *= 0.5
        self._last[:] = 0.0

    def moved(self, point: Point, *, projected: bool) -> FloatArray:
        """Return the parameters after a step, and adapt the steps."""
        out = np.empty(self._vectors.size)
        self._vectors.run(
            sign_step, frozen(point.w), frozen(point.descent), self._last, self._sizes,
            float(self._largest), projected, out,
        )  # fmt: skip
        self.resting = bool(np.any((self._last == 0.0) & (point.descent != 0.0)))
        return out
