"""Stochastic gradient descent with a calibrated rate, averaging and an L1 penalty."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from crfkit._params import check_flag, check_number
from crfkit._types import FloatArray, IntArray, Random
from crfkit.kernels.solvers import sgd as kernels
from crfkit.kernels.solvers.stochastic import cumulative_l1_of_run
from crfkit.objective.batch import Objective
from crfkit.objective.stochastic import StochasticObjective
from crfkit.oracles.batches import BatchOracle
from crfkit.solvers.base import Check, SolverLog, at_least_one
from crfkit.solvers.stochastic.base import MiniBatchSolver, Search
from crfkit.solvers.stochastic.general import make_batch_oracle
from crfkit.solvers.stochastic.state import BatchUpdates

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


@dataclass(kw_only=True, eq=False, repr=False)
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
    `tol`). As in CRFsuite, the objective is evaluated after each pass, and the result is the best
    of all passes.

    That passes no longer help does not mean that the optimum is near, as the rate falls. So the
    gradient is computed in the end, and convergence is only claimed where its norm times that of
    the parameters is at most a tenth of the objective.

    Parameters
    ----------
    max_iter, batches_per_update, random_state
        As for :class:`OEG`.
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
        As for :class:`OEG`; if None, a two-thousandth of all tokens.
    """

    has_to_verify = True
    handles_partial: ClassVar[bool] = True
    keeps_best: ClassVar[bool] = True
    n_batches: ClassVar[int | None] = 2000
    advice: ClassVar[str] = ": use a smaller eta0"

    checks: ClassVar[dict[str, Check]] = {
        "period": at_least_one,
        "average": check_flag,
        "eta0": check_number,
    }

    max_iter: int = 100
    tol: float = 1e-3
    period: int = 5
    eta0: float | None = None
    average: bool = False
    batch_tokens: int | None = None
    batches_per_update: int = 1
    random_state: int | np.random.RandomState | None = 0

    def partial(
        self, objective: Objective, start: FloatArray, state: dict[str, Any] | None
    ) -> tuple[FloatArray, dict[str, Any]]:
        """Make one pass over an objective of some data: their loss and the whole penalty.

        Given are the parameters to start from, shape (P,), and the state that the last call
        returned, or None. Returns the parameters after the pass (with `average`, the mean of those
        of all passes), and the state: the first rate, the numbers of steps and passes and, with
        `average`, the last parameters, shape (P,). ValueError if a parameter is out of range.
        """
        random, batches = self._begin(objective)
        oracle = make_batch_oracle(batches)
        if state is None:
            eta0 = self._first_rate(batches, start, random, oracle)
            state = {"eta0": eta0, "steps": 0, "passes": 0, "averaged": 0}
        last = state.get("last", start)
        descent = Descent(batches, last, state["eta0"], bool(self.average), oracle)
        descent.steps, descent.passes = state["steps"], state["passes"]
        descent.run_pass(random.permutation(len(batches)), int(self.batches_per_update))
        state = state | {"steps": descent.steps, "passes": descent.passes}
        last = descent.weights()
        if not self.average or descent.averaged == 0:
            return last, state
        count = state["averaged"] + descent.averaged
        mean = start + descent.averaged / count * (descent.mean() - start)
        return mean, state | {"averaged": count, "last": last}

    def _check_objective(self, objective: Objective) -> None:
        if self.average and objective.l1:
            raise ValueError(
                f"solver SGD with average=True needs c1=0, but c1={objective.l1:g}: a mean of "
                "weights has few zeros. Use average=False."
            )

    def _first_rate(
        self, batches: StochasticObjective, start: FloatArray, random: Random, oracle: BatchOracle
    ) -> float:
        if self.eta0 is not None:
            return float(self.eta0)
        return calibrate(batches, start, random, int(self.batches_per_update), oracle)

    def _start(self, batches: StochasticObjective, start: FloatArray, random: Random) -> Descent:
        oracle = make_batch_oracle(batches)
        rate = self._first_rate(batches, start, random, oracle)
        return Descent(batches, start, rate, bool(self.average), oracle)

    def _pass(self, search: Descent, number: int, random: Random, log: SolverLog) -> FloatArray:
        if number == 1:
            search.start_mean()
        search.run_pass(random.permutation(len(search.batches)), int(self.batches_per_update))
        return search.mean()

    def why_done(self, search: Descent, w: FloatArray, log: SolverLog) -> str | None:
        """Return why the last record is convergence, or None."""
        if log.history[-1].value == 0.0:
            return "the objective is 0"
        passes = int(self.period)
        if search.batches.loss.is_smooth:
            done = log.has_stalled(passes, self.tol)
        else:
            passes *= ROUGH_PATIENCE
            done = has_settled([record.value for record in log.history], passes, self.tol)
        return f"the objective fell by less than tol in {passes} passes" if done else None


