"""Weights of (attribute, column) pairs, and the scores of rows of attributes.

Weights are read in two forms: full rows of a table for attributes with many of them, single pairs
for the rest. Rows that are equal are found once.
"""

from __future__ import annotations

import threading
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from crfkit._parallel import ThreadMap
from crfkit._types import MOST_PLACES, PLACES, CodeArray, FloatArray, IdArray, IntArray, PtrArray
from crfkit.compiler.jit import frozen
from crfkit.data import PackedSequences
from crfkit.kernels.design import gather as kernels

if TYPE_CHECKING:
    from crfkit.potentials.rows import Folding

# An attribute has a full row where it has weights for so many columns, and for at least one in so
# many: a row is added in vectors, zeros and all, and single numbers one by one.
FULL = (2, 4)
# The same in reading token by token: each attribute costs a cache miss or more, and a row in one
# piece is nearer than the three arrays of pairs.
FULL_BY_TOKEN = (2, 12)
# The rows of sums are those of lists: see `gather_rows`.
AS_THEY_ARE = frozen(np.zeros(1, np.uint32))
# Multipliers of a hash of rows.
_MIX = (np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB))


class Part(NamedTuple):
    """A run of rows: the tokens ``begin:end`` of packed features."""

    data: PackedSequences
    begin: int
    end: int


class RowIndex:
    """Which attributes have a full row in a table of shape (H, C), and the row of each.

    The weights of an attribute begin at `ptr`, shape (D + 1,), each for one of the `columns`, shape
    (P,). Attributes from `n_sparse` on are dense features, which have a table of their own. An
    attribute has a row where it has a weight for ``full[0]`` columns, and for one in ``full[1]``.
    `attributes`, shape (H,), have one; `slots`, shape (n_sparse,), are their rows, H for none. If
    it is `complete`, all pairs have a weight, and the vector of weights is the table.
    """

    def __init__(
        self, ptr: PtrArray, columns: IdArray, n_columns: int, n_sparse: int, full: tuple[int, int]
    ) -> None:
        counts = np.diff(ptr[: n_sparse + 1].view(np.int64))
        self.ptr, self.columns, self.n_columns = ptr, columns, n_columns
        least, share = full
        chosen = (counts >= min(least, n_columns)) & (counts * share >= n_columns)
        self.attributes: IdArray = frozen(np.flatnonzero(chosen).astype(np.uint32))
        self.shape = len(self.attributes), n_columns
        self.complete = bool(chosen.all() and (counts == n_columns).all())
        slots = np.full(n_sparse, len(self.attributes), np.uint32)
        slots[self.attributes] = np.arange(len(self.attributes), dtype=np.uint32)
        self.slots: IdArray = frozen(slots)

    @cached_property
    def codes(self) -> tuple[IdArray, IntArray, IntArray]:
        """What to do with each attribute, and which have one weight, and where.

        The code is the row in the table, H + the column of the only weight, or H + C.
        """
        ptr = self.ptr[: len(self.slots) + 1].view(np.int64)
        size, counts = len(self.attributes), np.diff(ptr)
        alone = np.flatnonzero((counts == 1) & (self.slots == size))
        codes = np.where(self.slots < size, self.slots, size + self.n_columns)
        codes[counts == 0] = size  # some column: the weight of an attribute without any is 0
        codes[alone] = size + self.columns[ptr[alone]]
        return frozen(codes.astype(np.uint32)), alone, ptr[alone]

    def view(self, weights: FloatArray) -> FloatArray:
        """Return weights, shape (P,), as the table, where they are one: a view."""
        return weights[: self.shape[0] * self.n_columns].reshape(self.shape)

    def spread(self, weights: FloatArray) -> FloatArray:
        """Return weights, shape (P,), as a table, 0 for none: a new one unless it is `complete`."""
        if self.complete:
            return self.view(frozen(weights))
        table = np.zeros(self.shape)
        kernels.spread_rows(self.attributes, self.ptr, self.columns, frozen(weights), table)
        return table

    def collect(self, table: FloatArray, begin: int, end: int, out: FloatArray) -> None:
        """Add the rows ``begin:end`` of a table to weights, shape (P,)."""
        kernels.collect_rows(
            self.attributes, begin, end, self.ptr, self.columns, frozen(table), out
        )


