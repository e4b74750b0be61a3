"""Stochastic average gradient: steps after each small batch that converge like those of a batch."""

from __future__ import annotations

import math
from typing import Any, ClassVar, NamedTuple

import numpy as np

from crfkit._jit import frozen
from crfkit._params import check_number, check_whole
from crfkit._types import Expectations, FloatArray, IdArray, IntArray, Scores
from crfkit.kernels.stochastic import DIRECTION, SEEN, VALUE, lazy_read, lazy_turn
from crfkit.kernels.vector import vector_dot
from crfkit.minibatches import MiniBatches
from crfkit.solvers.rounds import MiniBatchSolver, PassLog, Random, rounds

# Passes in which the objective has to fall.
PERIOD = 5
# The objective is evaluated at least every so many passes, and where the gap that is expected from
# the last losses of the batches is below so many times the one asked for.
CHECK_EVERY, NEARLY = 8, 2.0
# What happens to the estimate of a smoothness before it is tested, and each time it is too small.
LESS, MORE = 0.9, 1.5
# What happens to all estimates when the objective rose in a pass.
RISE = 1.25
# Visits between tests at most.
LONGEST_PAUSE = 8
MOST_TESTS = 200
# A decrease of the loss by less than this share of it is not told from rounding.
LEAST_CHANGE = 1e-9
# Batches that are computed before their gradients are remembered.
REFRESHED = 16
# The scale of the weights below which they are written anew, before anything overflows.
LEAST_SCALE = 1e-9


class SAG(MiniBatchSolver):
    """Stochastic average gradient with non-uniform sampling (Schmidt et al. 2015).

    Remembers the last gradient of each batch of sequences, as expected minus observed counts of
    its labels and steps, and moves along the mean of them after each visit. Batches are visited
    half at random, half in proportion to the estimated smoothness ``L_b`` of their loss, which
    also gives the length of a step, ``1/2 (1 / max L + 1 / mean L)``. Weights that a batch does not
    touch are moved when they are next needed.

    The remembered gradients and losses bound the optimum from below (each loss lies above its
    tangent), so that the gap to the optimum is known: with c2 > 0, the log loss, and equal weights
    within a sequence.

    Parameters
    ----------
    max_iter : int, default=200
        Passes over the data at most.
    tol : float, default=1e-4
        Stop when the gap is below this share of the objective; where the gap is not known, when
        the objective fell by less than this, relatively, over 5 passes.
    gtol : float, default=1e-5
        Stop when the norm of the gradient is below this times the norm of the parameters (or 1).
    batch_tokens : int or None, default=None
        About as many tokens has a batch; if None, a five-hundredth of all. A larger one takes less
        time a pass and more passes.
    round_size : int, default=1
        Batches that are computed from the same parameters, by as many threads at once, and applied
        one after the other. The result depends on it, and not on the number of threads.
    check_every : int or None, default=None
        The objective is evaluated, and the log gets a record, after so many passes. None: where the
        gap is known, after 1, 2, 4 and 8 passes, then every 8, and where the last losses of the
        batches let it be expected near `tol`; else after each.
    random_state : int, RandomState or None, default=0
        Deals the sequences to the batches and chooses the batches to visit.

    Notes
    -----
    Needs c1 = 0 and a linear score model. Holds a number for each token and label, and a table of
    steps for each batch.

    Examples
    --------
    >>> from crfkit import CRFClassifier
    >>> from crfkit.solvers import SAG
    >>> CRFClassifier(solver=SAG(tol=1e-3))
    CRFClassifier(solver=SAG(tol=0.001))
    """

    handles_l1: ClassVar[bool] = False
    n_batches: ClassVar[int | None] = 500

    def __init__(
        self,
        *,
        max_iter: int = 200,
        tol: float = 1e-4,
        gtol: float = 1e-5,
        batch_tokens: int | None = None,
        round_size: int = 1,
        check_every: int | None = None,
        random_state: int | np.random.RandomState | None = 0,
    ) -> None:
        self.max_iter = max_iter
        self.tol = tol
        self.gtol = gtol
        self.batch_tokens = batch_tokens
        self.round_size = round_size
        self.check_every = check_every
        self.random_state = random_state

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_number("gtol", self.gtol)
        if self.check_every is not None:
            check_whole("check_every", self.check_every, 1)

    def _start(self, batches: MiniBatches, start: FloatArray, random: Random) -> AverageGradient:
        return AverageGradient(batches, start)

    def _pass(
        self, search: AverageGradient, number: int, random: Random, log: PassLog
    ) -> FloatArray:
        if _has_risen(log):
            search.smoothness.raise_all()
        search.run_pass(random, int(self.round_size))
        return search.weights()

    def _is_due(self, search: AverageGradient, number: int, log: PassLog) -> bool:
        if self.check_every is not None:
            return number % self.check_every == 0
        if not log.history or not (search.batches.penalty.l2 and _is_convex(search.batches)):
            return True
        last = log.history[-1]
        late = number >= min(2 * last.iteration, last.iteration + CHECK_EVERY)
        return late or search.expected_gap() <= NEARLY * self.tol * abs(last.value)

    def _distance(self, search: AverageGradient, value: float) -> tuple[float, float]:
        bound = search.lower_bound() if _is_convex(search.batches) else -math.inf
        gap = max(value - bound, 0.0) if math.isfinite(bound) else math.nan
        return search.gradient_norm(), gap

    def _why_done(self, search: AverageGradient, w: FloatArray, log: PassLog) -> str | None:
        record = log.history[-1]
        if record.gap <= self.tol * abs(record.value):
            return f"the gap {record.gap:.3g} is below tol"
        if not math.isfinite(record.gap) and self.tol and log.has_stalled(PERIOD, self.tol):
            return f"the objective fell by less than tol in {PERIOD} passes"
        least = self.gtol * max(1.0, math.sqrt(vector_dot(frozen(w), frozen(w))))
        # The remembered gradients are of earlier parameters: look at all batches once more.
        if record.gradient_norm <= least:
            search.refresh()
            if search.gradient_norm() <= least:
                return f"the gradient norm {search.gradient_norm():.3g} is below gtol"
        return None

    def _how_far(self, log: PassLog) -> str:
        return f", the gradient norm {log.history[-1].gradient_norm:.3g}"


