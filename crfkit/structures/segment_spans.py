"""Probabilities of segments."""

from __future__ import annotations

import numpy as np

from crfkit._types import FloatArray, IntArray, LabelReading, ReadSpans
from crfkit.structures.base import Structure
from crfkit.structures.potentials import SegmentPotentials, make_spans, of_spans

# Bounds of probabilities are compared with a threshold with this share to spare for rounding.
SPARE = 1e-6


def segment_probabilities(
    structure: Structure, potentials: SegmentPotentials, reading: LabelReading, asked: ReadSpans
) -> FloatArray:
    """Return the probability of each span, shape (n,): that it is a segment of its type."""
    found = np.zeros(len(asked.start))
    possible = np.flatnonzero(asked.stop - asked.start <= potentials.n_lengths)
    if len(possible):
        own, runs, _ = of_spans(potentials, ReadSpans(*(part[possible] for part in asked)))
        proba = _run_probabilities(structure, own, runs.start, runs.stop)
        types = reading.type_of[potentials.n_labels :]
        found[possible] = proba.sum(axis=1, where=types == runs.type[:, None])
    return np.minimum(found, 1.0)


def likely_segments(
    structure: Structure, potentials: SegmentPotentials, reading: LabelReading, threshold: float
) -> tuple[IntArray, IntArray, IntArray, FloatArray]:
    """Return the spans of at least some probability, sorted by their tokens, then by types."""
    runs = _candidates(structure, potentials, reading, threshold * (1.0 - SPARE))
    proba = segment_probabilities(structure, potentials, reading, runs)
    kept = np.flatnonzero(proba >= threshold)
    return runs.start[kept], runs.stop[kept], runs.type[kept], proba[kept]


def _run_probabilities(
    structure: Structure, scores: SegmentPotentials, start: IntArray, stop: IntArray
) -> FloatArray:
    """Return the probabilities that runs of tokens are segments, with each label, shape (n, K).

    From their first tokens, shape (n,), to those after their last. Each run gets a row of its own,
    with the scores of the one it had: what is expected of that row is the probability.
    """
    size = scores.n_labels
    spans, first = scores.spans, scores.n_transitions + scores.n_lengths
    ends = np.repeat(np.arange(1, len(scores.unary) + 1), np.diff(spans.end_ptr))
    width = len(scores.unary) + 1
    asked, which = np.unique(stop * width + (stop - start), return_inverse=True)
    listed = ends * width + spans.end_length
    place = np.minimum(np.searchsorted(listed, asked), max(len(listed) - 1, 0))
    old = listed[place] == asked if len(listed) else np.zeros(len(asked), bool)
    own = np.zeros((len(asked), size))
    own[old] = scores.pair[first + spans.end_row[place[old]]]
    kept = ~np.isin(listed, asked)
    rows = np.arange(len(asked)) + len(scores.pair) - first
    every = make_spans(
        len(scores.unary),
        np.concatenate([ends[kept], asked // width]),
        np.concatenate([spans.end_length[kept], asked % width]),
        np.concatenate([spans.end_row[kept], rows]),
    )
    wider = scores._replace(pair=np.concatenate([scores.pair, own]), spans=every)
    expected = structure.zeros(wider)
    structure.log_partition(wider, np.ones(len(scores.offsets) - 1), expected)
    return expected.pair[len(scores.pair) :][which]


def _candidates(
    structure: Structure, scores: SegmentPotentials, reading: LabelReading, least: float
) -> ReadSpans:
    """Return the spans whose beginning, end and tokens are at least so probable, in order."""
    expected, size = structure.zeros(scores), scores.n_labels
    structure.log_partition(scores, np.ones(len(scores.offsets) - 1), expected)
    on, begins, ends = (
        _of_types(expected.unary[:, i * size : (i + 1) * size], reading) >= least for i in range(3)
    )
    start, kind = np.nonzero(begins)
    after = scores.offsets[np.searchsorted(scores.offsets, start, side="right")]
    found = [(start[:0], start[:0], kind[:0])]
    for length in range(1, scores.n_lengths + 1):
        hit = ends[start + length - 1, kind]
        found.append((start[hit], start[hit] + length, kind[hit]))
        goes = np.flatnonzero(start + length < after)
        goes = goes[on[start[goes] + length, kind[goes]]]
        start, kind, after = start[goes], kind[goes], after[goes]
    runs = ReadSpans(*(np.concatenate(parts) for parts in zip(*found, strict=True)))
    order = np.lexsort(runs[::-1])
    return ReadSpans(*(part[order] for part in runs))


def _of_types(probabilities: FloatArray, reading: LabelReading) -> FloatArray:
    """Return the probabilities of types at tokens, (N, Y), given those of labels, (N, K)."""
    types = reading.type_of[probabilities.shape[1] :]
    found = np.empty((len(probabilities), len(reading.types)))
    for kind in range(len(reading.types)):
        probabilities[:, types == kind].sum(axis=1, out=found[:, kind])
    return found
