"""Labels of segments: how long they may be, and which label may follow which."""

from __future__ import annotations

import difflib
from collections.abc import Hashable, Mapping
from typing import Any, NamedTuple

import numpy as np

from crfkit._types import BoolArray, CodeArray, FloatArray, IntArray, ObjectArray
from crfkit._warnings import warn_user
from crfkit.data.labels import UNKNOWN
from crfkit.data.soft import SoftLabels
from crfkit.data.validation import token_place
from crfkit.labels.base import Coded, FittedLabels, Known, LabelSpace
from crfkit.labels.fields import are_segments, lists
from crfkit.labels.schemes import CONLL, OUTSIDE_LABEL, RUNS, is_tag, parse_tag
from crfkit.labels.segmentation import (
    ANY,
    BEGINS,
    EITHER,
    ReadSegments,
    Segmentation,
    SegmentCoding,
    illegible,
    known_segments,
    read_segments,
    segmentation_of,
    single_labels,
)

NO_LIMIT = np.iinfo(np.int64).max
# From which likeness on, of 0 to 1, a name may be a slip for another: above ADVP and ADJP.
ALIKE = 0.8
_TOO_LONG = (
    "Raise max_length, leave it out to have it learned, or have such segments cut: "
    "limits=SegmentLimits(too_long='split')."
)
_TOO_SHORT = (
    "Lower min_length, or correct the labels; it may be what is left of a segment that was cut at "
    "max_length."
)


class Limits(NamedTuple):
    """Longest and shortest length of the segments of each label, and which may follow which."""

    most: IntArray  # (K,)
    least: IntArray  # (K,)
    forbidden: BoolArray  # (K, K)


class SegmentLabels(LabelSpace):
    """A label for each segment; `segments` says what the user wants, None for a fitted model."""

    of_segments = True

    def __init__(self, segments: Any) -> None:
        self.segments = segments

    def read(self, y: Any, offsets: IntArray) -> Coded:
        """Return the codes of the segments that labels stand for, which keep the limits."""
        if isinstance(y, SoftLabels):
            raise ValueError(
                "y are SoftLabels, but distributions over the labels of single tokens are none "
                "over segmentations: give their most probable labels, y.argmax(), or fit a "
                "CRFClassifier."
            )
        read = read_segments(y, offsets, self.segments.scheme, OUTSIDE_LABEL)
        if read.hidden is not None and read.hidden.all():
            raise ValueError("no token of y has a known label, all are UNLABELED.")
        check_names(self.segments, read)
        size, classes, codes = len(read.classes), read.classes, read.codes.copy()
        read, long = read._replace(codes=codes), self.segments.outside == "long"
        if long:
            _join(read, offsets)
        runs = known_segments(read.targets(offsets, long), offsets, size)
        limits = find_limits(self.segments, read.coding, classes, runs)
        most = limits.most
        if self.segments._limits().too_long != "split":
            most = np.where(is_outside(classes), most, NO_LIMIT)
        _cut(codes, offsets, size, most)
        targets = read.targets(offsets, long)
        known = single_labels(known_segments(targets, offsets, size))
        check_limits(known, offsets, classes, limits)
        return Coded(classes, codes, read.coding, targets.allowed)

    def coding(self, fitted: FittedLabels) -> SegmentCoding:
        """Return how the codes of a fitted model are read and written."""
        return SegmentCoding(fitted.scheme_, OUTSIDE_LABEL)

    def codes(self, fitted: FittedLabels, y: Any, offsets: IntArray) -> Known:
        """Return which codes tokens may have, and whether the model can have their labels: (N,).

        Of what labels leave open, see `EITHER`. Tags that the scheme cannot write are not known.
        """
        coding, sequences = self.coding(fitted), lists(y)
        listed = are_segments(sequences, offsets)
        legible = np.ones(len(sequences), bool)
        if not listed:
            legible = ~illegible(sequences, coding.scheme, OUTSIDE_LABEL)
            sequences = [
                tags if good else [OUTSIDE_LABEL] * len(tags)
                for tags, good in zip(sequences, legible.tolist(), strict=True)
            ]
        read = read_segments(sequences, offsets, fitted.scheme_, OUTSIDE_LABEL)
        if read.options is not None:
            raise ValueError("a segment of y has a set of labels, but needs a known one here.")
        labels = coding.places(read.classes, fitted.classes_)[read.labels]
        known = ((labels != UNKNOWN) | read.hidden_tokens) & np.repeat(legible, np.diff(offsets))
        labels[~known | read.hidden_tokens] = 0
        outside = read.labels == read.outside_code
        either = outside | (coding.merges and not listed)
        exact = labels + len(fitted.classes_) * (read.codes >= len(read.classes))
        codes = np.where(either, EITHER - labels, exact)
        if read.hidden is not None:
            behind = np.roll(read.hidden | either, 1)
            behind[offsets[:-1][offsets[:-1] < len(behind)]] = True
            codes[read.hidden] = np.where(behind, ANY, BEGINS)[read.hidden]
        return Known(codes.astype(np.int32), known)


def _join(read: ReadSegments, offsets: IntArray) -> None:
    """Make one segment of each run of tokens outside of spans."""
    is_outside = (read.labels == read.outside_code) & ~read.hidden_tokens
    again = is_outside & np.roll(is_outside, 1)
    again[offsets[:-1][offsets[:-1] < len(again)]] = False
    read.codes[again] = read.outside_code


def _cut(codes: CodeArray, offsets: IntArray, size: int, most: IntArray) -> None:
    """Cut the segments that are longer than what is given for their labels."""
    runs = segmentation_of(codes, offsets, size)
    for i in np.flatnonzero(runs.stop - runs.start > most[runs.label]):
        k = runs.label[i]
        codes[runs.start[i] : runs.stop[i] : most[k]] = k + size


