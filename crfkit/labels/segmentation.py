"""Segmentations of sequences: as arrays, as codes, and as what users write."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, NamedTuple

import numpy as np

from crfkit._types import BoolArray, CodeArray, IntArray, LabelReading, ObjectArray
from crfkit.data import LabelSequences
from crfkit.data.label_checks import check_labels
from crfkit.data.labels import UNKNOWN, UNLABELED, LabelStream, check_lengths, object_array
from crfkit.data.packed import ranges
from crfkit.data.targets import Targets
from crfkit.data.validation import token_place
from crfkit.labels.base import Fewer, LabelCoding, present
from crfkit.labels.costs import Cost
from crfkit.labels.fields import Listed, are_segments, check_apart, lists, read_listed
from crfkit.labels.reading import read_segment_codes
from crfkit.labels.schemes import (
    CONLL,
    IO,
    IOB1,
    IOB2,
    LETTERS,
    RUNS,
    UNTYPED,
    Scheme,
    get_scheme,
    is_tag,
    looks_like_tag,
    parse_tag,
    write_tag,
)
from crfkit.labels.spans import detect_scheme, illegal_tags, spans_of_all, token_roles

# Instead of a code: any; any that begins a segment; and `EITHER - k`, one of the label k.
ANY, BEGINS, EITHER = -1, -2, -3


class Segmentation(NamedTuple):
    """Segments: the first token of each, the one after its last, and its label, all (n,)."""

    start: IntArray
    stop: IntArray
    label: IntArray


def segmentation_of(codes: CodeArray, offsets: IntArray, n_labels: int) -> Segmentation:
    """Return the segments that codes stand for."""
    start = np.flatnonzero(codes >= n_labels)
    stop = np.append(start[1:], len(codes))[: len(start)]
    return Segmentation(start, stop, codes[start].astype(np.int64) - n_labels)


def allowed_codes(fixed: CodeArray, size: int) -> BoolArray:
    """Return which codes each token may have, (N, 2 K), given what is known of each, (N,)."""
    allowed = np.ones((len(fixed), 2 * size), bool)
    known = np.flatnonzero((fixed >= 0) | (fixed <= EITHER))
    labels = np.where(fixed >= 0, fixed, EITHER - fixed)[known]
    allowed[known] = False
    allowed[known, labels] = True
    either = fixed[known] <= EITHER
    allowed[known[either], labels[either] + size] = True
    allowed[fixed == BEGINS, :size] = False
    return allowed


def known_segments(targets: Targets, offsets: IntArray, n_labels: int) -> Segmentation:
    """Return the segments whose tokens are known, with each of the labels that they may have."""
    runs = segmentation_of(targets.states, offsets, n_labels)
    if targets.allowed is None or not len(runs.start):
        return runs
    goes_on, begins = targets.allowed[:, :n_labels], targets.allowed[:, n_labels:]
    settled = ~(goes_on.any(axis=1) & begins.any(axis=1))
    whole = np.flatnonzero(np.logical_and.reduceat(settled, runs.start))
    which, labels = np.nonzero(begins[runs.start[whole]])
    return Segmentation(runs.start[whole[which]], runs.stop[whole[which]], labels)


def single_labels(runs: Segmentation) -> Segmentation:
    """Return those of known segments that are listed once: their label is known."""
    same = runs.start[1:] == runs.start[:-1]
    one = np.ones(len(runs.start), bool)
    one[1:] &= ~same
    one[:-1] &= ~same
    return Segmentation(*(part[one] for part in runs))


class ReadSegments(NamedTuple):
    """Labels, (K,), codes of tokens, (N,), their coding, and what `y` leaves open.

    The codes of tokens whose segments are not known are those of segments of one token.
    """

    classes: ObjectArray
    codes: CodeArray
    coding: SegmentCoding
    hidden: BoolArray | None = None  # (N,) whether the segment of a token is not known
    options: BoolArray | None = None  # (N, K) the labels that it may have, where it is known

    def allowed(self, offsets: IntArray, runs_outside: bool) -> BoolArray | None:
        """Return which codes each token may have, (N, 2 K), if something is open.

        What follows a known segment begins, but for runs of tokens outside that may be longer.
        """
        if self.hidden is None and self.options is None:
            return None
        size, hidden, which = len(self.classes), self.hidden_tokens, self.labels
        outside = runs_outside & (which == self.outside_code) & ~hidden
        labels = which[:, None] == np.arange(size)
        if self.options is not None:
            labels = self.options.copy()
        labels[hidden] = True
        first = np.isin(np.arange(len(which)), offsets)
        behind = np.roll(hidden | outside, 1) & ~first
        goes_on = np.where(hidden, behind | first, (self.codes < size) | (outside & behind))
        begins = hidden | (self.codes >= size)
        return np.hstack([labels & goes_on[:, None], labels & begins[:, None]])

    def targets(self, offsets: IntArray, runs_outside: bool) -> Targets:
        """Return what is known of codes."""
        return Targets(self.codes, self.allowed(offsets, runs_outside))

    @property
    def labels(self) -> IntArray:
        """The label of each token, (N,)."""
        return self.codes.astype(np.int64) % max(len(self.classes), 1)

    @property
    def outside_code(self) -> int:
        """The label of tokens outside of all segments, -1 if there is none."""
        names = self.classes.tolist()
        return names.index(self.coding.outside) if self.coding.outside in names else -1

    @property
    def hidden_tokens(self) -> BoolArray:
        """Whether the segment of each token is not known, (N,)."""
        return np.zeros(len(self.codes), bool) if self.hidden is None else self.hidden


class SegmentCoding(LabelCoding):
    """A code tells the label of a segment, and whether the segment begins at the token.

    The scheme is that of the tags, of which "conll" is written as IOB2, or "runs".
    """

    def __init__(self, scheme: str, outside: str) -> None:
        self.scheme, self.outside, self.fitted = scheme, outside, {"scheme_": scheme}

    def write(self, codes: CodeArray, classes: ObjectArray, offsets: IntArray) -> LabelSequences:
        """Return the tags that codes stand for."""
        labels = codes % max(len(classes), 1)
        if self.scheme == RUNS:
            return LabelSequences.from_codes(labels, classes, offsets)
        tags, runs = self._tags(classes), segmentation_of(codes, offsets, len(classes))
        roles = token_roles(self._writing, *runs, offsets)
        return LabelSequences.from_codes(labels * tags.shape[1] + roles, tags.ravel(), offsets)

    def write_renamed(
        self,
        codes: CodeArray,
        renamed: BoolArray,
        label: Hashable,
        classes: ObjectArray,
        offsets: IntArray,
    ) -> LabelSequences:
        """Return the tags that codes stand for, some segments with another label."""
        names = classes.tolist()
        every = names if label in names else [*names, label]
        labels = np.where(renamed, every.index(label), codes % max(len(names), 1))
        begins = len(every) * (codes >= len(names))
        return self.write((labels + begins).astype(np.int32), object_array(every), offsets)

    def write_known(
        self, targets: Targets, classes: ObjectArray, offsets: IntArray
    ) -> LabelSequences:
        """Return the tags of what is known, `UNLABELED` of all other tokens."""
        tags, allowed = self.write(targets.states, classes, offsets), targets.allowed
        if allowed is not None:
            outside = np.array([label == self.outside for label in classes.tolist()], bool)
            some = np.any(allowed & ~np.tile(outside, 2), axis=1) & (allowed.sum(axis=1) > 1)
            _hide(tags, some, offsets)
        return tags

    def restrict(self, targets: Targets, n_labels: int, known: BoolArray) -> Fewer:
        """Return which labels occur, known or not, rising, and codes with respect to these."""
        if targets.allowed is not None:
            return _restricted(targets.states, targets.allowed, n_labels)
        codes = targets.labels
        found, labels = present(codes % n_labels, np.ones(len(codes), bool))
        return found, Targets((labels + len(found) * (codes >= n_labels)).astype(np.int32))

    def cost(self, cost: Cost) -> Cost:
        """Return the cost of codes, given that of labels."""
        return cost.of_segments()

    def as_predicted(self, y: Any, offsets: IntArray) -> Any:
        """Return true labels in the form of predicted ones: segments as tags, tags as written."""
        sequences = lists(y)
        if are_segments(sequences, offsets):
            return self._rewritten(sequences, offsets)
        if self.scheme != CONLL.name:
            return sequences
        # What a scheme cannot write stays as it is.
        legible = np.flatnonzero(~illegible(sequences, self.scheme, self.outside))
        tags = [sequences[s] for s in legible]
        found = list(sequences)
        rewritten = self._rewritten(tags, np.cumsum([0, *map(len, tags)], dtype=np.int64))
        for s, row in zip(legible, rewritten, strict=True):
            found[s] = list(row)
        return found

    def _rewritten(self, sequences: list[list[Any]], offsets: IntArray) -> LabelSequences:
        read = read_segments(sequences, offsets, self.scheme, self.outside)
        tags, open_ = self.write(read.codes, read.classes, offsets), read.hidden_tokens
        if read.options is not None:
            open_ = open_ | (read.options.sum(axis=1) > 1)
        _hide(tags, open_, offsets)
        return tags

    def reading(
        self, classes: ObjectArray, scheme: Scheme | None = None, *, outside: bool = False
    ) -> LabelReading:
        """Return what codes say of segments, whose labels have no letters of tags."""
        return read_segment_codes(classes.tolist(), outside=outside)

    def key(self, label: Hashable) -> Hashable:
        """Return what tells a label from others: where there are tags, its name in them."""
        if self.scheme == RUNS or label == self.outside:
            return label
        return str(label) or UNTYPED

    def places(self, classes: ObjectArray, known: ObjectArray) -> IntArray:
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
        return IOB2 if self.scheme == CONLL.name else get_scheme(self.scheme)

    def _tags(self, classes: ObjectArray) -> ObjectArray:
        """Return the tag of each label in each role, shape (K, 5)."""
        rules = self._writing
        tags = np.empty((len(classes), 5), object)
        for k, label in enumerate(classes.tolist()):
            for role in set(rules.roles.values()):
                outside = label == self.outside
                tags[k, role] = label if outside else write_tag(role, str(label), rules)
        return tags


def _restricted(codes: CodeArray, allowed: BoolArray, n_labels: int) -> Fewer:
    """Return the labels that tokens have which may not have all, and what is known by these."""
    labels = allowed[:, :n_labels] | allowed[:, n_labels:]
    told = labels[~labels.all(axis=1)]
    found = np.flatnonzero(told.any(axis=0)) if len(told) else np.arange(n_labels)
    places = np.zeros(n_labels, np.int64)
    places[found] = np.arange(len(found))
    fewer = places[codes % n_labels] + len(found) * (codes >= n_labels)
    columns = np.append(found, found + n_labels)
    return found.astype(np.int64), Targets(fewer.astype(np.int32), allowed[:, columns])


def read_segments(y: Any, offsets: IntArray, scheme: str, outside: str) -> ReadSegments:
    """Return the codes of the segments that labels stand for; tokens outside are one by one.

    Tokens that are `UNLABELED`, or in a span that is, may be of any segments, but of none that
    reaches beyond them. The label of a span may be a set, of which one is right.
    """
    sequences = lists(y)
    if are_segments(sequences, offsets):
        coding = SegmentCoding(_named("IOB2" if scheme == "auto" else scheme), outside)
        listed = read_listed(sequences, offsets, "y", partial=True)
        check_apart(listed, offsets, "y")
        return _coded(listed, offsets, coding)
    stream = LabelStream(sequences, partial=True)
    check_lengths(offsets, stream.offsets, "y")
    check_labels(stream)
    if not stream.options:
        return _read_tags(sequences, stream, offsets, scheme, outside)
    hidden = hidden_tokens(stream)
    sequences = without_hidden(sequences, hidden, offsets, outside)
    try:
        read = _read_tags(sequences, LabelStream(sequences), offsets, scheme, outside)
    except ValueError as error:
        raise ValueError(
            f"{error} Next to tokens that are UNLABELED tags are read as at the ends of sequences: "
            "label all tokens of a segment, or none."
        ) from error
    return _with_hidden(read, hidden)


def hidden_tokens(stream: LabelStream) -> BoolArray:
    """Return which tokens are `UNLABELED`, (N,); ValueError if one has a set of labels."""
    hidden: BoolArray = stream.codes < 0
    for place, option in enumerate(stream.options):
        if option is not UNLABELED:
            token = int(np.argmax(stream.codes == -1 - place))
            raise ValueError(
                f"{token_place(stream.offsets, token)}: {option!r:.60} is a set of labels, but "
                "which segments there are has to be known: give spans, (start, stop, {labels})."
            )
    return hidden


def without_hidden(
    sequences: list[list[Any]], hidden: BoolArray, offsets: IntArray, outside: str
) -> list[list[Any]]:
    """Return labels with that of tokens outside where these are hidden, (N,)."""
    return [
        [outside if hide else label for label, hide in zip(labels, hidden[b:e], strict=True)]
        for labels, b, e in zip(sequences, offsets[:-1], offsets[1:], strict=True)
    ]


def _with_hidden(read: ReadSegments, hidden: BoolArray) -> ReadSegments:
    """Return that some tokens, (N,), are not outside, but of segments that are not known."""
    size, labels = len(read.classes), read.labels
    if hidden.all():
        return read._replace(hidden=hidden)
    left = np.unique(labels[~hidden])
    stream = LabelStream([read.classes[left].tolist()])
    classes = stream.classes()
    places = np.zeros(size, np.int32)
    places[left] = stream.codes_for(classes)
    codes = places[labels] + len(classes) * (read.codes >= size)
    return ReadSegments(classes, codes.astype(np.int32), read.coding, hidden)


def _read_tags(
    sequences: list[list[Any]], stream: LabelStream, offsets: IntArray, scheme: str, outside: str
) -> ReadSegments:
    """Return the codes of the segments that tags or labels of tokens stand for."""
    if scheme == "auto":
        scheme = find_scheme(sequences, stream, outside)
    coding = SegmentCoding(_named(scheme), outside)
    if scheme == RUNS:
        return _coded_runs(stream, offsets, coding)
    found = spans_of_all(sequences, scheme)
    starts = found.starts + offsets[found.sequences]
    if outside in found.names:
        at = int(starts[found.types == found.names.index(outside)][0])
        raise ValueError(
            f"{token_place(offsets, at)}: the tag is that of a segment of the type {outside!r}, "
            "which is the label of tokens outside of all segments. Give the type another name."
        )
    labels = np.array(found.names, object)[found.types].tolist()
    return _coded(Listed(starts, starts + found.stops - found.starts, labels), offsets, coding)


def _hide(tags: LabelSequences, hidden: BoolArray, offsets: IntArray) -> None:
    """Write `UNLABELED` where tokens, (N,), are hidden."""
    places = np.flatnonzero(hidden)
    sequences = np.searchsorted(offsets, places, side="right") - 1
    for s, t in zip(sequences.tolist(), (places - offsets[sequences]).tolist(), strict=True):
        tags[s][t] = UNLABELED


def _named(scheme: str) -> str:
    """Return the name of a scheme that may be given by another."""
    return scheme if scheme == RUNS else get_scheme(scheme).name


def _coded(listed: Listed, offsets: IntArray, coding: SegmentCoding) -> ReadSegments:
    """Return the codes of spans, each token outside a segment of its own."""
    start, stop, labels = listed
    tokens = ranges(start, stop - start)
    outside = np.ones(int(offsets[-1]), bool)
    outside[tokens] = False
    stream = LabelStream([[*labels, coding.outside]] if outside.any() else [labels], partial=True)
    classes, size = stream.classes(), len(stream.index)
    if stream.options and not size:  # nothing is known
        outside[:], stream = True, LabelStream([[coding.outside]])
        return ReadSegments(stream.classes(), np.ones(len(outside), np.int32), coding, outside)
    _check_names(classes, coding)
    known = stream.codes_for(classes)
    out = np.zeros(len(outside), np.int32)
    out[tokens] = np.repeat(known[: len(labels)], stop - start)
    out[start] += size
    if outside.any():
        out[outside] = known[-1] + size
    if not stream.options:
        return ReadSegments(classes, out, coding)
    hidden, is_hidden = np.zeros(len(out), bool), [label is UNLABELED for label in labels]
    hidden[tokens] = np.repeat(np.array(is_hidden, bool), stop - start)
    out[hidden] = out[hidden] % size + size
    allowed = stream.allowed_for(classes)
    if allowed is None or all(option is UNLABELED for option in stream.options):
        return ReadSegments(classes, out, coding, hidden)
    options = np.arange(size) == out[:, None] % size
    options[tokens] = np.repeat(allowed[: len(labels)], stop - start, axis=0)
    return ReadSegments(classes, out, coding, hidden, options)


def _check_names(classes: ObjectArray, coding: SegmentCoding) -> None:
    """Raise ValueError if two labels have the same tags."""
    names: dict[Hashable, Any] = {}
    for label in classes.tolist():
        other = names.setdefault(coding.key(label), label)
        if other is not label:
            raise ValueError(
                f"the labels {other!r} and {label!r} of segments are written as the same tags. "
                "Give one of them another name, or scheme='runs'."
            )


def _coded_runs(stream: LabelStream, offsets: IntArray, coding: SegmentCoding) -> ReadSegments:
    """Return the codes of runs of equal labels, each token outside a segment of its own."""
    classes = stream.classes()
    labels = stream.codes_for(classes)
    begins = np.ones(len(labels), bool)
    begins[1:] = labels[1:] != labels[:-1]
    begins[offsets[:-1][offsets[:-1] < len(labels)]] = True
    begins |= np.array([label == coding.outside for label in classes.tolist()], bool)[labels]
    return ReadSegments(classes, (labels + len(classes) * begins).astype(np.int32), coding)


def find_scheme(sequences: list[list[Any]], stream: LabelStream, outside: str) -> str:
    """Return the scheme of labels of tokens, or "runs"; ValueError of tags of no scheme."""
    labels: list[Any] = [label for label in stream.index if label != outside]
    tags = [label for label in labels if looks_like_tag(label)]
    if labels and len(tags) == len(labels):
        try:
            found = detect_scheme(sequences)
        except ValueError as error:
            raise ValueError(
                f"{error}; or, if the labels are no tags and their runs are segments, give "
                f"scheme={RUNS!r}."
            ) from error
        # A part of the data may lack the tags that tell IOB1 from IO, which merges what touches.
        return IOB1.name if found == IO.name else found
    # Tags of one type have several letters, which labels that only look like tags lack.
    if len({tag[2:] for tag in tags}) < len(tags):
        other = next(label for label in labels if label not in tags)
        likely = _likely_scheme([[t if t in tags else outside for t in s] for s in sequences])
        raise ValueError(
            f"{_place(other, stream)}: the label {other!r} is no tag such as {tags[0]!r}, which "
            f"others are. Say what they are: scheme={likely!r} (or another one) for tags, where "
            f"it has to be corrected; scheme={RUNS!r} for labels whose runs are segments."
        )
    if "B" in labels and len(labels) > 1 and all(label in LETTERS for label in labels):
        raise ValueError(
            f"{_place('B', stream)}: the labels are letters such as 'B', which may be tags without "
            f"a type. Say what they are: scheme={_likely_scheme(sequences)!r} (or another one) for "
            f"tags, scheme={RUNS!r} for labels whose runs are segments."
        )
    return RUNS


def illegible(sequences: list[list[Any]], scheme: str, outside: str) -> BoolArray:
    """Return which sequences of labels a scheme cannot write, whatever the segments: (S,)."""
    found = np.zeros(len(sequences), bool)
    if scheme == RUNS:
        return found
    stream = LabelStream(sequences, partial=True)
    if stream.options:
        hidden = hidden_tokens(stream)
        return illegible(
            without_hidden(sequences, hidden, stream.offsets, outside), scheme, outside
        )
    rules = get_scheme(scheme)
    foreign = np.array(
        [not is_tag(t, rules) or parse_tag(t, rules)[1] == outside for t in stream.index], bool
    )
    lengths = np.diff(stream.offsets)
    found[np.repeat(np.arange(len(sequences)), lengths)[foreign[stream.codes]]] = True
    rest = [[] if bad else tags for tags, bad in zip(sequences, found.tolist(), strict=True)]
    found[[one.sequence for one in illegal_tags(rest, scheme)]] = True
    return found


def _likely_scheme(sequences: list[list[Any]]) -> str:
    """Return a scheme in which tags are legal, or the one that reads any tags."""
    try:
        return detect_scheme(sequences)
    except ValueError:
        return CONLL.name


def _place(label: Any, stream: LabelStream) -> str:
    """Return what messages call the first token that has a label."""
    return token_place(stream.offsets, int(np.argmax(stream.codes == stream.index[label])))
