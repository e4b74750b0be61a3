"""Stochastic gradient descent with a calibrated rate, averaging and an L1 penalty."""

from __future__ import annotations

import math
from functools import partial
from typing import Any, ClassVar

import numpy as np

from crfkit._params import check_flag, check_number, check_whole
from crfkit._types import FloatArray, IdArray, IntArray, Random
from crfkit.compiler.jit import frozen
from crfkit.kernels.solvers.stochastic import averaged_step, cumulative_l1, scaled_read
from crfkit.objective.stochastic import StochasticObjective, rounds
from crfkit.solvers.base import SolverLog
from crfkit.solvers.stochastic.base import MiniBatchSolver, Search

# The calibration tries rates on this share of the batches, and on at least so many.
SAMPLE_SHARE, SAMPLE_LEAST = 0.1, 10
FIRST_RATE = 0.1
MOST_TRIALS = 40
# Passes of a trial for a loss with corners: in the first one, ties lead a subgradient anywhere.
ROUGH_PASSES = 5
# So many times the period is waited for a lower value, where values do not fall pass by pass.
ROUGH_PATIENCE = 4
# There the rate falls at least like 1 / (1 + this times the passes): subgradients do not shrink.
ROUGH_DECAY = 0.5
# The rate is multiplied by this each pass where there is an L1 or no penalty.
SLOWER = 0.85
# How the rate of averaged descent falls: slower than 1 / t, so that the average is over much.
AVERAGED_POWER = 0.75
LEAST_SCALE = 1e-9


