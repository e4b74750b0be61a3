"""Tokenizers: from a text to the places of its tokens."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator
from numbers import Integral
from typing import Any

from crfkit._params import meant
from crfkit.text.offsets import checked_offsets, token_offsets

Places = list[tuple[int, int]]
#: A function from a text to the half-open places of its tokens, in characters.
Tokenizer = Callable[[str], Places]

# A number with its points and commas, a word, or any other sign.
_WORDS = re.compile(r"\d+(?:[.,]\d+)+|\w+|[^\w\s]")
_UNBROKEN = re.compile(r"\S+")
_SIGNS = re.compile(r"\S")
_JOINER = "\u200d"
_NON_JOINER = "\u200c"  # within words of Persian
_SKIN = range(0x1F3FB, 0x1F400)  # colors of the emoji before
_LETTERS_OF_FLAGS = range(0x1F1E6, 0x1F200)


def words(text: str) -> Places:
    """Find words, numbers and single signs: ``Ann's 3.50 $`` has ``Ann ' s 3.50 $``."""
    return _whole(text, _found(_WORDS, text), words=True)


def whitespace(text: str) -> Places:
    """Find what stands between white space."""
    return _found(_UNBROKEN, text)


def characters(text: str) -> Places:
    """Find all characters but white space, each with the marks that belong to it."""
    return _whole(text, _found(_SIGNS, text), words=False)


# Tokenizers by the names that `tokenizer=` takes.
TOKENIZERS: dict[str, Tokenizer] = {
    "words": words,
    "whitespace": whitespace,
    "characters": characters,
}


def as_tokenizer(tokenizer: Any) -> Tokenizer:
    r"""Return a function from a text to the places of its tokens.

    Parameters
    ----------
    tokenizer : str, re.Pattern or callable
        ``"words"`` finds words, numbers and single signs, ``"whitespace"`` what stands between
        white space, ``"characters"`` all characters but white space. Any other string, and a
        pattern, is a regular expression, whose matches are the tokens. A callable takes a text and
        returns the tokens: strings in the order of the text, pairs (start, stop), or tokens of
        spaCy.

    Returns
    -------
    callable
        Takes a text, returns a list of (start, stop), half-open, in characters. It raises
        ValueError, TypeError if the tokens are not those of the text.

    Notes
    -----
    No tokenizer here parts a character from its combining marks, or an emoji that is made of
    several.

    Examples
    --------
    >>> text = "Ann's dog, 3.50 $"
    >>> [text[start:stop] for start, stop in as_tokenizer("words")(text)]
    ['Ann', "'", 's', 'dog', ',', '3.50', '$']
    >>> as_tokenizer(r"\w+")("a dog")
    [(0, 1), (2, 5)]
    >>> as_tokenizer(str.split)("a dog")
    [(0, 1), (2, 5)]
    """
    if isinstance(tokenizer, str):
        if tokenizer in TOKENIZERS:
            return TOKENIZERS[tokenizer]
        tokenizer = _pattern(tokenizer)
    if isinstance(tokenizer, re.Pattern):
        pattern = tokenizer
        return lambda text: _found(pattern, text)
    if not callable(tokenizer):
        raise TypeError(
            f"tokenizer={tokenizer!r:.60} must be one of {sorted(TOKENIZERS)}, a regular "
            "expression, or a function from a text to its tokens."
        )
    return lambda text: _places(text, tokenizer(text))


def _pattern(name: str) -> re.Pattern[str]:
    """Return a regular expression; ValueError for what looks like a name, and for a wrong one."""
    if name.isidentifier() or not name:
        raise ValueError(
            f"tokenizer={name!r} is not known; choose one of {sorted(TOKENIZERS)}, or give a "
            rf"regular expression such as r'\w+|[^\w\s]'.{meant(name, TOKENIZERS)}"
        )
    try:
        return re.compile(name)
    except re.error as error:
        raise ValueError(f"tokenizer={name!r} is no regular expression: {error}.") from None


def _places(text: str, tokens: Iterable[Any]) -> Places:
    """Return the places of what a tokenizer of the user has found."""
    found = list(tokens)
    if all(isinstance(token, str) for token in found):
        return token_offsets(text, found)
    pairs = [_pair(token, position) for position, token in enumerate(found)]
    places = checked_offsets(pairs)
    if places and places[-1][1] > len(text):
        raise ValueError(f"the token {places[-1]} ends behind the {len(text)} characters")
    return places


def _pair(token: Any, position: int) -> tuple[int, int]:
    pair = isinstance(token, (tuple, list)) and len(token) == 2
    if pair and all(isinstance(place, Integral) for place in token):
        return int(token[0]), int(token[1])
    if hasattr(token, "idx") and hasattr(token, "text"):  # of spaCy
        return token.idx, token.idx + len(token.text)
    raise TypeError(
        f"position {position}: the token is {token!r:.60}; a tokenizer must return strings, or "
        "pairs (start, stop) of whole numbers of characters."
    )


def _found(pattern: re.Pattern[str], text: str) -> Places:
    return [match.span() for match in pattern.finditer(text) if match.end() > match.start()]


def _whole(text: str, places: Places, *, words: bool) -> Places:
    """Return places of which none begins within what is seen as one character, or one word."""
    return places if text.isascii() else list(_joined(text, places, words))


def _joined(text: str, places: Places, words: bool) -> Iterator[tuple[int, int]]:
    begin, end = 0, 0
    for start, stop in places:
        if end and start == end and _goes_on(text, begin, start, words):
            end = stop
            continue
        if end:
            yield begin, end
        begin, end = start, stop
    if end:
        yield begin, end


def _goes_on(text: str, begin: int, place: int, words: bool) -> bool:
    """Whether the character at a place is one with what stands before it, from `begin` on."""
    sign, before = text[place], text[place - 1]
    if _is_mark(sign) or before == _JOINER:
        return True
    if words and _is_mark(before):
        return text[begin].isalnum() and sign.isalnum()
    pair = ord(before) in _LETTERS_OF_FLAGS and ord(sign) in _LETTERS_OF_FLAGS
    return pair and (place - begin) % 2 == 1


def _is_mark(sign: str) -> bool:
    """Whether a sign only changes, or joins, the one before."""
    joins = sign in (_JOINER, _NON_JOINER)
    return joins or unicodedata.category(sign)[0] == "M" or ord(sign) in _SKIN
