"""Spans of characters to tags of tokens, and back."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from itertools import pairwise
from operator import itemgetter
from typing import Any

from crfkit._params import check_flag, check_option
from crfkit._types import Segment
from crfkit.data import UNLABELED
from crfkit.labels.fields import read_segment
from crfkit.labels.spans import spans_from_tags, tags_from_spans

Offsets = Iterable[tuple[int, int]]
_BLANKS = re.compile(r"\s*")
_POLICIES = ("raise", "expand", "contract")


def token_offsets(text: str, tokens: Iterable[str]) -> list[tuple[int, int]]:
    """Find T tokens, in order and unchanged, in the text they were split from.

    Only white space may lie between them. ValueError names the position, if a token is empty or
    does not follow in the text.

    Returns
    -------
    list of (start, stop), length T
        Half-open positions in characters: ``text[start:stop]`` is the token.

    Examples
    --------
    >>> token_offsets("Ann's  dog", ["Ann", "'s", "dog"])
    [(0, 3), (3, 5), (7, 10)]
    """
    found, end = [], 0
    for position, token in enumerate(tokens):
        if not token:
            raise ValueError(f"position {position}: the token is empty; leave it out")
        start = _BLANKS.match(text, end).end()  # type: ignore[union-attr]  # matches "" too
        if not text.startswith(token, start):
            raise ValueError(
                f"position {position}: expected the token {token!r} at character {start}, found "
                f"{text[start : start + len(token)]!r}; give tokens as they stand in the text, or "
                "their offsets from the tokenizer"
            )
        end = start + len(token)
        found.append((start, end))
    return found


def checked_offsets(offsets: Offsets) -> list[tuple[int, int]]:
    """Return the places of tokens; ValueError names one that is out of order or empty."""
    checked: list[tuple[int, int]] = []
    for position, (start, stop) in enumerate(offsets):
        if not (checked[-1][1] if checked else 0) <= start < stop:
            raise ValueError(
                f"position {position}: the token ({start}, {stop}) is empty or begins before the "
                "one before it ends; give the tokens in the order of the text"
            )
        checked.append((start, stop))
    return checked


def covered_tokens(span: Segment, offsets: Sequence[tuple[int, int]], misfit: str) -> range:
    """Return the tokens in a span ("contract"), or those that it touches."""
    starts, stops = itemgetter(0), itemgetter(1)
    if misfit == "contract":
        first = bisect_left(offsets, span.start, key=starts)
        return range(first, bisect_right(offsets, span.stop, key=stops))
    first = bisect_right(offsets, span.start, key=stops)
    return range(first, bisect_left(offsets, span.stop, key=starts))


def _tokens_of(span: Segment, offsets: Sequence[tuple[int, int]], misfit: str) -> Segment:
    """Return the span of tokens that a span of characters becomes."""
    if not 0 <= span.start < span.stop:
        raise ValueError(f"{span} is empty or begins before the text; remove it")
    tokens = covered_tokens(span, offsets, misfit)
    if not tokens:
        whole = "whole " if misfit == "contract" else ""
        raise ValueError(f"{span} holds no {whole}token; remove it or tokenize otherwise")
    start, stop = offsets[tokens[0]][0], offsets[tokens[-1]][1]
    if misfit == "raise" and (start, stop) != (span.start, span.stop):
        raise ValueError(
            f"{span} does not end where tokens do: the tokens that it touches are "
            f"[{start}, {stop}); pass misfit='expand' or 'contract', or tokenize otherwise"
        )
    return Segment(tokens[0], tokens[-1] + 1, span.label)


def spans_to_tags(
    offsets: Offsets,
    spans: Iterable[Any],
    scheme: str = "IOB2",
    *,
    misfit: str = "raise",
    partial: bool = False,
) -> list[Any]:
    """Write the tags of the tokens of one text from spans of its characters.

    Parameters
    ----------
    offsets : iterable of (start, stop), length T
        Where the tokens are, in characters, as from :func:`token_offsets` or a tokenizer.
    spans : iterable of Segment or (start, stop, label)
        Half-open spans of characters in any order, as for :func:`crfkit.metrics.tags_from_spans`.
    scheme : str, default="IOB2"
        The tag scheme to write; see :func:`crfkit.metrics.tags_from_spans`.
    misfit : {"raise", "expand", "contract"}, default="raise"
        What to do with a span that begins or ends inside of a token or between tokens: raise an
        error, take all tokens that it touches, or only those that are wholly in it.
    partial : bool, default=False
        Whether the text may have further spans: its tokens outside of those that are given are
        :data:`crfkit.UNLABELED` then, not ``"O"``. Tags of ``"IOBES"`` tell where a span ends,
        those of ``"IOB2"`` leave that open.

    Raises
    ------
    ValueError, TypeError
        Naming the span, if it does not fit (with ``misfit="raise"``), holds no token, overlaps
        another, or is no segment; naming the token, if `offsets` are not in order.

    Examples
    --------
    >>> offsets = token_offsets("Ann Lee's dog", ["Ann", "Lee", "'s", "dog"])
    >>> spans_to_tags(offsets, [(0, 7, "PER")])
    ['B-PER', 'I-PER', 'O', 'O']
    >>> spans_to_tags(offsets, [(0, 7, "PER")], "IOBES", partial=True)
    ['B-PER', 'E-PER', UNLABELED, UNLABELED]
    """
    check_option("misfit", misfit, _POLICIES)
    check_flag("partial", partial)
    tokens = checked_offsets(offsets)
    read = [read_segment(item, f"item {i}") for i, item in enumerate(spans)]
    placed = [(_tokens_of(span, tokens, misfit), span) for span in read]
    placed.sort(key=lambda pair: pair[0][:2])
    for (left, one), (right, other) in pairwise(placed):
        if left.stop > right.start:
            raise ValueError(
                f"{one} and {other} overlap or share a token; a sequence of tags holds one span "
                "at a place"
            )
    tags: list[Any] = tags_from_spans((span for span, _ in placed), len(tokens), scheme)
    if not partial:
        return tags
    inside = {token for span, _ in placed for token in range(span.start, span.stop)}
    return [tag if token in inside else UNLABELED for token, tag in enumerate(tags)]


def tags_to_spans(offsets: Offsets, tags: Iterable[str], scheme: str = "conll") -> list[Segment]:
    """Read spans of characters from the tags of the tokens of one text.

    Parameters
    ----------
    offsets : iterable of (start, stop), length T
        Where the tokens are, in characters.
    tags : iterable of str, length T
        Their tags, for example predicted ones.
    scheme : str, default="conll"
        How to read them; see :func:`crfkit.metrics.spans_from_tags`. ValueError if one is not of
        the scheme, or there are not as many as tokens.

    Returns
    -------
    list of Segment
        Half-open spans of characters, in order. White space inside of a span belongs to it.

    Examples
    --------
    >>> tags_to_spans([(0, 3), (4, 7), (7, 9)], ["B-PER", "I-PER", "O"])
    [Segment(start=0, stop=7, label='PER')]
    """
    tokens, tags = checked_offsets(offsets), list(tags)
    if len(tokens) != len(tags):
        raise ValueError(f"there are {len(tokens)} tokens, but {len(tags)} tags")
    return [
        Segment(tokens[start][0], tokens[stop - 1][1], label)
        for start, stop, label in spans_from_tags(tags, scheme)
    ]
