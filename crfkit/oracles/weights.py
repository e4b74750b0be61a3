"""The parameters of a chain as one vector that kernels read in whole rows."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crfkit._types import FloatArray, IdArray, IntArray
from crfkit.compiler.jit import frozen
from crfkit.compiler.simd import WIDTH, padded
from crfkit.data import PackedSequences
from crfkit.kernels._strips import STRIP
from crfkit.oracles.label_order import LabelOrder
from crfkit.potentials.attributes import AttributeWeights, RowIndex
from crfkit.potentials.chain_blocks import boundary_rows
from crfkit.potentials.linear import LinearModel

# An attribute has a row where it has weights for so many labels, and for one in so many.
ROWS = (4, 8)


class AlignedWeights:
    """The parameters as one vector: rows of tables, then single weights.

    Attributes with weights for many labels have rows, with zeros where there is no weight; the last
    rows are those of dense features and, after them, of transitions. Weights of first and last
    labels are those of two more attributes, see `with_boundaries`. The rows of a second table are
    those of attributes of transitions, of K rows of transitions each.

    Parameters
    ----------
    model : LinearModel
        Of linear chains, with transitions of any kind.
    order : LabelOrder, optional
        How labels are numbered; as in the model if not given.

    Attributes
    ----------
    size : int
        Length L of the vector.
    width : int
        Length W of a row: whole vectors of eight.
    positions : ndarray of shape (P,)
        Where each parameter stands in it.
    bits, wide_bits : ndarray of shape (H, V) and (G, V2)
        Which numbers of the rows are weights: a bit for each lane of the vectors that cover a row.
    layout, wide_layout : RowIndex
        Which attributes have rows, of tokens (also first and last ones) and of transitions.
    state_positions, wide_positions : ndarray
        Where the weights of these attributes stand.
    """

    def __init__(self, model: LinearModel, order: LabelOrder | None = None) -> None:
        n_labels = self.n_labels = model.n_labels
        rank = np.arange(n_labels) if order is None else order.rank[:n_labels]
        width = self.width = padded(n_labels)
        self.boundaries, state = model.boundaries, model.state
        self.n_sparse = state.n_sparse
        if model.boundaries:
            state = _with_boundary_attributes(state)
        self.layout, table = _rows(state, rank[state.columns], n_labels, width)
        steps = rank[model.transition_from].astype(np.int64) * width + rank[model.transition_to]
        self.base = len(self.layout.attributes) + state.n_features - state.n_sparse
        self.n_rows = self.base + n_labels
        self.wide_layout, wide = _no_rows(), np.zeros(0, np.int64)
        self.n_wide = 0
        own = model.transition_attributes
        if own is not None:
            before, after = np.divmod(own.columns, n_labels)
            columns = rank[before] * width + rank[after]
            self.wide_layout, wide = _rows(own, columns, n_labels * width, n_labels * width)
            self.n_wide = len(self.wide_layout.attributes) + own.n_features - own.n_sparse
        self.wide_first = self.n_rows * width
        first = self.wide_first + self.n_wide * n_labels * width
        single, wide_single = table < 0, wide < 0
        n_single = np.count_nonzero(single)
        self.size = int(first + n_single + np.count_nonzero(wide_single))
        table[single] = np.arange(first, first + n_single)
        wide += self.wide_first
        wide[wide_single] = np.arange(first + n_single, self.size)
        self.state_positions: IdArray = frozen(table.astype(np.uint32))
        self.wide_positions: IdArray = frozen(wide.astype(np.uint32))
        self.positions: IdArray = frozen(self._positions(self.base * width + steps))
        rows = self.positions[self.positions < first]
        self.bits = _bits(rows, 0, self.n_rows, width)
        self.wide_bits = _bits(rows, self.wide_first, self.n_wide, n_labels * width)

    def _positions(self, steps: IntArray) -> IdArray:
        """Return the positions of all parameters, in their order."""
        state, size = self.state_positions, self.n_labels
        ends = state[:0]
        if self.boundaries:
            first = int(self.layout.ptr[self.n_sparse])
            ends = state[first : first + 2 * size]
            state = np.concatenate([state[:first], state[first + 2 * size :]])
        return np.concatenate([state, steps.astype(np.uint32), ends, self.wide_positions])

    def table(self, flat: FloatArray) -> FloatArray:
        """Return the rows of a vector: a view, shape (H, W)."""
        return flat[: self.wide_first].reshape(self.n_rows, self.width)

    def wide_table(self, flat: FloatArray) -> FloatArray:
        """Return the rows of attributes of transitions: a view, shape (G, K W)."""
        columns = self.n_labels * self.width
        rows = flat[self.wide_first : self.wide_first + self.n_wide * columns]
        return rows.reshape(self.n_wide, columns)

    def pack(self, parameters: FloatArray) -> FloatArray:
        """Return parameters, shape (P,), as such a vector."""
        flat = aligned(self.size)
        flat[self.positions] = parameters
        return flat

    def unpack(self, flat: FloatArray) -> FloatArray:
        """Return the parameters, shape (P,), in such a vector."""
        parameters: FloatArray = flat[self.positions]
        return parameters

    def with_boundaries(self, data: PackedSequences) -> PackedSequences:
        """Return data with the attributes of first and last tokens, if these have weights."""
        if not self.boundaries:
            return data
        first, last = boundary_rows(data.offsets)
        tokens = np.concatenate([first, last])
        order = np.argsort(tokens, kind="stable")
        which = np.repeat([data.n_sparse, data.n_sparse + 1], [len(first), len(last)])[order]
        tokens = tokens[order]
        where = data.indptr[tokens + 1]
        counts = np.diff(data.indptr) + np.bincount(tokens, minlength=data.n_tokens)
        values = None if data.values is None else np.insert(data.values, where, 1.0)
        return data._from_arrays(**data.__dict__ | {
            "indptr": np.concatenate([[0], np.cumsum(counts)]).astype(np.int64),
            "indices": np.insert(data.indices, where, which.astype(data.indices.dtype)),
            "values": values, "n_sparse": data.n_sparse + 2, "names": None,
        })  # fmt: skip


def _with_boundary_attributes(state: AttributeWeights) -> AttributeWeights:
    """Return weights with two more sparse attributes, that have one for each label."""
    size, n_sparse = state.n_columns, state.n_sparse
    first = state.ptr[n_sparse]
    ptr = np.concatenate(
        [state.ptr[: n_sparse + 1], [first + size], state.ptr[n_sparse:] + 2 * size]
    )
    columns = np.insert(state.columns, np.full(2 * size, first), np.tile(np.arange(size), 2))
    return AttributeWeights(ptr, columns, n_columns=size, n_sparse=n_sparse + 2)


def _rows(
    weights: AttributeWeights, columns: IntArray, n_columns: int, width: int
) -> tuple[RowIndex, IntArray]:
    """Return which attributes have rows, and positions in these; -1 for single weights."""
    ptr = frozen(weights.ptr.view(np.uint64))
    layout = RowIndex(ptr, frozen(columns.astype(np.uint32)), n_columns, weights.n_sparse, ROWS)
    n_rows, n_dense = len(layout.attributes), weights.n_features - weights.n_sparse
    row = np.append(layout.slots.astype(np.int64), np.arange(n_rows, n_rows + n_dense))
    in_row = np.append(layout.slots < n_rows, np.ones(n_dense, bool))
    counts = np.diff(weights.ptr)
    positions = np.repeat(row, counts) * width + columns
    return layout, np.where(np.repeat(in_row, counts), positions, -1)


def _no_rows() -> RowIndex:
    none = np.zeros(0, np.uint32)
    return RowIndex(frozen(np.zeros(1, np.uint64)), frozen(none), 1, 0, ROWS)


def _bits(positions: IdArray, first: int, n_rows: int, width: int) -> NDArray[Any]:
    """Return which numbers of a table that begins somewhere are weights, a bit for each lane."""
    used = np.zeros(n_rows * width, bool)
    used[positions[(positions >= first) & (positions < first + len(used))] - np.uint32(first)] = (
        True
    )
    table = used.reshape(n_rows, width)
    n_vectors = -(-width // STRIP) * (STRIP // WIDTH)
    starts = np.minimum(np.arange(n_vectors) * WIDTH, width - WIDTH)
    parts = [np.packbits(table[:, p : p + WIDTH], axis=1, bitorder="little") for p in starts]
    return frozen(np.concatenate(parts, axis=1))


def aligned(*shape: int) -> FloatArray:
    """Return zeros that begin with a line of a cache."""
    size = math.prod(shape)
    room = np.zeros(size + 8)
    first = -room.ctypes.data % 64 // 8
    return room[first : first + size].reshape(shape)
