"""Weights in two forms: full rows for attributes with many of them, single cells for the rest."""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import cached_property, partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from crfkit._parallel import ThreadMap
from crfkit._types import CodeArray, FloatArray, IdArray, IntArray, PtrArray
from crfkit.compiler.jit import frozen
from crfkit.data import PackedSequences
from crfkit.data.packed import ranges
from crfkit.kernels.design.gather import (
    ListedRows,
    PairWeights,
    SparseRows,
    collect_rows,
    gather_cells,
    gather_dense,
    gather_rows,
    gather_tokens,
    scatter_cells,
    scatter_dense,
    scatter_rows,
    spread_rows,
)
from crfkit.potentials.folding import Folding, find_folding

# An attribute has a full row where it has weights for so many columns, and for at least one in so
# many: a row is added in vectors, zeros and all, and single numbers one by one.
FULL = (4, 4)
# The same in reading token by token: each attribute costs a cache miss or more, and a row in one
# piece is nearer than the three arrays of pairs.
FULL_BY_TOKEN = (2, 12)

# What the first use of a weight or of a row of them in a part costs beyond the others, in uses.
CELL_PART, ROW_PART = 3, 14

# Positions of scores are 32 bits wide.
MAX_CELLS = 2**32


class Part(NamedTuple):
    """A run of rows: the tokens ``begin:end`` of packed features."""

    data: PackedSequences
    begin: int
    end: int


class BoundWeights(NamedTuple):
    """The weights in their places.

    Attributes
    ----------
    pairs : ndarray of shape (P,)
        All weights.
    dense : ndarray of shape (F, C)
        Those of dense features as a table.
    full : FullRows
        Those of attributes with full rows as a table, for training.
    tokens : FullRows
        The same, with more full rows, for reading token by token.
    """

    pairs: FloatArray
    dense: FloatArray
    full: FullRows
    tokens: FullRows


class RowIndex:
    """Which attributes have a full row in a table, and the row of each.

    Parameters
    ----------
    ptr : ndarray of shape (D + 1,)
        Where the weights of each attribute begin, and the end.
    columns : ndarray of shape (P,)
        Their columns.
    n_columns : int
        C.
    n_sparse : int
        The attributes from here on are dense features, which have a table of their own.
    full : pair of int
        An attribute has a row where it has a weight for so many columns, and one in so many.
    """

    def __init__(
        self,
        ptr: PtrArray,
        columns: IdArray,
        n_columns: int,
        n_sparse: int,
        full: tuple[int, int],
    ) -> None:
        counts = np.diff(ptr[: n_sparse + 1].view(np.int64))
        self.ptr, self.columns, self.n_columns = ptr, columns, n_columns
        least, share = full
        chosen = (counts >= min(least, n_columns)) & (counts * share >= n_columns)
        self.attributes: IdArray = frozen(np.flatnonzero(chosen).astype(np.uint32))
        # Where all pairs have a weight, the vector of weights is the table.
        self.complete = bool(chosen.all() and (counts == n_columns).all())
        slots = np.full(n_sparse, len(self.attributes), np.uint32)
        slots[self.attributes] = np.arange(len(self.attributes), dtype=np.uint32)
        self.slots: IdArray = frozen(slots)

    @cached_property
    def _codes(self) -> tuple[IdArray, IntArray, IntArray]:
        """Say what to do with each attribute, and which have one weight, and where.

        The code is the row in the table, H + the column of the only weight, or H + C.
        """
        ptr = self.ptr[: len(self.slots) + 1].view(np.int64)
        size, counts = len(self.attributes), np.diff(ptr)
        alone = np.flatnonzero((counts == 1) & (self.slots == size))
        codes = np.where(self.slots < size, self.slots, size + self.n_columns)
        codes[counts == 0] = size  # some column: its weight in `single` is 0
        codes[alone] = size + self.columns[ptr[alone]]
        return frozen(codes.astype(np.uint32)), alone, ptr[alone]

    def single(self, weights: FloatArray) -> FloatArray:
        """Return the weight of each attribute that has only one, 0 for others, shape (D,)."""
        _, alone, places = self._codes
        single = np.zeros(len(self.slots))
        single[alone] = weights[places]
        return frozen(single)

    @property
    def shape(self) -> tuple[int, int]:
        """Shape (H, C) of the table."""
        return len(self.attributes), self.n_columns

    def view(self, weights: FloatArray) -> FloatArray:
        """Return weights, shape (P,), as the table, where they are one: a view."""
        return weights[: len(self.attributes) * self.n_columns].reshape(self.shape)

    def gather(
        self, data: PackedSequences, begin: int, end: int, bound: BoundWeights, out: FloatArray
    ) -> None:
        """Add the scores of the tokens ``begin:end``, one by one, to `out`, shape (n, C)."""
        values, step = data.value_array()
        indptr = data.indptr
        size = int(indptr[end] - indptr[begin])
        listed = ListedRows(
            np.empty(end - begin + 1, np.int64), np.empty(size, np.uint32),
            np.empty(size) if step else np.empty(1),
        )  # fmt: skip
        gather_tokens(
            SparseRows(
                frozen(indptr.view(np.uint64)), frozen(data.indices.view(np.uint32)),
                frozen(values), step,
            ),
            begin,
            end,
            PairWeights(
                self._codes[0], len(self.attributes), bound.tokens.single, self.ptr, self.columns,
                frozen(bound.pairs),
            ),
            listed,
            out,
        )  # fmt: skip
        gather_rows(
            frozen(listed.ptr), frozen(listed.rows), frozen(listed.values if step else values),
            step, bound.tokens.table, out,
        )  # fmt: skip

    def add(self, table: FloatArray, begin: int, end: int, out: FloatArray) -> None:
        """Add the rows ``begin:end`` of a table to the weights, shape (P,)."""
        collect_rows(self.attributes, begin, end, self.ptr, self.columns, frozen(table), out)


