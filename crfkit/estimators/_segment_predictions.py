"""What can be asked of a fitted model of segments."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crfkit._params import check_number, check_whole
from crfkit._types import (
    Chunk,
    CodeArray,
    FloatArray,
    IntArray,
    Potentials,
    ProbableSegment,
    Segment,
)
from crfkit.data import PackedSequences
from crfkit.data.labels import iterate_sequences, object_array
from crfkit.estimators._probabilities import ProbabilisticChain
from crfkit.estimators._segment_views import SegmentViews
from crfkit.inference.constraints import ANY, fixed_codes, log_shares, why_impossible, with_fixed
from crfkit.labels.coding import check_apart, read_listed
from crfkit.labels.limits import longest
from crfkit.labels.schemes import OUTSIDE_LABEL
from crfkit.labels.segmentation import Segmentation, segmentation_of
from crfkit.structures import NoSegmentationError, Structure
from crfkit.structures.semimarkov import span_probabilities

# Tokens of a chunk whose results depend on each other, whatever the number of threads.
SHARE = 2000
# Bounds of probabilities are compared with a threshold with this share to spare for rounding.
SPARE = 1e-6


class SegmentPredictions(SegmentViews):
    """Segments of new sequences, instead of labels of their tokens."""

    def predict_segments(self, X: Any, *, fixed: Any = None) -> list[list[Segment]]:
        """Return the segments of the best segmentation, without those of tokens outside.

        Parameters
        ----------
        X : iterable of sequences
            As for `predict`.
        fixed : iterable of S lists of (start, stop, label), optional
            Segments that each sequence is known to have.

        Returns
        -------
        list of S lists of Segment
            First token, the one after the last, label.

        Raises
        ------
        NotFittedError
            Before `fit`.
        TypeError, ValueError
            As for `predict`, or if fixed segments are not within their sequence, overlap, are too
            long or too short, have an unknown label, or leave no segmentation.

        Notes
        -----
        A pipeline does not have this method. Ask its last step:
        ``pipeline[-1].predict_segments(pipeline[:-1].transform(X))``; so for the others here.
        """
        data = self._pack(X)
        codes = self._best_codes(data, self._fixed(fixed, data))
        return self._segments_of(
            segmentation_of(codes, data.offsets, len(self.classes_)), data.offsets
        )

    def predict_n_best(self, X: Any, n: int) -> list[list[tuple[float, list[Segment]]]]:
        """Return the best segmentations of each sequence.

        Parameters
        ----------
        X : iterable of sequences
            As for `predict`.
        n : int
            How many, at least 1. There are fewer where a sequence has no more. Memory grows with
            it.

        Returns
        -------
        list of S lists of (float, list of Segment)
            The score of each segmentation, the best first, and its segments without those of tokens
            outside; its log-probability, where the model has probabilities. Segmentations that
            differ in those of tokens outside alone are listed one by one.

        Raises
        ------
        NotFittedError
            Before `fit`.
        TypeError, ValueError
            As for `predict`, or if `n` is no whole number of at least 1.
        """
        check_whole("n", n, 1)
        data = self._pack(X)
        found: list[list[tuple[float, list[Segment]]]] = [[] for _ in range(len(data))]

        def search(structure: Any, chunk: Chunk, scores: Potentials) -> None:
            base = self._base_scores(structure, scores).tolist()
            for s, one in enumerate(scores.each()):
                count = _at_most(int(n), len(one.unary), len(self.classes_))
                codes, values = structure.k_best(one, count)
                places = np.arange(len(codes) + 1) * codes.shape[1]
                runs = segmentation_of(codes.reshape(-1), places, len(self.classes_))
                listed = self._segments_of(runs, places)
                levels = (values - base[s]).tolist()
                found[chunk.first + s] = list(zip(levels, listed, strict=True))

        self._each_chunk(data, search)
        return found

    def _base_scores(self, structure: Structure, scores: Potentials) -> FloatArray:
        """Return what is subtracted from the scores of each sequence, shape (S,)."""
        return np.zeros(len(scores.offsets) - 1)

    def _best_codes(self, data: PackedSequences, fixed: CodeArray) -> CodeArray:
        """Return the codes of the best segmentation with those that are fixed."""
        codes: CodeArray = np.empty(data.n_tokens, np.int32)

        def decode(structure: Structure, chunk: Chunk, scores: Potentials) -> None:
            codes[chunk.tokens] = structure.argmax(with_fixed(scores, fixed[chunk.tokens]))[0]

        self._each_chunk(data, decode, fixed=fixed)
        return codes

    def _each_chunk(
        self,
        data: PackedSequences,
        function: Callable[[Structure, Chunk, Potentials], None],
        *,
        share: int | None = None,
        fixed: CodeArray | None = None,
    ) -> None:
        """Do what any chain does; say what leaves a sequence without a segmentation."""
        try:
            super()._each_chunk(data, function, share=share)
        except NoSegmentationError as error:
            raise ValueError(why_impossible(self, error, data.offsets, fixed)) from error

    def _fixed(self, fixed: Any, data: PackedSequences) -> CodeArray:
        """Return the code that each token has to have, or what may be there: (N,)."""
        if fixed is None:
            return np.full(data.n_tokens, ANY, np.int32)
        return fixed_codes(self, self._given(fixed, data.offsets, "fixed"), data.offsets)

    def _given(self, segments: Any, offsets: IntArray, name: str) -> Segmentation:
        """Return segments that the user lists, with `UNKNOWN` for labels that are."""
        sequences = [list(items) for items in iterate_sequences(segments, name)]
        listed = read_listed(sequences, offsets, name)
        if name == "fixed":
            check_apart(listed, offsets, name)
        coding = self._fitted_layout.coding(self)
        labels = coding.places(object_array(listed.labels), self.classes_)
        return Segmentation(listed.start, listed.stop, labels)

    def _segments_of(self, runs: Segmentation, offsets: IntArray) -> list[list[Segment]]:
        """Return runs as the segments of each sequence, without those of tokens outside."""
        found: list[list[Segment]] = [[] for _ in range(len(offsets) - 1)]
        for s, segment in self._placed(runs, offsets):
            if segment.label != OUTSIDE_LABEL:
                found[s].append(segment)
        return found

    def _placed(self, runs: Segmentation, offsets: IntArray) -> Iterator[tuple[int, Segment]]:
        """Yield each run as a segment of its sequence, and the number of that."""
        classes, begins = self.classes_.tolist(), offsets.tolist()
        sequence = np.searchsorted(offsets, runs.start, side="right") - 1
        for s, start, stop, k in zip(*(a.tolist() for a in (sequence, *runs)), strict=True):
            yield s, Segment(start - begins[s], stop - begins[s], classes[k])


class SegmentProbabilities(SegmentPredictions, ProbabilisticChain):
    """Probabilities of segments."""

    def _base_scores(self, structure: Structure, scores: Potentials) -> FloatArray:
        return structure.log_partition(
            scores, np.ones(len(scores.offsets) - 1), structure.zeros(scores)
        )

    def sequence_log_proba(self, X: Any, y: Any) -> FloatArray:
        """Return the log-probability of whole sequences of labels, or of segments.

        Labels of tokens may stand for several segmentations, whose probabilities add up: a run of
        equal labels (or of "IO" tags) may be one segment or several, a run of tokens outside too.

        Parameters
        ----------
        X : iterable of sequences
            As for `predict`.
        y : iterable of sequences of labels, or of lists of (start, stop, label)
            The labels, or the segments, whose probability is asked for.

        Returns
        -------
        ndarray of shape (S,)
            ``log P(y | x)``; ``-inf`` where a label is not one of `classes_`, a tag is none of the
            scheme or may not stand there, a segment is too long or too short, or one may not follow
            another; 0 for an empty sequence.

        Raises
        ------
        NotFittedError
            Before `fit`.
        TypeError, ValueError
            As for `predict`, or if X and y do not match in number and lengths.
        """
        data = self._pack(X)
        codes, known = self._fitted_layout.codes(self, y, data.offsets)
        sequences = np.repeat(np.arange(len(data)), data.lengths)
        cannot = np.bincount(sequences[~known], minlength=len(data)) > 0
        codes[cannot[sequences]] = ANY
        log_proba = np.zeros(len(data))

        def infer(structure: Structure, chunk: Chunk, scores: Potentials) -> None:
            log_proba[chunk.sequences] = log_shares(structure, scores, codes[chunk.tokens])

        self._each_chunk(data, infer, share=SHARE)
        log_proba[cannot] = -np.inf
        return log_proba

    def predict_segment_proba(
        self, X: Any, segments: Any = None, *, fixed: Any = None
    ) -> list[FloatArray]:
        """Return the probabilities of segments.

        Parameters
        ----------
        X : iterable of sequences
            As for `predict`.
        segments : iterable of S lists of (start, stop, label), optional
            Segments of each sequence, which may overlap, also those of `likely_segments`; those of
            `predict_segments` if not given.
        fixed : iterable of S lists of (start, stop, label), optional
            Segments that each sequence is known to have: probabilities are those given them.

        Returns
        -------
        list of S ndarrays
            The probability of each segment: that the sequence has it, with these ends. It is 0 for
            a label that the model does not know, and for a segment longer than it allows.

        Raises
        ------
        NotFittedError
            Before `fit`.
        TypeError, ValueError
            As for `predict_segments`, or if a segment is not within its sequence.
        """
        data = self._pack(X)
        known = self._fixed(fixed, data)
        if segments is None:
            codes = self._best_codes(data, known)
            size = len(self.classes_)
            segments = self._segments_of(segmentation_of(codes, data.offsets, size), data.offsets)
        runs = self._given(segments, data.offsets, "segments")
        found = np.zeros(len(runs.start))
        most = np.append(longest(self.length_scores_), 0)  # unknown labels have no segments
        order = np.argsort(runs.start, kind="stable")
        order = order[(runs.stop - runs.start <= most[runs.label])[order]]
        starts = runs.start[order]

        def ask(structure: Structure, chunk: Chunk, scores: Potentials) -> None:
            begin, end = chunk.tokens.start, chunk.tokens.stop
            own = order[slice(*np.searchsorted(starts, [begin, end]))]
            part = Segmentation(runs.start[own] - begin, runs.stop[own] - begin, runs.label[own])
            scores = with_fixed(scores, known[chunk.tokens])
            found[own] = _probabilities(structure, scores, part)

        self._each_chunk(data, ask, fixed=known)
        sequence = np.searchsorted(data.offsets, runs.start, side="right") - 1
        counts = np.bincount(sequence, minlength=len(data))
        return np.split(found, np.cumsum(counts)[:-1]) if len(data) else []

    def likely_segments(self, X: Any, *, threshold: float = 0.5) -> list[list[ProbableSegment]]:
        """Return all segments with at least some probability, which may overlap.

        Parameters
        ----------
        X : iterable of sequences
            As for `predict`.
        threshold : float, default=0.5
            The least probability, above 0. A small one takes long.

        Returns
        -------
        list of S lists of ProbableSegment
            First token, the one after the last, label, probability: by first tokens, then by those
            after the last, then in the order of `classes_`. Tokens outside are left out.

        Raises
        ------
        NotFittedError
            Before `fit`.
        TypeError, ValueError
            As for `predict`, or if the threshold is not a number above 0 and at most 1.

        Notes
        -----
        A segment is at most as probable as its beginning, its end, and each token within it, so
        that few are asked for: `1 / threshold` labels at most begin at a token.
        """
        check_number("threshold", threshold)
        if not 0.0 < threshold <= 1.0:
            raise ValueError(f"threshold={threshold!r} must be above 0 and at most 1.")
        data = self._pack(X)
        found: dict[int, tuple[Segmentation, FloatArray]] = {}
        shown = np.array([label != OUTSIDE_LABEL for label in self.classes_.tolist()], bool)

        def ask(structure: Structure, chunk: Chunk, scores: Potentials) -> None:
            runs = _candidates(structure, scores, threshold * (1.0 - SPARE), shown)
            proba = _probabilities(structure, scores, runs)
            kept, begin = np.flatnonzero(proba >= threshold), chunk.tokens.start
            runs = Segmentation(runs.start[kept] + begin, runs.stop[kept] + begin, runs.label[kept])
            found[chunk.first] = runs, proba[kept]

        self._each_chunk(data, ask)
        sequences: list[list[ProbableSegment]] = [[] for _ in range(len(data))]
        for _, (runs, proba) in sorted(found.items(), key=lambda item: item[0]):
            placed = zip(self._placed(runs, data.offsets), proba.tolist(), strict=True)
            for (s, segment), probability in placed:
                sequences[s].append(ProbableSegment(*segment, probability))
        return sequences

    def expected_lengths(self, X: Any) -> FloatArray:
        """Return how many segments of each length and label the model expects in sequences.

        Parameters
        ----------
        X : iterable of sequences
            As for `predict`.

        Returns
        -------
        ndarray of shape (L, K)
            Expected numbers of segments of the lengths 1, ..., L and of each label. Divided by the
            sums of its columns, these are distributions of lengths.

        Raises
        ------
        NotFittedError
            Before `fit`.
        TypeError, ValueError
            As for `predict`.
        """
        data = self._pack(X)
        found: dict[int, FloatArray] = {}

        def count(structure: Structure, chunk: Chunk, scores: Any) -> None:
            expected = structure.zeros(scores)
            structure.log_partition(scores, np.ones(len(scores.offsets) - 1), expected)
            rows = slice(scores.n_transitions, scores.n_transitions + scores.n_lengths)
            found[chunk.first] = expected.pair[rows].copy()

        self._each_chunk(data, count, share=SHARE)
        total = np.zeros(self.length_scores_.shape)
        for first in sorted(found):
            total += found[first]
        return total


def _at_most(n: int, length: int, n_labels: int) -> int:
    """Return `n`, or how many segmentations there are without limits, if these are fewer."""
    count = n_labels if length else 1
    for _ in range(length - 1):  # each further token begins a segment of a label, or goes on
        if count >= n:
            break
        count *= n_labels + 1
    return min(n, count)


def _probabilities(structure: Structure, scores: Any, runs: Segmentation) -> FloatArray:
    """Return the probability of each segment, shape (n,)."""
    if not len(runs.start):
        return np.zeros(0)
    proba = span_probabilities(structure, scores, runs.start, runs.stop)
    return np.minimum(proba[np.arange(len(runs.start)), runs.label], 1.0)


def _candidates(
    structure: Structure, scores: Any, least: float, shown: NDArray[np.bool_]
) -> Segmentation:
    """Return the segments that may have a probability of `least`, in order.

    Each is at most as probable as its beginning, its end, and going on at its other tokens.
    """
    size, n_lengths = scores.n_labels, scores.n_lengths
    expected = structure.zeros(scores)
    structure.log_partition(scores, np.ones(len(scores.offsets) - 1), expected)
    likely = expected.unary >= least
    on, begins, ends = (likely[:, i * size : (i + 1) * size] & shown for i in range(3))
    start, label = np.nonzero(begins)
    after = scores.offsets[np.searchsorted(scores.offsets, start, side="right")]
    found = []
    for length in range(1, n_lengths + 1):
        hit = ends[start + length - 1, label]
        found.append((start[hit], start[hit] + length, label[hit]))
        goes = np.flatnonzero(start + length < after)
        goes = goes[on[start[goes] + length, label[goes]]]
        start, label, after = start[goes], label[goes], after[goes]
    runs = Segmentation(*(np.concatenate(parts) for parts in zip(*found, strict=True)))
    order = np.lexsort(runs[::-1])
    return Segmentation(*(part[order] for part in runs))
