"""Lists of sequences that notebooks show in part."""

from __future__ import annotations

import itertools
from html import escape
from typing import TypeVar

Item = TypeVar("Item")
SEQUENCES_SHOWN, ITEMS_SHOWN = 10, 40


class SequenceList(list[list[Item]]):
    """A list of lists, one for each sequence, of which notebooks show the first ones.

    It is a list in all else, and prints as one.
    """

    def _repr_html_(self) -> str:
        """Return the first sequences, so much at most, whatever there is."""
        rows = []
        for sequence in itertools.islice(self, SEQUENCES_SHOWN):
            items = [str(item)[:80] for item in itertools.islice(sequence, ITEMS_SHOWN)]
            items += ["…"] * (len(sequence) > ITEMS_SHOWN)
            rows.append(f"<li><code>{escape(' '.join(items))}</code></li>")
        more = len(self) - len(rows)
        rows += [f"<li style='list-style:none'>… and {more:,} more</li>"] * (more > 0)
        total = f"{len(self):,} sequences, {sum(map(len, self)):,} items"
        return f"<div>{total}<ol start=0 style='margin:.3em 0'>{''.join(rows)}</ol></div>"
