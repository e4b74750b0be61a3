"""Distributions over symbols: what is the same of all of them."""

from __future__ import annotations

from abc import ABC
from collections.abc import Sequence
from typing import Any, NamedTuple, Self

import numpy as np
import scipy.sparse as sp

from crfkit._types import BoolArray, CodeArray, FloatArray, IntArray, Random
from crfkit.compiler.jit import frozen
from crfkit.data import PackedSequences
from crfkit.data.validation import check_rows, token_place
from crfkit.features.symbols import SymbolNames
from crfkit.generative.base import Emission, LinearEmission, Statistics
from crfkit.kernels.symbols import ListedLogs, add_listed, add_shares, listed_find

MANY = 1 << 20  # numbers of a table of counts, from where on it is sparse
TOLERANCE = 1e-6  # by which the sum of probabilities may differ from 1


class SymbolTables(NamedTuple):
    """Log-probabilities of symbols, by column: few are listed, all others of a block are alike.

    A column has one block of attributes or several; the probabilities of all add up to 1.
    """

    starts: IntArray  # (B + 1,) where the attributes of each block begin, and the end
    column: IntArray  # (B,) the column of each block
    ptr: IntArray  # (D + 1,) where the listed ones of each attribute begin, and the end
    labels: CodeArray  # (n,) in order
    values: FloatArray  # (n,)
    floor: FloatArray  # (B, K) those that are not listed; -inf where they are impossible

    @classmethod
    def of(cls, starts: Any, column: Any, listed: sp.csr_array, floor: FloatArray) -> Self:
        """Return tables of listed log-probabilities (D, K), none of them an implicit 0."""
        return cls(
            np.asarray(starts, np.int64), np.asarray(column, np.int64),
            listed.indptr.astype(np.int64), listed.indices.astype(np.int32), listed.data, floor,
        )  # fmt: skip

    @classmethod
    def from_probabilities(cls, probabilities: FloatArray, starts: Any = None) -> Self:
        """Return tables of all probabilities, (D, K), of columns that begin at `starts`."""
        with np.errstate(divide="ignore"):
            logs = np.log(probabilities)
        size, n_labels = logs.shape
        cuts = np.array([0, size]) if starts is None else np.asarray(starts)
        ptr = np.arange(0, logs.size + 1, n_labels) if n_labels else np.zeros(size + 1, np.int64)
        labels = np.tile(np.arange(n_labels, dtype=np.int32), size)
        floor = np.full((len(cuts) - 1, n_labels), -np.inf)
        column = np.arange(len(cuts) - 1)
        return cls(cuts.astype(np.int64), column, ptr, labels, logs.reshape(-1), floor)

    @classmethod
    def joined(cls, parts: Sequence[SymbolTables]) -> Self:
        """Return the tables of several parts, each of one column, one after the other."""
        sizes = [len(part.ptr) - 1 for part in parts]
        entries = [len(part.labels) for part in parts]
        starts = [p.starts[:-1] + n for p, n in zip(parts, np.cumsum([0, *sizes]), strict=False)]
        ptrs = [p.ptr[:-1] + n for p, n in zip(parts, np.cumsum([0, *entries]), strict=False)]
        return cls(
            np.concatenate([*starts, [sum(sizes)]]),
            np.repeat(np.arange(len(parts)), [len(part.column) for part in parts]),
            np.concatenate([*ptrs, [sum(entries)]]),
            *(np.concatenate([part[n] for part in parts]) for n in range(3, 6)),
        )

    @property
    def block(self) -> IntArray:
        """The block of each attribute, (D,)."""
        return np.repeat(np.arange(len(self.column)), np.diff(self.starts))

    @property
    def row(self) -> IntArray:
        """The attribute of each listed log-probability, (n,)."""
        return np.repeat(np.arange(len(self.ptr) - 1), np.diff(self.ptr))

    def unlisted(self) -> IntArray:
        """Return how many attributes of each block have no listed value of a label, (B, K)."""
        counts = np.bincount(self._cells(), minlength=self.floor.size).reshape(self.floor.shape)
        found: IntArray = np.diff(self.starts)[:, None] - counts
        return found

    def _cells(self) -> IntArray:
        """Return the place in `floor` of each listed log-probability, (n,)."""
        n_blocks, n_labels = self.floor.shape
        blocks: IntArray = np.arange(n_blocks) * n_labels
        found: IntArray = np.repeat(blocks, np.diff(self.ptr[self.starts])) + self.labels
        return found

    def totals(self) -> FloatArray:
        """Return the sum of the probabilities of each column and label, (C, K)."""
        return self.sums(np.exp(self.values), np.exp(self.floor))

    def sums(self, listed: FloatArray, floor: FloatArray) -> FloatArray:
        """Return the sums of numbers in the place of `values` and `floor`, as `totals`."""
        sums = np.bincount(self._cells(), listed, minlength=floor.size).reshape(floor.shape)
        totals = np.zeros((int(self.column[-1]) + 1, floor.shape[1]))
        np.add.at(totals, self.column, sums + floor * self.unlisted())
        return totals

    def of_label(self, label: int, attributes: slice) -> FloatArray:
        """Return the log-probabilities of a run of attributes given a label."""
        logs: FloatArray = self.floor[self.block[attributes], label]
        entries = slice(self.ptr[attributes.start], self.ptr[attributes.stop])
        chosen = np.flatnonzero(self.labels[entries] == label)
        logs[self.row[entries][chosen] - attributes.start] = self.values[entries][chosen]
        return logs

    def columns(self) -> list[slice]:
        """Return the attributes of each column."""
        first = np.searchsorted(self.column, np.arange(int(self.column[-1]) + 2))
        cuts = self.starts[first].tolist()
        return [slice(b, e) for b, e in zip(cuts[:-1], cuts[1:], strict=True)]

    def dense(self) -> FloatArray:
        """Return all log-probabilities, (D, K)."""
        logs: FloatArray = self.floor[self.block]
        logs[self.row, self.labels] = self.values
        return logs


