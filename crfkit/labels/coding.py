"""From what users call labels to the codes that models learn, and back."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable
from numbers import Real
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from crfkit._types import CodeArray, IntArray, Segment
from crfkit.data import LabelSequences
from crfkit.data.labels import UNKNOWN, LabelStream, iterate_sequences, label_list, plain_label
from crfkit.data.packed import ranges
from crfkit.data.places import token_place
from crfkit.data.validation import check_lengths
from crfkit.labels.costs import Cost
from crfkit.labels.detect import find_scheme, illegible
from crfkit.labels.fields import segment_fields
from crfkit.labels.schemes import (
    CONLL,
    INSIDE,
    IO,
    IOB2,
    RUNS,
    UNTYPED,
    Scheme,
    get_scheme,
    write_tag,
)
from crfkit.labels.segmentation import Segmentation, segmentation_of
from crfkit.labels.spans import spans_of_all


class Coded(NamedTuple):
    """Labels as codes.

    Attributes
    ----------
    classes : ndarray of shape (K,)
        The labels.
    codes : ndarray of shape (N,)
        Codes of the tokens.
    coding : LabelCoding
        Reads and writes them.
    """

    classes: NDArray[np.object_]
    codes: CodeArray
    coding: Any


class LabelCoding(ABC):
    """How codes are read and written."""

    @abstractmethod
    def write(
        self, codes: CodeArray, classes: NDArray[np.object_], offsets: IntArray
    ) -> LabelSequences:
        """Return the labels that codes stand for."""

    @abstractmethod
    def restrict(self, codes: CodeArray, n_labels: int) -> tuple[IntArray, CodeArray]:
        """Return which labels occur, rising, and codes with respect to these."""

    @abstractmethod
    def cost(self, cost: Cost) -> Cost:
        """Return the cost of codes, given that of labels."""

    @abstractmethod
    def as_predicted(self, y: Any, offsets: IntArray) -> Any:
        """Return true labels in the form of predicted ones."""


class TokenCoding(LabelCoding):
    """A label is a code."""

    def write(
        self, codes: CodeArray, classes: NDArray[np.object_], offsets: IntArray
    ) -> LabelSequences:
        """Return the labels that codes stand for."""
        return LabelSequences.from_codes(codes, classes, offsets)

    def restrict(self, codes: CodeArray, n_labels: int) -> tuple[IntArray, CodeArray]:
        """Return which labels occur, rising, and codes with respect to these."""
        return _present(codes)

    def cost(self, cost: Cost) -> Cost:
        """Return the cost of codes, given that of labels."""
        return cost

    def as_predicted(self, y: Any, offsets: IntArray) -> Any:
        """Return true labels in the form of predicted ones."""
        return y


class SegmentCoding(LabelCoding):
    """A code tells the label of a segment, and whether the segment begins at the token.

    Parameters
    ----------
    scheme : str
        The scheme of the tags, or "runs": labels whose runs are segments. Tags of "conll" are read
        as the conlleval script does, and written as IOB2.
    outside : str
        The label of the segments of tokens outside of all spans.
    """

    def __init__(self, scheme: str, outside: str) -> None:
        self.scheme, self.outside = scheme, outside

    def write(
        self, codes: CodeArray, classes: NDArray[np.object_], offsets: IntArray
    ) -> LabelSequences:
        """Return the tags that codes stand for."""
        labels = codes % max(len(classes), 1)
        if self.scheme == RUNS:
            return LabelSequences.from_codes(labels, classes, offsets)
        tags = self._tags(classes)
        roles = self._roles(segmentation_of(codes, offsets, len(classes)), offsets)
        return LabelSequences.from_codes(labels * tags.shape[1] + roles, tags.ravel(), offsets)

    def restrict(self, codes: CodeArray, n_labels: int) -> tuple[IntArray, CodeArray]:
        """Return which labels occur, rising, and codes with respect to these."""
        present, labels = _present(codes % n_labels)
        return present, (labels + len(present) * (codes >= n_labels)).astype(np.int32)

    def cost(self, cost: Cost) -> Cost:
        """Return the cost of codes, given that of labels."""
        return cost.of_segments()

    def as_predicted(self, y: Any, offsets: IntArray) -> Any:
        """Return true labels in the form of predicted ones: segments as tags, tags as written."""
        sequences = lists(y)
        if not are_segments(sequences, offsets):
            return self._rewritten(sequences)
        coded = read_segments(sequences, offsets, self.scheme, self.outside)
        return coded.coding.write(coded.codes, coded.classes, offsets)

    def _rewritten(self, sequences: list[list[Any]]) -> list[list[Any]]:
        """Return labels in the scheme that predictions are written in, those of no tags as is."""
        if self.scheme != CONLL.name:
            return sequences
        legible = np.flatnonzero(~illegible(sequences, self.scheme, self.outside))
        tags = [sequences[s] for s in legible]
        offsets = np.concatenate([[0], np.cumsum([len(row) for row in tags])]).astype(np.int64)
        coded = read_segments(tags, offsets, self.scheme, self.outside)
        found = list(sequences)
        for s, row in zip(legible, self.write(coded.codes, coded.classes, offsets), strict=True):
            found[s] = list(row)
        return found

    def key(self, label: Hashable) -> Hashable:
        """Return what tells a label from others: where there are tags, its name in them."""
        if self.scheme == RUNS or label == self.outside:
            return label
        return str(label) or UNTYPED

    def places(self, classes: NDArray[np.object_], known: NDArray[np.object_]) -> IntArray:
        """Return the place of each label among the known ones, `UNKNOWN` for any other, (K,)."""
        place = {self.key(label): k for k, label in enumerate(known.tolist())}
        found = [place.get(self.key(label), UNKNOWN) for label in classes.tolist()]
        return np.array(found, np.int64)

    @property
    def merges(self) -> bool:
        """Whether two segments of a label are written as one where they touch."""
        return self.scheme in (RUNS, IO.name)

    @property
    def _writing(self) -> Scheme:
        rules = get_scheme(self.scheme)
        return IOB2 if rules is CONLL else rules

    def _tags(self, classes: NDArray[np.object_]) -> NDArray[np.object_]:
        """Return the tag of each label in each role, shape (K, 5)."""
        rules = self._writing
        tags = np.empty((len(classes), 5), object)
        for k, label in enumerate(classes.tolist()):
            for role in set(rules.roles.values()):
                outside = label == self.outside
                tags[k, role] = label if outside else write_tag(role, str(label), rules)
        return tags

    def _roles(self, runs: Segmentation, offsets: IntArray) -> IntArray:
        """Return the role of each token in its segment by the rules of the scheme."""
        rules = self._writing
        roles = np.full(int(offsets[-1]), INSIDE)
        marked = np.ones(len(runs.start), bool)
        if rules.marks != "always":  # only where two segments of a label touch
            touch = (runs.label[:-1] == runs.label[1:]) & ~np.isin(runs.start[1:], offsets)
            marked[:] = False
            marked[1:] |= touch if rules.marks == "left" else False
            marked[:-1] |= touch if rules.marks == "right" else False
        single = runs.stop - runs.start == 1
        roles[runs.stop[marked] - 1] = rules.last
        roles[runs.start[marked]] = rules.first
        roles[runs.start[marked & single]] = rules.single
        return roles


def _present(codes: CodeArray) -> tuple[IntArray, CodeArray]:
    """Return which codes occur, rising, and codes with respect to these."""
    present, fewer = np.unique(codes, return_inverse=True)
    return present.astype(np.int64), fewer.astype(np.int32)


def read_labels(y: Any, offsets: IntArray, classes: NDArray[np.object_] | None = None) -> Coded:
    """Return the codes of labels, with respect to given classes or those that occur.

    Raises
    ------
    ValueError, TypeError
        If y does not fit the sequences, or a label is not one of the given classes.
    """
    stream = LabelStream(y)
    check_lengths(offsets, stream.offsets, "y")
    classes = stream.classes() if classes is None else classes
    codes = stream.codes_for(classes)
    if np.any(codes == UNKNOWN):
        token = int(np.argmax(codes == UNKNOWN))
        label = list(stream.index)[stream.codes[token]]
        raise ValueError(
            f"{token_place(stream.offsets, token)}: the label {label!r} is not one of the classes "
            "of the model. Give all labels in the first call of partial_fit."
        )
    return Coded(classes, codes, TokenCoding())


def read_segments(y: Any, offsets: IntArray, scheme: str, outside: str) -> Coded:
    """Return the codes of the segments that labels stand for; tokens outside are one by one.

    Parameters
    ----------
    y : iterable of S sequences
        Of tags of a scheme, of labels, or of segments (start, stop, label) of a sequence.
    offsets : ndarray of shape (S + 1,)
        Where the sequences start, and the end.
    scheme : str
        A scheme of tags; "runs" for labels whose runs are segments; "auto": the scheme that tags
        such as ``B-PER`` follow, or else "runs".
    outside : str
        The label of tokens outside of all spans.

    Raises
    ------
    ValueError, TypeError
        If y does not fit the sequences, or a tag does not follow the scheme.
    """
    sequences = lists(y)
    if are_segments(sequences, offsets):
        coding = SegmentCoding(_named("IOB2" if scheme == "auto" else scheme), outside)
        listed = read_listed(sequences, offsets, "y")
        check_apart(listed, offsets, "y")
        return _coded(listed, offsets, coding)
    stream = LabelStream(sequences)
    check_lengths(offsets, stream.offsets, "y")
    if scheme == "auto":
        scheme = find_scheme(sequences, stream, outside)
    coding = SegmentCoding(_named(scheme), outside)
    if scheme == RUNS:
        return _coded_runs(stream, offsets, coding)
    names, types, starts, stops = spans_of_all(sequences, scheme)
    _check_types(names, types, starts, offsets, outside)
    labels = np.array(names, object)[types].tolist()
    return _coded(Listed(starts, stops, labels), offsets, coding)


def lists(y: Any) -> list[list[Any]]:
    """Return sequences as lists.

    Raises
    ------
    TypeError
        If they are none.
    """
    return [label_list(s, sequence) for s, sequence in enumerate(iterate_sequences(y, "y"))]


def _named(scheme: str) -> str:
    """Return the name of a scheme that may be given by another."""
    return scheme if scheme == RUNS else get_scheme(scheme).name


def are_segments(sequences: list[list[Any]], offsets: IntArray) -> bool:
    """Whether these are lists of segments (start, stop, label) rather than of labels of tokens.

    Where there are tokens, lists that are all empty can only say that there are no segments.

    Raises
    ------
    TypeError
        If they look like segments that are written in another way.
    """
    if not any(sequences):
        return bool(sequences) and bool(offsets[-1])
    if any(segment_fields(sequence[0]) for sequence in sequences if sequence):
        return True
    for s, sequence in enumerate(sequences):
        if sequence and _looks_like_segment(sequence[0]):
            raise TypeError(
                f"sequence {s} of y: segments are (start, stop, label) with whole numbers; "
                f"{sequence[0]!r:.60} looks like {_order(sequence[0])}: give "
                "Segment(start, stop, label) of crfkit.metrics, or a triple in that order."
            )
    return False


def _looks_like_segment(item: Any) -> bool:
    """Whether a tuple that is no segment has what a segment has: two rising numbers and more."""
    if not (isinstance(item, (tuple, list)) and len(item) in (3, 4)):
        return False
    numbers = [field for field in item if _is_number(field)]
    return 2 <= len(numbers) < len(item) and 0 <= numbers[0] < numbers[1]


def _order(item: Any) -> str:
    """Return in which order a tuple seems to have what a segment has."""
    if len(item) == 4:
        return "one with more than these"
    if not _is_number(item[0]):
        return "(label, start, stop)"
    return "one with other ends" if _is_number(item[1]) else "(start, label, stop)"


def _is_number(field: Any) -> bool:
    return isinstance(field, Real) and not isinstance(field, bool)


def _check_types(
    names: list[str], types: IntArray, starts: IntArray, offsets: IntArray, outside: str
) -> None:
    """Raise ValueError if a segment has the label of tokens outside of all segments."""
    if outside in names:
        at = int(starts[types == names.index(outside)][0])
        raise ValueError(
            f"{token_place(offsets, at)}: the tag is that of a segment of the type {outside!r}, "
            "which is the label of tokens outside of all segments. Give the type another name."
        )


class Listed(NamedTuple):
    """Segments that a user lists, in that order: tokens are numbered through all sequences.

    Attributes
    ----------
    start, stop : ndarray of shape (n,)
        First tokens, and those after the last ones.
    labels : list of n labels
        Their labels.
    """

    start: IntArray
    stop: IntArray
    labels: list[Any]


def read_listed(sequences: list[list[Any]], offsets: IntArray, name: str) -> Listed:
    """Return the segments that are listed for each sequence.

    Parameters
    ----------
    sequences : list of S lists of Segment or (start, stop, label)
        In any order.
    offsets : ndarray of shape (S + 1,)
        Where the sequences start, and the end.
    name : str
        What messages call them.

    Raises
    ------
    ValueError, TypeError
        If there is another number of lists, an item is no segment, or one is not within its
        sequence.
    """
    if len(sequences) != len(offsets) - 1:
        raise ValueError(
            f"X has {len(offsets) - 1} sequences, but {name} has {len(sequences)}: give one list "
            f"of segments for each sequence of X."
        )
    labels, places = [], []
    bounds = zip(sequences, offsets[:-1].tolist(), offsets[1:].tolist(), strict=True)
    for s, (sequence, begin, end) in enumerate(bounds):
        for item in sequence:
            start, stop, label = _read_segment(item, s, end - begin, name)
            labels.append(label)
            places.append((begin + start, begin + stop))
    starts, stops = np.array(places, np.int64).reshape(-1, 2).T
    return Listed(starts, stops, labels)


def _read_segment(item: Any, s: int, n_tokens: int, name: str) -> Segment:
    """Return an item as a segment of sequence `s`, which has so many tokens."""
    found = segment_fields(item)
    if found is None:
        raise TypeError(
            f"sequence {s} of {name}: {item!r:.60} is no segment (start, stop, label) with whole "
            "numbers, as others are."
        )
    start, stop, label = found
    if not 0 <= start < stop <= n_tokens:
        why = "is empty" if start >= stop else f"is not within the {n_tokens} tokens"
        raise ValueError(
            f"sequence {s} of {name}: the segment ({start}, {stop}, {label!r}) {why}. `stop` is "
            "the token after the last one."
        )
    if not is_label(label):
        raise TypeError(
            f"sequence {s} of {name}: the label of the segment ({start}, {stop}, {label!r}) must "
            "be hashable, and not None or NaN."
        )
    return Segment(start, stop, plain_label(label))


def is_label(label: Any) -> bool:
    """Whether an object can be a label: hashable, and not missing."""
    try:
        hash(label)
    except TypeError:
        return False
    return label is not None and bool(label == label)


def check_apart(listed: Listed, offsets: IntArray, name: str) -> None:
    """Raise ValueError if two segments overlap."""
    order = np.argsort(listed.start, kind="stable")
    wrong = np.flatnonzero(listed.stop[order][:-1] > listed.start[order][1:])
    if len(wrong):
        s = int(np.searchsorted(offsets, listed.start[order[wrong[0]]], side="right")) - 1
        begin = int(offsets[s])
        one, other = (
            (int(listed.start[i]) - begin, int(listed.stop[i]) - begin, listed.labels[i])
            for i in order[wrong[0] : wrong[0] + 2].tolist()
        )
        raise ValueError(f"sequence {s} of {name}: the segments {one} and {other} overlap.")


def _coded(listed: Listed, offsets: IntArray, coding: SegmentCoding) -> Coded:
    """Return the codes of spans, each token outside a segment of its own."""
    start, stop, labels = listed
    n_tokens = int(offsets[-1])
    inside = np.zeros(n_tokens + 1, np.int64)
    np.add.at(inside, start, 1)
    np.add.at(inside, stop, -1)
    gaps = np.flatnonzero(np.cumsum(inside)[:-1] == 0)
    stream = LabelStream([[*labels, coding.outside]] if len(gaps) else [labels])
    classes = stream.classes()
    _check_names(classes, coding)
    known = stream.codes_for(classes)
    codes = np.repeat(known[: len(labels)], stop - start) if labels else known[:0]
    out = np.zeros(n_tokens, np.int32)
    out[ranges(start, stop - start)] = codes
    out[start] += len(classes)
    if len(gaps):
        out[gaps] = known[-1] + len(classes)
    return Coded(classes, out, coding)


def _check_names(classes: NDArray[np.object_], coding: SegmentCoding) -> None:
    """Raise ValueError if two labels have the same tags."""
    names: dict[Hashable, Any] = {}
    for label in classes.tolist():
        other = names.setdefault(coding.key(label), label)
        if other is not label:
            raise ValueError(
                f"the labels {other!r} and {label!r} of segments are written as the same tags. "
                "Give one of them another name, or scheme='runs'."
            )


def _coded_runs(stream: LabelStream, offsets: IntArray, coding: SegmentCoding) -> Coded:
    """Return the codes of runs of equal labels, each token outside a segment of its own."""
    classes = stream.classes()
    labels = stream.codes_for(classes)
    begins = np.ones(len(labels), bool)
    begins[1:] = labels[1:] != labels[:-1]
    begins[offsets[:-1][offsets[:-1] < len(labels)]] = True
    begins |= np.array([label == coding.outside for label in classes.tolist()], bool)[labels]
    return Coded(classes, (labels + len(classes) * begins).astype(np.int32), coding)
