"""What people run: common data and penalties, ``solver="auto"``, against python-crfsuite's lbfgs.

    python benchmarks/run.py --only ordinary_settings --cases "wikigold, c1=1, c2=0"

Both start from encoded data (read strings, numbered labels for crfkit), in one process, on one
thread. crfkit is timed until its objective is within 0.01 % of the best known one, the smallest
that any run ever found, and until `fit` returns; python-crfsuite until it stops by itself, with its
own rule. Seconds are those of the processor; with two threads, of the clock. Each case is written
to ``results/ordinary_settings.json`` when it is done; its best known objective is kept.
"""

from __future__ import annotations

import functools
import math
import statistics
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import _crfsuite
import _data
import _measure
import _ordinary_data
import _plots
import numpy as np
from _objectives import objective_of
from threadpoolctl import threadpool_limits

from crfkit import CRFClassifier
from crfkit._types import FloatArray, IterationRecord, SolverResult
from crfkit.solvers import LBFGS, OWLQN, SOLVERS

NAME, PEER = "ordinary_settings", "python-crfsuite"
SETTINGS = [(0.0, 1.0), (0.0, 0.1), (0.1, 0.1), (0.1, 0.01), (1.0, 0.0)]
# Sequences at most, where python-crfsuite would take minutes with some of the penalties.
LIMITS = {
    "conll2000": 2000, "ocr_letters": 3000, "conll2002_es": 2000, "gmb_ner": 2500,
    "headers_cora": 100, "ud_english_ewt": 2000, "ud_czech_mix": 3000, "brown_pos": 300,
    "genes_dmel": 120,
}  # fmt: skip
QUICK_SEQUENCES = 60
NEAR = 1e-4  # above the best known objective
SINGLE = ("lbfgs", "owlqn", "oeg", "sag", "newton", "dense_newton")  # that `auto` has to match
PATIENCE = 1.3  # times the seconds of `auto`: then a single solver is given up
FEW_WEIGHTS = 1000  # with more, a matrix of all pairs is not tried
REPEATS, REPEAT_BELOW = 3, 1.5  # runs of more seconds are not repeated
TIGHT: dict[str, Any] = {"tol": 1e-7, "gtol": 1e-9, "max_iter": 1000}


class Point(NamedTuple):
    """Where a search was: seconds of the processor and of the clock, passes, objective."""

    processor: float
    wall: float
    passes: int
    value: float


class Run(NamedTuple):
    """A fit: its points, its seconds of both kinds, and the parameters and objective at its end."""

    points: list[Point]
    processor: float
    wall: float
    value: float
    parameters: FloatArray = np.empty(0)

    def reached(self, best: float) -> Point | None:
        """Return the first point that is near the best objective."""
        return next((p for p in self.points if p.value <= best * (1.0 + NEAR)), None)


class Timed:
    """A solver for `CRFClassifier` that notes where it is, and may be stopped.

    Parameters
    ----------
    solver : Solver
        What is timed.
    enough : callable, optional
        Tells of a point whether it is the last one.
    """

    def __init__(self, solver: Any, enough: Callable[[Point], bool] | None = None) -> None:
        self.solver, self.max_iter, self._enough = solver, solver.max_iter, enough
        self.points: list[Point] = []
        self.parameters: FloatArray = np.empty(0)
        self.started = time.process_time(), time.perf_counter()

    def since(self) -> tuple[float, float]:
        """Return the seconds since the start."""
        return time.process_time() - self.started[0], time.perf_counter() - self.started[1]

    def solve(self, objective: Any, start: FloatArray, callback: Any = None) -> SolverResult:
        """Minimize the objective."""

        def told(record: IterationRecord, w: FloatArray) -> bool:
            self.points.append(Point(*self.since(), record.evaluations, record.value))
            return self._enough is not None and self._enough(self.points[-1])

        result: SolverResult = self.solver.solve(objective, start, told)
        self.parameters = result.parameters
        return result


