"""A decoder: labels that are certain are kept, the others are the best ones beside them."""

from __future__ import annotations

import numpy as np

from crfkit._types import CodeArray, Potentials
from crfkit.inference import DecodedLabels, Decoder, code_marginals
from crfkit.structures import NoPathError, Structure


class CautiousDecoder(Decoder):
    """The best labeling of those that have each label which is likely enough.

    Parameters
    ----------
    threshold : float, default=0.5
        How probable a label must be to be chosen for itself.
    """

    def __init__(self, threshold: float = 0.5) -> None:
        self.threshold = threshold

    def decode(
        self, structure: Structure, potentials: Potentials, labels: DecodedLabels | None = None
    ) -> CodeArray:
        """Return codes of tokens, shape (N,)."""
        found = [self._of_one(structure, one) for one in potentials.each()]
        return np.concatenate([np.empty(0, np.int32), *found])

    def _of_one(self, structure: Structure, potentials: Potentials) -> CodeArray:
        proba = code_marginals(structure, potentials)
        likely = proba >= self.threshold
        certain = potentials.clamp(likely | ~likely.any(axis=1, keepdims=True))
        try:
            return structure.argmax(certain)[0]
        except NoPathError:  # they are not allowed together
            return structure.argmax(potentials)[0]
