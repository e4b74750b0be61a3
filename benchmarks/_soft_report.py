"""Tables of soft labels, of rare names, and of starts."""

from __future__ import annotations

import statistics
from collections.abc import Callable
from typing import Any

Row = tuple[str, ...]
Cases = Callable[[str], dict[str, Any]]
Table = Callable[[Row, list[Row]], list[str]]


def blocks(cases: Cases, table: Table) -> dict[str, Callable[[], list[str]]]:
    """Return what writes the lines of each block."""
    return {
        "soft_distilled": lambda: table(*distilled(cases("soft_labels"))),
        "soft_noise": lambda: table(*noise(cases("soft_labels"))),
        "class_imbalance": lambda: table(*imbalance(cases("class_imbalance"))),
        "init": lambda: table(*starts(cases("init"))),
    }


def distilled(found: dict[str, Any]) -> tuple[Row, list[Row]]:
    """Return the scores of teachers and of small models."""
    head = ("set, model", "learned from", "weights", "F1, %", "accuracy, %", "ms a sequence")
    rows = []
    for name, case in found.items():
        parts = case["distilled"]
        labeled, unlabeled = parts["labeled"], parts["unlabeled"]
        rows.append((f"{name}, teacher", f"{labeled:,} labeled", *_numbers(parts["teacher"])))
        for learned, scores in parts["small"].items():
            of = f"{learned} ({labeled:,} + {unlabeled:,})" if "rest" in learned else learned
            rows.append((f"{name}, small", of, *_numbers(scores)))
    return head, rows


def _numbers(scores: dict[str, float]) -> Row:
    """Return weights, scores and milliseconds."""
    return (
        f"{scores['weights']:,}", f"{scores['F1']:.1f}", f"{scores['accuracy']:.1f}",
        f"{1e3 * scores['seconds']:.2f}",
    )  # fmt: skip


def noise(found: dict[str, Any]) -> tuple[Row, list[Row]]:
    """Return the F1 of each way to learn, by the share of wrong labels."""
    shares = list(next(iter(found.values()))["noise"]) if found else []
    head = ("F1, %, by the share of wrong labels", *(f"{100 * float(x):.0f} %" for x in shares))
    rows = []
    for name, case in found.items():
        for way in next(iter(case["noise"].values())):
            scores = (f"{case['noise'][share][way]['F1']:.1f}" for share in shares)
            rows.append((f"{name}, {way}", *scores))
    return head, rows


def imbalance(found: dict[str, Any]) -> tuple[Row, list[Row]]:
    """Return precision, recall and F1 of each way to prefer recall, and the least time."""
    head = ("loss, and what prefers recall", "precision", "recall", "F1", "seconds")
    rows = []
    for name, case in found.items():
        means = (f"{statistics.mean(case[key]):.1f}" for key in ("precision", "recall", "F1"))
        rows.append((name, *means, f"{min(case['seconds']):.1f}"))  # the first fit compiles
    return head, rows


def starts(found: dict[str, Any]) -> tuple[Row, list[Row]]:
    """Return iterations and seconds from each start."""
    head = (
        "set, start", "first objective", "iterations to 1 %", "to 0.01 %", "seconds to 1 %",
        "to 0.01 %",
    )  # fmt: skip
    rows = []
    for name, case in found.items():
        for start, reached in case["starts"].items():
            ends = [reached["1 %"], reached["0.01 %"]]
            rows.append((
                f"{name}, {start}", f"{reached['first']:.1f} x",
                *(f"{iterations}" for iterations, _ in ends),
                *(f"{seconds + reached['seconds of the start']:.2f}" for _, seconds in ends),
            ))  # fmt: skip
    return head, rows
