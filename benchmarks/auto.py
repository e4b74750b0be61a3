"""What ``solver="auto"`` takes, against L-BFGS (OWL-QN where c1 > 0), both with their own stop."""

from __future__ import annotations

import functools
import statistics
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import _data
import _plots

from crfkit import CRFClassifier

DATA = ["conll2000", "ocr_letters", "conll2002_es", "usaddress", "citations_cora"]
PENALTIES = [(0.0, 1.0), (0.0, 0.1), (0.0, 0.01), (0.1, 0.1), (1.0, 0.0)]
REPEATS, REPEAT_BELOW = 3, 10.0  # fits of more seconds are not repeated
QUICK_SEQUENCES = 200


def measure(dataset: str, c1: float, c2: float, limit: int | None) -> dict[str, Any]:
    """Fit both in turns."""
    data = _data.load(dataset, limit)
    names = {"auto": "auto", "batch": "owlqn" if c1 else "lbfgs"}
    times: dict[str, list[float]] = {name: [] for name in names}
    models: dict[str, Any] = {}
    for solver in names.values():
        fit(data, c1, c2, solver, max_iter=1)  # compiles
    for _ in range(REPEATS):
        for name, solver in names.items():
            started = time.perf_counter()
            models[name] = fit(data, c1, c2, solver)
            times[name].append(time.perf_counter() - started)
        if max(map(max, times.values())) > REPEAT_BELOW:
            break
    seconds = {name: statistics.median(values) for name, values in times.items()}
    values = {name: float(model.objective_) for name, model in models.items()}
    best = min(values.values())
    return {
        "c1": c1, "c2": c2, "batch solver": names["batch"], "seconds": seconds,
        "runs": len(times["auto"]), "objectives": values,
        "above the better": {name: value / best - 1.0 for name, value in values.items()},
        "converged": {name: bool(model.converged_) for name, model in models.items()},
        "times the seconds": {"auto": seconds["batch"] / seconds["auto"]},
    }  # fmt: skip


def fit(
    data: _data.Labeled, c1: float, c2: float, solver: str, max_iter: int | None = None
) -> CRFClassifier:
    """Return a fitted model."""
    crf = CRFClassifier(c1=c1, c2=c2, solver=solver, max_iter=max_iter, n_jobs=2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # whether it converged is noted
        return crf.fit(data.X, data.y)


def cases(quick: bool) -> dict[str, Callable[[], dict[str, Any]]]:
    """Return the measurements by name."""
    limit = QUICK_SEQUENCES if quick else None
    names = DATA[-2:] if quick else DATA
    return {
        f"{name}, c1={c1:g}, c2={c2:g}": functools.partial(measure, name, c1, c2, limit)
        for name in names
        for c1, c2 in PENALTIES
    }


def plot(results: dict[str, Any], folder: Path) -> None:
    """Draw the ratios as bars."""
    content = {name: case["times the seconds"] for name, case in results.items()}
    _plots.bars(folder / "auto.png", content, "times faster than L-BFGS or OWL-QN")
