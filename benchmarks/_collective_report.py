"""Tables of collective classification."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Row = tuple[str, ...]
Cases = Callable[[str], dict[str, Any]]
Table = Callable[[Row, list[Row]], list[str]]


def blocks(cases: Cases, table: Table) -> dict[str, Callable[[], list[str]]]:
    """Return what writes the lines of each block."""
    return {
        "collective_planted": lambda: table(*planted(cases("collective"))),
        "collective_cora": lambda: table(*papers(cases("collective"))),
    }


def share(row: dict[str, Any]) -> str:
    """Return the mean and the deviation of what is right, in percent."""
    mean = f"{100 * row['right']:.1f}"
    return f"{mean} ± {100 * row['deviation']:.1f}" if "deviation" in row else mean


def seconds(row: dict[str, Any]) -> Row:
    """Return the seconds of a fit and of a prediction."""
    return tuple(f"{row[f'seconds of the {what}']:.2f}" for what in ("fit", "prediction"))


def planted(found: dict[str, Any]) -> tuple[Row, list[Row]]:
    """Return a row for each method on planted partitions, where they have been measured."""
    head = ("", "right, %", "fit, s", "prediction, s")
    rows = []
    for degree in ("three", "six"):
        case = found.get(f"planted partition, {degree} edges at a node", {})
        rows += [(f"{degree} edges at a node: {name}", share(row), *seconds(row))
                 for name, row in case.get("methods", {}).items()]  # fmt: skip
    return head, rows


def papers(found: dict[str, Any]) -> tuple[Row, list[Row]]:
    """Return a row for each method on Cora."""
    head = ("", "split of Planetoid: right, %", "random splits", "fit, s", "prediction, s")
    names = [f"cora, {kind}" for kind in ("split of Planetoid", "random splits")]
    first, second = (found.get(name, {}).get("methods", {}) for name in names)
    return head, [(name, share(row), share(second[name]) if name in second else "-", *seconds(row))
                  for name, row in first.items()]  # fmt: skip
