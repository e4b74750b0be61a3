"""Scores of the lengths of segments."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from crfkit._types import FloatArray


class LengthModel:
    """``length_d[k] = fixed[d, k] + sum_f basis[d, f] w[f, k]`` for chosen pairs of f and k.

    Parameters
    ----------
    fixed : ndarray of shape (L, K)
        What is not learned; ``-inf`` forbids the segments of a length and a label.
    basis : sparse array or array of shape (L, F)
        Functions of the length, finite. Read as a sparse array, in time for what is not 0.
    chosen : ndarray of shape (F, K), dtype bool
        Which function has a weight for which label.
    """

    def __init__(
        self, fixed: FloatArray, basis: sp.csr_array | FloatArray, chosen: NDArray[np.bool_]
    ) -> None:
        self.fixed, self.basis, self.chosen = fixed, sp.csr_array(basis), chosen

    @property
    def n_lengths(self) -> int:
        """The longest length L."""
        return len(self.fixed)

    @property
    def n_parameters(self) -> int:
        """Number of weights."""
        return int(self.chosen.sum())

    def weights(self, parameters: FloatArray) -> FloatArray:
        """Return the weights as a table of shape (F, K), zeros between."""
        table = np.zeros(self.chosen.shape)
        table[self.chosen] = parameters
        return table

    def bind(self, parameters: FloatArray) -> FloatArray:
        """Return the scores of all lengths, shape (L, K)."""
        scores: FloatArray = self.fixed + self.basis @ self.weights(parameters)
        return scores

    def pullback(self, gradient: FloatArray) -> FloatArray:
        """Return the gradient to the weights, given the one to the scores, shape (L, K)."""
        pulled: FloatArray = (self.basis.T @ gradient)[self.chosen]
        return pulled
