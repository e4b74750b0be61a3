"""Probabilities of spans by sums over the labelings that have them.

For structures without a recurrence of their own for spans, which can leave out labels and steps.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from crfkit._types import BoolArray, FloatArray, IntArray, LabelReading, Potentials, ReadSpans
from crfkit.structures.base import Structure
from crfkit.structures.log_sums import log_sums
from crfkit.structures.potentials import of_spans

# Scores of labels that are in memory at a time.
CELLS = 1 << 22
# Of bounds, so much is left for rounding.
SPARE = 1e-9
# What the step into a token has to do.
ANYTHING, OPENS, CONTINUES, CLOSES = range(4)


def clamped_span_probabilities(
    structure: Structure[Any], potentials: Potentials, reading: LabelReading, spans: ReadSpans
) -> FloatArray:
    """Return the probability of each span, shape (n,): ``exp(log Z' - log Z)``.

    ``Z'`` is the sum over the labelings that have the span.
    """
    if not len(spans.start):
        return np.zeros(0)
    potentials, spans, sequence = of_spans(potentials, spans)
    whole, found = log_sums(structure, potentials), np.empty(len(sequence))
    sizes = np.diff(potentials.offsets)[sequence] * potentials.n_codes
    batch = np.cumsum(sizes) // CELLS
    for chosen in np.split(np.arange(len(batch)), np.flatnonzero(np.diff(batch)) + 1):
        some = ReadSpans(*(each[chosen] for each in spans))
        copied = potentials.take(sequence[chosen])
        less = potentials.offsets[sequence[chosen]] - copied.offsets[:-1]
        moved = ReadSpans(some.start - less, some.stop - less, some.type)
        log_z = log_sums(*_with_spans(structure, copied, reading, moved))
        found[chosen] = np.exp(np.minimum(log_z - whole[sequence[chosen]], 0.0))
    return found


def likely_clamped_spans(
    structure: Structure[Any], potentials: Potentials, reading: LabelReading, threshold: float
) -> tuple[IntArray, IntArray, IntArray, FloatArray]:
    """Return the spans of at least some probability, sorted by their tokens, then by types.

    No span is more probable than that each of its tokens has a label of its type.
    """
    counts = structure.zeros(potentials)
    structure.log_partition(potentials, np.ones(len(potentials.offsets) - 1), counts)
    typed = [counts.unary[:, reading.type_of == y].sum(axis=1) for y in range(len(reading.types))]
    listed = [np.zeros((3, 0), np.int64)]
    for y, share in enumerate(typed):
        listed += _within(share >= threshold * (1.0 - SPARE), y, potentials.offsets)
    start, stop, type = np.concatenate(listed, axis=1)
    order = np.lexsort((type, stop, start))
    spans = ReadSpans(start[order], stop[order], type[order])
    probability = clamped_span_probabilities(structure, potentials, reading, spans)
    kept = probability >= threshold
    return spans.start[kept], spans.stop[kept], spans.type[kept], probability[kept]


def _within(likely: BoolArray, y: int, offsets: IntArray) -> list[IntArray]:
    """Return all spans of a type within runs of tokens that are likely to have it, (3, n) each."""
    ended = np.append(~likely, True)
    ends = np.zeros(len(ended), bool)
    ends[offsets] = True
    stops = np.flatnonzero(ended | ends)
    found = []
    for start in np.flatnonzero(likely).tolist():
        last = stops[np.searchsorted(stops, start, side="right")]
        stop = np.arange(start + 1, last + 1)
        found.append(np.stack([np.full(len(stop), start), stop, np.full(len(stop), y)]))
    return found


def _with_spans(
    structure: Structure[Any], potentials: Potentials, reading: LabelReading, spans: ReadSpans
) -> tuple[Structure[Any], Potentials]:
    """Return the labelings of each sequence that have its span."""
    count, (begins, ends) = len(potentials.unary), (potentials.offsets[:-1], potentials.offsets[1:])
    place = np.arange(count)
    sequence = np.repeat(np.arange(len(begins)), ends - begins)
    inside = (place >= spans.start[sequence]) & (place < spans.stop[sequence])
    allowed = np.ones((count, potentials.n_codes), bool)
    allowed[inside] = reading.type_of == spans.type[sequence[inside], None]
    first, last = spans.start == begins, spans.stop == ends
    allowed[begins[first]] &= reading.opens[-1]
    allowed[ends[last] - 1] &= reading.closes[:, -1]
    which = np.where(inside, CONTINUES, ANYTHING)
    which[spans.start] = OPENS
    which[spans.stop[~last]] = CLOSES
    steps = np.stack([
        np.ones_like(reading.continues), reading.opens[:-1], reading.continues,
        reading.closes[:, :-1],
    ])  # fmt: skip
    return structure.restricted(potentials.clamp(allowed), steps, which)
