"""What a loss has to do."""

from __future__ import annotations

from typing import ClassVar, Protocol

from crfkit._types import CodeArray, Expectations, FloatArray, Scores
from crfkit.structures import Structure


class Loss(Protocol):
    """A function of scores and labels, for any structure that offers what it requires."""

    requires: ClassVar[tuple[str, ...]]

    def value_and_grad(
        self,
        structure: Structure,
        scores: Scores,
        labels: CodeArray,
        weight: FloatArray,
        out: Expectations,
    ) -> float:
        """Return the loss of a batch, summed, and its gradient with respect to the scores.

        Parameters
        ----------
        structure : Structure
            Answers questions about the scores.
        scores : Scores
            Scores of the parts of N tokens.
        labels : ndarray of shape (N,)
            The true labels.
        weight : ndarray of shape (N,)
            Weights of the tokens, constant within a sequence where sequences are weighted.
        out : Expectations
            The gradient: ``out.unary`` is replaced, ``out.pair`` is added to.
        """