class _Tangent(NamedTuple):
    """The loss of a batch at its last visit: ``loss(w) >= offset + residual . scores(w)``."""

    residual: Expectations
    offset: float
    value: float


class _Visit(NamedTuple):
    """What a visit of a batch changes.

    Attributes
    ----------
    tangent : _Tangent
        The loss at the current parameters.
    places : ndarray of shape (n,)
        Parameters that the batch touches.
    change : ndarray of shape (n,)
        The change of its gradient to them.
    """

    tangent: _Tangent
    places: IdArray
    change: FloatArray


class AverageGradient:
    """The parameters, the last gradient of each batch, and their sum.

    The parameters are ``w = scale v``. Between two changes of the sum ``d`` of the gradients at a
    place, all steps go along the same ``d`` there: ``v -= (sum of step lengths) d``.

    Parameters
    ----------
    batches : MiniBatches
        The data.
    start : ndarray of shape (P,)
        First parameters; not changed.
    """

    def __init__(self, batches: MiniBatches, start: FloatArray) -> None:
        self.batches = batches
        self.smoothness = Smoothness(batches)
        self.tangents: list[_Tangent | None] = [None] * len(batches)
        self._decay = 2.0 * batches.penalty.l2 / max(len(batches), 1)
        self._lazy, self._w = np.zeros((len(start), 3)), start.copy()
        self._lazy[:, VALUE] = start
        self._scale, self._total, self._known = 1.0, 0.0, 0
        self._all = np.arange(len(start), dtype=np.uint32)
        if start.any():  # else the first steps would lead away from what is good already
            self.refresh()

    @property
    def direction(self) -> FloatArray:
        """The sum of the remembered gradients of the loss, shape (P,)."""
        return self._lazy[:, DIRECTION].copy()

    def weights(self) -> FloatArray:
        """Return the parameters after all steps, a new array."""
        self._read(self._all)
        self._lazy[:, VALUE] = self._w
        self._lazy[:, SEEN] = 0.0
        self._scale, self._total = 1.0, 0.0
        return self._w.copy()

    def gradient_norm(self) -> float:
        """Return the norm of the remembered gradient; to be called right after `weights`."""
        if self._known < len(self.batches):
            return math.nan
        gradient = self.direction + 2.0 * self.batches.penalty.l2 * self._w
        return math.sqrt(vector_dot(frozen(gradient), frozen(gradient)))

    def lower_bound(self) -> float:
        """Return a value that no parameters have less than.

        The least value of the tangents plus the penalty: ``sum_b offset_b - |d|^2 / (4 c2)``.
        """
        if self._known < len(self.batches):
            return -math.inf
        offset = sum(tangent.offset for tangent in self.tangents if tangent is not None)
        direction = self.direction
        square = vector_dot(frozen(direction), frozen(direction))
        if square == 0.0:
            return offset
        c2 = self.batches.penalty.l2
        return offset - square / (4.0 * c2) if c2 else -math.inf

    def expected_gap(self) -> float:
        """Return what the gap would be if all losses still were those of the last visits.

        To be called right after `weights`. Losses of earlier parameters are larger as a rule.
        """
        losses = sum(tangent.value for tangent in self.tangents if tangent is not None)
        return losses + self.batches.penalty.smooth_value(self._w) - self.lower_bound()

    def run_pass(self, random: Random, round_size: int) -> None:
        """Make as many steps as there are batches."""
        for chosen in rounds(self.smoothness.draw(random), round_size):
            for index, visit in zip(chosen, self._visit_all(chosen), strict=True):
                self._remember(index, visit)
                self._step()

    def refresh(self) -> None:
        """Compute the gradients of all batches at the current parameters."""
        bound = self.batches.bind(self.weights())
        for chosen in rounds(np.arange(len(self.batches)), REFRESHED):
            work = [(index, self.batches.places(index), False) for index in chosen]
            visits = self.batches.visit(lambda item: self._visit(bound, *item), work)
            for index, visit in zip(chosen, visits, strict=True):
                self._remember(index, visit)

    def _visit_all(self, chosen: list[int]) -> list[_Visit]:
        """Look at batches from the current parameters, which none of them changes."""
        work = [(i, self.batches.places(i), self.smoothness.is_due(i)) for i in chosen]
        for _, places, _ in work:
            self._read(places)
        bound = self.batches.bind(self._w)
        visits: list[_Visit] = self.batches.visit(lambda item: self._visit(bound, *item), work)
        self.smoothness.guess_from(chosen[-1])
        return visits

    def _visit(self, bound: Any, index: int, places: IdArray, test: bool) -> _Visit:
        """Look at a batch, and perhaps test its smoothness."""
        scores = self.batches.scores(bound, index)
        value, residual = self.batches.value_and_residual(scores, index)
        offset = value - _inner(residual.unary, scores.unary) - _inner(residual.pair, scores.pair)
        before, change = self.tangents[index], residual
        if before is not None:
            old = before.residual
            change = Expectations(residual.unary - old.unary, residual.pair - old.pair)
        gradient = self.batches.gradient(index, change)
        if test:
            whole = gradient if before is None else self.batches.gradient(index, residual)
            self.smoothness.test(index, scores, value, whole, places)
        return _Visit(_Tangent(residual, offset, value), places, gradient)

    def _read(self, places: IdArray) -> None:
        """Bring parameters up to date."""
        lazy_read(frozen(places), self._scale, self._total, self._lazy, self._w)

    def _remember(self, index: int, visit: _Visit) -> None:
        """Replace the gradient of a batch."""
        self._known += self.tangents[index] is None
        self.tangents[index] = visit.tangent
        lazy_turn(frozen(visit.places), frozen(visit.change), self._total, self._lazy)

    def _step(self) -> None:
        """Move along the mean of the gradients and the gradient of the penalty."""
        length = self.smoothness.step(self._decay)
        self._scale *= 1.0 - length * self._decay
        self._total += length / (self._known * self._scale)
        if self._scale < LEAST_SCALE:
            self.weights()


