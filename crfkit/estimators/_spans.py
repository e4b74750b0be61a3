"""Questions about spans, and how sure an answer is: methods of the estimators that answer them."""

from __future__ import annotations

from typing import Any

import numpy as np

from crfkit._params import check_number, check_option
from crfkit._types import (
    LEVELS,
    CodeArray,
    FloatArray,
    IntArray,
    LabelReading,
    Potentials,
    ProbableSegment,
    ReadSpans,
    Segment,
)
from crfkit.data import PackedSequences
from crfkit.data.labels import iterate_sequences
from crfkit.data.sequence_list import SequenceList
from crfkit.estimators._questions import tokens_of
from crfkit.inference.base import marginals, plain_codes
from crfkit.labels.fields import read_listed
from crfkit.labels.schemes import OUTSIDE_LABEL
from crfkit.structures import Structure


def predict_spans(self: Any, X: Any, *, constraints: Any = None) -> list[list[Segment]]:
    """Return the spans of the labels that `predict` gives, without tokens outside.

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
    A model of segments predicts segments. Labels of tokens such as ``B-PER`` and ``I-PER`` are
    read as the conlleval script reads tags of any scheme, so that each has its place in a span;
    ``B_PER``, ``PER-B`` and ``PER_B`` are tags too, where all labels but "O" are written so, and so
    are letters alone. Of other labels, a run of equal ones is a span. "O" is outside.

    A pipeline does not have this method, nor the others here: give the model its `features`, or ask
    the last step, ``pipeline[-1].predict_spans(pipeline[:-1].transform(X))``.
    """
    data = self._pack(X)
    return SequenceList(segments_of(self, self._codes(data, constraints), data.offsets))


def predict_span_proba(
    self: Any, X: Any, spans: Any = None, *, constraints: Any = None
) -> list[FloatArray]:
    """Return the probabilities of spans.

    Parameters
    ----------
    X : iterable of sequences
        As for `predict`.
    spans : iterable of S lists of (start, stop, label), optional
        Spans of each sequence, which may overlap, also those of `likely_spans`; those of
        `predict_spans` if not given.
    constraints : Constraints, rule, list of rules, str or None, default=None
        As for `predict`: probabilities are those given that these are kept to.

    Returns
    -------
    list of S ndarrays
        The probability of each span: that the sequence has it, with these ends and this label,
        whatever stands around it. It is 0 for a label that the model does not know, and for a
        segment longer than it allows. One of the label "O" is a segment of tokens outside; where
        labels are those of tokens, a run of them that goes on neither before nor behind.
    """
    data = self._pack(X)
    if spans is None:
        return _predicted_proba(self, data, constraints)
    asked, reading = _given(self, spans, data.offsets)
    order = np.argsort(asked.start, kind="stable")
    order = order[asked.type[order] >= 0]
    found, starts = np.zeros(len(asked.start)), asked.start[order]

    def ask(structure: Structure, potentials: Potentials) -> None:
        tokens = tokens_of(data, potentials)
        own = order[slice(*np.searchsorted(starts, [tokens.start, tokens.stop]))]
        bounds = asked.start[own] - tokens.start, asked.stop[own] - tokens.start
        found[own] = structure.span_probabilities(potentials, reading, *bounds, asked.type[own])

    self._ask(data, ask, constraints=constraints)
    return _split(found, asked, data)


def likely_spans(
    self: Any, X: Any, *, threshold: float = 0.5, constraints: Any = None
) -> list[list[ProbableSegment]]:
    """Return all spans with at least some probability, which may overlap.

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
        after the last, then by labels. Tokens outside are left out.

    Notes
    -----
    At most ``1 / threshold`` spans begin at a token, as no two of them can be there together.
    """
    check_number("threshold", threshold)
    if not 0.0 < threshold <= 1.0:
        raise ValueError(f"threshold={threshold!r} must be above 0 and at most 1.")
    data, reading = self._pack(X), _reading(self)

    def ask(structure: Structure, potentials: Potentials) -> list[list[ProbableSegment]]:
        start, stop, kind, proba = structure.likely_spans(potentials, reading, threshold)
        spans = ReadSpans(start, stop, kind)
        fields = _fields(spans, reading, potentials.offsets)
        found = list(map(ProbableSegment, *fields, proba.tolist()))
        return _by_sequence(found, spans, potentials.offsets)

    chunks = self._ask(data, ask, constraints=constraints)
    return SequenceList(found for chunk in chunks for found in chunk)


