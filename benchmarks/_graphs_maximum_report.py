"""Tables of the largest scores of factor graphs, for the pages."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Row = tuple[str, ...]
SHAPES = ("many labels", "spin glass", "snakes")
# How far a score may be from one of six decimals.
PRINTED = 2e-6


def cuts(found: dict[str, Any]) -> tuple[Row, list[Row]]:
    """Return the seconds of cuts, beside those of PyMaxflow."""
    head = "cost of a difference", "crfkit", "PyMaxflow", "ratio", "certified", "equal labels"
    rows = []
    for case in found.values():
        if "ratio" in case:
            seconds = case["seconds"]
            rows.append((
                f"{case['strength']:g}", f"{1000 * seconds['crfkit']:.0f} ms",
                f"{1000 * seconds['PyMaxflow']:.0f} ms", f"{case['ratio']:.2f}",
                "yes" if case["certified"] == 1.0 else "no", f"{100 * case['equal labels']:.2f} %",
            ))  # fmt: skip
    return head, rows


def associative(found: dict[str, Any]) -> tuple[Row, list[Row]]:
    """Return what is found of the associative models of the competition, by each method."""
    head = "model", "labels", "known optimum", "method", "time", "score", "bound"
    rows = []
    for name, case in found.items():
        if name.startswith("associative/"):
            model = name.removeprefix("associative/").removesuffix(".uai")
            for method, result in case["methods"].items():
                rows.append((
                    model, str(case["states"]), f"{case['optimum']:.6f}", f'"{method}"',
                    f"{1000 * result['seconds']:.1f} ms", f"{result['score']:.6f}",
                    "none" if result["bound"] is None else f"{result['bound']:.6f}",
                ))  # fmt: skip
    return head, rows


def models(found: dict[str, Any]) -> tuple[Row, list[Row]]:
    """Return how many of the other models are certified, by kind."""
    head = (
        "models", "number", 'certified by "mplp"', "longest", 'by "milp"', "longest",
        "as known otherwise",
    )  # fmt: skip
    kinds: dict[str, list[dict[str, Any]]] = {}
    for name, case in found.items():
        if name.endswith(".uai") and "/" not in name:
            kinds.setdefault(name.split("_")[0], []).append(case)
    return head, [(kind, *_of_kind(cases)) for kind, cases in kinds.items()]


def _of_kind(cases: list[dict[str, Any]]) -> Row:
    cells = [str(len(cases))]
    for method in ("mplp", "milp"):
        results = [case["methods"][method] for case in cases if method in case["methods"]]
        certified = sum(result["certified"] == 1.0 for result in results)
        seconds = f"{max(result['seconds'] for result in results):.2f} s" if results else ""
        cells += [str(certified) if results else "", seconds]
    known = [case for case in cases if case["optimum"] is not None]
    equal = sum(
        abs(max(result["score"] for result in case["methods"].values()) - case["optimum"])
        <= PRINTED
        for case in known
    )
    return (*cells, f"{equal} of {len(known)}" if known else "")


def shapes(found: dict[str, Any]) -> tuple[Row, list[Row]]:
    """Return what is found of other graphs."""
    head = "graphs", "nodes", "method", "time", "score", "bound", "certified"
    rows = []
    for name in SHAPES:
        for method, result in found.get(name, {}).get("methods", {}).items():
            rows.append((
                name, str(found[name]["nodes"]), method, f"{result['seconds']:.2f} s",
                f"{result['score']:.2f}",
                "none" if result["bound"] is None else f"{result['bound']:.2f}",
                f"{100 * result['certified']:.0f} %",
            ))  # fmt: skip
    return head, rows


def blocks(
    cases: Callable[[str], dict[str, Any]], table: Callable[..., list[str]]
) -> dict[str, Callable[[], list[str]]]:
    """Return what writes each block of the pages."""
    made = {"cuts": cuts, "associative": associative, "models": models, "shapes": shapes}
    return {
        f"graphs_{name}": lambda make=make: table(*make(cases("graphs_maximum")))  # type: ignore[misc]
        for name, make in made.items()
    }
