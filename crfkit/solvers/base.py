"""What a solver has to do, the log that all of them keep, and searches in stages."""

from __future__ import annotations

import copy
import math
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import partial
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator

from crfkit._parallel import return_memory
from crfkit._params import check_option, check_whole
from crfkit._types import FloatArray, IterationRecord, SolverResult
from crfkit.objective.batch import Objective

Callback = Callable[[IterationRecord, FloatArray], bool | None]

# So many times memory is given back that the preparations and first steps of a search have left:
# lists of about so many times the size of the parameters.
FIRST_RECORDS, LISTS = 3, 16
# What solvers may need of a loss: attributes of it, and names for messages.
LOSS_NEEDS: dict[str, str] = {
    "is_smooth": "a differentiable loss",
    "has_hessian": "a loss with second derivatives",
    "is_log_likelihood": "the log loss",
}


# Given the name and the value of a parameter, raises if the value is out of range.
Check = Callable[[str, Any], None]
at_least_one: Check = partial(check_whole, least=1)


def optional_count(name: str, value: object) -> None:
    """Check a number of at least 1, or None."""
    if value is not None:
        at_least_one(name, value)


def one_of(*options: str) -> Check:
    """Return the check of a parameter with such options."""
    return partial(check_option, options=options)


class Solver(BaseEstimator, ABC):  # type: ignore[misc]
    """Minimizes an objective from a start.

    It says what it is by attributes of the class:

    - `requires`: methods that it calls of an objective
    - `needs_of_loss`: what its loss has to be or to have, keys of ``LOSS_NEEDS``
    - `handles_l1`: it minimizes objectives with an L1 norm
    - `handles_bounds`: it minimizes objectives some of whose parameters may not be negative
    - `needs_known_labels`: each token has to have one known label
    - `handles_partial`: it has a method ``partial``, which learns from one batch after the other
    - `is_random`: it has a parameter ``random_state``
    - `kernel_form`: from it to the solver of its kind for scores that are sums of kernel values
    - `shared_checks`, `checks`: how parameters are checked, those of its kind and its own
    - `max_iter`: iterations at most; None for no limit, or that of another solver
    - `tol`, `period`: it stops where the gap, or the decrease in so many iterations, is below this
      share of the value; None where that is up to another solver, or there is no such rule
    """

    requires: ClassVar[tuple[str, ...]] = ("value_and_grad",)
    needs_of_loss: ClassVar[tuple[str, ...]] = ()
    handles_l1: ClassVar[bool] = False
    handles_bounds: ClassVar[bool] = False
    needs_known_labels: ClassVar[bool] = False
    handles_partial: ClassVar[bool] = False
    is_random: ClassVar[bool] = False
    kernel_form: ClassVar[Callable[[Any], Any] | None] = None
    shared_checks: ClassVar[dict[str, Check]] = {}
    checks: ClassVar[dict[str, Check]] = {}
    max_iter: Any = None
    tol: Any = None
    period: Any = None

    def check_parameters(self) -> None:
        """Check the parameters, those of its kind and its own; None passes as a default."""
        for name, check in (self.shared_checks | self.checks).items():
            if getattr(self, name) is not None or getattr(type(self), name) is not None:
                check(name, getattr(self, name))

    @abstractmethod
    def solve(
        self, objective: Objective, start: FloatArray, callback: Callback | None = None
    ) -> SolverResult:
        """Return the parameters found and why the search stopped.

        The objective has the methods that the solver requires; `start`, shape (P,), is not changed.
        The callback is called with the record and the parameters after each iteration, and stops
        the search by returning True.
        """


def check_convex_sums(solver: Any, objective: Objective) -> None:
    """Raise ValueError if a loss is convex, but not with what inference takes for log Z."""
    if objective.loss.is_convex and not objective.has_convex_loss:
        name, loss = type(solver).__name__, type(objective.loss).__name__
        raise ValueError(
            f"solver {name} needs a convex loss, but {loss} is none with what this inference takes "
            "for log Z: take inference='exact' or 'trw', or solver='lbfgs'."
        )


def check_match(solver: Solver, objective: Objective) -> None:
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
    loss = objective.loss
    if objective.nonnegative is not None and not solver.handles_bounds:
        other = "owlqn" if objective.l1 else "lbfgs"
        raise ValueError(
            f"solver {name} cannot keep weights from being negative, as the model asks of "
            f"{np.count_nonzero(objective.nonnegative)}. Use solver="
            + (f"'{other}' (or 'auto')." if loss.is_smooth else "'bcfw' or 'subgradient'.")
        )
    for need in solver.needs_of_loss:
        if not getattr(loss, need):
            other = "lbfgs" if loss.is_smooth else "sgd"
            raise ValueError(
                f"solver {name} needs {LOSS_NEEDS[need]}, not {type(loss).__name__}. Use "
                f"solver='{other}' (or 'auto')."
            )

    if solver.needs_known_labels and not objective.has_known_labels:
        others = (
            "'lbfgs' or 'auto'" if loss.is_smooth else "'sgd', or 'subgradient' of MaxMarginCRF"
        )
        given = (
            "of some the label is UNLABELED, or one of a set: the objective is not convex then"
            if objective.targets.soft is None
            else "y has probabilities of labels"
        )
        raise ValueError(
            f"solver {name} needs one known label for each token, but {given}. Use solver={others}."
        )


