"""MaxMarginCRF: F1 beside other models, seconds to a certified gap, and five solvers as curves.

The curves show, for each pass, the objective and the dual of each solver, both as their distance
from the optimum, which a tight search bounds from both sides. A pass visits as many sequences as
there are, once each or in proportion to their gaps; of the cutting plane it is one sweep for the
labelings that violate the margins most. Evaluations that are only there to draw count as time.
"""

from __future__ import annotations

import copy
import functools
import itertools
import statistics
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import _data
import _plots
from sklearn.metrics import make_scorer
from sklearn.model_selection import GridSearchCV, KFold

from crfkit import CRFClassifier, MaxMarginCRF, StructuredPerceptron
from crfkit._types import IterationRecord
from crfkit.metrics import entity_f1_score, flat_accuracy_score
from crfkit.solvers.margin import MARGIN_SOLVERS

# The rule of the paper for SMO is that of the largest entropy; the default goes further.
BY_ENTROPY = "smo, largest entropy"
CURVES = ("bcfw", "eg", "smo", BY_ENTROPY, "subgradient", "cutting_plane")
# Sentences that the C of the table is chosen on, and between what.
SUBSET, CHOICES = 2000, (0.003, 0.01, 0.03, 0.1, 0.3, 1.0)
GAPS = {"10 %": 0.1, "1 %": 0.01}
GAP_CS, GAP_BUDGET = (0.01, 0.1, 1.0), 100.0  # and seconds of a run at most
REPEATS, REPEAT_BELOW = 3, 20.0  # runs of more seconds are not repeated
# Data, sequences (None: all) and C of the curves; seconds and passes of a run at most.
PROBLEMS = {
    "ocr_letters, one fold": ("ocr_letters", None, 0.1),
    "conll2000, 1000 sentences": ("conll2000", 1000, 0.1),
}
BUDGET, PASSES, TIGHT_PASSES = 70.0, 300, 10_000
QUICK_SEQUENCES, QUICK_BUDGET = 150, 2.0


class Limited:
    """A solver with a limit of seconds."""

    def __init__(self, solver: Any, budget: float) -> None:
        self.solver, self.budget, self.max_iter = solver, budget, solver.max_iter

    def solve(self, objective: Any, start: Any, callback: Any = None) -> Any:
        """Minimize an objective; see :class:`crfkit.solvers.base.Solver`."""

        def note(record: IterationRecord, w: Any) -> bool:
            stop = callback is not None and bool(callback(record, w))
            return stop or record.seconds > self.budget

        return self.solver.solve(objective, start, note)


def drawn(name: str, passes: int) -> Any:
    """Return a solver that goes far, and evaluates the objective after each pass."""
    solver: Any = MARGIN_SOLVERS[name.partition(",")[0]]().set_params(max_iter=passes, tol=1e-6)
    if name == BY_ENTROPY:
        solver.set_params(alpha="max_entropy")
    return solver.set_params(check_every=1) if hasattr(solver, "check_every") else solver


def bcfw(**params: Any) -> Any:
    """Return the default solver with a gap that is enough for predictions."""
    return MARGIN_SOLVERS["bcfw"]().set_params(**({"tol": 1e-2, "max_iter": 100} | params))


def fit(model: Any, data: _data.Labeled) -> tuple[Any, float]:
    """Return a fitted model and the seconds, from encoded data on."""
    started = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # whether it converged is noted
        model = copy.deepcopy(model).fit(data.X, data.y)
    return model, time.perf_counter() - started


def quality(model: Any, data: _data.Labeled) -> dict[str, float]:
    """Return chunk F1 and token accuracy on new data, in percent."""
    found = model.predict(data.X_test)
    return {
        "f1": 100 * entity_f1_score(data.y_test, found),
        "accuracy": 100 * flat_accuracy_score(data.y_test, found),
    }


