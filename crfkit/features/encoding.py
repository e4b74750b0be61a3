"""From tokens, given as dicts or lists of strings, to the numbers of their attributes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from array import array
from collections.abc import Iterable, Mapping
from contextlib import suppress
from functools import lru_cache
from typing import Any

import numpy as np

from crfkit._progress import working
from crfkit._types import BoolArray, CodeArray, FloatArray, IntArray
from crfkit.compiler.jit import frozen
from crfkit.data.labels import iterate_token_sequences
from crfkit.data.validation import token_place
from crfkit.features.attributes import AttributeRows, check_name, expand, finite_number
from crfkit.features.token_reader import MOST, Entries, TokenReader
from crfkit.kernels.text.tokens import SKIP, VALUED, ZERO

_SETS = frozenset((set, frozenset))
TOGETHER = 500  # tokens that are read at once, where they are short sequences
KEPT = 1 << 12  # names that an index remembers, at least
KEPT_UNKNOWN = 10_000  # names that it does not have, and remembers that


class AttributeIndex(ABC):
    """Names to numbers."""

    reader: TokenReader  # finds those of what stands in dicts and lists

    @abstractmethod
    def __getitem__(self, name: Any) -> int:
        """Return the number of a name, `SKIP` where there is none."""

    def keep_zeros(self) -> None:
        """Have entries of attributes of value 0."""
        self.reader.keeps_zeros = True

    def zero(self, number: int) -> int:
        """Return the entry of an attribute whose value is 0."""
        return ZERO - number if self.reader.keeps_zeros else SKIP

    def release(self) -> None:
        """Let go of what refers back to the index: it and its names are then freed at once."""
        del self.reader


class GrowingIndex(AttributeIndex, dict[str, int]):
    """Names to numbers; a new name gets the next number."""

    def __init__(self, *numbers: Mapping[str, int]) -> None:
        super().__init__(*numbers)
        self.reader = TokenReader(self.numbers)

    __getitem__ = dict.__getitem__

    def __missing__(self, name: Any) -> int:
        if name.__class__ is not str:
            return self[check_name(name)]
        number = self[name] = len(self)
        return number

    def numbers(self, names: list[str]) -> list[int]:
        """Return the numbers of names, new or not."""
        number = self.setdefault
        return [number(name, len(self)) for name in names]

    def truncate(self, size: int) -> None:
        """Forget all names but the first ones."""
        for name in list(self)[size:]:
            del self[name]
        self.reader.forget()

    def sorted_columns(self, counts: IntArray, least: int) -> tuple[list[str], CodeArray]:
        """Return the sorted names that occur often enough, and the column of each number."""
        name_of = list(self).__getitem__  # the names stand in the order of their numbers
        chosen = sorted(np.flatnonzero(counts >= least).tolist(), key=name_of)
        columns = np.full(len(self), SKIP, np.int32)
        columns[chosen] = np.arange(len(chosen))
        return list(map(name_of, chosen)), columns


class FrozenIndex(AttributeIndex):
    """Names to numbers; a new name is skipped."""

    def __init__(self, numbers: Mapping[str, int]) -> None:
        self._known, self._unknown_left = dict(numbers), KEPT_UNKNOWN
        self.reader = TokenReader(self.numbers, min(max(KEPT, 2 * len(self._known)), MOST))

    def numbers(self, names: list[str]) -> list[int]:
        """Return the numbers of names, `SKIP` for unknown ones."""
        number = self._known.get
        return [number(name, SKIP) for name in names]

    def __getitem__(self, name: Any) -> int:
        """Return the number of a name, `SKIP` where there is none."""
        plain = check_name(name)
        if self._unknown_left and plain not in self._known:
            self._unknown_left -= 1
            self._known[plain] = SKIP
        return self._known.get(plain, SKIP)


def encode(X: Iterable[Any], index: AttributeIndex) -> AttributeRows:
    """Turn sequences of tokens into rows of attribute numbers, reading `X` once.

    TypeError or ValueError as of :func:`expand`, naming the sequence and the position.
    """
    if X.__class__ is list and len(X) == 1 and X[0].__class__ is list:
        return encode_sequence(X[0], index)
    return _TokenEncoder(index).rows(X)


def encode_sequence(tokens: list[Any], index: AttributeIndex) -> AttributeRows:
    """Turn one sequence of tokens into rows of attribute numbers."""
    found = index.reader.read(tokens)
    if len(found.indptr) <= len(tokens):
        return _TokenEncoder(index).rows([tokens])
    indices, values = _split(found.entries, found.values)
    return AttributeRows(indices, values, found.indptr, _offsets(len(tokens)))


@lru_cache(512)
def _offsets(size: int) -> IntArray:
    """Return the offsets of one sequence."""
    return frozen(np.array((0, size)))


def _are_valued(entries: CodeArray) -> BoolArray:
    """Return which entries stand for a value that is not 1."""
    found: BoolArray = (entries <= VALUED) & (entries > ZERO)
    return found


def _split(entries: CodeArray, values: FloatArray) -> tuple[CodeArray, FloatArray | None]:
    """Return the attributes of entries and their values; None where all are 1."""
    if not len(values):
        return entries, None
    found, valued = np.ones(len(entries)), _are_valued(entries)
    found[valued] = values
    return np.where(valued, np.int32(VALUED) - entries, entries), found


def as_lists(item: Any) -> Any:
    """Return a token with lists in place of its sets."""
    if item.__class__ is dict:
        return {key: as_lists(value) for key, value in item.items()}
    return list(item) if item.__class__ in _SETS else item


class _TokenEncoder:
    """Collects entries, as the reader finds them, in arrays, which grow in place."""

    def __init__(self, index: AttributeIndex) -> None:
        self.index = index
        self.values = array("d")
        self._entries = array("i")
        self._indptr, self._offsets = array("q", [0]), array("q", [0])

    def rows(self, X: Iterable[Any]) -> AttributeRows:
        """Return the rows of sequences of tokens; those of a list are read several at a time."""
        together, first, waiting = TOGETHER if X.__class__ is list else 0, 0, list[Any]()
        with working("features", len(X) if X.__class__ is list else None, "sequences") as task:
            for sequence in iterate_token_sequences(X):
                waiting.extend(sequence)
                self._offsets.append(first + len(waiting))
                if len(waiting) > together:
                    self._add(first, waiting)
                    first, waiting = first + len(waiting), []
                    task.update(len(self._offsets) - 1)
            self._add(first, waiting)
            task.tell(sequences=len(self._offsets) - 1)
        indices, values = _split(np.asarray(self._entries), np.asarray(self.values))
        return AttributeRows(indices, values, np.asarray(self._indptr), np.asarray(self._offsets))

    def _add(self, first: int, tokens: list[Any]) -> None:
        """Append tokens, from the one of number `first` on."""
        done = 0
        while done < len(tokens):
            found = self.index.reader.read(tokens, done)
            if len(found.indptr) > 1:
                self._append(found)
                done += len(found.indptr) - 1
            else:
                self._add_token(tokens[done], first + done)
                done += 1

    def _append(self, found: Entries) -> None:
        """Append what was read of tokens."""
        self._indptr.frombytes((found.indptr[1:] + len(self._entries)).tobytes())
        self._entries.frombytes(found.entries.tobytes())
        self.values.frombytes(found.values.tobytes())

    def _add_token(self, token: Any, number: int) -> None:
        """Append the attributes of a token that the reader leaves, or raise what is wrong."""
        with suppress(RecursionError):
            found = self.index.reader.read([as_lists(token)])
            if len(found.indptr) > 1:
                self._append(found)
                return
        self._entries.extend(self._rare(token, number))
        self._indptr.append(len(self._entries))

    def _rare(self, token: Any, number: int) -> list[int]:
        """Return the entries of a token of a form that is rare, or raise what is wrong."""
        try:
            return [self._entry(self.index[name], name, v) for name, v in expand(token)]
        except (TypeError, ValueError) as error:
            place = token_place(np.asarray(self._offsets), number)
            raise type(error)(f"{place}: {error}.") from error
        except RecursionError:
            place = token_place(np.asarray(self._offsets), number)
            raise ValueError(
                f"{place}: the dicts of the token are nested too deeply, or one contains itself."
            ) from None

    def _entry(self, number: int, name: str, value: float) -> int:
        """Return the entry of an attribute with a value."""
        if value is True or value == 1.0:
            return number
        plain = finite_number(name, value)
        if number == SKIP or plain == 0.0:
            return SKIP if number == SKIP else self.index.zero(number)
        self.values.append(plain)
        return VALUED - number
