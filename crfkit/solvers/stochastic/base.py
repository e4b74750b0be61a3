"""What all solvers share that move after each small batch of sequences."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
from sklearn.utils import check_random_state

from crfkit._params import check_number, check_whole
from crfkit._types import FloatArray, IterationRecord, Random, SolverResult
from crfkit.objective.batch import Objective
from crfkit.objective.stochastic import StochasticObjective
from crfkit.solvers.base import Callback, Check, Solver, SolverLog, at_least_one, check_match
from crfkit.solvers.batch.base import FLAT, NEAR, Vectors, expected_gain

# Tokens of a batch that is not given, at least: fewer take the time of the calls alone.
LEAST_TOKENS = 32
# The objective is evaluated at least every so many passes where `check_every` is None.
CHECK_EVERY = 5
# How messages tell the fields of a record that say how far the optimum is.
DISTANCES = {
    "gap": ", at most {:.3g} above its optimum",
    "gradient_norm": ", the gradient norm {:.3g}",
}


# Checks of the parameters of all methods.
CHECKS: dict[str, Check] = {
    "max_iter": check_whole,
    "tol": check_number,
    "batch_tokens": at_least_one,
    "batches_per_update": at_least_one,
    "check_every": at_least_one,
}


class Search(ABC):
    """The parameters of a method on their way, and what it remembers of the batches."""

    batches: Any

    @abstractmethod
    def weights(self) -> FloatArray:
        """Return the parameters, a new array."""

    @abstractmethod
    def evaluate(self, w: FloatArray) -> tuple[FloatArray, float]:
        """Return the parameters to note after a pass that led to `w`, and the objective there."""

    @abstractmethod
    def distance(self, value: float) -> tuple[float, float]:
        """Return the norm of the gradient and the gap, NaN where they are not known."""

    def is_near(self, tol: float, last: IterationRecord) -> bool:
        """Whether the next evaluation may end the search; asked if `check_every` is None."""
        raise NotImplementedError


def minibatches(solver: Any, objective: Objective, random: Random) -> StochasticObjective:
    """Cut the data of an objective into batches of the size that a solver asks for."""
    tokens = solver.batch_tokens
    if tokens is None:
        tokens = max(LEAST_TOKENS, objective.data.n_tokens // solver.n_batches)
    return objective.minibatches(int(tokens), random)


def gap_is_small(solver: Any, search: Search, w: FloatArray, log: SolverLog) -> str | None:
    """Return that the gap is below `tol` times the objective, or None."""
    record = log.history[-1]
    near = record.gap <= solver.tol * abs(record.value)
    return f"the gap {record.gap:.3g} is below tol" if near else None


def verified(result: SolverResult, objective: Objective) -> SolverResult:
    """Return a result that is called converged only where its gradient is small, as for a stall.

    So must be what steps of Newton's method in single parameters would gain, which does not depend
    on the scale of features. The record of its parameters gets the norm of the gradient. A gap that
    is known has been compared; nothing is known of a loss that is not differentiable.
    """
    w, known = result.parameters, math.isfinite(result.gap)
    if known or not (result.converged and objective.loss.is_smooth and result.value):
        return result
    gradient = Vectors.of(objective, len(w)).pseudo_gradient(
        w, objective.value_and_grad(w)[1], objective.l1
    )
    norm, size = float(np.linalg.norm(gradient)), max(1.0, float(np.linalg.norm(w)))
    history = [
        record._replace(gradient_norm=norm) if record.value == result.value else record
        for record in result.history
    ]
    result = result._replace(history=history)
    near = expected_gain(objective, gradient) <= NEAR * abs(result.value)
    if near and norm * size <= FLAT * abs(result.value):
        return result
    message = (
        f"{result.message}, but the gradient norm is still {norm:.3g}, and the objective may be "
        "far above its optimum. Ask for more passes (a smaller tol), or use solver='auto'"
    )
    return result._replace(converged=False, message=message)


class MiniBatchSolver(Solver):
    """Passes over small batches, between which the objective is evaluated.

    A subclass has the parameters `max_iter`, `tol`, `batch_tokens`, `batches_per_update` and
    `random_state` (see :class:`~crfkit.solvers.OEG`), starts a search, makes one pass and says when
    it is done. The `evaluations` of its log are passes over the data: how often batches were
    computed, in starts, calibrations and evaluations too, divided by their number and rounded up.
    """

    requires: ClassVar[tuple[str, ...]] = ("minibatches",)
    shared_checks: ClassVar[dict[str, Check]] = CHECKS
    handles_l1: ClassVar[bool] = True
    is_random: ClassVar[bool] = True
    # Whether the result is the best of all passes, not the last one.
    keeps_best: ClassVar[bool] = False
    # How the data are cut.
    cut: ClassVar[Callable[..., Any]] = minibatches
    # Given a search, its parameters and the log: why the last record is convergence, or None.
    why_done: ClassVar[Callable[..., str | None]] = gap_is_small
    # Whether what `why_done` tells is convergence only if the gradient is small.
    has_to_verify: bool = False
    # So many batches, if their size is not given; None where it has to be given.
    n_batches: ClassVar[int | None] = None
    # What to do where the objective became infinite.
    advice: ClassVar[str] = ". Scale numeric features to about 1"
    # What a message tells of the distance to the optimum: a key of `DISTANCES`; and what may help.
    told: ClassVar[str] = "gap"
    remedy: ClassVar[str] = ""

    max_iter: int
    tol: float
    batch_tokens: int | None
    batches_per_update: int
    # Passes between evaluations of the objective; None for about as many as are of use.
    check_every: int | None = 1
    random_state: int | np.random.RandomState | None

    def solve(
        self, objective: Objective, start: FloatArray, callback: Callback | None = None
    ) -> SolverResult:
        """Minimize an objective with linear potentials, see :meth:`crfkit.solvers.Solver.solve`.

        The result has the parameters of the last finished pass, also when interrupted by Ctrl-C;
        where they were not evaluated yet, that is done then. ValueError if a parameter is out of
        range, the solver does not fit the objective, or that is not finite at the start.
        """
        random, batches = self._begin(objective)
        before = objective.evaluations

        def count() -> int:
            passes = math.ceil(batches.n_computed / max(len(batches), 1))
            return int(before + passes)

        log = SolverLog(objective, callback, count, keeps_best=self.keeps_best)
        result = log.guard(lambda: self._iterate(self._start(batches, start, random), random, log))
        return verified(result, objective) if self.has_to_verify else result

    def _begin(self, objective: Objective) -> tuple[Random, Any]:
        """Check the parameters and cut the data."""
        self.check_parameters()
        check_match(self, objective)
        self._check_objective(objective)
        random = check_random_state(self.random_state)
        return random, self.cut(objective, random)

    def _check_objective(self, objective: Objective) -> None:
        """Raise ValueError if the method cannot minimize an objective."""

    @abstractmethod
    def _start(self, batches: Any, start: FloatArray, random: Random) -> Search:
        """Return a search at its first parameters."""

    @abstractmethod
    def _pass(self, search: Any, number: int, random: Random, log: SolverLog) -> FloatArray:
        """Make a pass after `number` others; returns the parameters that it leads to."""

    def _is_due(self, search: Search, number: int, log: SolverLog) -> bool:
        """Whether the objective is to be evaluated after so many passes."""
        if not log.history or self.check_every is not None:
            return number % (self.check_every or 1) == 0
        late = number - log.history[-1].iteration >= CHECK_EVERY
        return late or search.is_near(self.tol, log.history[-1])

    def _how_far(self, log: SolverLog) -> str:
        """Return what is known of the distance to the optimum, for a message."""
        known: float = getattr(log.history[-1], self.told)
        distance = "" if math.isnan(known) else DISTANCES[self.told].format(known)
        return distance

    def _iterate(self, search: Search, random: Random, log: SolverLog) -> SolverResult:
        number, w = 0, search.weights()
        try:
            while True:
                if number >= self.max_iter or self._is_due(search, number, log):
                    stop = self._check(search, w, number, log)
                    if stop is not None:
                        return log.result(stop[0], converged=stop[1])
                w = self._pass(search, number, random, log)
                number += 1
        except KeyboardInterrupt:
            if log.history and log.history[-1].iteration < number:  # passes not yet evaluated
                self._check(search, w, number, log)
            raise

    def _check(
        self, search: Search, w: FloatArray, number: int, log: SolverLog
    ) -> tuple[str, bool] | None:
        """Evaluate and note the objective; returns why to stop and whether it is convergence."""
        w, value = search.evaluate(w)
        if not math.isfinite(value):
            if not log.history:
                raise ValueError(f"the objective is {value} at the start; it must be finite.")
            return f"the objective became {value}{self.advice}", False
        if log.add(w, value, *search.distance(value), iteration=number):
            return "stopped by a callback", False
        done = self.why_done(search, w, log)
        if done is not None:
            return done, True
        if number >= self.max_iter:
            return (
                f"max_iter={self.max_iter} passes were not enough: the objective is {value:.6g}"
                f"{self._how_far(log)}. Increase max_iter, or ask for less (larger tol, a stronger "
                f"penalty){self.remedy}"
            ), False
        return None
