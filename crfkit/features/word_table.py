"""Words of whole batches as numbers: they are joined to one text, whose lines a kernel looks up."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from typing import NamedTuple, Self

import numpy as np

from crfkit._types import ByteArray, CodeArray, IntArray
from crfkit.compiler.jit import frozen
from crfkit.kernels.text.lines import LineTable, lines_key, lines_number, table_extend

SEPARATOR = "\n"
FETCHED = 1 << 10  # words that are looked at together
_LEAST_SLOTS, _LEAST_BYTES = 1 << 10, 1 << 13  # of a table without words


class Lines(NamedTuple):
    """Words, each a line of a text in UTF-8; lone surrogates are encoded alike."""

    text: ByteArray  # (n,)
    ends: IntArray  # (N,) where the lines end
    keys: IntArray  # (N,)

    @classmethod
    def of(cls, parts: Sequence[Sequence[str]], size: int) -> Self | None:
        """Return `size` words, some in each part; None if one is no string, or has a newline."""
        try:
            text = SEPARATOR.join(map(SEPARATOR.join, together(parts, size)))
        except TypeError:
            return None
        return cls.of_text(text + SEPARATOR, size)

    @classmethod
    def of_text(cls, text: str, size: int) -> Self | None:
        """Return the lines of a text; None if they are not so many."""
        return cls.of_bytes(np.frombuffer(text.encode("utf-8", "surrogatepass"), np.uint8), size)

    @classmethod
    def of_bytes(cls, text: ByteArray, size: int) -> Self | None:
        """Return the lines of the bytes of a text; None if they are not so many."""
        quads = np.zeros(len(text) // 4 + 3, "<i4")
        quads.view(np.uint8)[: len(text)] = text
        given = frozen(quads.astype(np.int32, copy=False)), len(text)
        ends, keys = np.empty((2, size), np.int64)
        return cls(text, ends, keys) if lines_key(*given, ends, keys) == size else None

    def string(self, chosen: IntArray) -> str:
        """Return the text of chosen lines."""
        starts = np.concatenate([[0], self.ends + 1])[chosen]
        lengths = self.ends[chosen] + 1 - starts
        places = np.repeat(starts - (np.cumsum(lengths) - lengths), lengths)
        return text_of(self.text[places + np.arange(len(places))])


def together(parts: Sequence[Sequence[str]], size: int) -> Iterator[Sequence[str]]:
    """Yield `size` words, those of several parts together where these are short.

    The words of texts lie anywhere in memory. A list of many is made without waiting for each to
    be fetched, and to join them then finds all in the cache.
    """
    count = FETCHED * len(parts) // max(size, 1)
    if count < 2:
        yield from filter(None, parts)
        return
    for begin in range(0, len(parts), count):
        words = list[str]()
        deque(map(words.extend, parts[begin : begin + count]), maxlen=0)
        if words:
            yield words


def text_of(found: ByteArray) -> str:
    """Return the text of bytes."""
    return found.tobytes().decode("utf-8", "surrogatepass")


class WordTable:
    """A hash table of words, which are numbered in the order of their appearance."""

    def __init__(self) -> None:
        self._make(_LEAST_SLOTS, _LEAST_BYTES)

    @classmethod
    def of(cls, words: Sequence[str]) -> Self | None:
        """Return the table of different words; None if one is no string, or has a newline."""
        table = cls()
        if not words:
            return table
        lines = Lines.of([words], len(words))
        if lines is None:
            return None
        table.number(lines)
        return table

    def __len__(self) -> int:
        return int(self._table.n_words[0])

    def number(self, lines: Lines) -> CodeArray:
        """Return the numbers of words, shape (N,), adding those that are new."""
        out: CodeArray = np.empty(len(lines.ends), np.int32)
        done = self._look_up(lines, 0, True, out)
        while done < len(out):
            self._grow(int(lines.ends[done] - lines.ends[done - 1]) if done else lines.ends[0] + 1)
            done = self._look_up(lines, done, True, out)
        return out

    def find(self, lines: Lines) -> CodeArray:
        """Return the numbers of words, shape (N,), -1 for those that are not in the table."""
        out: CodeArray = np.empty(len(lines.ends), np.int32)
        self._look_up(lines, 0, False, out)
        return out

    def words(self) -> list[str]:
        """Return the words in the order of their numbers."""
        return self.text().split(SEPARATOR)[:-1]

    def text(self) -> str:
        """Return the words in the order of their numbers, each with a newline."""
        return text_of(self._text())

    def _text(self) -> ByteArray:
        size = len(self)
        return self._table.words[: int(self._table.ends[size - 1]) + 1] if size else _NONE

    def lines(self) -> Lines:
        """Return the words as lines."""
        lines = Lines.of_bytes(self._text(), len(self))
        assert lines is not None
        return lines

    def _grow(self, needed: int) -> None:
        """Make room for more words, and for one of so many bytes."""
        old, text, size = self._table, self._text(), len(self)
        n_slots, n_bytes = len(old.slots) // 2, len(old.words)
        n_slots = 4 * n_slots if size == len(old.ends) else n_slots
        is_full = len(text) + needed > n_bytes
        self._make(n_slots, 2 * (n_bytes + needed) if is_full else n_bytes)
        self._table.words[: len(text)] = text
        self._table.ends[:size] = old.ends[:size]
        self._table.n_words[0] = size
        table_extend(frozen(old.slots), self._table.slots)

    def _make(self, n_slots: int, n_bytes: int) -> None:
        self._table = LineTable(
            np.full(2 * n_slots, -1, np.int64), np.empty(n_bytes, np.uint8),
            np.empty(n_slots // 2, np.int64), np.zeros(1, np.int64),
        )  # fmt: skip

    def _look_up(self, lines: Lines, start: int, grows: bool, out: CodeArray) -> int:
        given = frozen(lines.text), frozen(lines.ends), frozen(lines.keys)
        return lines_number(*given, start, self._table, grows, out)


class StringNumbers:
    """Numbers strings in the order of their appearance."""

    def __init__(self) -> None:
        self._table = WordTable()

    def of(self, parts: list[list[str]], size: int) -> CodeArray | None:
        """Return the numbers of so many strings; None if one is none, or has a newline."""
        lines = Lines.of(parts, size)
        return None if lines is None else self._table.number(lines)


_NONE = np.zeros(0, np.uint8)
