"""Rows of attributes in the form of training: turned around, and without what others imply.

Attributes that come only together with others take their rows along. Templates over a window imply
each other: a tag bigram comes only together with its two tags, a frequent word only with its
suffixes. Where all tokens with attribute ``a`` have ``b``, the row of ``a`` may hold that of ``b``
as well, and these tokens need ``b`` no more. In each token an attribute is taken along by one other
at most, which may be taken along itself.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from crfkit._parallel import ThreadMap
from crfkit._types import (
    MOST_PLACES,
    PLACES,
    BoolArray,
    CodeArray,
    FloatArray,
    IdArray,
    IntArray,
    PlaceArray,
)
from crfkit.compiler.jit import frozen
from crfkit.data.packed import ranges
from crfkit.kernels.design.folding import (
    SplitEntries,
    TokenRows,
    fold_find,
    fold_rows,
    fold_settle,
    fold_split,
)
from crfkit.kernels.design.gather import (
    CellEntries,
    add_cells,
    collect_rows,
    gather_rows,
    scatter_dense,
    spread_rows,
)
from crfkit.potentials.attributes import AS_THEY_ARE, AttributeWeights, BoundWeights, Part, RowIndex

# Bits of a position or place that an entry keeps.
BITS = 16

# What the first use of a weight or of a row of them in a part costs beyond the others, in uses.
CELL_PART, ROW_PART = 3, 14

# Positions of scores are 32 bits wide.
MAX_CELLS = 2**32

# Fewer entries are not worth the search, nor is a link that is made use of less often.
LEAST_ENTRIES, LEAST_USES = 1 << 16, 4
# A pass saves an addition of rows twice for each of these uses, and copies all rows for it.
LEAST_SAVED = 2
# Links from a row at most.
MOST_LINKS = 16


class Rows(NamedTuple):
    """The entries of a part whose attributes have full rows, token by token and turned around."""

    row_ptr: IntArray  # (n + 1,)
    slots: PlaceArray  # (nnz,) rows of the table
    values: FloatArray  # (nnz,) or (1,)
    columns: IdArray  # (C,) rows of the table that occur, rising
    col_ptr: IntArray  # (C + 1,)
    rows: PlaceArray  # (nnz,) rows of the part
    turned: FloatArray  # (nnz,) or (1,): the values in this order
    bounds: IntArray  # where the share of each thread starts in `columns`, and the end


def exchanged(entries: CellEntries) -> CellEntries:
    """Return the same pairs with places as positions and positions as places, for the adjoint."""
    first_cell, first_place, ptr, cells, places, values = entries
    return CellEntries(first_place, first_cell, ptr, places, cells, values)


class Cells(NamedTuple):
    """The other entries of a part, one for each weight."""

    entries: CellEntries
    bounds: IntArray  # the group where the share of each thread starts, and the end

    @classmethod
    def of(cls, cells: IntArray, places: IntArray, values: FloatArray, edges: IntArray) -> Cells:
        """Return entries of rising places, as thread `i` owns the weights ``edges[i:i + 2]``.

        In the order of a sum nothing changes: entries of one place, or of one cell, keep theirs.
        """
        cuts, low = np.searchsorted(places, edges), (1 << BITS) - 1
        cuts[0], cuts[-1] = 0, len(places)
        share = np.repeat(np.arange(len(edges) - 1), np.diff(cuts))
        # A group has one share, and the same upper bits of its places, and of its positions.
        upper = places >> BITS
        begins = (np.diff(upper, prepend=0) > 0) | (np.diff(share, prepend=0) > 0)
        n_upper = (int(cells.max(initial=0)) >> BITS) + 1
        group = np.cumsum(begins) * n_upper + (cells >> BITS)
        order = _rising(group)
        cells, places, group = cells[order], places[order], group[order]
        starts = np.flatnonzero(np.diff(group, prepend=-1))
        return cls(
            CellEntries(
                first_cell=frozen((cells[starts] & ~low).astype(np.uint64)),
                first_place=frozen((places[starts] & ~low).astype(np.uint64)),
                ptr=frozen(np.append(starts, len(cells)).astype(np.uint64)),
                cells=frozen((cells & low).astype(np.uint16)),
                places=frozen((places & low).astype(np.uint16)),
                values=frozen(values[order] if len(values) == len(cells) else values),
            ),
            np.searchsorted(share[order][starts], np.arange(len(edges))),
        )


class PreparedRows:
    """Parts in the form that training on all of them reads.

    Each thread owns a range of the weights and adds up their gradients part by part, so that no
    weight is shared and every sum has one order. The same threads prepare and pull back. ValueError
    if a part has more scores than can be numbered.
    """

    def __init__(self, weights: AttributeWeights, parts: list[Part], threads: ThreadMap) -> None:
        self.weights, self.layout, self.parts = weights, weights.full, parts
        self.folding = None  # which rows stand for others; none where the weights are the table
        is_plain = bool(parts) and parts[0].data.values is None and not self.layout.complete
        if is_plain and sum(len(entries_of(part)) for part in parts) >= LEAST_ENTRIES:
            tokens = [_token_rows(self.layout, part) for part in parts]
            self.folding = find_folding(tokens, self.layout.shape[0])
        count, n_dense = threads.n_workers, weights.n_features - weights.n_sparse
        self._row_edges, place_edges = _shares(self.layout, parts, self.folding, count)
        self._dense_edges = np.linspace(0, n_dense, count + 1).astype(np.int64)

        def prepare(part: Part) -> tuple[Rows, Cells]:
            rows, cells = _split(self.layout, self.folding, self._row_edges, part)
            return rows, Cells.of(*cells, place_edges)

        self._entries = threads(prepare, parts)
        self._sums: tuple[FloatArray, FloatArray] | None = None
        if self.folding:
            self.folding.release_data()

    def gather(self, bound: BoundWeights, index: int, out: FloatArray) -> None:
        """Add the scores of part `index` to `out`, shape (n, C)."""
        (rows, cells), part = self._entries[index], self.parts[index]
        _, step = part.data.value_array()
        table = bound.folded(self.folding)
        gather_rows(
            AS_THEY_ARE, rows.row_ptr, rows.slots, rows.values, step, 0, len(out), table, out
        )
        n_groups = len(cells.entries.first_cell)
        add_cells(cells.entries, 0, n_groups, step, frozen(bound.pairs), out.reshape(-1))
        bound.add_dense(part, out)

    def pullback(
        self, residuals: list[FloatArray], first: int, threads: ThreadMap, out: FloatArray
    ) -> None:
        """Add the gradient to the weights, shape (P,), given that to the scores of some parts.

        They begin with part `first`. Sums of rows are kept in tables from the first part on, and
        added to `out` after the last.
        """
        layout, shares = self.layout, range(len(self._dense_edges) - 1)
        if first == 0:
            table = layout.view(out) if layout.complete else np.zeros(layout.shape)
            self._sums = table, np.zeros((int(self._dense_edges[-1]), layout.n_columns))
        assert self._sums is not None, "the first part comes first"
        table, dense = self._sums

        def scatter(share: int) -> None:
            for index, residual in enumerate(residuals, first):
                self._scatter(index, share, frozen(residual), table, out, dense)

        threads(scatter, shares)
        if first + len(residuals) == len(self.parts):
            self._sums = None
            self._collect(table, dense, threads, out)

    def _collect(
        self, table: FloatArray, dense: FloatArray, threads: ThreadMap, out: FloatArray
    ) -> None:
        """Add sums of rows, and of dense features, to the gradient to the weights, shape (P,)."""
        layout, weights = self.layout, self.weights

        def collect(share: int) -> None:
            begin, end = self._row_edges[share : share + 2].tolist()
            layout.collect(table, begin, end, out)

        if self.folding:
            self.folding.unfold(table)
        if not layout.complete:
            threads(collect, range(len(self._row_edges) - 1))
        out[weights.first_dense :] += weights.take_dense(dense)

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
        gather_rows(
            rows.columns, rows.col_ptr, rows.rows, rows.turned, step, begin, end, residual, table
        )
        begin, end = cells.bounds[share : share + 2].tolist()
        add_cells(exchanged(cells.entries), begin, end, step, residual.reshape(-1), out)
        if part.data.dense is not None:
            low, high = self._dense_edges[share : share + 2].tolist()
            scatter_dense(frozen(part.data.dense), part.begin, low, high, residual, dense[None])


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


def _token_rows(layout: RowIndex, part: Part) -> TokenRows:
    """Return the attributes of a part, and which have full rows."""
    indptr = part.data.indptr[part.begin : part.end + 1]
    return TokenRows(frozen(indptr), frozen(part.data.indices.view(np.uint32)), layout.slots)


def _split(
    layout: RowIndex, folding: Folding | None, row_edges: IntArray, part: Part
) -> tuple[Rows, tuple[IntArray, IntArray, FloatArray]]:
    """Return the full rows of a part, and positions, rising places and values of its cells."""
    n_rows, data = part.end - part.begin, part.data
    if n_rows * layout.n_columns > MAX_CELLS:
        raise ValueError(
            f"a sequence of {n_rows} tokens has more than {MAX_CELLS} scores; cut it into shorter "
            "ones."
        )
    values, step = data.value_array()
    if folding:  # all values are 1
        left = folding.split(_token_rows(layout, part))
        of_rows = of_cells = values
    else:
        left, full = _split_all(layout, part)
        own = values[data.indptr[part.begin] : data.indptr[part.end]] if step else values
        of_rows, of_cells = (own[full], own[~full]) if step else (values, values)
    return (
        _rows(left, of_rows, row_edges, layout.shape[0]),
        _cells(layout, left.others, left.their_tokens, of_cells),
    )


def _split_all(layout: RowIndex, part: Part) -> tuple[SplitEntries, BoolArray]:
    """Return all entries of a part, and which of them have full rows."""
    indptr, attributes = part.data.indptr[part.begin : part.end + 1], entries_of(part)
    tokens = np.repeat(np.arange(part.end - part.begin, dtype=np.uint32), np.diff(indptr))
    slots = layout.slots[attributes]
    full = slots < len(layout.attributes)
    row_ptr = np.concatenate([[0], np.cumsum(full)])[indptr - indptr[0]]
    others = attributes[~full].view(np.uint32)
    return SplitEntries(row_ptr, slots[full], tokens[full], others, tokens[~full]), full


def _rows(entries: SplitEntries, values: FloatArray, edges: IntArray, n_slots: int) -> Rows:
    row_ptr, slots = entries.row_ptr, entries.slots
    order = _rising(slots)
    tokens, ordered = entries.tokens[order], slots[order]
    changes = np.flatnonzero(ordered[1:] != ordered[:-1]) + 1
    starts = np.append(0, changes) if len(ordered) else changes
    values = frozen(values)
    columns = ordered[starts]
    return Rows(
        row_ptr=frozen(row_ptr),
        slots=frozen(slots.astype(PLACES[n_slots > MOST_PLACES], copy=False)),
        values=values,
        columns=frozen(columns),
        col_ptr=frozen(np.append(starts, len(slots)).astype(np.int64)),
        rows=frozen(tokens.astype(PLACES[len(row_ptr) > MOST_PLACES], copy=False)),
        turned=values if len(values) != len(slots) else frozen(values[order]),
        bounds=np.searchsorted(columns, edges),
    )


def _rising(keys: IdArray | IntArray) -> IntArray:
    """Return the stable order of numbers from 0 on: NumPy counts where they have 16 bits."""
    order, above = np.argsort(keys.astype(np.uint16), kind="stable"), keys
    while int((above := above >> BITS).max(initial=0)):
        order = order[np.argsort(above.astype(np.uint16)[order], kind="stable")]
    return order


def _cells(
    layout: RowIndex, attributes: IdArray, rows: IdArray, values: FloatArray
) -> tuple[IntArray, IntArray, FloatArray]:
    order = _rising(attributes)
    ptr = layout.ptr.view(np.int64)
    first = ptr[attributes[order]]
    sizes = ptr[attributes[order] + 1] - first
    places, entry = ranges(first, sizes), np.repeat(order, sizes)
    by_place = _rising(places)
    places, entry = places[by_place], entry[by_place]
    cells = rows[entry].astype(np.int64) * layout.n_columns + layout.columns[places]
    return cells, places, values if len(values) != len(attributes) else values[entry]


class ActiveRows:
    """A run of rows whose weights are numbered anew: those that it depends on.

    For solvers that move after each of many small runs: they have no time for tables of all
    weights. The run are parts that follow one another. `places`, shape (n,), are the weights that
    it depends on, each once: those of full rows, single ones, and those of dense features.
    """

    def __init__(self, weights: AttributeWeights, parts: list[Part], threads: ThreadMap) -> None:
        part, layout = Part(parts[0].data, parts[0].begin, parts[-1].end), weights.full
        self.weights, self.parts = weights, [part]
        rows, cells = _split(layout, None, np.array([0, layout.shape[0]]), part)
        self._attributes = frozen(layout.attributes[rows.columns])
        begin = weights.ptr[self._attributes]
        counts = weights.ptr[self._attributes + 1] - begin
        of_rows = ranges(begin, counts)
        # The same rows with the weights at `places`.
        self._numbers = frozen(np.arange(len(counts), dtype=np.uint32))
        self._ptr = frozen(np.concatenate([[0], np.cumsum(counts)]).astype(np.uint64))
        self._columns = frozen(layout.columns[of_rows])
        single, which = np.unique(cells[1], return_inverse=True)
        self._cells = Cells.of(*cells, np.array([0, weights.first_dense])).entries
        self._own_cells = Cells.of(cells[0], which, cells[2], np.array([0, len(single)])).entries
        self._rows = rows._replace(
            slots=frozen(
                np.searchsorted(rows.columns, rows.slots).astype(PLACES[len(counts) > MOST_PLACES])
            ),
            columns=frozen(np.arange(len(counts), dtype=np.uint32)),
        )
        dense = np.arange(weights.first_dense, weights.n_parameters)
        self._first, self._last = len(of_rows), len(of_rows) + len(single)
        self.places: IdArray = np.concatenate([of_rows, single, dense]).astype(np.uint32)

    def gather(self, bound: BoundWeights, index: int, out: FloatArray) -> None:
        """Add the scores of the rows to `out`, shape (n, C)."""
        rows, cells, layout, (part,) = self._rows, self._cells, self.weights.full, self.parts
        pairs, step = frozen(bound.pairs), part.data.value_array()[1]
        table = np.zeros((len(self._attributes), layout.n_columns))
        spread_rows(self._attributes, layout.ptr, layout.columns, pairs, table)
        gather_rows(
            AS_THEY_ARE, rows.row_ptr, rows.slots, rows.values, step, 0, len(out), frozen(table),
            out,
        )  # fmt: skip
        add_cells(cells, 0, len(cells.first_cell), step, pairs, out.reshape(-1))
        bound.add_dense(part, out)

    def pullback(
        self, residuals: list[FloatArray], first: int, threads: ThreadMap, out: FloatArray
    ) -> None:
        """Add the gradient to the weights at `places`, given that to the scores of the run."""
        rows, cells, (part,), size = self._rows, self._own_cells, self.parts, len(self._numbers)
        residual, step = frozen(residuals[0]), part.data.value_array()[1]
        if size:
            table = np.zeros((size, residual.shape[1]))
            gather_rows(
                rows.columns, rows.col_ptr, rows.rows, rows.turned, step, 0, size, residual, table
            )
            collect_rows(self._numbers, 0, size, self._ptr, self._columns, frozen(table), out)
        if self._first < self._last:
            own = out[self._first : self._last]
            add_cells(exchanged(cells), 0, len(cells.first_cell), step, residual.reshape(-1), own)
        if part.data.dense is not None:
            dense = np.zeros((part.data.dense.shape[1], residual.shape[1]))
            scatter_dense(frozen(part.data.dense), part.begin, 0, len(dense), residual, dense[None])
            out[self._last :] += self.weights.take_dense(dense)


class Folding:
    """Which rows of a table stand for others as well.

    `uses`, shape (H,), is how many tokens have each row, `count` the number of its links, and
    `links`, shape (H, L), are the rows that its own takes along; all of them more frequent, or as
    frequent and before it.
    """

    def __init__(self, uses: IntArray, count: IntArray, links: IdArray) -> None:
        self._links: tuple[IntArray, IdArray] | None = (frozen(count), frozen(links))
        # What is taken along has to be complete.
        order = np.lexsort((np.arange(len(uses)), -uses))
        some = order[count[order] > 0]
        self._owners: IdArray = frozen(np.repeat(some, count[some]).astype(np.uint32))
        members = [links[a, : count[a]] for a in some]
        self._members: IdArray = frozen(np.concatenate([np.empty(0, np.uint32), *members]))

    def fold(self, table: FloatArray) -> None:
        """Have the rows of a table hold what they take along."""
        fold_rows(self._owners, self._members, table)

    def unfold(self, table: FloatArray) -> None:
        """Turn the gradient to the rows of a folded table into the one to all rows."""
        fold_rows(frozen(self._members[::-1]), frozen(self._owners[::-1]), table)

    def left(self, uses: IntArray) -> IntArray:
        """Return how many entries of each row are left of so many."""
        taken = np.bincount(self._members, uses[self._owners], minlength=len(uses))
        return uses - taken.astype(np.int64)

    def split(self, tokens: TokenRows) -> SplitEntries:
        """Return the entries that are left, without those that others of their token take along."""
        assert self._links is not None, "to be called before release_data"
        indptr, taken = tokens.indptr, np.full(len(self._links[0]), -1)
        lists = np.empty((4, int(indptr[-1] - indptr[0])), np.uint32)
        out = SplitEntries(np.empty(len(indptr), np.int64), *lists)
        n_others = fold_split(tokens, *self._links, taken, out)
        sizes = [int(out.row_ptr[-1])] * 2 + [n_others] * 2
        return SplitEntries(
            out.row_ptr, *[a[:n].copy() for a, n in zip(out[1:], sizes, strict=True)]
        )

    def release_data(self) -> None:
        """Let go of the memory that only `split` needs."""
        self._links = None


def find_folding(parts: list[TokenRows], n_rows: int) -> Folding | None:
    """Return what may be folded of a table of `n_rows`; None where that would save little."""
    uses, count = np.zeros(n_rows, np.int64), np.zeros(n_rows, np.int64)
    links, stamp = np.zeros((n_rows, MOST_LINKS), np.uint32), np.full(n_rows, -1)
    own = np.empty(max(int(np.diff(part.indptr).max(initial=0)) for part in parts), np.uint32)
    first = 0
    for part in parts:
        fold_find(part, first, own, stamp, uses, count, links)
        first += len(part.indptr) - 1
    if uses.sum() < LEAST_ENTRIES:
        return None
    links, count = _without_circles(uses, count, links)
    stamp[:] = -1
    owner, first = np.zeros(n_rows, np.uint32), 0
    for part in parts:
        fold_settle(part, first, frozen(uses), own, stamp, owner, count, links)
        first += len(part.indptr) - 1
    saved, cost = int((uses * count).sum()), n_rows + int(count.sum())
    return Folding(uses, count, links) if saved > LEAST_SAVED * cost else None


def _without_circles(uses: IntArray, count: IntArray, links: IdArray) -> tuple[IdArray, IntArray]:
    """Leave out links of rare rows, and those that would lead in a circle."""
    own = np.arange(len(uses))[:, None]
    more, same = uses[links] > uses[:, None], uses[links] == uses[:, None]
    kept = (np.arange(links.shape[1]) < count[:, None]) & (uses >= LEAST_USES)[:, None]
    kept &= more | (same & (links < own))
    order = np.argsort(~kept, axis=1, kind="stable")
    return np.take_along_axis(links, order, axis=1), kept.sum(axis=1)
