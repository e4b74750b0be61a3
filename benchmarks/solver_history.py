"""Iterative scaling, conjugate gradients and their successors on one objective, from zero.

The log loss of a linear chain on a mixture of first- and second-order sources (Lafferty, McCallum
and Pereira 2001, section 5.2), with features of a label and its symbol and of two labels. What Sha
and Pereira (2003, table 4) measured for shallow parsing: iterations, passes over the data and
processor seconds of one thread until the objective is 1e-3 and 1e-6 above its optimum, as a share
of it. Products with a Hessian are passes, a whole Hessian is none, but seconds tell of it. The
evaluations that are only there to draw the curve of ``oeg`` count as neither.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import _data
import _plots
import numpy as np
from _objectives import leave_out_evaluations, objective_of, optimum
from training import thinned

from crfkit import SequenceVectorizer
from crfkit._types import FloatArray, IterationRecord
from crfkit.datasets import make_markov_sequences
from crfkit.solvers import SOLVERS, ConjugateGradient, Solver

TARGETS = {"1e-3": 1e-3, "1e-6": 1e-6}
N_SEQUENCES, QUICK_SEQUENCES = 1000, 100
LENGTH, LENGTHS = 25, (5, 45)
REPEATS, REPEAT_BELOW = 3, 20.0  # runs of more seconds are not repeated
MOST_ITERATIONS = 1_000_000
BUDGET, QUICK_BUDGET = 60.0, 3.0  # seconds of a run


def solvers() -> dict[str, Solver]:
    """Return the solvers, none of which stops before its callback says so."""
    names = ("gis", "iis", "cg", "lbfgs", "oeg", "newton", "dense_newton")
    found: dict[str, Solver] = {name: SOLVERS[name]() for name in names}
    found["cg, preconditioned"] = ConjugateGradient(preconditioner=True)
    for solver in found.values():
        solver.max_iter = MOST_ITERATIONS
        solver.set_params(tol=1e-15)
        if hasattr(solver, "gtol"):
            solver.set_params(gtol=0.0)
    found["oeg"].set_params(check_every=1, tol=1e-9)
    return found


def mixture(n_sequences: int, vary: bool) -> _data.Labeled:
    """Return sequences of one length, or the beginnings of longer ones."""
    longest = LENGTHS[1] if vary else LENGTH
    drawn = make_markov_sequences(n_sequences, longest, alpha=0.5, random_state=0)
    random = np.random.default_rng(0)
    ends = (
        random.integers(LENGTHS[0], longest + 1, n_sequences) if vary else [longest] * n_sequences
    )
    X = [row[:end] for row, end in zip(drawn.X, ends, strict=True)]
    y = [row[:end] for row, end in zip(drawn.y, ends, strict=True)]
    packed = SequenceVectorizer().fit_transform(X)
    return _data.labeled("mixture", packed, y, packed[:0], [])


class Way:
    """A callback that notes where a solver is, and stops it when it is near the optimum."""

    def __init__(self, best: float, budget: float) -> None:
        self.points: list[tuple[int, int, float, float]] = []
        self.uncounted = 0.0
        self._enough, self._budget = best * (1.0 + min(TARGETS.values())), budget
        self._started = time.process_time()

    def __call__(self, record: IterationRecord, w: FloatArray) -> bool:
        """Note an iteration; returns whether it was the last."""
        seconds = time.process_time() - self._started - self.uncounted
        self.points.append((record.iteration, record.evaluations, seconds, record.value))
        return record.value <= self._enough or seconds > self._budget


def way_of(data: _data.Labeled, c2: float, name: str, best: float, budget: float) -> Way:
    """Return the way of a solver to the optimum."""
    solver = solvers()[name]
    with objective_of(data, 0.0, c2, 1) as objective:
        way = Way(best, budget)
        if name == "oeg":
            leave_out_evaluations(solver, way, time.process_time)
        solver.solve(objective, np.zeros(objective.n_parameters), way)
    return way


def reached(way: Way, best: float) -> dict[str, dict[str, float] | None]:
    """Return iterations, passes and seconds to each target, None where it was not reached."""
    found: dict[str, dict[str, float] | None] = {}
    for name, share in TARGETS.items():
        there = (point for point in way.points if point[3] <= best * (1.0 + share))
        point = next(there, None)
        keys = ("iterations", "passes", "seconds")
        found[name] = None if point is None else dict(zip(keys, point[:3], strict=True))
    return found


def measure_solver(
    data: _data.Labeled, c2: float, name: str, best: float, budget: float
) -> dict[str, Any]:
    """Return how a solver comes near the optimum; seconds are the medians of a few runs."""
    ways = [way_of(data, c2, name, best, budget)]
    while len(ways) < REPEATS and ways[0].points[-1][2] < REPEAT_BELOW:
        ways.append(way_of(data, c2, name, best, budget))
    targets = reached(ways[0], best)
    others = [reached(way, best) for way in ways]
    for target, point in targets.items():
        if point is not None:
            seconds = [found["seconds"] for one in others if (found := one[target]) is not None]
            point["seconds"] = float(np.median(seconds))
    curve = [(seconds, passes, value) for _, passes, seconds, value in ways[0].points]
    return {"runs": len(ways), "targets": targets, "curve": thinned(spread(curve))}


def spread(curve: list[Any]) -> list[Any]:
    """Return the points of a curve that are apart on a logarithmic axis of passes."""
    kept = curve[:1]
    for point in curve[1:-1]:
        if point[1] > 1.02 * kept[-1][1]:
            kept.append(point)
    return kept + curve[-1:]


def measure(quick: bool, c2: float, vary: bool) -> dict[str, Any]:
    """Return the measurements of one objective."""
    data = mixture(QUICK_SEQUENCES if quick else N_SEQUENCES, vary)
    best, budget = optimum(data, 0.0, c2), QUICK_BUDGET if quick else BUDGET
    small = mixture(5, vary)
    runs = {}
    for name in solvers():
        way_of(small, c2, name, optimum(small, 0.0, c2), 1.0)  # compiles
        runs[name] = measure_solver(data, c2, name, best, budget)
        print(f"  {name}: {runs[name]['targets']}", flush=True)
    with objective_of(data, 0.0, c2, 1) as objective:
        weights = objective.n_parameters
    return {"sizes": data.sizes(), "weights": weights, "c2": c2, "optimum": best,
            "budget": budget, "runs": runs}  # fmt: skip


def cases(quick: bool) -> dict[str, Callable[[], dict[str, Any]]]:
    """Return the measurements by name."""
    lengths = {False: f"all of length {LENGTH}", True: "lengths from {} to {}".format(*LENGTHS)}
    return {
        f"{lengths[vary]}, c2 = {c2:g}": functools.partial(measure, quick, c2, vary)
        for vary, c2 in ((False, 1.0), (False, 0.1), (True, 1.0))
    }


def plot(results: dict[str, Any], folder: Path) -> None:
    """Draw the distance to the optimum over passes."""
    panels = {
        name: {
            solver: [(max(passes, 1), max(value / case["optimum"] - 1.0, 1e-7))
                     for _, passes, value in run["curve"]]
            for solver, run in case["runs"].items()
        }
        for name, case in results.items()
    }  # fmt: skip
    _plots.panels(folder / "solver_history.png", panels, "passes over the data",
                  "above the optimum", bottom=5e-7, top=3.0)  # fmt: skip
