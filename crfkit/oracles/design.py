"""Makes lists of the weights that potentials are made of, token by token or batch by batch."""

from __future__ import annotations

from typing import Any

import numpy as np

from crfkit._parallel import ThreadMap
from crfkit._types import FloatArray, IntArray
from crfkit.compiler.jit import frozen
from crfkit.data import PackedSequences
from crfkit.kernels.design.batch import BatchDesign, BatchRoom
from crfkit.kernels.design.partition import (
    SparseFeatures,
    WeightPositions,
    batches_count,
    batches_deal,
)
from crfkit.kernels.design.tokens import TokenDesign, tokens_count, tokens_deal
from crfkit.oracles.weights import AlignedWeights, aligned

# Lists are made in so many pieces, over which threads go.
PIECES = 8


def pieces_of(count: int) -> list[tuple[int, int]]:
    """Return the first and the end of each piece of so many tokens or batches."""
    edges = np.linspace(0, count, PIECES + 1).astype(int).tolist()
    return list(zip(edges[:-1], edges[1:], strict=True))


def kernel_inputs(
    weights: AlignedWeights, data: PackedSequences, wide: bool
) -> tuple[SparseFeatures, WeightPositions]:
    """Return the sparse attributes of tokens, or of transitions, and where their weights stand."""
    values, stride = data.value_array()
    features = SparseFeatures(
        frozen(data.indptr), frozen(data.indices.view(np.uint32)), frozen(values), stride
    )
    layout, positions, width = weights.layout, weights.state_positions, weights.width
    if wide:
        layout, positions = weights.wide_layout, weights.wide_positions
        width *= weights.n_labels
    n_rows = len(layout.attributes)
    return features, WeightPositions(
        layout.slots, layout.ptr, layout.columns, positions, width, n_rows
    )


def make_token_design(
    weights: AlignedWeights, data: PackedSequences, threads: ThreadMap, wide: bool = False
) -> TokenDesign:
    """Return the rows and the single weights of each of N tokens, made over threads.

    With `wide`, the attributes are those of transitions.
    """
    n_tokens, (features, places) = len(data.indptr) - 1, kernel_inputs(weights, data, wide)
    pieces = pieces_of(n_tokens)
    rows, cells = np.zeros((2, n_tokens + 1), np.int64)
    threads(lambda piece: tokens_count(*piece, features, places, rows[1:], cells[1:]), pieces)
    row_ptr, cell_ptr = frozen(np.cumsum(rows)), frozen(np.cumsum(cells))
    n_rows, n_cells, stride = int(row_ptr[-1]), int(cell_ptr[-1]), int(features.stride)

    def numbers(size: int) -> FloatArray:
        return np.ones(size if stride else 1)

    columns, positions = np.empty((2, n_cells), np.uint32)
    design = TokenDesign(
        row_ptr, np.empty(n_rows, np.uint32), numbers(n_rows), cell_ptr, columns, positions,
        numbers(n_cells), stride, dense_of(data), places.n_rows,
    )  # fmt: skip
    threads(lambda piece: tokens_deal(*piece, features, places, design), pieces)
    return TokenDesign(*frozen_arrays(design))


def dense_of(data: PackedSequences) -> FloatArray:
    """Return the dense features, shape (N, F)."""
    return frozen(np.empty((data.n_tokens, 0)) if data.dense is None else data.dense)


def frozen_arrays(design: tuple[Any, ...]) -> list[Any]:
    """Return the fields of lists that are made, as kernels read them."""
    return [frozen(field) if isinstance(field, np.ndarray) else field for field in design]


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
    pieces = pieces_of(n_batches)
    rows = np.zeros(len(data.indptr) - 1, np.int64)
    columns, cells = np.zeros((2, n_batches), np.int64)

    def count(piece: tuple[int, int]) -> None:
        seen = np.full(n_rows + 1, -1)
        batches_count(*piece, heads, features, places, seen, rows, columns, cells)

    threads(count, pieces)
    room = _empty_design(heads, rows, columns, cells, features.stride)._replace(
        dense=dense_of(data), dense_heads=heads if dense_heads is None else frozen(dense_heads),
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
    ends = map(np.cumsum, (rows, columns, cells))
    row_ptr, batch_ptr, cell_ptr = (frozen(np.append(0, end)) for end in ends)
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
