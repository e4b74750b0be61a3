"""Spans and segments as users write them.

A field's name tells what it is; plain triples have to be in the order of the function that reads
them: (label, start, stop) where spans become tags, (start, stop, label) where segments are meant.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from numbers import Integral
from typing import Any, NamedTuple

from crfkit._types import Segment


class Span(NamedTuple):
    """A labeled stretch of a sequence, ``[start, stop)``."""

    label: str
    start: int
    stop: int


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
    """Whether an item has the fields of a span or segment."""
    return hasattr(item, "label") and hasattr(item, "start") and hasattr(item, "stop")


def holds_segments(sequences: Iterable[Any]) -> bool:
    """Whether sequences hold segments rather than labels of tokens; all may be empty."""
    filled = [sequence for sequence in sequences if len(sequence)]
    return not filled or any(segment_fields(sequence[0]) for sequence in filled)


def as_segment(item: Any, where: str) -> Segment:
    """Return an item as a segment; `where` is what errors call its place.

    Raises
    ------
    TypeError, ValueError
        If it is none, or is empty or begins before its sequence.
    """
    found = segment_fields(item)
    if found is None:
        raise TypeError(
            f"{where}: {item!r:.60} is no segment (start, stop, label) with whole numbers. Where "
            "labels of tokens are given, say how they are read: scheme='runs', 'IOB2' or the like."
        )
    start, stop, label = found
    if not 0 <= start < stop:
        raise ValueError(
            f"{where}: {item!r:.60} is empty, or does not begin at a token. `stop` is the token "
            "after the last one."
        )
    if not isinstance(label, Hashable):
        raise TypeError(f"{where}: the label of {item!r:.60} is not hashable.")
    return Segment(start, stop, label)


def as_span(item: Any) -> Span:
    """Return a span: by the names of its fields, or (label, start, stop).

    Raises
    ------
    TypeError, ValueError
        If it is none, or is a plain triple that begins with a number.
    """
    if has_names(item):
        label, start, stop = item.label, item.start, item.stop
    elif isinstance(item, (tuple, list)) and len(item) == 3:
        label, start, stop = item
        if _is_whole(label):
            raise ValueError(
                f"{item!r:.60} begins with a number, but a plain triple is read as (label, start, "
                "stop). Put a label that is a string first, or give Segment(start, stop, label) "
                "or Span(label, start, stop)."
            )
    else:
        raise TypeError(f"{item!r:.60} is no Span, no Segment and no triple (label, start, stop).")
    if not (_is_whole(start) and _is_whole(stop)):
        raise TypeError(f"{item!r:.60}: `start` and `stop` must be whole numbers.")
    return Span(label, int(start), int(stop))


def ordered_spans(spans: Iterable[Any], length: int) -> list[Span]:
    """Return spans of one sequence in their order.

    Raises
    ------
    TypeError, ValueError
        As for :func:`as_span`, or if one is empty, outside of the sequence, or overlaps another.
    """
    ordered = sorted(map(as_span, spans), key=lambda span: (span.start, span.stop))
    for i, span in enumerate(ordered):
        if not 0 <= span.start < span.stop <= length:
            raise ValueError(f"{span} is empty or outside a sequence of length {length}")
        if i and ordered[i - 1].stop > span.start:
            raise ValueError(f"{ordered[i - 1]} and {span} overlap")
    return ordered


def _is_whole(number: Any) -> bool:
    # Asking for the type alone is much faster, and is enough nearly always.
    return type(number) is int or (isinstance(number, Integral) and not isinstance(number, bool))
