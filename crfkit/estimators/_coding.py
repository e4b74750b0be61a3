"""From what users call labels to the codes that models learn, and back."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from crfkit._types import CodeArray, IntArray
from crfkit._validation import check_lengths
from crfkit.costs import Cost
from crfkit.data import LabelSequences
from crfkit.data.labels import UNKNOWN, LabelStream, iterate_sequences
from crfkit.data.packed import ranges
from crfkit.metrics.schemes import INSIDE, get_scheme, write_tag
from crfkit.metrics.spans import Span, detect_scheme, spans_of_all
from crfkit.scores.selection import Runs, runs_of

# A segment for the user: first token, the one after the last, label.
Segment = tuple[int, int, Hashable]

# Labels as they are: a segment is a run of equal ones.
RUNS = "runs"


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


class LabelCoding:
    """A label is a code."""

    def write(
        self, codes: CodeArray, classes: NDArray[np.object_], offsets: IntArray
    ) -> LabelSequences:
        """Return the labels that codes stand for."""
        return LabelSequences.from_codes(codes, classes, offsets)

    def restrict(self, codes: CodeArray, n_labels: int) -> tuple[IntArray, CodeArray]:
        """Return which labels occur, rising, and codes with respect to these."""
        present, fewer = np.unique(codes, return_inverse=True)
        return present.astype(np.int64), fewer.astype(np.int32)

    def cost(self, cost: Cost) -> Cost:
        """Return the cost of codes, given that of labels."""
        return cost


class SegmentCoding(LabelCoding):
    """A code tells the label of a segment, and whether the segment begins at the token.

    Parameters
    ----------
    scheme : str
        The scheme of the tags, or "runs": labels whose runs are segments.
    outside : label, optional
        The label of the segments of tokens outside of all spans.
    """

    def __init__(self, scheme: str, outside: Hashable) -> None:
        self.scheme, self.outside = scheme, outside

    def write(
        self, codes: CodeArray, classes: NDArray[np.object_], offsets: IntArray
    ) -> LabelSequences:
        """Return the tags that codes stand for."""
        labels = codes % max(len(classes), 1)
        if self.scheme == RUNS:
            return LabelSequences.from_codes(labels, classes, offsets)
        tags = self._tags(classes)
        roles = self._roles(runs_of(codes, offsets, len(classes)), len(codes))
        flat, bounds = tags[labels, roles].tolist(), offsets.tolist()
        pairs = zip(bounds[:-1], bounds[1:], strict=True)
        return LabelSequences([flat[b:e] for b, e in pairs])

    def restrict(self, codes: CodeArray, n_labels: int) -> tuple[IntArray, CodeArray]:
        """Return which labels occur, rising, and codes with respect to these."""
        present, labels = super().restrict(codes % n_labels, n_labels)
        return present, (labels + len(present) * (codes >= n_labels)).astype(np.int32)

    def cost(self, cost: Cost) -> Cost:
        """Return the cost of codes, given that of labels."""
        return cost.of_segments()

    def _tags(self, classes: NDArray[np.object_]) -> NDArray[np.object_]:
        """Return the tag of each label in each role, shape (K, 5)."""
        scheme = get_scheme(self.scheme)
        spelled = {role: letter for letter, role in reversed(scheme.roles.items())}
        tags = np.empty((len(classes), 5), object)
        for k, label in enumerate(classes.tolist()):
            for role in spelled:
                outside = label == self.outside
                tags[k, role] = label if outside else write_tag(role, str(label), scheme)
        return tags

    def _roles(self, runs: Runs, n_tokens: int) -> IntArray:
        """Return the role of each token in its segment by the rules of the scheme."""
        scheme = get_scheme(self.scheme)
        roles = np.full(n_tokens, INSIDE)
        marked = np.ones(len(runs.start), bool)
        if scheme.marks != "always":  # only where two segments of a label touch
            touch = (runs.stop[:-1] == runs.start[1:]) & (runs.label[:-1] == runs.label[1:])
            marked[:] = False
            marked[1:] |= touch if scheme.marks == "left" else False
            marked[:-1] |= touch if scheme.marks == "right" else False
        single = runs.stop - runs.start == 1
        roles[runs.stop[marked] - 1] = scheme.last
        roles[runs.start[marked]] = scheme.first
        roles[runs.start[marked & single]] = scheme.single
        return roles


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
        s = int(np.searchsorted(stream.offsets, token, side="right")) - 1
        label = list(stream.index)[stream.codes[token]]
        raise ValueError(
            f"sequence {s}, position {token - stream.offsets[s]}: the label {label!r} is not one "
            "of the classes of the model. Give all labels in the first call of partial_fit."
        )
    return Coded(classes, codes, LabelCoding())


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
    sequences = [list(sequence) for sequence in iterate_sequences(y, "y")]
    if is_segments(sequences):
        runs = _listed(sequences, offsets)
        return _coded(*runs, offsets, SegmentCoding("IOB2" if scheme == "auto" else scheme, outside))
    stream = LabelStream(sequences)
    check_lengths(offsets, stream.offsets, "y")
    if scheme == "auto":
        scheme = detect_scheme(sequences) if _are_tags(stream.index, outside) else RUNS
    coding = SegmentCoding(scheme, outside)
    if scheme != RUNS:
        names, types, starts, stops = spans_of_all(sequences, scheme)
        return _coded([names[t] for t in types.tolist()], starts, stops, offsets, coding)
    classes = stream.classes()
    labels = stream.codes_for(classes)
    begins = np.ones(len(labels), bool)
    begins[1:] = labels[1:] != labels[:-1]
    begins[offsets[:-1][offsets[:-1] < len(labels)]] = True
    begins |= np.array([label == outside for label in classes.tolist()], bool)[labels]
    return Coded(classes, (labels + len(classes) * begins).astype(np.int32), coding)


def is_segments(sequences: list[list[Any]]) -> bool:
    """Whether sequences of labels are lists of segments (start, stop, label)."""
    items = [item for sequence in sequences for item in sequence[:1]]
    return bool(items) and all(map(_is_segment, items))


def _is_segment(item: Any) -> bool:
    if isinstance(item, Span):
        return True
    pair = isinstance(item, (tuple, list)) and len(item) == 3
    return pair and all(isinstance(i, (int, np.integer)) and not isinstance(i, bool) for i in item[:2])


def _are_tags(labels: Iterable[Any], outside: str) -> bool:
    """Whether all labels are written as tags of a scheme, ``B-PER`` and the like."""
    inside = [label for label in labels if label != outside]
    return bool(inside) and all(
        isinstance(label, str) and len(label) > 2 and label[1] == "-" and label[0] in "BIESMLUW"
        for label in inside
    )


def _listed(
    sequences: list[list[Any]], offsets: IntArray
) -> tuple[list[Any], IntArray, IntArray]:
    """Return labels, starts and stops of the segments that are listed for each sequence."""
    if len(sequences) != len(offsets) - 1:
        raise ValueError(
            f"X has {len(offsets) - 1} sequences, but y has {len(sequences)}: give one list of "
            "segments for each of X."
        )
    labels, places = [], []
    for s, (sequence, begin, end) in enumerate(
        zip(sequences, offsets[:-1].tolist(), offsets[1:].tolist(), strict=True)
    ):
        last = 0
        for start, stop, label in sorted(_segments(s, sequence), key=lambda item: item[:2]):
            if not last <= start < stop <= end - begin:
                raise ValueError(
                    f"sequence {s}: the segment ({start}, {stop}, {label!r}) is empty, overlaps "
                    f"with another one, or is not within the {end - begin} tokens."
                )
            labels.append(label)
            places.append((begin + start, begin + stop))
            last = stop
    starts, stops = np.array(places, np.int64).reshape(-1, 2).T
    return labels, starts, stops


def _segments(s: int, sequence: list[Any]) -> Iterator[Segment]:
    """Yield segments as (start, stop, label)."""
    for item in sequence:
        if not _is_segment(item):
            raise TypeError(
                f"sequence {s} of y: {item!r:.60} is no segment (start, stop, label), but others "
                "are."
            )
        if isinstance(item, Span):
            yield item.start, item.stop, item.label
        else:
            yield int(item[0]), int(item[1]), item[2]


def _coded(
    labels: list[Any], starts: IntArray, stops: IntArray, offsets: IntArray, coding: SegmentCoding
) -> Coded:
    """Return the codes of spans, each token outside a segment of its own."""
    n_tokens = int(offsets[-1])
    inside = np.zeros(n_tokens + 1, np.int64)
    np.add.at(inside, starts, 1)
    np.add.at(inside, stops, -1)
    gaps = np.flatnonzero(np.cumsum(inside)[:-1] == 0)
    stream = LabelStream([[*labels, coding.outside]] if len(gaps) else [labels])
    classes = stream.classes()
    known = stream.codes_for(classes)
    codes = np.repeat(known[: len(labels)], stops - starts) if len(labels) else known[:0]
    out = np.zeros(n_tokens, np.int32)
    out[ranges(starts, stops - starts)] = codes
    out[starts] += len(classes)
    if len(gaps):
        out[gaps] = known[-1] + len(classes)
    return Coded(classes, out, coding)
