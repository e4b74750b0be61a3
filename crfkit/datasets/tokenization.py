"""Tokenization of recipe-ingredient lines, as used for the shipped corpus."""

from __future__ import annotations

import re

_FRACTION = "\u00bc-\u00be\u2150-\u215e\u2189"
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


def tokenize_ingredient(text: str) -> list[str]:
    """Split a recipe-ingredient line into tokens, as the shipped corpus is split.

    White space always separates. Commas, semicolons, colons, brackets, slashes, dashes, plus
    signs and quotation marks are tokens of their own. A number comes apart from letters glued to
    its end (``"200g"``) and from a hyphen (``"2-3"``, ``"14-ounce"``); fractions (``"1/2"``,
    ``"1½"``), decimals and percentages stay whole. Hyphens between letters (``"all-purpose"``),
    apostrophes and the period of an abbreviation (``"tsp."``) stay in the word.

    Parameters
    ----------
    text : str
        One line, in any case and spacing.

    Returns
    -------
    list of str
        The tokens in order. Joined without blanks they are `text` without its white space,
        so no character is lost or changed.

    Examples
    --------
    >>> tokenize_ingredient("200g/7oz all-purpose flour (2-3 tsp.)")
    ['200', 'g', '/', '7', 'oz', 'all-purpose', 'flour', '(', '2', '-', '3', 'tsp.', ')']
    """
    return _TOKEN.findall(text)
