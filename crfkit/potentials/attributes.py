"""Weights of (attribute, column) pairs: from rows of attributes to scores, and the adjoint."""

from __future__ import annotations

import numpy as np

from crfkit._parallel import ThreadMap
from crfkit._types import CodeArray, FloatArray, IdArray, IntArray, PtrArray
from crfkit.compiler.jit import frozen
from crfkit.potentials.active import ActiveRows
from crfkit.potentials.rows import (
    FULL,
    FULL_BY_TOKEN,
    BoundWeights,
    FullRows,
    Part,
    PreparedRows,
    RowIndex,
    add_dense,
)

__all__ = [
    "ActiveRows",
    "AttributeWeights",
    "BoundWeights",
    "Part",
    "PreparedRows",
    "add_dense",
]


class AttributeWeights:
    """``scores[t, c] = sum_a x[t, a] w[a, c]`` for chosen pairs of attributes and columns.

    A column is a label, or a transition.

    Parameters
    ----------
    ptr : array of shape (D + 1,)
        The columns of attribute ``a`` are ``columns[ptr[a]:ptr[a + 1]]``.
    columns : array of shape (P,)
        Columns that have a weight, rising within an attribute.
    n_columns : int
        C.
    n_sparse : int
        Number of sparse attributes; the others are dense.
    """

    def __init__(self, ptr: IntArray, columns: CodeArray, *, n_columns: int, n_sparse: int) -> None:
        self.ptr = np.asarray(ptr, np.int64)
        self.columns = np.asarray(columns, np.int32)
        self.n_columns = n_columns
        self.n_sparse = n_sparse
        # Unsigned and read-only, as kernels want them.
        self._pattern: tuple[PtrArray, IdArray] = (
            frozen(self.ptr.view(np.uint64)),
            frozen(self.columns.view(np.uint32)),
        )
        self._full = RowIndex(*self._pattern, n_columns, n_sparse, FULL)
        self._tokens = RowIndex(*self._pattern, n_columns, n_sparse, FULL_BY_TOKEN)

    @property
    def n_features(self) -> int:
        """Number of attributes D."""
        return len(self.ptr) - 1

    @property
    def n_parameters(self) -> int:
        """Number of weights P."""
        return len(self.columns)

    def bind(self, weights: FloatArray) -> BoundWeights:
        """Return the weights, shape (P,), in their places."""
        table = self.dense_table(weights[int(self.ptr[self.n_sparse]) :])
        full, tokens = FullRows(self._full, weights), FullRows(self._tokens, weights)
        return BoundWeights(weights, table, full, tokens)

    @property
    def pattern(self) -> tuple[PtrArray, IdArray]:
        """Where the weights of an attribute are, and their columns, as kernels want them."""
        return self._pattern

    def dense_table(self, weights: FloatArray) -> FloatArray:
        """Return the weights of dense features as a new table of shape (F, C)."""
        table = np.zeros((self.n_features - self.n_sparse, self.n_columns))
        rows, first = self._dense_places()
        table[rows, self.columns[first:]] = weights
        return table

    def take_dense(self, table: FloatArray) -> FloatArray:
        """Return the weights of dense features from a table of shape (F, C)."""
        rows, first = self._dense_places()
        taken: FloatArray = table[rows, self.columns[first:]]
        return taken

    def _dense_places(self) -> tuple[IntArray, int]:
        """Return the dense feature of each weight of one, and the first such weight."""
        counts = np.diff(self.ptr[self.n_sparse :])
        return np.repeat(np.arange(len(counts)), counts), int(self.ptr[self.n_sparse])

    def gather(self, bound: BoundWeights, part: Part, out: FloatArray) -> None:
        """Add the scores of a part, row by row, to `out`, shape (n, C)."""
        self._tokens.gather(part.data, part.begin, part.end, bound, out)
        add_dense(bound, part, out)

    def prepare(self, parts: list[Part], threads: ThreadMap) -> PreparedRows:
        """Return parts in the form that training on all of them reads."""
        return PreparedRows(self._full, parts, self.n_features - self.n_sparse, threads)

    def prepare_active(self, parts: list[Part], threads: ThreadMap) -> ActiveRows:
        """Return parts that follow one another as one, for solvers that move after a few."""
        whole = Part(parts[0].data, parts[0].begin, parts[-1].end)
        return ActiveRows(self._full, whole, self.n_parameters)

    def pullback(
        self,
        residuals: list[FloatArray],
        prepared: PreparedRows | ActiveRows,
        threads: ThreadMap,
        out: FloatArray,
    ) -> None:
        """Add the gradient with respect to the weights, given the one to the scores of each part.

        Each thread owns a range of the weights and adds up their gradients part by part, so
        that no weight is shared and every sum has one order.

        Parameters
        ----------
        residuals : list of ndarrays of shape (n, C)
            Gradient with respect to the scores of each part.
        prepared : PreparedRows or ActiveRows
            From :meth:`prepare` or :meth:`prepare_active`.
        threads : ThreadMap
            The threads it was prepared for.
        out : ndarray of shape (P,)
            Added to; of `ActiveRows` the weights at its places, shape (n,).
        """
        table = np.zeros((self.n_features - self.n_sparse, self.n_columns))
        prepared.pullback(residuals, threads, out, table)
        of_dense = self.take_dense(table)
        out[len(out) - len(of_dense) :] += of_dense
