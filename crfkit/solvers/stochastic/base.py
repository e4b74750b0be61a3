"""What all solvers share that move after each small batch of sequences."""

from __future__ import annotations

import math
from typing import Any, ClassVar, Protocol

import numpy as np
from sklearn.utils import check_random_state

from crfkit._params import check_number, check_whole
from crfkit._types import FloatArray, Random, SolverResult
from crfkit.objective.stochastic import StochasticObjective
from crfkit.solvers.base import Callback, SmoothObjective, Solver, SolverLog, check_match

# Tokens of a batch that is not given, at least: fewer take the time of the calls alone.
LEAST_TOKENS = 32


class PassLog(SolverLog):
    """A log that counts the passes over the data that some batches are visited in."""

    def __init__(
        self, objective: SmoothObjective, batches: StochasticObjective, callback: Callback | None
    ) -> None:
        super().__init__(objective, callback)
        self._batches, self._before = batches, objective.evaluations

    def add(self, *args: Any, **kwargs: Any) -> bool:
        """Note an iteration; returns whether the callback asks to stop."""
        passes = math.ceil(self._batches.visits / max(len(self._batches), 1))
        self.objective.evaluations = self._before + passes
        return super().add(*args, **kwargs)


class Search(Protocol):
    """The parameters of a method on their way, and what it remembers of the batches."""

    batches: StochasticObjective

    def weights(self) -> FloatArray:
        """Return the parameters, a new array."""


class MiniBatchSolver(Solver):
    """Passes over small batches, between which the objective is evaluated.

    A subclass has the parameters `max_iter`, `tol`, `batch_tokens`, `batches_per_update` and
    `random_state` (see :class:`~crfkit.solvers.SAG`), starts a search, makes one pass and says
    when it is done. The `evaluations` of its log are passes over the data: visits of batches,
    divided by their number and rounded up, with those of starts, calibrations and evaluations of
    the objective.
    """

    requires: ClassVar[tuple[str, ...]] = ("minibatches",)
    handles_l1: ClassVar[bool] = True
    is_random: ClassVar[bool] = True
    log_kind: ClassVar[type[PassLog]] = PassLog
    # So many batches, if their size is not given; None where it has to be given.
    n_batches: ClassVar[int | None] = None
    # What to do where the objective became infinite.
    advice: ClassVar[str] = ". Scale numeric features to about 1"

    max_iter: int
    tol: float
    batch_tokens: int | None
    batches_per_update: int
    random_state: int | np.random.RandomState | None

    def solve(
        self, objective: Any, start: FloatArray, callback: Callback | None = None
    ) -> SolverResult:
        """Minimize an objective.

        Parameters
        ----------
        objective : Objective
            With linear potentials.
        start : ndarray of shape (P,)
            First parameters; not changed.
        callback : callable, optional
            Called with each record and its parameters; stops the search by returning True.

        Returns
        -------
        SolverResult
            With the parameters of the last finished pass, also when interrupted by Ctrl-C; where
            they were not evaluated yet, that is done then.

        Raises
        ------
        ValueError
            If a parameter is out of range, the solver does not fit the objective, or that is not
            finite at the start.
        """
        random, batches = self._begin(objective)
        log = self.log_kind(objective, batches, callback)
        return log.guard(lambda: self._iterate(self._start(batches, start, random), random, log))

    def _begin(self, objective: Any) -> tuple[Random, StochasticObjective]:
        """Check the parameters and cut the data."""
        self._check_parameters()
        check_match(self, objective)
        self._check_objective(objective)
        random = check_random_state(self.random_state)
        tokens = self.batch_tokens
        if tokens is None:
            tokens = max(LEAST_TOKENS, objective.data.n_tokens // self.n_batches)
        return random, objective.minibatches(int(tokens), random)

    def _check_parameters(self) -> None:
        check_whole("max_iter", self.max_iter, 0)
        check_whole("batches_per_update", self.batches_per_update, 1)
        check_number("tol", self.tol)
        if self.batch_tokens is not None or self.n_batches is None:
            check_whole("batch_tokens", self.batch_tokens, 1)

    def _check_objective(self, objective: Any) -> None:
        """Raise ValueError if the method cannot minimize an objective."""

    def _start(self, batches: StochasticObjective, start: FloatArray, random: Random) -> Search:
        """Return a search at its first parameters."""
        raise NotImplementedError

    def _pass(self, search: Any, number: int, random: Random, log: PassLog) -> FloatArray:
        """Make a pass after `number` others; returns the parameters that it leads to."""
        raise NotImplementedError

    def _is_due(self, search: Any, number: int, log: PassLog) -> bool:
        """Whether the objective is to be evaluated after so many passes."""
        return True

    def _value(self, search: Any, w: FloatArray) -> float:
        """Return the objective at some parameters."""
        value: float = search.batches.value(w)
        return value

    def _distance(self, search: Any, value: float) -> tuple[float, float]:
        """Return the norm of the gradient and the gap, NaN where they are not known."""
        return math.nan, math.nan

    def _why_done(self, search: Any, w: FloatArray, log: PassLog) -> str | None:
        """Return why the last record is convergence, or None."""
        raise NotImplementedError

    def _how_far(self, log: PassLog) -> str:
        """Return what is known of the distance to the optimum, for a message."""
        return ""

    def _iterate(self, search: Search, random: Random, log: PassLog) -> SolverResult:
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
        self, search: Search, w: FloatArray, number: int, log: PassLog
    ) -> tuple[str, bool] | None:
        """Evaluate and note the objective; returns why to stop and whether it is convergence."""
        value = self._value(search, w)
        if not math.isfinite(value):
            if not log.history:
                raise ValueError(f"the objective is {value} at the start; it must be finite.")
            return f"the objective became {value}{self.advice}", False
        if log.add(w, value, *self._distance(search, value), iteration=number):
            return "stopped by a callback", False
        done = self._why_done(search, w, log)
        if done is not None:
            return done, True
        if number >= self.max_iter:
            return (
                f"max_iter={self.max_iter} passes were not enough: the objective is {value:.6g}"
                f"{self._how_far(log)}. Increase max_iter, or ask for less (larger tol, a stronger "
                "penalty)"
            ), False
        return None
