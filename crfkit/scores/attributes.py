"""Weights of (attribute, column) pairs: from rows of attributes to scores, and the adjoint."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from crfkit._jit import frozen
from crfkit._parallel import ThreadMap
from crfkit._types import CodeArray, FloatArray, IdArray, IntArray, PtrArray
from crfkit.kernels.gather import gather_columns
from crfkit.scores.rows import (
    FULL,
    FULL_BY_TOKEN,
    BoundWeights,
    FullRows,
    Part,
    PreparedRows,
    RowLayout,
    add_dense,
    entries,
)

__all__ = ["AttributeWeights", "BoundWeights", "Part", "PreparedParts", "PreparedRows", "add_dense"]


class Columns(NamedTuple):
    """The sparse entries of a part, attribute by attribute."""

    columns: IdArray  # (C,) attributes that occur, rising
    col_ptr: PtrArray  # (C + 1,)
    rows: IdArray  # (nnz,) rows of the part
    values: FloatArray  # (nnz,) or (1,)


class PreparedParts(NamedTuple):
    """Parts in the form that solvers read which move after a few of them."""

    parts: list[Part]
    columns: list[Columns]
    pattern: tuple[PtrArray, IdArray]

    def gather(self, bound: BoundWeights, index: int, out: FloatArray) -> None:
        """Add the scores of part `index`, attribute by attribute, to `out`, shape (n, C)."""
        part, entries = self.parts[index], self.columns[index]
        _, step = part.data.value_array()
        gather_columns(
            entries.columns, entries.col_ptr, entries.rows, entries.values, step, *self.pattern,
            frozen(bound.pairs), out,
        )  # fmt: skip
        add_dense(bound, part, out)


class AttributeWeights:
    """``scores[t, c] = sum_a x[t, a] w[a, c]`` for chosen pairs of attributes and columns.

    A column is a label, or a step from label to label.

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
        self._full = RowLayout(*self._pattern, n_columns, n_sparse, FULL)
        self._tokens = RowLayout(*self._pattern, n_columns, n_sparse, FULL_BY_TOKEN)

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
        table = np.zeros((self.n_features - self.n_sparse, self.n_columns))
        rows, first = self._dense_places()
        table[rows, self.columns[first:]] = weights[first:]
        full, tokens = FullRows(self._full, weights), FullRows(self._tokens, weights)
        return BoundWeights(weights, table, full, tokens)

    @property
    def pattern(self) -> tuple[PtrArray, IdArray]:
        """Where the weights of an attribute are, and their columns, as kernels want them."""
        return self._pattern

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

    def gather_prepared(
        self,
        bound: BoundWeights,
        prepared: PreparedRows | PreparedParts,
        index: int,
        out: FloatArray,
    ) -> None:
        """Add the scores of part `index`, attribute by attribute, to `out`, shape (n, C)."""
        prepared.gather(bound, index, out)

    def prepare(
        self, parts: list[Part], threads: ThreadMap, *, by_column: bool = False
    ) -> PreparedRows | PreparedParts:
        """Return parts in the form that training on all of them reads.

        Or `by_column`, in the form that solvers read which move after a few of them, and have no
        time to make tables of weights.
        """
        if by_column:
            return PreparedParts(parts, threads(_columns, parts), self._pattern)
        return PreparedRows(self._full, parts, self.n_features - self.n_sparse, threads)

    def pullback(
        self,
        residuals: list[FloatArray],
        prepared: PreparedRows,
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
        prepared : PreparedRows
            From :meth:`prepare`.
        threads : ThreadMap
            The threads it was prepared for.
        out : ndarray of shape (P,)
            Added to.
        """
        table = np.zeros((self.n_features - self.n_sparse, self.n_columns))
        prepared.pullback(residuals, threads, out, table)
        out[int(self.ptr[self.n_sparse]) :] += self.take_dense(table)


def _columns(part: Part) -> Columns:
    """Turn the sparse entries of a part around."""
    data = part.data
    indptr, indices = data.indptr[part.begin : part.end + 1], entries(part)
    order = np.argsort(indices, kind="stable")
    columns, starts = np.unique(indices[order], return_index=True)
    rows = np.repeat(np.arange(part.end - part.begin, dtype=np.uint32), np.diff(indptr))
    values, step = data.value_array()
    return Columns(
        columns=frozen(columns.astype(np.uint32)),
        col_ptr=frozen(np.append(starts, len(indices)).astype(np.uint64)),
        rows=frozen(rows[order]),
        values=frozen(values[indptr[0] : indptr[-1]][order] if step else values),
    )
