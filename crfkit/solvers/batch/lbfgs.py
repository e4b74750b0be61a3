"""Limited-memory BFGS, and its orthant-wise form for L1 penalties."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

import numpy as np
from scipy.linalg import solve_triangular

from crfkit._types import FloatArray, IdArray, IntArray, LabelArray
from crfkit.compiler.jit import frozen
from crfkit.kernels.solvers.vector import (
    memory_columns,
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
FEW_PAIRS, MANY_PAIRS = 6, 96
# Parameters are counted in units of this power of their second derivatives at 0. The value would
# fall faster at first with -1/2, which makes these derivatives 1, but more slowly near the optimum.
UNITS, UNITS_WITH_L1 = -0.125, -0.1875
# Columns of parameters that are no longer free are kept up to this multiple of the free ones; where
# all are laid out anew, there is room for so many more.
SPARE, ROOM = 1.5, 1.125
_NO_COLUMNS: tuple[IntArray, LabelArray] = np.empty(0, np.int64), np.empty((0, 0), np.uint16)


class CorrectionPairs:
    """The last changes of parameters and gradient, which stand for the inverse Hessian.

    Their inner products are kept as well: the two-loop recursion then runs on a few numbers, and
    the long vectors are read once for all products with a gradient and once for the result
    (Chen, Wang and Zhou 2014, section 3). The vectors are kept in 16 bits (bfloat16), scaled by
    powers of 2; all products are those of the rounded vectors. Without pairs, the inverse Hessian
    is that of steepest descent for parameters in the given units.
    """

    def __init__(self, memory: int, vectors: Vectors, units: FloatArray | None = None) -> None:
        self._limit, self._vectors = memory, vectors
        self._units = np.ones(vectors.size) if units is None else units
        rows = 2 * memory
        self._rows = [np.empty((rows, cut.stop - cut.start), np.uint16) for cut in vectors.ranges]
        self._scales = np.ones(rows)
        self._places: list[int] = []  # of the pairs, oldest first
        self._steps = np.empty((memory, memory))  # s_i . y_j for i not newer than j
        self._changes = np.empty((memory, memory))  # y_i . y_j
        self._columns = _NO_COLUMNS

    def __len__(self) -> int:
        return len(self._places)

    def clear(self) -> None:
        """Forget all pairs."""
        self._places.clear()
        self._columns = _NO_COLUMNS

    def halve(self) -> None:
        """Forget the older half of the pairs, but none of a few."""
        del self._places[: min(len(self) // 2, max(len(self) - FEW_PAIRS, 0))]

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
            (2,), memory_store, *of_points, frozen(self._units),
            [frozen(1.0 / np.array(scales))] * len(self._rows), 2 * free, self._rows,
        )  # fmt: skip
        if scales[0] * curvature > np.finfo(float).eps * scales[1] * square:
            self._scales[2 * free : 2 * free + 2] = scales
            self._places.append(free)
        places, columns = self._columns
        for row in (2 * free, 2 * free + 1) if len(places) else ():
            columns[row, : len(places)] = self._rows[0][row, places]

    def direction(self, gradient: FloatArray) -> FloatArray:
        """Return ``-H gradient`` by the two-loop recursion."""
        gradient = self._units * gradient
        if not self._places:
            return -self._units * gradient
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
        out *= self._units
        return out

    def direction_within(
        self, free: IntArray, w: FloatArray, descent: FloatArray
    ) -> tuple[FloatArray, float]:
        """Return the direction of the free parameters alone, and the slope along it.

        The inner products are those of the free parameters, so that the pairs stand for the inverse
        of their part of the Hessian. For vectors of one range.
        """
        rows = frozen(2 * np.array(self._places, np.uint32))
        ratios = frozen(self._scales[rows] / self._scales[rows + 1])
        places, columns = self._columns_of(free, rows)
        products, work, out = np.empty((2, len(rows))), np.empty(len(places)), np.zeros(len(w))
        scaled = frozen(self._units * descent)
        slope = orthant_direction(
            frozen(places), frozen(w), scaled, frozen(columns), rows, ratios,
            products, np.empty(len(places)), work, out,
        )  # fmt: skip
        return self._units * out, float(slope)

    def _columns_of(self, free: IntArray, rows: IdArray) -> tuple[IntArray, LabelArray]:
        """Return parameters, among them the free ones, and their columns of the rows.

        New ones come behind those that are known, as long as there is room.
        """
        places, columns = self._columns
        known = np.zeros(self._vectors.size, bool)
        known[places] = True
        first, places = len(places), np.concatenate([places, free[~known[free]]])
        if len(places) > min(SPARE * len(free), columns.shape[1]):
            del columns
            self._columns = _NO_COLUMNS
            first, places = 0, free if len(places) > SPARE * len(free) else np.sort(places)
            columns = np.empty((2 * self._limit, int(ROOM * len(places))), np.uint16)
        if first < len(places):
            memory, chosen = frozen(self._rows[0]), frozen(places)
            shares = list(map(frozen, np.array_split(rows, self._vectors.threads.n_workers)))
            self._vectors.threads(
                lambda own: memory_columns(memory, own, chosen, first, columns), shares
            )
        self._columns = places, columns
        return self._columns

    def _two_loops(self, along: FloatArray, across: FloatArray) -> tuple[float, FloatArray]:
        """Return the factors of the gradient and of the rows, from ``s_i . g`` and ``y_i . g``."""
        kept = np.ix_(self._places, self._places)
        steps, changes = self._steps[kept], self._changes[kept]
        scale, diagonal = float(steps[-1, -1] / changes[-1, -1]), np.diag(steps)
        solve = partial(solve_triangular, steps, check_finite=False)  # of its upper part
        first = solve(along)
        second = solve(diagonal * first - scale * (across - changes @ first), trans="T")
        return -scale, np.column_stack([-second, scale * first]).ravel()


def _pairs_for(
    memory: int | None, objective: Objective, vectors: Vectors, power: float
) -> CorrectionPairs:
    """Return no pairs yet; where their number is not given, the more the fewer parameters."""
    units = None
    if objective.loss.has_hessian:
        diagonal = objective.hessian_diagonal(np.zeros(vectors.size))
        units = np.where(diagonal > 0.0, diagonal, 1.0) ** power
    most = min(max(NUMBERS // (2 * max(vectors.size, 1)), FEW_PAIRS), MANY_PAIRS)
    return CorrectionPairs(memory or most, vectors, units)


def _power_of_2(size: float) -> float:
    """Return about the size of a vector, for a number of single precision to be of any size."""
    return math.ldexp(1.0, min(max(math.frexp(size)[1], -999), 999)) if size else 1.0


@dataclass(kw_only=True, eq=False, repr=False)
class LBFGS(BatchSolver):
    """Limited-memory BFGS with a line search for the strong Wolfe conditions.

    Two-loop recursion of Nocedal (1980) with the scaling of Liu and Nocedal (1989), computed from
    the inner products of the remembered vectors (Chen, Wang and Zhou 2014). Where some parameters
    may not be negative, steps are those of :class:`OWLQN`, with the orthants of these alone.

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
        Number of correction pairs, of 16 bits a number (bfloat16). None: 96, fewer where they would
        take more than 12 MiB, and at least 6.
    max_line_search : int, default=20
        Evaluations in one line search at most.

    Examples
    --------
    >>> from crfkit import CRFClassifier
    >>> from crfkit.solvers import LBFGS
    >>> CRFClassifier(solver=LBFGS(tol=1e-8, max_iter=500))
    CRFClassifier(solver=LBFGS(max_iter=500, tol=1e-08))
    """

    handles_bounds: ClassVar[bool] = True
    checks: ClassVar[dict[str, Check]] = QUASI_NEWTON

    memory: int | None = None
    max_line_search: int = 20

    def _memory(self, objective: Objective, vectors: Vectors) -> CorrectionPairs:
        bounded = objective.nonnegative is not None
        return _pairs_for(self.memory, objective, one_range(vectors) if bounded else vectors, UNITS)

    def _step(
        self, objective: Objective, vectors: Vectors, point: Point, memory: CorrectionPairs
    ) -> Point | None:
        if objective.nonnegative is not None:
            return _step_in_orthant(self, objective, vectors, point, memory)
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
    from it. The inverse Hessian is that of these alone. Of them, those that are 0 must descend each
    for itself (the projected scaled sub-gradient of Schmidt 2010, section 2.3): where all must, as
    in the original, the direction is no longer that of the quasi-Newton method, and the last 1 %
    above the optimum take several times as many steps.

    Parameters
    ----------
    period, gtol, memory, max_line_search
        As for :class:`LBFGS`; the gradient is the pseudo-gradient.
    max_iter : int, default=3000
        Iterations at most.
    tol : float, default=2e-6
        As for :class:`LBFGS`. Smaller, because the decrease slows down earlier before the end.
    """

    handles_l1: ClassVar[bool] = True
    handles_bounds: ClassVar[bool] = True
    checks: ClassVar[dict[str, Check]] = QUASI_NEWTON

    max_iter: int = 3000
    tol: float = 2e-6
    gtol: float = 5e-6
    memory: int | None = None
    max_line_search: int = 20

    def _memory(self, objective: Objective, vectors: Vectors) -> CorrectionPairs:
        return _pairs_for(self.memory, objective, one_range(vectors), UNITS_WITH_L1)

    def _step(
        self, objective: Objective, vectors: Vectors, point: Point, memory: CorrectionPairs
    ) -> Point | None:
        return _step_in_orthant(self, objective, vectors, point, memory)


