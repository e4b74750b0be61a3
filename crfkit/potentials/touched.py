"""The weights that one chunk depends on, and the gradient to them alone."""

from __future__ import annotations

from typing import Any

from crfkit._types import Counts, FloatArray, IdArray, Potentials
from crfkit.potentials.linear import LinearModel, Prepared


class ActiveWeights:
    """The weights that each chunk depends on.

    A solver that looks at a few sequences at a time must not pay for all P parameters.

    Parameters
    ----------
    model : LinearModel
        The model.
    prepared : Prepared
        From its `prepare_columns`.
    """

    def __init__(self, model: LinearModel, prepared: Prepared) -> None:
        self.model, self.prepared = model, prepared

    def places(self, index: int) -> IdArray:
        """Return the parameters that chunk `index` depends on, each once, shape (n,)."""
        return self.model.active(self.prepared, index)

    def scores(self, bound: Any, index: int) -> Potentials:
        """Return the potentials of chunk `index`."""
        return self.model.prepared_scores(bound, self.prepared, index)

    def gradient(self, index: int, residual: Counts) -> FloatArray:
        """Return the gradient to the parameters that chunk `index` depends on, in their order."""
        return self.model.active_gradient(residual, self.prepared, index)
