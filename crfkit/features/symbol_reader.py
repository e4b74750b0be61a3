"""Reads sequences of tokens that are symbols, tuples or dicts of them, as numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from itertools import chain, count, pairwise
from operator import itemgetter
from typing import Any, NamedTuple, Self

import numpy as np
from scipy.sparse import issparse

from crfkit._types import BoolArray, CodeArray, IntArray
from crfkit.data.frames import is_frame, records
from crfkit.data.labels import are_lists, iterate_token_sequences
from crfkit.data.validation import is_matrix, token_place
from crfkit.features.attributes import check_name
from crfkit.features.letters import NONE
from crfkit.features.suffixes import UNKNOWN, ClassFinder, SuffixClasses
from crfkit.features.word_table import SEPARATOR, Lines, WordTable

SYMBOL, TUPLE, DICT = "symbol", "tuple", "dict"  # forms of tokens
FORMS = SYMBOL, TUPLE, DICT
BATCH = 1 << 16  # tokens that are held at a time
FEW = 200  # as many tokens are looked up one by one
KEPT_UNKNOWN = 10_000  # unknown symbols of a column that are remembered
_ROWS = frozenset((tuple, list))

Symbol = Any  # a string or a whole number
Parts = Sequence[Sequence[Any]]  # symbols of a column, one after the other


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


class GrowingNumbers:
    """Numbers of the symbols of a column, of which a new one gets the next number.

    Strings are looked up by their text, in a table of words, until there is another symbol, or one
    that is no line of a text; then by a dict.
    """

    def __init__(self, symbols: list[Symbol] | None = None) -> None:
        known = [] if symbols is None else symbols
        self._words = WordTable.of(known)
        self._others = {} if self._words is not None else _numbered(known)

    def __len__(self) -> int:
        return len(self._others) if self._words is None else len(self._words)

    def symbols(self) -> list[Symbol]:
        """Return the symbols in the order of their numbers."""
        return list(self._others) if self._words is None else self._words.words()

    @property
    def words(self) -> WordTable | None:
        """The table of symbols that are all words; it must not grow any more."""
        return self._words

    @property
    def are_words(self) -> bool:
        """Whether all symbols are strings."""
        return self._words is not None

    def of(self, parts: Parts, is_first: BoolArray) -> CodeArray:
        """Return the numbers of symbols, (N,), some in each part; TypeError if one is none."""
        size = len(is_first)
        if self._words is not None:
            lines = Lines.of(parts, size)
            if lines is not None:
                return self._words.number(lines)
            self._others, self._words = _numbered(self.symbols()), None
        return np.fromiter(map(self._number, chain.from_iterable(parts)), np.int32, size)

    def _number(self, value: Any) -> int:
        number = self._others.get(value)
        if number is None:
            number = self._others.setdefault(plain_symbol(value), len(self._others))
        return number


def _numbered(symbols: Iterable[Symbol]) -> dict[Symbol, int]:
    return dict(zip(symbols, count()))


class FrozenNumbers:
    """Numbers of the symbols of a column, from a first one on; a new one has that of its class.

    Of the symbols, the first ones are known, and all others classes of those that are not; the last
    one is `UNKNOWN`. `sizes` are the first number, how many are known, and how many there are.
    """

    def __init__(
        self,
        symbols: Callable[[], list[Symbol]],
        sizes: tuple[int, int, int],
        suffixes: SuffixClasses | None,
        find_classes: Callable[[], ClassFinder] | None,
    ) -> None:
        self._symbols, (self._start, self._n_known, self._size) = symbols, sizes
        self._suffixes, self._find_classes = suffixes, find_classes

    def take(self, growing: GrowingNumbers, places: IntArray) -> CodeArray:
        """Return the numbers of the symbols of another column, (W,), and keep its table.

        Given their places among these symbols, -1 of those that are not known.
        """
        if growing.words is not None:
            known = np.append(places, NONE).astype(np.int32)
            self.__dict__["_table"] = _Table(growing.words, known)
        found: CodeArray = (places + self._start).astype(np.int32)
        unknown = np.flatnonzero(places < 0)
        if len(unknown):
            symbols = growing.symbols()
            values = [symbols[n] for n in unknown.tolist()]
            found[unknown] = self.of([values], np.zeros(len(values), bool))
        return found

    def of(self, parts: Parts, is_first: BoolArray) -> CodeArray:
        """Return the numbers of symbols, (N,), some in each part; TypeError if one is none.

        `is_first` tells which symbols sequences begin with, (N,).
        """
        size = len(is_first)
        if size > FEW and self._table is not None:
            lines = Lines.of(parts, size)
            if lines is not None:
                return self._numbers(self._table, lines, is_first)
        values, numbers = list(chain.from_iterable(parts)), self._each
        found = np.fromiter(map(numbers.__getitem__, values), np.int32, size)
        unknown = found >= self._start + self._n_known
        for t in np.flatnonzero(unknown & is_first).tolist():
            found[t] = numbers.first(values[t], int(found[t]))
        return found

    @cached_property
    def _each(self) -> NumberedSymbols:
        """The numbers of symbols one by one."""
        return NumberedSymbols(self._symbols(), self._start, self._suffixes)

    @cached_property
    def _table(self) -> _Table | None:
        """The known symbols as words; None where there are others."""
        return _Table.of(self._symbols()[: self._n_known])

    def _numbers(self, table: _Table, lines: Lines, is_first: BoolArray) -> CodeArray:
        """Return the numbers of words, (N,)."""
        found = table.find(lines)
        unknown = np.flatnonzero(found < 0)
        if self._find_classes is None:
            found[unknown] = self._size - 1
        elif len(unknown):
            text, classes = lines.string(unknown), self._find_classes()
            found[unknown] = classes.symbols(text, table.find, self._n_known, is_first[unknown])
            if UNKNOWN[:-1] in text.lower():
                self._read_classes(text, unknown, is_first, found)
        return found + np.int32(self._start)

    def _read_classes(
        self, text: str, unknown: IntArray, is_first: BoolArray, found: CodeArray
    ) -> None:
        """Read words again that may be classes, one by one."""
        numbers = self._each
        for t, word in zip(unknown.tolist(), text.split(SEPARATOR), strict=False):
            if UNKNOWN[:-1] in word.lower():
                number = numbers[word]
                number = numbers.first(word, number) if is_first[t] else number
                found[t] = number - self._start


class _Table(NamedTuple):
    """A table of words, and what each of them is in a column of symbols, -1 for nothing."""

    words: WordTable
    symbols: CodeArray  # (W + 1,), the last one of what is no word

    @classmethod
    def of(cls, symbols: list[Symbol]) -> Self | None:
        """Return a table of symbols; None where they are no words."""
        words = WordTable.of(symbols)
        return (
            None
            if words is None
            else cls(words, np.append(np.arange(len(symbols)), NONE).astype(np.int32))
        )

    def find(self, lines: Lines) -> CodeArray:
        """Return the symbols that words are, (N,), -1 for others."""
        return self.symbols[self.words.find(lines)]


class NumberedSymbols(dict[Any, int]):
    """The numbers of symbols, and of unknown ones, of which some are remembered."""

    def __init__(self, symbols: list[Symbol], start: int, suffixes: SuffixClasses | None) -> None:
        super().__init__(zip(symbols, count(start)))
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
        return number if value in self._others else self[self._read_as(plain_symbol(value), True)]

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
        lengths = [np.zeros(1, np.int64)]
        for batch in _batches(X):
            lengths.append(np.fromiter(map(len, batch), np.int64, len(batch)))
            self._add(batch, np.cumsum(np.concatenate([[0], lengths[-1]])), lengths)
        offsets = np.cumsum(np.concatenate(lengths))
        if self.form is None or self.columns is None:
            raise ValueError("X has no tokens: there are no symbols to learn.")
        parts = self._parts or [[np.zeros(0, np.int32) for _ in self.columns]]
        numbers = [np.concatenate(column) for column in zip(*parts, strict=True)]
        return SymbolRows(self.form, self.columns, numbers, offsets)

    def _add(self, sequences: list[list[Any]], offsets: IntArray, lengths: list[IntArray]) -> None:
        """Read the tokens of some sequences, given where they begin, and the lengths of all."""
        size = int(offsets[-1])
        if not size:
            return
        if self.form is None or self.columns is None:
            self._learn_form(next(chain.from_iterable(sequences)), _places(lengths, 1)[0])
        is_first = np.zeros(size + 1, bool)
        is_first[offsets] = True
        try:
            part = self._numbers(self._values(sequences), is_first[:-1])
        except (TypeError, ValueError, LookupError):  # of a rarer form, or none
            tokens, places = chain.from_iterable(sequences), _places(lengths, size)
            rows = [self._cells(*pair) for pair in zip(tokens, places, strict=True)]
            part = self._numbers([[column] for column in zip(*rows, strict=True)], is_first[:-1])
        self._parts.append(part)

    def _numbers(self, values: list[Parts], is_first: BoolArray) -> list[CodeArray]:
        """Return the numbers of symbols by column."""
        nowhere = np.zeros_like(is_first)
        return [
            table.of(parts, is_first if c == self._words else nowhere)
            for c, (table, parts) in enumerate(zip(self.tables, values, strict=True))
        ]

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

    def _values(self, sequences: list[list[Any]]) -> list[Parts]:
        """Return the symbols of tokens by column; an error where a token is of a rarer form."""
        if self.form == SYMBOL:
            return [sequences]
        tokens = list(chain.from_iterable(sequences))
        kinds, columns = set(map(type, tokens)), self.columns or []
        if self.form == TUPLE:
            if not kinds <= _ROWS or set(map(len, tokens)) != {len(columns)}:
                raise ValueError
            return [[column] for column in zip(*tokens, strict=True)]
        if kinds != {dict} or not (self._chosen or set(map(len, tokens)) == {len(columns)}):
            raise ValueError
        return [[list(map(itemgetter(name), tokens))] for name in columns]

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


def _batches(X: Any) -> Iterator[list[list[Any]]]:
    """Yield lists of sequences, of few tokens where sequences are short."""
    sequences, size = list[list[Any]](), 0
    if are_lists(X):
        ends = np.cumsum(np.fromiter(map(len, X), np.int64, len(X)))
        cuts = np.searchsorted(ends, np.arange(BATCH, int(ends[-1]) if len(X) else 0, BATCH))
        cuts = np.unique([0, *(cuts + 1), len(X)])
        yield from (X[begin:end] for begin, end in pairwise(cuts.tolist()))
        return
    for s, sequence in enumerate(iterate_token_sequences(X)):
        sequences.append(sequence if sequence.__class__ is list else _tokens(s, sequence))
        size += len(sequences[-1])
        if size > BATCH:
            yield sequences
            sequences, size = [], 0
    yield sequences


def _places(lengths: list[IntArray], size: int) -> list[str]:
    """Return what messages call the tokens of the last sequences, the first ones of these."""
    first = sum(int(some.sum()) for some in lengths[:-1])
    offsets = np.cumsum(np.concatenate(lengths))
    return [token_place(offsets, n) for n in range(first, first + size)]


def _tokens(s: int, sequence: Any) -> list[Any]:
    """Return the tokens of a sequence that is no list."""
    if is_frame(sequence):
        return records(sequence)
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
