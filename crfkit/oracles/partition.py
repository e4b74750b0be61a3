"""The weights as one vector, and the entries of small batches that read and move them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crfkit._parallel import ThreadMap
from crfkit._types import Chunk, FloatArray, IdArray, IntArray
from crfkit.compiler.jit import frozen
from crfkit.compiler.simd import WIDTH, padded
from crfkit.data import PackedSequences
from crfkit.kernels._strips import STRIP
from crfkit.kernels.design.partition import batches_count, batches_deal
from crfkit.potentials import LinearModel
from crfkit.potentials.rows import RowIndex

# An attribute has a row where it has weights for so many labels, and for one in so many.
ROWS = (4, 8)
# Batches are dealt in so many pieces, over which threads go.
PIECES = 8


class AlignedWeights:
    """The parameters as one vector: rows of a table, then single weights.

    Attributes with weights for many labels have rows, with zeros where there is no weight; the last
    rows are those of dense features and, after them, of steps.

    Parameters
    ----------
    model : LinearModel
        Without boundaries and attributes of transitions.

    Attributes
    ----------
    size : int
        Length L of the vector.
    width : int
        Length of a row: whole vectors of eight.
    spots : ndarray of shape (P,)
        Where each parameter stands in it.
    bits : ndarray of shape (H, V)
        Which numbers of the rows are weights: a bit for each lane of the vectors that cover a row.
    """

    def __init__(self, model: LinearModel) -> None:
        ptr, columns = model.state.pattern
        n_labels = self.n_labels = model.n_labels
        layout = self.layout = RowIndex(ptr, columns, n_labels, model.state.n_sparse, ROWS)
        n_rows = len(layout.attributes)
        n_dense = model.n_features - model.state.n_sparse
        ends = ptr.view(np.int64)
        counts = ends[1:] - ends[:-1]
        dense = np.arange(n_rows, n_rows + n_dense)
        in_row = np.repeat(np.append(layout.slots < n_rows, np.ones(n_dense, bool)), counts)
        width = self.width = padded(n_labels)
        spots = np.repeat(np.append(layout.slots, dense), counts) * np.int64(width) + columns
        n_rows += n_dense
        self.n_rows = n_rows + n_labels
        first = self.n_rows * width
        spots[~in_row] = np.arange(first, first + np.count_nonzero(~in_row))
        steps = (n_rows + model.transition_from.astype(np.int64)) * width + model.transition_to
        self.size = int(first + np.count_nonzero(~in_row))
        self.spots: IdArray = frozen(np.concatenate([spots, steps]).astype(np.uint32))
        self.bits = frozen(self._bits())

    def _bits(self) -> NDArray[np.uint8]:
        used = np.zeros(self.n_rows * self.width, bool)
        used[self.spots[self.spots < len(used)]] = True
        table = used.reshape(self.n_rows, self.width)
        last = self.width - WIDTH
        n_vectors = -(-self.width // STRIP) * (STRIP // WIDTH)
        starts = np.minimum(np.arange(n_vectors) * WIDTH, last)
        parts = [np.packbits(table[:, p : p + WIDTH], axis=1, bitorder="little") for p in starts]
        return np.concatenate(parts, axis=1)

    def table(self, flat: FloatArray) -> FloatArray:
        """Return the rows of a vector: a view, shape (H, K)."""
        return flat[: self.n_rows * self.width].reshape(self.n_rows, self.width)

    def spread(self, parameters: FloatArray) -> FloatArray:
        """Return parameters, shape (P,), as such a vector."""
        flat = aligned(self.size)
        flat[self.spots] = parameters
        return flat

    def collect(self, flat: FloatArray) -> FloatArray:
        """Return the parameters, shape (P,), in such a vector."""
        parameters: FloatArray = flat[self.spots]
        return parameters


class BatchPartition:
    """The entries of batches.

    Parameters
    ----------
    weights : AlignedWeights
        Where the weights stand.
    data : PackedSequences
        The sequences of all batches.
    chunks : list of Chunk
        The batches.
    threads : ThreadMap
        Deals them.

    Attributes
    ----------
    heads : ndarray of shape (B + 1,)
        The first sequence of each batch.
    """

    def __init__(
        self,
        weights: AlignedWeights,
        data: PackedSequences,
        chunks: list[Chunk],
        threads: ThreadMap,
    ) -> None:
        self.weights, self.threads = weights, threads
        first = [chunk.first for chunk in chunks] + [len(data.offsets) - 1]
        self.heads: IntArray = frozen(np.array(first, np.int64))
        self.n_batches = len(chunks)
        rows, columns, cells = self._count(data)
        self._deal(data, _starts(rows), _starts(columns), _starts(cells))

    def _pieces(self) -> list[tuple[int, int]]:
        edges = np.linspace(0, self.n_batches, PIECES + 1).astype(int).tolist()
        return list(zip(edges[:-1], edges[1:], strict=True))

    def _tokens(self, data: PackedSequences) -> tuple[IntArray, IntArray, IdArray]:
        """Return the first token of each batch, and the attributes of tokens."""
        return (
            frozen(data.offsets[self.heads]), frozen(data.indptr),
            frozen(data.indices.view(np.uint32)),
        )  # fmt: skip

    def _count(self, data: PackedSequences) -> tuple[IntArray, IntArray, IntArray]:
        """Count the entries in rows of each token, the rows of each batch, and the cells."""
        layout, (heads, indptr, indices) = self.weights.layout, self._tokens(data)
        rows = np.zeros(data.n_tokens, np.int64)
        columns, cells = np.zeros((2, self.n_batches), np.int64)

        def count(piece: tuple[int, int]) -> None:
            batches_count(
                *piece, heads, indptr, indices, layout.slots, layout.ptr, self.weights.spots,
                np.full(len(layout.attributes) + 1, -1), rows, columns, cells,
            )  # fmt: skip

        self.threads(count, self._pieces())
        return rows, columns, cells

    def _deal(
        self, data: PackedSequences, row_ptr: IntArray, batch_ptr: IntArray, cell_ptr: IntArray
    ) -> None:
        """Make the lists that kernels read."""
        weights, layout, (heads, indptr, indices) = (
            self.weights, self.weights.layout, self._tokens(data)
        )  # fmt: skip
        values, step = data.value_array()
        n_rows, n_columns, n_cells = (int(ptr[-1]) for ptr in (row_ptr, batch_ptr, cell_ptr))

        def numbers(size: int) -> FloatArray:
            return np.empty(size) if step else np.ones(1)

        found, rows = np.empty(n_rows, np.uint32), np.empty(n_rows, np.uint32)
        cells, places = np.empty(n_cells, np.uint32), np.empty(n_cells, np.uint32)
        columns, col_ptr = np.empty(n_columns, np.uint32), np.full(n_columns + 1, n_rows)
        factor, turned, scale = numbers(n_rows), numbers(n_rows), numbers(n_cells)

        def deal(piece: tuple[int, int]) -> None:
            batches_deal(
                *piece, heads, indptr, indices, frozen(values), step, layout.slots, layout.ptr,
                layout.columns, weights.spots, weights.width, row_ptr, batch_ptr, cell_ptr,
                np.zeros(len(layout.attributes) + 1, np.int64), found, factor, columns, col_ptr,
                rows, turned, cells, places, scale,
            )  # fmt: skip

        self.threads(deal, self._pieces())
        self.arrays: tuple[tuple[NDArray[Any], ...], ...] = tuple(
            tuple(frozen(array) for array in group)
            for group in ((row_ptr, found, factor), (cell_ptr, cells, places, scale),
                          (batch_ptr, columns, col_ptr, rows, turned))
        )  # fmt: skip
        self.step = step


def aligned(*shape: int) -> FloatArray:
    """Return zeros that begin with a line of a cache."""
    size = math.prod(shape)
    room = np.zeros(size + 8)
    first = -room.ctypes.data % 64 // 8
    return room[first : first + size].reshape(shape)


def _starts(counts: IntArray) -> IntArray:
    """Return where runs of so many entries start, and the end."""
    return frozen(np.concatenate([[0], np.cumsum(counts)]))
