"""The tables of the page on segments, as a head and rows."""

from __future__ import annotations

import statistics
from collections.abc import Callable
from typing import Any

Row = tuple[str, ...]
Table = tuple[Row, list[Row]]
Cases = dict[str, Any]


def _of(cases: Cases, kind: str) -> Cases:
    """Return the cases of a kind, by the rest of their names."""
    return {
        name.removeprefix(kind + ", "): case for name, case in cases.items()
        if name.startswith(kind + ", ")
    }  # fmt: skip


def _scores(cases: Cases) -> dict[str, Cases]:
    """Return the results of each task by model."""
    found: dict[str, Cases] = {}
    for name, case in _of(cases, "F1").items():
        task, _, model = name.partition(": ")
        found.setdefault(task, {})[model] = case
    return found


def _by_model(cases: Cases, form: Callable[[Any], str]) -> tuple[list[str], list[Row]]:
    """Return the tasks, and a row for each model."""
    found = _scores(cases)
    models = list(dict.fromkeys(model for task in found.values() for model in task))
    rows = [
        (model, *(form(task[model]) if model in task else "-" for task in found.values()))
        for model in models
    ]
    return list(found), rows


def f1(cases: Cases) -> Table:
    """Return mean and deviation of each model on each task."""
    tasks, rows = _by_model(cases, lambda case: "{mean:.2f} ± {deviation:.2f}".format(**case["f1"]))
    return ("F1 of segments, %", *tasks), rows


def differences(cases: Cases) -> Table:
    """Return how much more segments score than tags on the same folds, and on how many more."""
    found = _scores(cases)
    pairs = [("SemiMarkovCRF", "CRF, IOB2"), ("SemiMarkovCRF", "CRF, IOBES"),
             ("SemiMarkovCRF, dictionary", "CRF, IOBES, dictionary")]  # fmt: skip
    rows = [
        (f"{one} - ({other})", *(_paired(task, one, other) for task in found.values()))
        for one, other in pairs
    ]
    return ("F1 on the same folds", *found), rows


def _paired(task: Cases, one: str, other: str) -> str:
    if not {one, other} <= set(task):
        return "-"
    both = zip(task[one]["f1"]["all"], task[other]["f1"]["all"], strict=True)
    gains = [a - b for a, b in both]
    more = sum(gain > 0.0 for gain in gains)
    return f"{statistics.mean(gains):+.2f}; {more} of {len(gains)}"


def penalties(cases: Cases) -> Table:
    """Return the penalty that was chosen, and what a fit with it takes."""
    tasks, rows = _by_model(
        cases, lambda case: f"{case['c2']:g}, {case['processor seconds of a fit']:.0f} s"
    )
    return ("c2, a fit", *tasks), rows


def tasks(cases: Cases) -> Table:
    """Return what there is of everything in each task."""
    sizes = {task: next(iter(models.values()))["sizes"] for task, models in _scores(cases).items()}
    kinds = list(dict.fromkeys(kind for one in sizes.values() for kind in one))
    return ("", *kinds), [(task, *(f"{one[k]:,}" for k in kinds)) for task, one in sizes.items()]


def variants(cases: Cases) -> Table:
    """Return the F1 of each form of the model on the first fold."""
    found = _of(cases, "variants")
    forms = list(dict.fromkeys(form for case in found.values() for form in case["variants"]))
    rows = [
        (form, *(f"{case['variants'][form]['f1']:.2f}" if form in case["variants"] else "-"
                 for case in found.values()))
        for form in forms
    ]  # fmt: skip
    return ("F1 of variants, %", *found), rows


def cost(cases: Cases) -> Table:
    """Return what a pass takes, by the longest segment and by the length of sequences."""
    return _passes(_of(cases, "cost"))


def passes(cases: Cases) -> Table:
    """Return what a pass over real data takes."""
    return _passes(_of(cases, "pass"))


def _passes(found: Cases) -> Table:
    models = list(dict.fromkeys(name for case in found.values() for name in case["models"]))
    rows = [
        (name, *(_pass(case["models"].get(model)) for model in models))
        for name, case in found.items()
    ]
    return ("ms: 1 thread (the sums), 2 threads; MiB", *models), rows


def _pass(row: dict[str, Any] | None) -> str:
    if row is None:
        return "-"
    one, two = (f"{1e3 * seconds:.0f}" for seconds in row["seconds a pass"].values())
    return f"{one} ({1e3 * row['seconds of the sums']:.0f}), {two}; {row['peak MiB']:.1f}"
