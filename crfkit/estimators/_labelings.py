"""Questions about whole labelings: methods of the estimators that answer them."""

from __future__ import annotations

from typing import Any

import numpy as np

from crfkit._params import check_whole
from crfkit._types import Potentials, Segment
from crfkit.estimators._spans import segments_of
from crfkit.inference.base import expectations
from crfkit.structures import Structure


def predict_n_best(self: Any, X: Any, n: int) -> list[list[tuple[float, list[Segment]]]]:
    """Return the best segmentations of each sequence.

    Parameters
    ----------
    X : iterable of sequences
        As for `predict`, also in what is raised.
    n : int
        How many, at least 1. There are fewer where a sequence has no more. Memory grows with it.

    Returns
    -------
    list of S lists of (float, list of Segment)
        The score of each segmentation, the best first (the log-probability, where the model has
        probabilities), and its segments without those of tokens outside. Segmentations that differ
        in those alone are listed one by one.
    """
    check_whole("n", n, 1)
    data = self._pack(X)

    def search(
        structure: Structure, potentials: Potentials
    ) -> list[list[tuple[float, list[Segment]]]]:
        base = np.zeros(len(potentials.offsets) - 1)
        if self.has_probabilities:
            base = expectations(structure, potentials)[1]
        best = structure.k_best(potentials, int(n))
        listed = segments_of(self, best.codes, best.offsets(potentials.offsets))
        values = best.scores - np.repeat(base, best.counts)
        pairs, places = list(zip(values.tolist(), listed, strict=True)), np.cumsum(best.counts)
        return [pairs[end - n : end] for n, end in zip(best.counts, places, strict=True)]

    return [one for chunk in self._ask(data, search) for one in chunk]
