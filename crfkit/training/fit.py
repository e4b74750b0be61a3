"""One fit, from training data to parameters; what it tells the user and scikit-learn's callbacks.

No other module knows these callbacks, which are experimental since 1.9.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from sklearn.callback import CallbackSupportMixin, with_callbacks
from sklearn.exceptions import ConvergenceWarning

from crfkit._parallel import ThreadMap
from crfkit._types import FloatArray, IterationRecord, SolverResult
from crfkit._warnings import warn_user
from crfkit.solvers.base import Callback, minimize
from crfkit.training.data import TrainingData
from crfkit.training.early_stopping import Watch
from crfkit.training.problem import Problem

__all__ = ["CallbackSupportMixin", "Fit", "FitProgress", "ParameterCounts", "with_callbacks"]

LARGE = 50_000_000  # weights
# Vectors of P numbers that L-BFGS holds: six pairs of corrections, point, gradient and direction,
# the same of the iteration before.
SOLVER_VECTORS = 18


class ParameterCounts(NamedTuple):
    """Numbers of weights.

    Attributes
    ----------
    by_kind : dict of str to int
        By what the weights are: "attribute x label", "label x label", and so on.
    """

    by_kind: dict[str, int]

    @property
    def total(self) -> int:
        """All weights."""
        return sum(self.by_kind.values())

    @property
    def fit_bytes(self) -> int:
        """Bytes that the vectors of L-BFGS take while fitting, without the training data."""
        return 8 * SOLVER_VECTORS * self.total

    def __str__(self) -> str:
        named = ", ".join(f"{count:,} {kind}" for kind, count in self.by_kind.items() if count)
        return f"{self.total:,} weights ({named})"


class Fit:
    """The model that is chosen for training data, and the search for its parameters."""

    def __init__(self, problem: Problem, training: TrainingData) -> None:
        self.problem, self.training = problem, training
        self.model = problem.model(training)

    def attributes(self, parameters: FloatArray) -> dict[str, Any]:
        """Return the fitted attributes that prediction needs."""
        return self.problem.attributes(self.model, self.training, parameters)

    def run(
        self, start: FloatArray, callback: Callback | None = None, watch: Watch | None = None
    ) -> SolverResult:
        """Minimize the objective from first parameters, shape (P,).

        The callback is told of each iteration and ends the fit by returning True; `watch` ends it
        where the score of a validation part no longer rises.
        """
        self._tell_size()
        solver = self.problem.solver
        with ThreadMap(self.problem.n_jobs) as threads:
            objective = self.problem.objective(self.model, self.training, threads)
            if objective.loss.is_staged:
                result = minimize(solver, objective, start, self._told(callback), watch)
            else:
                result = solver.solve(objective, start, self._told(callback, watch))
        if watch is not None:
            result = watch.finish(result)
        reached = [record for record in result.history if record.value == result.value]
        return result._replace(gap=objective.gap(reached[-1]) if reached else math.nan)

    def _tell_size(self) -> None:
        """Say how many weights there are, and warn where they may not fit into memory."""
        counts = ParameterCounts(self.model.parameter_counts)
        if counts.total > LARGE:
            warn_user(
                f"the model has {counts}; fitting it takes about {counts.fit_bytes / 2**30:.0f} GiB"
                " beside the data. A larger min_freq, fewer templates, or observed pairs only "
                "(all_possible_states=False, all_possible_transitions=False) make it smaller."
            )
        if self.problem.verbose:
            print(f"{counts}", flush=True)

    def _told(self, *callbacks: Callback | None) -> Callback:
        """Return a callback that prints every so many iterations, and asks others."""
        every = {0: 0, 1: 10}.get(self.problem.verbose, 1)
        others = [callback for callback in callbacks if callback is not None]

        def told(record: IterationRecord, parameters: FloatArray) -> bool:
            if every and record.iteration % every == 0:
                print(_describe(record), flush=True)
            return any([callback(record, parameters) for callback in others])

        return told

    def results(
        self, start: FloatArray, result: SolverResult, watch: Watch | None = None
    ) -> dict[str, Any]:
        """Return the fitted attributes that tell of the search."""
        found = {
            "n_parameters_": self.model.n_parameters,
            "n_iter_": result.n_iter,
            "converged_": result.converged,
            "objective_": result.value,
            "gap_": result.gap,
            "training_log_": result.history,
        }
        found |= {} if watch is None else watch.attributes()
        if self.problem.further is not None:
            best = found.get("best_iteration_")
            found |= self.problem.further(self, start, result.n_iter if best is None else best)
        return found

    def report(self, result: SolverResult, watch: Watch | None = None) -> None:
        """Say how the fit ended; that it was stopped early is what the user wants."""
        if self.problem.verbose:
            print(f"stopped after {result.n_iter} iterations: {result.message}", flush=True)
        if result.interrupted:
            message = f"fit was {result.message}; the model keeps the weights reached so far."
            warn_user(message, ConvergenceWarning)
        elif not (result.converged or (watch is not None and watch.stopped)):
            warn_user(f"fit did not converge: {result.message}.", ConvergenceWarning)


class FitProgress:
    """Tells scikit-learn's callbacks of an estimator of the iterations of a fit."""

    def __init__(self, estimator: Any, fit: Fit) -> None:
        self.fit, most = fit, getattr(fit.problem.solver, "max_iter", None)
        self.told = {
            "estimator": estimator,
            "X": lambda: fit.training.data,
            "y": lambda: fit.training.labels,
        }
        self.context = estimator._init_callback_context(max_subtasks=most)
        self.context.call_on_fit_task_begin(**self.told)

    def __call__(self, record: IterationRecord, parameters: FloatArray) -> bool:
        """Report an iteration; returns whether a callback asks to stop."""
        if record.iteration == 0:
            return False
        task = self.context.subcontext(task_name="iteration")
        task.call_on_fit_task_begin(**self.told)
        return self._end(task, parameters)

    def close(self, parameters: FloatArray) -> None:
        """Report the end of the fit."""
        self._end(self.context, parameters)

    def _end(self, task: Any, parameters: FloatArray) -> bool:
        return bool(
            task.call_on_fit_task_end(
                reconstruction_attributes=lambda: self.fit.attributes(parameters), **self.told
            )
        )


def _describe(record: IterationRecord) -> str:
    """Return a line of the log."""
    name, distance = "gradient", record.gradient_norm
    if math.isnan(distance):
        name, distance = "gap", record.gap
    if record.mistakes >= 0:
        name, distance = "mistakes", float(record.mistakes)
    return (
        f"iteration {record.iteration:4d}  objective {record.value:14.4f}  "
        f"{name:<8s} {distance:10.4g}  weights {record.nonzero:9,d}  {record.seconds:7.1f} s"
    )
