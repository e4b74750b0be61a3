"""Questions about spans: methods of the estimators that answer them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from crfkit._params import check_number
from crfkit._types import CodeArray, FloatArray, IntArray, Potentials, ProbableSegment, Segment
from crfkit.data import PackedSequences
from crfkit.data.labels import iterate_sequences, object_array
from crfkit.estimators._questions import tokens_of
from crfkit.inference import ViterbiDecoder
from crfkit.labels.fields import read_listed
from crfkit.labels.schemes import OUTSIDE_LABEL
from crfkit.labels.segmentation import Segmentation, segmentation_of
from crfkit.labels.segments import longest
from crfkit.structures import Structure


def predict_spans(self: Any, X: Any, *, constraints: Any = None) -> list[list[Segment]]:
    """Return the segments of the best segmentation, without those of tokens outside.

    Parameters
    ----------
    X : iterable of sequences
        As for `predict`, also in what is raised.
    constraints : Constraints, rule, list of rules, str or None, default=None
        As for `predict`.

    Returns
    -------
    list of S lists of Segment
        First token, the one after the last, label.

    Notes
    -----
    A pipeline does not have this method, nor the others here: give the model its `features`, or ask
    the last step, ``pipeline[-1].predict_spans(pipeline[:-1].transform(X))``.
    """
    data = self._pack(X)
    return segments_of(self, _best_codes(self, data, constraints), data.offsets)


def predict_span_proba(
    self: Any, X: Any, spans: Any = None, *, constraints: Any = None
) -> list[FloatArray]:
    """Return the probabilities of segments.

    Parameters
    ----------
    X : iterable of sequences
        As for `predict`.
    spans : iterable of S lists of (start, stop, label), optional
        Segments of each sequence, which may overlap, also those of `likely_spans`; those of
        `predict_spans` if not given.
    constraints : Constraints, rule, list of rules, str or None, default=None
        As for `predict`: probabilities are those given that these are kept to.

    Returns
    -------
    list of S ndarrays
        The probability of each segment: that the sequence has it, with these ends. It is 0 for
        a label that the model does not know, and for a segment longer than it allows.
    """
    data = self._pack(X)
    held = self._held(constraints, data)
    if spans is None:
        spans = segments_of(self, _best_codes(self, data, held), data.offsets)
    runs = _given(self, spans, data.offsets)
    found = np.zeros(len(runs.start))
    most = np.append(longest(self.length_scores_), 0)  # unknown labels have no segments
    order = np.argsort(runs.start, kind="stable")
    order = order[(runs.stop - runs.start <= most[runs.label])[order]]
    starts = runs.start[order]
    reading = self._fitted_labels().coding(self).reading(self.classes_, outside=True)

    def ask(structure: Structure, potentials: Potentials) -> None:
        tokens = tokens_of(data, potentials)
        begin = tokens.start
        own = order[slice(*np.searchsorted(starts, [begin, tokens.stop]))]
        part = Segmentation(runs.start[own] - begin, runs.stop[own] - begin, runs.label[own])
        found[own] = structure.span_probabilities(potentials, reading, *part)

    self._ask(data, ask, constraints=held)
    sequence = np.searchsorted(data.offsets, runs.start, side="right") - 1
    counts = np.bincount(sequence, minlength=len(data))
    return np.split(found, np.cumsum(counts)[:-1]) if len(data) else []


def likely_spans(
    self: Any, X: Any, *, threshold: float = 0.5, constraints: Any = None
) -> list[list[ProbableSegment]]:
    """Return all segments with at least some probability, which may overlap.

    Parameters
    ----------
    X : iterable of sequences
        As for `predict`, also in what is raised.
    threshold : float, default=0.5
        The least probability, above 0 and at most 1. A small one takes long.
    constraints : Constraints, rule, list of rules, str or None, default=None
        As for `predict`: probabilities are those given that these are kept to.

    Returns
    -------
    list of S lists of ProbableSegment
        First token, the one after the last, label, probability: by first tokens, then by those
        after the last, then in the order of `classes_`. Tokens outside are left out.

    Notes
    -----
    A segment is at most as probable as its beginning, its end, and each token within it, so
    that few are asked for: `1 / threshold` labels at most begin at a token.
    """
    check_number("threshold", threshold)
    if not 0.0 < threshold <= 1.0:
        raise ValueError(f"threshold={threshold!r} must be above 0 and at most 1.")
    data = self._pack(X)
    reading = self._fitted_labels().coding(self).reading(self.classes_)
    inside = np.array([label != OUTSIDE_LABEL for label in self.classes_.tolist()], bool)
    label_of = np.flatnonzero(inside)

    def ask(structure: Structure, potentials: Potentials) -> tuple[Segmentation, FloatArray]:
        start, stop, kind, proba = structure.likely_spans(potentials, reading, threshold)
        begin = tokens_of(data, potentials).start
        return Segmentation(start + begin, stop + begin, label_of[kind]), proba

    sequences: list[list[ProbableSegment]] = [[] for _ in range(len(data))]
    for runs, proba in self._ask(data, ask, constraints=constraints):
        placed = zip(_placed(self, runs, data.offsets), proba.tolist(), strict=True)
        for (s, segment), probability in placed:
            sequences[s].append(ProbableSegment(*segment, probability))
    return sequences


def _best_codes(estimator: Any, data: PackedSequences, constraints: Any) -> CodeArray:
    """Return the codes of the best segmentation that keeps to constraints."""
    answers = estimator._ask(data, ViterbiDecoder().decode, constraints=constraints)
    return np.concatenate([np.empty(0, np.int32), *answers])


def _given(estimator: Any, segments: Any, offsets: IntArray) -> Segmentation:
    """Return segments that the user lists, with `UNKNOWN` for labels that are."""
    sequences = [list(items) for items in iterate_sequences(segments, "spans")]
    listed = read_listed(sequences, offsets, "spans")
    coding = estimator._fitted_labels().coding(estimator)
    labels = coding.places(object_array(listed.labels), estimator.classes_)
    return Segmentation(listed.start, listed.stop, labels)


def segments_of(estimator: Any, codes: CodeArray, offsets: IntArray) -> list[list[Segment]]:
    """Return codes as the segments of each sequence, without those of tokens outside."""
    runs = segmentation_of(codes, offsets, len(estimator.classes_))
    found: list[list[Segment]] = [[] for _ in range(len(offsets) - 1)]
    for s, segment in _placed(estimator, runs, offsets):
        if segment.label != OUTSIDE_LABEL:
            found[s].append(segment)
    return found


def _placed(estimator: Any, runs: Segmentation, offsets: IntArray) -> Iterator[tuple[int, Segment]]:
    """Yield each run as a segment of its sequence, and the number of that."""
    classes, begins = estimator.classes_.tolist(), offsets.tolist()
    sequence = np.searchsorted(offsets, runs.start, side="right") - 1
    for s, start, stop, k in zip(*(a.tolist() for a in (sequence, *runs)), strict=True):
        yield s, Segment(start - begins[s], stop - begins[s], classes[k])
