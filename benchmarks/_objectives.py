"""The objective of crfkit on a data set, as its estimators make it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from _data import Labeled

from crfkit._parallel import ThreadMap
from crfkit._types import FloatArray, SolverResult
from crfkit.losses import LogLoss
from crfkit.objective.batch import Objective
from crfkit.objective.penalties import ElasticNet
from crfkit.potentials.linear import choose_features
from crfkit.solvers import LBFGS, OWLQN, Solver


@contextmanager
def objective_of(
    data: Labeled, c1: float, c2: float, n_jobs: int = 2, all_states: bool = False
) -> Iterator[Objective]:
    """Provide the objective of encoded data."""
    model = choose_features(data.X, data.codes, data.n_labels, all_states=all_states)
    with ThreadMap(n_jobs) as threads:
        yield Objective(
            model, model.structure, LogLoss(), ElasticNet(c1, c2), data.X, data.codes,
            np.ones(len(data.codes)), threads,
        )  # fmt: skip


def solve(
    data: Labeled, c1: float, c2: float, solver: Solver, callback: Any = None
) -> tuple[SolverResult, float]:
    """Return what a solver finds from zero, and the seconds from encoded data on."""
    started = time.perf_counter()
    with objective_of(data, c1, c2) as objective:
        result = solver.solve(objective, np.zeros(objective.n_parameters), callback)
    return result, time.perf_counter() - started


def optimum(data: Labeled, c1: float, c2: float) -> float:
    """Return the objective that a search finds, far closer than the targets of 0.01 %."""
    smooth = LBFGS(tol=1e-8, gtol=1e-8, max_iter=10_000)
    solver: Solver = OWLQN(tol=1e-8, gtol=1e-8, max_iter=10_000) if c1 else smooth
    return solve(data, c1, c2, solver)[0].value


def leave_out_evaluations(
    solver: Any, curve: Any, clock: Callable[[], float] = time.perf_counter
) -> None:
    """Have evaluations of a solver of mini-batches count neither as time nor as passes.

    Their seconds are added to ``curve.uncounted``.
    """
    start = solver._start

    def start_timed(batches: Any, *args: Any) -> Any:
        search = start(batches, *args)
        evaluate = search.evaluate

        def timed(w: FloatArray) -> Any:
            started, done = clock(), batches.n_computed
            found = evaluate(w)
            batches.n_computed = done
            curve.uncounted += clock() - started
            return found

        search.evaluate = timed
        return search

    solver._start = start_timed
