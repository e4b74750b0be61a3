"""The most probable sequence of labels."""

from __future__ import annotations

from typing import ClassVar

from crfkit._types import CodeArray, FloatArray, Potentials
from crfkit.inference.base import Decoder
from crfkit.structures import Structure


class ViterbiDecoder(Decoder):
    """The labeling of the largest score (Viterbi 1967): the most probable one as a whole."""

    takes_constraints: ClassVar[bool] = True
    gives_k_best: ClassVar[bool] = True

    def search(self, structure: Structure, potentials: Potentials) -> CodeArray:
        """Return codes of tokens, shape (N,)."""
        return structure.argmax(potentials)[0]

    def k_best(
        self, structure: Structure, potentials: Potentials, k: int
    ) -> tuple[CodeArray, FloatArray]:
        """Return the best labelings of the only sequence, and their scores."""
        return structure.k_best(potentials, k)
