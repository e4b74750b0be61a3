"""Columns of strings out of sequences of tokens or a data frame."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import chain
from operator import itemgetter
from typing import Any, NamedTuple, TypeVar

import numpy as np

from crfkit._types import FloatArray, IntArray
from crfkit.data.frames import frame_columns, group_offsets
from crfkit.data.labels import iterate_sequences
from crfkit.data.validation import token_place
from crfkit.features.attributes import finite_number

Reference = str | int
ColumnReader = Callable[[Reference], list[Any]]
Read = TypeVar("Read")


class TokenTable(NamedTuple):
    """Tokens of all sequences, one after the other.

    Attributes
    ----------
    offsets : ndarray of shape (S + 1,)
        Where the sequences start, and the end.
    column : callable
        Returns the N cells of a column.
    """

    offsets: IntArray
    column: ColumnReader

    @property
    def n_tokens(self) -> int:
        """Number of tokens N."""
        return int(self.offsets[-1])

    def read(self, reference: Reference, read: Callable[[list[Any]], Read], remedy: str) -> Read:
        """Return what a function makes of the strings of a column.

        Raises
        ------
        TypeError
            If the function does, at the first cell that is not a string: with place and remedy.
        """
        values = self.column(reference)
        try:
            return read(values)
        except TypeError:
            for token, value in enumerate(values):
                if not isinstance(value, str):
                    raise TypeError(
                        f"{self.place(token)}, column {reference!r}: {value!r} is not a string "
                        f"but {type(value).__name__}{remedy}"
                    ) from None
            raise

    def place(self, token: int) -> str:
        """Return how messages name a token."""
        return token_place(self.offsets, token)


def checked_columns(columns: Sequence[str] | None) -> list[str] | None:
    """Return the names of fields; ValueError if they are no list of different names."""
    listed = None if columns is None else list(columns)
    repeated = listed is not None and len(set(listed)) < len(listed)
    if repeated or isinstance(columns, str):
        raise ValueError(f"columns={columns!r} must be a list of different names.")
    return listed


def read_tokens(X: Iterable[Any], columns: Sequence[str] | None, by: str | None) -> TokenTable:
    """Read sequences once.

    Parameters
    ----------
    X : iterable of sequences of tokens, or a data frame
        Tokens are tuples or lists of strings, dicts of strings, or strings. A frame has one row a
        token and a column `by` that tells the sequences apart.
    columns : sequence of str or None
        Names of the fields of tuples.
    by : str or None
        Column of a frame.

    Raises
    ------
    TypeError
        If `X` is none of these.
    ValueError
        If tokens differ in their number of fields, or have another number than `columns`.
    """
    if hasattr(X, "columns") and hasattr(X, "iloc"):
        return _read_frame(X, columns, by)
    sequences = [s if isinstance(s, (list, tuple)) else list(s) for s in iterate_sequences(X, "X")]
    flat = list(chain.from_iterable(sequences))
    offsets = np.zeros(len(sequences) + 1, np.int64)
    np.cumsum(np.fromiter(map(len, sequences), np.int64, len(sequences)), out=offsets[1:])
    kinds = set(map(type, flat))
    if not flat:
        return TokenTable(offsets, lambda reference: [])
    if kinds <= {tuple, list}:
        return TokenTable(offsets, _tuple_reader(flat, offsets, columns))
    if kinds == {dict}:
        return TokenTable(offsets, _dict_reader(flat, offsets, columns))
    if kinds == {str}:
        return TokenTable(offsets, _string_reader(flat, columns))
    return TokenTable(offsets, _other_reader(flat, offsets, columns))


def _other_reader(
    flat: list[Any], offsets: IntArray, columns: Sequence[str] | None
) -> ColumnReader:
    """Return the reader of subclasses (named tuples, strings of NumPy), or raise."""
    for kinds, read in (((tuple, list), _tuple_reader), ((dict,), _dict_reader)):
        if all(isinstance(token, kinds) for token in flat):
            return read(flat, offsets, columns)
    if all(isinstance(token, str) for token in flat):
        return _string_reader(flat, columns)
    first = type(flat[0])
    bad = next(
        (i for i, token in enumerate(flat) if not isinstance(token, (tuple, list, dict, str))),
        next((i for i, token in enumerate(flat) if not isinstance(token, first)), 0),
    )
    raise TypeError(
        f"{token_place(offsets, bad)}: the token is a {type(flat[bad]).__name__}; tokens must all "
        "be tuples of strings, or all be dicts of strings, or all be strings."
    )


def _position(reference: Reference, columns: Sequence[str] | None, kind: str) -> int:
    """Return the number of a field; ValueError if `columns` does not name it."""
    if isinstance(reference, int):
        return reference
    if columns is None:
        raise ValueError(
            f"templates use the column {reference!r}, but the tokens are {kind}, whose fields have "
            f"no names: name them all in order, columns=[{reference!r}, ...], or use their numbers."
        )
    if reference not in columns:
        raise ValueError(f"templates use the column {reference!r}, but columns={list(columns)}.")
    return list(columns).index(reference)


def _tuple_reader(
    flat: list[Any], offsets: IntArray, columns: Sequence[str] | None
) -> ColumnReader:
    widths = set(map(len, flat))
    width = len(columns) if columns is not None else len(flat[0])
    if widths != {width}:
        bad = next(i for i, token in enumerate(flat) if len(token) != width)
        wanted = f"columns={list(columns)}" if columns is not None else "the first token"
        raise ValueError(
            f"{token_place(offsets, bad)}: the token {flat[bad]!r} has {len(flat[bad])} "
            f"fields, {wanted} {width}; all tokens need the same fields."
        )

    def column(reference: Reference) -> list[Any]:
        number = _position(reference, columns, "tuples")
        if number >= width:
            raise ValueError(
                f"templates use column {number}, but tokens have {width} fields, counted from 0: "
                f"{flat[0]!r}."
            )
        return [token[number] for token in flat]  # the interpreter has a fast way for this

    return column


def _dict_reader(flat: list[Any], offsets: IntArray, columns: Sequence[str] | None) -> ColumnReader:
    def column(reference: Reference) -> list[Any]:
        name = _name(reference, columns, "dicts")
        try:
            return list(map(itemgetter(name), flat))
        except KeyError:
            bad = next(i for i, token in enumerate(flat) if name not in token)
            raise ValueError(
                f"{token_place(offsets, bad)}: the token has no field {name!r}; it has "
                f"{list(flat[bad])}."
            ) from None

    return column


def _name(reference: Reference, columns: Sequence[str] | None, kind: str) -> str:
    """Return the name of a field; ValueError if only `columns` could tell it."""
    if isinstance(reference, str):
        return reference
    if columns is None or reference >= len(columns):
        raise ValueError(
            f"templates use the number {reference} of a column, but the tokens are {kind}, whose "
            "fields have names: use those, or number them by columns=[...]."
        )
    return columns[reference]


def _string_reader(flat: list[Any], columns: Sequence[str] | None) -> ColumnReader:
    if columns is not None and len(columns) != 1:
        raise ValueError(
            f"tokens are strings, such as {flat[0]!r}, which have one field, but "
            f"columns={list(columns)}."
        )

    def column(reference: Reference) -> list[Any]:
        number = _position(reference, columns, "strings")
        if number != 0:
            raise ValueError(
                f"templates use the column {reference!r}, but tokens are strings, which are "
                "column 0 alone."
            )
        return flat

    return column


def _read_frame(frame: Any, columns: Sequence[str] | None, by: str | None) -> TokenTable:
    if by is None:
        raise ValueError(
            "X is a data frame: name the column that tells the sequences apart, by='...'."
        )
    frame_columns(frame, by, None)
    offsets = group_offsets(frame[by].to_numpy())

    def column(reference: Reference) -> list[Any]:
        name = _name(reference, columns, "rows of a frame")
        if name not in frame.columns:
            raise ValueError(f"the frame has no column {name!r}; it has {list(frame.columns)}.")
        return list(frame[name].tolist())

    return TokenTable(offsets, column)


def numbers(tokens: TokenTable, reference: Reference) -> FloatArray:
    """Return a column of numbers, shape (N,).

    Raises
    ------
    TypeError, ValueError
        If a cell is not a finite number: the message names sequence, position and column.
    """
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
