"""The symbols of a column that were read: which of them are known, and in which order."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable
from itertools import compress, count
from typing import Any, NamedTuple

import numpy as np

from crfkit._types import IntArray
from crfkit.data.labels import sorted_labels
from crfkit.features.letters import Letters
from crfkit.features.suffixes import CLASS, UNKNOWN, LearnedClasses, SuffixClasses
from crfkit.features.symbol_reader import GrowingNumbers, Symbol
from crfkit.features.word_table import SEPARATOR, WordTable


class ColumnSymbols:
    """Symbols, which are made when somebody asks for them: most fits do not."""

    def __init__(self, size: int, make: Callable[[], list[Symbol]]) -> None:
        self._size, self._make = size, make

    def __len__(self) -> int:
        return self._size

    def made(self) -> list[Symbol]:
        """Return the symbols."""
        return self._make()


class FoundSymbols(NamedTuple):
    """The symbols of a column, of which the last one is `UNKNOWN`."""

    symbols: ColumnSymbols  # those that are known, sorted as they were learned, and classes
    n_known: int
    places: IntArray  # (W,) of what was read, in the order of appearance; -1 what is not known
    learned: LearnedClasses | None  # of the words that were read, (W,), where all are new

    @classmethod
    def of(
        cls,
        table: GrowingNumbers,
        counts: IntArray,
        least: int,
        before: tuple[list[Symbol], list[str]],
        suffixes: SuffixClasses | None,
    ) -> FoundSymbols:
        """Return the symbols of a table that occur so often, (W,), beside those known `before`.

        `suffixes` learn the classes of a column of words. ValueError or TypeError if symbols, or
        words, cannot be used.
        """
        if table.words is not None and not any(before):
            text = table.words.text()
            if UNKNOWN[:-1] not in text:
                return _of_words(table.words, text, counts, least, suffixes)
        found, (known, classes) = table.symbols(), before
        often = list(compress(found, (counts >= least).tolist()))
        known = [*known, *_new_symbols(often, table.are_words, known)]
        if suffixes is not None:
            is_word = np.array([not is_unknown(symbol) for symbol in found], bool)
            words = list(compress(found, is_word.tolist()))
            classes = sorted({*classes, *suffixes.learn(words, counts[is_word]).names})
        place = dict(zip(known, count()))
        places = np.array([place.get(symbol, -1) for symbol in found], np.int64)
        symbols = [*known, *classes, UNKNOWN]
        return cls(ColumnSymbols(len(symbols), lambda: symbols), len(known), places, None)


def _of_words(
    words: WordTable, text: str, counts: IntArray, least: int, suffixes: SuffixClasses | None
) -> FoundSymbols:
    """Return the symbols of a column of new words, the lines of a text."""
    letters, lines = Letters.of_text(text), words.lines()
    order = letters.order()
    order = order[counts[order] >= least]
    places = np.full(len(counts), -1)
    places[order] = np.arange(len(order))
    learned, n_classes = None, 1
    if suffixes is not None:
        learned = suffixes.learn_letters(letters, Letters.of_text(text.lower()), counts)
        n_classes = learned.finder.n_classes

    def make() -> list[Symbol]:
        names = [] if learned is None else learned.names
        return [*lines.string(order).split(SEPARATOR)[:-1], *names, UNKNOWN]

    return FoundSymbols(ColumnSymbols(len(order) + n_classes, make), len(order), places, learned)


def is_unknown(symbol: Symbol) -> bool:
    """Whether something written as a symbol stands for those that are not known."""
    return isinstance(symbol, str) and (symbol == UNKNOWN or symbol.startswith(CLASS))


def _new_symbols(symbols: list[Symbol], are_words: bool, known: list[Symbol]) -> list[Symbol]:
    """Return symbols that are not known, sorted; ValueError if two are written alike."""
    if len(known) > 1:
        old = set(known)
        symbols = [symbol for symbol in symbols if symbol not in old]
    if not are_words:
        _check_types([*symbols, *known])
        return [s for s in sorted_labels(symbols).tolist() if not is_unknown(s)]
    symbols = sorted(symbols)
    begin, end = (bisect_left(symbols, lead) for lead in (UNKNOWN[:-1], CLASS[:-1] + "\x7f"))
    symbols[begin:end] = [symbol for symbol in symbols[begin:end] if not is_unknown(symbol)]
    return symbols


def _check_types(symbols: list[Any]) -> None:
    """Raise ValueError if two symbols are written alike."""
    strings = {symbol for symbol in symbols if isinstance(symbol, str)}
    twins = [symbol for symbol in symbols if str(symbol) in strings]
    twins = [symbol for symbol in twins if not isinstance(symbol, str)]
    if twins:
        raise ValueError(
            f"X has the symbols {twins[0]!r} and {str(twins[0])!r} in one column: convert all to "
            "one type."
        )
