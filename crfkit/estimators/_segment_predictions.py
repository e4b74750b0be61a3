"""What can be asked of a fitted model of segments."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Any, NamedTuple

import numpy as np

from crfkit._types import Chunk, CodeArray, FloatArray, IntArray, Scores
from crfkit.data import PackedSequences
from crfkit.estimators._base import LinearChainClassifier
from crfkit.estimators._segment_layout import OUTSIDE
from crfkit.scores.selection import Runs, runs_of
from crfkit.structures import Structure
from crfkit.structures.semimarkov import span_probabilities


class Segment(NamedTuple):
    """A segment: its first token, the one after its last, its label."""

    start: int
    stop: int
    label: Hashable


class SegmentPredictions(LinearChainClassifier):
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
            As for `predict`, or if fixed segments are not within their sequence, overlap, have an
            unknown label, or leave no segmentation.
        """
        data = self._pack(X)
        known = None if fixed is None else self._fixed(fixed, data)
        codes = self._best_codes(data, known)
        return self._segments_of(runs_of(codes, data.offsets, len(self.classes_)), data.offsets)

    def _best_codes(self, data: PackedSequences, fixed: CodeArray | None) -> CodeArray:
        """Return the codes of the best segmentation with the codes that are fixed (or -1)."""
        codes: CodeArray = np.empty(data.n_tokens, np.int32)

        def decode(structure: Structure, chunk: Chunk, scores: Scores) -> None:
            if fixed is not None:
                scores = _with_fixed(scores, fixed[chunk.tokens])
            codes[chunk.tokens] = structure.max(scores)[0]

        self._each_chunk(data, decode)
        return codes

    def _fixed(self, fixed: Any, data: PackedSequences) -> CodeArray:
        """Return the code that each token has to have, -1 for any, and -2 for any beginning."""
        runs = self._given(fixed, data, "fixed")
        size = len(self.classes_)
        codes = np.full(data.n_tokens + 1, -1, np.int32)
        codes[runs.stop] = -2
        codes[data.offsets[:-1]] = -1
        for start, stop, label in zip(*(part.tolist() for part in runs), strict=True):
            codes[start:stop] = label
            codes[start] = label + size
        return codes[:-1]

    def _given(self, segments: Any, data: PackedSequences, name: str) -> Runs:
        """Return segments that the user lists for each sequence, numbered through."""
        place = {label: k for k, label in enumerate(self.classes_.tolist())}
        listed = list(segments)
        if len(listed) != len(data):
            raise ValueError(
                f"X has {len(data)} sequences, but {name} has {len(listed)} lists of segments."
            )
        found: list[tuple[int, int, int]] = []
        for s, (begin, end) in enumerate(
            zip(data.offsets[:-1].tolist(), data.offsets[1:].tolist(), strict=True)
        ):
            last = 0
            for start, stop, label in sorted(listed[s], key=lambda item: tuple(item[:2])):
                if not last <= start < stop <= end - begin or label not in place:
                    raise ValueError(
                        f"{name}, sequence {s}: the segment ({start}, {stop}, {label!r}) is empty, "
                        f"overlaps with another one, is not within the {end - begin} tokens, or "
                        "its label is unknown to the model."
                    )
                found.append((begin + start, begin + stop, place[label]))
                last = stop if name == "fixed" else 0
        return Runs(*np.array(found, np.int64).reshape(-1, 3).T)

    def _segments_of(self, runs: Runs, offsets: IntArray) -> list[list[Segment]]:
        """Return runs as the segments of each sequence, without those of tokens outside."""
        classes = self.classes_.tolist()
        found: list[list[Segment]] = [[] for _ in range(len(offsets) - 1)]
        sequence = np.searchsorted(offsets, runs.start, side="right") - 1
        rows = zip(*(part.tolist() for part in (sequence, *runs)), strict=True)
        for s, start, stop, k in rows:
            if classes[k] != OUTSIDE or self.scheme_ == "runs":
                begin = int(offsets[s])
                found[s].append(Segment(start - begin, stop - begin, classes[k]))
        return found


class SegmentProbabilities(SegmentPredictions):
    """Probabilities of segments."""

    def predict_segment_proba(self, X: Any, segments: Any = None) -> list[FloatArray]:
        """Return the probabilities of segments.

        Parameters
        ----------
        X : iterable of sequences
            As for `predict`.
        segments : iterable of S lists of (start, stop, label), optional
            Segments of each sequence, which may overlap; those of `predict_segments` if not given.

        Returns
        -------
        list of S ndarrays
            The probability of each segment: that the sequence has it, with these ends.

        Raises
        ------
        NotFittedError
            Before `fit`.
        TypeError, ValueError
            As for `predict`, or if a segment is not within its sequence or has an unknown label.
        """
        data = self._pack(X)
        listed = self.predict_segments(data) if segments is None else [list(s) for s in segments]
        order = [sorted(range(len(one)), key=lambda i: tuple(one[i][:2])) for one in listed]
        runs = self._given(listed, data, "segments")
        found = np.zeros(len(runs.start))

        def ask(structure: Structure, chunk: Chunk, scores: Scores) -> None:
            low, high = np.searchsorted(runs.start, [chunk.tokens.start, chunk.tokens.stop])
            begin = chunk.tokens.start
            proba = span_probabilities(
                structure, scores, runs.start[low:high] - begin, runs.stop[low:high] - begin
            )
            found[low:high] = proba[np.arange(high - low), runs.label[low:high]]

        self._each_chunk(data, ask)
        ends = np.cumsum([len(one) for one in listed])
        result = []
        for places, part in zip(order, np.split(found, ends[:-1]), strict=True):
            unsorted = np.empty(len(part))
            unsorted[places] = part
            result.append(unsorted)
        return result


def _with_fixed(scores: Scores, fixed: CodeArray) -> Scores:
    """Return scores that forbid all codes but the fixed ones."""
    unary, size = scores.unary.copy(), scores.n_codes
    known = np.flatnonzero(fixed >= 0)
    unary[known, :size] = -np.inf
    unary[known, fixed[known]] = scores.unary[known, fixed[known]]
    unary[fixed == -2, : size // 2] = -np.inf
    return scores._replace(unary=unary)
