"""The weights that one chunk touches: where they are, and the gradient to them alone."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from crfkit._jit import frozen
from crfkit._types import Expectations, FloatArray, IdArray, PtrArray, Scores
from crfkit.kernels.gather import scatter_dense
from crfkit.kernels.touched import touched_gather, touched_pattern, touched_scatter
from crfkit.scores.attributes import (
    AttributeWeights,
    BoundWeights,
    Columns,
    PreparedParts,
    add_dense,
)
from crfkit.scores.linear import LinearScores, LinearWeights, PreparedBlock, boundary_rows
from crfkit.scores.steps import ObservedSteps


class TouchedWeights:
    """The weights that each chunk of a block touches.

    A solver that looks at a few sequences at a time must not pay for all P parameters. The weights
    of a chunk are, in this order: those of its attributes, those of dense features (all), of steps
    and of boundaries (all), and those of its attributes of steps.

    Parameters
    ----------
    model : LinearScores
        The score model.
    prepared : PreparedBlock
        From its `prepare`.
    """

    def __init__(self, model: LinearScores, prepared: PreparedBlock) -> None:
        self.model, self.prepared = model, prepared
        first = model.state.n_parameters
        boundaries = 2 * model.n_labels if model.boundaries else 0
        last = first + len(model.step_from) + boundaries
        self._state = _TouchedAttributes(model.state, prepared.state, 0)
        self._shared = np.arange(first, last, dtype=np.uint32)
        self._steps: _TouchedAttributes | None = None
        if isinstance(model.steps, ObservedSteps):
            self._steps = _TouchedAttributes(model.steps.weights, prepared.steps.rows, last)

    def places(self, index: int) -> IdArray:
        """Return the parameters that chunk `index` touches, each once, shape (n,)."""
        parts = [self._state.places(index), self._shared]
        if self._steps is not None:
            parts.append(self._steps.places(index))
        return np.concatenate(parts)

    def entries(self, index: int) -> TouchedEntries:
        """Return the sparse entries of chunk `index`, with their weights."""
        return self._state.entries(index)

    def scores(self, bound: LinearWeights, index: int) -> Scores:
        """Return the scores of chunk `index`, as `prepared_scores` of the model does."""
        chunk = self.prepared.chunks[index]
        unary = np.zeros((chunk.tokens.stop - chunk.tokens.start, self.model.n_labels))
        self._state.gather(bound.state, index, unary)
        return self.model.complete_prepared(unary, bound, self.prepared, index)

    def gradient(self, index: int, residual: Expectations) -> FloatArray:
        """Return the gradient to the parameters that chunk `index` touches, in their order.

        Parameters
        ----------
        index : int
            A chunk of the block.
        residual : Expectations
            Gradient with respect to the scores of the chunk.

        Returns
        -------
        ndarray of shape (n,)
            The gradient.
        """
        model = self.model
        steps = np.zeros(len(model.step_from))
        model.steps.add_taken([residual.pair], model.step_from, model.step_to, steps)
        parts = [self._state.gradient(index, residual.unary), steps]
        if model.boundaries:
            chunk = self.prepared.chunks[index]
            first, last = boundary_rows(chunk.offsets - chunk.tokens.start)
            parts += [residual.unary[first].sum(axis=0), residual.unary[last].sum(axis=0)]
        if self._steps is not None:
            flat = residual.pair.reshape(len(residual.pair), model.n_labels**2)
            parts.append(self._steps.gradient(index, flat))
        return np.concatenate(parts)


class _Pattern(NamedTuple):
    """The weights of the attributes that occur in a part, one after the other."""

    places: IdArray  # (n,)
    columns: IdArray  # (n,)
    local: PtrArray  # (C + 1,)


class TouchedEntries(NamedTuple):
    """The sparse entries of a part and their weights, as the kernels of `touched` read them."""

    places: IdArray  # (n,)
    columns: IdArray  # (n,)
    local: PtrArray  # (C + 1,)
    col_ptr: PtrArray  # (C + 1,)
    rows: IdArray  # (nnz,)
    values: FloatArray  # (nnz,) or (1,)
    step: int

    @property
    def adjoint(self) -> tuple[IdArray, PtrArray, PtrArray, IdArray, FloatArray, int]:
        """All but the places, which the adjoint does not need."""
        return self.columns, self.local, self.col_ptr, self.rows, self.values, self.step


class _TouchedAttributes:
    """The weights of attributes that each part touches; those of dense features are all.

    Where they stand and what their columns are is held once more for each part, in order: looked
    up by attribute it would be a cache miss for each.

    Parameters
    ----------
    weights : AttributeWeights
        All weights.
    prepared : PreparedParts
        The parts.
    first : int
        The place of the first weight.
    """

    def __init__(self, weights: AttributeWeights, prepared: PreparedParts, first: int) -> None:
        self.weights, self.prepared, self.first = weights, prepared, first
        self._patterns = [_pattern(weights, entries) for entries in prepared.columns]
        dense = int(weights.ptr[weights.n_sparse])
        self._dense = np.arange(dense, weights.n_parameters, dtype=np.uint32)

    def places(self, index: int) -> IdArray:
        """Return the places of the weights that part `index` touches."""
        places = self._patterns[index].places
        if len(self._dense):
            places = np.concatenate([places, self._dense])
        return places + np.uint32(self.first) if self.first else places

    def entries(self, index: int) -> TouchedEntries:
        """Return the sparse entries of part `index`."""
        columns = self.prepared.columns[index]
        _, step = self.prepared.parts[index].data.value_array()
        pattern = self._patterns[index]
        return TouchedEntries(*pattern, columns.col_ptr, columns.rows, columns.values, step)

    def gather(self, bound: BoundWeights, index: int, out: FloatArray) -> None:
        """Add the scores of part `index` to `out`, shape (n, C)."""
        entries = self.entries(index)
        touched_gather(*entries, frozen(bound.pairs), np.empty(len(entries.places)), out)
        add_dense(bound, self.prepared.parts[index], out)

    def gradient(self, index: int, residual: FloatArray) -> FloatArray:
        """Return the gradient to them, given the one to the scores of the part."""
        part, entries = self.prepared.parts[index], self.entries(index)
        out = np.zeros(len(entries.places))
        touched_scatter(*entries.adjoint, frozen(residual), out)
        if part.data.dense is None:
            return out
        table = np.zeros((part.data.dense.shape[1], self.weights.n_columns))
        scatter_dense(frozen(part.data.dense), part.begin, 0, len(table), residual, table)
        return np.concatenate([out, self.weights.take_dense(table)])


def _pattern(weights: AttributeWeights, entries: Columns) -> _Pattern:
    """Return the weights of the attributes that occur."""
    counts = weights.ptr[entries.columns + 1] - weights.ptr[entries.columns]
    local = np.concatenate([[0], np.cumsum(counts)])
    places, columns = np.empty(local[-1], np.uint32), np.empty(local[-1], np.uint32)
    touched_pattern(frozen(entries.columns), *weights.pattern, places, columns)
    return _Pattern(frozen(places), frozen(columns), frozen(local.astype(np.uint64)))
