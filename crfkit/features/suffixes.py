"""Classes of unknown words, by what they end in and how they are written."""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, Self

import numpy as np
from sklearn.base import BaseEstimator

from crfkit._params import check_whole
from crfkit._types import BoolArray, CodeArray, IntArray
from crfkit.features.letters import NONE, SHAPES, Endings, Letters, RepeatedSuffixes, Spelling
from crfkit.features.word_table import Lines

UNKNOWN = "<unknown>"  # stands for all symbols that are not known, the last of each column
CLASS = "<unknown "  # what the other classes of unknown symbols begin with
CASES = "A", "a"
_DIGITS = re.compile(r"\d")


class WordClasses(NamedTuple):
    """Classes of words that are not known."""

    leaf: IntArray  # (W,) the smallest class
    end: IntArray  # (W,) the longest suffix, or the case, or the last class
    shape: IntArray  # (W,) the class of all that consist of the same; -1 where there is none


class SuffixTree(NamedTuple):
    """Classes of words, each of which but the last is a part of another one."""

    leaf: IntArray  # (W,) the smallest class that each word would be in, were it not known
    end: IntArray  # (W,)
    shape: IntArray  # (W,)
    parent: IntArray  # (H,) the smallest class that each is a part of; -1 of `UNKNOWN`, the last

    def levels(self) -> list[IntArray]:
        """Return the classes that are a part of no other one, of one, of two, and so on."""
        is_last = self.parent < 0
        found, left = [np.flatnonzero(is_last)], np.flatnonzero(~is_last)
        while len(left):
            here = is_last[self.parent[left]]
            found.append(left[here])
            is_last[found[-1]], left = True, left[~here]
        return found


class ClassFinder:
    """Finds the classes of many words: all but the last one of `names`, `UNKNOWN`, by numbers.

    Suffixes have `max_length` letters at most.
    """

    def __init__(
        self, n_classes: int, max_length: int, kinds: tuple[IntArray, IntArray], endings: Endings
    ) -> None:
        self.n_classes, self._max_length = n_classes, max_length
        (self._cases, self._shapes), self._endings = kinds, endings

    @classmethod
    def of(cls, names: Sequence[str], max_length: int) -> Self:
        """Return what finds classes of these names."""
        number = {name: h for h, name in enumerate(names)}
        last = len(names) - 1
        shapes = range(len(SHAPES))
        kinds = [[number.get(_kind_name(c, n), NONE) for n in shapes] for c in range(len(CASES))]
        cases = [number.get(_kind_name(c, len(SHAPES)), last) for c in range(len(CASES))]
        found = np.array(cases, np.int64), np.array(kinds, np.int64)
        return cls(len(names), max_length, found, _endings(names))

    def find(self, spelling: Spelling, lower: Letters) -> WordClasses:
        """Return the classes of words, given how they are written and their lower case, (W,)."""
        cases = (~spelling.capital).astype(np.int32)
        suffix = self._endings.find(lower.without_digits(), cases, self._max_length)
        end = np.where(suffix >= 0, suffix, self._cases[cases])
        shape = self._shapes[cases, spelling.shape]
        return WordClasses(np.where((suffix >= 0) | (shape < 0), end, shape), end, shape)

    def tree(self, words: Sequence[str]) -> SuffixTree:
        """Return how words (W,) and the classes are related."""
        spelling, lower = Letters.of(words).spelling(), Letters.of(words, in_lower_case=True)
        return SuffixTree(*self.find(spelling, lower), self.parents())

    def symbols(
        self, text: str, find: Callable[[Lines], CodeArray], n_known: int, is_first: BoolArray
    ) -> IntArray:
        """Return what words, the W lines of a text, are read as that are not known.

        The numbers of symbols, as `find` returns them, -1 for none: the first ones are known, the
        others are the classes. `is_first` tells which words begin a sequence, (W,).
        """
        spelling, small = Letters.of_text(text).spelling(), text.lower()
        found = n_known + self.find(spelling, Letters.of_text(small)).leaf
        lines = Lines.of_text(small, len(found))
        if lines is not None:
            other = np.where(is_first | spelling.upper, find(lines), NONE)
            found = np.where(other >= 0, other, found)
        return found

    def parents(self) -> IntArray:
        """Return the smallest class that each is a part of, (H,); -1 of the last one."""
        last = self.n_classes - 1
        found = np.full(self.n_classes, last)
        for case, shapes in zip(self._cases, self._shapes, strict=True):
            found[shapes[shapes >= 0]] = case
        names, parents, cases = self._endings.parents()
        found[names] = np.where(parents >= 0, parents, self._cases[cases])
        found[last] = NONE
        return found