def one_range(vectors: Vectors) -> Vectors:
    """Return the same vectors as one range."""
    return Vectors(vectors.threads, vectors.size, max(vectors.size, 1), vectors.sides)


def _step_in_orthant(
    solver: LBFGS | OWLQN,
    objective: Objective,
    vectors: Vectors,
    point: Point,
    memory: CorrectionPairs,
) -> Point | None:
    """Return the next point of a search that stays in the orthant of the point, or None."""
    free = np.flatnonzero((point.w != 0.0) | (point.descent != 0.0))
    direction, slope = memory.direction_within(free, point.w, point.descent)
    if not slope < 0.0:
        return None
    evaluate = partial(solver._evaluate, objective, vectors)
    # The first step has no curvature to tell its length: it may be far too long.
    shrink = 0.5 if memory else 0.1
    first_step = 1.0 if memory else 1.0 / math.sqrt(-slope)
    if point.value > 0.0:
        # A parabola that falls at this slope, and is nowhere below 0, is lowest here or before.
        # Few objectives have values below 0; for these it is a short step, and no more.
        first_step = min(first_step, -2.0 * point.value / slope)
    found = orthant_search(
        evaluate, vectors, point, direction, first_step, solver.max_line_search, shrink
    )
    if found is not None and found.step < 1.0:
        memory.halve()
    return found
