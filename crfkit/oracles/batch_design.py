"""Makes the lists of a design matrix that kernels read batch by batch."""

from __future__ import annotations

import numpy as np

from crfkit._parallel import ThreadMap
from crfkit._types import FloatArray, IntArray
from crfkit.compiler.jit import frozen
from crfkit.data import PackedSequences
from crfkit.kernels.design.batch import BatchDesign, BatchRoom
from crfkit.kernels.design.partition import batches_count, batches_deal
from crfkit.oracles.token_design import PIECES, dense_of, frozen_arrays, kernel_inputs
from crfkit.oracles.weights import AlignedWeights, aligned


def make_batch_design(
    weights: AlignedWeights,
    data: PackedSequences,
    heads: IntArray,
    threads: ThreadMap,
    wide: bool = False,
    dense_heads: IntArray | None = None,
) -> BatchDesign:
    """Return the lists of batches, made over threads.

    The first token of each batch and the end are `heads`, shape (B + 1,); its dense features begin
    there too, or at `dense_heads`. With `wide`, the attributes are those of transitions.
    """
    features, places = kernel_inputs(weights, data, wide)
    n_rows, n_batches, heads = places.n_rows, len(heads) - 1, frozen(heads)
    edges = np.linspace(0, n_batches, PIECES + 1).astype(int).tolist()
    pieces = list(zip(edges[:-1], edges[1:], strict=True))
    rows = np.zeros(len(data.indptr) - 1, np.int64)
    columns, cells = np.zeros((2, n_batches), np.int64)

    def count(piece: tuple[int, int]) -> None:
        seen = np.full(n_rows + 1, -1)
        batches_count(*piece, heads, features, places, seen, rows, columns, cells)

    threads(count, pieces)
    room = _empty_design(heads, rows, columns, cells, features.stride)._replace(
        dense=dense_of(data), dense_heads=heads if dense_heads is None else dense_heads,
        first_dense=n_rows,
    )  # fmt: skip
    threads(
        lambda piece: batches_deal(*piece, features, places, np.zeros(n_rows + 1, np.int64), room),
        pieces,
    )
    return BatchDesign(*frozen_arrays(room))


def _empty_design(
    heads: IntArray, rows: IntArray, columns: IntArray, cells: IntArray, stride: int
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
        dense=np.empty((0, 0)),
        dense_heads=heads,
        first_dense=0,
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
