"""The interface of a decoder."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

from crfkit._types import BoolArray, CodeArray, FloatArray, Potentials
from crfkit.structures import Structure


class Decoder(ABC):
    """A choice of labels for the sequences of a batch.

    Attributes
    ----------
    takes_constraints : bool
        Whether its labels are among those that are allowed, together too.
    gives_k_best : bool
        Whether it has `k_best`.
    """

    takes_constraints: ClassVar[bool] = False
    gives_k_best: ClassVar[bool] = False

    @abstractmethod
    def search(self, structure: Structure, potentials: Potentials) -> CodeArray:
        """Return codes of tokens, shape (N,)."""

    def decode(
        self, structure: Structure, potentials: Potentials, allowed: BoolArray | None = None
    ) -> CodeArray:
        """Return codes of tokens, shape (N,).

        Parameters
        ----------
        structure : Structure
            Answers questions about the potentials.
        potentials : Potentials
            Of the parts of S sequences of N tokens.
        allowed : ndarray of bool, shape (N, C), optional
            Which codes each token may have. If not given, any.

        Raises
        ------
        NoPathError
            If nothing is left of a sequence.
        ValueError
            If the decoder cannot be given constraints.
        """
        if allowed is None:
            return self.search(structure, potentials)
        if not self.takes_constraints:
            raise ValueError(
                f"{type(self).__name__} may choose labels that are not allowed together: use "
                "ViterbiDecoder."
            )
        return self.search(structure, potentials.clamp(allowed))

    def k_best(
        self, structure: Structure, potentials: Potentials, k: int
    ) -> tuple[CodeArray, FloatArray]:
        """Return the best labelings of the only sequence, and their scores.

        As :meth:`crfkit.structures.Structure.k_best`.

        Raises
        ------
        ValueError
            If the decoder, or the structure, has no such lists.
        """
        raise ValueError(f"{type(self).__name__} has no lists of labelings: use ViterbiDecoder.")
