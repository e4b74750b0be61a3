"""Reads sequences of tokens that are symbols, tuples or dicts of them, as numbers."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import issparse

from crfkit._types import CodeArray, IntArray
from crfkit.data.labels import iterate_sequences
from crfkit.data.validation import is_matrix, token_place
from crfkit.features.attributes import check_name
from crfkit.features.suffixes import UNKNOWN, SuffixClasses

SYMBOL, TUPLE, DICT = "symbol", "tuple", "dict"  # forms of tokens
FORMS = SYMBOL, TUPLE, DICT
BATCH = 1 << 16  # tokens that are held at a time
KEPT_UNKNOWN = 10_000  # unknown symbols of a column that are remembered
_ROWS = frozenset((tuple, list))

Symbol = Any  # a string or a whole number


def plain_symbol(value: Any, place: str = "X") -> Symbol:
    """Return a symbol as a string or an int; TypeError, naming the place, if it is neither."""
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, (int, np.integer, np.bool_)):
        return int(value)
    is_number = isinstance(value, (float, np.floating))
    if value is None or (is_number and value != value):
        raise TypeError(
            f"{place}: the symbol is {value!r}. Each token needs one in each column: give one that "
            "is missing a name of its own."
        )
    advice = "Numbers that measure are for emissions='gaussian'" if is_number else "Convert it"
    raise TypeError(
        f"{place}: the symbol {value!r:.60} is of type {type(value).__name__}; symbols are strings "
        f"or whole numbers. {advice}."
    )


class SymbolNumbers(dict[Any, int]):
    """Numbers of the symbols of a column."""

    def of(self, values: Sequence[Any]) -> CodeArray:
        """Return the numbers of symbols; TypeError if one is no symbol."""
        return np.fromiter(map(self.__getitem__, values), np.int32, len(values))


class GrowingNumbers(SymbolNumbers):
    """A new symbol gets the next number."""

    def __missing__(self, value: Any) -> int:
        return self.setdefault(plain_symbol(value), len(self))


class FrozenNumbers(SymbolNumbers):
    """A new symbol has the number of what stands for it."""

    def __init__(
        self, symbols: list[Symbol], start: int, n_known: int, suffixes: SuffixClasses | None
    ) -> None:
        numbers = range(start, start + len(symbols))
        super().__init__(zip(symbols, numbers, strict=True))
        self.end_of_known = start + n_known
        self._suffixes, self._others, self._left = suffixes, frozenset(symbols), KEPT_UNKNOWN

    def __missing__(self, value: Any) -> int:
        symbol = plain_symbol(value)
        if symbol in self._others:  # of another type
            return self[symbol]
        number = self[self._read_as(symbol)]
        if self._left:
            self._left -= 1
            self[symbol] = number
        return number

    def first(self, value: Any, number: int) -> int:
        """Return the number of a symbol that begins a sequence, given that of it elsewhere."""
        if number < self.end_of_known or value in self._others:
            return number
        return self[self._read_as(plain_symbol(value), True)]

    def _read_as(self, symbol: Symbol, is_first: bool = False) -> Symbol:
        if self._suffixes is None:
            return UNKNOWN
        return self._suffixes.find(symbol, self._others, is_first)


class SymbolRows(NamedTuple):
    """Symbols of all tokens as numbers."""

    form: str  # of the tokens
    columns: list[str]
    numbers: list[CodeArray]  # (N,) each
    offsets: IntArray  # (S + 1,)


class SymbolReader:
    """Reads tokens, which are all of one form and have the same columns.

    `columns` and `form` are those of a fit; or the columns that a user has chosen, if any, and
    None, as the first token tells the form. Where columns were chosen, dicts may have more. The
    column of `words`, if any, is read in another way where a sequence begins.
    """

    def __init__(
        self,
        columns: list[str] | None,
        form: str | None,
        tables: list[Any],
        chosen: bool,
        words: int | None = None,
    ) -> None:
        self.columns, self.form, self.tables = columns, form, tables
        self._chosen, self._words = chosen, words
        self._takes_rows = form == SYMBOL  # what is read from files are rows of one symbol
        self._parts: list[list[CodeArray]] = []

    def read(self, X: Any) -> SymbolRows:
        """Return the symbols of sequences, which are read once."""
        offsets, first, waiting = [0], 0, list[Any]()
        for s, sequence in enumerate(iterate_sequences(X, "X")):
            waiting.extend(sequence if sequence.__class__ is list else _tokens(s, sequence))
            offsets.append(first + len(waiting))
            if len(waiting) > BATCH:
                self._add(waiting, first, offsets)
                first, waiting = first + len(waiting), []
        self._add(waiting, first, offsets)
        if self.form is None or self.columns is None:
            raise ValueError("X has no tokens: there are no symbols to learn.")
        parts = self._parts or [[np.zeros(0, np.int32) for _ in self.columns]]
        numbers = [np.concatenate(column) for column in zip(*parts, strict=True)]
        return SymbolRows(self.form, self.columns, numbers, np.array(offsets))

    def _add(self, tokens: list[Any], first: int, offsets: list[int]) -> None:
        """Read some tokens, from the one of number `first` on."""
        if not tokens:
            return
        if self.form is None or self.columns is None:
            self._learn_form(tokens[0], token_place(np.array(offsets), first))
        try:
            values = self._values(tokens)
            part = [table.of(v) for table, v in zip(self.tables, values, strict=True)]
        except (TypeError, ValueError, LookupError):  # of a rarer form, or none
            ends = np.array(offsets)
            places = (token_place(ends, n) for n in range(first, first + len(tokens)))
            rows = [self._cells(*pair) for pair in zip(tokens, places, strict=True)]
            values = list(zip(*rows, strict=True))
            part = [table.of(v) for table, v in zip(self.tables, values, strict=True)]
        if self._words is not None:
            c = self._words
            begins = {offset - first for offset in offsets[bisect_left(offsets, first) :]}
            for t in begins - {len(tokens)}:  # the end, where empty sequences may begin
                part[c][t] = self.tables[c].first(values[c][t], int(part[c][t]))
        self._parts.append(part)

    def _learn_form(self, token: Any, place: str) -> None:
        """Take the form of the first token for that of all."""
        self.form = _form_of(token, place)
        if self.form == DICT:
            names = [check_name(name) for name in token]
        else:
            names = [str(n) for n in range(len(token))] if self.form == TUPLE else [SYMBOL]
        if not names:
            raise ValueError(f"{place}: the token {token!r} has no symbols.")
        if self.columns is None:
            self.columns = names
        elif self.form != DICT and len(self.columns) != len(names):
            raise ValueError(
                f"{place}: the token {token!r:.80} has {len(names)} symbols, but there are "
                f"{len(self.columns)} columns={self.columns!r:.80}."
            )
        self.tables = [GrowingNumbers() for _ in self.columns]

    def _values(self, tokens: list[Any]) -> list[Sequence[Any]]:
        """Return the symbols of tokens by column; an error where a token is of a rarer form."""
        if self.form == SYMBOL:
            return [tokens]
        kinds, columns = set(map(type, tokens)), self.columns or []
        if self.form == TUPLE:
            if not kinds <= _ROWS or set(map(len, tokens)) != {len(columns)}:
                raise ValueError
            return list(zip(*tokens, strict=True))
        if kinds != {dict} or not (self._chosen or set(map(len, tokens)) == {len(columns)}):
            raise ValueError
        return [list(map(itemgetter(name), tokens)) for name in columns]

    def _cells(self, token: Any, place: str) -> list[Symbol]:
        """Return the symbols of a token; TypeError or ValueError, naming it, if it has none."""
        columns = self.columns or []
        if self._takes_rows and token.__class__ in _ROWS and len(token) == 1:
            (token,) = token
        if _form_of(token, place) != self.form:
            raise TypeError(
                f"{place}: the token {token!r:.60} is no {self.form}, as the first one that was "
                "read: give all tokens in one form, with a symbol for each column."
            )
        if self.form == SYMBOL:
            return [plain_symbol(token, place)]
        if self.form == TUPLE:
            if len(token) != len(columns):
                raise ValueError(
                    f"{place}: the token {token!r:.60} has {len(token)} symbols, but there are "
                    f"{len(columns)} columns: {columns!r:.80}."
                )
            row = list(token)
        else:
            _check_keys(token, columns, place, self._chosen)
            row = [token[name] for name in columns]
        return [
            plain_symbol(value, f"{place}, column {name!r}")
            for name, value in zip(columns, row, strict=True)
        ]


def _check_keys(token: Any, columns: list[str], place: str, chosen: bool) -> None:
    """Raise ValueError if a dict lacks a column or, where none were chosen, has others."""
    missing = [name for name in columns if name not in token]
    others = [] if chosen else [name for name in token if name not in columns]
    if missing or others:
        what = f"no column {missing[0]!r}" if missing else f"the further column {others[0]!r}"
        raise ValueError(
            f"{place}: the token has {what}; each one needs the columns {columns!r:.80}. "
            "SymbolVectorizer(columns=[...]) chooses some."
        )


def _form_of(token: Any, place: str) -> str:
    """Return the form of a token; TypeError if it has none."""
    if hasattr(token, "keys"):
        return DICT
    if isinstance(token, (tuple, list)) or (isinstance(token, np.ndarray) and token.ndim == 1):
        return TUPLE
    plain_symbol(token, place)
    return SYMBOL


def _tokens(s: int, sequence: Any) -> list[Any]:
    """Return the tokens of a sequence that is no list."""
    if hasattr(sequence, "columns"):  # a data frame
        return list(sequence.to_dict("records"))
    if not is_matrix(sequence):
        return list(sequence)
    if sequence.dtype.kind not in "biuUO" or sequence.ndim not in (1, 2) or issparse(sequence):
        raise TypeError(
            f"sequence {s} of X is a matrix of {sequence.dtype} of shape {sequence.shape}: symbols "
            "are whole numbers or strings, (T,) or (T, columns). Numbers that measure something "
            "are for emissions='gaussian'."
        )
    rows: list[Any] = sequence.tolist()
    return rows
