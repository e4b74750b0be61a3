"""The most probable label of each token."""

from __future__ import annotations

import numpy as np

from crfkit._types import CodeArray, FloatArray, Scores
from crfkit.structures import Structure


def marginals(structure: Structure, scores: Scores) -> tuple[FloatArray, FloatArray]:
    """Return the label probabilities of each token, shape (N, K), and log Z, shape (S,)."""
    expected = structure.empty(scores)
    log_z = structure.sum(scores, np.ones(len(scores.offsets) - 1), expected)
    return expected.unary, log_z


class PosteriorDecoder:
    """The most probable label of each token, by its marginal probability.

    This maximizes the expected number of correct labels (Gross, Russakovsky, Do and Batzoglou
    2006, section 2.2). The labels of a sequence need not be a likely, or even an allowed, path
    together. Of equal probabilities the lowest label wins.
    """

    def decode(self, structure: Structure, scores: Scores) -> CodeArray:
        """Return label codes, shape (N,)."""
        labels: CodeArray = marginals(structure, scores)[0].argmax(axis=1).astype(np.int32)
        return labels
