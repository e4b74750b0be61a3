"""Limited-memory BFGS, and its orthant-wise form for L1 penalties."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

import numpy as np

from crfkit._types import FloatArray, IntArray
from crfkit.compiler.jit import frozen
from crfkit.kernels.solvers.vector import (
    memory_combine,
    memory_dots,
    memory_store,
    orthant_direction,
)
from crfkit.objective.batch import Objective
from crfkit.solvers.base import Check
from crfkit.solvers.batch.base import QUASI_NEWTON, BatchSolver, Point, Vectors
from crfkit.solvers.batch.line_search import orthant_search, wolfe_search

# Pairs are as many as have so many numbers, within bounds: with more, fewer iterations are needed.
NUMBERS = 3 << 21
FEW_PAIRS, MANY_PAIRS = 6, 48
# OWL-QN has every parameter descend for itself in so many first steps, while most still leave 0.
ALIGNED = 50


class CorrectionPairs:
    """The last changes of parameters and gradient, which stand for the inverse Hessian.

    Their inner products are kept as well: the two-loop recursion then runs on a few numbers, and
    the long vectors are read once for all products with a gradient and once for the result
    (Chen, Wang and Zhou 2014, section 3). The vectors are kept in single precision, scaled by
    powers of 2; all products are those of the rounded vectors.
    """

    def __init__(self, memory: int, vectors: Vectors) -> None:
        self._limit, self._vectors = memory, vectors
        rows = 2 * memory
        self._rows = [np.empty((rows, cut.stop - cut.start), np.float32) for cut in vectors.ranges]
        self._scales = np.ones(rows)
        self.n_added = 0
        self._places: list[int] = []  # of the pairs, oldest first
        self._steps = np.empty((memory, memory))  # s_i . y_j for i not newer than j
        self._changes = np.empty((memory, memory))  # y_i . y_j

    def __len__(self) -> int:
        return len(self._places)

    def clear(self) -> None:
        """Forget all pairs."""
        self._places.clear()

    def add(self, before: Point, after: Point) -> None:
        """Keep the pair of two points, unless its curvature is not clearly positive.

        It is written over the oldest pair, which is lost in any case.
        """
        if len(self._places) == self._limit:
            free = self._places.pop(0)
        else:
            free = next(i for i in range(self._limit) if i not in self._places)
        of_points = map(frozen, (before.w, after.w, before.gradient, after.gradient))
        scales = [_power_of_2(self._vectors.size_of(a)[0]) for a in (after.w, after.gradient)]
        curvature, square = self._vectors.total(
            (2,), memory_store, *of_points,
            [frozen(1.0 / np.array(scales))] * len(self._rows), 2 * free, self._rows,
        )  # fmt: skip
        if scales[0] * curvature > np.finfo(float).eps * scales[1] * square:
            self._scales[2 * free : 2 * free + 2] = scales
            self._places.append(free)
            self.n_added += 1

    def direction(self, gradient: FloatArray) -> FloatArray:
        """Return ``-H gradient`` by the two-loop recursion."""
        if not self._places:
            return -gradient
        rows = np.array([[2 * i, 2 * i + 1] for i in self._places], np.uint32).ravel()
        memory = list(map(frozen, self._rows)), [frozen(rows)] * len(self._rows)
        newest, g = self._places[-1], frozen(gradient)
        scales, row = self._scales[rows], 2 * newest + 1
        products = self._vectors.total((2, len(rows)), memory_dots, *memory, row, g) * scales
        products[0] *= self._scales[row]
        self._steps[self._places, newest] = products[0, ::2]
        self._changes[self._places, newest] = products[0, 1::2]
        self._changes[newest, self._places] = products[0, 1::2]
        scale, factors = self._two_loops(products[1, ::2], products[1, 1::2])
        of_ranges = [frozen(factors * scales)] * len(self._rows)
        out = np.empty(self._vectors.size)
        self._vectors.run(memory_combine, *memory, of_ranges, scale, g, out)
        return out

    def direction_within(
        self, free: IntArray, w: FloatArray, descent: FloatArray, align: bool = False
    ) -> tuple[FloatArray, float]:
        """Return the direction of the free parameters alone, and the slope along it.

        The inner products are those of the free parameters, so that the pairs stand for the inverse
        of their part of the Hessian. For vectors of one range. With `align`, each parameter
        descends for itself.
        """
        rows = 2 * np.array(self._places, np.uint32)
        ratios = self._scales[rows] / self._scales[rows + 1]
        work, out = np.empty((2, len(rows))), np.zeros(len(w))
        slope = orthant_direction(
            frozen(free), frozen(w), frozen(descent), frozen(self._rows[0]), frozen(rows),
            frozen(ratios), work, np.empty(len(free)), align, out,
        )  # fmt: skip
        return out, float(slope)

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
        return -float(scale), np.column_stack([-second, scale * first]).ravel()


def _memory_for(memory: int | None, size: int) -> int:
    """Return the number of pairs, where it is not given: the more the fewer parameters."""
    return memory or min(max(NUMBERS // (2 * max(size, 1)), FEW_PAIRS), MANY_PAIRS)


def _power_of_2(size: float) -> float:
    """Return about the size of a vector, for a number of single precision to be of any size."""
    return math.ldexp(1.0, min(max(math.frexp(size)[1], -999), 999)) if size else 1.0


@dataclass(kw_only=True, eq=False, repr=False)
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
    memory : int or None, default=None
        Number of correction pairs, in single precision. None: 48, fewer where they would take more
        than 24 MiB, and at least 6.
    max_line_search : int, default=20
        Evaluations in one line search at most.

    Examples
    --------
    >>> from crfkit import CRFClassifier
    >>> from crfkit.solvers import LBFGS
    >>> CRFClassifier(solver=LBFGS(tol=1e-8, max_iter=500))
    CRFClassifier(solver=LBFGS(max_iter=500, tol=1e-08))
    """

    checks: ClassVar[dict[str, Check]] = QUASI_NEWTON

    memory: int | None = None
    max_line_search: int = 20

    def _memory(self, objective: Objective, vectors: Vectors) -> CorrectionPairs:
        return CorrectionPairs(_memory_for(self.memory, vectors.size), vectors)

    def _step(
        self, objective: Objective, vectors: Vectors, point: Point, memory: CorrectionPairs
    ) -> Point | None:
        direction = memory.direction(point.descent)
        slope = vectors.dot(direction, point.gradient)
        if not slope < 0.0:
            return None
        evaluate = partial(self._evaluate, objective, vectors)
        start = point._replace(step=0.0, slope=slope)
        first_step = 1.0 if memory else 1.0 / math.sqrt(-slope)
        return wolfe_search(evaluate, vectors, start, direction, first_step, self.max_line_search)


