"""Three solvers on five data sets: the same optimum, and a gap that never promises too much."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import _data
from _objectives import solve

from crfkit.solvers import LBFGS, OEG, NewtonCG

DATA = {"conll2000": 1.0, "ocr_letters": 0.5, "conll2002_es": 1.0, "usaddress": 1.0,
        "citations_cora": 1.0}  # fmt: skip
QUICK_SEQUENCES = 200


def measure(dataset: str, c2: float, limit: int | None) -> dict[str, Any]:
    """Return the optima and the certificate on a data set."""
    data = _data.load(dataset, limit)
    solvers = {
        "lbfgs": LBFGS(tol=1e-11, gtol=1e-6, max_iter=5000),
        "newton": NewtonCG(tol=1e-12, gtol=1e-6, max_iter=500),
        "oeg": OEG(tol=1e-8, max_iter=3000, check_every=1),
    }
    results = {name: solve(data, 0.0, c2, solver) for name, solver in solvers.items()}
    optima = {name: result.value for name, (result, _) in results.items()}
    best = min(optima.values())
    history = results["oeg"][0].history
    slacks = [(record.gap - (record.value - best)) / best for record in history]
    return {
        "sizes": data.sizes(), "c2": c2, "optimum": best, "optima": optima,
        "seconds": {name: seconds for name, (_, seconds) in results.items()},
        "largest relative difference": max(optima.values()) / best - 1.0,
        "the optimum is certified to": history[-1].gap / best,
        "passes with a gap": len(history),
        "least of (gap - distance to the optimum) / optimum": min(slacks),
        "passes": [
            {"pass": r.iteration, "gap": r.gap / best, "distance": r.value / best - 1.0}
            for r in history[:: max(len(history) // 50, 1)]
        ],
    }  # fmt: skip


def cases(quick: bool) -> dict[str, Callable[[], dict[str, Any]]]:
    """Return the measurements by name."""
    limit = QUICK_SEQUENCES if quick else None
    return {name: functools.partial(measure, name, c2, limit) for name, c2 in DATA.items()}


def plot(results: dict[str, Any], folder: Path) -> None:
    """Draw the gap and the distance that it bounds."""
    import _plots

    content = {
        name: {
            key: [(row["pass"] + 1, row[key]) for row in case["passes"] if row[key] > 0.0]
            for key in ("gap", "distance")
        }
        for name, case in results.items()
    }
    _plots.panels(folder / "certificate.png", content, "pass", "above the optimum", bottom=1e-9)
