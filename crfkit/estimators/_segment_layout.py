"""Labels of segments: how they are learned, and what their weights are called."""

from __future__ import annotations

import re
from collections.abc import Hashable, Mapping
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from crfkit._types import CodeArray, FloatArray, IntArray
from crfkit.data.labels import UNKNOWN
from crfkit.estimators._coding import Coded, SegmentCoding, are_segments, lists, read_segments
from crfkit.estimators._fixing import EITHER
from crfkit.estimators._layout import ChainLayout, in_order, weight_matrix, weight_places
from crfkit.features.lengths import length_basis
from crfkit.scores.segments import TOKEN_PARTS, LengthScores, SegmentScores
from crfkit.scores.selection import Runs, choose_segment_features, runs_of
from crfkit.scores.steps import ObservedSteps

NO_LIMIT = np.iinfo(np.int64).max
# The label of tokens outside of all spans.
OUTSIDE = "O"
# Attributes whose names begin so count for first, last or single tokens of segments alone; the name
# of a part of a union may stand before.
END = re.compile(r"(?:[\w.-]+__)*seg\.(first|last|single)\.")


class SegmentLayout(ChainLayout):
    """A label for each segment.

    Parameters
    ----------
    segments : Segments
        What the user says of them.
    """

    FITTED: ClassVar[tuple[str, ...]] = (
        *ChainLayout.FITTED, "first_coef_", "last_coef_", "single_coef_", "length_scores_",
        "segment_coef_",
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
        size, classes, codes = len(coded.classes), coded.classes, coded.codes.copy()
        _join(codes, offsets, classes, self.segments.outside)
        most, least = self._limits(runs_of(codes, offsets, size), classes)
        _cut(codes, offsets, size, self._cut_at(most, classes))
        runs = runs_of(codes, offsets, size)
        _check_most(runs, offsets, classes, most)
        _check_least(runs, offsets, classes, least)
        _check_steps(runs, offsets, classes, self._forbidden(classes))
        return coded._replace(codes=codes)

    def coding(self, fitted: Any) -> SegmentCoding:
        """Return what the codes of a fitted model stand for."""
        return SegmentCoding(fitted.scheme_, OUTSIDE)

    def codes(self, fitted: Any, y: Any, offsets: IntArray) -> tuple[CodeArray, NDArray[np.bool_]]:
        """Return which codes tokens may have, and whether the model knows their labels: (N,).

        What labels leave open (how tokens outside are cut; how a run of labels is) is open there:
        see :mod:`crfkit.estimators._fixing`.
        """
        coding, sequences = self.coding(fitted), lists(y)
        coded = read_segments(sequences, offsets, fitted.scheme_, OUTSIDE)
        size, names = len(coded.classes), coded.classes.tolist()
        which = coded.codes % max(size, 1)
        labels = coding.places(coded.classes, fitted.classes_)[which]
        known = labels != UNKNOWN
        labels[~known] = 0
        open_ = np.array([name == OUTSIDE for name in names], bool)[which]
        if coding.merges and not are_segments(sequences, offsets, fitted.scheme_):
            open_[:] = True
        exact = labels + len(fitted.classes_) * (coded.codes >= size)
        return np.where(open_, EITHER - labels, exact).astype(np.int32), known

    def labels(self, fitted: Any, y: Any, offsets: IntArray) -> Any:
        """Return true labels in the form of predicted ones: segments as tags."""
        return self.coding(fitted).as_predicted(y, offsets)

    def choose(self, estimator: Any, training: Any) -> SegmentScores:
        """Return the score model with the weights that are to be fitted."""
        size = len(training.classes)
        runs = runs_of(training.codes, training.data.offsets, size)
        most, least = self._limits(runs, training.classes)
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
            "last_coef_": sp.csr_array(state[:, 2 * k : 3 * k]),
            "single_coef_": sp.csr_array(state[:, 3 * k :]),
            "length_scores_": weights.lengths,
            "segment_coef_": own,
            "scheme_": coding.scheme,
        }

    def model(self, fitted: Any, layout: tuple[int, ...]) -> tuple[SegmentScores, Any]:
        """Return the score model of fitted weights, and the weights in their places."""
        source, target = np.nonzero(fitted.transitions_)
        parts = fitted.coef_, fitted.first_coef_, fitted.last_coef_, fitted.single_coef_
        state = in_order(sp.csr_array(sp.hstack(parts)))
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

    def _limits(self, runs: Runs, classes: NDArray[np.object_]) -> tuple[IntArray, IntArray]:
        """Return the longest and the shortest length of the segments of each label, both (K,).

        A number for all labels is no least length of tokens outside.
        """
        labels = classes.tolist()
        seen = np.zeros(len(labels), np.int64)
        np.maximum.at(seen, runs.label, runs.stop - runs.start)
        most = _by_label(self.segments.max_length, labels, seen)
        given = self.segments._limits().min_length
        least = _by_label(given, labels, np.ones(len(labels), np.int64))
        outside = np.array([label == OUTSIDE for label in labels], bool)
        if self.segments.outside == "single":
            most[outside] = 1
        if not isinstance(given, Mapping):
            least[outside] = 1
        return most, least

    def _cut_at(self, most: IntArray, classes: NDArray[np.object_]) -> IntArray:
        """Return the length at which segments of each label are cut, (K,)."""
        if self.segments._limits().too_long == "split":
            return most
        outside = np.array([label == OUTSIDE for label in classes.tolist()], bool)
        return np.where(outside, most, NO_LIMIT)

    def _lengths(self, most: IntArray, least: IntArray) -> LengthScores:
        """Return how the scores of lengths are made."""
        longest = int(most.max(initial=1))
        found = length_basis(self.segments.length, longest)
        lengths = np.arange(1, longest + 1)[:, None]
        fixed = np.where((lengths <= most) & (lengths >= least), found.fixed[:, None], -np.inf)
        chosen = np.ones((found.basis.shape[1], len(most)), bool)
        return LengthScores(fixed, found.basis, chosen)

    def _parts(self, data: Any) -> NDArray[np.bool_]:
        """Return which attributes count for all, first, last, and single tokens, shape (D, 4)."""
        wanted = np.array([part in self.segments.token_parts for part in TOKEN_PARTS])
        parts = np.tile(wanted, (data.n_features, 1))
        for attribute, name in enumerate(() if data.names is None else data.feature_names):
            end = END.match(str(name))
            if end:
                parts[attribute] = np.array(TOKEN_PARTS) == end[1]
        return parts

    def _forbidden(self, classes: NDArray[np.object_]) -> NDArray[np.bool_]:
        """Return the steps that are not allowed, shape (K, K)."""
        place = {label: k for k, label in enumerate(classes.tolist())}
        forbidden = np.zeros((len(place), len(place)), bool)
        for before, after in self.segments._limits().forbidden:
            if before in place and after in place:  # a part of the data may lack a label
                forbidden[place[before], place[after]] = True
        return forbidden