class SGD(MiniBatchSolver):
    """Stochastic gradient descent (Bottou 2010), a step after each small batch of sequences.

    The rate of step ``t`` is ``eta0 / (1 + lambda eta0 t)`` with ``lambda = 2 c2 / B`` for ``B``
    batches. With c1 > 0, or with no penalty, it falls by 15 percent a pass, and the L1 penalty is
    the cumulative one of Tsuruoka, Tsujii and Ananiadou (2009): a weight that is not touched pays
    later what it owes. `eta0` is calibrated as in CRFsuite: a pass over a sample of the data is
    made with a first rate, then with doubled ones as long as that lowers the objective of the
    sample, or else with halved ones. Unlike there, a trial starts from the parameters given, and
    where no rate lowers the objective, the first one is kept.

    With a loss that is not differentiable, such as a hinge loss, steps along subgradients need not
    go downhill at once, and do not shrink near the optimum. A trial is then of five passes, the
    rate after ``n`` passes is ``eta0 / (1 + n / 2)`` at most, and it takes longer to be done (see
    `tol`).

    Parameters
    ----------
    max_iter : int, default=100
        Passes over the data at most.
    tol : float, default=1e-3
        Stop when the objective fell by less than this, relatively, over `period` passes. With a
        loss that is not differentiable: when its least value so far did, over four times as many
        passes, and is below that of the start.
    period : int, default=5
        See `tol`.
    eta0 : float or None, default=None
        The first rate; calibrated, if None.
    average : bool, default=False
        Whether the parameters are the mean of those after all steps from the second pass on
        (Polyak and Juditsky 1992), with the rate ``eta0 / (1 + lambda eta0 t)**0.75`` (Xu 2011).
        Not with c1 > 0: a mean has few zeros.
    batch_tokens : int or None, default=None
        About as many tokens has a batch; if None, a two-thousandth of all. A larger one takes less
        time a pass and more passes.
    batches_per_update : int, default=1
        Batches that are computed from the same parameters, by as many threads at once, and applied
        one after the other. The result depends on it, and not on the number of threads.
    random_state : int, RandomState or None, default=0
        Deals the sequences to the batches and orders the batches of each pass.

    Notes
    -----
    An evaluation of the whole objective follows each pass. As in CRFsuite, the result is the best
    of all passes.

    Examples
    --------
    >>> from crfkit import CRFClassifier
    >>> from crfkit.solvers import SGD
    >>> CRFClassifier(solver=SGD(average=True))
    CRFClassifier(solver=SGD(average=True))
    """

    handles_partial: ClassVar[bool] = True
    keeps_best: ClassVar[bool] = True
    n_batches: ClassVar[int | None] = 2000
    advice: ClassVar[str] = ": use a smaller eta0"

    def __init__(
        self,
        *,
        max_iter: int = 100,
        tol: float = 1e-3,
        period: int = 5,
        eta0: float | None = None,
        average: bool = False,
        batch_tokens: int | None = None,
        batches_per_update: int = 1,
        random_state: int | np.random.RandomState | None = 0,
    ) -> None:
        self.max_iter = max_iter
        self.tol = tol
        self.period = period
        self.eta0 = eta0
        self.average = average
        self.batch_tokens = batch_tokens
        self.batches_per_update = batches_per_update
        self.random_state = random_state

    def partial(
        self, objective: Any, start: FloatArray, state: dict[str, Any] | None
    ) -> tuple[FloatArray, dict[str, Any]]:
        """Make one pass over the data of an objective.

        Parameters
        ----------
        objective : Objective
            Of some data; their loss and the whole penalty.
        start : ndarray of shape (P,)
            First parameters; not changed.
        state : dict or None
            What the last call returned, with its arrays of shape (P,) in the order of the
            parameters.

        Returns
        -------
        parameters : ndarray of shape (P,)
            The parameters after the pass; with `average`, the mean of those of all passes.
        state : dict
            The first rate and the numbers of steps and passes; with `average`, also the last
            parameters.

        Raises
        ------
        ValueError
            If a parameter is out of range.
        """
        random, batches = self._begin(objective)
        if state is None:
            eta0 = self._first_rate(batches, start, random)
            state = {"eta0": eta0, "steps": 0, "passes": 0, "averaged": 0}
        descent = Descent(batches, state.get("last", start), state["eta0"], bool(self.average))
        descent.steps, descent.passes = state["steps"], state["passes"]
        descent.run_pass(random.permutation(len(batches)), int(self.batches_per_update))
        state = state | {"steps": descent.steps, "passes": descent.passes}
        last = descent.weights()
        if not self.average or descent.averaged == 0:
            return last, state
        count = state["averaged"] + descent.averaged
        mean = start + descent.averaged / count * (descent.mean() - start)
        return mean, state | {"averaged": count, "last": last}

    def _check_own_parameters(self) -> None:
        check_whole("period", self.period, 1)
        check_flag("average", self.average)
        if self.eta0 is not None:
            check_number("eta0", self.eta0)

    def _check_objective(self, objective: Any) -> None:
        if self.average and objective.l1:
            raise ValueError(
                f"solver SGD with average=True needs c1=0, but c1={objective.l1:g}: a mean of "
                "weights has few zeros. Use average=False."
            )

    def _first_rate(self, batches: StochasticObjective, start: FloatArray, random: Random) -> float:
        if self.eta0 is not None:
            return float(self.eta0)
        return calibrate(batches, start, random, int(self.batches_per_update))

    def _start(self, batches: StochasticObjective, start: FloatArray, random: Random) -> Descent:
        rate = self._first_rate(batches, start, random)
        return Descent(batches, start, rate, bool(self.average))

    def _pass(self, search: Descent, number: int, random: Random, log: SolverLog) -> FloatArray:
        if number == 1:
            search.start_mean()
        search.run_pass(random.permutation(len(search.batches)), int(self.batches_per_update))
        return search.mean() if self.average else search.weights()

    def _why_done(self, search: Descent, w: FloatArray, log: SolverLog) -> str | None:
        if log.history[-1].value == 0.0:
            return "the objective is 0"
        passes = int(self.period)
        if is_smooth(search.batches):
            done = log.has_stalled(passes, self.tol)
        else:
            passes *= ROUGH_PATIENCE
            done = has_settled([record.value for record in log.history], passes, self.tol)
        return f"the objective fell by less than tol in {passes} passes" if done else None


