"""Spans that labels of tokens stand for, of truth and prediction alike."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from crfkit._types import Segment
from crfkit.data.labels import UNLABELED
from crfkit.labels.fields import as_segment, holds_segments
from crfkit.labels.reading import read_labels
from crfkit.labels.schemes import OUTSIDE_LABEL
from crfkit.labels.sequences import as_lists, names_of, sorted_labels


def segments_of_labels(*several: Any, known: Iterable[Any] = ()) -> list[list[list[Segment]]]:
    """Return the spans of each of several lists of sequences, of labels or of segments.

    Labels are read as `predict_spans` reads those of a model that has all of them, and the labels
    `known`. What is not known in the truth is outside.
    """
    lists = [as_lists(y, "y") for y in several]
    listed = [holds_segments(y) for y in lists]
    _check_as_many([y for y, spans in zip(lists, listed, strict=True) if not spans])
    flat = [labels for y, spans in zip(lists, listed, strict=True) if not spans for labels in y]
    classes = sorted_labels(names_of(*flat) | set(known))
    return [
        _listed(y) if spans else _read(y, classes) for y, spans in zip(lists, listed, strict=True)
    ]


def check_fit(y: list[Any], lengths: Iterable[int]) -> None:
    """Raise ValueError if labels are not as many as tokens, or segments end behind them."""
    of_segments = holds_segments(y)
    for s, (own, length) in enumerate(zip(y, lengths, strict=True)):
        if not of_segments and len(own) != length:
            raise ValueError(f"sequence {s}: y has {len(own)} labels for {length} tokens.")
        for item in own if of_segments else ():
            if item is not UNLABELED and as_segment(item, f"y, sequence {s}").stop > length:
                raise ValueError(f"sequence {s}: {item!r} is not within its {length} tokens.")


def _check_as_many(lists: list[list[Any]]) -> None:
    """Raise ValueError if labels of the same sequence are not as many."""
    for s, rows in enumerate(zip(*lists, strict=False)):
        lengths = list(map(len, rows))
        if len(set(lengths)) > 1:
            raise ValueError(f"sequence {s}: y_true has {lengths[0]} labels, y_pred {lengths[1]}.")


def _listed(sequences: list[Any]) -> list[list[Segment]]:
    """Return segments in order, without those outside."""
    found = [
        [as_segment(item, f"y, sequence {s}") for item in sequence if item is not UNLABELED]
        for s, sequence in enumerate(sequences)
    ]
    return [
        sorted((one for one in own if one.label != OUTSIDE_LABEL), key=lambda one: one[:2])
        for own in found
    ]


def _read(sequences: list[Any], classes: list[Any]) -> list[list[Segment]]:
    """Return the spans that labels of tokens stand for."""
    if not classes:
        return [[] for _ in sequences]
    reading, place = read_labels(classes), {label: k for k, label in enumerate(classes)}
    found = []
    for labels in sequences:
        codes = [-1 if _is_open(label) else place[label] for label in labels]
        offsets = np.array([0, len(codes)])
        spans = reading.spans(np.array(codes, np.int32), offsets)
        rows = zip(*(part.tolist() for part in spans), strict=True)
        found.append([Segment(start, stop, reading.types[kind]) for start, stop, kind in rows])
    return found


def _is_open(label: Any) -> bool:
    return label is UNLABELED or isinstance(label, (set, frozenset))
