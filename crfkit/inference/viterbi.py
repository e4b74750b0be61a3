"""The most probable sequence of labels."""

from __future__ import annotations

from crfkit._types import CodeArray, Potentials
from crfkit.structures import Structure


class ViterbiDecoder:
    """The labelling of the largest score (Viterbi 1967): the most probable one as a whole."""

    def decode(self, structure: Structure, scores: Potentials) -> CodeArray:
        """Return label codes, shape (N,)."""
        labels, _ = structure.argmax(scores)
        return labels
