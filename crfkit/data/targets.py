"""What is known of the labels of tokens, and how much each of them counts."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from crfkit._types import BoolArray, CodeArray, FloatArray, IntArray


class Targets(NamedTuple):
    """The codes that tokens are known to have, in full or in part.

    Attributes
    ----------
    states : ndarray of shape (N,)
        The code of each token, of any that are allowed where several are.
    allowed : ndarray of bool, shape (N, C), optional
        Which codes each token may have. If not given, its state alone.
    """

    states: CodeArray
    allowed: BoolArray | None = None

    @property
    def labels(self) -> CodeArray:
        """The code of each token, shape (N,), where each is known to have a single one.

        Raises
        ------
        ValueError
            If some may have several.
        """
        if self.allowed is not None:
            raise ValueError(
                "this needs one known label for each token, but some may have several: use "
                "loss='log' and a batch solver, such as 'lbfgs'."
            )
        return self.states

    def mask(self, n_codes: int) -> BoolArray:
        """Return which codes each token may have, shape (N, C): a new array."""
        if self.allowed is not None:
            return self.allowed.copy()
        mask: BoolArray = self.states[:, None] == np.arange(n_codes)
        return mask

    def take(self, tokens: slice | IntArray) -> Targets:
        """Return what is known of the chosen tokens."""
        return Targets(self.states[tokens], None if self.allowed is None else self.allowed[tokens])


class Weights(NamedTuple):
    """How much tokens and sequences count.

    Attributes
    ----------
    tokens : ndarray of shape (N,)
        The weight of each token.
    sequences : ndarray of shape (S,), or None
        The weight of each sequence; None where the tokens of one have different weights.
    """

    tokens: FloatArray
    sequences: FloatArray | None

    @classmethod
    def of(cls, tokens: FloatArray, offsets: IntArray) -> Weights:
        """Return the weights of tokens, and of sequences where these share them."""
        level = np.append(tokens, 0.0)[offsets[:-1]]
        same = np.array_equal(np.repeat(level, np.diff(offsets)), tokens)
        return cls(tokens, np.ascontiguousarray(level) if same else None)

    @property
    def shared(self) -> FloatArray:
        """The weight of each sequence, shape (S,).

        Raises
        ------
        ValueError
            If the weights of the tokens of a sequence differ.
        """
        if self.sequences is None:
            raise ValueError(
                "this solver needs the same weight for all tokens of a sequence: give "
                "sample_weight a number for each sequence, or use solver='lbfgs'."
            )
        return self.sequences
