"""What is known of labels, and how much tokens and sequences count."""

from __future__ import annotations

from typing import NamedTuple, Self

import numpy as np

from crfkit._types import BoolArray, CodeArray, FloatArray, IdArray, IntArray


class Targets(NamedTuple):
    """The codes that tokens are known to have, in full, in part, or with some probability."""

    states: CodeArray  # (N,) the code of each token, any of those allowed where several are
    # (N, C) which codes each may have: all where nothing is known; its state alone if None
    allowed: BoolArray | None = None
    soft: FloatArray | None = None  # (N, C) probabilities of codes; the states are the likeliest

    @classmethod
    def of_allowed(cls, allowed: BoolArray) -> Self:
        """Return what is known, given which codes each token may have, (N, C), at least one."""
        states = allowed.argmax(axis=1).astype(np.int32)
        return cls(states, None if np.all(allowed.sum(axis=1) == 1) else allowed)

    @property
    def labels(self) -> CodeArray:
        """The code of each token, (N,), each known to have one; ValueError if some have several."""
        if self.soft is not None:
            raise ValueError(
                "this needs one label for each token, but y has probabilities of labels: use "
                "CRFClassifier with loss='log' and a solver such as 'lbfgs', or the most probable "
                "labels, y.argmax()."
            )
        if self.allowed is not None:
            raise ValueError(
                "this needs one known label for each token, but in y some are UNLABELED or sets: "
                "use loss='log' and a batch solver, such as 'lbfgs'."
            )
        return self.states

    @property
    def known(self) -> BoolArray:
        """Which tokens something is known of, (N,)."""
        if self.allowed is None:
            return np.ones(len(self.states), bool)
        known: BoolArray = np.logical_not(np.all(self.allowed, axis=1))
        return known

    @property
    def single(self) -> BoolArray:
        """Which tokens have one known label, (N,)."""
        if self.allowed is None:
            return np.ones(len(self.states), bool)
        single: BoolArray = np.equal(self.allowed.sum(axis=1), 1)
        return single

    def mask(self, n_codes: int) -> BoolArray:
        """Return which codes each token may have, shape (N, C): a new array."""
        if self.soft is not None:
            return self.soft > 0.0
        if self.allowed is not None:
            return self.allowed.copy()
        mask: BoolArray = self.states[:, None] == np.arange(n_codes)
        return mask

    def sets(self, n_codes: int) -> tuple[BoolArray, CodeArray]:
        """Return the different sets of codes, (G, C), and which of them each token may have."""
        mask = self.mask(n_codes)
        packed = np.packbits(mask, axis=1)
        packed = np.pad(packed, ((0, 0), (0, -packed.shape[1] % 4)))
        which, first = np.zeros((2, len(mask)), np.int64)
        for word in packed.view(np.uint32).T:  # much faster than to sort rows
            keys = (which << 32) + word
            _, first, which = np.unique(keys, return_index=True, return_inverse=True)
        return mask[first], which.astype(np.int32)

    def take(self, tokens: slice | IntArray | IdArray) -> Targets:
        """Return what is known of the chosen tokens."""
        allowed = None if self.allowed is None else self.allowed[tokens]
        soft = None if self.soft is None else self.soft[tokens]
        return Targets(self.states[tokens], allowed, soft)


class Weights(NamedTuple):
    """How much tokens and sequences count."""

    tokens: FloatArray  # (N,)
    sequences: FloatArray | None  # (S,); None where the tokens of one have different weights

    @classmethod
    def of(cls, tokens: FloatArray, offsets: IntArray) -> Weights:
        """Return the weights of tokens, and of sequences where these share them."""
        level = np.append(tokens, 0.0)[offsets[:-1]]
        same = np.array_equal(np.repeat(level, np.diff(offsets)), tokens)
        return cls(tokens, np.ascontiguousarray(level) if same else None)

    @property
    def shared(self) -> FloatArray:
        """The weight of each sequence, (S,); ValueError if those of its tokens differ."""
        if self.sequences is None:
            raise ValueError(
                "this solver needs the same weight for all tokens of a sequence: give "
                "sample_weight a number for each sequence, or use solver='lbfgs'."
            )
        return self.sequences
