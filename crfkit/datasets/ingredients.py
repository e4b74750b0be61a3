"""The corpus of recipe-ingredient lines: how it is split, its labels, plain features for it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from importlib import resources
from typing import Any

from sklearn.utils import Bunch

from crfkit.data.frames import frame_from_sequences
from crfkit.io import read_conll

_MODULE, _FOLDER, _FILE, _CARD = "crfkit.datasets", "data", "ingredients.txt", "ingredients.md"
_TEXT_MARK = "# text = "
_LABELS = ("COMMENT", "NAME", "PREP", "QTY", "UNIT")

Lines = list[list[str]]

_FRACTION = "\u00bc-\u00be\u2150-\u215e\u2189"  # one character each
_PUNCTUATION = r",;:()\[\]{}/+*~=!?\"“”\u2012-\u2015…"

# The order matters: a number has to win over a word, so that glued units ("200g") come apart.
_TOKEN = re.compile(
    rf"""
    (?: \d+ (?:[.,/\u2044]\d+)* [{_FRACTION}]? | \.\d+ | [{_FRACTION}] ) %?
    | [^\s\d\-{_FRACTION}{_PUNCTUATION}]                # a word starts with anything else ...
      (?: [^\s\-{_PUNCTUATION}] | -(?=[^\W\d]) )*       # ... and keeps its hyphens before letters
    | \S                                                # punctuation stands alone
    """,
    re.VERBOSE,
)

_NUMBER = re.compile(rf"[\d.,/\u2044{_FRACTION}]*[\d{_FRACTION}]%?")
_FRACTIONS = re.compile(rf"\d+[/\u2044]\d+|\d*[{_FRACTION}]")
_SHAPE = (
    (re.compile(r"[A-Z]+"), "X"),
    (re.compile(r"[^\W\d_A-Z]+"), "x"),
    (re.compile(r"\d+"), "d"),
)


def tokenize_ingredient(text: str) -> list[str]:
    """Split a recipe-ingredient line into tokens, as the shipped corpus is split.

    White space always separates. Commas, semicolons, colons, brackets, slashes, dashes, plus
    signs and quotation marks are tokens of their own. A number comes apart from letters glued to
    its end (``"200g"``) and from a hyphen (``"2-3"``, ``"14-ounce"``); fractions (``"1/2"``,
    ``"1½"``), decimals and percentages stay whole. Hyphens between letters (``"all-purpose"``),
    apostrophes and the period of an abbreviation (``"tsp."``) stay in the word.

    Joined without blanks the tokens are `text` without its white space: no character is lost.

    Examples
    --------
    >>> tokenize_ingredient("200g/7oz all-purpose flour (2-3 tsp.)")
    ['200', 'g', '/', '7', 'oz', 'all-purpose', 'flour', '(', '2', '-', '3', 'tsp.', ')']
    """
    return _TOKEN.findall(text)


def _read(name: str) -> str:
    return resources.files(_MODULE).joinpath(_FOLDER, name).read_text(encoding="utf-8")


def load_ingredients(*, return_X_y: bool = False, as_frame: bool = False) -> Any:
    """Load the recipe-ingredient corpus, S = 500 hand-labeled English lines.

    Each token has an IOB2 tag over QTY, UNIT, NAME, PREP and COMMENT, or O. The order is fixed
    and mixed. The data card in ``DESCR`` tells the guidelines, the counts and the limits.

    Parameters
    ----------
    return_X_y : bool, default=False
        Whether to return only ``(tokens, tags)``.
    as_frame : bool, default=False
        Whether to return a pandas DataFrame with a row per token.

    Returns
    -------
    data : Bunch, tuple or DataFrame
        By default a :class:`sklearn.utils.Bunch` with

        tokens, tags : list of list of str, length S
            The tokens of each line, as :func:`tokenize_ingredient` splits it, and their IOB2 tags.
        texts : list of str, length S
            The lines as written.
        target_names, labels : list of str
            All tags that occur; the labels without prefix, sorted.
        DESCR, filename, data_module : str
            The data card, the data file and the package folder that holds it.

        With `return_X_y` the tuple ``(tokens, tags)``; with `as_frame` a DataFrame with the
        columns ``line`` (int, from 0), ``token`` and ``tag``.

    Raises
    ------
    ValueError, ImportError
        If both `return_X_y` and `as_frame` are true; if pandas is needed and not installed.

    Examples
    --------
    >>> from crfkit.datasets import load_ingredients
    >>> len(load_ingredients().tokens)
    500
    """
    if return_X_y and as_frame:
        raise ValueError("return_X_y and as_frame exclude each other; set one of them")
    lines = _read(_FILE).split("\n")
    rows, tags = read_conll(lines, sep=" ", comment=_TEXT_MARK)
    tokens = [[token for (token,) in row] for row in rows]
    if return_X_y:
        return tokens, tags
    if as_frame:
        return frame_from_sequences(tokens, {"tag": tags}, by="line")
    return Bunch(
        tokens=tokens,
        tags=tags,
        texts=[line.removeprefix(_TEXT_MARK) for line in lines if line.startswith(_TEXT_MARK)],
        target_names=["O", *(f"{prefix}-{label}" for label in _LABELS for prefix in "BI")],
        labels=list(_LABELS),
        DESCR=_read(_CARD),
        filename=_FILE,
        data_module=f"{_MODULE}.{_FOLDER}",
    )


def _word_attributes(word: str, lower: str) -> list[str]:
    shape = word  # with each run of capitals, other letters or digits as one X, x or d
    for run, symbol in _SHAPE:
        shape = run.sub(symbol, shape)
    attributes = ["bias", f"word={lower}", f"shape={shape}"]
    attributes += [f"prefix{n}={lower[:n]}" for n in (2, 3)]
    attributes += [f"suffix{n}={lower[-n:]}" for n in (2, 3)]
    flags = {
        "is_number": _NUMBER.fullmatch(word),
        "is_fraction": _FRACTIONS.fullmatch(word),
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

    All are binary; `tokens` are those of one line, as from :func:`tokenize_ingredient`.

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