class Smoothness:
    """Estimates of the Lipschitz constant ``L_b`` of the gradient of the loss of each batch.

    An estimate is good where ``loss(w - g / L) <= loss(w) - |g|^2 / (2 L)``. It is tested now and
    then, more rarely the longer it has been good.

    Parameters
    ----------
    batches : MiniBatches
        The data.
    """

    def __init__(self, batches: MiniBatches) -> None:
        self.batches = batches
        count = len(batches)
        self.estimates = np.zeros(count)
        self._guess = batches.mean_square or 1.0
        self._wait, self._pause = np.zeros(count, np.int64), np.ones(count, np.int64)

    def is_due(self, index: int) -> bool:
        """Whether the batch that is now visited shall be tested."""
        if self.estimates[index] == 0.0:
            self.estimates[index] = self._guess / LESS
            return True
        self._wait[index] -= 1
        return bool(self._wait[index] < 0)

    def test(self, index: int, scores: Scores, value: float, whole: FloatArray,
             places: IdArray) -> None:  # fmt: skip
        """Find a good estimate, given the gradient of the batch at its places."""
        square, estimate = vector_dot(frozen(whole), frozen(whole)), LESS * self.estimates[index]
        if not square > LEAST_CHANGE * abs(value) * estimate:
            return
        vector = np.zeros(self.batches.n_parameters)
        vector[places] = whole
        along = self.batches.scores(self.batches.bind(vector), index)
        tests = 0
        while tests < MOST_TESTS:
            moved = scores._replace(
                unary=scores.unary - along.unary / estimate,
                pair=scores.pair - along.pair / estimate,
            )
            tests += 1
            if self.batches.value_and_residual(moved, index)[0] <= value - 0.5 * square / estimate:
                break
            estimate *= MORE
        self.estimates[index] = estimate
        good = tests == 1
        self._pause[index] = min(2 * self._pause[index], LONGEST_PAUSE) if good else 1
        self._wait[index] = self._pause[index]

    def raise_all(self) -> None:
        """Make steps shorter: a test sees the curvature along one direction, not the largest."""
        self.estimates *= RISE

    def guess_from(self, index: int) -> None:
        """Let the estimate of a batch be the first guess for others."""
        self._guess = 0.5 * float(self.estimates[index])

    def step(self, decay: float) -> float:
        """Return the length of a step: ``1/2 (1 / (max L + decay) + 1 / (mean L + decay))``."""
        mean = float(self.estimates.sum()) / np.count_nonzero(self.estimates)
        length = 0.5 / (float(self.estimates.max()) + decay) + 0.5 / (mean + decay)
        return min(length, 0.5 / decay) if decay else length

    def draw(self, random: Random) -> IntArray:
        """Return as many batches as there are, half at random, half in proportion to L.

        Each of them once, before all have an estimate.
        """
        count = len(self.estimates)
        if not count or not self.estimates.all():
            return random.permutation(count)
        order = np.empty(count, np.int64)
        ends = np.cumsum(self.estimates)
        drawn = random.random_sample(count - count // 2) * ends[-1]
        order[::2] = np.minimum(np.searchsorted(ends, drawn, side="right"), count - 1)
        order[1::2] = random.permutation(count)[: count // 2]
        return order


def _has_risen(log: PassLog) -> bool:
    """Whether the objective rose in the last pass, by more than rounding."""
    values = [record.value for record in log.history[-2:]]
    return values[-1] - values[0] > LEAST_CHANGE * abs(values[0])


def _inner(a: FloatArray, b: FloatArray) -> float:
    """Return the sum of products, added up by this thread alone."""
    return vector_dot(frozen(a.reshape(-1)), frozen(b.reshape(-1)))


def _is_convex(batches: MiniBatches) -> bool:
    """Whether the loss lies above its tangents."""
    return batches.has_sequence_weights and getattr(batches.loss, "is_convex", False)