def column_starts(data: PackedSequences) -> IntArray:
    """Return where the attributes of each column begin, and the end, (C + 1,)."""
    names = data.names
    return names.starts if isinstance(names, SymbolNames) else np.array([0, data.n_features])


def listed_counts(counts: FloatArray | sp.csr_array) -> sp.csr_array:
    """Return counts (D, K) as a list of those that are not 0."""
    if sp.issparse(counts):
        return sp.csr_array(counts)
    return listed_cells(counts, counts != 0.0)


def listed_cells(table: FloatArray, chosen: BoolArray) -> sp.csr_array:
    """Return the chosen numbers of a table, (D, K), as a list."""
    cells = np.flatnonzero(chosen)
    rows, labels = np.divmod(cells, max(table.shape[1], 1))
    ptr = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=len(table)))])
    return sp.csr_array((table.reshape(-1)[cells], labels, ptr), shape=table.shape)


def _listed(tables: SymbolTables) -> ListedLogs:
    """Return tables for kernels."""
    return ListedLogs(
        frozen(tables.starts), frozen(tables.ptr), frozen(tables.labels), frozen(tables.values),
        frozen(tables.floor),
    )  # fmt: skip


def dealt(uses: FloatArray | IntArray, n_labels: int, random: Random) -> FloatArray:
    """Return counts (D,) dealt to the labels at random, (D, K)."""
    shares: FloatArray = uses[:, None] * random.dirichlet(np.ones(n_labels), len(uses))
    return shares


