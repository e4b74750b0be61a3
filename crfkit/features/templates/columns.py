"""Columns of strings out of sequences of tokens or a data frame."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from itertools import chain, cycle, repeat
from operator import itemgetter
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np

from crfkit._types import CodeArray, FloatArray, IntArray
from crfkit.data.frames import frame_columns, frame_offsets, is_frame
from crfkit.data.labels import iterate_token_sequences
from crfkit.data.validation import token_place
from crfkit.features.attributes import finite_number
from crfkit.kernels.text.tokens import SKIP

NOTHING = SKIP
FEW_FIELDS = 8  # tokens with more are not read as a whole

Reference = str | int
Columns = Sequence[str] | None  # names of the fields of tokens
Places = Sequence[int] | None  # of tokens; None for all
Indexes = Mapping[Reference, Mapping[str, int]]  # the codes of the strings of columns
Read = TypeVar("Read")


class ColumnReader(Protocol):
    """Returns the cells of a column, at some tokens or at all."""

    def __call__(self, reference: Reference, places: Places = None) -> list[Any]: ...  # noqa: D102


CodeReader = Callable[[Indexes], dict[Reference, CodeArray]]
Readers = tuple[ColumnReader, CodeReader | None]


class TokenTable(NamedTuple):
    """Tokens of all sequences, one after the other."""

    offsets: IntArray  # (S + 1,) where the sequences start, and the end
    column: ColumnReader
    look_up: CodeReader | None = None  # finds the codes of columns in one pass over all tokens

    @property
    def n_tokens(self) -> int:
        """Number of tokens N."""
        return int(self.offsets[-1])

    def codes(self, indexes: Indexes, remedy: str) -> dict[Reference, CodeArray]:
        """Return the codes of the cells of columns, (N,) each, -1 for a string without one."""
        if self.look_up is not None:
            with suppress(TypeError):  # `read` tells where
                return self.look_up(indexes)

        def find(values: list[Any], index: Mapping[str, int]) -> CodeArray:
            return np.fromiter(map(index.get, values, repeat(NOTHING)), np.int32, len(values))

        return {
            reference: self.read(reference, partial(find, index=index), remedy)
            for reference, index in indexes.items()
        }

    def read(
        self, reference: Reference, read: Callable[[list[Any]], Read], remedy: str,
        places: Places = None,
    ) -> Read:  # fmt: skip
        """Return what a function makes of the strings of a column, at some tokens or at all.

        Where it raises a TypeError, that names the first cell that is not a string, and a remedy.
        """
        try:
            return read(self.column(reference, places))
        except TypeError:
            for token, value in enumerate(self.column(reference)):
                if not isinstance(value, str):
                    raise TypeError(
                        f"{self.place(token)}, column {reference!r}: {value!r} is not a string "
                        f"but {type(value).__name__}{remedy}"
                    ) from None
            raise

    def place(self, token: int) -> str:
        """Return how messages name a token."""
        return token_place(self.offsets, token)


def checked_columns(columns: Columns) -> list[str] | None:
    """Return the names of fields; ValueError if they are no list of different names."""
    listed = None if columns is None else list(columns)
    repeated = listed is not None and len(set(listed)) < len(listed)
    if repeated or isinstance(columns, str):
        raise ValueError(f"columns={columns!r} must be a list of different names.")
    return listed


def read_tokens(X: Iterable[Any], columns: Columns, by: str | None) -> TokenTable:
    """Read sequences once.

    Tokens are tuples or lists of strings, of which `columns` names the fields, dicts of strings, or
    strings. A frame has one row a token and a column `by` that tells the sequences apart. TypeError
    if `X` is none of these; ValueError if tokens have another number of fields than `columns`, or
    than one another.
    """
    if is_frame(X):
        return _read_frame(X, columns, by)
    sequences = [s if isinstance(s, (list, tuple)) else list(s) for s in iterate_token_sequences(X)]
    flat = list(chain.from_iterable(sequences))
    offsets = np.zeros(len(sequences) + 1, np.int64)
    np.cumsum(np.fromiter(map(len, sequences), np.int64, len(sequences)), out=offsets[1:])
    if not flat:
        return TokenTable(offsets, lambda reference, places=None: [])
    kinds = set(map(type, flat))
    for forms, reader in _READERS.items():
        if all(issubclass(kind, forms) for kind in kinds):
            return TokenTable(offsets, *reader(flat, offsets, columns))
    known = (*chain.from_iterable(_READERS),)
    bad = next((i for i, token in enumerate(flat) if not isinstance(token, known)), None)
    if bad is None:
        bad = next((i for i, t in enumerate(flat) if not isinstance(t, type(flat[0]))), 0)
    raise TypeError(
        f"{token_place(offsets, bad)}: the token is a {type(flat[bad]).__name__}; tokens must all "
        "be tuples of strings, or all be dicts of strings, or all be strings."
    )


def _position(reference: Reference, columns: Columns, kind: str) -> int:
    """Return the number of a field; ValueError if `columns` does not name it."""
    if isinstance(reference, int):
        return reference
    if columns is None:
        raise ValueError(
            f"templates use the column {reference!r}, but the tokens are {kind}, whose fields have "
            f"no names: name them all in order, columns=[{reference!r}, ...], or use numbers: "
            "col(0)."
        )
    if reference not in columns:
        raise ValueError(f"templates use the column {reference!r}, but columns={list(columns)}.")
    return list(columns).index(reference)


def _chosen(items: list[Any], places: Places) -> list[Any]:
    return items if places is None else list(map(items.__getitem__, places))


def _tuple_reader(flat: list[Any], offsets: IntArray, columns: Columns) -> Readers:
    widths = set(map(len, flat))
    width = len(columns) if columns is not None else len(flat[0])
    if widths != {width}:
        bad = next(i for i, token in enumerate(flat) if len(token) != width)
        wanted = f"columns={list(columns)}" if columns is not None else "the first token"
        raise ValueError(
            f"{token_place(offsets, bad)}: the token {flat[bad]!r} has {len(flat[bad])} "
            f"fields, {wanted} {width}; all tokens need the same fields."
        )

    def position(reference: Reference) -> int:
        number = _position(reference, columns, "tuples")
        if number >= width:
            raise ValueError(
                f"templates use column {number}, but tokens have {width} fields, counted from 0: "
                f"{flat[0]!r}."
            )
        return number

    def column(reference: Reference, places: Places = None) -> list[Any]:
        number = position(reference)
        return [token[number] for token in _chosen(flat, places)]

    def look_up(indexes: Indexes) -> dict[Reference, CodeArray]:
        # Each string is fetched from memory once, and not as often as something is done with it.
        tables: list[Any] = [{}] * width
        for reference, index in indexes.items():
            tables[position(reference)] = index
        found = map(dict.get, cycle(tables), chain.from_iterable(flat), repeat(NOTHING))
        codes = np.fromiter(found, np.int32, len(flat) * width).reshape(len(flat), width).T
        return {name: np.ascontiguousarray(codes[position(name)]) for name in indexes}

    return column, look_up if width <= FEW_FIELDS else None


def _dict_reader(flat: list[Any], offsets: IntArray, columns: Columns) -> Readers:
    def column(reference: Reference, places: Places = None) -> list[Any]:
        name = _name(reference, columns, "dicts")
        try:
            return list(map(itemgetter(name), _chosen(flat, places)))
        except KeyError:
            bad = next(i for i, token in enumerate(flat) if name not in token)
            raise ValueError(
                f"{token_place(offsets, bad)}: the token has no field {name!r}; it has "
                f"{list(flat[bad])}."
            ) from None

    return column, None


def _name(reference: Reference, columns: Columns, kind: str) -> str:
    """Return the name of a field; ValueError if only `columns` could tell it."""
    if isinstance(reference, str):
        return reference
    if columns is None or reference >= len(columns):
        raise ValueError(
            f"templates use the number {reference} of a column, but the tokens are {kind}, whose "
            "fields have names: use those, or number them by columns=[...]."
        )
    return columns[reference]


def _string_reader(flat: list[Any], offsets: IntArray, columns: Columns) -> Readers:
    if columns is not None and len(columns) != 1:
        raise ValueError(
            f"tokens are strings, such as {flat[0]!r}, which have one field, but "
            f"columns={list(columns)}."
        )

    def column(reference: Reference, places: Places = None) -> list[Any]:
        number = _position(reference, columns, "strings")
        if number != 0:
            raise ValueError(
                f"templates use the column {reference!r}, but tokens are strings, which are "
                "column 0 alone."
            )
        return _chosen(flat, places)

    return column, None


# Named tuples, strings of NumPy and other subclasses are read as what they derive from.
_READERS: dict[tuple[type, ...], Callable[..., Readers]] = {
    (tuple, list): _tuple_reader,
    (dict,): _dict_reader,
    (str,): _string_reader,
}


def _read_frame(frame: Any, columns: Columns, by: str | None) -> TokenTable:
    if by is None:
        raise ValueError(
            "X is a data frame: name the column that tells the sequences apart, by='...'."
        )
    frame_columns(frame, by, None)
    offsets = frame_offsets(frame, by)

    def column(reference: Reference, places: Places = None) -> list[Any]:
        name = _name(reference, columns, "rows of a frame")
        if name not in frame.columns:
            raise ValueError(f"the frame has no column {name!r}; it has {list(frame.columns)}.")
        return _chosen(frame[name].to_list(), places)

    return TokenTable(offsets, column)


def numbers(tokens: TokenTable, reference: Reference) -> FloatArray:
    """Return a column of numbers, (N,); TypeError or ValueError names a cell that is no such."""
    values = tokens.column(reference)
    array = np.empty(len(values))
    for token, value in enumerate(values):
        if isinstance(value, str) or not hasattr(value, "__float__"):
            raise TypeError(
                f"{tokens.place(token)}, column {reference!r}: {value!r} is not a number but "
                f"{type(value).__name__}; the column is named in `numeric`."
            )
        try:
            array[token] = finite_number(str(reference), value)
        except ValueError as error:
            raise ValueError(f"{tokens.place(token)}, column {reference!r}: {error}.") from error
    return array
