"""Training: the objective over seconds and over passes, and what it takes to come near the optimum.

Seconds count from encoded data on, so with the choice of the features; passes are sweeps over the
data, those of line searches, of curvature and of the evaluations of a solver's stopping rule too.
Evaluations that are only there to draw a curve do not count: those of ``oeg``, whose figures with
the evaluations that it needs are under ``certified``. The optimum is that of a tight search of
crfkit. A run ends 0.01 % above it, or when its time is up.
"""

from __future__ import annotations

import functools
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import _crfsuite
import _data
import _plots
import numpy as np
from _objectives import leave_out_evaluations, objective_of, optimum, solve

from crfkit._types import FloatArray, IterationRecord
from crfkit.solvers import SOLVERS

PROBLEMS = [
    ("conll2000", 0.0, 1.0), ("conll2000", 0.0, 0.05), ("conll2000", 1.0, 0.0),
    ("ocr_letters", 0.0, 0.5), ("ocr_letters", 0.0, 0.05), ("gmb_ner", 0.0, 1.0),
]  # fmt: skip
QUICK_PROBLEMS = [("conll2000", 0.0, 1.0), ("conll2000", 1.0, 0.0), ("ocr_letters", 0.0, 0.5)]
TARGETS = {"1 %": 1e-2, "0.1 %": 1e-3, "0.01 %": 1e-4}
LEFT_OUT = {"auto", "gis", "iis"}  # has a part of its own; for study: thousands of passes
CHOSEN: set[str] = set()  # by run.py --solvers; all, if empty
KNOWN: dict[str, float] = {}  # optima of an earlier run, by run.py --known-optima
BUDGET, QUICK_BUDGET = 200.0, 3.0  # seconds of a run
REPEATS, REPEAT_BELOW = 3, 30.0  # runs of more seconds are not repeated
QUICK_SEQUENCES = 300
# python-crfsuite stops by itself when ten iterations gain less than this.
CRFSUITE: dict[str, Any] = {"delta": 3e-6, "period": 10, "max_iterations": 2000}

Point = tuple[float, int, float]  # seconds, passes, objective


class Curve:
    """A callback that writes down where a solver is, and stops it when it is near the optimum."""

    def __init__(self, best: float, budget: float) -> None:
        self.points: list[Point] = []
        self.uncounted = 0.0
        self._enough, self._budget = best * (1.0 + min(TARGETS.values())), budget

    def __call__(self, record: IterationRecord, w: FloatArray) -> bool:
        """Note an iteration; returns whether it was the last."""
        seconds = record.seconds - self.uncounted
        self.points.append((seconds, record.evaluations, record.value))
        return record.value <= self._enough or seconds > self._budget


def curve_of(data: _data.Labeled, c1: float, c2: float, name: str, best: float,
             budget: float) -> list[Point]:  # fmt: skip
    """Return the way of a solver."""
    solver: Any = SOLVERS[name]()
    solver.max_iter = 100_000
    for parameter in ("tol", "gtol"):
        if hasattr(solver, parameter):
            setattr(solver, parameter, 0.0 if parameter == "gtol" else 1e-9)
    curve = Curve(best, budget)
    started = time.perf_counter()
    with objective_of(data, c1, c2) as objective:
        if name == "oeg":
            solver.check_every = 1
            leave_out_evaluations(solver, curve)
        before = time.perf_counter() - started
        solver.solve(objective, np.zeros(objective.n_parameters), curve)
    return [(before + seconds, passes, value) for seconds, passes, value in curve.points]


def reached(points: list[Point], best: float) -> dict[str, dict[str, float] | None]:
    """Return seconds and passes to each target, None where a run did not get there."""
    found: dict[str, dict[str, float] | None] = {}
    for name, share in TARGETS.items():
        there = (point for point in points if point[2] <= best * (1.0 + share))
        point = next(there, None)
        found[name] = None if point is None else {"seconds": point[0], "passes": point[1]}
    return found


def repeated(run: Callable[[], list[Point]], best: float) -> list[list[Point]]:
    """Return the points of a few runs, or of one that takes long or does not come near."""
    runs = [run()]
    near = reached(runs[0], best)["0.01 %"]
    while len(runs) < REPEATS and near is not None and near["seconds"] < REPEAT_BELOW:
        runs.append(run())
    return runs


def measure_solver(data: _data.Labeled, c1: float, c2: float, name: str, best: float,
                   budget: float) -> dict[str, Any]:  # fmt: skip
    """Return how a solver comes near the optimum, the medians of its runs."""
    solve(data, c1, c2, SOLVERS[name]().set_params(max_iter=1))  # compiles
    runs = repeated(lambda: curve_of(data, c1, c2, name, best, budget), best)
    all_targets = [reached(points, best) for points in runs]
    targets: dict[str, Any] = {}
    for target in TARGETS:
        each = [found[target] for found in all_targets]
        some = [point for point in each if point is not None]
        targets[target] = None if len(some) < len(each) else {
            key: statistics.median(point[key] for point in some) for key in ("seconds", "passes")
        }  # fmt: skip
    return {"runs": len(runs), "targets": targets, "curve": thinned(runs[0])}