def find_limits(
    segments: Any, coding: SegmentCoding, classes: ObjectArray, runs: Segmentation
) -> Limits:
    """Return what a user says of segments, for each label, and the lengths that are learned."""
    size, given = len(classes), segments._limits()
    place = {coding.key(label): k for k, label in enumerate(classes.tolist())}
    seen = np.zeros(size, np.int64)
    np.maximum.at(seen, runs.label, runs.stop - runs.start)
    most = _by_label(segments.max_length, seen, coding, place)
    least = _by_label(given.min_length, np.ones(size, np.int64), coding, place)
    outside = is_outside(classes)
    if segments.outside == "single":
        most[outside] = 1
    if not isinstance(given.min_length, Mapping):  # one number is not for tokens outside
        least[outside] = 1
    forbidden = np.zeros((size, size), bool)
    for pair in given.forbidden:
        before, after = map(coding.key, pair)
        if before in place and after in place:
            forbidden[place[before], place[after]] = True
    return Limits(most, least, forbidden)


def is_outside(classes: ObjectArray) -> BoolArray:
    """Return which of the labels, at most one, is that of tokens outside: (K,)."""
    return np.array([label == OUTSIDE_LABEL for label in classes.tolist()], bool)


def longest(length_scores: FloatArray) -> IntArray:
    """Return the longest length of the segments of each label, (K,); 0 if all are forbidden."""
    allowed = length_scores > -np.inf
    lengths: IntArray = (allowed * np.arange(1, len(allowed) + 1)[:, None]).max(axis=0)
    return lengths


def _by_label(
    given: Any, default: IntArray, coding: SegmentCoding, place: Mapping[Hashable, int]
) -> IntArray:
    """Return a number for each label, given one for all, some by label, or None."""
    if given is not None and not isinstance(given, Mapping):
        return np.full(len(default), int(given))
    found = default.copy()
    for label, number in (given or {}).items():
        if coding.key(label) in place:  # a part of the data may lack a label
            found[place[coding.key(label)]] = int(number)
    return found


def check_names(segments: Any, coded: ReadSegments) -> None:
    """Raise ValueError if a label is named as a tag, or twice; warn of what looks like a slip."""
    coding, limits = coded.coding, segments._limits()
    known = {coding.key(label): label for label in coded.classes.tolist()}
    lengths = {"max_length": segments.max_length, "min_length": limits.min_length}
    named = {name: list(given) for name, given in lengths.items() if isinstance(given, Mapping)}
    steps = [label for pair in limits.forbidden for label in pair]
    for name, labels in (*named.items(), ("forbidden", steps)):
        for label in labels:
            _check_no_tag(name, label, coding, known)
    for name, labels in named.items():
        first: dict[Hashable, Hashable] = {}
        for label in labels:
            other = first.setdefault(coding.key(label), label)
            if other is not label:
                raise ValueError(
                    f"{name}: {other!r} and {label!r} are the same label in tags. Leave one out."
                )
        if not any(coding.key(label) in known for label in labels):
            _warn_of_slip(name, labels, list(known.values()))


def _warn_of_slip(name: str, labels: list[Hashable], known: list[Hashable]) -> None:
    """Warn if a label that a dict names looks like a known one: others may be of other data."""
    plain = {str(label).casefold(): label for label in known}
    for label in labels:
        close = difflib.get_close_matches(str(label).casefold(), plain, 1, ALIKE)
        if close and label != OUTSIDE_LABEL:
            warn_user(
                f"{name} names none of the labels of y, which are {known}, but {labels!r:.80}: it "
                f"has no effect. Is {label!r} meant to be {plain[close[0]]!r}?"
            )
            return


def _check_no_tag(
    name: str, label: Hashable, coding: SegmentCoding, known: Mapping[Hashable, Hashable]
) -> None:
    if coding.scheme == RUNS or coding.key(label) in known or not is_tag(label, CONLL):
        return
    kind = parse_tag(label, CONLL)[1]
    if kind in known:
        raise ValueError(
            f"{name}: {label!r} is a tag, but the labels of segments have no letters of tags. "
            f"Write {known[kind]!r}."
        )


def check_limits(
    runs: Segmentation, offsets: IntArray, classes: ObjectArray, limits: Limits
) -> None:
    """Raise ValueError if a segment is too long, too short, or follows one it may not follow."""
    sizes, names = runs.stop - runs.start, classes[runs.label]
    for name, limit, wrong, remedy in (
        ("max_length", limits.most, sizes > limits.most[runs.label], _TOO_LONG),
        ("min_length", limits.least, sizes < limits.least[runs.label], _TOO_SHORT),
    ):
        if wrong.any():
            i = int(np.argmax(wrong))
            raise ValueError(
                f"{token_place(offsets, runs.start[i])}: the segment of label {names[i]!r} has "
                f"{sizes[i]} tokens, but {name} is {limit[runs.label[i]]}. {remedy}"
            )
    follows = (runs.start[1:] == runs.stop[:-1]) & ~np.isin(runs.start[1:], offsets)
    wrong = follows & limits.forbidden[runs.label[:-1], runs.label[1:]]
    if wrong.any():
        i = int(np.argmax(wrong))
        before, after = names[i], names[i + 1]
        raise ValueError(
            f"{token_place(offsets, runs.start[i + 1])}: a segment of label {after!r} follows "
            f"one of {before!r}, which the limits forbid. Take the pair ({before!r}, "
            f"{after!r}) out of `forbidden`, or correct the labels."
        )
