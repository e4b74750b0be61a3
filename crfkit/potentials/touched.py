"""The weights that one chunk touches: where they are, and the gradient to them alone."""

from __future__ import annotations

import numpy as np

from crfkit._types import Counts, FloatArray, IdArray, Potentials
from crfkit.potentials.attributes import PreparedColumns
from crfkit.potentials.linear_chain import LinearChainModel, LinearWeights, PreparedBlock


class ActiveWeights:
    """The weights that each chunk of a block touches.

    A solver that looks at a few sequences at a time must not pay for all P parameters. The weights
    of a chunk are, in this order: those of its attributes, those of dense features (all), those
    that all chunks share (all), and those of its attributes of transitions and of segments.

    Parameters
    ----------
    model : LinearChainModel
        The score model.
    prepared : PreparedBlock
        From its `prepare_columns`.
    """

    def __init__(self, model: LinearChainModel, prepared: PreparedBlock) -> None:
        self.model, self.prepared = model, prepared
        self._state: PreparedColumns = prepared.state
        self._shared = model.shared_places()
        self._others: list[tuple[np.uint32, PreparedColumns]] = [
            (np.uint32(first), block) for first, block in model.other_blocks(prepared)
        ]

    def places(self, index: int) -> IdArray:
        """Return the parameters that chunk `index` touches, each once, shape (n,)."""
        others = [block.places(index) + first for first, block in self._others]
        return np.concatenate([self._state.places(index), self._shared, *others])

    def scores(self, bound: LinearWeights, index: int) -> Potentials:
        """Return the scores of chunk `index`, as `prepared_scores` of the model does."""
        chunk = self.prepared.chunks[index]
        unary = np.zeros((chunk.tokens.stop - chunk.tokens.start, self.model.n_columns))
        self._state.gather(bound.state, index, unary)
        return self.model.complete_prepared(unary, bound, self.prepared, index)

    def gradient(self, index: int, residual: Counts) -> FloatArray:
        """Return the gradient to the parameters that chunk `index` touches, in their order.

        Parameters
        ----------
        index : int
            A chunk of the block.
        residual : Counts
            Gradient with respect to the scores of the chunk.

        Returns
        -------
        ndarray of shape (n,)
            The gradient.
        """
        unary, shared, rows = self.model.gradients(residual, self.prepared, index)
        others = zip(self._others, rows, strict=True)
        return np.concatenate(
            [
                self._state.gradient(index, unary),
                *shared,
                *(block.gradient(index, of_rows) for (_, block), of_rows in others),
            ]
        )
