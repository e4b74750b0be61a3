"""Potentials of segments that are not learned."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from crfkit._types import FloatArray
from crfkit.structures.potentials import SegmentPotentials


class SegmentOffset(NamedTuple):
    """Scores that :class:`SemiMarkov` adds to the transitions and lengths of all sequences.

    The potentials that a solver sees are then linear in the weights, and finite: products and
    differences of them are those of what is learned.

    Attributes
    ----------
    transitions : ndarray of shape (K, K)
        Added to the scores of transitions from a label to the next; ``-inf`` forbids.
    lengths : ndarray of shape (L, K)
        Added to the scores of lengths.
    """

    transitions: FloatArray
    lengths: FloatArray

    @property
    def is_hard(self) -> bool:
        """Whether all of them are 0 or ``-inf``."""
        return not any(each[each > -np.inf].any() for each in self)

    def added_to(self, potentials: SegmentPotentials) -> SegmentPotentials:
        """Return the sum of the potentials and the offset."""
        pair, n_steps = potentials.pair.copy(), potentials.n_transitions
        pair[:n_steps] += np.tile(self.transitions, (n_steps // len(self.transitions), 1))
        pair[n_steps : n_steps + len(self.lengths)] += self.lengths
        return potentials._replace(pair=pair)
