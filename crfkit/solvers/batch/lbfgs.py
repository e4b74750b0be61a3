"""Limited-memory BFGS."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from crfkit._params import check_whole
from crfkit._types import FloatArray, IdArray
from crfkit.compiler.jit import frozen
from crfkit.kernels.solvers.vector import memory_combine, memory_dots, memory_store
from crfkit.solvers.batch.base import BatchSolver
from crfkit.solvers.batch.line_search import Point, wolfe_search
from crfkit.solvers.batch.vectors import Vectors


class LBFGS(BatchSolver):
    """Limited-memory BFGS with a line search for the strong Wolfe conditions.

    Two-loop recursion of Nocedal (1980) with the scaling of Liu and Nocedal (1989), computed from
    the inner products of the remembered vectors (Chen, Wang and Zhou 2014).

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

    def _check_own_parameters(self) -> None:
        for name in ("memory", "max_line_search"):
            check_whole(name, getattr(self, name), 1)

    def _memory(self, objective: Any, vectors: Vectors) -> CorrectionPairs:
        return CorrectionPairs(self.memory, vectors)

    def _step(
        self, objective: Any, vectors: Vectors, point: Point, memory: CorrectionPairs
    ) -> Point | None:
        direction = memory.direction(point.descent)
        slope = vectors.dot(direction, point.gradient)
        if not slope < 0.0:
            return None
        return wolfe_search(
            lambda w: self._evaluate(objective, vectors, w),
            vectors,
            point._replace(step=0.0, slope=slope),
            direction,
            1.0 if memory else 1.0 / math.sqrt(-slope),
            self.max_line_search,
        )


class CorrectionPairs:
    """The last changes of parameters and gradient, which stand for the inverse Hessian.

    Their inner products are kept as well: the two-loop recursion then runs on a few numbers, and
    the long vectors are read once for all products with a gradient and once for the result
    (Chen, Wang and Zhou 2014, section 3).

    Parameters
    ----------
    memory : int
        How many pairs to keep.
    vectors : Vectors
        Operations on vectors of this size.
    """

    def __init__(self, memory: int, vectors: Vectors) -> None:
        self._limit = memory
        self._vectors = vectors
        # One place more than is kept: where a pair is written before it is known to be good.
        rows = 2 * (memory + 1)
        self._rows = [np.empty((rows, cut.stop - cut.start)) for cut in vectors.ranges]
        self._places: list[int] = []  # of the pairs, oldest first
        self._steps = np.empty((memory + 1, memory + 1))  # s_i . y_j for i not newer than j
        self._changes = np.empty((memory + 1, memory + 1))  # y_i . y_j

    def __len__(self) -> int:
        return len(self._places)

    def clear(self) -> None:
        """Forget all pairs."""
        self._places.clear()

    def add(self, before: Point, after: Point) -> None:
        """Keep the pair of two points, unless its curvature is not clearly positive."""
        free = next(i for i in range(self._limit + 1) if i not in self._places)

        def work(index: int, out: FloatArray) -> None:
            cut = self._vectors.ranges[index]
            memory_store(
                frozen(before.w[cut]), frozen(after.w[cut]), frozen(before.gradient[cut]),
                frozen(after.gradient[cut]), 2 * free, self._rows[index], out,
            )  # fmt: skip

        curvature, square = self._vectors.total(work, 2)
        if curvature > np.finfo(float).eps * square:
            self._places = [*self._places, free][-self._limit :]

    def direction(self, gradient: FloatArray) -> FloatArray:
        """Return ``-H gradient`` by the two-loop recursion."""
        if not self._places:
            return -gradient
        rows = frozen(np.array([[2 * i, 2 * i + 1] for i in self._places], np.uint32).ravel())
        scale, factors = self._factors(gradient, rows)
        out = np.empty(self._vectors.size)

        def work(index: int) -> None:
            cut = self._vectors.ranges[index]
            memory_combine(
                frozen(self._rows[index]), rows, factors, scale, frozen(gradient[cut]), out[cut]
            )

        self._vectors.run(work)
        return out

    def _factors(self, gradient: FloatArray, rows: IdArray) -> tuple[float, FloatArray]:
        """Return the factors of the gradient and of the rows that make the direction."""
        newest = self._places[-1]

        def work(index: int, out: FloatArray) -> None:
            cut = self._vectors.ranges[index]
            memory_dots(frozen(self._rows[index]), rows, 2 * newest + 1, frozen(gradient[cut]), out)

        with_newest, with_gradient = self._vectors.total(work, 2, len(rows))
        self._steps[self._places, newest] = with_newest[::2]
        self._changes[self._places, newest] = with_newest[1::2]
        self._changes[newest, self._places] = with_newest[1::2]
        return self._two_loops(with_gradient[::2], with_gradient[1::2])

    def _two_loops(self, along: FloatArray, across: FloatArray) -> tuple[float, FloatArray]:
        """Return the factors of the gradient and of the rows, from ``s_i . g`` and ``y_i . g``."""
        kept = np.ix_(self._places, self._places)
        steps, changes = self._steps[kept], self._changes[kept]
        count = len(self._places)
        first, second = np.zeros(count), np.zeros(count)
        for i in reversed(range(count)):
            first[i] = (along[i] - steps[i, i + 1 :] @ first[i + 1 :]) / steps[i, i]
        scale = steps[-1, -1] / changes[-1, -1]
        for i in range(count):
            rest = scale * (across[i] - changes[i] @ first) + steps[:i, i] @ second[:i]
            second[i] = first[i] - rest / steps[i, i]
        return -float(scale), frozen(np.column_stack([-second, scale * first]).ravel())
