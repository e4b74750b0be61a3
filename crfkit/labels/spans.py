"""Tags and spans: reading, writing, converting, checking and repairing tag sequences.

Spans are half-open, ``[start, stop)``, as Python slices are: ``tokens[span.start:span.stop]``.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from crfkit._types import Segment
from crfkit.data.labels import object_array
from crfkit.data.validation import token_place
from crfkit.labels.fields import check_apart, read_listed
from crfkit.labels.schemes import (
    CONLL,
    DETECTABLE,
    INSIDE,
    OUTSIDE,
    Scheme,
    get_scheme,
    is_tag,
    pair_index,
    parse_tag,
    tag_table,
    write_tag,
)
from crfkit.labels.sequences import (
    BoolArray,
    FlatLabels,
    IntArray,
    Sequences,
    encode_labels,
    flatten,
    sequence_index,
)


class IllegalTag(NamedTuple):
    """A tag that its scheme does not allow where it stands."""

    sequence: int
    position: int
    tag: str
    reason: str

    def __str__(self) -> str:
        return f"sequence {self.sequence}, position {self.position}: {self.reason}"


class FoundSpans(NamedTuple):
    """Spans of all sequences, none twice: their labels are ``names[types]``."""

    names: list[Any]
    types: IntArray  # (n,)
    sequences: IntArray  # (n,)
    starts: IntArray  # (n,), tokens within the sequence
    stops: IntArray  # (n,)


class TagStream(NamedTuple):
    """Roles and types of all tokens in one array, with an ``O`` after every sequence."""

    roles: IntArray  # (N + S,)
    types: IntArray  # (N + S,)

    @property
    def pairs(self) -> IntArray:
        """For every token the row of a scheme's tables for it and the token before it."""
        before = np.roll(self.roles, 1)
        return pair_index(before, self.roles, np.roll(self.types, 1) == self.types)


def spans_from_tags(
    tags: Iterable[str], scheme: str = "conll", *, suffix: bool = False, delimiter: str = "-"
) -> list[Segment]:
    """Read the spans of one sequence of tags.

    Parameters
    ----------
    tags : iterable of str
        The tags of one sequence.
    scheme : str, default="conll"
        ``"conll"`` reads as the conlleval script does: every tag other than ``O`` belongs to a
        span, and illegal sequences are read by the nearest legal meaning. The name of a scheme
        (``"IOB2"`` ...) reads strictly: chunks that it does not allow are no spans.
    suffix : bool, default=False
        Whether tags are written ``PER-B`` rather than ``B-PER``.
    delimiter : str, default="-"
        What stands between letter and type; a type may hold it too.

    Returns
    -------
    list of Segment
        In order. The type of a bare tag such as ``B`` is ``"_"``.

    Raises
    ------
    ValueError
        If a tag is not one of the scheme's.

    References
    ----------
    Ramshaw and Marcus (1995), "Text chunking using transformation-based learning"; Tjong Kim Sang
    and Veenstra (1999), "Representing text chunks".

    Examples
    --------
    >>> from crfkit.metrics import spans_from_tags
    >>> spans_from_tags(["B-PER", "I-PER", "O", "I-LOC"])
    [Segment(start=0, stop=2, label='PER'), Segment(start=3, stop=4, label='LOC')]
    >>> spans_from_tags(["B-PER", "I-PER", "O", "I-LOC"], "IOB2")
    [Segment(start=0, stop=2, label='PER')]
    """
    (found,) = read_spans([flatten([tags], "tags")], get_scheme(scheme, suffix, delimiter))
    rows = zip(found.starts.tolist(), found.stops.tolist(), found.types.tolist(), strict=True)
    return [Segment(start, stop, found.names[label]) for start, stop, label in rows]


