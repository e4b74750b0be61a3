"""Segments as users write them: ``Segment``, anything with its fields, or (start, stop, label)."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain
from numbers import Integral, Real
from typing import Any, NamedTuple

import numpy as np

from crfkit._types import IntArray, ProbableSegment, Segment
from crfkit.data.labels import UNLABELED, iterate_sequences, label_list, plain_label

_ORDER = "Give Segment(start, stop, label) of crfkit.metrics, or a triple in that order."
_SCHEME = (
    "Where labels of tokens are given, say how they are read: scheme='runs', 'IOB2' or the like."
)


class Listed(NamedTuple):
    """Segments that a user lists, in that order: tokens are numbered through all sequences."""

    start: IntArray  # (n,)
    stop: IntArray  # (n,)
    labels: list[Any]


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


def is_hashable(item: object) -> bool:
    """Whether an object, and all that it holds, can be hashed."""
    try:
        hash(item)
    except TypeError:
        return False
    return True


def is_label(label: Any) -> bool:
    """Whether an object can be a label: hashable, and not missing."""
    return is_hashable(label) and label is not None and bool(label == label)


def holds_segments(sequences: Iterable[Any]) -> bool:
    """Whether sequences hold segments rather than labels of tokens; all may be empty."""
    filled = [sequence for sequence in sequences if len(sequence)]
    firsts = (next((x for x in sequence if x is not UNLABELED), None) for sequence in filled)
    return not filled or any(map(segment_fields, firsts))


def are_segments(sequences: list[list[Any]], offsets: IntArray) -> bool:
    """Whether these are lists of segments, as all must be that are empty where there are tokens.

    TypeError tells that they look like segments that are written in another way.
    """
    if not any(sequences):
        return bool(sequences) and bool(offsets[-1])
    if holds_segments(sequences):
        return True
    for s, sequence in enumerate(sequences):
        if sequence and _looks_like_segment(sequence[0]):
            raise TypeError(
                f"sequence {s} of y: segments are (start, stop, label) with whole numbers; "
                f"{sequence[0]!r:.60} looks like {_order(sequence[0])}. {_ORDER}"
            )
    return False


def read_segment(item: Any, where: str, remedy: str = _ORDER) -> Segment:
    """Return an item as a segment; TypeError names its place and ends with the remedy."""
    found = segment_fields(item)
    if found is None:
        raise TypeError(
            f"{where}: {item!r:.60} is no segment (start, stop, label) with whole numbers. {remedy}"
        )
    return Segment(*found)


def as_segment(item: Any, where: str, n_tokens: float = np.inf, remedy: str = _SCHEME) -> Segment:
    """Return an item as a segment; TypeError or ValueError if it is none of its sequence."""
    segment = read_segment(item, where, remedy)
    start, stop, label = segment
    if isinstance(label, set):
        label = frozenset(label)
        segment = segment._replace(label=label)
    if not 0 <= start < stop <= n_tokens:
        outside = f"is not within the {n_tokens} tokens"
        why = outside if n_tokens < np.inf else "does not begin at a token"
        why = "is empty" if start >= stop else why
        raise ValueError(
            f"{where}: the segment {(start, stop, label)} {why}. `stop` is the token after the "
            "last one."
        )
    if not is_hashable(label):
        raise TypeError(f"{where}: the label of {item!r:.60} is not hashable.")
    return segment


def lists(y: Any) -> list[list[Any]]:
    """Return sequences as lists; TypeError if they are none."""
    return [label_list(s, sequence) for s, sequence in enumerate(iterate_sequences(y, "y"))]


def read_listed(
    sequences: list[list[Any]], offsets: IntArray, name: str, *, partial: bool = False
) -> Listed:
    """Return the segments listed for each sequence, in any order; `name` is for messages.

    Labels may be `UNLABELED` and frozensets only if they may be known in part (`partial`);
    `UNLABELED` in place of a segment then is one with this label wherever there is no other.
    """
    if len(sequences) != len(offsets) - 1:
        raise ValueError(
            f"X has {len(offsets) - 1} sequences, but {name} has {len(sequences)}: give one list "
            f"of segments for each sequence of X."
        )
    listed = _plain_segments(sequences, offsets)
    if listed is not None:
        return listed
    remedy, labels = "Others are." if name == "y" else _ORDER, list[Any]()
    places = list[tuple[int, int]]()
    lengths, begins = np.diff(offsets).tolist(), offsets.tolist()
    for s, sequence in enumerate(sequences):
        where = f"sequence {s} of {name}"
        first = len(places)
        for item in sequence:
            if partial and item is UNLABELED:
                continue
            start, stop, label = as_segment(item, where, lengths[s], remedy)
            if label is None or label != label:
                raise TypeError(
                    f"{where}: the label of {item!r:.60} must be hashable, and not None or NaN."
                )
            if label is UNLABELED or isinstance(label, frozenset):
                _check_open(label, where, partial)
            labels.append(plain_label(label))
            places.append((begins[s] + start, begins[s] + stop))
        if partial and UNLABELED in sequence:
            places += _gaps(places[first:], begins[s], begins[s + 1])
            labels += [UNLABELED] * (len(places) - len(labels))
    starts, stops = np.array(places, np.int64).reshape(-1, 2).T
    return Listed(starts, stops, labels)


def _plain_segments(sequences: list[list[Any]], offsets: IntArray) -> Listed | None:
    """Return segments of plain numbers and strings at once; None where there are others."""
    items = list(chain.from_iterable(sequences))
    if not items or not set(map(type, items)) <= {Segment, ProbableSegment}:
        return None
    starts, stops, labels = list(zip(*items, strict=False))[:3]
    if {*map(type, starts), *map(type, stops)} != {int} or set(map(type, labels)) != {str}:
        return None
    sequence = np.repeat(np.arange(len(sequences)), list(map(len, sequences)))
    begin, (start, stop) = offsets[sequence], np.array([starts, stops], np.int64)
    if np.any((start < 0) | (start >= stop) | (begin + stop > offsets[sequence + 1])):
        return None
    return Listed(begin + start, begin + stop, list(labels))


def _gaps(places: list[tuple[int, int]], begin: int, end: int) -> list[tuple[int, int]]:
    """Return the runs of tokens of a sequence between segments, which may overlap."""
    found, last = [], begin
    for start, stop in sorted([*places, (end, end)]):
        if start > last:
            found.append((last, start))
        last = max(last, stop)
    return found


def _check_open(label: Any, where: str, partial: bool) -> None:
    """Raise ValueError unless a label may be one of several, and there are some."""
    if not partial:
        raise ValueError(f"{where}: a label is {label!r:.60}, but segments need known ones here.")
    if label is not UNLABELED and not label:
        raise ValueError(f"{where}: a set of labels is empty. Give those that a segment may have.")


def check_apart(listed: Listed, offsets: IntArray, name: str) -> None:
    """Raise ValueError if two segments overlap."""
    order = np.argsort(listed.start, kind="stable")
    wrong = np.flatnonzero(listed.stop[order][:-1] > listed.start[order][1:])
    if len(wrong):
        s = int(np.searchsorted(offsets, listed.start[order[wrong[0]]], side="right")) - 1
        begin = int(offsets[s])
        one, other = (
            (int(listed.start[i]) - begin, int(listed.stop[i]) - begin, listed.labels[i])
            for i in order[wrong[0] : wrong[0] + 2].tolist()
        )
        raise ValueError(f"sequence {s} of {name}: the segments {one} and {other} overlap.")


def _looks_like_segment(item: Any) -> bool:
    """Whether a tuple that is no segment has what a segment has: two rising numbers and more."""
    if not (isinstance(item, (tuple, list)) and len(item) in (3, 4)):
        return False
    numbers = [field for field in item if _is_number(field)]
    return 2 <= len(numbers) < len(item) and 0 <= numbers[0] < numbers[1]


def _order(item: Any) -> str:
    """Return in which order a tuple seems to have what a segment has."""
    if len(item) == 4:
        return "one with more than these"
    if not _is_number(item[0]):
        return "(label, start, stop)"
    return "one with other ends" if _is_number(item[1]) else "(start, label, stop)"


def _is_number(field: Any) -> bool:
    return isinstance(field, Real) and not isinstance(field, bool)


def _is_whole(number: Any) -> bool:
    # Asking for the type alone is much faster, and is enough nearly always.
    return type(number) is int or (isinstance(number, Integral) and not isinstance(number, bool))