class BoundWeights:
    """Weights in their places; tables are made when they are first asked for.

    `pairs`, shape (P,), are all of them, `dense`, shape (F, C), those of dense features. A solver
    that moves after a few sequences reads weights pair by pair and never asks for a table. Threads
    that ask at the same time wait for one of them: it may be large.
    """

    def __init__(self, weights: AttributeWeights, pairs: FloatArray) -> None:
        self._weights, self.pairs = weights, pairs
        self.dense = weights.dense_table(pairs[weights.first_dense :])
        self._lock = threading.Lock()
        self._table: FloatArray | None = None
        self._folded: tuple[Folding, FloatArray] | None = None
        self._by_token: tuple[kernels.PairWeights, FloatArray] | None = None

    @property
    def table(self) -> FloatArray:
        """The weights of attributes with full rows, for training, shape (H, C)."""
        with self._lock:
            if self._table is None:
                self._table = frozen(self._weights.full.spread(self.pairs))
            return self._table

    def folded(self, folding: Folding | None) -> FloatArray:
        """Return the table, folded if need be; the last one is kept: blocks take turns."""
        if folding is None:
            return self.table
        with self._lock:
            if self._folded is None or self._folded[0] is not folding:
                self._folded = None  # before there is another one: it may be large
                table = self._weights.full.spread(self.pairs)
                folding.fold(table)
                self._folded = folding, frozen(table)
            return self._folded[1]

    @property
    def by_token(self) -> tuple[kernels.PairWeights, FloatArray]:
        """The pairs, and the table of more full rows, for reading token by token."""
        with self._lock:
            if self._by_token is None:
                layout = self._weights.by_token
                codes, alone, places = layout.codes
                single = np.zeros(len(layout.slots))
                single[alone] = self.pairs[places]
                pairs = kernels.PairWeights(
                    codes, layout.shape[0], frozen(single), layout.ptr, layout.columns,
                    frozen(self.pairs),
                )  # fmt: skip
                self._by_token = pairs, frozen(layout.spread(self.pairs))
            return self._by_token

    def add_dense(self, part: Part, out: FloatArray) -> None:
        """Add what dense features contribute to the scores of a part, shape (n, C)."""
        if part.data.dense is not None:
            table = frozen(self.dense[None])
            kernels.gather_dense(frozen(part.data.dense), part.begin, part.end, table, out)


class AttributeWeights:
    """``scores[t, c] = sum_a x[t, a] w[a, c]`` for chosen pairs of attributes and columns.

    A column, one of C, is a label, or a transition. Attribute ``a`` has weights for the columns
    ``columns[ptr[a]:ptr[a + 1]]``, which rise; `ptr` has shape (D + 1,), `columns` (P,). Attributes
    from `n_sparse` on are dense features, whose weights stand from `first_dense` on.
    """

    def __init__(self, ptr: IntArray, columns: CodeArray, n_columns: int, n_sparse: int) -> None:
        self.ptr, self.columns = np.asarray(ptr, np.int64), np.asarray(columns, np.int32)
        self.n_columns, self.n_sparse = n_columns, n_sparse
        self.n_features, self.n_parameters = len(self.ptr) - 1, len(self.columns)
        self.first_dense = int(self.ptr[n_sparse])

    @cached_property
    def full(self) -> RowIndex:
        """Which attributes have full rows in training."""
        return self._rows(FULL)

    @cached_property
    def by_token(self) -> RowIndex:
        """Which have them in reading token by token."""
        return self._rows(FULL_BY_TOKEN)

    def _rows(self, full: tuple[int, int]) -> RowIndex:
        unsigned = frozen(self.ptr.view(np.uint64)), frozen(self.columns.view(np.uint32))
        return RowIndex(*unsigned, self.n_columns, self.n_sparse, full)

    def dense_table(self, weights: FloatArray) -> FloatArray:
        """Return the weights of dense features as a new table of shape (F, C)."""
        table = np.zeros((self.n_features - self.n_sparse, self.n_columns))
        table.reshape(-1)[self._dense_cells] = weights
        return table

    def take_dense(self, table: FloatArray) -> FloatArray:
        """Return the weights of dense features from a table of shape (F, C)."""
        return table.reshape(-1)[self._dense_cells]

    @cached_property
    def _dense_cells(self) -> IntArray:
        """Where each weight of a dense feature stands in such a table."""
        counts = np.diff(self.ptr[self.n_sparse :])
        rows = np.repeat(np.arange(len(counts)), counts)
        return rows * self.n_columns + self.columns[self.first_dense :]