class Descent(Search):
    """The parameters and their mean, moved by the gradient of one batch after the other.

    The parameters are ``w = scale v``, so that the L2 penalty changes one number a step.

    Parameters
    ----------
    batches : StochasticObjective
        The data.
    start : ndarray of shape (P,)
        First parameters; not changed.
    eta0 : float
        The first rate.
    average : bool
        Whether the mean is what is asked for: the rate then falls more slowly.

    Attributes
    ----------
    steps : int
        Steps that were made.
    passes : int
        Passes that were finished: other batches than these may have been in them.
    averaged : int
        Parameters that are in the mean.
    """

    batches: StochasticObjective

    def __init__(
        self, batches: StochasticObjective, start: FloatArray, eta0: float, average: bool
    ) -> None:
        self.batches = batches
        self.steps, self.passes, self.averaged = 0, 0, 0
        self._made = 0
        self._eta0, self._power = eta0, AVERAGED_POWER if average else 1.0
        self._decay = 2.0 * batches.penalty.l2 / max(len(batches), 1)
        self._smooth = is_smooth(batches)
        self._v, self._w, self._scale = start.copy(), start.copy(), 1.0
        self._lag, self._past = np.zeros(len(start)), 0.0
        self._paid, self._due = np.zeros(len(start)), 0.0
        self._all = np.arange(len(start), dtype=np.uint32)

    @property
    def rate(self) -> float:
        """The rate of the next step."""
        passes = self.passes + self._made / max(len(self.batches), 1)
        if self.batches.penalty.l1 or not self._decay:
            return float(self._eta0 * SLOWER**passes)
        rate = self._eta0 / (1.0 + self._decay * self._eta0 * self.steps) ** self._power
        if not self._smooth:
            rate = min(rate, self._eta0 / (1.0 + ROUGH_DECAY * passes))
        return float(min(rate, 0.5 / self._decay))

    def weights(self) -> FloatArray:
        """Return the parameters, a new array."""
        return self._scale * self._v

    def evaluate(self, w: FloatArray) -> tuple[FloatArray, float]:
        """Return the parameters and the objective there."""
        return w, self.batches.value(w)

    def distance(self, value: float) -> tuple[float, float]:
        """Return NaN: neither the norm of the gradient nor the gap is known."""
        return math.nan, math.nan

    def mean(self) -> FloatArray:
        """Return the mean of the parameters after all steps since `start_mean`."""
        if self.averaged == 0:
            return self.weights()
        mean: FloatArray = (self._past * self._v - self._lag) / self.averaged
        return mean

    def start_mean(self) -> None:
        """Let the mean begin anew."""
        self.averaged, self._past = 0, 0.0
        self._lag[:] = 0.0

    def run_pass(self, order: IntArray, batches_per_update: int) -> None:
        """Make a step for each of some batches; all weights are then up to date."""
        for chosen in rounds(order, batches_per_update):
            places = [self.batches.places(index) for index in chosen]
            for touched in places:
                scaled_read(frozen(touched), self._scale, frozen(self._v), self._w)
            work = partial(self._gradient, self.batches.bind(self._w))
            gradients = self.batches.map_batches(work, chosen)
            for touched, gradient in zip(places, gradients, strict=True):
                self._step(touched, gradient)
        self.passes, self._made = self.passes + 1, 0
        if self.batches.penalty.l1:
            self._pay(self._all)

    def _gradient(self, bound: Any, index: int) -> FloatArray:
        residual = self.batches.value_and_residual(self.batches.scores(bound, index), index)[1]
        return self.batches.gradient(index, residual)

    def _step(self, places: IdArray, gradient: FloatArray) -> None:
        """Move along the gradient of a batch and that of its share of the penalty."""
        rate = self.rate
        self._scale *= 1.0 - rate * self._decay
        averaged_step(
            frozen(places), frozen(gradient), rate / self._scale, self._past, self._v, self._lag
        )
        if self.batches.penalty.l1:
            self._due += rate * self.batches.penalty.l1 / len(self.batches)
            self._pay(places)
        self._past += self._scale
        self.steps += 1
        self._made += 1
        self.averaged += 1
        if self._scale < LEAST_SCALE:
            self._rescale()

    def _pay(self, places: IdArray) -> None:
        cumulative_l1(frozen(places), self._scale, self._due, self._paid, self._v)

    def _rescale(self) -> None:
        """Write the parameters with the scale 1."""
        self._v *= self._scale
        self._past /= self._scale
        self._scale = 1.0


def calibrate(
    batches: StochasticObjective, start: FloatArray, random: Random, batches_per_update: int
) -> float:
    """Return the rate with which passes over a sample lower the objective of the sample most.

    Doubled from a first one as long as that helps, or else halved; the first one where none helps.
    One pass is made, or some more with a loss that is not differentiable.
    """
    size = max(SAMPLE_LEAST, int(SAMPLE_SHARE * len(batches)))
    sample = random.permutation(len(batches))[:size]
    passes = 1 if is_smooth(batches) else ROUGH_PASSES

    def trial(rate: float) -> float:
        descent = Descent(batches, start, rate, False)
        for _ in range(passes):
            descent.run_pass(sample, batches_per_update)
        return batches.value(descent.weights(), sample)

    before = batches.value(start, sample)
    best, lowest = FIRST_RATE, before
    for factor in (2.0, 0.5):
        rate = FIRST_RATE if factor > 1.0 else factor * FIRST_RATE
        for _ in range(MOST_TRIALS):
            value = trial(rate)
            if value < lowest:
                best, lowest = rate, value
            elif factor > 1.0 or lowest < before:
                break
            rate *= factor
        if best > FIRST_RATE:
            break
    return best


def is_smooth(batches: StochasticObjective) -> bool:
    """Whether the loss is differentiable everywhere."""
    return batches.loss.is_smooth


def has_settled(values: list[float], period: int, tol: float) -> bool:
    """Whether the least value fell by less than `tol`, relatively, in the last `period` passes.

    Not before some value was below the first one: what never got better has not been solved.
    """
    if len(values) <= period:
        return False
    before, now = min(values[:-period]), min(values)
    return now < values[0] and before - now < tol * abs(now)