def tags_from_spans(
    spans: Iterable[Any],
    length: int,
    scheme: str = "IOB2",
    *,
    suffix: bool = False,
    delimiter: str = "-",
) -> list[str]:
    """Write the tags of one sequence of `length` tokens from its spans.

    Parameters are those of :func:`spans_from_tags`, the default scheme IOB2; spans are segments or
    (start, stop, label), in any order. IO has no means to part neighboring spans of one type.

    Raises
    ------
    ValueError, TypeError
        If an item is no segment, spans overlap, are empty or reach outside the sequence, or the
        scheme is ``"conll"``.

    Examples
    --------
    >>> from crfkit.metrics import tags_from_spans
    >>> tags_from_spans([(0, 2, "PER"), (3, 4, "LOC")], 4, "IOBES")
    ['B-PER', 'E-PER', 'O', 'S-LOC']
    """
    rules = get_scheme(scheme, suffix, delimiter)
    if rules.name == CONLL.name:
        raise ValueError("'conll' is a way to read tags; write a scheme such as 'IOB2'")
    offsets = np.array([0, length])
    listed = read_listed([list(spans)], offsets, "spans")
    check_apart(listed, offsets, "spans")
    order = np.argsort(listed.start)
    start, stop, labels = listed.start[order], listed.stop[order], object_array(listed.labels)
    roles = token_roles(rules, start, stop, labels[order], offsets).tolist()
    tags = [write_tag(OUTSIDE, "", rules)] * length
    for begin, end, label in zip(start.tolist(), stop.tolist(), labels[order], strict=True):
        tags[begin:end] = [write_tag(role, str(label), rules) for role in roles[begin:end]]
    return tags


def token_roles(
    rules: Scheme, start: IntArray, stop: IntArray, labels: NDArray[Any], offsets: IntArray
) -> IntArray:
    """Return the role of each token in its span, (N,): spans are in order, all others inside."""
    roles = np.full(int(offsets[-1]), INSIDE)
    marked = np.ones(len(start), bool)
    if rules.marks != "always":  # only where two spans of a label touch
        touch = (stop[:-1] == start[1:]) & ~np.isin(start[1:], offsets)
        touch &= labels[:-1] == labels[1:]
        marked[:] = False
        marked[1:] |= touch if rules.marks == "left" else False
        marked[:-1] |= touch if rules.marks == "right" else False
    single = stop - start == 1
    roles[stop[marked] - 1] = rules.last
    roles[start[marked]] = rules.first
    roles[start[marked & single]] = rules.single
    return roles


def convert_tags(
    tags: Iterable[str], source: str, target: str, *, suffix: bool = False, delimiter: str = "-"
) -> list[str]:
    """Rewrite one sequence of tags from a source scheme in a target scheme.

    Further parameters are those of :func:`spans_from_tags`. ValueError tells that the tags are not
    legal in ``source``; ``"conll"`` accepts illegal sequences.

    Examples
    --------
    >>> from crfkit.metrics import convert_tags
    >>> convert_tags(["I-PER", "I-PER", "B-PER", "O"], "IOB1", "BILOU")
    ['B-PER', 'L-PER', 'U-PER', 'O']
    """
    tags = flatten([tags], "tags").labels
    validate_tags([tags], source, suffix=suffix, delimiter=delimiter)
    spans = spans_from_tags(tags, source, suffix=suffix, delimiter=delimiter)
    return tags_from_spans(spans, len(tags), target, suffix=suffix, delimiter=delimiter)


def repair_tags(
    tags: Iterable[str], scheme: str = "IOB2", *, suffix: bool = False, delimiter: str = "-"
) -> list[str]:
    """Make one sequence of tags legal, keeping the spans the conlleval script would count.

    Parameters are those of :func:`spans_from_tags`, tags with the letters of any scheme. Legal
    sequences come back as they are, and conlleval-mode scores do not change.

    Examples
    --------
    >>> from crfkit.metrics import repair_tags
    >>> repair_tags(["O", "I-PER", "I-LOC"], "IOB2")
    ['O', 'B-PER', 'B-LOC']
    """
    return convert_tags(tags, "conll", scheme, suffix=suffix, delimiter=delimiter)


