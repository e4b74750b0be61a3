"""The rows of a small batch, in the form of training, and the weights that they depend on."""

from __future__ import annotations

import numpy as np

from crfkit._parallel import ThreadMap
from crfkit._types import FloatArray, IdArray
from crfkit.compiler.jit import frozen
from crfkit.data.packed import ranges
from crfkit.kernels.design.gather import (
    gather_cells,
    gather_rows,
    scatter_cells,
    scatter_dense,
    scatter_rows,
)
from crfkit.potentials.rows import BoundWeights, Part, RowIndex, add_dense, prepare_part


class ActiveRows:
    """A run of rows whose weights are numbered anew: those that it depends on.

    For solvers that move after each of many small runs: they have no time for tables of all
    weights.

    Parameters
    ----------
    layout : RowIndex
        Which attributes have full rows.
    part : Part
        The rows.
    n_parameters : int
        Number of weights P. Those of dense features are the last ones.

    Attributes
    ----------
    places : ndarray of shape (n,)
        The weights that the rows depend on, each once: those of full rows, single ones, and those
        of dense features.
    """

    def __init__(self, layout: RowIndex, part: Part, n_parameters: int) -> None:
        self.parts = [part]
        ptr, size = layout.ptr.view(np.int64), len(layout.attributes)
        edges = np.array([0, size]), np.array([0, ptr[len(layout.slots)]])
        rows, cells = prepare_part(layout, None, *edges, part)
        attributes = layout.attributes[rows.columns]
        counts = ptr[attributes + 1] - ptr[attributes]
        of_rows = ranges(ptr[attributes], counts)
        number = np.repeat(np.arange(len(attributes)), counts)
        self._cells_of_rows = number * layout.n_columns + layout.columns[of_rows]
        self._shape = len(attributes), layout.n_columns
        single, which = np.unique(cells.places, return_inverse=True)
        self._rows = rows._replace(
            slots=frozen(np.searchsorted(rows.columns, rows.slots).astype(np.uint32)),
            columns=frozen(np.arange(len(attributes))),
        )
        self._cells = cells._replace(places=frozen(which.astype(np.uint32)))
        dense = np.arange(ptr[len(layout.slots)], n_parameters)
        self._first, self._last = len(of_rows), len(of_rows) + len(single)
        self.places: IdArray = np.concatenate([of_rows, single, dense]).astype(np.uint32)

    def gather(self, bound: BoundWeights, index: int, out: FloatArray) -> None:
        """Add the scores of the rows to `out`, shape (n, C)."""
        (rows, cells), (part,) = (self._rows, self._cells), self.parts
        w, step = bound.pairs[self.places[: self._last]], part.data.value_array()[1]
        table = np.zeros(self._shape)
        table.reshape(-1)[self._cells_of_rows] = w[: self._first]
        gather_rows(rows.row_ptr, rows.slots, rows.values, step, frozen(table), out)
        single = frozen(w[self._first :])
        gather_cells(cells.cells, cells.places, cells.values, step, single, out.reshape(-1))
        add_dense(bound, part, out)

    def pullback(
        self, residuals: list[FloatArray], threads: ThreadMap, out: FloatArray, dense: FloatArray
    ) -> None:
        """Add the gradient to the weights at `places`, and to those of dense features, (F, C)."""
        (rows, cells), (part,) = (self._rows, self._cells), self.parts
        residual, step = frozen(residuals[0]), part.data.value_array()[1]
        table = np.zeros(self._shape)
        scatter_rows(
            rows.columns, rows.col_ptr, rows.rows, rows.turned, step, 0, len(table), residual, table
        )
        out[: self._first] += table.reshape(-1)[self._cells_of_rows]
        scatter_cells(
            cells.cells, cells.places, cells.values, step, residual.reshape(-1),
            out[self._first : self._last],
        )  # fmt: skip
        if part.data.dense is not None:
            scatter_dense(frozen(part.data.dense), part.begin, 0, len(dense), residual, dense[None])