class SymbolEmission(Emission, ABC):
    """Each token has one attribute in each column, independent of those in the others."""

    def check(self, data: PackedSequences) -> None:
        """Raise ValueError if a token has not one attribute of value 1 in each column."""
        starts = column_starts(data)
        size = len(starts) - 1
        if data.dense is not None or data.values is not None:
            raise ValueError(
                f"{type(self).__name__} is for symbols, but X has values other than 1: take "
                "emissions='multinomial' for counts, 'gaussian' for measurements."
            )
        wrong = np.diff(data.indptr) != size
        if not wrong.any():
            rows = data.indices.reshape(-1, size)
            wrong = ((rows < starts[:-1]) | (rows >= starts[1:])).any(axis=1)
        if wrong.any():
            token = int(np.argmax(wrong))
            found = data.indices[data.indptr[token] : data.indptr[token + 1]]
            names = found if data.feature_names is None else data.feature_names[found]
            raise ValueError(
                f"{token_place(data.offsets, token)}: the token has the attributes "
                f"{names.tolist()!r:.80}, but {type(self).__name__} needs one in each of {size} "
                "columns."
            )

    def n_features(self, tables: SymbolTables) -> int:
        """Return the number of attributes that tables are of."""
        return len(tables.ptr) - 1

    def check_tables(self, tables: Any, n_labels: int, n_features: int) -> None:
        """Raise ValueError if tables are not of K labels and D attributes, or no distributions."""
        if type(tables) is not SymbolTables:
            raise ValueError("the tables of symbols are none")
        kinds = (np.int64, np.int64, np.int64, np.int32, np.float64, np.float64)
        for name, part, kind in zip(tables._fields, tables, kinds, strict=True):
            dimensions = 2 if name == "floor" else 1
            if type(part) is not np.ndarray or part.dtype != kind or part.ndim != dimensions:
                raise ValueError(f"{name} of symbols is no array of {np.dtype(kind)}")
        starts, column, ptr, labels, values, floor = tables
        if floor.shape != (len(column), n_labels) or not len(column):
            raise ValueError("the blocks of symbols have not one floor for each label")
        if column[0] != 0 or not np.isin(np.diff(column), (0, 1)).all():
            raise ValueError("the columns of symbols are not in order")
        check_rows(
            starts, np.arange(n_features), (len(column), n_features), "the blocks of symbols"
        )
        check_rows(ptr, labels, (n_features, n_labels), "the lists of symbols")
        if len(values) != len(labels) or starts[-1] != n_features or ptr[-1] != len(labels):
            raise ValueError("the lists of symbols do not fit their labels")
        inner = np.diff(tables.row) == 0
        if np.any(inner & (np.diff(labels) <= 0)):
            raise ValueError("the labels of a symbol are not in order")
        if not (np.all(values <= TOLERANCE) and np.all(floor <= TOLERANCE)):
            raise ValueError("a probability of symbols is above 1, or NaN")
        if not np.allclose(tables.totals(), 1.0, rtol=0.0, atol=TOLERANCE):
            raise ValueError("the probabilities of symbols do not add up to 1")

    def count_labels(
        self, data: PackedSequences, codes: CodeArray, weight: FloatArray, n_labels: int
    ) -> Statistics:
        """Return the weighted counts of attributes and labels, (D, K)."""
        size, labels, weights = data.n_features, codes, weight
        if len(data.indices) != len(codes):
            times = np.diff(data.indptr)
            labels, weights = np.repeat(codes, times), np.repeat(weight, times)
        if size * n_labels <= MANY:
            cells = data.indices.astype(np.int64) * n_labels + labels
            counts = np.bincount(cells, weights, size * n_labels)
            return (counts.reshape(size, n_labels),)
        shape = (size, n_labels)
        listed = sp.coo_array((weights, (data.indices, labels)), shape=shape).tocsr()
        listed.eliminate_zeros()
        return (listed,)

    def count(self, data: PackedSequences, tokens: slice, shares: FloatArray) -> Statistics:
        """Return expected counts of attributes and labels, (D, K)."""
        shape = data.n_features, shares.shape[1]
        rows = frozen(data.indptr), frozen(data.indices)
        if shape[0] * shape[1] <= MANY:
            counts = np.zeros(shape)
            add_shares(*rows, tokens.start, tokens.stop, frozen(shares), counts)
            return (counts,)
        begin = data.indptr[tokens.start]
        entries = data.indices[begin : data.indptr[tokens.stop]]
        found, places = np.unique(entries, return_inverse=True)
        counts = np.zeros((len(found), shape[1]))
        ptr = data.indptr[tokens.start : tokens.stop + 1] - begin
        rows = frozen(ptr), frozen(places.astype(np.int32))
        add_shares(*rows, 0, len(shares), frozen(shares), counts)
        ptr = np.zeros(shape[0] + 1, np.int64)
        ptr[found + 1] = shape[1]
        columns = np.tile(np.arange(shape[1], dtype=np.int32), len(found))
        return (sp.csr_array((counts.reshape(-1), columns, np.cumsum(ptr)), shape=shape),)

    def extend(self, statistics: Statistics, columns: IntArray, n_features: int) -> Statistics:
        """Return counts of more attributes: of what was number d, those of number columns[d]."""
        (counts,) = statistics
        rows = sp.coo_array(counts)
        places = columns[rows.coords[0]], rows.coords[1]
        shape = (n_features, counts.shape[1])
        larger = sp.coo_array((rows.data, places), shape=shape).tocsr()
        return (larger if n_features * counts.shape[1] > MANY else larger.toarray(),)

    def log_likelihood(self, tables: SymbolTables, statistics: Statistics) -> float:
        """Return the log-probability of the symbols that were counted, given their labels."""
        counts = listed_counts(statistics[0])
        rows = np.repeat(np.arange(counts.shape[0]), np.diff(counts.indptr))
        logs, labels = np.empty(len(rows)), counts.indices.astype(np.int32)
        listed_find(frozen(rows), frozen(labels), _listed(tables), logs)
        chosen = counts.data > 0.0
        return float(counts.data[chosen] @ logs[chosen])

    def initial(self, data: PackedSequences, n_labels: int, random: Random) -> SymbolTables:
        """Return tables where each symbol is dealt to the labels at random."""
        uses = np.bincount(data.indices, minlength=data.n_features)
        tables: SymbolTables = self.estimate((dealt(uses, n_labels, random),), data)
        return tables

    def scores(
        self, tables: SymbolTables, data: PackedSequences, tokens: slice, out: FloatArray
    ) -> None:
        """Add the log-probability of the symbols of each token given each label."""
        rows = frozen(data.indptr), frozen(data.indices)
        add_listed(*rows, tokens.start, tokens.stop, _listed(tables), np.empty(out.shape[1]), out)

    def draw(self, tables: SymbolTables, labels: CodeArray, random: Random, vectorizer: Any) -> Any:
        """Return tokens; without a vectorizer, rows of indicators, a matrix of shape (n, D)."""
        columns = tables.columns()
        numbers = np.empty((len(labels), len(columns)), np.int32)
        uniform = random.random_sample(numbers.shape)
        for label in np.unique(labels).tolist():
            chosen = np.flatnonzero(labels == label)
            for c, part in enumerate(columns):
                sums = np.cumsum(np.exp(tables.of_label(label, part)))
                found = np.searchsorted(sums, uniform[chosen, c] * sums[-1], side="right")
                numbers[chosen, c] = part.start + np.minimum(found, len(sums) - 1)
        if vectorizer is not None:
            return vectorizer.tokens(numbers)
        ptr = np.arange(0, numbers.size + 1, len(columns))
        shape = (len(labels), len(tables.ptr) - 1)
        return sp.csr_array((np.ones(numbers.size), numbers.reshape(-1), ptr), shape=shape)

    def linear(self, tables: SymbolTables) -> LinearEmission:
        """Return the log-probabilities as weights; those that most symbols have are constant."""
        last = np.append(np.diff(tables.column) > 0, True)  # the blocks that end a column
        base = np.where(np.isfinite(tables.floor[last]), tables.floor[last], 0.0)
        of_block = base[tables.column]
        with np.errstate(invalid="ignore"):
            floor = tables.floor - of_block
        values = tables.values - of_block[tables.block[tables.row], tables.labels]
        shape = len(tables.ptr) - 1, floor.shape[1]
        listed = sp.csr_array((values, tables.labels, tables.ptr), shape=shape)
        blocks = []
        for b, (begin, end) in enumerate(zip(tables.starts[:-1], tables.starts[1:], strict=True)):
            part = listed[begin:end]
            if floor[b].any():  # also of what is not listed
                full = np.tile(floor[b], (end - begin, 1))
                full[np.repeat(np.arange(end - begin), np.diff(part.indptr)), part.indices] = (
                    part.data
                )
                part = sp.csr_array(full)
            blocks.append(part)
        coef = sp.csr_array(sp.vstack(blocks, format="csr"))
        return LinearEmission(coef, base.sum(axis=0))
