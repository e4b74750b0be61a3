"""What a solver has to do, and the log that all of them keep."""

from __future__ import annotations

import math
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar, Protocol

import numpy as np
from sklearn.base import BaseEstimator

from crfkit._types import FloatArray, IterationRecord, SolverResult

Callback = Callable[[IterationRecord, FloatArray], bool | None]

# What solvers may need of a loss: attributes of it, and names for messages.
LOSS_NEEDS: dict[str, str] = {
    "is_smooth": "a differentiable loss",
    "has_hessian": "a loss with second derivatives",
    "is_log_likelihood": "the log loss",
}


class SmoothObjective(Protocol):
    """What a gradient solver needs of an objective."""

    evaluations: int

    @property
    def l1(self) -> float:
        """Weight of the L1 norm, not part of the differentiable value."""

    def value_and_grad(self, w: FloatArray) -> tuple[float, FloatArray]:
        """Return the differentiable value and its gradient."""


class Solver(BaseEstimator, ABC):  # type: ignore[misc]
    """Minimizes an objective from a start.

    Attributes
    ----------
    requires : tuple of str
        Methods that it calls of an objective.
    needs_of_loss : tuple of str
        What the loss of the objective has to be or to have: keys of ``LOSS_NEEDS``.
    handles_l1 : bool
        Whether it minimizes objectives with an L1 norm.
    handles_partial : bool
        Whether it has a method ``partial``, which learns from one batch after the other.
    is_random : bool
        Whether it has a parameter ``random_state``.
    max_iter : int or None
        Iterations at most; None where it has no limit, or leaves it to another solver.
    """

    requires: ClassVar[tuple[str, ...]] = ("value_and_grad",)
    needs_of_loss: ClassVar[tuple[str, ...]] = ()
    handles_l1: ClassVar[bool] = False
    handles_partial: ClassVar[bool] = False
    is_random: ClassVar[bool] = False
    max_iter: Any = None

    @abstractmethod
    def solve(
        self, objective: Any, start: FloatArray, callback: Callback | None = None
    ) -> SolverResult:
        """Return the parameters found and why the search stopped.

        Parameters
        ----------
        objective : SmoothObjective
            With the methods that the solver requires.
        start : ndarray of shape (P,)
            First parameters; not changed.
        callback : callable, optional
            Called with the record and the parameters after each iteration; stops the search by
            returning True.
        """


def check_match(solver: Solver, objective: SmoothObjective) -> None:
    """Raise ValueError if a solver cannot minimize an objective."""
    name = type(solver).__name__
    missing = [method for method in solver.requires if not hasattr(objective, method)]
    if missing:
        raise ValueError(f"solver {name} needs an objective with {missing[0]}; this one has none.")
    if objective.l1 and not solver.handles_l1:
        raise ValueError(
            f"solver {name} needs a differentiable objective, but c1={objective.l1:g}. "
            "Use solver='owlqn' (or 'auto'), or c1=0."
        )
    loss: Any = getattr(objective, "loss", None)
    for need in () if loss is None else solver.needs_of_loss:
        if not getattr(loss, need):
            other = "lbfgs" if loss.is_smooth else "sgd"
            raise ValueError(
                f"solver {name} needs {LOSS_NEEDS[need]}, not {type(loss).__name__}. Use "
                f"solver='{other}' (or 'auto')."
            )


class SolverLog:
    """Records of the iterations, and the parameters of the last or the best one.

    Parameters
    ----------
    objective : SmoothObjective
        Counts the evaluations.
    callback : callable or None
        Told of each iteration.
    count : callable, optional
        Counts the evaluations in its place.
    keeps_best : bool
        Whether the result is the best iteration, not the last one.
    """

    def __init__(
        self,
        objective: SmoothObjective,
        callback: Callback | None,
        count: Callable[[], int] | None = None,
        *,
        keeps_best: bool = False,
    ) -> None:
        self.objective = objective
        self.callback = callback
        self._count, self._keeps_best = count, keeps_best
        self._lowest = math.inf
        self.history: list[IterationRecord] = []
        self.parameters: FloatArray = np.empty(0)
        self._started = time.perf_counter()

    def add(
        self,
        w: FloatArray,
        value: float,
        gradient_norm: float = math.nan,
        gap: float = math.nan,
        iteration: int | None = None,
        mistakes: int = -1,
    ) -> bool:
        """Note an iteration; returns whether the callback asks to stop."""
        if self._count is not None:
            self.objective.evaluations = self._count()
        record = IterationRecord(
            iteration=len(self.history) if iteration is None else iteration,
            value=value,
            gradient_norm=gradient_norm,
            evaluations=self.objective.evaluations,
            nonzero=int(np.count_nonzero(w != 0.0)),
            seconds=time.perf_counter() - self._started,
            gap=gap,
            mistakes=mistakes,
        )
        if not self._keeps_best or value < self._lowest:
            self.parameters, self._lowest = w, value
        self.history.append(record)
        return bool(self.callback is not None and self.callback(record, w))

    def guard(self, iterate: Callable[[], SolverResult]) -> SolverResult:
        """Return the result of a search, or, after Ctrl-C, the last noted parameters."""
        try:
            return iterate()
        except KeyboardInterrupt:
            if not self.history:
                raise
            return self.result(
                f"interrupted by the user after {self.history[-1].iteration} iterations",
                converged=False,
                interrupted=True,
            )

    def result(self, message: str, *, converged: bool, interrupted: bool = False) -> SolverResult:
        """Return the last noted parameters, or the best ones, as the result."""
        last = self.history[-1]
        return SolverResult(
            parameters=self.parameters,
            value=self._lowest if self._keeps_best else last.value,
            n_iter=last.iteration,
            converged=converged,
            message=message,
            history=self.history,
            interrupted=interrupted,
            gap=last.gap,
        )

    def has_stalled(self, period: int, tol: float, since: int = 0) -> bool:
        """Whether the value fell by less than `tol`, relatively, over `period` iterations.

        Only iterations from `since` on are looked at.
        """
        if len(self.history) - since <= period:
            return False
        before, now = self.history[-1 - period].value, self.history[-1].value
        return before - now < tol * abs(now)
