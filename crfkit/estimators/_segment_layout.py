"""Labels of segments: how they are learned, and what their weights are called."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from crfkit._params import check_option, check_whole
from crfkit._types import CodeArray, FloatArray, IntArray
from crfkit.data.labels import UNKNOWN, iterate_sequences
from crfkit.estimators._coding import Coded, SegmentCoding, is_segments, read_segments
from crfkit.estimators._layout import ChainLayout, in_order, step_matrix, weight_matrix, weight_places
from crfkit.features.lengths import length_basis
from crfkit.scores.attributes import AttributeWeights
from crfkit.scores.segments import TOKEN_PARTS, LengthScores, SegmentScores
from crfkit.scores.selection import Runs, choose_segment_features, runs_of
from crfkit.scores.steps import ObservedSteps

# The label of tokens outside of all spans.
OUTSIDE = "O"
# Attributes whose names begin so count for first, or for last tokens of segments alone.
FIRST, LAST = "seg.first.", "seg.last."


class SegmentLayout(ChainLayout):
    """A label for each segment.

    Parameters
    ----------
    segments : Segments
        What the user says of them.
    """

    FITTED: ClassVar[tuple[str, ...]] = (
        *ChainLayout.FITTED, "first_coef_", "last_coef_", "length_scores_", "segment_coef_",
    )  # fmt: skip

    def __init__(self, segments: Any) -> None:
        self.segments = segments

    def read(self, y: Any, offsets: IntArray) -> Coded:
        """Return the codes of the segments that labels stand for.

        Raises
        ------
        ValueError, TypeError
            If the labels do not fit the sequences, cannot be read, or a segment is longer or
            shorter than is allowed.
        """
        coded = read_segments(y, offsets, self.segments.scheme, OUTSIDE)
        size, labels = len(coded.classes), coded.classes.tolist()
        codes = coded.codes.copy()
        if self.segments.outside == "long" and OUTSIDE in labels:
            _join(codes, offsets, labels.index(OUTSIDE), size)
        most, _ = self._limits(runs_of(codes, offsets, size), coded.classes)
        _cut(codes, offsets, coded.classes, most, self.segments._limits().too_long == "split")
        return coded._replace(codes=codes)

    def coding(self, fitted: Any) -> SegmentCoding:
        """Return what the codes of a fitted model stand for."""
        return SegmentCoding(fitted.scheme_, OUTSIDE)

    def codes(
        self, fitted: Any, y: Any, offsets: IntArray
    ) -> tuple[CodeArray, NDArray[np.bool_]]:
        """Return codes of segments for a fitted model, and whether it knows the label, both (N,)."""
        coded = self._as_fitted(fitted, y, offsets)
        place = {label: k for k, label in enumerate(fitted.classes_.tolist())}
        numbers = np.array([place.get(label, UNKNOWN) for label in coded.classes.tolist()], int)
        labels = numbers[coded.codes % max(len(numbers), 1)] if len(numbers) else coded.codes
        known = labels != UNKNOWN
        begins = coded.codes >= len(coded.classes)
        codes = np.where(known, labels, 0) + len(place) * begins
        return codes.astype(np.int32), known

    def labels(self, fitted: Any, y: Any, offsets: IntArray) -> Any:
        """Return true labels in the form of predicted ones: segments as tags."""
        listed = [list(sequence) for sequence in iterate_sequences(y, "y")]
        if not is_segments(listed):
            return listed
        coded = self._as_fitted(fitted, listed, offsets)
        return coded.coding.write(coded.codes, coded.classes, offsets)

    def _as_fitted(self, fitted: Any, y: Any, offsets: IntArray) -> Coded:
        """Read labels as those of the training data were."""
        coded = read_segments(y, offsets, fitted.scheme_, OUTSIDE)
        codes, labels = coded.codes.copy(), coded.classes.tolist()
        if fitted.outside_ == "long" and OUTSIDE in labels:
            _join(codes, offsets, labels.index(OUTSIDE), len(labels))
        return coded._replace(codes=codes)

    def choose(self, estimator: Any, training: Any) -> SegmentScores:
        """Return the score model with the weights that are to be fitted."""
        size = len(training.classes)
        runs = runs_of(training.codes, training.data.offsets, size)
        most, least = self._limits(runs, training.classes)
        _check_least(runs, training.data.offsets, training.classes, least)
        return choose_segment_features(
            training.data, training.codes, size, lengths=self._lengths(most, least),
            parts=self._parts(training.data), forbidden=self._forbidden(training.classes),
            min_freq=estimator.min_freq, all_states=estimator.all_possible_states,
            all_steps=estimator.all_possible_transitions, boundaries=estimator.boundary_weights,
        )  # fmt: skip

    def attributes(
        self, model: Any, parameters: FloatArray, classes: NDArray[np.object_], coding: Any
    ) -> dict[str, Any]:
        """Return parameters as fitted attributes."""
        weights, k = model.bind(parameters), model.n_labels
        plain = super().attributes(model, parameters, classes, coding)
        state = plain["coef_"]
        plain["transitions_"][model.forbidden] = -np.inf
        own = None if model.segments is None else weight_matrix(model.segments, weights.segments)
        return plain | {
            "coef_": sp.csr_array(state[:, :k]),
            "first_coef_": sp.csr_array(state[:, k : 2 * k]),
            "last_coef_": sp.csr_array(state[:, 2 * k :]),
            "length_scores_": weights.lengths,
            "segment_coef_": own,
            "scheme_": coding.scheme,
            "outside_": self.segments.outside,
        }

    def model(self, fitted: Any, layout: tuple[int, ...]) -> tuple[SegmentScores, Any]:
        """Return the score model of fitted weights, and the weights in their places."""
        source, target = np.nonzero(fitted.transitions_)
        state = in_order(
            sp.csr_array(sp.hstack([fitted.coef_, fitted.first_coef_, fitted.last_coef_]))
        )
        triples = None if fitted.step_coef_ is None else in_order(fitted.step_coef_)
        own = None if fitted.segment_coef_ is None else in_order(fitted.segment_coef_)
        size = len(fitted.classes_)
        lengths = LengthScores(
            fitted.length_scores_, np.zeros((len(fitted.length_scores_), 0)),
            np.zeros((0, size), bool),
        )  # fmt: skip
        model = SegmentScores(
            weight_places(state, layout[0]), source, target, boundaries=True, lengths=lengths,
            steps=None if triples is None else ObservedSteps(weight_places(triples, layout[1])),
            segments=None if own is None else weight_places(own, layout[2]),
        )  # fmt: skip
        values = [
            state.data, fitted.transitions_[source, target], fitted.start_weights_,
            fitted.end_weights_, *(block.data for block in (triples, own) if block is not None),
        ]  # fmt: skip
        return model, model.bind(np.concatenate(values))

    def _limits(
        self, runs: Runs, classes: NDArray[np.object_]
    ) -> tuple[IntArray, IntArray]:
        """Return the longest and the shortest length of the segments of each label, both (K,)."""
        labels = classes.tolist()
        seen = np.zeros(len(labels), np.int64)
        np.maximum.at(seen, runs.label, runs.stop - runs.start)
        most = _by_label("max_length", self.segments.max_length, labels, seen)
        single = np.array([label == OUTSIDE for label in labels])
        if self.segments.outside == "single":
            most[single] = 1
        ones = np.ones(len(labels), np.int64)
        least = _by_label("min_length", self.segments._limits().min_length, labels, ones)
        wrong = least > most
        if wrong.any():
            k = int(np.argmax(wrong))
            raise ValueError(
                f"min_length={least[k]} of the label {labels[k]!r} is larger than its "
                f"max_length={most[k]}."
            )
        return most, least

    def _lengths(self, most: IntArray, least: IntArray) -> LengthScores:
        """Return how the scores of lengths are made."""
        longest = int(most.max(initial=1))
        found = length_basis(self.segments.length, longest)
        lengths = np.arange(1, longest + 1)[:, None]
        fixed = np.where((lengths <= most) & (lengths >= least), found.fixed[:, None], -np.inf)
        chosen = np.ones((found.basis.shape[1], len(most)), bool)
        return LengthScores(fixed, found.basis, chosen)

    def _parts(self, data: Any) -> NDArray[np.bool_]:
        """Return which attributes count for all, for first, and for last tokens, shape (D, 3)."""
        wanted = np.array([part in self.segments.token_parts for part in TOKEN_PARTS])
        parts = np.tile(wanted, (data.n_features, 1))
        if data.names is not None:
            for prefix, part in ((FIRST, 1), (LAST, 2)):
                named = [str(name).startswith(prefix) for name in data.feature_names]
                parts[np.array(named, bool)] = np.arange(3) == part
        return parts

    def _forbidden(self, classes: NDArray[np.object_]) -> NDArray[np.bool_]:
        """Return the steps that are not allowed, shape (K, K)."""
        place = {label: k for k, label in enumerate(classes.tolist())}
        forbidden = np.zeros((len(place), len(place)), bool)
        for before, after in self.segments._limits().forbidden:
            if before in place and after in place:  # a part of the data may lack a label
                forbidden[place[before], place[after]] = True
        return forbidden


def _by_label(name: str, given: Any, labels: list[Hashable], default: IntArray) -> IntArray:
    """Return a number for each label, given one for all, some by label, or None."""
    if given is None:
        return default.copy()
    if not isinstance(given, Mapping):
        check_whole(name, given, 1)
        return np.full(len(labels), int(given))
    numbers = default.copy()
    for k, label in enumerate(labels):
        if label in given:
            check_whole(f"{name}[{label!r}]", given[label], 1)
            numbers[k] = int(given[label])
    return numbers


def _join(codes: CodeArray, offsets: IntArray, outside: int, size: int) -> None:
    """Make one segment of each run of tokens outside of spans."""
    again = np.zeros(len(codes), bool)
    again[1:] = (codes[1:] % size == outside) & (codes[:-1] % size == outside)
    again[offsets[:-1][offsets[:-1] < len(codes)]] = False
    codes[again] = outside


def _cut(
    codes: CodeArray,
    offsets: IntArray,
    classes: NDArray[np.object_],
    most: IntArray,
    everything: bool,
) -> None:
    """Cut segments that are too long: those of tokens outside, and others if they may be."""
    size, runs = len(classes), runs_of(codes, offsets, len(classes))
    for i in np.flatnonzero(runs.stop - runs.start > most[runs.label]):
        start, stop, k = int(runs.start[i]), int(runs.stop[i]), int(runs.label[i])
        if not everything and classes[k] != OUTSIDE:
            s = int(np.searchsorted(offsets, start, side="right")) - 1
            raise ValueError(
                f"sequence {s}, position {start - offsets[s]}: the segment of label "
                f"{classes[k]!r} has {stop - start} tokens, but max_length is {most[k]}. Raise "
                "max_length, leave it out to have it learned, or have such segments cut: "
                "constraints=SegmentConstraints(too_long='split')."
            )
        codes[start : stop : most[k]] = k + size


def _check_least(
    runs: Runs, offsets: IntArray, classes: NDArray[np.object_], least: IntArray
) -> None:
    """Raise ValueError if a segment is shorter than is allowed."""
    short = runs.stop - runs.start < least[runs.label]
    if short.any():
        i = int(np.argmax(short))
        s = int(np.searchsorted(offsets, runs.start[i], side="right")) - 1
        raise ValueError(
            f"sequence {s}, position {runs.start[i] - offsets[s]}: the segment of label "
            f"{classes[runs.label[i]]!r} has {runs.stop[i] - runs.start[i]} tokens, but "
            f"min_length is {least[runs.label[i]]}. Lower min_length, or correct the labels."
        )