class Descent(BatchUpdates, Search):
    """The parameters and their mean, moved by the gradient of one batch after the other.

    With an average, the rate falls more slowly. `steps` and `passes` count those that were made,
    maybe over other batches than these; `averaged` the parameters that are in the mean.
    """

    batches: StochasticObjective

    def __init__(
        self,
        batches: StochasticObjective,
        start: FloatArray,
        eta0: float,
        average: bool,
        oracle: BatchOracle | None = None,
    ) -> None:
        super().__init__(batches, oracle)
        self.steps, self.passes, self.averaged = 0, 0, 0
        self._eta0, self._average = eta0, average
        self._decay = 2.0 * batches.penalty.l2 / max(len(batches), 1)
        views, v = self.oracle.weights, self.oracle.pack(start)
        # What is not asked for is never read or written.
        lag = np.zeros_like(v) if average else v
        paid = np.zeros_like(v) if batches.penalty.l1 else v
        self.numbers = np.zeros(kernels.N_NUMBERS)
        self.numbers[kernels.SCALE] = 1.0
        self._weights = kernels.DescentWeights(views(v), views(lag), views(paid), self.numbers)
        self._rates = np.zeros(len(batches))

    @property
    def rate(self) -> float:
        """The rate of the next step."""
        return float(self.rates(1)[0])

    def rates(self, count: int) -> FloatArray:
        """Return the rates of the next steps, which are of one pass, shape (count,)."""
        made: FloatArray = np.arange(count, dtype=np.float64)
        passes: FloatArray = self.passes + made / max(len(self.batches), 1)
        rates: FloatArray = self._eta0 * SLOWER**passes
        if self.batches.penalty.l1 or not self._decay:
            return rates
        power = AVERAGED_POWER if self._average else 1.0
        rates = self._eta0 / (1.0 + self._decay * self._eta0 * (self.steps + made)) ** power
        if not self.batches.loss.is_smooth:
            np.minimum(rates, self._eta0 / (1.0 + ROUGH_DECAY * passes), out=rates)
        return np.minimum(rates, 0.5 / self._decay, out=rates)

    def weights(self) -> FloatArray:
        """Return the parameters, a new array."""
        return self.oracle.unpack(self.numbers[kernels.SCALE] * self._weights.v.flat)

    def distance(self, value: float) -> tuple[float, float]:
        """Return NaN: neither the norm of the gradient nor the gap is known."""
        return math.nan, math.nan

    def mean(self) -> FloatArray:
        """Return the mean of the parameters after all steps since `start_mean`, or the last."""
        if not self._average or self.averaged == 0:
            return self.weights()
        total = self.numbers[kernels.PAST] * self._weights.v.flat - self._weights.lag.flat
        return self.oracle.unpack(total / self.averaged)

    def start_mean(self) -> None:
        """Let the mean begin anew."""
        self.averaged, self.numbers[kernels.PAST] = 0, 0.0
        if self._average:
            self._weights.lag.flat[:] = 0.0

    def run_pass(self, order: IntArray, batches_per_update: int) -> None:
        """Make a step for each of some batches; all weights are then up to date."""
        self._rates[order] = self.rates(len(order))
        self.update(order, batches_per_update)
        self.steps += len(order)
        self.averaged += len(order)
        self.passes += 1
        if self.batches.penalty.l1:
            v, paid = self._weights.v.flat, self._weights.paid.flat
            cumulative_l1_of_run(
                0, len(v), self.numbers[kernels.SCALE], self.numbers[kernels.DUE], paid, v
            )

    def _workspace(self, room: Any) -> Any:
        """Return the room: no more is needed."""
        return room

    def _update(self, order: IntArray, stage: int, workspace: Any) -> None:
        l1 = self.batches.penalty.l1 / len(self.batches)
        settings = kernels.DescentSettings(self._rates, self._decay, l1, self._average, LEAST_SCALE)
        self.oracle.run(kernels.sgd_updates)(
            order, stage, settings, self.oracle.problem, self.oracle.index, self._weights, workspace
        )


def calibrate(
    batches: StochasticObjective,
    start: FloatArray,
    random: Random,
    batches_per_update: int,
    oracle: BatchOracle | None = None,
) -> float:
    """Return the rate with which passes over a sample lower the objective of the sample most.

    Doubled from a first one as long as that helps, or else halved; the first one where none helps.
    One pass is made, or some more with a loss that is not differentiable.
    """
    size = max(SAMPLE_LEAST, int(SAMPLE_SHARE * len(batches)))
    sample = random.permutation(len(batches))[:size]
    passes = 1 if batches.loss.is_smooth else ROUGH_PASSES
    before = Descent(batches, start, FIRST_RATE, False, oracle)
    at_start = before.value(start, sample)

    def trial(rate: float) -> float:
        descent = Descent(batches, start, rate, False, before.oracle)
        for _ in range(passes):
            descent.run_pass(sample, batches_per_update)
        return descent.value(descent.weights(), sample)

    best, lowest = FIRST_RATE, at_start
    for factor in (2.0, 0.5):
        rate = FIRST_RATE if factor > 1.0 else factor * FIRST_RATE
        for _ in range(MOST_TRIALS):
            value = trial(rate)
            if value < lowest:
                best, lowest = rate, value
            elif factor > 1.0 or lowest < at_start:
                break
            rate *= factor
        if best > FIRST_RATE:
            break
    return best


def has_settled(values: list[float], period: int, tol: float) -> bool:
    """Whether the least value fell by less than `tol`, relatively, in the last `period` passes.

    Not before some value was below the first one: what never got better has not been solved.
    """
    if len(values) <= period:
        return False
    before, now = min(values[:-period]), min(values)
    return now < values[0] and before - now < tol * abs(now)
