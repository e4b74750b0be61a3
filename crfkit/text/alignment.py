"""From spans of texts to tags of tokens, and back."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import groupby, pairwise, repeat
from typing import Any, NamedTuple

from crfkit._params import check_flag, check_option
from crfkit._types import Segment
from crfkit._warnings import warn_user
from crfkit.data import UNLABELED
from crfkit.labels.schemes import INSIDE, OUTSIDE_LABEL, get_scheme
from crfkit.labels.sequences import flatten
from crfkit.labels.spans import read_spans, tags_from_spans
from crfkit.text.annotated import AnnotatedText
from crfkit.text.offsets import checked_offsets, covered_tokens, token_offsets
from crfkit.text.tokenizers import Places, as_tokenizer

MISFITS = ("raise", "expand", "contract", "report")
OVERLAPS = ("raise", "longest", "first")


class Misaligned(NamedTuple):
    """A span that no tags of tokens can say as it is, and what was done."""

    text_id: Any  # the id of the text, or its number
    span: Segment  # of characters
    text: str  # what it covers
    tokens: list[str]  # those that it touches
    outcome: str  # "expanded", "contracted", "unlabeled", or "left out" and why

    def __str__(self) -> str:
        touched = f"touches the tokens {self.tokens}" if self.tokens else "touches no token"
        place = f"[{self.span.start}, {self.span.stop})"
        return (
            f"text {self.text_id!r}: the span {self.text!r} {place} labeled "
            f"{self.span.label!r} {touched}: {self.outcome}"
        )


class TokenizedTexts(NamedTuple):
    """Texts as tokens and tags, and the spans that tags could not say."""

    tokens: list[list[str]]
    tags: list[list[Any]]
    offsets: list[Places]  # where the tokens are, in characters
    misaligned: list[Misaligned]


def to_tokens(
    annotated: Iterable[AnnotatedText],
    tokenizer: Any = None,
    scheme: str = "IOB2",
    *,
    misfit: str = "report",
    overlap: str = "raise",
    partial: bool = False,
) -> TokenizedTexts:
    """Split texts into tokens, and write their spans as tags.

    Parameters
    ----------
    annotated : iterable of S AnnotatedText
        The texts.
    tokenizer : str, re.Pattern or callable, optional
        As for :func:`as_tokenizer`. By default the tokens that a text has (``offsets``), or else
        ``"words"``.
    scheme : str, default="IOB2"
        The tag scheme; see :func:`crfkit.metrics.tags_from_spans`.
    misfit : {"report", "expand", "contract", "raise"}, default="report"
        What to do with a span that does not end where tokens do. ``"report"`` warns, and the tokens
        that the span touches are :data:`crfkit.UNLABELED`: nobody has said what they are.
        ``"expand"`` takes all of them, ``"contract"`` those that are wholly in it, ``"raise"``
        raises an error.
    overlap : {"raise", "longest", "first"}, default="raise"
        What to do with spans that share a token, of which tags can say one: raise an error, keep
        the longest (of equal ones that which begins first), or that which begins first (of those
        the longest).
    partial : bool, default=False
        Whether the texts may have further spans: tokens outside of those that are given are
        :data:`crfkit.UNLABELED` then, not ``"O"``.

    Returns
    -------
    tokens : list of S lists of str
    tags : list of S lists
    offsets : list of S lists of (start, stop)
        Where the tokens are, in characters.
    misaligned : list of Misaligned
        All spans that are not in the tags as they are in the texts. None is left out silently.

    Raises
    ------
    ValueError, TypeError
        Naming the text and the span, by the policies; if a tokenizer finds what is not in the text,
        or an option is not known.

    Warns
    -----
    UserWarning
        If spans were left out or made `UNLABELED`.

    Examples
    --------
    >>> from crfkit.text import AnnotatedText, to_tokens
    >>> texts = [AnnotatedText("Ann Lee's dog", [(0, 7, "PER")], id=7)]
    >>> to_tokens(texts).tags
    [['B-PER', 'I-PER', 'O', 'O', 'O']]
    >>> found = to_tokens(texts, "whitespace", misfit="expand")
    >>> found.tokens, found.tags
    ([['Ann', "Lee's", 'dog']], [['B-PER', 'I-PER', 'O']])
    >>> print(found.misaligned[0])
    text 7: the span 'Ann Lee' [0, 7) labeled 'PER' touches the tokens ['Ann', "Lee's"]: expanded
    """
    check_option("misfit", misfit, MISFITS)
    check_option("overlap", overlap, OVERLAPS)
    check_flag("partial", partial)
    chosen = None if tokenizer is None else as_tokenizer(tokenizer)
    found = TokenizedTexts([], [], [], [])
    for number, item in enumerate(as_annotated(annotated)):
        offsets = places_of(item, number, chosen)
        aligner = _Aligner(item, number, offsets, found.misaligned)
        known = aligner.apart(aligner.placed(misfit), overlap)
        found.tokens.append([item.text[start:stop] for start, stop in offsets])
        found.tags.append(aligner.tags(known, scheme, partial))
        found.offsets.append(offsets)
    _warn_of(found.misaligned)
    return found


def as_annotated(texts: Any) -> Iterable[AnnotatedText]:
    """Return texts as those with spans; TypeError for what is none, or for a single one."""
    if isinstance(texts, (str, AnnotatedText)):
        raise TypeError("expected a list of texts, found a single one: put it into a list.")
    for number, item in enumerate(texts):
        if not isinstance(item, (str, AnnotatedText)):
            raise TypeError(
                f"text {number} is a {type(item).__name__}; give an AnnotatedText or a str."
            )
        yield AnnotatedText(item) if isinstance(item, str) else item


def places_of(
    item: AnnotatedText, number: int, tokenizer: Callable[[str], Places] | None
) -> Places:
    """Return where the tokens of a text are; errors name it."""
    if tokenizer is None:
        if item.offsets is not None:
            return item.offsets
        tokenizer = as_tokenizer("words")
    try:
        return tokenizer(item.text)
    except (TypeError, ValueError) as error:
        name = number if item.id is None else item.id
        raise type(error)(f"text {name!r}, tokenizer: {error}") from error


class _Placed(NamedTuple):
    """A span of tokens, and the span of characters that it was."""

    start: int
    stop: int
    span: Segment


class _Aligner:
    """The spans of a text as spans of its tokens; what does not fit is listed."""

    def __init__(
        self, item: AnnotatedText, number: int, offsets: Places, misaligned: list[Misaligned]
    ) -> None:
        self.item, self.offsets, self.misaligned = item, offsets, misaligned
        self.id = number if item.id is None else item.id
        self.unlabeled: set[int] = set()

    def placed(self, misfit: str) -> list[_Placed]:
        """Return the spans that have tokens, by the policy."""
        found = []
        for span in self.item.spans:
            touched = covered_tokens(span, self.offsets, "expand")
            if span.label is UNLABELED:
                self.unlabeled.update(touched)
            elif touched and self._ends(touched) == span[:2]:
                found.append(_Placed(touched.start, touched.stop, span))
            elif tokens := self._misfit(span, touched, misfit):
                found.append(_Placed(tokens.start, tokens.stop, span))
        return sorted(found, key=lambda one: (one.start, -one.stop))

    def _ends(self, tokens: range) -> tuple[int, int]:
        return self.offsets[tokens[0]][0], self.offsets[tokens[-1]][1]

    def _misfit(self, span: Segment, touched: range, misfit: str) -> range | None:
        """Return the tokens of a span that does not fit, if it keeps any."""
        if misfit == "raise":
            error = self._record(span, touched, "pass misfit='report', 'expand' or 'contract'")
            raise ValueError(f"{error}, or tokenize otherwise.")
        kept = covered_tokens(span, self.offsets, misfit) if misfit != "report" else range(0)
        if kept:
            self._report(span, touched, f"{misfit}ed")
            return kept
        self.unlabeled.update(touched)
        holds = "holds no whole token: " if touched and misfit == "contract" else ""
        self._report(span, touched, f"{holds}{'unlabeled' if touched else 'left out'}")
        return None

    def apart(self, spans: list[_Placed], overlap: str) -> list[_Placed]:
        """Return spans of which no two share a token, by the policy."""
        if all(one.stop <= other.start for one, other in pairwise(spans)):
            return spans
        if overlap == "longest":
            spans = sorted(spans, key=lambda one: one.start - one.stop)
        kept: list[_Placed] = []
        owner: dict[int, _Placed] = {}
        for one in spans:
            others = [owner[token] for token in range(one.start, one.stop) if token in owner]
            if not others:
                kept.append(one)
                owner |= dict.fromkeys(range(one.start, one.stop), one)
            elif overlap == "raise":
                raise ValueError(
                    f"text {self.id!r}: {others[0].span} and {one.span} overlap or share a token; "
                    "tags hold one span at a place. Pass overlap='longest' or 'first', or remove "
                    "one."
                )
            else:
                touched = range(one.start, one.stop)
                self._report(one.span, touched, f"left out: shares a token with {others[0].span}")
        return sorted(kept)

    def tags(self, spans: list[_Placed], scheme: str, partial: bool) -> list[Any]:
        """Return the tag of each token."""
        named = [Segment(start, stop, span.label) for start, stop, span in spans]
        if get_scheme(scheme).first == INSIDE == get_scheme(scheme).last:
            self._report_merged(spans)
        tags: list[Any] = list(tags_from_spans(named, len(self.offsets), scheme))
        inside = {token for span in named for token in range(span.start, span.stop)}
        for token in range(len(tags)) if partial else self.unlabeled:
            if token not in inside:
                tags[token] = UNLABELED
        return tags

    def _report_merged(self, spans: list[_Placed]) -> None:
        """List spans that tags without beginnings cannot part from the one before."""
        for one, other in pairwise(spans):
            if one.stop == other.start and one.span.label == other.span.label:
                touched = range(other.start, other.stop)
                self._report(other.span, touched, f"the scheme cannot part it from {one.span}")

    def _report(self, span: Segment, touched: range, outcome: str) -> None:
        self.misaligned.append(self._record(span, touched, outcome))

    def _record(self, span: Segment, touched: range, outcome: str) -> Misaligned:
        text = self.item.text
        tokens = [text[slice(*self.offsets[token])] for token in touched]
        return Misaligned(self.id, span, text[span.start : span.stop], tokens, outcome)


def _warn_of(misaligned: list[Misaligned]) -> None:
    """Warn of spans that are not in the tags."""
    lost = [one for one in misaligned if one.outcome not in ("expanded", "contracted")]
    if lost:
        number = "a span does" if len(lost) == 1 else f"{len(lost)} spans do"
        warn_user(
            f"{number} not fit the tokens, or one another. The first: {lost[0]}. "
            "`to_tokens` lists all as `misaligned`; tokens that are unlabeled teach nothing."
        )


def from_tokens(
    tokens: Iterable[Sequence[str]],
    tags: Iterable[Sequence[Any]],
    *,
    texts: Iterable[str] | None = None,
    offsets: Iterable[Iterable[tuple[int, int]]] | None = None,
    scheme: str = "conll",
    separator: str = " ",
    ids: Iterable[Any] | None = None,
) -> list[AnnotatedText]:
    """Make texts with spans of tokens and their tags.

    Parameters
    ----------
    tokens : iterable of S sequences of str
        The tokens.
    tags : iterable of S sequences
        The tag of each token, or :data:`crfkit.UNLABELED`.
    texts : iterable of S str, optional
        What the tokens were split from. By default they are joined by the separator.
    offsets : iterable of S lists of (start, stop), optional
        Where the tokens are in the texts; they are searched if not given.
    scheme : str, default="conll"
        How tags are read; see :func:`crfkit.metrics.spans_from_tags`.
    separator : str, default=" "
        What stands between tokens, where there are no texts.
    ids : iterable of S objects, optional
        The ids of the texts.

    Returns
    -------
    list of S AnnotatedText
        With the places of the tokens, so that :func:`to_tokens` gives the same ones back. Runs of
        unlabeled tokens are spans labeled `UNLABELED`.

    Raises
    ------
    ValueError, TypeError
        Naming the text, if there are not as many tags as tokens, tokens are not in the text, or a
        tag is not one of the scheme's.

    Examples
    --------
    >>> from crfkit.text import from_tokens
    >>> (one,) = from_tokens([["Ann", "Lee", "lives"]], [["B-PER", "I-PER", "O"]])
    >>> one.text, one.spans
    ('Ann Lee lives', [Segment(start=0, stop=7, label='PER')])
    """
    rows = [_strings(number, row) for number, row in enumerate(tokens)]
    named = list(range(len(rows))) if ids is None else list(ids)
    whole = [separator.join(row) for row in rows] if texts is None else list(texts)
    if offsets is not None:
        places = [checked_offsets(each) for each in offsets]
    elif texts is None:
        places = [_joined_places(row, len(separator)) for row in rows]
    else:
        places = [_search(*each) for each in zip(named, whole, rows, strict=True)]
    found = token_spans(tags, list(map(len, rows)), scheme)
    known: Iterable[Any] = repeat(None) if ids is None else named
    return [
        AnnotatedText(text, spans_at(offset, spans), id=name, offsets=offset)
        for text, offset, spans, name in zip(whole, places, found, known, strict=False)
    ]


def token_spans(
    tags: Iterable[Sequence[Any]], lengths: Sequence[int], scheme: str
) -> list[list[Segment]]:
    """Return the spans of tokens of sequences of tags, those that are unlabeled too."""
    sequences = [list(each) for each in tags]
    if [len(each) for each in sequences] != list(lengths):
        raise ValueError(_unequal(sequences, lengths))
    known = [[OUTSIDE_LABEL if x is UNLABELED else x for x in each] for each in sequences]
    spans: list[list[Segment]] = [[] for _ in sequences]
    found = read_spans([flatten(known, "tags")], get_scheme(scheme))[0]
    columns = (found.sequences, found.starts, found.stops, found.types)
    for s, start, stop, kind in zip(*(column.tolist() for column in columns), strict=True):
        spans[s].append(Segment(start, stop, found.names[kind]))
    for s, sequence in enumerate(sequences):
        if UNLABELED in sequence:
            spans[s] = sorted([*spans[s], *_unlabeled(sequence)], key=lambda span: span[:2])
    return spans


def _unlabeled(tags: list[Any]) -> Iterable[Segment]:
    place = 0
    for missing, run in groupby(tags, lambda tag: tag is UNLABELED):
        length = len(list(run))
        if missing:
            yield Segment(place, place + length, UNLABELED)
        place += length


def spans_at(offsets: Places, spans: Iterable[Segment]) -> list[Segment]:
    """Return spans of tokens as spans of characters."""
    return [Segment(offsets[a][0], offsets[b - 1][1], label) for a, b, label in spans]


def _unequal(sequences: list[list[Any]], lengths: Sequence[int]) -> str:
    if len(sequences) != len(lengths):
        return f"there are {len(lengths)} sequences of tokens, but {len(sequences)} of tags."
    wrong = next(s for s, tags in enumerate(sequences) if len(tags) != lengths[s])
    return f"sequence {wrong} has {lengths[wrong]} tokens, but {len(sequences[wrong])} tags."


def _strings(number: int, tokens: Sequence[str]) -> list[str]:
    row = [tokens] if isinstance(tokens, str) else list(tokens)
    for position, token in enumerate(row):
        if not isinstance(token, str) or isinstance(tokens, str):
            raise TypeError(
                f"sequence {number}, position {position}: the token is {token!r:.60}; give lists "
                "of strings, for example the column of the words."
            )
        if not token:
            raise ValueError(
                f"sequence {number}, position {position}: the token is empty, and has no place in "
                "a text; leave it out."
            )
    return row


def _search(name: Any, text: str, tokens: list[str]) -> Places:
    try:
        return token_offsets(text, tokens)
    except ValueError as error:
        raise ValueError(f"text {name!r}: {error}") from None


def _joined_places(tokens: list[str], gap: int) -> Places:
    places, place = [], 0
    for token in tokens:
        places.append((place, place + len(token)))
        place += len(token) + gap
    return places
