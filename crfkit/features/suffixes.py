"""Classes of unknown words, by what they end in and how they are written."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Container, Sequence
from dataclasses import dataclass
from itertools import compress
from typing import Any

from sklearn.base import BaseEstimator

from crfkit._params import check_whole
from crfkit._types import IntArray

UNKNOWN = "<unknown>"  # stands for all symbols that are not known, the last of each column
CLASS = "<unknown "  # what the other classes of unknown symbols begin with
_DIGITS = re.compile(r"\d")


@dataclass(kw_only=True, eq=False, repr=False)
class SuffixClasses(BaseEstimator):  # type: ignore[misc]
    """Classes of the words of a column that are not known, as in TnT (Brants 2000).

    The class of a word is the longest of its suffixes that two rare words of the training data end
    in, apart for words in upper and lower case. Letters are those in lower case, digits are all 0.
    Where no suffix is known, it is what the word consists of: no letters and digits; a digit; upper
    case; a capital first; a hyphen; lower case. A word that begins a sequence, or is in upper case
    throughout, is read as the same in lower case, where that is known.

    Parameters
    ----------
    column : int or str, default=0
        The column of the words, by its place or its name.
    max_length : int, default=10
        Letters of a suffix at most.
    max_count : int, default=10
        Words that occur so often, or less, are rare.

    References
    ----------
    T. Brants: TnT - a statistical part-of-speech tagger. ANLP 2000, section 2.3.
    """

    column: int | str = 0
    max_length: int = 10
    max_count: int = 10

    def check_parameters(self) -> None:
        """Raise TypeError or ValueError if a parameter cannot be used."""
        check_whole("max_length", self.max_length)
        check_whole("max_count", self.max_count, 1)

    def place(self, columns: list[str]) -> int:
        """Return the number of the column; ValueError if there is none such."""
        if isinstance(self.column, str) and self.column in columns:
            return columns.index(self.column)
        if isinstance(self.column, int) and 0 <= self.column < len(columns):
            return int(self.column)
        raise ValueError(f"column={self.column!r} of words is none of the columns {columns!r:.80}.")

    def chain(self, word: str) -> list[str]:
        """Return the classes that a word may have, each more general than the one before."""
        case = "A" if word[:1].isupper() else "a"
        plain = _DIGITS.sub("0", word).lower()
        sizes = range(min(self.max_length, len(plain)), 0, -1)
        suffixes = [f"{CLASS}{case}*{plain[-size:]}>" for size in sizes]
        return [*suffixes, f"{CLASS}{case} {_shape(word)}>", f"{CLASS}{case}>", UNKNOWN]

    def learn(self, words: Sequence[Any], counts: IntArray) -> list[str]:
        """Return the classes of words that occur so often, shape (n,), without `UNKNOWN`.

        TypeError if a word is no string.
        """
        self.check_parameters()
        number = next((word for word in words if not isinstance(word, str)), None)
        if number is not None:
            raise TypeError(
                f"column {self.column!r} of words has the symbol {number!r}, which has no "
                "suffixes: it is no string."
            )
        rare = compress(words, (counts <= self.max_count).tolist())
        found = Counter(name for word in rare for name in self.chain(word)[:-1])
        return sorted(name for name, count in found.items() if count > 1)

    def find(self, word: Any, known: Container[str], is_first: bool = False) -> str:
        """Return the symbol that a word is read as that is not `known`, out of those that are."""
        if not isinstance(word, str):
            return UNKNOWN
        lower = word.lower()
        if (is_first or (word.isupper() and len(word) > 1)) and lower in known:
            return lower
        return next(name for name in self.chain(word) if name in known)


def _shape(word: str) -> str:
    """Return what a word consists of."""
    if not any(map(str.isalnum, word)):
        return "."
    if any(map(str.isdigit, word)):
        return "0"
    if word.isupper() and len(word) > 1:
        return "AA"
    if word[:1].isupper():
        return "A"
    return "-" if "-" in word else "a"