def _by_label(given: Any, labels: list[Hashable], default: IntArray) -> IntArray:
    """Return a number for each label, given one for all, some by label, or None."""
    if given is None:
        return default.copy()
    if not isinstance(given, Mapping):
        return np.full(len(labels), int(given))
    pairs = zip(labels, default.tolist(), strict=True)
    return np.array([int(given.get(label, number)) for label, number in pairs], np.int64)


def _join(codes: CodeArray, offsets: IntArray, classes: NDArray[np.object_], outside: str) -> None:
    """Make one segment of each run of tokens outside of spans, where these are to be long."""
    size, labels = len(classes), classes.tolist()
    if outside == "single" or OUTSIDE not in labels:
        return
    k = labels.index(OUTSIDE)
    again = np.zeros(len(codes), bool)
    again[1:] = (codes[1:] % size == k) & (codes[:-1] % size == k)
    again[offsets[:-1][offsets[:-1] < len(codes)]] = False
    codes[again] = k


def _cut(codes: CodeArray, offsets: IntArray, size: int, most: IntArray) -> None:
    """Cut the segments that are longer than what is given for their labels."""
    runs = runs_of(codes, offsets, size)
    for i in np.flatnonzero(runs.stop - runs.start > most[runs.label]):
        k = runs.label[i]
        codes[runs.start[i] : runs.stop[i] : most[k]] = k + size


def longest(length_scores: FloatArray) -> IntArray:
    """Return the longest length of the segments of each label, (K,); 0 if all are forbidden."""
    allowed = length_scores > -np.inf
    lengths: IntArray = (allowed * np.arange(1, len(allowed) + 1)[:, None]).max(axis=0)
    return lengths


def _check_most(
    runs: Runs, offsets: IntArray, classes: NDArray[np.object_], most: IntArray
) -> None:
    """Raise ValueError if a segment is longer than is allowed."""
    sizes = runs.stop - runs.start
    wrong = np.flatnonzero(sizes > most[runs.label])
    if len(wrong):
        i, k = int(wrong[0]), int(runs.label[wrong[0]])
        raise ValueError(
            f"{_place(runs.start[i], offsets)}: the segment of label {classes[k]!r} has "
            f"{sizes[i]} tokens, but max_length is {most[k]}. Raise max_length, leave it out to "
            "have it learned, or have such segments cut: "
            "constraints=SegmentConstraints(too_long='split')."
        )


def _check_least(
    runs: Runs, offsets: IntArray, classes: NDArray[np.object_], least: IntArray
) -> None:
    """Raise ValueError if a segment is shorter than is allowed."""
    sizes = runs.stop - runs.start
    short = np.flatnonzero(sizes < least[runs.label])
    if len(short):
        i, k = int(short[0]), int(runs.label[short[0]])
        raise ValueError(
            f"{_place(runs.start[i], offsets)}: the segment of label {classes[k]!r} has "
            f"{sizes[i]} tokens, but min_length is {least[k]}. Lower min_length, or correct the "
            "labels; it may be what is left of a segment that was cut at max_length."
        )


def _check_steps(
    runs: Runs, offsets: IntArray, classes: NDArray[np.object_], forbidden: NDArray[np.bool_]
) -> None:
    """Raise ValueError if a segment follows one that it may not follow."""
    follows = ~np.isin(runs.start[1:], offsets)
    wrong = np.flatnonzero(follows & forbidden[runs.label[:-1], runs.label[1:]])
    if len(wrong):
        i = int(wrong[0])
        before, after = (classes[k] for k in runs.label[i : i + 2].tolist())
        raise ValueError(
            f"{_place(runs.start[i + 1], offsets)}: a segment of label {after!r} follows one of "
            f"{before!r}, which the constraints forbid. Take the pair ({before!r}, {after!r}) out "
            "of `forbidden`, or correct the labels."
        )


def _place(token: int, offsets: IntArray) -> str:
    """Return what messages call a token."""
    s = int(np.searchsorted(offsets, token, side="right")) - 1
    return f"sequence {s}, position {token - offsets[s]}"
