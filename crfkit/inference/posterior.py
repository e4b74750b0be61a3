"""The most probable label of each token."""

from __future__ import annotations

import numpy as np

from crfkit._types import CodeArray, FloatArray, Potentials
from crfkit.inference.base import Decoder
from crfkit.structures import Structure


def marginals(structure: Structure, scores: Potentials) -> tuple[FloatArray, FloatArray]:
    """Return the label probabilities of each token, shape (N, K), and log Z, shape (S,)."""
    expected = structure.zeros(scores)
    log_z = structure.log_partition(scores, np.ones(len(scores.offsets) - 1), expected)
    return _of_labels(expected.unary, scores), log_z


def _of_labels(expected: FloatArray, scores: Potentials) -> FloatArray:
    """Return the probabilities of labels: that a segment goes on or begins, where there are such.

    Both are numbers between 0 and 1, whatever their sum is rounded to.
    """
    if scores.n_codes == scores.n_labels:
        return expected
    codes = expected[:, : scores.n_codes].reshape(
        len(expected), scores.n_codes // scores.n_labels, scores.n_labels
    )
    label: FloatArray = np.minimum(codes.sum(axis=1), 1.0)
    return label


class PosteriorDecoder(Decoder):
    """The most probable label of each token, by its marginal probability.

    This maximizes the expected number of correct labels (Gross, Russakovsky, Do and Batzoglou
    2006, section 2.2). The labels of a sequence need not be a likely, or even an allowed, path
    together. Of equal probabilities the lowest label wins.
    """

    def search(self, structure: Structure, scores: Potentials) -> CodeArray:
        """Return label codes, shape (N,)."""
        labels: CodeArray = marginals(structure, scores)[0].argmax(axis=1).astype(np.int32)
        return labels