def illegal_tags(
    y: Sequences, scheme: str, *, suffix: bool = False, delimiter: str = "-"
) -> list[IllegalTag]:
    """List the tags of sequences that a scheme does not allow where they stand, in their order.

    Further parameters are those of :func:`spans_from_tags`. ValueError tells that a tag belongs to
    no scheme at all.

    Examples
    --------
    >>> from crfkit.metrics import illegal_tags
    >>> print(*illegal_tags([["O", "B-PER"], ["O", "I-PER"]], "IOB2"))
    sequence 1, position 1: 'I-PER' may not follow 'O' in IOB2
    """
    return _illegal(flatten(y, "y"), get_scheme(scheme, suffix, delimiter))


def validate_tags(y: Sequences, scheme: str, *, suffix: bool = False, delimiter: str = "-") -> None:
    """Raise ValueError naming the first of the :func:`illegal_tags`, and how many there are.

    Parameters are the same; :func:`repair_tags` mends them.
    """
    _check_legal(flatten(y, "y"), get_scheme(scheme, suffix, delimiter))


def detect_scheme(y: Sequences, *, suffix: bool = False, delimiter: str = "-") -> str:
    """Return the first scheme in which all sequences of tags are legal.

    Tried are IOB2, IOBES, BILOU, BMES, BMEWO, IOE2, IO, IOB1 and IOE1, in this order. Tags that are
    legal in several schemes, such as IOB1 without neighboring spans of one type (legal in IO),
    have the same spans in all of them. ValueError tells that there is none. Parameters are those of
    :func:`illegal_tags`.

    Examples
    --------
    >>> from crfkit.metrics import detect_scheme
    >>> detect_scheme([["O", "I-PER", "E-PER"]])
    'IOE2'
    """
    return first_legal_scheme(flatten(y, "y"), suffix, delimiter).name


def first_legal_scheme(flat: FlatLabels, suffix: bool, delimiter: str) -> Scheme:
    """Do what ``detect_scheme`` does, on flat labels."""
    counts: list[tuple[int, int, int]] = []
    for scheme in (get_scheme(known.name, suffix, delimiter) for known in DETECTABLE):
        faults, foreign = _faults(flat, scheme)
        if not len(faults):
            return scheme
        counts.append((len(faults), int(foreign.sum()), len(counts)))
    n_faults, _, nearest = min(counts)
    first = _illegal(flat, get_scheme(DETECTABLE[nearest].name, suffix, delimiter))[0]
    raise ValueError(
        f"the tags are legal in no scheme; {first}, the nearest one{_and_more(n_faults - 1)}; pass "
        "scheme='conll', which reads them as the conlleval script does, or correct them "
        "(crfkit.metrics.repair_tags)"
    )


def read_spans(flats: Sequence[FlatLabels], scheme: Scheme) -> list[FoundSpans]:
    """Read the spans of tags by the rules of a scheme; the names of types are those of all.

    Within tags that continue one another, from the first that may open one, if it may close.
    """
    streams, names = read_streams(flats, scheme)
    found = [spans_in(stream, scheme) for stream in streams]
    return [
        found_spans(names, spans, flat.lengths) for spans, flat in zip(found, flats, strict=True)
    ]


class Marked(NamedTuple):
    """Spans in a stream, by their places in it."""

    starts: IntArray  # (n,)
    stops: IntArray  # (n,)
    types: IntArray  # (n,)

    def where(self, chosen: BoolArray) -> Marked:
        """Return the chosen spans, (n,)."""
        return Marked(*(part[chosen] for part in self))


def spans_in(stream: TagStream, scheme: Scheme) -> Marked:
    """Return the spans of a stream by the rules of a scheme."""
    pairs = stream.pairs
    cuts = ~scheme.continues[pairs]
    piece = np.cumsum(cuts)
    starts = np.flatnonzero(scheme.opens[pairs])
    starts = starts[np.diff(piece[starts], prepend=-1) != 0]
    stops = np.flatnonzero(cuts)[piece[starts]]
    return Marked(starts, stops, stream.types[starts]).where(scheme.closes[pairs[stops]])


