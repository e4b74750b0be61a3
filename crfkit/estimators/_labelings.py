"""Questions about whole labelings: methods of the estimators that answer them."""

from __future__ import annotations

from typing import Any

import numpy as np

from crfkit._params import check_whole
from crfkit._types import Potentials, Segment
from crfkit.estimators._spans import segments_of
from crfkit.inference import ViterbiDecoder
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
    data, size, decoder = self._pack(X), len(self.classes_), ViterbiDecoder()

    def search(
        structure: Structure, potentials: Potentials
    ) -> list[list[tuple[float, list[Segment]]]]:
        found, base = [], np.zeros(len(potentials.offsets) - 1)
        if self.has_probabilities:
            base = expectations(structure, potentials)[1]
        for s, one in enumerate(potentials.each()):
            codes, values = decoder.k_best(structure, one, _at_most(int(n), len(one.unary), size))
            places = np.arange(len(codes) + 1) * codes.shape[1]
            listed = segments_of(self, codes.reshape(-1), places)
            found.append(list(zip((values - base[s]).tolist(), listed, strict=True)))
        return found

    return [one for chunk in self._ask(data, search) for one in chunk]


def _at_most(n: int, length: int, n_labels: int) -> int:
    """Return `n`, or how many segmentations there are without limits, if these are fewer."""
    count = n_labels if length else 1
    for _ in range(length - 1):  # each further token begins a segment of a label, or goes on
        if count >= n:
            break
        count *= n_labels + 1
    return min(n, count)
