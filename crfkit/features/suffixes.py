"""Classes of unknown words, by what they end in and how they are written."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass
from itertools import compress
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator

from crfkit._params import check_whole
from crfkit._types import IntArray

UNKNOWN = "<unknown>"  # stands for all symbols that are not known, the last of each column
CLASS = "<unknown "  # what the other classes of unknown symbols begin with
CASES = "A", "a"
LETTERS = 0x110000  # of Unicode
_DIGITS = re.compile(r"\d")


class SuffixTree(NamedTuple):
    """Classes of words, each of which but the last is a part of another one."""

    leaf: IntArray  # (W,) the smallest class that each word would be in, were it not known
    end: IntArray  # (W,) the longest suffix, or the case, or the last class
    shape: IntArray  # (W,) the class of all that consist of the same; -1 where there is none
    parent: IntArray  # (H,) the smallest class that each is a part of; -1 of `UNKNOWN`, the last

    def levels(self) -> list[IntArray]:
        """Return the classes that are a part of no other one, of one, of two, and so on."""
        found, left = [np.flatnonzero(self.parent < 0)], np.flatnonzero(self.parent >= 0)
        while len(left):
            here = np.isin(self.parent[left], found[-1])
            found.append(left[here])
            left = left[~here]
        return found


class LearnedClasses(NamedTuple):
    """Classes of rare words."""

    names: list[str]  # sorted, without `UNKNOWN`
    suffixes: dict[str, str | None]  # of the rare words: the longest one that is known
    shapes: dict[str, str]  # what they consist of, known or not


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

    def learn(self, words: Sequence[Any], counts: IntArray) -> LearnedClasses:
        """Return the classes of words that occur so often, shape (n,).

        TypeError if a word is no string.
        """
        self.check_parameters()
        number = next((word for word in words if not isinstance(word, str)), None)
        if number is not None:
            raise TypeError(
                f"column {self.column!r} of words has the symbol {number!r}, which has no "
                "suffixes: it is no string."
            )
        rare = list(compress(words, (counts <= self.max_count).tolist()))
        cases = list(map(_case, rare))
        shapes = [f"{CLASS}{case} {_shape(word)}>" for word, case in zip(rare, cases, strict=True)]
        found = _repeated(shapes) | _repeated([f"{CLASS}{case}>" for case in cases])
        names, longest = self._repeated_suffixes(rare, np.array(cases))
        ends = map([*names, None].__getitem__, longest.tolist())
        return LearnedClasses(
            sorted(found.union(names)), dict(zip(rare, ends, strict=True)),
            dict(zip(rare, shapes, strict=True)),
        )  # fmt: skip

    def _repeated_suffixes(
        self, words: list[str], cases: NDArray[np.str_]
    ) -> tuple[list[str], IntArray]:
        """Return the suffixes that two words end in, and the longest one of each, -1 for none."""
        plain, names, longest = list(map(_plain, words)), list[str](), np.full(len(words), -1)
        most = max(min(self.max_length, max(map(len, plain), default=0)), 1)
        letters = np.array([text[: -most - 1 : -1] for text in plain], f"U{most}")
        codes = letters.view(np.uint32).reshape(len(words), most)
        left, group = np.arange(len(words)), np.where(cases == "A", 1, 0)
        lengths = np.fromiter(map(len, plain), np.int64, len(plain))
        for size in range(1, min(self.max_length, most) + 1):
            longer = lengths[left] >= size
            left, group = left[longer], group[longer]
            pairs = group * LETTERS + codes[left, size - 1]  # a suffix, and the letter before it
            _, first, group, counts = np.unique(
                pairs, return_index=True, return_inverse=True, return_counts=True
            )
            number = np.cumsum(counts > 1) - 1
            kept = counts[group] > 1
            examples = left[first[counts > 1]].tolist()
            longest[left[kept]] = len(names) + number[group[kept]]
            names += [f"{CLASS}{cases[n]}*{plain[n][-size:]}>" for n in examples]
            left, group = left[kept], number[group[kept]]
        return names, longest

    def tree(
        self, words: Sequence[str], classes: Sequence[str], learned: LearnedClasses | None = None
    ) -> SuffixTree:
        """Return how words (W,) and classes (H,), of which `UNKNOWN` is the last, are related.

        Of some words the classes may be known, as they were `learned`.
        """
        number = {name: h for h, name in enumerate(classes)}
        last, kinds = len(classes) - 1, [name[len(CLASS) + 1 : len(CLASS) + 2] for name in classes]
        cases = {case: number.get(f"{CLASS}{case}>", last) for case in CASES}
        parent = np.full(len(classes), last)
        parent[-1] = -1
        for (name, h), kind in zip(number.items(), kinds, strict=True):
            lead, rest = name[: len(CLASS) + 2], name[len(CLASS) + 3 :]
            if kind == "*" and len(rest) > 1:
                parent[h] = number.get(lead + rest, last)
            elif kind in ("*", " "):
                parent[h] = cases.get(lead[-2], last)
        end, shape = np.empty((2, len(words)), np.int64)
        suffixes, shapes = ({}, {}) if learned is None else learned[1:]
        for n, word in enumerate(words):
            if word in shapes:
                suffix, consists = suffixes[word], shapes[word]
            else:
                suffix, consists = self._ends(word, number)
            end[n] = cases[_case(word)] if suffix is None else number[suffix]
            shape[n] = number.get(consists, -1)
        is_suffix = np.array([kind == "*" for kind in kinds])
        return SuffixTree(np.where(is_suffix[end] | (shape < 0), end, shape), end, shape, parent)

    def _ends(self, word: str, known: Container[str]) -> tuple[str | None, str]:
        """Return the classes of the longest suffix of a word that is known, and of its shape."""
        case = _case(word)
        return self._suffix(case, word, known), f"{CLASS}{case} {_shape(word)}>"

    def find(self, word: Any, known: Container[str], is_first: bool = False) -> str:
        """Return the symbol that a word is read as that is not `known`, out of those that are."""
        if not isinstance(word, str):
            return UNKNOWN
        lower = word.lower()
        if (is_first or (word.isupper() and len(word) > 1)) and lower in known:
            return lower
        case = _case(word)
        suffix = self._suffix(case, word, known)
        if suffix is not None:
            return suffix
        names = f"{CLASS}{case} {_shape(word)}>", f"{CLASS}{case}>"
        return next((name for name in names if name in known), UNKNOWN)

    def _suffix(self, case: str, word: str, known: Container[str]) -> str | None:
        """Return the class of the longest suffix of a word that is known; None if there is none."""
        plain, lead, found = _plain(word), f"{CLASS}{case}*", None
        for size in range(1, min(self.max_length, len(plain)) + 1):
            name = f"{lead}{plain[-size:]}>"
            if name not in known:
                break
            found = name
        return found


def _repeated(items: Iterable[str]) -> set[str]:
    """Return the items that occur at least twice."""
    return {item for item, count in Counter(items).items() if count > 1}


def _case(word: str) -> str:
    return "A" if word[:1].isupper() else "a"


def _plain(word: str) -> str:
    """Return a word in lower case with all digits 0."""
    lower = word.lower()
    return lower if lower.isalpha() else _DIGITS.sub("0", lower)


def _shape(word: str) -> str:
    """Return what a word consists of."""
    if not word.isalpha():
        if not any(map(str.isalnum, word)):
            return "."
        if any(map(str.isdigit, word)):
            return "0"
    if word[:1].isupper():
        return "AA" if word.isupper() and len(word) > 1 else "A"
    return "-" if "-" in word else "a"