def compare(limit: int | None) -> dict[str, Any]:
    """Return the F1 of a margin, with the C of a search, beside other models."""
    data = _data.load("conll2000", limit)
    part = slice(0, min(SUBSET, len(data.X) // 2))
    search = GridSearchCV(
        MaxMarginCRF(solver=bcfw(), n_jobs=2), {"C": list(CHOICES)}, cv=KFold(3),
        scoring=make_scorer(entity_f1_score), refit=False,
    )  # fmt: skip
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        search.fit(data.X[part], data.y[part])
    chosen = search.best_params_["C"]
    models = {
        f"MaxMarginCRF(C={chosen:g})": MaxMarginCRF(C=chosen, solver=bcfw(), n_jobs=2),
        "CRFClassifier(c2=1)": CRFClassifier(c2=1.0, n_jobs=2),
        "StructuredPerceptron, 10 epochs": StructuredPerceptron(max_iter=10, n_jobs=2),
    }
    rows = {}
    for name, model in models.items():
        fitted, seconds = fit(model, data)
        rows[name] = {"seconds": seconds, "iterations": fitted.n_iter_, **quality(fitted, data)}
    return {
        "sizes": data.sizes(), "C": chosen, "sentences of the search": part.stop,
        "F1 in the search": {
            f"C={choice:g}": 100 * float(score) for choice, score in
            zip(CHOICES, search.cv_results_["mean_test_score"], strict=True)
        },
        "models": rows,
    }  # fmt: skip


def seconds_to_gap(C: float, limit: int | None, budget: float) -> dict[str, Any]:
    """Return what the default solver takes to certify how near it is."""
    data = _data.load("conll2000", limit)
    fit(MaxMarginCRF(C=C, max_iter=1), data)  # compiles
    rows = {}
    for target, tol in GAPS.items():
        limited = Limited(bcfw(tol=tol, max_iter=10_000), budget)
        runs = [fit(MaxMarginCRF(C=C, solver=limited, n_jobs=2), data)]
        while len(runs) < REPEATS and runs[0][1] < REPEAT_BELOW:
            runs.append(fit(MaxMarginCRF(C=C, solver=limited, n_jobs=2), data))
        model = runs[0][0]
        rows[target] = {
            "seconds": statistics.median(seconds for _, seconds in runs), "runs": len(runs),
            "passes": model.n_iter_, "objective": model.objective_,
            "gap": model.gap_ / model.objective_, "certified": bool(model.converged_),
            **quality(model, data),
        }  # fmt: skip
    return {"sizes": data.sizes(), "C": C, "gaps": rows}


def problem(name: str, limit: int | None) -> tuple[_data.Labeled, float]:
    """Return the data of curves and their C."""
    dataset, sequences, C = PROBLEMS[name]
    data = _data.load(dataset, limit or sequences)
    if dataset == "ocr_letters":  # the fold that is to be tagged elsewhere is learned from here
        data = _data.labeled(dataset, data.X_test, data.y_test, data.X, data.y)
    return data, C


def curves(name: str, limit: int | None, budget: float) -> dict[str, Any]:
    """Return the objective and the dual of each solver over the passes."""
    data, C = problem(name, limit)
    runs: dict[str, Any] = {}
    for solver in ("tight", *CURVES):
        print(f"  {solver}", flush=True)
        made = drawn("bcfw", TIGHT_PASSES) if solver == "tight" else drawn(solver, PASSES)
        fit(MaxMarginCRF(C=C, max_iter=1, solver=made), data)  # compiles
        model, seconds = fit(MaxMarginCRF(C=C, solver=Limited(made, budget), n_jobs=2), data)
        runs[solver] = {
            "seconds": seconds, "passes": model.n_iter_, "objective": model.objective_,
            "dual": best_dual(model.training_log_), "curve": points(model.training_log_),
        }  # fmt: skip
    upper = min(run["objective"] for run in runs.values())
    lower = max(run["dual"] for run in runs.values() if run["dual"] is not None)
    runs.pop("tight")
    return {
        "sizes": data.sizes(), "C": C, "optimum": {"at most": upper, "at least": lower},
        "runs": runs, "EG against SMO": against(runs["eg"]["curve"], runs[BY_ENTROPY]["curve"]),
    }  # fmt: skip


Point = tuple[int, float, float, float | None]


def points(history: list[IterationRecord]) -> list[Point]:
    """Return pass, seconds, objective, and the dual where it is known."""
    return [
        (r.iteration, round(r.seconds, 4), float(f"{r.value:.10g}"),
         None if r.gap != r.gap else float(f"{r.value - r.gap:.10g}"))
        for r in history
    ]  # fmt: skip


def best_dual(history: list[IterationRecord]) -> float | None:
    """Return the largest lower bound of a run, None where it has none."""
    known = [record.value - record.gap for record in history if record.gap == record.gap]
    return max(known) if known else None


def against(eg: list[Point], smo: list[Point]) -> dict[str, Any]:
    """Return how the duals of the two compare: who is ahead, and whether they still rise."""
    duals = {
        name: {number: dual for number, _, _, dual in curve if number and dual is not None}
        for name, curve in (("eg", eg), ("smo", smo))
    }
    common = sorted(duals["eg"].keys() & duals["smo"].keys())
    runs = itertools.groupby(common, lambda number: duals["eg"][number] > duals["smo"][number])
    ahead = [list(numbers) for eg_is_ahead, numbers in runs if eg_is_ahead]
    return {
        "passes of both": common[-1],
        "EG is ahead in passes": [[numbers[0], numbers[-1]] for numbers in ahead],
        "duals then": {name: values[common[-1]] for name, values in duals.items()},
        "rise in the last fifth": {
            name: values[common[-1]] / values[common[-1 - len(common) // 5]] - 1.0
            for name, values in duals.items()
        },
    }


def cases(quick: bool) -> dict[str, Callable[[], dict[str, Any]]]:
    """Return the measurements by name."""
    limit, budget = (QUICK_SEQUENCES, QUICK_BUDGET) if quick else (None, BUDGET)
    found: dict[str, Callable[[], dict[str, Any]]] = {
        f"curves, {name}": functools.partial(curves, name, limit, budget) for name in PROBLEMS
    }
    for C in GAP_CS:
        found[f"gap, conll2000, C={C:g}"] = functools.partial(
            seconds_to_gap, C, limit, QUICK_BUDGET if quick else GAP_BUDGET
        )
    found["models, conll2000"] = functools.partial(compare, limit)
    return found


def plot(results: dict[str, Any], folder: Path) -> None:
    """Draw the distance of the objective and of the dual from the optimum, over passes."""
    panels: dict[str, _plots.Series] = {}
    for name, case in results.items():
        if not name.startswith("curves, "):
            continue
        best, title = case["optimum"], name.removeprefix("curves, ")
        middle = (best["at most"] + best["at least"]) / 2.0
        above, below = (panels.setdefault(f"{title}: {what}", {}) for what in ("objective", "dual"))
        for solver, run in case["runs"].items():
            rows = [point for point in run["curve"] if point[0]]
            above[solver] = [(p[0], max(p[2] / middle - 1.0, 1e-6)) for p in rows]
            duals = [(p[0], max(1.0 - p[3] / middle, 1e-6)) for p in rows if p[3] is not None]
            if duals:
                below[solver] = duals
    if panels:
        _plots.panels(folder / "margin.png", panels, "passes over the data",
                      "distance from the optimum", bottom=1e-4, top=30.0, columns=2)  # fmt: skip
