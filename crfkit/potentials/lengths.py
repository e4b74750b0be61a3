"""Scores of the lengths of segments."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from crfkit._types import FloatArray


class LengthModel:
    """``length_d[k] = fixed[d, k] + sum_f basis[d, f] w[f, k]`` for chosen pairs of f and k.

    `fixed`, shape (L, K), is not learned: ``-inf`` forbids the segments of a length and a label.
    `basis`, shape (L, F), are finite functions of the length, read as a sparse array. `chosen`, of
    bool, shape (F, K), tells which function has a weight for which label.
    """

    def __init__(
        self, fixed: FloatArray, basis: sp.csr_array | FloatArray, chosen: NDArray[np.bool_]
    ) -> None:
        self.fixed, self.basis, self.chosen = fixed, sp.csr_array(basis), chosen
        self.n_lengths, self.n_parameters = len(fixed), int(chosen.sum())

    def bind(self, parameters: FloatArray) -> FloatArray:
        """Return the scores of all lengths, shape (L, K)."""
        table = np.zeros(self.chosen.shape)
        table[self.chosen] = parameters
        scores: FloatArray = self.fixed + self.basis @ table
        return scores

    def pullback(self, gradient: FloatArray) -> FloatArray:
        """Return the gradient to the weights, given the one to the scores, shape (L, K)."""
        pulled: FloatArray = (self.basis.T @ gradient)[self.chosen]
        return pulled
