"""Tables of the ordinary settings: head and rows, for `report.table`."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator
from typing import Any

import _ordinary_data

Row = tuple[str, ...]
Cases = dict[str, Any]
THREADS = ("1 thread", "2 threads")


def _by_set(cases: Cases) -> dict[str, dict[str, Any]]:
    """Return the cases of each data set, by setting."""
    found: dict[str, dict[str, Any]] = {}
    for name in _ordinary_data.NAMES:
        own = {case.split(", ", 1)[1]: row for case, row in cases.items()
               if case.split(", ", 1)[0] == name}  # fmt: skip
        if own:
            found[name] = dict(sorted(own.items(), key=lambda pair: _strength(pair[1])))
    return found


def _strength(case: dict[str, Any]) -> tuple[bool, float, float]:
    """Sort settings: without L1 first, then by falling penalties."""
    return case["c1"] > 0 and not case["c2"], case["c1"], -case["c2"]


def _ratios(cases: Cases, threads: str) -> list[float]:
    """Return the ratios, of cases that come near."""
    found = (case["times the seconds"][threads] for case in cases.values())
    return [ratio for ratio in found if ratio is not None]


def mean(ratios: list[float]) -> float:
    """Return the geometric mean; NaN if there are none."""
    return statistics.geometric_mean(ratios) if ratios else math.nan


def sizes(cases: Cases) -> tuple[Row, list[Row]]:
    """Return what the data sets are."""
    rows: list[Row] = []
    for name, own in _by_set(cases).items():
        case = next(iter(own.values()))
        parts = case["sizes"]
        part = "first " if case["limit"] and parts["sequences"] == case["limit"] else ""
        rows.append((
            name, _ordinary_data.about(name), f"{part}{parts['sequences']:,}",
            *(f"{parts[key]:,}" for key in ("tokens", "labels", "attributes", "weights")),
        ))  # fmt: skip
    head = ("", "labels; features", "sequences", "tokens", "labels", "attributes", "weights")
    return head, rows


def grid(cases: Cases) -> tuple[Row, list[Row]]:
    """Return the ratios of each data set and setting: one thread, and two in brackets."""
    by_set = _by_set(cases)
    settings = list(dict.fromkeys(setting for own in by_set.values() for setting in own))
    rows = [(name, *(_pair(own.get(setting)) for setting in settings))
            for name, own in by_set.items()]  # fmt: skip
    columns = [{name: own[setting] for name, own in by_set.items() if setting in own}
               for setting in settings]  # fmt: skip
    means = ([mean(_ratios(column, threads)) for threads in THREADS] for column in columns)
    rows.append(("geometric mean", *(f"{one:.1f} x ({two:.1f})" for one, two in means)))
    return ("", *settings), rows


def _pair(case: dict[str, Any] | None) -> str:
    if case is None:
        return ""
    one, two = (case["times the seconds"][threads] for threads in THREADS)
    return "-" if one is None or two is None else f"{one:.1f} x ({two:.1f})"


def details(cases: Cases) -> tuple[Row, list[Row]]:
    """Return what both took in each case, and the fastest single solver."""
    rows: list[Row] = []
    for name, own in _by_set(cases).items():
        for setting, case in own.items():
            ours, theirs = case["auto"]["1 thread"], case["python-crfsuite"]
            near, fastest = ours["to 0.01 %"], case["best solver"]
            rows.append((
                f"{name}, {setting}", _taken(near), _taken(ours), _above(ours), _taken(theirs),
                _above(theirs), _taken(theirs["to 0.01 %"]), f"{fastest or '-'}",
                f"{case['auto by the best solver']:.2f}" if fastest and near else "-",
            ))  # fmt: skip
    head = ("", "auto, to 0.01 %", "its whole fit", "ends above", "python-crfsuite", "ends above",
            "to 0.01 %", "best single solver", "auto / it")  # fmt: skip
    return head, rows


def _taken(found: dict[str, Any] | None) -> str:
    """Return seconds and passes."""
    return "-" if found is None else f"{found['seconds']:.2f} s ({found['passes']})"


def _above(found: dict[str, Any]) -> str:
    return f"{100 * found['above the best']:.4f} %"


def summary(cases: Cases) -> Iterator[str]:
    """Yield the sentences of the whole grid."""
    one, two = (_ratios(cases, threads) for threads in THREADS)
    if not one:
        yield "Not measured."
        return
    sets = len(_by_set(cases))
    yield (
        f"crfkit trains {mean(one):.1f} times as fast as python-crfsuite on one thread: the "
        f"geometric mean of {len(one)} cases ({min(one):.1f} to {max(one):.1f}), {sets} data sets "
        'with common settings of the penalties. `solver="auto"` is timed until it is within '
        "0.01 % of the best objective known, L-BFGS of python-crfsuite until it stops by its own "
        "rule; both start from encoded data. With two threads, by the clock, it is "
        f"{mean(two):.1f} times ({min(two):.1f} to {max(two):.1f})."
    )
    if len(one) < len(cases):
        yield f"In {len(cases) - len(one)} more, it stops further from the best objective."


def batch_sizes(cases: Cases) -> tuple[Row, list[Row]]:
    """Return seconds and passes of online exponentiated gradient by the size of its batches."""
    sizes = list(next(iter(cases.values()))["tokens of a batch"])
    rows = [
        (name, *(_fit(case["tokens of a batch"][size]) for size in sizes))
        for name, case in cases.items()
    ]
    return ("", *(f"{size} tokens" for size in sizes)), rows


def _fit(run: dict[str, Any]) -> str:
    return f"{run['seconds']:.2f} s ({run['passes']})" if run["converged"] else "-"
