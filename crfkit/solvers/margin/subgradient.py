"""Stochastic subgradient descent with the rate that strong convexity allows."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

import numpy as np

from crfkit._params import check_flag
from crfkit._types import FloatArray, IntArray, Random
from crfkit.compiler.jit import frozen
from crfkit.kernels.solvers.vector import vector_dot
from crfkit.objective.batch import Objective
from crfkit.objective.penalties import within_bounds
from crfkit.objective.stochastic import StochasticObjective
from crfkit.solvers.base import Check, SolverLog
from crfkit.solvers.margin.bounds import (
    certified_distance,
    check_convex,
    check_l2,
    tangent,
    why_certified,
)
from crfkit.solvers.stochastic.base import MiniBatchSolver, Search
from crfkit.solvers.stochastic.sgd import has_settled

# Where no bound is known, so many passes that lower the objective no more end the search.
PATIENCE = 20


@dataclass(kw_only=True, eq=False, repr=False)
class Subgradient(MiniBatchSolver):
    """Stochastic subgradient descent (Pegasos: Shalev-Shwartz, Singer and Srebro 2007).

    Step t goes along a subgradient of the loss of one batch and of the penalty, with the rate ``1 /
    (lambda t)`` for the mean over batches of the loss plus ``lambda |w|**2 / 2``. The parameters
    then are ``- (sum of subgradients) / (lambda t)``, so that a step costs nothing for weights that
    the batch does not touch. The first pass counts twice: as if one had been made before that found
    nothing to correct. Parameters that may not be negative are 0 where these would be: the minimum
    of all tangents so far and the penalty within the bounds (Xiao 2010, section 2).

    Each step also tells a linear lower bound of the loss of its batch. Their mean, later passes
    counting more, and the penalty have a minimum in closed form, which no parameters are below: the
    log has the gap between the objective and the largest such bound so far.

    Parameters
    ----------
    max_iter, tol
        As for :class:`BlockFrankWolfe`.
    averaging : bool, default=True
        Return the mean of the parameters after all steps, weighted by the number of the step
        (Lacoste-Julien, Schmidt and Bach 2012), not those of the last one.
    batch_tokens : int, default=1
        About as many tokens has a batch; 1 is a sequence each.
    random_state : int, RandomState or None, default=0
        Deals sequences to batches, and orders those.

    Notes
    -----
    For any convex loss, and c2 > 0. The smaller c2, the more passes. Parameters to start from are
    only used where the objective is not above that of zeros.

    Where labels are known in part, the true labels are those of the best labeling that is allowed
    by then. The objective is not convex, and there is no bound: the search ends when the objective
    falls by less than `tol`, relatively, in 20 passes.
    """

    handles_l1: ClassVar[bool] = False
    handles_bounds: ClassVar[bool] = True
    batches_per_update = 1

    checks: ClassVar[dict[str, Check]] = {"averaging": check_flag}

    max_iter: int = 200
    tol: float = 1e-2
    averaging: bool = True
    batch_tokens: int = 1
    random_state: int | np.random.RandomState | None = 0

    def _check_objective(self, objective: Objective) -> None:
        check_l2(self, objective)
        if objective.has_known_labels or not objective.has_convex_loss:
            check_convex(self, objective)

    def why_done(self, search: _Descent, w: FloatArray, log: SolverLog) -> str | None:
        """Return that the gap is small, or the objective falls no more where there is none."""
        if search.batches.is_convex:
            return why_certified(self, search, w, log)
        done = has_settled([record.value for record in log.history], PATIENCE, self.tol)
        return f"the objective fell by less than tol in {PATIENCE} passes" if done else None

    def _start(self, batches: StochasticObjective, start: FloatArray, random: Random) -> _Descent:
        zeros, start = np.zeros_like(start), within_bounds(start, batches.nonnegative)
        if start.any() and not batches.value(start) <= batches.value(zeros):
            start = zeros  # steps from far off are too short to come back soon
        return _Descent(batches, start)

    def _pass(self, search: _Descent, number: int, random: Random, log: SolverLog) -> FloatArray:
        search.run_pass(random.permutation(len(search.batches)))
        return search.mean() if self.averaging else search.weights()


class _Descent(Search):
    """Sums of subgradients, and the parameters that they amount to."""

    batches: StochasticObjective

    def __init__(self, batches: StochasticObjective, start: FloatArray) -> None:
        self.batches, self._count = batches, max(len(batches), 1)
        # With these sums, `count` steps on, the parameters are those of the start.
        self._first = -2.0 * batches.penalty.l2 * start
        self._sums, self._late = self._first.copy(), np.zeros(len(start))
        self.steps, self._passes = 0, 0
        self._slope, self._offset = np.zeros(len(start)), 0.0
        self.lower_bound = 0.0
        # The sums within bounds, and the sum of those of bounded parameters after all steps.
        bounds = batches.nonnegative
        self._bounded = np.flatnonzero(np.zeros(0) if bounds is None else bounds)
        self._inside, self._total = self._sums.copy(), np.zeros(len(self._bounded))

    @property
    def _scale(self) -> float:
        """What the sums are multiplied with to be the parameters."""
        length = (self.steps + self._count) / self._count
        return -0.5 / (self.batches.penalty.l2 * length)

    def weights(self) -> FloatArray:
        """Return the parameters, a new array."""
        return self._scale * self._inside

    def evaluate(self, w: FloatArray) -> tuple[FloatArray, float]:
        """Return the parameters and the objective there."""
        return w, self.batches.value(w)

    def distance(self, value: float) -> tuple[float, float]:
        """Return NaN for the gradient norm, and the gap, NaN where the loss is not convex."""
        if self.batches.is_convex:
            return certified_distance(self, value)
        return math.nan, math.nan

    def mean(self) -> FloatArray:
        """Return the mean of the parameters after all steps, the later ones counting more."""
        steps = self.steps
        if not steps:
            return self.weights()
        total = (steps + 1) * self._sums - self._first - self._late
        parts = 0.5 * steps * (steps + 1) + self._count * steps
        total[self._bounded] = self._total
        return -0.5 * self._count / (self.batches.penalty.l2 * parts) * total

    def run_pass(self, order: IntArray) -> None:
        """Make a step for each of all batches."""
        before, offset = self._sums.copy(), 0.0
        for index in order.tolist():
            bound = self.batches.bind(self._inside)
            scale = self._scale
            work = partial(tangent, self.batches, bound, scale)
            [found] = self.batches.map_batches(work, [index])
            self.steps += 1
            places = self.batches.places(index)
            self._sums[places] += found.gradient
            self._late[places] += self.steps * found.gradient
            self._inside[places] = self._sums[places]
            if len(self._bounded):
                # Sums have the sign that parameters have not.
                inside = np.minimum(self._sums[self._bounded], 0.0)
                self._inside[self._bounded] = inside
                self._total += inside
            offset += found.offset
        self._passes += 1
        rate = 2.0 / (self._passes + 1)
        self._slope += rate * (self._sums - before - self._slope)
        self._offset += rate * (offset - self._offset)
        inside = -within_bounds(-self._slope, self.batches.nonnegative)
        square = vector_dot(frozen(inside), frozen(inside))
        bound = self._offset - square / (4.0 * self.batches.penalty.l2)
        self.lower_bound = max(self.lower_bound, bound)