def confidence(
    self: Any, X: Any, *, of: str = "sequences", constraints: Any = None
) -> FloatArray | list[FloatArray]:
    """Return the probability of what `predict` says: that it is right, by the model.

    Parameters
    ----------
    X : iterable of sequences
        As for `predict`, also in what is raised.
    of : {"sequences", "spans", "tokens"}, default="sequences"
        Whether all labels of a sequence are to be right together, a span of `predict_spans`, or the
        label of a token.
    constraints : Constraints, rule, list of rules, str or None, default=None
        As for `predict`: probabilities are those given that these are kept to.

    Returns
    -------
    ndarray of shape (S,), or list of S ndarrays
        A probability for each sequence, or for each of its spans, or tokens.
    """
    check_option("of", of, LEVELS)
    data = self._pack(X)
    if of == "spans":
        return _predicted_proba(self, data, constraints)
    if of == "sequences" and self._fitted_labels().of_segments:
        codes = plain_codes(self._codes(data, constraints))
        coding = self._fitted_labels().coding(self)
        labels = coding.write(codes, self.classes_, data.offsets)
        whole: FloatArray = self.sequence_log_proba(data, labels, constraints=constraints)
        return np.exp(whole)
    choose = self._chooser()

    def ask(structure: Structure, potentials: Potentials) -> list[FloatArray] | FloatArray:
        codes = plain_codes(choose(structure, potentials))
        probability, log_z = marginals(structure, potentials)
        if of == "sequences":
            return np.exp(np.minimum(structure.score(potentials, codes) - log_z, 0.0))
        own = probability[np.arange(len(codes)), codes % potentials.n_labels]
        return np.split(own, potentials.offsets[1:-1])

    chunks = self._ask(data, ask, constraints=constraints)
    if of == "sequences":
        return np.concatenate([np.zeros(0), *chunks])
    return SequenceList(row for chunk in chunks for row in chunk)


def said_spans(codes: CodeArray, reading: LabelReading, offsets: IntArray) -> ReadSpans:
    """Return the spans that codes stand for, without those of which something is withheld."""
    spans = reading.spans(plain_codes(codes), offsets)
    withheld = np.concatenate([[0], np.cumsum(codes < 0)])
    said = withheld[spans.start] == withheld[spans.stop]
    return ReadSpans(*(part[said] for part in spans))


def segments_of(estimator: Any, codes: CodeArray, offsets: IntArray) -> list[list[Segment]]:
    """Return the spans of sequences that codes of tokens stand for."""
    reading = _reading(estimator)
    spans = said_spans(codes, reading, offsets)
    found = list(map(Segment, *_fields(spans, reading, offsets)))
    return _by_sequence(found, spans, offsets)


def _predicted_proba(estimator: Any, data: PackedSequences, constraints: Any) -> list[FloatArray]:
    """Return the probabilities of the spans that are predicted."""
    choose, reading = estimator._chooser(), _reading(estimator)

    def ask(structure: Structure, potentials: Potentials) -> list[FloatArray]:
        spans = said_spans(choose(structure, potentials), reading, potentials.offsets)
        found = structure.span_probabilities(potentials, reading, *spans)
        return np.split(found, np.searchsorted(spans.start, potentials.offsets[1:-1]))

    chunks = estimator._ask(data, ask, constraints=constraints)
    return SequenceList(row for chunk in chunks for row in chunk)


def _reading(estimator: Any, outside: bool = False) -> LabelReading:
    """Return what the codes of a fitted model say of spans."""
    coding = estimator._fitted_labels().coding(estimator)
    found: LabelReading = coding.reading(estimator.classes_, outside=outside)
    return found


def _given(estimator: Any, spans: Any, offsets: IntArray) -> tuple[ReadSpans, LabelReading]:
    """Return spans that the user lists, of type -1 where a label is not known, and their types."""
    sequences = [list(items) for items in iterate_sequences(spans, "spans")]
    listed = read_listed(sequences, offsets, "spans")
    reading = _reading(estimator, OUTSIDE_LABEL in listed.labels)
    key = estimator._fitted_labels().coding(estimator).key
    place = {key(label): number for number, label in enumerate(reading.types)}
    types = [place.get(key(label), -1) for label in listed.labels]
    return ReadSpans(listed.start, listed.stop, np.array(types, np.int64)), reading


def _fields(spans: ReadSpans, reading: LabelReading, offsets: IntArray) -> list[list[Any]]:
    """Return where spans start and stop in their sequences, and their labels."""
    begin = offsets[np.searchsorted(offsets, spans.start, side="right") - 1]
    labels = list(map(reading.types.__getitem__, spans.type.tolist()))
    return [(spans.start - begin).tolist(), (spans.stop - begin).tolist(), labels]


def _by_sequence(items: list[Any], spans: ReadSpans, offsets: IntArray) -> list[list[Any]]:
    """Return what belongs to spans, in their order, as a list for each sequence."""
    ends = np.searchsorted(spans.start, offsets).tolist()
    return [items[begin:end] for begin, end in zip(ends[:-1], ends[1:], strict=True)]


def _split(found: FloatArray, spans: ReadSpans, data: PackedSequences) -> list[FloatArray]:
    """Return what belongs to spans, listed sequence by sequence, as an array for each one."""
    sequence = np.searchsorted(data.offsets, spans.start, side="right") - 1
    counts = np.bincount(sequence, minlength=len(data))
    return SequenceList(np.split(found, np.cumsum(counts)[:-1]) if len(data) else [])
