"""Sequences of items with attributes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from crfkit.features.attributes import expand


class ItemSequence:
    """The attributes of the items of a sequence, with their values.

    Parameters
    ----------
    pyseq : iterable of items
        Items in any form that :class:`crfkit.features.SequenceVectorizer` takes.

    Raises
    ------
    TypeError, ValueError
        If an item has a form or value that no rule covers.
    """

    def __init__(self, pyseq: Iterable[Any]) -> None:
        self._items = [_merged(item) for item in pyseq]

    def items(self) -> list[dict[str, float]]:
        """Return the items as ``{attribute: value}``; what occurs twice is added up."""
        return [dict(item) for item in self._items]

    def __iter__(self) -> Iterator[dict[str, float]]:
        return iter(self._items)

    def __len__(self) -> int:
        return len(self._items)

    def __repr__(self) -> str:
        return f"<ItemSequence of size {len(self)}>"


def _merged(item: Any) -> dict[str, float]:
    values: dict[str, float] = {}
    for name, value in expand(item):
        values[name] = values.get(name, 0.0) + value
    return values
