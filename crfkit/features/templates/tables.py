"""Tables of the strings of columns, of the results of functions of them, and of pairs of codes."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from itertools import repeat
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crfkit._types import BoolArray, CodeArray, FloatArray, IntArray
from crfkit.compiler.jit import frozen
from crfkit.features.encoding import GrowingIndex
from crfkit.features.functions import FLAG_ITEM, Items
from crfkit.features.templates.columns import NOTHING
from crfkit.kernels.text.hashing import SHIFT, Pairs, pairs_number

_LEAST = 1024  # slots of a table without pairs


class StringTable:
    """The different strings of a column and their codes, from `first` on.

    Codes below are those of marks, which stand for cells outside of a sequence.
    """

    def __init__(self, first: int, strings: list[str]) -> None:
        self.first = first
        self.strings = strings

    @classmethod
    def learn(cls, first: int, values: list[Any]) -> tuple[StringTable, CodeArray]:
        """Return the table of a column, and its codes, (N,); TypeError if one is no string."""
        index = GrowingIndex()
        codes = np.fromiter(map(index.__getitem__, values), np.int32, len(values))
        return cls(first, list(index)), codes + np.int32(first)

    def __len__(self) -> int:
        return self.first + len(self.strings)

    def find(self, strings: list[str]) -> tuple[CodeArray, list[str]]:
        """Return codes, (N,), and new strings, whose codes follow those of the table."""
        codes = np.fromiter(map(self.index.get, strings, repeat(NOTHING)), np.int32, len(strings))
        places = np.flatnonzero(codes == NOTHING)
        more, codes[places] = self.learn(len(self), [strings[place] for place in places])
        return codes, more.strings

    @cached_property
    def index(self) -> dict[str, int]:
        """The code of each string."""
        return {string: self.first + i for i, string in enumerate(self.strings)}

    def __getstate__(self) -> dict[str, Any]:
        """Leave out what follows from the strings."""
        return {"first": self.first, "strings": self.strings}

    def _check_state(self) -> None:
        """Raise ValueError if a stored table is damaged."""
        if not isinstance(self.first, int) or self.first < 0:
            raise ValueError("a table of strings has a first code below 0.")
        check_texts(self.strings)


def check_texts(texts: Any) -> None:
    """Raise ValueError if something is not a list of strings."""
    if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
        raise ValueError("a table of strings holds something else.")


class TextTable:
    """One text for each code of a column; None where there is none."""

    def __init__(self, results: list[str | None]) -> None:
        index: dict[str, int] = {}
        codes = [
            NOTHING if text is None else index.setdefault(text, len(index)) for text in results
        ]
        self.codes: CodeArray = np.array(codes, np.int32)
        self.texts = list(index)

    def add(self, text: str) -> int:
        """Return the code of a text, which is added if it is new."""
        code = self.code(text)
        if code == NOTHING:
            self.texts.append(text)
            code = self._index[text] = len(self.texts) - 1
        return code

    def size(self) -> int:
        """Return the number of codes of the column."""
        return len(self.codes)

    def code(self, text: str) -> int:
        """Return the code of a text, -1 if there is none."""
        return self._index.get(text, NOTHING)

    @cached_property
    def _index(self) -> dict[str, int]:
        return {text: code for code, text in enumerate(self.texts)}

    def holding(self, character: str) -> BoolArray:
        """Return which texts hold a character, with a last one that does not."""
        known: dict[str, BoolArray] = self.__dict__.setdefault("_holding", {})
        if character not in known or len(known[character]) != len(self.texts) + 1:
            flags = [*(character in text for text in self.texts), False]
            known[character] = np.array(flags, bool)
        return known[character]

    def extend(self, results: list[str | None]) -> tuple[CodeArray, list[str]]:
        """Return codes of the whole column with further strings, and the texts new with them."""
        new: dict[str, int] = {}
        known, size = self._index, len(self.texts)
        codes = []
        for text in results:
            code = NOTHING if text is None else known.get(text, NOTHING)
            if code == NOTHING and text is not None:
                code = new.setdefault(text, size + len(new))
            codes.append(code)
        if not codes:
            return self.codes, []
        return np.concatenate([self.codes, np.array(codes, np.int32)]), list(new)

    def __getstate__(self) -> dict[str, Any]:
        """Leave out what follows from the texts."""
        return {"codes": self.codes, "texts": self.texts}

    def _check_state(self) -> None:
        """Raise ValueError if a stored table is damaged."""
        check_texts(self.texts)
        check_codes(self.codes, len(self.texts))


def check_codes(codes: Any, size: int) -> None:
    """Raise ValueError if something is not an array of codes below `size`, or -1."""
    fits = isinstance(codes, np.ndarray) and codes.dtype == np.int32 and codes.ndim == 1
    if not fits or (len(codes) and not (-1 <= codes.min() and codes.max() < size)):
        raise ValueError("a table of codes does not fit the strings it belongs to.")


class ItemTable:
    """Any number of items, each with a value, for each code of a column."""

    def __init__(self, results: list[Items]) -> None:
        index: dict[str | int, int] = {number: number for number in range(FLAG_ITEM + 1)}
        flat = [pair for items in results for pair in items]
        self.ids: CodeArray = np.array(
            [index.setdefault(item, len(index)) for item, _ in flat], np.int32
        )
        self.values: FloatArray = np.array([value for _, value in flat], np.float64)
        self.ptr: IntArray = np.concatenate(
            [[0], np.cumsum([len(items) for items in results])]
        ).astype(np.int64)
        self.texts: list[str] = [str(item) for item in index]

    def size(self) -> int:
        """Return the number of codes of the column."""
        return len(self.ptr) - 1

    def items(self, code: int) -> Items:
        """Return the items of a code of the column."""
        begin, end = self.ptr[code], self.ptr[code + 1]
        ids, values = self.ids[begin:end].tolist(), self.values[begin:end].tolist()
        texts = self.texts
        return [
            (number if number <= FLAG_ITEM else texts[number], value)
            for number, value in zip(ids, values, strict=True)
        ]

    def _check_state(self) -> None:
        """Raise ValueError if a stored table is damaged."""
        check_texts(self.texts)
        check_codes(self.ids, len(self.texts))
        pointers = isinstance(self.ptr, np.ndarray) and self.ptr.dtype == np.int64
        rising = pointers and len(self.ptr) >= 1 and np.all(np.diff(self.ptr) >= 0)
        size = len(self.ids)
        if not rising or (self.ptr[0], self.ptr[-1], len(self.values)) != (0, size, size):
            raise ValueError("the items of a table do not fit its strings.")


def take(table: CodeArray, codes: CodeArray) -> CodeArray:
    """Return ``table[codes]``, -1 where a code is -1."""
    if len(codes) and codes.min() < 0:
        extended: NDArray[np.int32] = np.append(table, np.int32(NOTHING))
        return extended[codes]
    return table[codes]


class PairTable:
    """A hash table of pairs of codes, which are numbered in the order of their appearance.

    It starts with `keys`, shape (U,): pairs ``left 2^32 + right``, in the order of their numbers.
    """

    def __init__(self, keys: IntArray | None = None, room: int = 0) -> None:
        """Make a table of keys, with room for some more."""
        known = np.zeros(0, np.int64) if keys is None else keys
        size = 1 << int(4 * (len(known) + room) + _LEAST).bit_length() - 1
        self._resize(size, known)

    def __len__(self) -> int:
        return int(self._count[0])

    @property
    def keys(self) -> IntArray:
        """The pairs ``left 2^32 + right``, in the order of their numbers."""
        return self._keys[: len(self)].copy()

    @property
    def pairs(self) -> Pairs:
        """The arrays of the table, for kernels."""
        return Pairs(self._slots, self._places, self._keys, self._count)

    def grow(self) -> None:
        """Make room for four times as many pairs."""
        self._resize(4 * len(self._slots), self.keys)

    def number(self, left: CodeArray, right: CodeArray) -> CodeArray:
        """Return the numbers of pairs, shape (N,), adding those that are new; -1 stays -1."""
        out: CodeArray = np.empty(len(left), np.int32)
        done = self._look_up(left, right, 0, True, out)
        while done < len(left):
            self.grow()
            done = self._look_up(left, right, done, True, out)
        return out

    def find(self, left: CodeArray, right: CodeArray) -> CodeArray:
        """Return the numbers of pairs, shape (N,), -1 for those that are not in the table."""
        out: CodeArray = np.empty(len(left), np.int32)
        self._look_up(left, right, 0, False, out)
        return out

    def _look_up(
        self, left: CodeArray, right: CodeArray, start: int, grows: bool, out: CodeArray
    ) -> int:
        table = self._slots, self._places, self._keys, self._count
        return pairs_number(frozen(left), frozen(right), start, *table, grows, out)

    def _resize(self, size: int, keys: IntArray) -> None:
        self._slots = np.full(size, -1, np.int64)
        self._places = np.zeros(size, np.int32)
        self._keys = np.zeros(size // 2, np.int64)
        self._count = np.zeros(1, np.int64)
        self.number((keys // SHIFT).astype(np.int32), (keys % SHIFT).astype(np.int32))


def number_tuples(start: CodeArray, columns: Sequence[CodeArray]) -> CodeArray:
    """Return a number for each tuple of codes, shape (n,), from 0 on; -1 where one of them is -1.

    `start`, shape (n,), stands before all columns: 0, or -1 for places to leave out.
    """
    numbers = start
    for column in columns:
        numbers = PairTable().number(numbers, column)
    return numbers


def distinct_tuples(
    start: CodeArray, columns: Sequence[CodeArray]
) -> tuple[IntArray, CodeArray, list[tuple[int, ...]]]:
    """Return the places of tuples without -1, which tuple stands at each, and these tuples."""
    numbers = number_tuples(start, columns)
    places = np.flatnonzero(numbers >= 0)
    which = numbers[places]
    first = np.zeros(int(which.max(initial=-1)) + 1, np.int64)
    first[which[::-1]] = places[::-1]
    tuples = list(zip(*(codes[first].tolist() for codes in columns), strict=True))
    return places, which, tuples or [()] * len(first)
