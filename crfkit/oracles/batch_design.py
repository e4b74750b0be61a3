"""Makes the lists of a design matrix that kernels read batch by batch."""

from __future__ import annotations

from typing import Any

import numpy as np

from crfkit._parallel import ThreadMap
from crfkit._types import FloatArray, IdArray, IntArray
from crfkit.compiler.jit import frozen
from crfkit.data import PackedSequences
from crfkit.kernels.design.batch import BatchDesign, BatchRoom
from crfkit.kernels.design.partition import (
    SparseFeatures,
    WeightPositions,
    batches_count,
    batches_deal,
)
from crfkit.oracles.token_design import PIECES
from crfkit.oracles.weights import aligned
from crfkit.potentials.attributes import RowIndex


def make_batch_design(
    layout: RowIndex,
    positions: IdArray,
    width: int,
    data: PackedSequences,
    heads: IntArray,
    threads: ThreadMap,
) -> BatchDesign:
    """Return the lists of batches.

    Parameters
    ----------
    layout : RowIndex
        Which attributes have rows.
    positions : ndarray of shape (P,)
        Where each weight stands in the vector.
    width : int
        Of a row of scores.
    data : PackedSequences
        N tokens.
    heads : ndarray of shape (B + 1,)
        The first token of each batch, and the end.
    threads : ThreadMap
        Makes the lists.
    """
    values, stride = data.value_array()
    features = SparseFeatures(
        frozen(data.indptr), frozen(data.indices.view(np.uint32)), frozen(values), stride
    )
    weights = WeightPositions(layout.slots, layout.ptr, layout.columns, frozen(positions), width)
    n_rows, n_batches, heads = len(layout.attributes), len(heads) - 1, frozen(heads)
    edges = np.linspace(0, n_batches, PIECES + 1).astype(int).tolist()
    pieces = list(zip(edges[:-1], edges[1:], strict=True))
    rows = np.zeros(data.n_tokens, np.int64)
    columns, cells = np.zeros((2, n_batches), np.int64)

    def count(piece: tuple[int, int]) -> None:
        seen = np.full(n_rows + 1, -1)
        batches_count(*piece, heads, features, weights, seen, rows, columns, cells)

    threads(count, pieces)
    dense = np.empty((data.n_tokens, 0)) if data.dense is None else data.dense
    room = _empty_design(heads, rows, columns, cells, stride, frozen(dense), n_rows)
    threads(
        lambda piece: batches_deal(*piece, features, weights, np.zeros(n_rows + 1, np.int64), room),
        pieces,
    )
    arrays: list[Any] = [frozen(each) if isinstance(each, np.ndarray) else each for each in room]
    return BatchDesign(*arrays)


def _empty_design(
    heads: IntArray,
    rows: IntArray,
    columns: IntArray,
    cells: IntArray,
    stride: int,
    dense: FloatArray,
    first_dense: int,
) -> BatchDesign:
    """Return room for so many entries."""
    row_ptr, batch_ptr, cell_ptr = (_starts(counts) for counts in (rows, columns, cells))
    n_rows, n_columns, n_cells = (int(ptr[-1]) for ptr in (row_ptr, batch_ptr, cell_ptr))

    def numbers(size: int) -> FloatArray:
        return np.empty(size) if stride else np.ones(1)

    return BatchDesign(
        heads=heads,
        row_ptr=row_ptr,
        rows=np.empty(n_rows, np.uint32),
        row_values=numbers(n_rows),
        batch_ptr=batch_ptr,
        columns=np.empty(n_columns, np.uint32),
        col_ptr=np.full(n_columns + 1, n_rows),
        tokens=np.empty(n_rows, np.uint32),
        token_values=numbers(n_rows),
        cell_ptr=cell_ptr,
        cells=np.empty(n_cells, np.uint32),
        positions=np.empty(n_cells, np.uint32),
        cell_values=numbers(n_cells),
        stride=stride,
        dense=dense,
        first_dense=first_dense,
    )


def _starts(counts: IntArray) -> IntArray:
    """Return where runs of so many entries start, and the end."""
    return frozen(np.concatenate([[0], np.cumsum(counts)]))


def batch_room(design: BatchDesign, width: int, n_counting: int) -> BatchRoom:
    """Return room for the largest batch, whose rows have so many columns."""
    tokens, n_dense = int(np.diff(design.heads).max(initial=0)), design.dense.shape[1]
    scores, residual = aligned(tokens, width), aligned(tokens, width)
    return BatchRoom(
        scores=scores,
        scores_flat=scores.reshape(-1),
        residual=residual,
        residual_flat=residual.reshape(-1),
        dense_ptr=np.zeros(tokens + 1, np.int64),
        dense_rows=np.empty(tokens * n_dense + 1, np.uint32),
        dense_values=np.empty(tokens * n_dense + 1),
        products=aligned(n_dense, width),
        counting=frozen(np.arange(max(n_dense, n_counting, 1), dtype=np.uint32)),
        one=frozen(np.ones(1)),
    )