def found_spans(names: list[Any], spans: Marked, lengths: IntArray) -> FoundSpans:
    """Return spans of a stream by their places in sequences, of these lengths."""
    ends = np.cumsum(lengths + 1)
    sequences = np.searchsorted(ends, spans.starts, side="right")
    begins = (ends - lengths - 1)[sequences]
    return FoundSpans(names, spans.types, sequences, spans.starts - begins, spans.stops - begins)


def spans_of_all(y: Sequences, scheme: str) -> FoundSpans:
    """Read the spans of tags; ValueError names sequence and position of the first illegal one."""
    flat, rules = flatten(y, "y"), get_scheme(scheme)
    _check_legal(flat, rules)
    return read_spans([flat], rules)[0]


def read_streams(flats: Sequence[FlatLabels], scheme: Scheme) -> tuple[list[TagStream], list[str]]:
    """Parse every distinct tag once; return streams and names of types. Errors name the place."""
    vocabulary, codes = encode_labels(*flats)
    try:
        table = tag_table([parse_tag(tag, scheme) for tag in vocabulary])
    except (TypeError, ValueError) as error:
        place = next(
            token_place(flat.offsets, token)
            for flat in flats
            for token, tag in enumerate(flat.labels)
            if not is_tag(tag, scheme)
        )
        raise type(error)(f"{place}: {error}") from None
    places = [
        padded(code, flat.lengths, len(vocabulary)) for code, flat in zip(codes, flats, strict=True)
    ]
    return [TagStream(table.roles[rows], table.types[rows]) for rows in places], table.names


def _and_more(count: int) -> str:
    return f" (and {count} more)" if count else ""


def _check_legal(flat: FlatLabels, scheme: Scheme) -> None:
    found = _illegal(flat, scheme)
    if found:
        raise ValueError(f"{found[0]}{_and_more(len(found) - 1)}")


def _faults(flat: FlatLabels, scheme: Scheme) -> tuple[IntArray, BoolArray]:
    """Return the stream positions of what is illegal, and which tags are none of the scheme."""
    (stream,), _ = read_streams([flat], get_scheme("conll", scheme.suffix, scheme.delimiter))
    vocabulary, (codes,) = encode_labels(flat)
    is_foreign = np.array([*(not is_tag(tag, scheme) for tag in vocabulary), False])
    foreign = is_foreign[padded(codes, flat.lengths, len(vocabulary))]
    judged = ~foreign & ~np.roll(foreign, 1)
    at_fault = foreign | (judged & ~scheme.legal[stream.pairs])
    return np.flatnonzero(at_fault), foreign


def _illegal(flat: FlatLabels, scheme: Scheme) -> list[IllegalTag]:
    faults, foreign = _faults(flat, scheme)
    stops = np.cumsum(flat.lengths + 1)
    return [_describe(at, flat, scheme, foreign, stops) for at in faults.tolist()]


def padded(codes: IntArray, lengths: IntArray, fill: int) -> IntArray:
    """Return what stands for each token as a stream, with `fill` after every sequence."""
    padded = np.full(len(codes) + len(lengths), fill, dtype=np.intp)
    padded[np.arange(len(codes)) + sequence_index(lengths)] = codes
    return padded


def _describe(
    at: int, flat: FlatLabels, scheme: Scheme, foreign: BoolArray, stops: IntArray
) -> IllegalTag:
    """Say what is wrong at a stream position; the streams of sequences end before `stops`."""
    sequence = int(np.searchsorted(stops, at, side="right"))
    position = int(at - stops[sequence] + flat.lengths[sequence] + 1)
    token = at - sequence
    if position == flat.lengths[sequence]:
        tag = flat.labels[token - 1]
        return IllegalTag(sequence, position - 1, tag, f"{tag!r} may not be last in {scheme.name}")
    tag = flat.labels[token]
    if foreign[at]:
        reason = f"{tag!r} is not a tag of {scheme.name}"
    elif position == 0:
        reason = f"{tag!r} may not be first in {scheme.name}"
    else:
        reason = f"{tag!r} may not follow {flat.labels[token - 1]!r} in {scheme.name}"
    return IllegalTag(sequence, position, tag, reason)
