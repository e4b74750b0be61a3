"""Lists of what is known of sequences, which notebooks show in part."""

from __future__ import annotations

import itertools
from collections.abc import Sized
from html import escape
from typing import Any, TypeVar

import numpy as np

from crfkit._types import RankedLabels

Item = TypeVar("Item", bound=Sized)
SEQUENCES_SHOWN, ITEMS_SHOWN, LINES_SHOWN = 10, 40, 4


class SequenceList(list[Item]):
    """A list with one list or array for each sequence, of which notebooks show the first ones.

    It is a list in all else, and prints as one.
    """

    def _repr_html_(self) -> str:
        """Return the first sequences, so much at most, whatever there is."""
        rows = [
            f"<li><code>{'<br>'.join(map(escape, _lines(sequence)))}</code></li>"
            for sequence in itertools.islice(self, SEQUENCES_SHOWN)
        ]
        more = len(self) - len(rows)
        rows += [f"<li style='list-style:none'>… and {more:,} more</li>"] * (more > 0)
        total = f"{len(self):,} sequences, {sum(map(len, self)):,} items"
        return f"<div>{total}<ol start=0 style='margin:.3em 0'>{''.join(rows)}</ol></div>"


def _lines(sequence: Any) -> list[str]:
    """Return the items of a sequence: labels and spans in one line, what is longer in its own."""
    if len(sequence) == 0 or not isinstance(sequence[0], (RankedLabels, np.ndarray, list, dict)):
        return [_line(sequence)]
    lines = [_text(item) for item in itertools.islice(sequence, LINES_SHOWN)]
    return lines + [f"… {len(sequence) - LINES_SHOWN:,} more"] * (len(sequence) > LINES_SHOWN)


def _text(item: Any) -> str:
    if isinstance(item, RankedLabels):
        return f"{item.probability:.3f}: {_line(item.labels)}"
    return str(item)[:80] if isinstance(item, dict) else _line(item)


def _line(items: Any) -> str:
    """Return the first items, side by side."""
    shown = itertools.islice(items, ITEMS_SHOWN)
    texts = [f"{item:.3f}" if isinstance(item, float) else str(item)[:80] for item in shown]
    return " ".join([*texts, *["…"] * (len(items) > ITEMS_SHOWN)])
