"""Approximate sums against the published ones, on the models of the UAI competition of 2014.

Of each method the error of log10 Z (as it is said to be: a bound, or neither), the largest and the
mean error of a marginal, whether it has converged, its sweeps and its seconds. What is published
has six digits, and so have the errors; what is true of associative models of two labels, a
junction tree tells. Belief propagation by both schedules and with damping: fixed points differ. A
method is `right` if no marginal is off by more than 0.001.
"""

from __future__ import annotations

import functools
import math
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import _uai
import numpy as np

from crfkit.graphs.belief_propagation import BeliefPropagation
from crfkit.graphs.gibbs import GibbsSampling
from crfkit.graphs.mean_field import MeanField
from crfkit.graphs.methods import SumMethod
from crfkit.graphs.tree_reweighted import TreeReweighted

METHODS: dict[str, SumMethod] = {
    "bp": BeliefPropagation(),
    "bp, sweeps": BeliefPropagation(schedule="sweeps"),
    "bp, damping 0.5": BeliefPropagation(damping=0.5, max_iter=2000),
    "trw": TreeReweighted(),
    "mean_field": MeanField(n_starts=10),
    "gibbs": GibbsSampling(),
}
QUICK = ("Segmentation_11", "Promedus_29")
RIGHT = 0.001


def measure(name: str) -> dict[str, Any]:
    """Return what each method answers of a model."""
    model, found = _uai.model(name), {}
    for key, method in METHODS.items():
        started = time.perf_counter()
        sums = method.sums(model.graph)
        seconds = time.perf_counter() - started
        errors = abs(sums.marginals - model.marginals)
        log_z = float(sums.log_partition[0])
        found[key] = {
            "bound": method.bound,
            "error of log10 Z": None if math.isnan(log_z) else
            (log_z - model.log_partition) / math.log(10.0),
            "largest error of a marginal": float(errors.max()),
            "mean error of a marginal": float(errors.mean()),
            "right": bool(errors.max() <= RIGHT),
            "converged": bool(sums.converged[0]),
            "sweeps": int(sums.n_iter[0]),
            "seconds": seconds,
        }  # fmt: skip
    return {
        "variables": len(model.graph.sizes),
        "factors": len(model.graph.scope_ptr) - 1,
        "log10 Z": model.log_partition / math.log(10.0),
        "methods": found,
    }


def cases(quick: bool) -> dict[str, Callable[[], dict[str, Any]]]:
    """Return the measurements by model."""
    for method in METHODS.values():  # compiled before a clock runs
        method.sums(_uai.model(QUICK[1]).graph)
    chosen = QUICK if quick else _uai.names()
    return {name: functools.partial(measure, name) for name in chosen}


def plot(results: dict[str, Any], folder: Path) -> None:
    """Draw the errors of log10 Z and of marginals, a row for each model."""
    import matplotlib

    matplotlib.use("agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(
        1, 2, figsize=(9.0, 1.5 + 0.17 * len(results)), sharey=True, layout="constrained"
    )
    rows = np.arange(len(results))
    for key, marker in zip(METHODS, "o.xv^+", strict=True):
        told = [case["methods"][key] for case in results.values()]
        converged = np.array([one["converged"] for one in told])
        for ax, kind in zip(axes, ("error of log10 Z", "largest error of a marginal"), strict=True):
            values = np.array([np.nan if one[kind] is None else one[kind] for one in told])
            [line] = ax.plot(values, rows, marker, markersize=4, label=key)
            ax.plot(values[~converged], rows[~converged], "o", color=line.get_color(),
                    markersize=9, fillstyle="none", markeredgewidth=0.5)  # fmt: skip
            ax.set_xlabel(kind + (", a circle: not converged" if kind.startswith("l") else ""))
            ax.grid(alpha=0.3)
    axes[0].set_xscale("symlog", linthresh=0.1)
    axes[1].set_xscale("symlog", linthresh=0.001)
    axes[0].set_yticks(rows, list(results), fontsize="xx-small")
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside upper center", ncols=6,
                  fontsize="small")  # fmt: skip
    figure.savefig(folder / "graphs_approximate.png", dpi=110)
    pyplot.close(figure)
