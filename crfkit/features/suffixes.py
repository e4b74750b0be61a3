"""Classes of unknown words, by what they end in and how they are written."""

from __future__ import annotations

import re
from array import array
from collections import Counter
from collections.abc import Container, Sequence
from dataclasses import dataclass
from itertools import compress, pairwise
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator

from crfkit._params import check_whole
from crfkit._types import IntArray

UNKNOWN = "<unknown>"  # stands for all symbols that are not known, the last of each column
CLASS = "<unknown "  # what the other classes of unknown symbols begin with
_DIGITS = re.compile(r"\d")


class SuffixTree(NamedTuple):
    """Classes of words, each of which but the last is a part of another one."""

    members: sp.csr_array  # (W, H) ones: which classes each word would be in, were it not known
    leaf: IntArray  # (W,) the smallest of these
    parent: IntArray  # (H,) the smallest class that each is a part of; -1 of `UNKNOWN`, the last

    @property
    def depth(self) -> IntArray:
        """How many classes each is a part of, (H,)."""
        depth, above = np.zeros(len(self.parent), np.int64), self.parent
        while np.any(above >= 0):
            depth += above >= 0
            above = np.where(above >= 0, self.parent[above], -1)
        return depth


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
        """Return the classes that a word may have, from the one that is preferred to `UNKNOWN`.

        The last three are what it consists of, its case, and any word; the others are suffixes.
        """
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

    def tree(self, words: Sequence[str], classes: Sequence[str]) -> SuffixTree:
        """Return how words (W,) and classes (H,), of which `UNKNOWN` is the last, are related."""
        number = {name: h for h, name in enumerate(classes)}
        parent = np.full(len(classes), len(classes) - 1)
        parent[-1] = -1
        members, sizes, leaves = array("i"), array("i"), array("i")
        for word in words:
            *chain, shape, case, top = map(number.get, self.chain(word))
            suffixes = [h for h in chain if h is not None]
            above = [h for h in (case, top) if h is not None]
            ends = [*suffixes, *above]
            for smaller, larger in pairwise(ends):
                parent[smaller] = larger
            if shape is not None:
                parent[shape] = above[0]
                ends.append(shape)
            leaves.append(suffixes[0] if suffixes else above[0] if shape is None else shape)
            members.extend(ends)
            sizes.append(len(ends))
        ptr = np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)])
        rows = np.ones(len(members)), np.array(members), ptr
        matrix = sp.csr_array(rows, shape=(len(words), len(classes)))
        return SuffixTree(matrix, np.array(leaves, np.int64), parent)

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