def fit(
    data: _data.Labeled, c1: float, c2: float, solver: Any, n_jobs: int = 1,
    enough: Callable[[Point], bool] | None = None,
) -> Run:  # fmt: skip
    """Fit a model to encoded data."""
    timed = Timed(solver, enough)
    crf = CRFClassifier(c1=c1, c2=c2, solver=timed, n_jobs=n_jobs)
    with warnings.catch_warnings(), threadpool_limits(n_jobs):  # no more threads of BLAS
        warnings.simplefilter("ignore")  # that it was stopped
        crf.fit(data.X, data.y)
    return Run(timed.points, *timed.since(), float(crf.objective_), timed.parameters)


def fit_crfsuite(data: _data.Labeled, c1: float, c2: float) -> Run:
    """Train with python-crfsuite, until it stops by its own rule."""
    trainer = _crfsuite.trainer_of(data)
    log = trainer.run(c1=c1, c2=c2)
    seconds = time.process_time() - trainer.started_processor, time.perf_counter() - trainer.started
    points = [Point(entry.processor, entry.at, entry.passes, entry.loss) for entry in log]
    return Run(points, *seconds, points[-1].value)


def tight(data: _data.Labeled, c1: float, c2: float, start: FloatArray) -> float:
    """Return the objective that a long search finds from the end of another."""
    solver = OWLQN(**TIGHT) if c1 else LBFGS(**TIGHT)
    with objective_of(data, c1, c2) as objective:
        result = solver.solve(objective, np.array(start))
    return min(record.value for record in result.history)


def said(runs: list[Run], best: float) -> dict[str, Any]:
    """Return what is kept of the runs of one solver: medians."""
    near = [run.reached(best) for run in runs]
    last = runs[0].points[-1]
    found: dict[str, Any] = {
        "runs": len(runs),
        "seconds": statistics.median(run.processor for run in runs),
        "wall seconds": statistics.median(run.wall for run in runs),
        "passes": last.passes, "iterations": len(runs[0].points) - 1,
        "before the first pass": statistics.median(run.points[0].processor for run in runs),
        "above the best": runs[0].value / best - 1.0, "to 0.01 %": None,
    }  # fmt: skip
    there = [point for point in near if point is not None]
    if len(there) == len(near):
        found["to 0.01 %"] = {
            "seconds": statistics.median(point.processor for point in there),
            "wall seconds": statistics.median(point.wall for point in there),
            "passes": there[0].passes,
        }
    return found


def ratio(theirs: dict[str, Any], ours: dict[str, Any], kind: str) -> float | None:
    """Return how many times the seconds to the target the whole of another fit takes."""
    near = ours["to 0.01 %"]
    return theirs[kind] / near[kind] if near else None


def applies(name: str, c1: float, c2: float, n_weights: int) -> bool:
    """Whether a solver can minimize an objective with these penalties and weights."""
    if name == "dense_newton" and n_weights > FEW_WEIGHTS:
        return False
    if c1 and not SOLVERS[name].handles_l1:
        return False
    return not ((name in ("oeg", "sag") and not c2) or (name == "owlqn" and not c1))


