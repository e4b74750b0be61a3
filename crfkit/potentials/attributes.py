"""Weights of (attribute, column) pairs: from rows of attributes to scores, and the adjoint."""

from __future__ import annotations

import threading
from functools import partial
from typing import NamedTuple

import numpy as np

from crfkit._parallel import ThreadMap
from crfkit._types import CodeArray, FloatArray, IdArray, IntArray, PtrArray
from crfkit.compiler.jit import frozen
from crfkit.kernels.design.gather import scatter_dense
from crfkit.kernels.design.touched import touched_gather, touched_pattern, touched_scatter
from crfkit.potentials.rows import (
    FULL,
    FULL_BY_TOKEN,
    BoundWeights,
    FullRows,
    Part,
    PreparedRows,
    RowIndex,
    add_dense,
    entries_of,
)

__all__ = [
    "AttributeWeights",
    "BoundWeights",
    "Part",
    "PreparedColumns",
    "PreparedRows",
    "add_dense",
]


class Entries(NamedTuple):
    """The sparse entries of a part, attribute by attribute, and the weights of the attributes.

    The weights stand once more for each part, in order: looked up by attribute, each of them would
    be a cache miss.
    """

    places: IdArray  # (n,) places of the weights of all attributes that occur, one after the other
    columns: IdArray  # (n,) and their columns
    local: PtrArray  # (A + 1,) where those of each attribute start among the n
    col_ptr: PtrArray  # (A + 1,) where its entries start
    rows: IdArray  # (nnz,) rows of the part
    values: FloatArray  # (nnz,) or (1,)
    step: int

    @property
    def adjoint(self) -> tuple[IdArray, PtrArray, PtrArray, IdArray, FloatArray, int]:
        """All but the places, which the adjoint does not need."""
        return self.columns, self.local, self.col_ptr, self.rows, self.values, self.step


class PreparedColumns:
    """Parts in the form that solvers read which move after a few of them.

    They have no time to make tables of weights, and ask for the gradient to the weights that a part
    touches alone: those of the sparse attributes that occur in it, and those of all dense features.

    Parameters
    ----------
    weights : AttributeWeights
        All weights.
    parts : list of Part
        The parts.
    threads : ThreadMap
        Prepares them.
    """

    def __init__(self, weights: AttributeWeights, parts: list[Part], threads: ThreadMap) -> None:
        self.weights, self.parts, self._threads = weights, parts, threads
        self._lock, self._made = threading.Lock(), list[Entries]()
        dense = int(weights.ptr[weights.n_sparse])
        self._dense = np.arange(dense, weights.n_parameters, dtype=np.uint32)

    @property
    def entries(self) -> list[Entries]:
        """The sparse entries of each part, made when they are first asked for."""
        with self._lock:
            if not self._made:
                self._made = self._threads(partial(_turned, self.weights), self.parts)
            return self._made

    def places(self, index: int) -> IdArray:
        """Return the places of the weights that part `index` touches, shape (n,)."""
        places = self.entries[index].places
        return np.concatenate([places, self._dense]) if len(self._dense) else places

    def gather(self, bound: BoundWeights, index: int, out: FloatArray) -> None:
        """Add the scores of part `index` to `out`, shape (n, C)."""
        entries = self.entries[index]
        touched_gather(*entries, frozen(bound.pairs), np.empty(len(entries.places)), out)
        add_dense(bound, self.parts[index], out)

    def gradient(self, index: int, residual: FloatArray) -> FloatArray:
        """Return the gradient to the weights at `places`, given the one to the scores."""
        part, entries = self.parts[index], self.entries[index]
        out = np.zeros(len(entries.places))
        touched_scatter(*entries.adjoint, frozen(residual), out)
        if part.data.dense is None:
            return out
        table = np.zeros((part.data.dense.shape[1], self.weights.n_columns))
        scatter_dense(frozen(part.data.dense), part.begin, 0, len(table), residual, table[None])
        return np.concatenate([out, self.weights.take_dense(table)])


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

    def prepare_columns(self, parts: list[Part], threads: ThreadMap) -> PreparedColumns:
        """Return parts in the form that solvers read which move after a few of them."""
        return PreparedColumns(self, parts, threads)

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


def _turned(weights: AttributeWeights, part: Part) -> Entries:
    """Turn the sparse entries of a part around."""
    data = part.data
    indptr, indices = data.indptr[part.begin : part.end + 1], entries_of(part)
    order = np.argsort(indices, kind="stable")
    attributes, starts = np.unique(indices[order], return_index=True)
    rows = np.repeat(np.arange(part.end - part.begin, dtype=np.uint32), np.diff(indptr))
    values, step = data.value_array()
    counts = weights.ptr[attributes + 1] - weights.ptr[attributes]
    local = np.concatenate([[0], np.cumsum(counts)])
    places, columns = np.empty(local[-1], np.uint32), np.empty(local[-1], np.uint32)
    touched_pattern(frozen(attributes.astype(np.uint32)), *weights.pattern, places, columns)
    return Entries(
        places=frozen(places),
        columns=frozen(columns),
        local=frozen(local.astype(np.uint64)),
        col_ptr=frozen(np.append(starts, len(indices)).astype(np.uint64)),
        rows=frozen(rows[order]),
        values=frozen(values[indptr[0] : indptr[-1]][order] if step else values),
        step=step,
    )