def thinned(points: list[Point], most: int = 150) -> list[Point]:
    """Return about so many points of a curve, the last one too."""
    step = -(-len(points) // most)
    kept = points[::step] + (points[-1:] if (len(points) - 1) % step else [])
    return [(round(seconds, 4), passes, float(f"{value:.10g}")) for seconds, passes, value in kept]


def certified(data: _data.Labeled, c1: float, c2: float, name: str, best: float) -> dict[str, Any]:
    """Return what a solver takes to promise that it is so near, and how near it is."""
    found = {}
    for target, tol in TARGETS.items():
        solver = SOLVERS[name]().set_params(tol=tol, max_iter=2000)
        runs = [solve(data, c1, c2, solver)]
        while len(runs) < REPEATS and runs[0][1] < REPEAT_BELOW:
            runs.append(solve(data, c1, c2, solver))
        result = runs[0][0]
        found[target] = {
            "seconds": statistics.median(seconds for _, seconds in runs),
            "passes": result.n_iter,
            "evaluations of the objective": len(result.history),
            "above the optimum": result.value / best - 1.0,
            "certified": result.converged,
        }
    return found


def measure_crfsuite(data: _data.Labeled, c1: float, c2: float, best: float) -> dict[str, Any]:
    """Return how python-crfsuite comes near the optimum, in one run."""
    log = _crfsuite.trainer_of(data).run(c1=c1, c2=c2, **CRFSUITE)
    points = [(entry.at, entry.passes, entry.loss) for entry in log]
    return {"runs": 1, "targets": reached(points, best), "curve": thinned(points)}


def ratios(runs: dict[str, Any]) -> dict[str, Any]:
    """Return how many times the seconds of each solver python-crfsuite needs for each target."""
    theirs = runs["python-crfsuite"]["targets"]
    return {
        name: {target: None if run["targets"][target] is None or theirs[target] is None
               else theirs[target]["seconds"] / run["targets"][target]["seconds"]
               for target in TARGETS}
        for name, run in runs.items() if name != "python-crfsuite"
    }  # fmt: skip


def fits(name: str, c1: float, c2: float) -> bool:
    """Whether a solver can minimize an objective with these penalties."""
    if name in LEFT_OUT or (CHOSEN and name not in CHOSEN) or (c1 and not SOLVERS[name].handles_l1):
        return False
    return not ((name == "oeg" and not c2) or (name == "owlqn" and not c1))


def measure(quick: bool, dataset: str, c1: float, c2: float) -> dict[str, Any]:
    """Return the measurements of one problem."""
    data = _data.load(dataset, QUICK_SEQUENCES if quick else None)
    budget = QUICK_BUDGET if quick else BUDGET
    best = KNOWN.get(case_name(dataset, c1, c2)) or optimum(data, c1, c2)
    print(f"  optimum {best:.10g}", flush=True)
    runs: dict[str, Any] = {}
    for name in SOLVERS:
        if fits(name, c1, c2):
            print(f"  {name}", flush=True)
            runs[name] = measure_solver(data, c1, c2, name, best, budget)
            print(f"    {runs[name]['targets']}", flush=True)
    runs["python-crfsuite"] = measure_crfsuite(data, c1, c2, best)
    promises = {name: certified(data, c1, c2, name, best) for name in ("oeg", "sag")
                if name in runs and runs[name]["targets"]["0.01 %"]}  # fmt: skip
    return {
        "sizes": data.sizes(), "c1": c1, "c2": c2, "optimum": best, "budget": budget,
        "times the seconds": ratios(runs), "certified": promises, "runs": runs,
    }  # fmt: skip


def case_name(dataset: str, c1: float, c2: float) -> str:
    """Return the name of a problem."""
    return f"{dataset}, c1={c1:g}, c2={c2:g}"


def cases(quick: bool) -> dict[str, Callable[[], dict[str, Any]]]:
    """Return the measurements by name."""
    problems = QUICK_PROBLEMS if quick else PROBLEMS
    return {
        case_name(dataset, c1, c2): functools.partial(measure, quick, dataset, c1, c2)
        for dataset, c1, c2 in problems
    }


def plot(results: dict[str, Any], folder: Path) -> None:
    """Draw the curves."""
    for axis, label in enumerate(("seconds", "passes over the data")):
        panels = {
            name: {
                solver: [(point[axis], max(point[2] / case["optimum"] - 1.0, 1e-6))
                         for point in run["curve"]]
                for solver, run in case["runs"].items()
            }
            for name, case in results.items()
        }  # fmt: skip
        _plots.panels(
            folder / f"training_{label.split()[0]}.png", panels, label, "above the optimum",
            bottom=5e-5, top=3.0,
        )  # fmt: skip
