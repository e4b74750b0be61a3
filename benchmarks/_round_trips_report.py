"""The tables of round trips of formats."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def blocks(cases: Callable[[str], Any], table: Callable[..., list[str]]) -> dict[str, Any]:
    """Return the functions that make the tables, by name."""
    return {
        "round_trips": lambda: _trips(cases("round_trips"), table),
        "annotation_tools": lambda: _trips(cases("annotation_tools"), table),
        "misaligned": lambda: _misaligned(cases("round_trips"), table),
    }


def _trips(found: dict[str, Any], table: Callable[..., list[str]]) -> list[str]:
    formats = list(next(iter(found.values()))["differences"]) if found else []
    rows = [
        *(
            (key, *(f"{case[key]:,}" for case in found.values()))
            for key in ("sequences", "tokens", "spans")
            if all(key in case for case in found.values())
        ),
        *(
            (f"{name}: differences", *(str(case["differences"][name]) for case in found.values()))
            for name in formats
        ),
    ]
    return table(("", *found), rows if found else [])


def _misaligned(found: dict[str, Any], table: Callable[..., list[str]]) -> list[str]:
    key = "misaligned in running text"
    kinds = list(next(iter(found.values()))[key]) if found else []
    rows = [
        (f'"{kind}": {count}', *(f"{case[key][kind][count]:,}" for case in found.values()))
        for kind in kinds
        for count in ("reported", "lost silently")
    ]
    return table(("tokenizer", *found), rows)
