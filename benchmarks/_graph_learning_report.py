"""Tables of what is learned on graphs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Row = tuple[str, ...]
Cases = Callable[[str], dict[str, Any]]
Table = Callable[[Row, list[Row]], list[str]]


def blocks(cases: Cases, table: Table) -> dict[str, Callable[[], list[str]]]:
    """Return what writes the lines of each block."""
    return {
        "snakes": lambda: table(*snakes(cases("snakes"))),
        "scene_multilabel": lambda: table(*scenes(cases("scene_multilabel"))),
        "skip_chain": lambda: table(*names(cases("skip_chain"))),
    }


def snakes(found: dict[str, Any]) -> tuple[Row, list[Row]]:
    """Return the accuracy of each loss, by the features of edges."""
    head = ("features of edges: loss", "right pixels", "right pixels of snakes", "weights",
            "iterations", "processor seconds of the fit")  # fmt: skip
    rows = [
        (key, f"{case['accuracy']:.3f}", f"{case['accuracy of snakes']:.3f}",
         f"{case['weights']:,}", str(case["iterations"]),
         f"{case['processor seconds of the fit']:.1f}")
        for key, case in found.items()
    ]  # fmt: skip
    return head, rows


def scenes(found: dict[str, Any]) -> tuple[Row, list[Row]]:
    """Return the errors of each graph of labels."""
    head = ("labels", "edges", "wrong labels", "exact match", "wrong labels, \"posterior\"",
            "log-likelihood of an example", "processor seconds of the fit")  # fmt: skip
    rows = [
        (key, str(len(case["edges"])), f"{case['viterbi']['Hamming loss']:.4f}",
         f"{case['viterbi']['exact match']:.3f}", f"{case['posterior']['Hamming loss']:.4f}",
         f"{case['mean log-likelihood']:.3f}", f"{case['processor seconds of the fit']:.1f}")
        for key, case in found.items()
    ]  # fmt: skip
    return head, rows


def names(found: dict[str, Any]) -> tuple[Row, list[Row]]:
    """Return F1, and how often equal words have equal tags."""
    head = ("model", "skip edges", "precision", "recall", "F1", "equal words tagged alike",
            "so in truth", "processor seconds of the fit")  # fmt: skip
    rows = [
        (key, f"{case['skip edges']:,}", *(f"{100 * case[name]:.2f}" for name in
                                           ("precision", "recall", "F1")),
         f"{case['consistency']:.3f}", f"{case['consistency of the truth']:.3f}",
         f"{case['processor seconds of the fit']:.1f}")
        for key, case in found.items()
    ]  # fmt: skip
    return head, rows