class FullRows:
    """The table of the attributes with full rows, made when it is first asked for.

    A solver that moves after a few sequences reads weights pair by pair and never asks. Threads
    that ask at the same time wait for one of them: a table may be large.
    """

    def __init__(self, layout: RowIndex, weights: FloatArray) -> None:
        self._layout, self._weights = layout, weights
        self._lock = threading.Lock()
        self._made: dict[str, FloatArray] = {}
        self._folded: tuple[Folding, FloatArray] | None = None

    @property
    def single(self) -> FloatArray:
        """The weight of each attribute that has only one, shape (D,)."""
        return self._once("single", lambda: self._layout.single(self._weights))

    @property
    def table(self) -> FloatArray:
        """Weights, shape (H, C); 0 where there is none."""
        return self._once("table", self._spread)

    def folded(self, folding: Folding | None) -> FloatArray:
        """Return the table, folded if need be; the last one is kept: blocks take turns."""
        table = self.table
        if folding is None:
            return table
        with self._lock:
            if self._folded is None or self._folded[0] is not folding:
                self._folded = folding, folding.fold(table)
            return self._folded[1]

    def _once(self, what: str, make: Callable[[], FloatArray]) -> FloatArray:
        with self._lock:
            if what not in self._made:
                self._made[what] = make()
            return self._made[what]

    def _spread(self) -> FloatArray:
        layout, weights = self._layout, frozen(self._weights)
        if layout.complete:
            return layout.view(weights)
        table = np.zeros(layout.shape)
        spread_rows(layout.attributes, layout.ptr, layout.columns, weights, table)
        return frozen(table)


class Rows(NamedTuple):
    """The entries of a part whose attributes have full rows, token by token and turned around."""

    row_ptr: IntArray  # (n + 1,)
    slots: IdArray  # (nnz,) rows of the table
    values: FloatArray  # (nnz,) or (1,)
    columns: IntArray  # (C,) rows of the table that occur, rising
    col_ptr: IntArray  # (C + 1,)
    rows: IdArray  # (nnz,) rows of the part
    turned: FloatArray  # (nnz,) or (1,): the values in this order
    bounds: IntArray  # where the share of each thread starts in `columns`, and the end


class Cells(NamedTuple):
    """The other entries of a part, one for each weight."""

    cells: IdArray  # (n,) positions in the scores of the part
    places: IdArray  # (n,) weights, rising
    values: FloatArray  # (n,) or (1,)
    bounds: IntArray  # where the share of each thread starts, and the end


