"""Orthant-wise limited-memory quasi-Newton, for L1 penalties."""

from __future__ import annotations

import math
from typing import Any, ClassVar

from crfkit._params import check_whole
from crfkit.solvers.batch.base import BatchSolver
from crfkit.solvers.batch.lbfgs import CorrectionPairs
from crfkit.solvers.batch.line_search import Point, orthant_search
from crfkit.solvers.batch.vectors import Vectors


class OWLQN(BatchSolver):
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
        self.max_iter = max_iter
        self.tol = tol
        self.period = period
        self.gtol = gtol
        self.memory = memory
        self.max_line_search = max_line_search

    def _check_own_parameters(self) -> None:
        for name in ("memory", "max_line_search"):
            check_whole(name, getattr(self, name), 1)

    def _memory(self, objective: Any, vectors: Vectors) -> CorrectionPairs:
        return CorrectionPairs(self.memory, vectors)

    def _step(
        self, objective: Any, vectors: Vectors, point: Point, memory: CorrectionPairs
    ) -> Point | None:
        direction = memory.direction(point.descent)
        slope = vectors.align(direction, point.descent)
        if not slope < 0.0:
            return None
        return orthant_search(
            lambda w: self._evaluate(objective, vectors, w),
            vectors,
            point,
            direction,
            1.0 if memory else 1.0 / math.sqrt(-slope),
            self.max_line_search,
            # The first step has no curvature to tell its length: it may be far too long.
            shrink=0.5 if memory else 0.1,
        )
