"""Tables of part-of-speech tagging by the family, and of its speed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

Row = tuple[str, ...]
Cases = Callable[[str], dict[str, Any]]
Table = Callable[[Row, list[Row]], list[str]]

SETS = {"ewt, upos": "English Web Treebank, UPOS", "ewt, xpos": "English Web Treebank, XPOS",
        "brown": "Brown, base tags"}  # fmt: skip
# Error and error of unknown words on half of the Penn treebank, as Lafferty's slides have them.
SLIDES = {
    "HMM": (5.69, 45.99), "MEMM": (6.37, 54.61), "CRF": (5.55, 48.05),
    "MEMM, spelling": (4.81, 26.99), "CRF, spelling": (4.27, 23.76),
}  # fmt: skip
ORDER = [*SLIDES, "HMM, suffixes", "HMM of order 2, suffixes", "averaged perceptron",
         "CRF, templates"]  # fmt: skip
CHANGES = [("HMM", "MEMM"), ("HMM", "CRF"), ("MEMM", "CRF"), ("MEMM", "MEMM, spelling"),
           ("CRF", "CRF, spelling"), ("MEMM, spelling", "CRF, spelling")]  # fmt: skip
THREADS = ("1 threads", "2 threads")
PEERS = ("one against rest", "all labels")


def blocks(cases: Cases, table: Table) -> dict[str, Callable[[], list[str]]]:
    """Return what writes the lines of each block."""
    return {
        "pos_tagging": lambda: table(*errors(cases("pos_tagging"))),
        "pos_changes": lambda: table(*changes(cases("pos_tagging"))),
        "pos_sizes": lambda: table(*sizes(cases("pos_tagging"))),
        "pos_starts": lambda: table(*starts(cases("pos_tagging"))),
        "pos_choices": lambda: table(*choices(cases("pos_tagging"))),
        "family_taggers": lambda: table(*taggers(cases("family_speed"))),
        "family_reading": lambda: table(*reading(cases("family_speed"))),
        "family_models": lambda: table(*models(cases("family_speed"))),
        "family_memm": lambda: memm(cases("family_speed"), table),
        "family_memory": lambda: table(*memory(cases("family_speed"))),
    }


def _ways(found: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the cases of each way to tag, by set."""
    ways: dict[str, dict[str, Any]] = {}
    for name, case in found.items():
        kind, _, way = name.partition(": ")
        if "error" in case:
            ways.setdefault(way, {})[kind] = case
    return {way: ways[way] for way in ORDER if way in ways}


def _pair(case: dict[str, Any] | None) -> str:
    return "-" if case is None else f"{case['error']:.2f} / {case['unknown']:.2f}"


def errors(found: dict[str, Any]) -> tuple[Row, list[Row]]:
    """Return the errors of each way on each set, and those of the slides."""
    head = ("error / of unknown words, %", *SETS.values(), "slides (Penn treebank)")
    rows = [
        (way, *(_pair(by_set.get(kind)) for kind in SETS),
         "{:.2f} / {:.2f}".format(*SLIDES[way]) if way in SLIDES else "")
        for way, by_set in _ways(found).items()
    ]  # fmt: skip
    return head, rows


def changes(found: dict[str, Any]) -> tuple[Row, list[Row]]:
    """Return by how much errors change from one way to another."""
    ways = _ways(found)
    head = ("change of error / of unknown words", *SETS.values(), "slides")
    rows = []
    for before, after in CHANGES:
        ours = (_changed(*(_both(ways.get(way, {}).get(kind)) for way in (before, after)))
                for kind in SETS)  # fmt: skip
        rows.append((f"{before} to {after}", *ours, _changed(SLIDES[before], SLIDES[after])))
    return head, rows


def _both(case: dict[str, Any] | None) -> tuple[float, float] | None:
    return None if case is None else (case["error"], case["unknown"])


def _changed(before: tuple[float, float] | None, after: tuple[float, float] | None) -> str:
    if before is None or after is None:
        return "-"
    return " / ".join(f"{100 * (b / a - 1):+.0f} %" for a, b in zip(before, after, strict=True))


def sizes(found: dict[str, Any]) -> tuple[Row, list[Row]]:
    """Return how much is learned from and tagged."""
    head = ("", "sentences to learn from", "tokens", "labels", "words", "tokens to tag",
            "of unknown words")  # fmt: skip
    rows = []
    for kind, title in SETS.items():
        case = next((by_set[kind] for by_set in _ways(found).values() if kind in by_set), None)
        if case is not None:
            rows.append((title, *(f"{size:,}" for size in case["sizes"].values()),
                         f"{case['unknown share']:.2f} %"))  # fmt: skip
    return head, rows


def choices(found: dict[str, Any]) -> tuple[Row, list[Row]]:
    """Return what was chosen, and what a fit takes."""
    head = ("chosen; processor seconds of the fit", *SETS.values())
    rows = [
        (way, *("-" if kind not in by_set else _cost(by_set[kind]) for kind in SETS))
        for way, by_set in _ways(found).items()
    ]
    return head, rows


def _cost(case: dict[str, Any]) -> str:
    values = np.atleast_1d(case["chosen"]).tolist()
    chosen = ", ".join(f"{value:g}" for value in values) if case["error by choice"] else "-"
    return f"{chosen}; {case['seconds of the fit']:.1f} s"


