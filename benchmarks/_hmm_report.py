"""Tables of how fast hidden Markov models are, for the pages."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Row = tuple[str, ...]
PEERS = ("log", "scaling")


def em(found: dict[str, Any]) -> tuple[Row, list[Row]]:
    """Return what an iteration of EM costs, of crfkit and of hmmlearn."""
    head = "data", "crfkit", *(f'hmmlearn, "{peer}"' for peer in PEERS)
    rows = []
    for name, case in found.items():
        seconds, ratios = case["seconds of an iteration"], case["times as fast"]
        cells = [
            f"{seconds[key]:.2f} s ({ratios[key]:.0f} x)"
            for key in (f"hmmlearn, {peer}" for peer in PEERS)
        ]
        rows.append((name, f"{seconds['crfkit']:.3f} s", *cells))
    return head, rows


def blocks(
    cases: Callable[[str], dict[str, Any]], table: Callable[..., list[str]]
) -> dict[str, Callable[[], list[str]]]:
    """Return what writes each block of the pages."""
    return {"hmm_speed": lambda: table(*em(cases("hmm_speed")))}
