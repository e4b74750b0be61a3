"""What a decoder has to do."""

from __future__ import annotations

from typing import Protocol

from crfkit._types import CodeArray, Potentials
from crfkit.structures import Structure


class Decoder(Protocol):
    """A choice of labels for the sequences of a batch."""

    def decode(self, structure: Structure, scores: Potentials) -> CodeArray:
        """Return label codes, shape (N,)."""
