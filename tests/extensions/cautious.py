"""A decoder: labels one by one where they are certain, the best labeling elsewhere."""

from __future__ import annotations

import numpy as np

from crfkit._types import CodeArray, Potentials
from crfkit.inference import Decoder, marginals
from crfkit.structures import Structure


class CautiousDecoder(Decoder):
    """The most probable label where it is likely enough, that of the best labeling elsewhere.

    Parameters
    ----------
    threshold : float, default=0.5
        How probable a label must be to be chosen for itself.
    """

    def __init__(self, threshold: float = 0.5) -> None:
        self.threshold = threshold

    def search(self, structure: Structure, potentials: Potentials) -> CodeArray:
        """Return codes of tokens, shape (N,)."""
        proba, _ = marginals(structure, potentials)
        best, _ = structure.argmax(potentials)
        certain = proba.max(axis=1, initial=0.0) >= self.threshold
        return np.where(certain, proba.argmax(axis=1), best).astype(np.int32)
