"""A search that goes on where another one ended."""

from __future__ import annotations

import copy
import math
from typing import Any

from crfkit._types import FloatArray, IterationRecord, SolverResult
from crfkit.solvers.base import Callback


def go_on(
    solver: Any,
    objective: Any,
    before: SolverResult,
    callback: Callback | None,
    note: str = "",
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

    Returns
    -------
    SolverResult
        With the history of both.
    """
    done = before.history[-1]

    def shifted(record: IterationRecord) -> IterationRecord:
        return record._replace(
            iteration=record.iteration + done.iteration, seconds=record.seconds + done.seconds
        )

    def told(record: IterationRecord, w: FloatArray) -> bool | None:
        if callback is None or record.iteration == 0:  # that one was told of before
            return False
        return callback(shifted(record), w)

    try:
        after: SolverResult = solver.solve(objective, before.parameters, told)
    except KeyboardInterrupt:  # before its first evaluation was done
        message = f"interrupted by the user after {done.iteration} iterations"
        return before._replace(message=message, converged=False, interrupted=True)
    history = [*before.history, *(shifted(record) for record in after.history[1:])]
    return after._replace(
        n_iter=history[-1].iteration, history=history, message=f"{after.message}{note}"
    )


def minimize(
    solver: Any, objective: Any, start: FloatArray, callback: Callback | None = None
) -> SolverResult:
    """Minimize an objective; where its loss has stages, one after the other.

    Each stage starts from the parameters of the one before. The iterations that are allowed are
    shared out: no stage takes more than its part of those that are left.

    Parameters
    ----------
    solver : Solver
        Minimizes the loss of each stage.
    objective : Objective
        What is to be minimized.
    start : ndarray of shape (P,)
        First parameters; not changed.
    callback : callable, optional
        Called with each record and its parameters; stops the search by returning True.

    Returns
    -------
    SolverResult
        That of the last stage, with the records of all. Those of the stages before have the values
        of their own losses and an infinite gap: they say nothing of the optimum of the last one.
        Where the search was stopped in one of them, the result is that of this stage.
    """
    stages = getattr(objective.loss, "stages", None)
    if stages is None:
        plain: SolverResult = solver.solve(objective, start, callback)
        return plain
    losses = stages()
    result: SolverResult | None = None
    for number, loss in enumerate(losses):
        objective = objective.with_loss(loss)  # which keeps the number of evaluations
        watch = _Stage(callback, last=number == len(losses) - 1)
        limited = _limited(solver, 0 if result is None else result.n_iter, len(losses) - number)
        if result is None:
            found = limited.solve(objective, start, watch)
        else:
            found = go_on(limited, objective, result, watch)
        result = watch.finish(found)
        if result.interrupted or watch.stopped:
            break
    if result is None:
        raise ValueError(f"loss {type(objective.loss).__name__} has no stages; it needs one.")
    return result


def _limited(solver: Any, done: int, stages: int) -> Any:
    """Return a solver with its part of the iterations that are left for some stages."""
    most = getattr(solver, "max_iter", None)
    if most is None:
        return solver
    solver = copy.copy(solver)
    solver.max_iter = math.ceil(max(most - done, 0) / stages)
    return solver


class _Stage:
    """Marks the records of a stage that is not the last one; notes whether it was stopped."""

    def __init__(self, callback: Callback | None, last: bool) -> None:
        self.callback, self.last = callback, last
        self.stopped = False

    def __call__(self, record: IterationRecord, w: FloatArray) -> bool:
        """Return whether the callback asks to stop."""
        self.stopped = self.callback is not None and bool(self.callback(self._marked(record), w))
        return self.stopped

    def finish(self, result: SolverResult) -> SolverResult:
        """Return the result with its records marked."""
        if self.last:
            return result
        history = [self._marked(record) for record in result.history]
        return result._replace(history=history, gap=math.inf)

    def _marked(self, record: IterationRecord) -> IterationRecord:
        return record if self.last else record._replace(gap=math.inf)