def starts(found: dict[str, Any]) -> tuple[Row, list[Row]]:
    """Return the passes that a CRF takes from zeros and from a MEMM."""
    head = ("set, attributes", "first objective: zeros", "MEMM", "passes to 1 %: zeros", "MEMM",
            "to 0.01 %: zeros", "MEMM", "seconds of the MEMM")  # fmt: skip
    rows = []
    for name, case in found.items():
        kind, _, way = name.partition(": ")
        if way.startswith("starts, "):
            ends = [case[start] for start in ("zeros", "MEMM")]
            rows.append((
                f"{SETS[kind]}, {way.removeprefix('starts, ')}",
                *(f"{end['first']:.1f} x" for end in ends),
                *(str(end[target]) for target in ("1 %", "0.01 %") for end in ends),
                f"{case['seconds of the MEMM']:.1f}",
            ))  # fmt: skip
    return head, rows


def _short(seconds: float) -> str:
    return f"{1e3 * seconds:.0f} ms" if seconds < 1.0 else f"{seconds:.1f} s"


def taggers(found: dict[str, Any]) -> tuple[Row, list[Row]]:
    """Return what fits and tagging take, against NLTK."""
    head = ("", "fit", "peer", "ratio, 1 (2)", "tokens tagged a second", "peer", "ratio, 1 (2)",
            "both together", "accuracy", "peer")  # fmt: skip
    rows = []
    for name, case in found.items():
        if "tokens a second" in case:
            times, speed, peer = case["times"], case["tokens a second"], name.partition(",")[0]
            rows.append((
                name, _short(case["crfkit seconds"]["1 threads"]["fit"]),
                _short(case["peer seconds"]["fit"]), _ratio(times, "fit"),
                f"{speed['1 threads']:,.0f}", f"{speed[peer]:,.0f}", _ratio(times, "tagging"),
                _ratio(times, "fit and tagging of the other half"),
                *(f"{case['accuracy, %'][name]:.2f}" for name in ("crfkit", peer)),
            ))  # fmt: skip
    return head, rows


def reading(found: dict[str, Any]) -> tuple[Row, list[Row]]:
    """Return what reading strings takes, beside a fit."""
    rows = [(name, _short(seconds)) for name, seconds in found.get("reading", {}).items()]
    return ("words and tags of the training data", "time"), rows


def _ratio(times: dict[str, dict[str, float]], key: str) -> str:
    one, two = (times[n][key] for n in THREADS)
    return f"{one:,.1f} x ({two:,.1f})"


def models(found: dict[str, Any]) -> tuple[Row, list[Row]]:
    """Return what models of single tokens take, against scikit-learn."""
    head = ("", "fit", "scikit-learn", "ratio, 1 (2)", "tagging", "scikit-learn", "ratio, 1 (2)",
            "accuracy", "scikit-learn", "same labels")  # fmt: skip
    rows = []
    for name, case in found.items():
        if "peer" in case:
            one, peer, right = (case["crfkit seconds"]["1 threads"], case["peer seconds"],
                                case["accuracy, %"])  # fmt: skip
            rows.append((
                name, *(text for key, told in (("fit", "fit"), ("use", "tagging"))
                        for text in (_short(one[key]), _short(peer[key]),
                                     _ratio(case["times"], told))),
                f"{right['crfkit']:.2f}", f"{right['scikit-learn']:.2f}",
                f"{case['labels that are the same, %']:.2f} %",
            ))  # fmt: skip
    return head, rows


def memm(found: dict[str, Any], table: Table) -> list[str]:
    """Return what training a MEMM takes against SAGA, and how far both came."""
    case = found.get("MEMM")
    if case is None:
        return ["Not measured."]
    seconds, right, ends = (case[key] for key in (
        "seconds", "accuracy with the true label before, %", "objective"))  # fmt: skip
    rest = case["passes"]["one against rest"]
    rows: list[Row] = []
    for name, prefix, seen in (
        ("MEMMClassifier", "", "crfkit"),
        ("of seen pairs alone", "seen pairs, ", "crfkit, seen pairs"),
    ):
        rows += [
            (
                f"{name}, {n.removesuffix('s') if n[0] == '1' else n}",
                f"{seconds[prefix + n]:.2f}",
                *(f"{seconds[peer] / seconds[prefix + n]:.1f} x" for peer in PEERS),
                str(case["passes"][seen]),
                _objective(ends.get(seen)),
                f"{right[seen]:.2f}",
            )
            for n in THREADS
        ]
    rows += [
        (
            "SAGA, one against rest",
            f"{seconds['one against rest']:.2f}",
            "",
            "",
            f"{min(rest)} to {max(rest)} each",
            "",
            f"{right['one against rest']:.2f}",
        ),
        (
            "SAGA, all labels",
            f"{seconds['all labels']:.2f}",
            "",
            "",
            str(case["passes"]["all labels"]),
            _objective(ends["all labels"]),
            f"{right['all labels']:.2f}",
        ),
    ]
    head = (
        "",
        "seconds",
        "of one against rest",
        "of all labels",
        "passes",
        "objective",
        "accuracy",
    )
    return [
        f"{case['tokens']:,} tokens, {case['labels']} labels, {case['columns']:,} columns; the "
        "accuracy is that of single tokens whose label before is given.",
        "",
        *table(head, rows),
    ]


def _objective(value: float | None) -> str:
    return "" if value is None else f"{value:,.2f}"


def memory(found: dict[str, Any]) -> tuple[Row, list[Row]]:
    """Return the peak memory of processes that fit once."""
    return ("memory of a fit, at its peak, MiB", ""), [
        (name, f"{mib:,.0f}") for name, mib in found.get("memory", {}).items()
    ]
