"""A search that goes on where another one ended."""

from __future__ import annotations

import copy
import math
from typing import Any

from crfkit._params import check_whole
from crfkit._types import FloatArray, IterationRecord, SolverResult
from crfkit.solvers.base import Callback, Solver


def resume(
    solver: Solver,
    objective: Any,
    before: SolverResult,
    callback: Callback | None,
    note: str = "",
    *,
    anew: bool = False,
) -> SolverResult:
    """Continue a search with another solver, or for another objective, as one search.

    Parameters
    ----------
    solver : Solver
        Goes on from the parameters of the result before.
    objective : Objective
        What it minimizes.
    before : SolverResult
        What was reached.
    callback : callable or None
        As for solvers; iterations and seconds go on counting.
    note : str
        Added to the message of the solver.
    anew : bool
        Whether the objective is another one: its record of the parameters of the result before
        then takes the place of the last one before, and the callback is told of it.

    Returns
    -------
    SolverResult
        With the history of both.
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
    objective: Any,
    start: FloatArray,
    callback: Callback | None = None,
    watch: Callback | None = None,
) -> SolverResult:
    """Minimize an objective; where its loss has stages, one after the other.

    Each stage starts from the parameters of the one before. The `max_iter` of the solver is for all
    of them: a stage may take its equal share of what the stages before have left, so that what one
    does not need is there for those after it, and the last one may take all that is left. A solver
    whose `max_iter` is None has its own limit in each stage.

    Parameters
    ----------
    solver : Solver
        Minimizes the loss of each stage.
    objective : Objective
        What is to be minimized.
    start : ndarray of shape (P,)
        First parameters; not changed.
    callback : callable, optional
        Called once with each iteration, its record and its parameters; stops the search by
        returning True.
    watch : callable, optional
        Called likewise, but only in the last stage, and there from its first parameters on.

    Returns
    -------
    SolverResult
        That of the last stage, with the records of all. Those of the stages before have the values
        of their own losses and an infinite gap: they say nothing of the optimum of the last one.
        Where one stage ends and the next begins, the record is that of the next. Where the search
        was stopped in a stage, the result is that of this stage.

    Raises
    ------
    ValueError, TypeError
        As the solver, if the loss has no stage, or if `max_iter` cannot be shared.
    """
    if not objective.loss.is_staged:
        plain: SolverResult = solver.solve(objective, start, _both(callback, watch))
        return plain
    most = solver.max_iter
    if most is not None:
        check_whole("max_iter", most)
    losses = objective.loss.stages()
    result: SolverResult | None = None
    for number, loss in enumerate(losses):
        objective = objective.with_loss(loss)  # which keeps the number of evaluations
        left = len(losses) - number
        stage = _Stage(callback, watch, -1 if result is None else result.n_iter, last=left == 1)
        limited = _limited(solver, 0 if result is None else result.n_iter, left)
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

    def ask(record: IterationRecord, w: FloatArray) -> bool:
        answers = [bool(other(record, w)) for other in (first, second) if other is not None]
        return any(answers)

    return ask


def _limited(solver: Solver, done: int, stages: int) -> Solver:
    """Return a solver with its part of the iterations that are left for some stages."""
    most = solver.max_iter
    if most is None:
        return solver
    solver = copy.copy(solver)
    solver.max_iter = math.ceil(max(most - done, 0) / stages)
    return solver


class _Stage:
    """Marks the records of a stage that is not the last one; notes whether it was stopped.

    Parameters
    ----------
    callback : callable or None
        Told of the iterations after `told`.
    watch : callable or None
        Told of all iterations of the last stage.
    told : int
        The last iteration of the stages before, -1 where there is none.
    last : bool
        Whether this is the last stage.
    """

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
