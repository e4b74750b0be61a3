"""Nonlinear conjugate gradients."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from typing import ClassVar, NamedTuple

import numpy as np

from crfkit._params import check_flag
from crfkit._types import FloatArray
from crfkit.objective.batch import Objective
from crfkit.solvers.base import Check, at_least_one
from crfkit.solvers.batch.base import BatchSolver, Point, Vectors
from crfkit.solvers.batch.line_search import wolfe_search

# Steps after which the diagonal is computed anew.
REFRESH = 10
# Curvature condition of the line search: directions stay conjugate only after nearly exact ones.
CURVATURE = 0.1


@dataclass(kw_only=True, eq=False, repr=False)
class ConjugateGradient(BatchSolver):
    """Preconditioned nonlinear conjugate gradients (Sha and Pereira 2003).

    The rule of Polak and Ribiere (1969), never negative, which restarts where a direction is of no
    use; a line search for the strong Wolfe conditions. The preconditioner is the diagonal of the
    Hessian as if tokens were independent, ``E[f**2] - E[f]**2`` at each token, and what the
    penalty adds.

    Parameters
    ----------
    max_iter, tol, period, gtol, max_line_search
        As for :class:`LBFGS`.
    preconditioner : bool, default=False
        Whether to scale by the diagonal, where the objective can tell it. Of use with numeric
        features of very different sizes; with indicators and an L2 penalty it costs evaluations.
    """

    has_to_verify: ClassVar[bool] = True
    checks: ClassVar[dict[str, Check]] = {
        "max_line_search": at_least_one,
        "preconditioner": check_flag,
    }

    max_line_search: int = 20
    preconditioner: bool = False

    def _memory(self, objective: Objective, vectors: Vectors) -> Conjugate:
        return Conjugate(objective if self.preconditioner else None, vectors)

    def _step(
        self, objective: Objective, vectors: Vectors, point: Point, memory: Conjugate
    ) -> Point | None:
        direction, slope, _, first_step = memory.direction(point)
        if not slope < 0.0:
            return None
        evaluate = partial(self._evaluate, objective, vectors)
        start, most = point._replace(step=0.0, slope=slope), self.max_line_search
        return wolfe_search(evaluate, vectors, start, direction, first_step, most, CURVATURE)


class Line(NamedTuple):
    """A direction, its slope, the squared length of the scaled gradient, and a first step."""

    direction: FloatArray
    slope: float
    square: float
    first_step: float


class Conjugate:
    """The last direction, and the diagonal that scales gradients, if an objective tells it."""

    def __init__(self, objective: Objective | None, vectors: Vectors) -> None:
        self._objective, self._vectors = objective, vectors
        self._diagonal: FloatArray | None = None
        self._asked = 0
        self._last: Line | None = None
        self._after: tuple[Point, Point] | None = None

    def __len__(self) -> int:
        return int(self._after is not None)

    def clear(self) -> None:
        """Forget the last direction."""
        self._after = None

    def add(self, before: Point, after: Point) -> None:
        """Remember the ends of the last line."""
        self._after = before, after

    def direction(self, point: Point) -> Line:
        """Return the next direction, its slope and a first step length."""
        if self._objective is not None and self._asked % REFRESH == 0:
            diagonal = self._objective.hessian_diagonal(point.w)
            self._diagonal = np.where(diagonal > 0.0, diagonal, 1.0)
        self._asked += 1
        gradient = point.gradient
        scaled = gradient if self._diagonal is None else gradient / self._diagonal
        square = self._vectors.dot(scaled, gradient)
        line = Line(-scaled, -square, square, 1.0 / math.sqrt(square) if square > 0.0 else 1.0)
        if self._after is not None and self._last is not None:
            line = self._conjugate(line, scaled, self._last, *self._after)
        self._last = line
        return line

    def _conjugate(
        self, line: Line, scaled: FloatArray, last: Line, before: Point, after: Point
    ) -> Line:
        """Add what is left of the last direction (Polak and Ribiere 1969)."""
        factor = (line.square - self._vectors.dot(scaled, before.gradient)) / last.square
        direction = self._vectors.step(line.direction, max(0.0, factor), last.direction)
        slope = self._vectors.dot(direction, after.gradient)
        if not slope < 0.0:
            direction, slope = line.direction, line.slope
        # The change to first order is expected to be that of the last step.
        return Line(direction, slope, line.square, after.step * last.slope / slope)
