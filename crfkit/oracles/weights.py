"""Parameters as one vector that kernels read in whole rows."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from crfkit._parallel import cut
from crfkit._types import CodeArray, FloatArray, IdArray, IntArray
from crfkit.compiler.jit import frozen
from crfkit.compiler.simd import WIDTH, padded
from crfkit.data import PackedSequences
from crfkit.kernels._strips import STRIP
from crfkit.kernels.design.tokens import DenseList, TokenWeights
from crfkit.oracles.label_order import LabelOrder
from crfkit.potentials.attributes import AttributeWeights, RowIndex
from crfkit.potentials.chain_blocks import boundary_rows
from crfkit.potentials.linear import LinearModel

# An attribute has a row where it has weights for so many labels, and for one in so many.
ROWS = (4, 8)
AT_A_TIME = 1 << 14  # parameters that are moved at once


class Weighted(NamedTuple):
    """Weights of some attributes: those of each, and which parameters they are."""

    attributes: IntArray  # (n,)
    columns: IntArray | CodeArray  # (n,)
    numbers: IntArray  # (n,)


class AlignedWeights:
    """Parameters as one vector: rows of tables, then single weights.

    Attributes with weights for many labels have rows, with zeros where there is no weight; the last
    rows are those of dense features and, after them, of transitions. The rows of a second table are
    those of attributes of transitions, of K rows of transitions each.

    Given weights of attributes, the labels before and after transitions that have a weight, how
    labels are numbered, (K,), and which parameter each weight is, (P,): those of attributes, then
    of transitions, then of their attributes (`wide`).
    """

    n_labels: int  # K
    size: int  # length L of the vector
    width: int  # length W of a row: whole vectors of eight
    base: int  # the first row of transitions
    wide_first: int  # where the second table starts
    positions: IdArray  # (P,) where each parameter stands
    # (H, V) and (G, V2): which numbers of the rows are weights, a bit for each lane of the vectors
    bits: NDArray[Any]
    wide_bits: NDArray[Any]
    # Which attributes of tokens and of transitions have rows, and where their weights stand.
    layout: RowIndex
    wide_layout: RowIndex
    state_positions: IdArray
    wide_positions: IdArray

    def __init__(
        self,
        state: AttributeWeights,
        transitions: tuple[CodeArray, CodeArray],
        rank: IntArray,
        numbers: IntArray,
        wide: AttributeWeights | None = None,
    ) -> None:
        n_labels = self.n_labels = len(rank)
        width = self.width = padded(n_labels)
        self.layout, table = _rows(state, rank[state.columns], n_labels, width)
        before, after = (rank[labels].astype(np.int64) for labels in transitions)
        self.base = len(self.layout.attributes) + state.n_features - state.n_sparse
        self.n_rows = self.base + n_labels
        self.wide_layout, own = _no_rows(), np.zeros(0, np.int64)
        self.n_wide = 0
        if wide is not None:
            i, j = np.divmod(wide.columns, n_labels)
            columns = rank[i] * width + rank[j]
            self.wide_layout, own = _rows(wide, columns, n_labels * width, n_labels * width)
            self.n_wide = len(self.wide_layout.attributes) + wide.n_features - wide.n_sparse
        self.wide_first = self.n_rows * width
        first = self.wide_first + self.n_wide * n_labels * width
        single, wide_single = table < 0, own < 0
        n_single = np.count_nonzero(single)
        self.size = int(first + n_single + np.count_nonzero(wide_single))
        table[single] = np.arange(first, first + n_single)
        own += self.wide_first
        own[wide_single] = np.arange(first + n_single, self.size)
        self.state_positions = frozen(table.astype(np.uint32))
        self.wide_positions = frozen(own.astype(np.uint32))
        positions = np.empty(len(numbers), np.uint32)
        steps = (self.base + before) * width + after
        positions[numbers] = np.concatenate([table, steps, own])
        self.positions = frozen(positions)
        rows = positions[positions < first]
        self.bits = _bits(rows, 0, self.n_rows, width)
        self.wide_bits = _bits(rows, self.wide_first, self.n_wide, n_labels * width)

    def release_layout(self) -> None:
        """Let go of where the weights of each attribute stand, which only designs are made of."""
        self.layout = self.wide_layout = _no_rows()
        self.state_positions = self.wide_positions = self.layout.columns

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
        for part in self._parts():
            flat[self.positions[part]] = parameters[part]
        return flat

    def unpack(self, flat: FloatArray) -> FloatArray:
        """Return the parameters, shape (P,), in such a vector."""
        parameters = np.empty(len(self.positions))
        for part in self._parts():
            parameters[part] = flat[self.positions[part]]
        return parameters

    def _parts(self) -> list[slice]:
        """Cut the parameters: NumPy copies the positions that it is given."""
        return cut(slice(0, len(self.positions)), AT_A_TIME)

    def for_tokens(self, flat: FloatArray, n_dense: int, most: int) -> TokenWeights:
        """Return a vector, with room for so many dense features and for as many changes."""
        scratch, changes = aligned(self.size), np.empty(most)
        listed = DenseList(np.zeros(n_dense + 1, np.uint32), np.zeros(n_dense + 1))
        return TokenWeights(flat, self.table(flat), self.bits, 0, scratch, self.table(scratch),
                            listed, np.empty(most, np.uint32), changes)  # fmt: skip


def chain_weights(model: LinearModel, order: LabelOrder | None = None) -> AlignedWeights:
    """Return the parameters of a chain; first and last labels are two more attributes."""
    state, n_labels = model.state, model.n_labels
    attributes = np.repeat(np.arange(state.n_features), np.diff(state.ptr))
    weights = [Weighted(attributes, state.columns, np.arange(state.n_parameters))]
    first, more = state.n_parameters + len(model.transition_from), 2 * model.boundaries
    if more:
        attributes[int(state.ptr[state.n_sparse]) :] += more
        weights.append(boundary_weights(state.n_sparse, n_labels, first))
    joined, numbers = join(weights, n_labels, state.n_features + more, state.n_sparse + more)
    steps, wide = np.arange(state.n_parameters, first), first + more * n_labels
    rank = np.arange(n_labels) if order is None else order.rank[:n_labels]
    return AlignedWeights(
        joined, (model.transition_from, model.transition_to), rank,
        np.concatenate([numbers, steps, np.arange(wide, model.n_parameters)]),
        model.transition_attributes,
    )  # fmt: skip


def boundary_weights(attribute: int, n_labels: int, first: int) -> Weighted:
    """Return weights of first and last labels, two attributes, as parameters from a first one."""
    which, labels = np.divmod(np.arange(2 * n_labels), n_labels)
    return Weighted(attribute + which, labels, first + np.arange(2 * n_labels))


def join(
    weights: list[Weighted], n_labels: int, n_features: int, n_sparse: int
) -> tuple[AttributeWeights, IntArray]:
    """Return all weights, attribute by attribute, and which parameters they are."""
    attributes, columns, numbers = map(np.concatenate, zip(*weights, strict=True))
    order = np.argsort(attributes, kind="stable")
    counts = np.bincount(attributes, minlength=n_features)
    ptr = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    joined = AttributeWeights(ptr, columns[order], n_columns=n_labels, n_sparse=n_sparse)
    return joined, numbers[order]


def with_boundaries(data: PackedSequences, boundaries: bool) -> PackedSequences:
    """Return data with the attributes of first and last tokens, if these have weights."""
    if not boundaries:
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