class SolverLog:
    """Records of the iterations, and the parameters of the last one, or if `keeps_best` the best.

    The objective counts the evaluations, or `count` does; the callback is told of each iteration.
    """

    def __init__(
        self,
        objective: Objective,
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
        number = len(self.history) if iteration is None else iteration
        seconds, n_nonzero = time.perf_counter() - self._started, int(np.count_nonzero(w))
        record = IterationRecord(
            number, value, gradient_norm, self.objective.evaluations, n_nonzero, seconds, gap,
            mistakes,
        )  # fmt: skip
        if not self._keeps_best or value < self._lowest:
            self.parameters, self._lowest = w, value
        self.history.append(record)
        if len(self.history) <= FIRST_RECORDS:
            return_memory(LISTS * w.nbytes)
        return bool(self.callback is not None and self.callback(record, w))

    def guard(self, iterate: Callable[..., SolverResult], *arguments: Any) -> SolverResult:
        """Return the result of a search, or, after Ctrl-C, the last noted parameters."""
        try:
            return iterate(*arguments)
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
        """Whether the value fell by less than a share `tol` in `period` iterations `since` one."""
        if len(self.history) - since <= period:
            return False
        before, now = self.history[-1 - period].value, self.history[-1].value
        return before - now < tol * abs(now)


def resume(
    solver: Solver,
    objective: Objective,
    before: SolverResult,
    callback: Callback | None,
    note: str = "",
    *,
    anew: bool = False,
) -> SolverResult:
    """Continue a search with another solver, or for another objective, as one search.

    `note` is added to the message. If `anew`, the objective is another one, whose first record
    takes the place of the last one before.
    """
    done, shared = before.history[-1], 0 if anew else 1

    def shifted(record: IterationRecord) -> IterationRecord:
        return record._replace(
            iteration=record.iteration + done.iteration, seconds=record.seconds + done.seconds
        )

    def told(record: IterationRecord, w: FloatArray) -> bool | None:
        if callback is None or record.iteration < shared:  # that one was told of before
            return False
        return callback(shifted(record), w)

    return_memory(LISTS * before.parameters.nbytes)  # of what the one before has kept
    try:
        after: SolverResult = solver.solve(objective, before.parameters, told)
    except KeyboardInterrupt:  # before its first evaluation was done
        message = f"interrupted by the user after {done.iteration} iterations"
        return before._replace(message=message, converged=False, interrupted=True)
    new = [shifted(record) for record in after.history[shared:]]
    history = [*before.history[: len(before.history) - 1 + shared], *new]
    return after._replace(
        n_iter=history[-1].iteration, history=history, message=f"{after.message}{note}"
    )


def minimize(
    solver: Solver,
    objective: Objective,
    start: FloatArray,
    callback: Callback | None = None,
    watch: Callback | None = None,
) -> SolverResult:
    """Minimize an objective; where its loss has stages, one after the other.

    The `max_iter` of the solver, if it has one, is for all of them: a stage may take its equal
    share of what those before have left. The callback is called once with each iteration, `watch`
    with those of the last stage alone. Records of the stages before have the values of their own
    losses and an infinite gap. ValueError if the solver cannot minimize the loss.
    """
    if not objective.loss.is_staged:
        return solver.solve(objective, start, _both(callback, watch))
    most = solver.max_iter
    if most is not None:
        check_whole("max_iter", most)
    check_match(solver, objective)  # before the first stage, which may be of another kind
    losses = objective.loss.stages()
    result: SolverResult | None = None
    for number, loss in enumerate(losses):
        objective = objective.with_loss(loss)  # which keeps the number of evaluations
        left, limited = len(losses) - number, copy.copy(solver)
        stage = _Stage(callback, watch, -1 if result is None else result.n_iter, last=left == 1)
        if most is not None:
            done = 0 if result is None else result.n_iter
            limited.max_iter = math.ceil(max(most - done, 0) / left)
        if result is None:
            found = limited.solve(objective, start, stage)
        else:
            found = resume(limited, objective, result, stage, anew=True)
        result = stage.finish(found)
        if result.interrupted or stage.stopped:
            break
    if result is None:
        raise ValueError(f"loss {type(objective.loss).__name__} has no stages; it needs one.")
    if most is None:
        return result
    message = result.message.replace(f"max_iter={limited.max_iter} ", f"max_iter={most} ")
    return result._replace(message=message)


def _both(first: Callback | None, second: Callback | None) -> Callback:
    """Return a callback that asks two whether to stop."""
    both = [each for each in (first, second) if each is not None]
    return lambda record, w: any([bool(ask(record, w)) for ask in both])


class _Stage:
    """Marks records of a stage that is not the last; tells callbacks; notes whether it stopped."""

    def __init__(
        self, callback: Callback | None, watch: Callback | None, told: int, *, last: bool
    ) -> None:
        self.callback, self.watch, self.told = callback, watch, told
        self.last, self.stopped = last, False

    def __call__(self, record: IterationRecord, w: FloatArray) -> bool:
        """Return whether a callback asks to stop."""
        callback = self.callback if record.iteration > self.told else None
        ask = _both(callback, self.watch if self.last else None)
        self.stopped = bool(ask(self._marked(record), w))
        return self.stopped

    def finish(self, result: SolverResult) -> SolverResult:
        """Return the result with its records marked."""
        if self.last:
            return result
        history = [self._marked(record) for record in result.history]
        return result._replace(history=history, gap=math.inf)

    def _marked(self, record: IterationRecord) -> IterationRecord:
        return record if self.last else record._replace(gap=math.inf)
