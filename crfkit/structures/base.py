"""What a structure has to answer."""

from __future__ import annotations

from typing import Protocol

from crfkit._types import CodeArray, Counts, FloatArray, Potentials


class NoPathError(ValueError):
    """A sequence has no labelling of finite score.

    Parameters
    ----------
    sequence : int
        Index of the sequence in the data set.
    position : int
        The first position that no path of allowed labels and steps gets past.
    """

    def __init__(self, sequence: int, position: int) -> None:
        self.sequence = sequence
        self.position = position
        super().__init__(
            f"sequence {sequence}: no path is left at position {position}: every label there is "
            "forbidden (score -inf) or cannot be reached by an allowed step from the position "
            "before. Allow at least one label and one step into it."
        )

    def __reduce__(self) -> tuple[type[NoPathError], tuple[int, int]]:
        return type(self), (self.sequence, self.position)


class Structure(Protocol):
    """An oracle about the labellings of a batch of sequences, given the scores of their parts.

    All methods are pure functions of the scores; sizes as in :class:`crfkit._types.Scores`.
    """

    def empty(self, scores: Potentials) -> Counts:
        """Return zero weights for the parts of `scores`."""

    def sum(self, scores: Potentials, weight: FloatArray, out: Counts) -> FloatArray:
        """Return log Z of each sequence, shape (S,), and the expected counts of its parts.

        The expected unary counts replace ``out.unary``, the pair counts are added to
        ``out.pair``, both multiplied by `weight`, shape (S,).
        """

    def max(self, scores: Potentials) -> tuple[CodeArray, FloatArray]:
        """Return the labels of the best path, shape (N,), and its score, shape (S,)."""

    def score(self, scores: Potentials, labels: CodeArray) -> FloatArray:
        """Return the score of the given path of each sequence, shape (S,)."""

    def add_path(
        self, scores: Potentials, labels: CodeArray, weight: FloatArray, out: Counts
    ) -> None:
        """Add `weight`, shape (S,), to the parts on the given paths."""
