"""Scores that are linear in the features."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from crfkit._jit import frozen
from crfkit._parallel import ThreadMap
from crfkit._types import (
    Chunk,
    CodeArray,
    FloatArray,
    IdArray,
    IntArray,
    PtrArray,
    Scores,
)
from crfkit.data import PackedSequences
from crfkit.kernels.gather import (
    gather_columns,
    gather_dense,
    gather_pairs,
    scatter_columns,
    scatter_dense,
)


class LinearWeights(NamedTuple):
    """Parameters in their places: views of the vector, and tables made from it.

    Attributes
    ----------
    state : ndarray of shape (P1,)
        Weights of the (attribute, label) pairs.
    start, end : ndarray of shape (K,) or (0,)
        Weights of the label of the first and of the last token.
    pair : ndarray of shape (1, K, K)
        The step weights as a table.
    dense : ndarray of shape (F, K)
        The weights of dense features as a table.
    """

    state: FloatArray
    start: FloatArray
    end: FloatArray
    pair: FloatArray
    dense: FloatArray


class Columns(NamedTuple):
    """The sparse entries of a chunk, attribute by attribute."""

    columns: IdArray  # (C,) attributes that occur, rising
    col_ptr: PtrArray  # (C + 1,)
    rows: IdArray  # (nnz,) tokens of the chunk
    values: FloatArray  # (nnz,) or (1,)
    bounds: IntArray  # where the share of each thread starts in `columns`, and the end


class PreparedBlock(NamedTuple):
    """A block of chunks, ready for the adjoint."""

    data: PackedSequences
    chunks: list[Chunk]
    columns: list[Columns]
    dense_bounds: IntArray


class LinearScores:
    """``unary[t, k] = sum_a x[t, a] w[a, k]``, ``pair[i, j] = v[i, j]``, for chosen pairs.

    Parameters
    ----------
    state_ptr : array of shape (D + 1,)
        The labels of attribute ``a`` are ``state_labels[state_ptr[a]:state_ptr[a + 1]]``.
    state_labels : array of shape (P1,)
        Labels that have a weight, rising within an attribute.
    step_from, step_to : array of shape (P2,)
        Steps that have a weight. All others are allowed too, with the score 0.
    n_labels : int
        K.
    n_sparse : int
        Number of sparse attributes; the others are dense.
    boundaries : bool
        Whether the labels of the first and last token of a sequence have weights of their own.

    Notes
    -----
    The parameters are, in this order: state weights, step weights, and, with `boundaries`, K
    weights of first and K of last labels.
    """

    def __init__(
        self,
        state_ptr: IntArray,
        state_labels: CodeArray,
        step_from: ArrayLike,
        step_to: ArrayLike,
        *,
        n_labels: int,
        n_sparse: int,
        boundaries: bool = False,
    ) -> None:
        self.state_ptr = np.asarray(state_ptr, np.int64)
        self.state_labels = np.asarray(state_labels, np.int32)
        self.step_from = np.asarray(step_from, np.int32)
        self.step_to = np.asarray(step_to, np.int32)
        self.n_labels = n_labels
        self.n_sparse = n_sparse
        self.boundaries = boundaries
        # Unsigned and read-only, as kernels want them.
        self._pattern: tuple[PtrArray, IdArray] = (
            frozen(self.state_ptr.view(np.uint64)),
            frozen(self.state_labels.view(np.uint32)),
        )

    @property
    def n_features(self) -> int:
        """Number of attributes D."""
        return len(self.state_ptr) - 1

    @property
    def n_parameters(self) -> int:
        """Number of weights P."""
        return len(self.state_labels) + len(self.step_from) + 2 * self._n_boundary

    @property
    def _n_boundary(self) -> int:
        return self.n_labels if self.boundaries else 0

    def split(
        self, parameters: FloatArray
    ) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        """Return views of the state, step, start and end weights."""
        sizes = [len(self.state_labels), len(self.step_from), self._n_boundary]
        state, steps, start, end = np.split(parameters, np.cumsum(sizes))
        return state, steps, start, end

    def bind(self, parameters: FloatArray) -> LinearWeights:
        """Return the parameters in their places."""
        state, steps, start, end = self.split(parameters)
        pair = np.zeros((self.n_labels, self.n_labels))
        pair[self.step_from, self.step_to] = steps
        return self.place(state, pair, start, end)

    def place(
        self, state: FloatArray, pair: FloatArray, start: FloatArray, end: FloatArray
    ) -> LinearWeights:
        """Return weights in their places: state weights (P1,), steps (K, K), boundaries (K,)."""
        dense = np.zeros((self.n_features - self.n_sparse, self.n_labels))
        rows, first = self._dense_places()
        dense[rows, self.state_labels[first:]] = state[first:]
        return LinearWeights(state, start, end, pair[None], dense)

    def _dense_places(self) -> tuple[IntArray, int]:
        """Return the dense feature of each weight of one, and the first such weight."""
        counts = np.diff(self.state_ptr[self.n_sparse :])
        return np.repeat(np.arange(len(counts)), counts), int(self.state_ptr[self.n_sparse])

    def scores(self, bound: LinearWeights, data: PackedSequences, chunk: Chunk) -> Scores:
        """Return the scores of the sequences of a chunk of new data, token by token."""
        tokens = chunk.tokens
        unary = np.zeros((tokens.stop - tokens.start, self.n_labels))
        values, step = data.value_array()
        gather_pairs(
            frozen(data.indptr.view(np.uint64)), frozen(data.indices.view(np.uint32)),
            frozen(values), step, tokens.start, tokens.stop, *self._pattern,
            frozen(bound.state), unary,
        )  # fmt: skip
        return self._complete(unary, bound, data, chunk)

    def prepared_scores(self, bound: LinearWeights, prepared: PreparedBlock, index: int) -> Scores:
        """Return the scores of chunk `index` of a prepared block, attribute by attribute."""
        chunk, part = prepared.chunks[index], prepared.columns[index]
        unary = np.zeros((chunk.tokens.stop - chunk.tokens.start, self.n_labels))
        _, step = prepared.data.value_array()
        gather_columns(
            part.columns, part.col_ptr, part.rows, part.values, step, *self._pattern,
            frozen(bound.state), unary,
        )  # fmt: skip
        return self._complete(unary, bound, prepared.data, chunk)

    def _complete(
        self, unary: FloatArray, bound: LinearWeights, data: PackedSequences, chunk: Chunk
    ) -> Scores:
        """Add what dense features and boundaries contribute."""
        if data.dense is not None:
            x = frozen(data.dense)
            gather_dense(x, chunk.tokens.start, chunk.tokens.stop, frozen(bound.dense), unary)
        offsets = chunk.offsets - chunk.tokens.start
        if self.boundaries:
            first, last = _boundary_rows(offsets)
            unary[first] += bound.start
            unary[last] += bound.end
        return Scores(unary, bound.pair, offsets, chunk.first)

    def prepare(
        self, data: PackedSequences, chunks: list[Chunk], threads: ThreadMap
    ) -> PreparedBlock:
        """Return the block attribute by attribute, with a share of the attributes a thread."""
        edges = self._shares(data, chunks, threads.n_workers)
        n_dense = self.n_features - self.n_sparse
        dense_bounds = np.linspace(0, n_dense, threads.n_workers + 1).astype(np.int64)
        columns = threads(lambda chunk: _columns(data, chunk, edges), chunks)
        return PreparedBlock(data, chunks, columns, dense_bounds)

    def _shares(self, data: PackedSequences, chunks: list[Chunk], count: int) -> IntArray:
        """Cut the sparse attributes into `count` ranges of about equal work."""
        begin, end = data.indptr[[chunks[0].offsets[0], chunks[-1].offsets[-1]]]
        uses = np.bincount(data.indices[begin:end], minlength=self.n_sparse)
        work = np.cumsum(uses * np.diff(self.state_ptr[: self.n_sparse + 1]))
        total = int(work[-1]) if len(work) else 0
        inner = np.searchsorted(work, np.arange(1, count) * total / count)
        return np.concatenate([[0], inner, [self.n_sparse]]).astype(np.int64)

    def pullback(
        self,
        unary: FloatArray,
        pairs: list[FloatArray],
        prepared: PreparedBlock,
        threads: ThreadMap,
        out: FloatArray,
    ) -> None:
        """Add the gradient with respect to the parameters, given the one to a block's scores.

        Each thread owns a range of the attributes and adds up their gradients chunk by chunk, so
        that no weight is shared and every sum has one order.
        """
        state, steps, start, end = self.split(out)
        table = np.zeros((self.n_features - self.n_sparse, self.n_labels))
        shares = range(len(prepared.dense_bounds) - 1)
        threads(lambda share: self._scatter(unary, prepared, share, state, table), shares)
        rows, first = self._dense_places()
        state[first:] += table[rows, self.state_labels[first:]]
        for pair in pairs:
            steps += pair[0, self.step_from, self.step_to]
        if self.boundaries:
            begin = prepared.chunks[0].tokens.start
            for chunk in prepared.chunks:
                first_rows, last_rows = _boundary_rows(chunk.offsets - begin)
                start += unary[first_rows].sum(axis=0)
                end += unary[last_rows].sum(axis=0)

    def _scatter(
        self,
        unary: FloatArray,
        prepared: PreparedBlock,
        share: int,
        state: FloatArray,
        table: FloatArray,
    ) -> None:
        """Add the gradient of one share of the attributes."""
        data, begin = prepared.data, prepared.chunks[0].tokens.start
        _, step = data.value_array()
        low, high = prepared.dense_bounds[share : share + 2]
        for chunk, part in zip(prepared.chunks, prepared.columns, strict=True):
            residual = unary[chunk.tokens.start - begin : chunk.tokens.stop - begin]
            scatter_columns(
                part.columns, part.col_ptr, part.rows, part.values, step,
                int(part.bounds[share]), int(part.bounds[share + 1]), *self._pattern,
                residual, state,
            )  # fmt: skip
            if data.dense is not None:
                x = frozen(data.dense)
                scatter_dense(x, chunk.tokens.start, int(low), int(high), residual, table)


def _boundary_rows(offsets: IntArray) -> tuple[IntArray, IntArray]:
    """Return the first and last tokens of the sequences that are not empty."""
    filled = offsets[1:] > offsets[:-1]
    return offsets[:-1][filled], offsets[1:][filled] - 1


def _columns(data: PackedSequences, chunk: Chunk, edges: IntArray) -> Columns:
    """Turn the sparse entries of a chunk around."""
    tokens = chunk.tokens
    indptr = data.indptr[tokens.start : tokens.stop + 1]
    indices = data.indices[indptr[0] : indptr[-1]]
    order = np.argsort(indices, kind="stable")
    columns, starts = np.unique(indices[order], return_index=True)
    rows = np.repeat(np.arange(tokens.stop - tokens.start, dtype=np.uint32), np.diff(indptr))
    values, step = data.value_array()
    return Columns(
        columns=columns.astype(np.uint32),
        col_ptr=np.append(starts, len(indices)).astype(np.uint64),
        rows=rows[order],
        values=frozen(values[indptr[0] : indptr[-1]][order] if step else values),
        bounds=np.searchsorted(columns, edges),
    )