class PreparedRows:
    """Parts in the form that training on all of them reads.

    Parameters
    ----------
    layout : RowIndex
        Which attributes have full rows.
    parts : list of Part
        The parts.
    n_dense : int
        Number of dense features.
    threads : ThreadMap
        Prepares the parts, and later pulls back.

    Raises
    ------
    ValueError
        If a part has more scores than can be numbered.
    """

    def __init__(
        self, layout: RowIndex, parts: list[Part], n_dense: int, threads: ThreadMap
    ) -> None:
        self.layout, self.parts = layout, parts
        self.folding = self._find_folding(threads)
        row_edges, place_edges = _shares(layout, parts, self.folding, threads.n_workers)
        self.dense_bounds = np.linspace(0, n_dense, threads.n_workers + 1).astype(np.int64)
        self._row_edges = row_edges
        prepare = partial(prepare_part, layout, self.folding, row_edges, place_edges)
        self._entries = threads(prepare, parts)
        if self.folding:
            self.folding.release_data()

    def _find_folding(self, threads: ThreadMap) -> Folding | None:
        """Return which rows stand for others; not where the weights are the table."""
        if self.layout.complete or any(part.data.values is not None for part in self.parts):
            return None
        lists = threads(lambda part: _row_lists(self.layout, part)[:2], self.parts)
        return find_folding(lists, len(self.layout.attributes))

    def gather(self, bound: BoundWeights, index: int, out: FloatArray) -> None:
        """Add the scores of part `index` to `out`, shape (n, C)."""
        (rows, cells), part = self._entries[index], self.parts[index]
        _, step = part.data.value_array()
        table = bound.full.folded(self.folding)
        gather_rows(rows.row_ptr, rows.slots, rows.values, step, table, out)
        gather_cells(
            cells.cells, cells.places, cells.values, step, frozen(bound.pairs), out.reshape(-1)
        )
        add_dense(bound, part, out)

    def pullback(
        self, residuals: list[FloatArray], threads: ThreadMap, out: FloatArray, dense: FloatArray
    ) -> None:
        """Add the gradient to the weights, shape (P,), and to those of dense features, (F, C)."""
        complete = self.layout.complete
        table = self.layout.view(out) if complete else np.zeros(self.layout.shape)

        def scatter(share: int) -> None:
            for index, residual in enumerate(residuals):
                self._scatter(index, share, frozen(residual), table, out, dense)

        def collect(share: int) -> None:
            begin, end = self._row_edges[share : share + 2].tolist()
            self.layout.add(table, begin, end, out)

        shares = range(len(self.dense_bounds) - 1)
        threads(scatter, shares)
        if self.folding:
            self.folding.unfold(table)
        if not complete:
            threads(collect, shares)

    def _scatter(
        self,
        index: int,
        share: int,
        residual: FloatArray,
        table: FloatArray,
        out: FloatArray,
        dense: FloatArray,
    ) -> None:
        """Add what one part gives to one share of the attributes."""
        (rows, cells), part = self._entries[index], self.parts[index]
        _, step = part.data.value_array()
        begin, end = rows.bounds[share : share + 2].tolist()
        scatter_rows(
            rows.columns, rows.col_ptr, rows.rows, rows.turned, step, begin, end, residual, table
        )
        own = slice(*cells.bounds[share : share + 2].tolist())
        scatter_cells(
            cells.cells[own], cells.places[own], cells.values[own] if step else cells.values,
            step, residual.reshape(-1), out,
        )  # fmt: skip
        if part.data.dense is not None:
            low, high = self.dense_bounds[share : share + 2].tolist()
            scatter_dense(frozen(part.data.dense), part.begin, low, high, residual, dense[None])


def add_dense(bound: BoundWeights, part: Part, out: FloatArray) -> None:
    """Add what dense features contribute to the scores of a part."""
    if part.data.dense is not None:
        table = frozen(bound.dense[None])
        gather_dense(frozen(part.data.dense), part.begin, part.end, table, out)


def entries_of(part: Part) -> CodeArray:
    """Return the sparse attributes of a part, row after row."""
    indptr = part.data.indptr
    return part.data.indices[indptr[part.begin] : indptr[part.end]]


