"""One fit: from training data to parameters."""

from __future__ import annotations

import math
from typing import Any

from sklearn.exceptions import ConvergenceWarning

from crfkit._parallel import ThreadMap
from crfkit._types import FloatArray, IterationRecord, SolverResult
from crfkit._warnings import warn_user
from crfkit.solvers.base import Callback, minimize
from crfkit.training.callbacks import describe
from crfkit.training.data import TrainingData
from crfkit.training.early_stopping import Watch
from crfkit.training.problem import Problem
from crfkit.training.size import ParameterCounts, warn_if_large


class Fit:
    """The model that is chosen for training data, and the search for its parameters.

    Parameters
    ----------
    problem : Problem
        What is minimized, and how.
    training : TrainingData
        What is learned from.

    Attributes
    ----------
    model : PotentialsModel
        Has the weights that are fitted.
    """

    def __init__(self, problem: Problem, training: TrainingData) -> None:
        self.problem, self.training = problem, training
        self.model = problem.model(training)

    def attributes(self, parameters: FloatArray) -> dict[str, Any]:
        """Return the fitted attributes that prediction needs."""
        return self.problem.attributes(self.model, self.training, parameters)

    def run(
        self, start: FloatArray, callback: Callback | None = None, watch: Watch | None = None
    ) -> SolverResult:
        """Minimize the objective.

        Parameters
        ----------
        start : ndarray of shape (P,)
            First parameters.
        callback : callable, optional
            Told of each iteration; ends the fit by returning True.
        watch : Watch, optional
            Ends the fit where the score of a validation part no longer rises.
        """
        problem, verbose = self.problem, self.problem.verbose
        warn_if_large(self.model)
        if verbose:
            print(f"{ParameterCounts(self.model.parameter_counts)}", flush=True)
        told = _Printed(callback, {0: 0, 1: 10}.get(verbose, 1))
        with ThreadMap(problem.n_jobs) as threads:
            objective = problem.objective(self.model, self.training, threads)
            result = minimize(problem.solver, objective, start, told, watch)
        if watch is not None:
            result = watch.finish(result)
        reached = [record for record in result.history if record.value == result.value]
        return result._replace(gap=objective.gap(reached[-1]) if reached else math.nan)

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


class _Printed:
    """Prints every so many iterations (none for 0), and passes all on."""

    def __init__(self, callback: Callback | None, every: int) -> None:
        self.callback, self.every = callback, every

    def __call__(self, record: IterationRecord, parameters: FloatArray) -> bool:
        """Return whether the fit should end."""
        if self.every and record.iteration % self.every == 0:
            print(describe(record), flush=True)
        return self.callback is not None and bool(self.callback(record, parameters))
