"""The spans with the largest expected number of correct ones."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from sklearn.base import BaseEstimator

from crfkit._params import check_number
from crfkit._types import (
    BoolArray,
    CodeArray,
    FloatArray,
    IntArray,
    LabelReading,
    Potentials,
    ReadSpans,
)  # fmt: skip
from crfkit.data.packed import ranges
from crfkit.inference.base import DecodedLabels, Decoder
from crfkit.inference.risk import allowed_alike, code_marginals
from crfkit.labels.segmentation import segmentation_of
from crfkit.structures import NoPathError, SegmentPotentials, Structure
from crfkit.structures.potentials import make_spans

# Less probable spans are not looked at where all tokens are in spans.
LEAST = 1e-3
# Labelings of a sequence that are compared where the best spans are not allowed together.
LISTED = 100
# What a segment that is no span costs more than a token of no span.
MORE = 1.0
# What the transition into a token does; the last two are of tokens of which nothing is known.
OUTSIDE, GOES_ON, BEGINS, ENDS, ANY = range(5)


class ScoredSpans(NamedTuple):
    """Spans, and how probable each of them is: (n,)."""

    start: IntArray
    stop: IntArray
    type: IntArray
    probability: FloatArray


class ExpectedSpans(BaseEstimator, Decoder):  # type: ignore[misc]
    """The spans, none of which overlap, with the largest sum of ``probability - threshold``.

    The sum is the expected number of spans that are correct, their type and both ends, less
    `threshold` for each span that is predicted. Labels are those that say of tokens what the spans
    are. What is not allowed is not chosen: where these spans cannot be together, as more is known
    of a sequence, the most is taken that one of its 100 best labelings reaches. Of a model without
    a label of tokens outside, whose tokens are all in spans, those less probable than 0.001 are
    not looked at.

    Parameters
    ----------
    threshold : float, default=0.5
        How probable a span must be to be worth predicting, above 0 and below 1. A small one finds
        more, a large one is more often right. With 1/2 the expected number of spans that are
        wrong or missed is least; half of the F1 that is reached is best for F1. See the notes.

    Notes
    -----
    With `n` true spans, `m` predicted and `c` correct ones, ``F1 = 2 c / (n + m)``. Let ``F`` be
    the largest ratio ``2 E[c] / (E[n] + m)`` of all predictions. Then ``2 E[c] - F (E[n] + m)`` is
    at most 0, and 0 at the best prediction, which thus has the largest ``E[c] - F / 2 m``
    (Dinkelbach 1967): each span is worth its probability less ``F / 2``. For labels that are
    independent, Lipton, Elkan and Narayanaswamy (2014) find the same threshold.

    Examples
    --------
    >>> from crfkit import CRFClassifier
    >>> from crfkit.inference import ExpectedSpans
    >>> CRFClassifier(decoding=ExpectedSpans(threshold=0.4))
    CRFClassifier(decoding=ExpectedSpans(threshold=0.4))
    """

    def __init__(self, threshold: float = 0.5) -> None:
        self.threshold = threshold

    def decode(
        self, structure: Structure, potentials: Potentials, labels: DecodedLabels | None = None
    ) -> CodeArray:
        """Return codes of tokens, shape (N,)."""
        check_number("threshold", self.threshold)
        if not 0.0 < self.threshold < 1.0:
            raise ValueError(f"threshold={self.threshold!r} must be above 0 and below 1.")
        if labels is None:
            raise ValueError("spans are read off labels, which are not given.")
        reading = labels.reading
        least = self.threshold if _has_outside(reading) else min(self.threshold, LEAST)
        spans = ScoredSpans(*structure.likely_spans(potentials, reading, least))
        try:
            chosen = self._best_spans(potentials, reading, spans)
            return most_probable_codes(structure, potentials, reading, chosen)
        except NoPathError:
            if len(potentials.offsets) == 2:
                return self._best_listed(structure, potentials, reading)
        return np.concatenate([self.decode(structure, one, labels) for one in potentials.each()])

    def _best_spans(
        self, potentials: Potentials, reading: LabelReading, spans: ScoredSpans
    ) -> ReadSpans:
        """Return the best spans that codes can tell apart, as segments of a type each.

        The last label is that of tokens of no span, one by one. If a model has no label of these,
        each costs what a span does that has no probability.
        """
        from crfkit.structures import SemiMarkov  # whose kernels take their time to load

        offsets, outside = potentials.offsets, len(reading.types)
        n_tokens, longest = int(offsets[-1]), int((spans.stop - spans.start).max(initial=1))
        costs = self.threshold * np.arange(1, longest + 1) + MORE
        lengths = np.repeat(-costs[:, None], outside + 1, axis=1)
        lengths[:, outside] = -np.inf
        lengths[0, outside] = 0.0 if _has_outside(reading) else -self.threshold
        runs, which = np.unique(np.stack(spans[:2]), axis=1, return_inverse=True)
        gains = np.zeros((runs.shape[1], outside + 1))
        gains[which, spans.type] = spans.probability - self.threshold
        gains[which, spans.type] += costs[spans.stop - spans.start - 1]
        rows = make_spans(n_tokens, runs[1], runs[1] - runs[0], np.arange(len(gains)))
        scores = SegmentPotentials(
            np.zeros((n_tokens, 4 * outside + 4)),
            np.concatenate([_transitions(reading), lengths, gains]), np.zeros(1, np.uint32),
            offsets, potentials.first, outside + 1, longest, rows,
        )  # fmt: skip
        found = segmentation_of(SemiMarkov().argmax(scores)[0], offsets, outside + 1)
        inside = found.label < outside
        return ReadSpans(*(part[inside] for part in found))

    def _best_listed(
        self, structure: Structure, potentials: Potentials, reading: LabelReading
    ) -> CodeArray:
        """Return the best of the most probable labelings of the only sequence."""
        listed = structure.k_best(potentials, LISTED)
        rows, length = len(listed.scores), len(potentials.unary)
        read = reading.spans(listed.codes, listed.offsets(potentials.offsets))
        row = read.start // length
        begin = row * length
        places = np.stack([read.start - begin, read.stop - begin, read.type])
        asked, which = np.unique(places, axis=1, return_inverse=True)
        gains = structure.span_probabilities(potentials, reading, *asked) - self.threshold
        best = np.bincount(row, gains[which], minlength=rows).argmax()
        chosen: CodeArray = listed.codes.reshape(rows, -1)[best]
        return chosen


def most_probable_codes(
    structure: Structure, potentials: Potentials, reading: LabelReading, spans: ReadSpans
) -> CodeArray:
    """Return the codes, (N,), that say what the spans are: of these the most probable ones.

    Tokens of no span are outside, or of any other spans if that cannot be. NoPathError if none are
    allowed.
    """
    outside, size = _has_outside(reading), len(reading.type_of)
    kind = np.full(len(potentials.unary) + 1, OUTSIDE if outside else ANY)
    type_of = np.full(len(kind), -1)
    lengths = spans.stop - spans.start
    inside = ranges(spans.start, lengths)
    kind[spans.stop] = OUTSIDE if outside else ENDS
    kind[inside], type_of[inside] = GOES_ON, np.repeat(spans.type, lengths)
    kind[spans.start] = BEGINS
    kind, type_of = kind[:-1], type_of[:-1]
    steps, begins = _steps(reading), reading.opens.any(axis=0)
    possible = np.ones((5, size), bool)
    possible[[GOES_ON, BEGINS, ENDS]] = reading.continues.any(axis=0), begins, begins
    allowed = ((reading.type_of == type_of[:, None]) | (kind >= ENDS)[:, None]) & possible[kind]
    first = np.intersect1d(spans.start, potentials.offsets)
    last = np.intersect1d(spans.stop, potentials.offsets) - 1
    allowed[first] = (reading.type_of == type_of[first, None]) & reading.opens[-1]
    allowed[last] &= reading.closes[:, -1]
    gains = code_marginals(structure, potentials)
    plain, scores = allowed_alike(structure, potentials)
    scores = scores.plus_unary(gains).clamp(allowed)
    if scores.n_codes == scores.n_labels:  # codes of segments tell where these begin
        plain, scores = plain.restricted(scores, steps, kind)
    return plain.argmax(scores)[0]


def _has_outside(reading: LabelReading) -> bool:
    """Whether a code says that a token is of no span."""
    return bool((reading.type_of == -1).any())


def _steps(reading: LabelReading) -> BoolArray:
    """Return which code may follow which, (5, C, C), by what the transition does."""
    outside = reading.type_of == -1
    ended = outside[:, None] | reading.closes[:, :-1]
    begins = ended & reading.opens[:-1]
    return np.stack([ended & outside, reading.continues, begins, begins, np.ones_like(begins)])


def _transitions(reading: LabelReading) -> FloatArray:
    """Return 0 where a type, or tokens of no span, the last, may come after another, else -inf."""
    types = np.where(reading.type_of < 0, len(reading.types), reading.type_of)
    found = np.full((len(reading.types) + 1,) * 2, -np.inf)
    before, after = np.nonzero(_steps(reading)[[OUTSIDE, BEGINS]].any(axis=0))
    found[types[before], types[after]] = 0.0
    if not _has_outside(reading):
        found[-1] = found[:, -1] = 0.0
    return found