def runs_of(
    data: _data.Labeled, c1: float, c2: float, known: float
) -> tuple[dict[str, list[Run]], float]:
    """Return the runs of all, in turns so that noise hits all alike, and the best objective."""
    for n_jobs in (1, 2):  # compiles
        fit(data, c1, c2, SOLVERS["auto"]().set_params(max_iter=20), n_jobs)
    makers: dict[str, Callable[[], Run]] = {
        "1 thread": lambda: fit(data, c1, c2, SOLVERS["auto"]()),
        "2 threads": lambda: fit(data, c1, c2, SOLVERS["auto"](), 2),
        PEER: lambda: fit_crfsuite(data, c1, c2),
    }
    runs = {name: [make()] for name, make in makers.items()}
    values = [known, *(run.value for (run,) in runs.values())]
    auto = runs["1 thread"][0]
    if known == math.inf:
        values.append(tight(data, c1, c2, auto.parameters))
    best = min(values)
    budget = PATIENCE * (auto.reached(best) or auto.points[-1]).processor

    def enough(point: Point) -> bool:
        return point.value <= best * (1.0 + NEAR) or point.processor > budget

    for name in (name for name in SINGLE if applies(name, c1, c2, len(auto.parameters))):
        fit(data, c1, c2, SOLVERS[name]().set_params(max_iter=3))  # compiles
        make = functools.partial(single, data, c1, c2, name, enough)
        runs[name] = [make()]
        if runs[name][0].reached(best):
            makers[name] = make
    for _ in range(REPEATS - 1):
        for name, make in makers.items():
            if runs[name][0].processor < REPEAT_BELOW:
                runs[name].append(make())
    return runs, best


def single(
    data: _data.Labeled, c1: float, c2: float, name: str, enough: Callable[[Point], bool]
) -> Run:
    """Return a run of one solver until it is near enough, or takes too long."""
    return fit(data, c1, c2, SOLVERS[name](), enough=enough)


def measure(dataset: str, c1: float, c2: float, limit: int | None, known: float) -> dict[str, Any]:
    """Return the measurements of one case; `known` is the best objective so far, or infinite."""
    data = _ordinary_data.load(dataset, limit)
    runs, best = runs_of(data, c1, c2, known)
    found = {name: said(each, best) for name, each in runs.items()}
    one, two, peer = (found.pop(name) for name in ("1 thread", "2 threads", PEER))
    singles = {name: row["to 0.01 %"] for name, row in found.items()}
    there = {name: near["seconds"] for name, near in singles.items() if near}
    fastest = min(there, key=there.__getitem__, default=None)
    near = one["to 0.01 %"]
    return {
        "sizes": data.sizes() | {"weights": len(runs["1 thread"][0].parameters)},
        "c1": c1, "c2": c2, "best known": best, "limit": limit,
        "auto": {"1 thread": one, "2 threads": two}, PEER: peer, "solvers": singles,
        "best solver": fastest,
        "auto by the best solver": near["seconds"] / there[fastest] if near and fastest else None,
        "times the seconds": {
            "1 thread": ratio(peer, one, "seconds"),
            "2 threads": ratio(peer, two, "wall seconds"),
        },
    }  # fmt: skip


def case_name(dataset: str, c1: float, c2: float) -> str:
    """Return the name of a case."""
    return f"{dataset}, c1={c1:g}, c2={c2:g}"


def best_known(case: str, limit: int | None, folder: Path = _measure.RESULTS) -> float:
    """Return the best objective of earlier runs on as many sequences."""
    found = _measure.read(NAME, folder).get("cases", {}).get(case)
    return found["best known"] if found and found["limit"] == limit else math.inf


def cases(quick: bool) -> dict[str, Callable[[], dict[str, Any]]]:
    """Return the measurements by name."""

    def one(dataset: str, c1: float, c2: float) -> dict[str, Any]:
        limit = QUICK_SEQUENCES if quick else LIMITS.get(dataset)
        known = best_known(case_name(dataset, c1, c2), limit)
        return measure(dataset, c1, c2, limit, known)

    return {
        case_name(dataset, c1, c2): functools.partial(one, dataset, c1, c2)
        for dataset in _ordinary_data.NAMES
        for c1, c2 in SETTINGS
    }


def plot(results: dict[str, Any], folder: Path) -> None:
    """Draw the ratios as bars, those of the settings side by side."""
    content: dict[str, dict[str, float]] = {}
    for name in (name for name in cases(False) if name in results):
        dataset, setting = name.split(", ", 1)
        found = results[name]["times the seconds"]["1 thread"]
        content.setdefault(dataset, {})[setting] = found or 0.0
    _plots.bars(folder / f"{NAME}.png", content, "times the speed of python-crfsuite, one thread")
