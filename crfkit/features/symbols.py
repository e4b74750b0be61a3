"""Columns of symbols as packed sequences: one indicator attribute for each column of a token."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import chain, pairwise
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from crfkit._params import check_whole
from crfkit._types import CodeArray, IntArray, ObjectArray
from crfkit.data import PackedSequences
from crfkit.data.labels import object_array
from crfkit.data.names import LazyNames, Names
from crfkit.features.attributes import AttributeRows
from crfkit.features.found_symbols import ColumnSymbols, FoundSymbols
from crfkit.features.suffixes import UNKNOWN, ClassFinder, LearnedClasses, SuffixClasses, SuffixTree
from crfkit.features.symbol_reader import (
    FORMS,
    SYMBOL,
    TUPLE,
    FrozenNumbers,
    GrowingNumbers,
    Symbol,
    SymbolReader,
    SymbolRows,
)
from crfkit.features.vectorizer import SequenceTransformer


class SymbolNames(LazyNames):
    """The names ``column=symbol`` of attributes, which know their columns.

    Parameters
    ----------
    columns : list of str, length C
        Names of the columns.
    symbols : list of ColumnSymbols, length C
        The symbols of each: those that are known, then classes of unknown ones, `UNKNOWN` at last.
    n_known : list of int, length C
        How many symbols of each are known.
    """

    _tree: tuple[Any, SuffixTree] | None = None
    _finder: tuple[Any, ClassFinder] | None = None
    _later: list[ColumnSymbols]

    def __init__(
        self, columns: list[str], symbols: list[ColumnSymbols], n_known: list[int]
    ) -> None:
        self.columns, self._later, self.n_known = columns, symbols, n_known

    def __getstate__(self) -> dict[str, Any]:
        """Leave out what follows from the rest."""
        return {name: getattr(self, name) for name in ("columns", "symbols", "n_known")}

    def __len__(self) -> int:
        return int(self.starts[-1])

    @cached_property
    def symbols(self) -> list[list[Symbol]]:
        """The symbols of each column."""
        return [part.made() for part in self._later]

    @property
    def starts(self) -> IntArray:
        """Where the attributes of each column begin, and the end, (C + 1,)."""
        parts = self.__dict__.get("symbols")
        return np.cumsum([0, *map(len, self._later if parts is None else parts)])

    def known(self, column: int) -> list[Symbol]:
        """Return the known symbols of a column, given by its number."""
        return self.symbols[column][: self.n_known[column]]

    def classes(self, column: int) -> list[str]:
        """Return the classes of unknown symbols of a column, without the last one."""
        return self.symbols[column][self.n_known[column] : -1]

    def suffix_tree(self, column: int, suffixes: SuffixClasses) -> SuffixTree:
        """Return the classes of the words of a column; the last ones are remembered."""
        key = column, suffixes.max_length
        if self._tree is None or self._tree[0] != key:
            self._tree = key, self.class_finder(column, suffixes).tree(self.known(column))
        return self._tree[1]

    def class_finder(self, column: int, suffixes: SuffixClasses) -> ClassFinder:
        """Return what finds the classes of words of a column; the last one is remembered."""
        key = column, suffixes.max_length
        if self._finder is None or self._finder[0] != key:
            classes = self.symbols[column][self.n_known[column] :]
            self._finder = key, suffixes.finder(classes)
        return self._finder[1]

    def remember(
        self, column: int, suffixes: SuffixClasses, learned: LearnedClasses, places: IntArray
    ) -> None:
        """Keep what was learned of the words of a column, given their places, -1 of no symbols."""
        n_known, key = self.n_known[column], (column, suffixes.max_length)
        self._finder, known = (key, learned.finder), places >= 0
        rows = np.empty((len(learned.words), n_known), np.int64)
        rows[:, places[known]] = np.array(learned.words)[:, known]
        leaf, end, shape = rows
        self._tree = key, SuffixTree(leaf, end, shape, learned.finder.parents())

    def leads(self) -> Iterator[str]:
        """Yield what the names of each column begin with."""
        return (f"{column}=" for column in self.columns)

    def _build(self) -> ObjectArray:
        parts = zip(self.columns, self.symbols, strict=True)
        return object_array(f"{column}={symbol}" for column, part in parts for symbol in part)

    def _check_state(self) -> None:
        """Raise ValueError if columns and symbols do not fit together."""
        check_columns(self.columns, self.symbols, self.n_known)


def check_columns(columns: Any, symbols: Any, n_known: Any) -> None:
    """Raise ValueError if these are no columns, their symbols, and how many of them are known."""
    if {type(columns), type(symbols), type(n_known)} != {list} or not columns:
        raise ValueError("the columns of symbols are no lists")
    if not len(columns) == len(symbols) == len(n_known) or set(map(type, columns)) != {str}:
        raise ValueError("the columns of symbols do not fit their names")
    if len(set(columns)) < len(columns) or set(map(type, n_known)) != {int}:
        raise ValueError("two columns of symbols have one name, or a number is none")
    for known, part in zip(n_known, symbols, strict=True):
        if type(part) is not list or not set(map(type, part)) <= {str, int}:
            raise ValueError("symbols are no strings and whole numbers")
        if not part or part[-1] != UNKNOWN or len(set(part)) < len(part):
            raise ValueError(f"the symbols of a column are not distinct, or {UNKNOWN} is not last")
        if not 0 <= known < len(part):
            raise ValueError("a column knows more symbols than it has")


def _check_chosen(columns: Any) -> list[str] | None:
    """Return chosen columns; TypeError or ValueError if they are no distinct names."""
    if columns is None:
        return None
    if isinstance(columns, str) or not all(isinstance(name, str) for name in columns):
        raise TypeError(f"columns={columns!r:.80} must be a list of names.")
    if not len(columns) or len(set(columns)) < len(columns):
        raise ValueError(f"columns={columns!r:.80} must be distinct names, one at least.")
    return list(columns)


@dataclass(kw_only=True, eq=False, repr=False)
class SymbolVectorizer(SequenceTransformer):
    """Turn tokens of one or several symbols into one indicator attribute for each column.

    What generative models emit: a token is a symbol (a string or a whole number), a tuple or list
    of symbols, or a dict ``{column: symbol}``; sequences may be arrays of whole numbers or strings,
    of shape (T,) or (T, columns). Each token has the attribute ``column=symbol`` of each column,
    so that a model of symbols is a linear model over these attributes. Symbols that `fit` has not
    seen are read as ``column=<unknown>``, the last attribute of a column.

    Parameters
    ----------
    columns : list of str, optional
        Names of the columns; of dicts, those to read, where they have more. If not given, all keys
        of dicts, which must be the same in all tokens; "0", "1" ... of tuples; "symbol" of tokens
        that are symbols.
    min_freq : int, default=0
        Symbols that occur fewer times in the training data are read as unknown ones.
    suffixes : SuffixClasses, optional
        How symbols of one column that are not known are told apart, by what words end in.

    Attributes
    ----------
    names_ : SymbolNames
        The C columns and their symbols.
    counts_ : ndarray of shape (D,)
        How often each attribute occurred in the training data.
    form_ : str
        The form of tokens, "symbol", "tuple" or "dict".
    n_features_in_ : int
        Number of attributes D.

    Examples
    --------
    >>> from crfkit.features import SymbolVectorizer
    >>> vectorizer = SymbolVectorizer()
    >>> packed = vectorizer.fit_transform([["the", "dog"], ["a", "dog"]])
    >>> packed.feature_names.tolist()
    ['symbol=a', 'symbol=dog', 'symbol=the', 'symbol=<unknown>']
    >>> vectorizer.inverse_transform(vectorizer.transform([["a", "cat"]]))
    [['a', '<unknown>']]
    """

    _derived = ("_tables",)

    columns: list[str] | None = None
    min_freq: int = 0
    suffixes: SuffixClasses | None = None

    def _fit(self, X: Any, y: Any) -> PackedSequences:
        check_whole("min_freq", self.min_freq)
        chosen = _check_chosen(self.columns)
        reader = SymbolReader(chosen, None, [], chosen is not None)
        read = reader.read(X)
        only = ColumnSymbols(1, lambda: [UNKNOWN])
        nothing = SymbolNames(read.columns, [only] * len(read.columns), [0] * len(read.columns))
        return self._learn(read, reader.tables, nothing, self.min_freq)

    def extend(self, X: Any) -> tuple[PackedSequences, SymbolVectorizer]:
        """Return packed sequences with all their symbols, and a vectorizer that knows all.

        Parameters
        ----------
        X : iterable of sequences of tokens
            As for :meth:`fit_transform`, whose errors there are, too.

        Returns
        -------
        packed : PackedSequences
            S sequences of N tokens with D attributes: of each column the symbols of `fit`, new ones
            in their order, and what stands for unknown ones. `min_freq` does not apply.
        vectorizer : SymbolVectorizer
            Another one, which knows both; :meth:`columns_of` tells what the attributes of this one
            are there.

        Raises
        ------
        NotFittedError
            Before `fit`.
        """
        check_is_fitted(self)
        names, starts = self.names_, self.names_.starts
        known = [names.known(c) for c in range(len(names.columns))]
        tables = list(map(GrowingNumbers, known))
        read = self._reader(tables).read(X)
        past = [self.counts_[b : b + len(part)] for b, part in zip(starts[:-1], known, strict=True)]
        larger = type(self)(**self.get_params(deep=False))
        packed = larger._learn(read, tables, names, 0, past)
        larger.counts_[larger.columns_of(self)] += self.counts_
        return packed, larger

    def columns_of(self, smaller: SymbolVectorizer) -> IntArray:
        """Return which attribute each one of a vectorizer is that this one extends, shape (D,)."""
        starts, number = self.names_.starts, []
        for c, symbols in enumerate(smaller.names_.symbols):
            place = {symbol: n for n, symbol in enumerate(self.names_.symbols[c], int(starts[c]))}
            number += [place[symbol] for symbol in symbols]
        return np.array(number, np.int64)

    def inverse_transform(self, X: PackedSequences) -> list[list[Any]]:
        """Return packed sequences as sequences of tokens, in the form that was learned from.

        Parameters
        ----------
        X : PackedSequences
            With the D attributes of this vectorizer, one of each column a token.

        Raises
        ------
        ValueError
            If they have others.
        """
        check_is_fitted(self)
        starts = self.names_.starts
        size = len(starts) - 1
        rows = np.diff(X.indptr)
        if X.n_features != starts[-1] or np.any(rows != size):
            raise ValueError(f"X has not one of {starts[-1]} attributes in each of {size} columns.")
        tokens = self.tokens(X.indices.reshape(-1, size))
        return [tokens[b:e] for b, e in pairwise(X.offsets.tolist())]

    def tokens(self, attributes: CodeArray) -> list[Any]:
        """Return tokens of these attributes, shape (n, C), in the form that was learned from."""
        check_is_fitted(self)
        flat = object_array(chain.from_iterable(self.names_.symbols))
        rows: list[list[Symbol]] = flat[attributes].tolist()
        if self.form_ == SYMBOL:
            return [symbol for (symbol,) in rows]
        if self.form_ == TUPLE:
            return list(map(tuple, rows))
        return [dict(zip(self.names_.columns, row, strict=True)) for row in rows]

    def _transform(self, X: Any) -> PackedSequences:
        read = self._reader(self._tables).read(X)
        return self._packed(read.numbers, read.offsets)

    def _token_names(self) -> Names:
        return self.names_

    def _reader(self, tables: list[Any]) -> SymbolReader:
        """Return what reads tokens of the form and the columns of the fit."""
        columns, known = self.names_.columns, tables is self.__dict__.get("_tables")
        words = self.suffixes.place(columns) if known and self.suffixes is not None else None
        return SymbolReader(columns, self.form_, tables, self.columns is not None, words)

    def _learn(
        self,
        read: SymbolRows,
        tables: list[GrowingNumbers],
        names: SymbolNames,
        least: int,
        past: Iterable[IntArray] = (),
    ) -> PackedSequences:
        """Learn the symbols that tables have beside those of `names`; return what was read."""
        pairs = zip(read.numbers, tables, strict=True)
        counts = [np.bincount(numbers, minlength=len(table)) for numbers, table in pairs]
        for count, before in zip(counts, past, strict=False):
            count[: len(before)] += before
        suffixes, words = self.suffixes, None
        if suffixes is not None:
            words = suffixes.place(names.columns)
        found = [
            FoundSymbols.of(
                table, counts[c], least, (names.known(c), names.classes(c)),
                suffixes if c == words else None,
            )
            for c, table in enumerate(tables)
        ]  # fmt: skip
        self.form_ = read.form
        self.names_ = SymbolNames(
            read.columns, [each.symbols for each in found], [each.n_known for each in found]
        )
        self.n_features_in_ = len(self.names_)
        self.__dict__.pop("_tables", None)  # of an earlier fit
        if suffixes is not None and words is not None:
            column = found[words]
            if column.learned is not None:
                self.names_.remember(words, suffixes, column.learned, column.places)
        rows = zip(self._tables, tables, found, strict=True)
        numbers = [frozen.take(table, each.places) for frozen, table, each in rows]
        renumbered = [new[old] for new, old in zip(numbers, read.numbers, strict=True)]
        packed = self._packed(renumbered, read.offsets)
        self.counts_ = np.bincount(packed.indices, minlength=self.n_features_in_)
        return packed

    @cached_property
    def _tables(self) -> list[FrozenNumbers]:
        """The attribute of each symbol, by column."""
        names, starts = self.names_, self.names_.starts.tolist()
        found = []
        for c, n_known in enumerate(names.n_known):
            suffixes, find_classes = None, None
            if self.suffixes is not None and self.suffixes.place(names.columns) == c:
                suffixes = self.suffixes
                find_classes = partial(names.class_finder, c, suffixes)
            sizes = starts[c], n_known, starts[c + 1] - starts[c]
            made = partial(self._symbols_of, c)
            found.append(FrozenNumbers(made, sizes, suffixes, find_classes))
        return found

    def _symbols_of(self, column: int) -> list[Symbol]:
        return self.names_.symbols[column]

    def _packed(self, numbers: list[CodeArray], offsets: IntArray) -> PackedSequences:
        """Return tokens of these attributes in each column."""
        indices = np.empty((int(offsets[-1]), len(numbers)), np.int32)
        for c, column in enumerate(numbers):
            indices[:, c] = column
        indptr = np.arange(0, indices.size + 1, len(numbers))
        return AttributeRows(indices.reshape(-1), None, indptr, offsets).packed(self.names_)

    def _check_state(self) -> None:
        """Raise ValueError if what was restored does not fit together."""
        if not self.__sklearn_is_fitted__():
            return
        if type(self.names_) is not SymbolNames or self.form_ not in FORMS:
            raise ValueError("the names are none of symbols, or tokens have no form")
        counts, size = self.counts_, len(self.names_)
        if type(counts) is not np.ndarray or counts.dtype != np.int64 or counts.shape != (size,):
            raise ValueError("counts_ has not one number for each attribute")
        if self.n_features_in_ != size or (self.form_ == SYMBOL and len(self.names_.columns) != 1):
            raise ValueError("there are more or fewer columns, or attributes, than names")
        if type(self.suffixes) not in (SuffixClasses, type(None)):
            raise ValueError("suffixes are no SuffixClasses")
        if self.suffixes is not None:
            self.suffixes.place(self.names_.columns)
