"""The weights as one vector, and the entries of small batches that read and move them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from crfkit._parallel import ThreadMap
from crfkit._types import Chunk, FloatArray, IdArray, IntArray
from crfkit.compiler.jit import frozen
from crfkit.data import PackedSequences
from crfkit.kernels.design.partition import batches_count, batches_deal
from crfkit.oracles.token_design import PIECES
from crfkit.oracles.weights import AlignedWeights


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
                *piece, heads, indptr, indices, layout.slots, layout.ptr,
                self.weights.state_positions, np.full(len(layout.attributes) + 1, -1), rows,
                columns, cells,
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
                layout.columns, weights.state_positions, weights.width, row_ptr, batch_ptr,
                cell_ptr, np.zeros(len(layout.attributes) + 1, np.int64), found, factor, columns,
                col_ptr, rows, turned, cells, places, scale,
            )  # fmt: skip

        self.threads(deal, self._pieces())
        self.arrays: tuple[tuple[NDArray[Any], ...], ...] = tuple(
            tuple(frozen(array) for array in group)
            for group in ((row_ptr, found, factor), (cell_ptr, cells, places, scale),
                          (batch_ptr, columns, col_ptr, rows, turned))
        )  # fmt: skip
        self.step = step


def _starts(counts: IntArray) -> IntArray:
    """Return where runs of so many entries start, and the end."""
    return frozen(np.concatenate([[0], np.cumsum(counts)]))
