"""Segments as users write them: ``Segment``, anything with its fields, or (start, stop, label)."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from numbers import Integral
from typing import Any

from crfkit._types import Segment

_ORDER = "Give Segment(start, stop, label) of crfkit.metrics, or a triple in that order."


def segment_fields(item: Any) -> tuple[int, int, Any] | None:
    """Return start, stop and label of a segment or (start, stop, label); None if it is neither."""
    if has_names(item):
        start, stop, label = item.start, item.stop, item.label
    elif isinstance(item, (tuple, list)) and len(item) == 3:
        start, stop, label = item
    else:
        return None
    return (int(start), int(stop), label) if _is_whole(start) and _is_whole(stop) else None


def has_names(item: Any) -> bool:
    """Whether an item has the fields of a segment."""
    return hasattr(item, "label") and hasattr(item, "start") and hasattr(item, "stop")


def holds_segments(sequences: Iterable[Any]) -> bool:
    """Whether sequences hold segments rather than labels of tokens; all may be empty."""
    filled = [sequence for sequence in sequences if len(sequence)]
    return not filled or any(segment_fields(sequence[0]) for sequence in filled)


def read_segment(item: Any, where: str, remedy: str = _ORDER) -> Segment:
    """Return an item as a segment; `where` is what errors call its place.

    Raises
    ------
    TypeError
        If it is none; the message ends with the remedy.
    """
    found = segment_fields(item)
    if found is None:
        raise TypeError(
            f"{where}: {item!r:.60} is no segment (start, stop, label) with whole numbers. {remedy}"
        )
    return Segment(*found)


def as_segment(item: Any, where: str) -> Segment:
    """Return an item as a segment of tokens; `where` is what errors call its place.

    Raises
    ------
    TypeError, ValueError
        If it is none, or is empty or begins before its sequence.
    """
    remedy = (
        "Where labels of tokens are given, say how they are read: scheme='runs', 'IOB2' or the "
        "like."
    )
    segment = read_segment(item, where, remedy)
    if not 0 <= segment.start < segment.stop:
        raise ValueError(
            f"{where}: {item!r:.60} is empty, or does not begin at a token. `stop` is the token "
            "after the last one."
        )
    if not isinstance(segment.label, Hashable):
        raise TypeError(f"{where}: the label of {item!r:.60} is not hashable.")
    return segment


def ordered_segments(segments: Iterable[Any], length: int) -> list[Segment]:
    """Return segments of one sequence in their order.

    Raises
    ------
    TypeError, ValueError
        As for :func:`read_segment`, or if one is empty, outside of the sequence, or overlaps
        another.
    """
    read = [read_segment(item, f"item {i}") for i, item in enumerate(segments)]
    ordered = sorted(read, key=lambda span: (span.start, span.stop))
    for i, span in enumerate(ordered):
        if not 0 <= span.start < span.stop <= length:
            raise ValueError(f"{span} is empty or outside a sequence of length {length}")
        if i and ordered[i - 1].stop > span.start:
            raise ValueError(f"{ordered[i - 1]} and {span} overlap")
    return ordered


def _is_whole(number: Any) -> bool:
    # Asking for the type alone is much faster, and is enough nearly always.
    return type(number) is int or (isinstance(number, Integral) and not isinstance(number, bool))