def _shares(
    layout: RowIndex, parts: list[Part], folding: Folding | None, count: int
) -> tuple[IntArray, IntArray]:
    """Cut the table and the weights into `count` ranges of about equal work."""
    uses, n_parts = np.zeros(len(layout.slots), np.int64), np.zeros(len(layout.slots), np.int64)
    for part in parts:
        found = np.bincount(entries_of(part), minlength=len(uses))
        uses += found
        n_parts += found > 0
    single = layout.slots == len(layout.attributes)
    sizes = np.diff(layout.ptr[: len(uses) + 1].view(np.int64))
    cells = _cut(np.where(single, (uses + CELL_PART * n_parts) * sizes, 0), count)
    of_rows = uses[layout.attributes]
    left = folding.left(of_rows) if folding else of_rows
    rows = _cut(left + ROW_PART * n_parts[layout.attributes], count)
    return rows, layout.ptr.view(np.int64)[cells]


def _cut(work: IntArray, count: int) -> IntArray:
    total = np.cumsum(work)
    aims = np.arange(1, count) * (int(total[-1]) if len(total) else 0) / count
    inner = np.searchsorted(total, aims)
    return np.concatenate([[0], inner, [len(work)]]).astype(np.int64)


def _row_lists(layout: RowIndex, part: Part) -> tuple[IntArray, IdArray, NDArray[np.bool_]]:
    """Return where the full rows of each token start, what they are, and which entries these."""
    indptr = part.data.indptr[part.begin : part.end + 1]
    slots = layout.slots[entries_of(part)]
    full = slots < len(layout.attributes)
    before = np.concatenate([[0], np.cumsum(full)])
    return before[indptr - indptr[0]], slots[full], full


def prepare_part(
    layout: RowIndex,
    folding: Folding | None,
    row_edges: IntArray,
    place_edges: IntArray,
    part: Part,
) -> tuple[Rows, Cells]:
    """Split the entries of a part, and turn them around."""
    n_rows, data = part.end - part.begin, part.data
    if n_rows * layout.n_columns > MAX_CELLS:
        raise ValueError(
            f"a sequence of {n_rows} tokens has more than {MAX_CELLS} scores; cut it into shorter "
            "ones."
        )
    indptr, attributes = data.indptr[part.begin : part.end + 1], entries_of(part)
    rows = np.repeat(np.arange(n_rows, dtype=np.uint32), np.diff(indptr))
    all_values, step = data.value_array()
    values = all_values[indptr[0] : indptr[-1]] if step else all_values
    row_ptr, slots, full = _row_lists(layout, part)
    in_rows = rows[full]
    if folding:
        kept = folding.kept(row_ptr, slots)
        slots, in_rows = slots[kept], in_rows[kept]
        row_ptr = np.concatenate([[0], np.cumsum(kept)])[row_ptr]
    return (
        _rows(row_ptr, slots, in_rows, values[full] if step else values, row_edges),
        _cells(layout, attributes[~full], rows[~full], values[~full] if step else values,
               place_edges),
    )  # fmt: skip


def _rows(
    row_ptr: IntArray, slots: IdArray, rows: IdArray, values: FloatArray, edges: IntArray
) -> Rows:
    order = np.argsort(slots, kind="stable")
    columns, starts = np.unique(slots[order], return_index=True)
    return Rows(
        row_ptr=frozen(row_ptr),
        slots=frozen(slots),
        values=frozen(values),
        columns=frozen(columns.astype(np.int64)),
        col_ptr=frozen(np.append(starts, len(slots)).astype(np.int64)),
        rows=frozen(rows[order]),
        turned=frozen(values if len(values) != len(slots) else values[order]),
        bounds=np.searchsorted(columns, edges),
    )


def _cells(
    layout: RowIndex,
    attributes: CodeArray,
    rows: IdArray,
    values: FloatArray,
    edges: IntArray,
) -> Cells:
    order = np.argsort(attributes, kind="stable")
    ptr = layout.ptr.view(np.int64)
    first = ptr[attributes[order]]
    sizes = ptr[attributes[order] + 1] - first
    places, entry = ranges(first, sizes), np.repeat(order, sizes)
    cells = rows[entry].astype(np.int64) * layout.n_columns + layout.columns[places]
    return Cells(
        cells=frozen(cells.astype(np.uint32)),
        places=frozen(places.astype(np.uint32)),
        values=frozen(values if len(values) != len(attributes) else values[entry]),
        bounds=np.searchsorted(places, edges),
    )