def _endings(names: Sequence[str]) -> Endings:
    """Return the suffixes among classes, which stand for the places of these."""
    lead = len(CLASS)
    chosen = [h for h, name in enumerate(names) if name[lead + 1 : lead + 2] == "*"]
    groups = np.array([names[h][lead] == CASES[1] for h in chosen], np.int32)
    texts = [names[h][lead + 2 : -1] for h in chosen]
    return Endings.of(texts, groups, np.array(chosen, np.int64))


class LearnedClasses:
    """Classes of unknown words, learned from known ones."""

    def __init__(
        self,
        suffixes: RepeatedSuffixes,
        kinds: BoolArray,
        most: int,
        words: tuple[Spelling, Letters],
    ) -> None:
        """Give numbers to suffixes, of so many letters at most, and to `kinds` of words.

        In the order of their names. `kinds`, (2, `SHAPES` + 1), tell which shapes of words of each
        case are classes; the last column is all words of the case.
        """
        self._suffixes, self._places = suffixes, np.empty(len(suffixes.numbers), np.int64)
        self._kinds, order, begin = np.full(kinds.shape, NONE), suffixes.order(), 0
        for case, are_classes in enumerate(kinds):
            own = order[suffixes.groups[order] == case]
            for n in _SHAPE_ORDER[are_classes[_SHAPE_ORDER]].tolist():
                self._kinds[case, n], begin = begin, begin + 1
            self._places[own] = np.arange(begin, begin + len(own))
            begin += len(own)
            if are_classes[-1]:
                self._kinds[case, -1], begin = begin, begin + 1
        cases = np.where(self._kinds[:, -1] < 0, begin, self._kinds[:, -1])
        endings = suffixes.named(self._places)
        self.finder = ClassFinder(begin + 1, most, (cases, self._kinds[:, :-1]), endings)
        self.words: WordClasses = self.finder.find(*words)  # what the known ones would be in, (W,)

    @cached_property
    def names(self) -> list[str]:
        """The names, sorted, without `UNKNOWN`."""
        found = [""] * (self.finder.n_classes - 1)
        for case, n in np.argwhere(self._kinds >= 0).tolist():
            found[self._kinds[case, n]] = _kind_name(case, n)
        leads = [f"{CLASS}{case}*" for case in CASES]
        parts = self._places, self._suffixes.groups
        for place, group, text in zip(
            *(part.tolist() for part in parts), self._suffixes.texts.strings(), strict=True
        ):
            found[place] = f"{leads[group]}{text}>"
        return found


def _kind_name(case: int, shape: int) -> str:
    """Return the name of the class of all words of a case, of some shape or, at last, of any."""
    return f"{CLASS}{CASES[case]}{' ' * (shape < len(SHAPES))}{(*SHAPES, '')[shape]}>"


# The places of `SHAPES` in the order of their names.
_SHAPE_ORDER = np.argsort([f"{shape}>" for shape in SHAPES])


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
        """Return the classes of words that occur so often, shape (W,).

        TypeError if a word is no string.
        """
        if not set(map(type, words)) <= {str}:
            number = next(word for word in words if not isinstance(word, str))
            raise TypeError(
                f"column {self.column!r} of words has the symbol {number!r}, which has no "
                "suffixes: it is no string."
            )
        letters = Letters.of(words), Letters.of(words, in_lower_case=True)
        return self.learn_letters(*letters, counts)

    def learn_letters(self, words: Letters, lower: Letters, counts: IntArray) -> LearnedClasses:
        """Return the classes of words, given their letters and those in lower case, (W,)."""
        self.check_parameters()
        spelling = words.spelling()
        rare, cases = counts <= self.max_count, (~spelling.capital).astype(np.int32)
        times = np.zeros((len(CASES), len(SHAPES) + 1), np.int64)
        np.add.at(times, (cases[rare], spelling.shape[rare]), 1)
        times[:, -1] = times.sum(axis=1)
        plain = lower.without_digits().of_words(rare)
        suffixes = RepeatedSuffixes.of(plain, cases[rare], self.max_length)
        return LearnedClasses(suffixes, times > 1, self.max_length, (spelling, lower))

    def tree(self, words: Sequence[str], classes: Sequence[str]) -> SuffixTree:
        """Return how words (W,) and classes (H,), of which `UNKNOWN` is the last, are related."""
        return self.finder(classes).tree(words)

    def finder(self, classes: Sequence[str]) -> ClassFinder:
        """Return what finds the classes of words, of which `UNKNOWN` is the last."""
        return ClassFinder.of(classes, self.max_length)

    def find(self, word: Any, known: Container[str], is_first: bool = False) -> str:
        """Return the symbol that a word is read as that is not `known`, out of those that are."""
        if not isinstance(word, str):
            return UNKNOWN
        lower = word.lower()
        if (is_first or (word.isupper() and len(word) > 1)) and lower in known:
            return lower
        return self._class_of(word, known)

    def _class_of(self, word: str, known: Container[str]) -> str:
        """Return the class of a word, out of those that are known."""
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
