"""What the scores of each token read of a flat vector of weights, for visits of any sequence."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from crfkit._parallel import ThreadMap
from crfkit._types import FloatArray, IntArray
from crfkit.compiler.jit import frozen
from crfkit.data import PackedSequences
from crfkit.kernels.design.tokens import tokens_count, tokens_deal
from crfkit.oracles.partition import PIECES, AlignedWeights


class TokenDesign:
    """The rows and the single weights of each token.

    Parameters
    ----------
    weights : AlignedWeights
        Where the weights stand.
    data : PackedSequences
        N tokens.
    threads : ThreadMap
        Makes the lists.

    Attributes
    ----------
    rows : tuple of ndarrays
        Where the rows of each token start, shape (N + 1,), the rows of the table of weights, shape
        (n,), and their values, (n,) or (1,).
    cells : tuple of ndarrays
        Where the single weights of each token start, shape (N + 1,), their labels and where they
        stand in the vector, shape (m,), and their values, (m,) or (1,).
    step : int
        0 where all values are 1 and only one is kept, else 1.
    dense : ndarray of shape (N, F)
        Values of dense features; F may be 0.
    """

    def __init__(self, weights: AlignedWeights, data: PackedSequences, threads: ThreadMap) -> None:
        self._weights, self._threads, n_tokens = weights, threads, data.n_tokens
        edges = np.linspace(0, n_tokens, PIECES + 1).astype(int).tolist()
        self._pieces = list(zip(edges[:-1], edges[1:], strict=True))
        self._tokens = frozen(data.indptr), frozen(data.indices.view(np.uint32))
        values, self.step = data.value_array()
        dense = np.empty((n_tokens, 0)) if data.dense is None else data.dense
        self.dense: FloatArray = frozen(dense)
        self.rows, self.cells = self._deal(frozen(values), *self._count(n_tokens))

    def _count(self, n_tokens: int) -> tuple[IntArray, IntArray]:
        """Return where the rows and the single weights of each token start, and the ends."""
        layout, rows, cells = self._weights.layout, *np.zeros((2, n_tokens + 1), np.int64)
        n_slots = len(layout.attributes)

        def count(piece: tuple[int, int]) -> None:
            tokens_count(
                *piece, *self._tokens, layout.slots, n_slots, layout.ptr, self._weights.spots,
                rows[1:], cells[1:],
            )  # fmt: skip

        self._threads(count, self._pieces)
        return frozen(np.cumsum(rows)), frozen(np.cumsum(cells))

    def _deal(self, values: FloatArray, row_ptr: IntArray, cell_ptr: IntArray) -> Any:
        """Return the lists that kernels read."""
        layout, step = self._weights.layout, self.step
        n_rows, n_cells = int(row_ptr[-1]), int(cell_ptr[-1])
        found, factor = np.empty(n_rows, np.uint32), np.ones(n_rows if step else 1)
        columns, places = np.empty(n_cells, np.uint32), np.empty(n_cells, np.uint32)
        scale = np.ones(n_cells if step else 1)

        def deal(piece: tuple[int, int]) -> None:
            tokens_deal(
                *piece, *self._tokens, values, step, layout.slots, len(layout.attributes),
                layout.ptr, layout.columns, self._weights.spots, row_ptr, cell_ptr, found, factor,
                columns, places, scale,
            )  # fmt: skip

        self._threads(deal, self._pieces)
        groups: tuple[tuple[NDArray[Any], ...], ...] = (
            (row_ptr, found, factor), (cell_ptr, columns, places, scale),
        )  # fmt: skip
        return tuple(tuple(frozen(array) for array in group) for group in groups)

    @property
    def arrays(self) -> tuple[Any, ...]:
        """What the helpers of compiled visits read: rows, cells, step and dense features."""
        return self.rows, self.cells, self.step, self.dense
