"""Makes lists of the weights that potentials are made of, token by token or batch by batch."""

from __future__ import annotations

from typing import Any

import numpy as np

from crfkit._parallel import ThreadMap
from crfkit._types import CodeArray, FloatArray, IdArray, IntArray
from crfkit.compiler.jit import frozen
from crfkit.data import PackedSequences
from crfkit.kernels.design import partition as kernels
from crfkit.kernels.design.batch import BatchRoom
from crfkit.kernels.design.tokens import BatchRows, Design
from crfkit.oracles.weights import AlignedWeights, aligned

# Lists are made in so many pieces, over which threads go.
PIECES = 8
# Rows, columns, and positions in a batch, are numbers of 16 bits if none is larger.
SMALL = 65_535
# Where tokens begin in lists are numbers of 32 bits if there are no more entries.
MOST_ENTRIES = 2**31 - 1


def pieces_of(count: int) -> list[tuple[int, int]]:
    """Return the first and the end of each piece of so many tokens or batches."""
    edges = np.linspace(0, count, PIECES + 1).astype(int).tolist()
    return list(zip(edges[:-1], edges[1:], strict=True))


def kernel_inputs(
    weights: AlignedWeights, data: PackedSequences, wide: bool, tokens: IdArray | None
) -> tuple[kernels.Attributes, kernels.WeightPositions]:
    """Return the sparse attributes of tokens, or of transitions, and where their weights stand."""
    values, stride = data.value_array()
    order = np.arange(data.n_tokens, dtype=np.uint32) if tokens is None else tokens
    features = kernels.Attributes(
        frozen(order),
        frozen(data.indptr),
        frozen(data.indices.view(np.uint32)),
        frozen(values),
        stride,
    )
    layout, positions, width = weights.layout, weights.state_positions, weights.width
    if wide:
        layout, positions = weights.wide_layout, weights.wide_positions
        width *= weights.n_labels
    n_rows = len(layout.attributes)
    return features, kernels.WeightPositions(
        layout.slots, layout.ptr, layout.columns, positions, width, n_rows
    )


def make_design(
    weights: AlignedWeights,
    data: PackedSequences,
    threads: ThreadMap,
    wide: bool = False,
    heads: IntArray | None = None,
    dense_heads: IntArray | None = None,
    tokens: IdArray | None = None,
) -> Design:
    """Return the rows and the single weights of each of N tokens, made over threads.

    With `wide`, the attributes are those of transitions. The first token of each batch and the end
    are `heads`, shape (B + 1,), if there are batches; its dense features begin there too, or at
    `dense_heads`. Tokens come in the order of `tokens`, shape (N,), if it is given.
    """
    n_tokens = len(data.indptr) - 1
    features, places = kernel_inputs(weights, data, wide, tokens)
    groups = frozen(np.arange(n_tokens + 1) if heads is None else heads)
    row_ptr, cell_ptr = _starts(features, places, n_tokens, threads)
    n_rows, n_cells, stride = int(row_ptr[-1]), int(cell_ptr[-1]), int(features.stride)
    most = max(places.width * _longest(groups), _longest(row_ptr[groups]), places.n_rows)
    kind: type = np.uint32 if most > SMALL else np.uint16
    design = Design(
        row_ptr, np.empty(n_rows, kind), _numbers(n_rows, stride), cell_ptr,
        np.empty(n_cells, kind), np.empty(n_cells, np.uint32), _numbers(n_cells, stride), stride,
        dense_of(data, tokens), places.n_rows, NO_BATCHES,
    )  # fmt: skip
    pieces = pieces_of(len(groups) - 1)
    threads(lambda piece: kernels.entries_deal(*piece, groups, features, places, design), pieces)
    design = Design(*frozen_arrays(design))
    if heads is None:
        return design
    of_dense = groups if dense_heads is None else frozen(dense_heads)
    batches = _batch_rows(design, groups, of_dense, threads)
    nothing: Any = frozen(np.array(design.row_ptr[:1]))  # a view would keep all of them
    return design._replace(
        row_ptr=nothing, rows=frozen(np.empty(0, kind)), row_values=NO_BATCHES.values,
        cell_ptr=nothing, batches=batches,
    )  # fmt: skip


def _starts(
    features: kernels.Attributes, places: kernels.WeightPositions, n_tokens: int, threads: ThreadMap
) -> list[IntArray | CodeArray]:
    """Return where the rows of each token start, and its single weights, (N + 1,).

    They have 32 bits if there is room.
    """
    rows, cells = counts = np.zeros((2, n_tokens + 1), np.int64)
    threads(
        lambda piece: kernels.entries_count(*piece, features, places, rows[1:], cells[1:]),
        pieces_of(n_tokens),
    )
    starts = np.cumsum(counts, axis=1)
    return [frozen(ptr.astype(np.int32 if ptr[-1] <= MOST_ENTRIES else np.int64)) for ptr in starts]


def _batch_rows(
    design: Design, heads: IntArray, dense_heads: IntArray, threads: ThreadMap
) -> BatchRows:
    """Return the tokens that read each row, batch by batch."""
    n, n_rows, pieces = len(design.rows), design.first_dense, pieces_of(len(heads) - 1)
    counts = np.zeros(len(heads), np.int64)

    def count(piece: tuple[int, int]) -> None:
        seen = np.full(n_rows, -1)
        kernels.rows_count(*piece, heads, design.row_ptr, design.rows, seen, counts[1:])

    threads(count, pieces)
    ptr = frozen(np.cumsum(counts))
    kind, size = design.cells.dtype, int(ptr[-1])
    token_ptr, cell_ptr = (
        frozen(at[heads].astype(np.int64)) for at in (design.row_ptr, design.cell_ptr)
    )
    lists = BatchRows(
        heads, dense_heads, ptr, token_ptr, cell_ptr, np.empty(size, kind), np.empty(size, kind),
        np.empty(n, kind), _numbers(n, design.stride),
    )  # fmt: skip
    threads(
        lambda piece: kernels.rows_deal(*piece, np.zeros(n_rows, np.int64), design, lists), pieces
    )
    return BatchRows(*frozen_arrays(lists))


def _longest(ptr: IntArray | CodeArray) -> int:
    """Return how much the longest of some runs has, given where they start."""
    return int(np.diff(ptr).max(initial=0))


def _numbers(size: int, stride: int) -> FloatArray:
    """Return room for values; where all are 1, one is kept."""
    return np.ones(size if stride else 1)


def dense_of(data: PackedSequences, tokens: IdArray | None) -> FloatArray:
    """Return the dense features, shape (N, F), maybe in another order."""
    if data.dense is None:
        return frozen(np.empty((data.n_tokens, 0)))
    return frozen(data.dense if tokens is None else data.dense[tokens])


def frozen_arrays(lists: tuple[Any, ...]) -> list[Any]:
    """Return the fields of lists that are made, as kernels read them."""
    return [frozen(field) if isinstance(field, np.ndarray) else field for field in lists]


_HEADS, _NONE = frozen(np.zeros(1, np.int64)), frozen(np.zeros(0, np.uint32))
NO_BATCHES = BatchRows(
    _HEADS, _HEADS, _HEADS, _HEADS, _HEADS, _NONE, _NONE, _NONE, frozen(np.ones(1))
)


def batch_room(design: Design, width: int) -> BatchRoom:
    """Return room for the largest batch, whose rows have so many columns."""
    tokens, n_dense = _longest(design.batches.heads), design.dense.shape[1]
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
    )
