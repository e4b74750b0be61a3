"""A plain feature function for recipe-ingredient lines."""

from __future__ import annotations

import re
from collections.abc import Sequence

_VULGAR = "\u00bc-\u00be\u2150-\u215e\u2189"
_NUMBER = re.compile(rf"[\d.,/\u2044{_VULGAR}]*[\d{_VULGAR}]%?")
_FRACTION = re.compile(rf"\d+[/\u2044]\d+|\d*[{_VULGAR}]")
_SHAPE = (
    (re.compile(r"[A-Z]+"), "X"),
    (re.compile(r"[^\W\d_A-Z]+"), "x"),
    (re.compile(r"\d+"), "d"),
)


def _shape(word: str) -> str:
    """Return the word with each run of capitals, other letters or digits as one X, x or d."""
    for run, symbol in _SHAPE:
        word = run.sub(symbol, word)
    return word


def _word_attributes(word: str, lower: str) -> list[str]:
    attributes = ["bias", f"word={lower}", f"shape={_shape(word)}"]
    attributes += [f"prefix{n}={lower[:n]}" for n in (2, 3)]
    attributes += [f"suffix{n}={lower[-n:]}" for n in (2, 3)]
    flags = {
        "is_number": _NUMBER.fullmatch(word),
        "is_fraction": _FRACTION.fullmatch(word),
        "is_title": word.istitle(),
        "is_punctuation": not any(map(str.isalnum, word)),
    }
    return attributes + [name for name, holds in flags.items() if holds]


def _window_attributes(
    before2: str, before1: str, word: str, after1: str, after2: str
) -> list[str]:
    return [
        f"word-2={before2}",
        f"word-1={before1}",
        f"word+1={after1}",
        f"word+2={after2}",
        f"word-1,0={before1}|{word}",
        f"word0,+1={word}|{after1}",
    ]


def _place_attributes(before: Sequence[str]) -> list[str]:
    # Names come first, preparations and remarks after commas or in brackets.
    attributes = [f"position={min(len(before), 5)}", f"commas={min(before.count(','), 2)}"]
    return attributes + ["in_brackets"] * (before.count("(") > before.count(")"))


def ingredient_features(tokens: Sequence[str]) -> list[list[str]]:
    """Describe each token of an ingredient line by 15 to 18 attributes.

    These are the lower-cased word, its shape, prefixes and suffixes of two and three letters,
    flags (number, fraction, title case, punctuation), the two words on either side, the pairs
    with the next and the previous word, and the place in the line (position, number of commas
    before, inside of brackets). The ends of the line are the words ``BOS`` and ``EOS``.

    Parameters
    ----------
    tokens : sequence of str, length T
        One line, as from :func:`tokenize_ingredient`.

    Returns
    -------
    list of list of str, length T
        The attributes of each token; all are binary.

    Examples
    --------
    >>> ingredient_features(["2", "cups", "flour"])[1][:5]
    ['bias', 'word=cups', 'shape=x', 'prefix2=cu', 'prefix3=cup']
    """
    lower = [token.lower() for token in tokens]
    padded = ["BOS", "BOS", *lower, "EOS", "EOS"]
    return [
        _word_attributes(token, lower[position])
        + _window_attributes(*padded[position : position + 5])
        + _place_attributes(lower[:position])
        for position, token in enumerate(tokens)
    ]
