"""Cutting planes: the loss as the largest of its tangents so far."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, NamedTuple

import numpy as np

from crfkit._params import check_number, check_whole
from crfkit._types import FloatArray, SolverResult
from crfkit.compiler.jit import frozen
from crfkit.kernels.solvers.simplex import simplex_ascend
from crfkit.kernels.solvers.vector import vector_add, vector_dot
from crfkit.objective.batch import Objective
from crfkit.solvers.base import Callback, Check, Solver, SolverLog, check_match, one_of
from crfkit.solvers.margin.bounds import certified_gap, check_convex, has_exact_values, tangent

CHECKS: dict[str, Check] = {
    "slack": one_of("one", "n"), "max_iter": check_whole, "tol": check_number
}  # fmt: skip
# A plane that has not counted for so many iterations is forgotten.
FORGET = 50
# Sweeps over the sequences between two searches for tangents, at most, and the rise of the dual in
# one, as a share of the gap, below which no more is made.
SWEEPS, LEAST_RISE = 100, 0.01
# A tangent is new if it is above the others by more than this share.
TIE = 1e-12
# Steps of the quadratic program between which the slopes are computed anew.
STEPS = 1000


@dataclass(kw_only=True, eq=False, repr=False)
class CuttingPlane(Solver):
    """Cutting planes for a convex loss plus ``c2 |w|**2``.

    The loss is replaced by the largest of its tangents so far, which makes a small quadratic
    program of the problem; its solution tells where the next tangent is needed. With one slack the
    tangents are those of the sum of all losses (Joachims, Finley and Yu 2009, algorithm 3), with n
    slacks each sequence has its own (Tsochantaridis, Joachims, Hofmann and Altun 2005, algorithm
    1).

    The log has the gap between the objective and the value of the program, which no parameters are
    below. The parameters are those of the smallest objective so far.

    Parameters
    ----------
    slack : {"one", "n"}, default="one"
        "one" for all sequences: evaluations of the objective over all threads. "n": one for each;
        fewer passes, more memory and more work between them, in one thread.
    max_iter : int, default=500
        Iterations at most, each a pass over the data.
    tol : float, default=1e-3
        Stop when the gap is below this share of the objective.

    Notes
    -----
    For any convex loss that is never negative, and c2 > 0. Holds a vector of all parameters for
    each tangent that has counted in the last 50 iterations; with n slacks one of the parameters
    that the sequence touches.

    Examples
    --------
    >>> from crfkit import MaxMarginCRF
    >>> from crfkit.solvers.margin import CuttingPlane
    >>> MaxMarginCRF(solver=CuttingPlane(slack="n"))
    MaxMarginCRF(solver=CuttingPlane(slack='n'))
    """

    requires: ClassVar[tuple[str, ...]] = ("value_and_grad", "minibatches")
    needs_known_labels: ClassVar[bool] = True
    checks: ClassVar[dict[str, Check]] = CHECKS

    slack: str = "one"
    max_iter: int = 500
    tol: float = 1e-3

    def solve(
        self, objective: Objective, start: FloatArray, callback: Callback | None = None
    ) -> SolverResult:
        """Minimize an objective with a convex loss, see :meth:`crfkit.solvers.Solver.solve`.

        The callback is given the parameters of the smallest objective so far.
        """
        self.check_parameters()
        check_match(self, objective)
        check_convex(self, objective)
        if not objective.penalty.l2 > 0.0:
            raise ValueError("solver CuttingPlane needs an L2 penalty, but c2=0.")
        log = SolverLog(objective, callback)
        return log.guard(lambda: self._iterate(objective, start, log))

    def _iterate(self, objective: Objective, start: FloatArray, log: SolverLog) -> SolverResult:
        planes: Any = (_OnePlane if self.slack == "one" else _OwnPlanes)(objective)
        w, best, lowest = start.copy(), start.copy(), math.inf
        while True:
            value = planes.add(w)
            if not math.isfinite(value) and not log.history:
                raise ValueError(f"the objective is {value} at the start; it must be finite.")
            if value < lowest:
                best, lowest = w.copy(), value
            exact, number = has_exact_values(objective), len(log.history)
            gap = certified_gap(lowest, planes.lower_bound, exact=exact)
            known = gap if exact else math.nan
            if log.add(best, lowest, gap=known, iteration=number):
                return log.result("stopped by a callback", converged=False)
            if gap <= self.tol * lowest:
                return log.result(f"the gap {gap:.3g} is below tol", converged=True)
            if number >= self.max_iter:
                return log.result(
                    f"max_iter={self.max_iter} iterations were not enough: the objective is "
                    f"{lowest:.6g}, at most {gap:.3g} above its optimum. Increase max_iter, or ask "
                    "for less (larger tol, a stronger penalty)",
                    converged=False,
                )
            w = planes.solve(gap)


class _Planes:
    """Tangents of one loss, how much each counts, and for how long it has not."""

    def __init__(self) -> None:
        self.slopes: list[FloatArray] = []
        self.offsets, self.gram = np.empty(0), np.empty((0, 0))
        self.shares, self._unused = np.empty(0), np.empty(0, np.int64)

    def add(self, offset: float, slope: FloatArray) -> None:
        """Add a tangent."""
        self.slopes.append(frozen(slope))
        size = len(self.slopes)
        gram = np.empty((size, size))
        gram[:-1, :-1] = self.gram
        gram[-1] = gram[:, -1] = self.along(slope)
        self.gram, self.offsets = gram, np.append(self.offsets, offset)
        self.shares, self._unused = np.append(self.shares, 0.0), np.append(self._unused, 0)

    def along(self, w: FloatArray) -> FloatArray:
        """Return the inner products of the slopes and a vector."""
        return np.array([vector_dot(slope, frozen(w)) for slope in self.slopes])

    def add_slopes(self, factor: float, out: FloatArray) -> None:
        """Add the slopes, by how much they count."""
        for share, slope in zip(self.shares.tolist(), self.slopes, strict=True):
            if share > 0.0:
                vector_add(factor * share, slope, out)

    def forget(self, most: int) -> None:
        """Keep the tangents that have counted in so many of the last solutions."""
        self._unused = np.where(self.shares > 0.0, 0, self._unused + 1)
        kept = self._unused <= most
        self.slopes = [slope for slope, keep in zip(self.slopes, kept, strict=True) if keep]
        self.offsets, self.shares = self.offsets[kept], self.shares[kept]
        self._unused, self.gram = self._unused[kept], self.gram[np.ix_(kept, kept)]


class _OnePlane:
    """Tangents of the whole loss."""

    def __init__(self, objective: Objective) -> None:
        self.objective, self.scale = objective, 0.5 / objective.penalty.l2
        self.planes, self.lower_bound = _Planes(), 0.0

    def add(self, w: FloatArray) -> float:
        """Add the tangent at some parameters; returns the objective there."""
        value, slope = self.objective.value_and_grad(w)
        slope -= 2.0 * self.objective.penalty.l2 * w
        loss = value - self.objective.penalty.smooth_value(w)
        self.planes.add(loss - vector_dot(frozen(slope), frozen(w)), slope)
        return float(value)

    def solve(self, gap: float) -> FloatArray:
        """Return the parameters of the smallest maximum of all tangents, plus the penalty."""
        planes, w = self.planes, np.zeros(self.objective.n_parameters)
        found = solve_simplex_qp(self.scale * planes.gram, planes.offsets, start=planes.shares)
        planes.shares, self.lower_bound = found.shares, max(self.lower_bound, found.value)
        planes.add_slopes(-self.scale, w)
        planes.forget(FORGET)
        return w


class _OwnPlanes:
    """Tangents of the loss of each sequence."""

    def __init__(self, objective: Objective) -> None:
        self.objective, self.c2 = objective, objective.penalty.l2
        self.batches = objective.minibatches(1, 0)
        self.planes = [_Planes() for _ in range(len(self.batches))]
        self.w = np.zeros(objective.n_parameters)
        self.lower_bound = 0.0

    def add(self, w: FloatArray) -> float:
        """Add tangents at some parameters where they are above the others; returns the value."""
        self.objective.evaluations += 1
        work = partial(tangent, self.batches, self.batches.bind(w), 1.0)
        found = self.batches.map_batches(work, range(len(self.batches)))
        loss = sum(one.value for one in found)
        for index, (one, planes) in enumerate(zip(found, self.planes, strict=True)):
            heights = planes.offsets + planes.along(w[self.batches.places(index)])
            if one.value > heights.max(initial=0.0) * (1.0 + TIE) + TIE * loss / len(found):
                planes.add(one.offset, one.gradient)
        return float(loss + self.objective.penalty.smooth_value(w))

    def solve(self, gap: float) -> FloatArray:
        """Return about the parameters of the least sum of maxima, plus the penalty."""
        before = self._dual()
        for _ in range(SWEEPS):
            for index, planes in enumerate(self.planes):
                if len(planes.offsets):
                    self._solve_one(index, planes)
            after = self._dual()
            if after - before <= LEAST_RISE * gap:
                break
            before = after
        for planes in self.planes:
            planes.forget(0)
        self.lower_bound = max(self.lower_bound, after)
        return self.w.copy()

    def _dual(self) -> float:
        offsets = sum(float(np.dot(p.offsets, p.shares)) for p in self.planes)
        return float(offsets - self.c2 * vector_dot(frozen(self.w), frozen(self.w)))

    def _solve_one(self, index: int, planes: _Planes) -> None:
        """Let the tangents of a sequence count as is best, those of all others being fixed."""
        places, scale = self.batches.places(index), 0.5 / self.c2
        w = self.w[places]
        planes.add_slopes(scale, w)
        linear = planes.offsets + planes.along(w)
        found = solve_simplex_qp(scale * planes.gram, linear, start=planes.shares, turns=1)
        planes.shares = found.shares
        planes.add_slopes(-scale, w)
        self.w[places] = w


class SimplexSolution(NamedTuple):
    """Shares (m,), the objective there, and how far it is below its maximum, at most."""

    shares: FloatArray
    value: float
    gap: float


def solve_simplex_qp(
    gram: FloatArray,
    linear: FloatArray,
    total: float = 1.0,
    *,
    start: FloatArray | None = None,
    tol: float = 1e-12,
    turns: int = 100,
) -> SimplexSolution:
    """Maximize ``linear . a - a' gram a / 2`` over ``a >= 0`` with ``sum a <= total``.

    From `start`, shape (k,), and 0 for others. Slopes that differ by less than a share `tol` of the
    largest number of `linear` are equal. It makes at most so many `turns` of a thousand steps.
    """
    size = len(linear)
    # What is left of the total is one more variable, which changes nothing.
    whole, rising = np.zeros((size + 1, size + 1)), np.append(linear, 0.0)
    whole[:size, :size] = gram
    shares = np.zeros(size + 1)
    if start is not None:
        shares[: len(start)] = start
    shares[size] = max(total - shares.sum(), 0.0)
    limit = tol * float(np.abs(rising).max(initial=0.0))
    for _ in range(turns):
        slope = rising - whole @ shares
        if simplex_ascend(frozen(whole), limit, STEPS, shares, slope) < STEPS:
            break
    slope = rising - whole @ shares
    value = 0.5 * float(np.dot(rising + slope, shares))
    gap = total * float(slope.max()) - float(np.dot(slope, shares))
    return SimplexSolution(shares[:size], value, max(gap, 0.0))