class NewRows:
    """Parts of new data, read row by row, once."""

    def __init__(self, weights: AttributeWeights, parts: list[Part], threads: ThreadMap) -> None:
        self.parts = parts

    def gather(self, bound: BoundWeights, index: int, out: FloatArray) -> None:
        """Add the scores of part `index` to `out`, shape (n, C)."""
        part = self.parts[index]
        data, begin, end = part
        pairs, table = bound.by_token
        values, step = data.value_array()
        size = int(data.indptr[end] - data.indptr[begin])
        listed = kernels.ListedRows(
            np.empty(end - begin + 1, np.int64), np.empty(size, PLACES[len(table) > MOST_PLACES]),
            np.empty(size) if step else np.empty(1),
        )  # fmt: skip
        rows = kernels.SparseRows(
            frozen(data.indptr.view(np.uint64)), frozen(data.indices.view(np.uint32)),
            frozen(values), step,
        )  # fmt: skip
        kernels.gather_tokens(rows, begin, end, pairs, listed, out)
        kernels.gather_rows(
            AS_THEY_ARE, frozen(listed.ptr), frozen(listed.rows),
            frozen(listed.values if step else values), step, 0, end - begin, table, out,
        )  # fmt: skip
        bound.add_dense(part, out)


def distinct_rows(data: PackedSequences, begin: int, end: int) -> tuple[PackedSequences, IdArray]:
    """Return the distinct rows among the tokens ``begin:end``, and which of them each token has.

    Equal rows have equal scores, so a table of pair scores is needed for each distinct row only:
    dozens instead of thousands, where the attributes of transitions are tags. They come as one
    sequence, in the order of their first appearance.
    """
    tokens, row_of = distinct_tokens(data, begin, end)
    return data.take_tokens(tokens), row_of


def distinct_tokens(data: PackedSequences, begin: int, end: int) -> tuple[IntArray, IdArray]:
    """Return the first token of each distinct row, and which of them each token has."""
    keys = _row_keys(data, begin, end)
    _, first, row_of = np.unique(keys, return_index=True, return_inverse=True)
    if not _equal_rows(data, begin + np.arange(end - begin), begin + first[row_of]):
        first = row_of = np.arange(end - begin)  # two different rows have the same key
    order = np.argsort(first)
    rank = np.empty(len(order), np.uint32)
    rank[order] = np.arange(len(order), dtype=np.uint32)
    return begin + first[order], rank[row_of]


def _mix(numbers: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Spread numbers over 64 bits (the finalizer of SplitMix64; Steele, Lea and Flood 2014)."""
    numbers = (numbers ^ (numbers >> np.uint64(30))) * _MIX[0]
    numbers = (numbers ^ (numbers >> np.uint64(27))) * _MIX[1]
    mixed: NDArray[np.uint64] = np.bitwise_xor(numbers, numbers >> np.uint64(31))
    return mixed


def _row_keys(data: PackedSequences, begin: int, end: int) -> NDArray[np.uint64]:
    """Return a number for each row; equal rows have equal ones."""
    low, high = data.indptr[begin], data.indptr[end]
    entries = _mix(data.indices[low:high].astype(np.uint64) + np.uint64(1))
    if data.values is not None:
        entries = _mix(entries ^ data.values[low:high].view(np.uint64))
    sums = np.concatenate([np.zeros(1, np.uint64), np.cumsum(entries, dtype=np.uint64)])
    bounds = data.indptr[begin : end + 1] - low
    keys: NDArray[np.uint64] = sums[bounds[1:]] - sums[bounds[:-1]]
    if data.dense is not None:
        for column in np.ascontiguousarray(data.dense[begin:end].T):
            keys = _mix(keys ^ (column + 0.0).view(np.uint64))
    return keys


def _equal_rows(data: PackedSequences, ours: IntArray, theirs: IntArray) -> bool:
    """Whether rows are equal, pair by pair."""
    a, b = data.take_tokens(ours), data.take_tokens(theirs)
    blocks = ("indptr", "indices", "values", "dense")
    return all(np.array_equal(getattr(a, name), getattr(b, name)) for name in blocks)