@dataclass(kw_only=True, eq=False, repr=False)
class OWLQN(BatchSolver):
    """Orthant-wise limited-memory quasi-Newton method (Andrew and Gao 2007), over free parameters.

    Minimizes a differentiable function plus ``c1 sum |w|``; many parameters end at exactly 0. A
    step moves the parameters that are not 0, or that a step against the gradient would move away
    from it. The inverse Hessian is that of these alone. In the first 50 steps each parameter must
    descend for itself, as in the original; then only those that are 0 (the projected scaled
    sub-gradient of Schmidt 2010, section 2.3): where all must, the direction is no longer that of
    the quasi-Newton method, and the last 1 % above the optimum take several times as many steps.

    Parameters
    ----------
    max_iter, period, gtol, memory, max_line_search
        As for :class:`LBFGS`; the gradient is the pseudo-gradient.
    tol : float, default=5e-6
        As for :class:`LBFGS`. Smaller, because the decrease slows down earlier before the end.
    """

    handles_l1: ClassVar[bool] = True
    checks: ClassVar[dict[str, Check]] = QUASI_NEWTON

    tol: float = 5e-6
    gtol: float = 5e-6
    memory: int | None = None
    max_line_search: int = 20

    def _memory(self, objective: Objective, vectors: Vectors) -> CorrectionPairs:
        one_range = Vectors(vectors.threads, vectors.size, width=max(vectors.size, 1))
        return CorrectionPairs(_memory_for(self.memory, vectors.size), one_range)

    def _step(
        self, objective: Objective, vectors: Vectors, point: Point, memory: CorrectionPairs
    ) -> Point | None:
        free = np.flatnonzero((point.w != 0.0) | (point.descent != 0.0))
        align = memory.n_added < ALIGNED
        direction, slope = memory.direction_within(free, point.w, point.descent, align)
        if not slope < 0.0:
            return None
        evaluate = partial(self._evaluate, objective, vectors)
        # The first step has no curvature to tell its length: it may be far too long.
        shrink = 0.5 if memory else 0.1
        first_step = 1.0 if memory else 1.0 / math.sqrt(-slope)
        return orthant_search(
            evaluate, vectors, point, direction, first_step, self.max_line_search, shrink
        )
