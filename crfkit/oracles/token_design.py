"""Lists of the weights that the potentials of each token are made of."""

from __future__ import annotations

import numpy as np

from crfkit._parallel import ThreadMap
from crfkit._types import FloatArray, IdArray
from crfkit.compiler.jit import frozen
from crfkit.data import PackedSequences
from crfkit.kernels.design.tokens import TokenDesign, tokens_count, tokens_deal
from crfkit.potentials.attributes import RowIndex

# Lists are made in so many pieces, over which threads go.
PIECES = 8


def make_token_design(
    layout: RowIndex, positions: IdArray, data: PackedSequences, threads: ThreadMap
) -> TokenDesign:
    """Return the rows and the single weights of each token.

    Parameters
    ----------
    layout : RowIndex
        Which attributes have rows.
    positions : ndarray of shape (P,)
        Where the weights of the attributes stand.
    data : PackedSequences
        N tokens.
    threads : ThreadMap
        Makes the lists.
    """
    n_tokens, n_rows = data.n_tokens, len(layout.attributes)
    edges = np.linspace(0, n_tokens, PIECES + 1).astype(int).tolist()
    pieces = list(zip(edges[:-1], edges[1:], strict=True))
    tokens = frozen(data.indptr), frozen(data.indices.view(np.uint32))
    rows, cells = np.zeros((2, n_tokens + 1), np.int64)

    def count(piece: tuple[int, int]) -> None:
        tokens_count(
            *piece, *tokens, layout.slots, n_rows, layout.ptr, positions, rows[1:], cells[1:]
        )

    threads(count, pieces)
    row_ptr, cell_ptr = frozen(np.cumsum(rows)), frozen(np.cumsum(cells))
    values, stride = data.value_array()

    def numbers(size: int) -> FloatArray:
        return np.ones(size if stride else 1)

    found, factor = np.empty(row_ptr[-1], np.uint32), numbers(int(row_ptr[-1]))
    columns, places = np.empty((2, cell_ptr[-1]), np.uint32)
    scale = numbers(int(cell_ptr[-1]))

    def deal(piece: tuple[int, int]) -> None:
        tokens_deal(
            *piece, *tokens, frozen(values), stride, layout.slots, n_rows, layout.ptr,
            layout.columns, positions, row_ptr, cell_ptr, found, factor, columns, places, scale,
        )  # fmt: skip

    threads(deal, pieces)
    dense = np.empty((n_tokens, 0)) if data.dense is None else data.dense
    return TokenDesign(
        row_ptr, frozen(found), frozen(factor), cell_ptr, frozen(columns), frozen(places),
        frozen(scale), int(stride), frozen(dense), n_rows,
    )  # fmt: skip
