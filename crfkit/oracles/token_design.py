"""Makes lists of the weights that the potentials of each token are made of."""

from __future__ import annotations

from typing import Any

import numpy as np

from crfkit._parallel import ThreadMap
from crfkit._types import FloatArray
from crfkit.compiler.jit import frozen
from crfkit.data import PackedSequences
from crfkit.kernels.design.partition import SparseFeatures, WeightPositions
from crfkit.kernels.design.tokens import TokenDesign, tokens_count, tokens_deal
from crfkit.oracles.weights import AlignedWeights

# Lists are made in so many pieces, over which threads go.
PIECES = 8


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
    edges = np.linspace(0, n_tokens, PIECES + 1).astype(int).tolist()
    pieces = list(zip(edges[:-1], edges[1:], strict=True))
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
