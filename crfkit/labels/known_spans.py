"""Spans of tags, or of runs of labels, of which some are not known.

A true span counts where it is the same whatever stands at the `UNLABELED` tokens next to it: where
the tags that are known tell both of its ends. All others, and predicted spans that overlap them or
an unlabeled token, are left out of both sides.
"""

from __future__ import annotations

import numpy as np

from crfkit.labels.schemes import INSIDE, OUTSIDE, OUTSIDE_LABEL, Scheme
from crfkit.labels.sequences import BoolArray, FlatLabels, IntArray, encode_labels
from crfkit.labels.spans import (
    FoundSpans,
    Marked,
    TagStream,
    found_spans,
    padded,
    read_streams,
    spans_in,
)


def read_known_spans(
    true: FlatLabels, pred: FlatLabels, scheme: Scheme
) -> tuple[FoundSpans, FoundSpans]:
    """Read true and predicted spans of tags that can be compared; errors as of `read_spans`."""
    known = true.known
    (stream, other), names = read_streams([hide(true, known), pred], scheme)
    hidden = padded((~known).astype(np.intp), true.lengths, 0) > 0
    found, predicted = spans_in(stream, scheme), spans_in(other, scheme)
    if hidden.any():
        # As if the spans next to unlabeled tokens went on in these, as far as they can.
        readings = [spans_in(_carried(stream, hidden, step), scheme) for step in (1, -1)]
        found, predicted = comparable(found, readings, predicted, hidden)
    pair = (found_spans(names, spans, true.lengths) for spans in (found, predicted))
    return next(pair), next(pair)


def read_known_runs(true: FlatLabels, pred: FlatLabels) -> tuple[FoundSpans, FoundSpans]:
    """Read true and predicted runs of equal labels that can be compared, but for those outside."""
    known = true.known
    names, (codes, others) = encode_labels(hide(true, known), pred, extra=[OUTSIDE_LABEL])
    outside = names.index(OUTSIDE_LABEL)
    stream, other = (padded(each, true.lengths, outside) for each in (codes, others))
    hidden = padded((~known).astype(np.intp), true.lengths, 0) > 0
    found, predicted = _runs(stream, outside, true.lengths), _runs(other, outside, true.lengths)
    if hidden.any():
        readings = [
            _runs(stream[_sources(hidden, step)], outside, true.lengths) for step in (1, -1)
        ]
        found, predicted = comparable(found, readings, predicted, hidden)
    pair = (found_spans(names, spans, true.lengths) for spans in (found, predicted))
    return next(pair), next(pair)


def _runs(stream: IntArray, outside: int, lengths: IntArray) -> Marked:
    """Return runs of codes, but for those outside; sequences do not go on in the next one."""
    begins = np.ones(len(stream), bool)
    begins[1:] = stream[1:] != stream[:-1]
    begins[np.cumsum(lengths + 1)[:-1]] = True
    starts = np.flatnonzero(begins)
    stops = np.append(starts[1:], len(stream))[: len(starts)]
    return Marked(starts, stops, stream[starts]).where(stream[starts] != outside)


def hide(flat: FlatLabels, known: BoolArray) -> FlatLabels:
    """Return labels with that of tokens outside where they are not known."""
    if known.all():
        return flat
    labels = list(flat.labels)
    for token in np.flatnonzero(~known):
        labels[token] = OUTSIDE_LABEL
    return FlatLabels(labels, flat.lengths)


def comparable(
    found: Marked, readings: list[Marked], predicted: Marked, hidden: BoolArray
) -> tuple[Marked, Marked]:
    """Return the true spans that all readings have, and predicted ones that can be judged."""
    size, every = len(hidden) + 1, (found, *readings)
    count = 1 + max(int(each.types.max(initial=0)) for each in every)
    keys = [(each.starts * size + each.stops) * count + each.types for each in every]
    sure = np.ones(len(found.starts), bool)
    for key in keys[1:]:
        sure &= np.isin(keys[0], key)
    unsure = hidden.astype(np.int64)
    for spans, key in zip(every, keys, strict=True):
        _cover(spans.where(~np.isin(key, keys[0][sure])), unsure)
    before = np.concatenate([[0], np.cumsum(unsure > 0)])
    judged = before[predicted.stops] == before[predicted.starts]
    return found.where(sure), predicted.where(judged)


def _cover(spans: Marked, unsure: IntArray) -> None:
    """Mark the tokens of spans."""
    steps = np.zeros(len(unsure) + 1, np.int64)
    np.add.at(steps, spans.starts, 1)
    np.add.at(steps, spans.stops, -1)
    unsure += np.cumsum(steps)[:-1]


def _carried(stream: TagStream, hidden: BoolArray, step: int) -> TagStream:
    """Return tags in which hidden ones go on with the type of those before (1) or after (-1)."""
    source = _sources(hidden, step)
    roles = np.where(hidden & (stream.roles[source] != OUTSIDE), INSIDE, stream.roles[source])
    return TagStream(roles, stream.types[source])


def _sources(hidden: BoolArray, step: int) -> IntArray:
    """Return the nearest token that is not hidden before (1) or after (-1) each, or itself.

    Before the first there is the end of the stream, which is outside, as that of each sequence.
    """
    places = np.where(hidden, -1, np.arange(len(hidden)))
    if step > 0:
        return np.maximum.accumulate(places)  # -1 is the last token, which is outside
    later = np.where(hidden, len(hidden) - 1, places)[::-1]
    return np.minimum.accumulate(later)[::-1]
