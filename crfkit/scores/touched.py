"""The weights that one chunk touches: where they are, and the gradient to them alone."""

from __future__ import annotations

import numpy as np

from crfkit._types import Expectations, FloatArray, IdArray, Scores
from crfkit.scores.attributes import PreparedColumns
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
        From its `prepare_columns`.
    """

    def __init__(self, model: LinearScores, prepared: PreparedBlock) -> None:
        self.model, self.prepared = model, prepared
        first = model.state.n_parameters
        boundaries = 2 * model.n_labels if model.boundaries else 0
        last = first + len(model.step_from) + boundaries
        self._state: PreparedColumns = prepared.state
        self._shared = np.arange(first, last, dtype=np.uint32)
        own = isinstance(model.steps, ObservedSteps)
        self._steps: PreparedColumns | None = prepared.steps.rows if own else None
        self._first_triple = np.uint32(last)

    def places(self, index: int) -> IdArray:
        """Return the parameters that chunk `index` touches, each once, shape (n,)."""
        parts = [self._state.places(index), self._shared]
        if self._steps is not None:
            parts.append(self._steps.places(index) + self._first_triple)
        return np.concatenate(parts)

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
