"""Weights of (attribute, column) pairs: from rows of attributes to scores, and the adjoint."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from crfkit._jit import frozen
from crfkit._parallel import ThreadMap
from crfkit._types import CodeArray, FloatArray, IdArray, IntArray, PtrArray
from crfkit.data import PackedSequences
from crfkit.kernels.gather import (
    gather_columns,
    gather_dense,
    gather_pairs,
    scatter_columns,
    scatter_dense,
)


class Part(NamedTuple):
    """A run of rows: the tokens ``begin:end`` of packed features."""

    data: PackedSequences
    begin: int
    end: int


class BoundWeights(NamedTuple):
    """The weights of the pairs, and those of dense features as a table of shape (F, C)."""

    pairs: FloatArray
    dense: FloatArray


class Columns(NamedTuple):
    """The sparse entries of a part, attribute by attribute."""

    columns: IdArray  # (C,) attributes that occur, rising
    col_ptr: PtrArray  # (C + 1,)
    rows: IdArray  # (nnz,) rows of the part
    values: FloatArray  # (nnz,) or (1,)
    bounds: IntArray  # where the share of each thread starts in `columns`, and the end


class PreparedParts(NamedTuple):
    """Parts in the form that training reads."""

    parts: list[Part]
    columns: list[Columns]
    dense_bounds: IntArray


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
        return BoundWeights(weights, table)

    def _dense_places(self) -> tuple[IntArray, int]:
        """Return the dense feature of each weight of one, and the first such weight."""
        counts = np.diff(self.ptr[self.n_sparse :])
        return np.repeat(np.arange(len(counts)), counts), int(self.ptr[self.n_sparse])

    def gather(self, bound: BoundWeights, part: Part, out: FloatArray) -> None:
        """Add the scores of a part, row by row, to `out`, shape (n, C)."""
        data, begin, end = part
        values, step = data.value_array()
        gather_pairs(
            frozen(data.indptr.view(np.uint64)), frozen(data.indices.view(np.uint32)),
            frozen(values), step, begin, end, *self._pattern, frozen(bound.pairs), out,
        )  # fmt: skip
        _gather_dense(bound, part, out)

    def gather_prepared(
        self, bound: BoundWeights, prepared: PreparedParts, index: int, out: FloatArray
    ) -> None:
        """Add the scores of part `index`, attribute by attribute, to `out`, shape (n, C)."""
        part, entries = prepared.parts[index], prepared.columns[index]
        _, step = part.data.value_array()
        gather_columns(
            entries.columns, entries.col_ptr, entries.rows, entries.values, step, *self._pattern,
            frozen(bound.pairs), out,
        )  # fmt: skip
        _gather_dense(bound, part, out)

    def prepare(self, parts: list[Part], threads: ThreadMap) -> PreparedParts:
        """Return parts attribute by attribute, with a share of the attributes a thread."""
        edges = self._shares(parts, threads.n_workers)
        n_dense = self.n_features - self.n_sparse
        dense_bounds = np.linspace(0, n_dense, threads.n_workers + 1).astype(np.int64)
        columns = threads(lambda part: _columns(part, edges), parts)
        return PreparedParts(parts, columns, dense_bounds)

    def _shares(self, parts: list[Part], count: int) -> IntArray:
        """Cut the sparse attributes into `count` ranges of about equal work."""
        used = np.concatenate([_entries(part) for part in parts])
        uses = np.bincount(used, minlength=self.n_sparse)
        work = np.cumsum(uses * np.diff(self.ptr[: self.n_sparse + 1]))
        total = int(work[-1]) if len(work) else 0
        inner = np.searchsorted(work, np.arange(1, count) * total / count)
        return np.concatenate([[0], inner, [self.n_sparse]]).astype(np.int64)

    def pullback(
        self,
        residuals: list[FloatArray],
        prepared: PreparedParts,
        threads: ThreadMap,
        out: FloatArray,
    ) -> None:
        """Add the gradient with respect to the weights, given the one to the scores of each part.

        Each thread owns a range of the attributes and adds up their gradients part by part, so
        that no weight is shared and every sum has one order.

        Parameters
        ----------
        residuals : list of ndarrays of shape (n, C)
            Gradient with respect to the scores of each part.
        prepared : PreparedParts
            From :meth:`prepare`.
        threads : ThreadMap
            The threads it was prepared for.
        out : ndarray of shape (P,)
            Added to.
        """
        table = np.zeros((self.n_features - self.n_sparse, self.n_columns))
        shares = range(len(prepared.dense_bounds) - 1)
        threads(lambda share: self._scatter(residuals, prepared, share, out, table), shares)
        rows, first = self._dense_places()
        out[first:] += table[rows, self.columns[first:]]

    def _scatter(
        self,
        residuals: list[FloatArray],
        prepared: PreparedParts,
        share: int,
        out: FloatArray,
        table: FloatArray,
    ) -> None:
        """Add the gradient of one share of the attributes."""
        low, high = prepared.dense_bounds[share : share + 2]
        for part, entries, residual in zip(
            prepared.parts, prepared.columns, residuals, strict=True
        ):
            _, step = part.data.value_array()
            scatter_columns(
                entries.columns, entries.col_ptr, entries.rows, entries.values, step,
                int(entries.bounds[share]), int(entries.bounds[share + 1]), *self._pattern,
                residual, out,
            )  # fmt: skip
            if part.data.dense is not None:
                x = frozen(part.data.dense)
                scatter_dense(x, part.begin, int(low), int(high), residual, table)


def _gather_dense(bound: BoundWeights, part: Part, out: FloatArray) -> None:
    if part.data.dense is not None:
        gather_dense(frozen(part.data.dense), part.begin, part.end, frozen(bound.dense), out)


def _entries(part: Part) -> CodeArray:
    """Return the sparse attributes of a part, row after row."""
    indptr = part.data.indptr
    return part.data.indices[indptr[part.begin] : indptr[part.end]]


def _columns(part: Part, edges: IntArray) -> Columns:
    """Turn the sparse entries of a part around."""
    data = part.data
    indptr, indices = data.indptr[part.begin : part.end + 1], _entries(part)
    order = np.argsort(indices, kind="stable")
    columns, starts = np.unique(indices[order], return_index=True)
    rows = np.repeat(np.arange(part.end - part.begin, dtype=np.uint32), np.diff(indptr))
    values, step = data.value_array()
    return Columns(
        columns=columns.astype(np.uint32),
        col_ptr=np.append(starts, len(indices)).astype(np.uint64),
        rows=rows[order],
        values=frozen(values[indptr[0] : indptr[-1]][order] if step else values),
        bounds=np.searchsorted(columns, edges),
    )
