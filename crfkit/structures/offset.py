"""Segmentations with scores that are not learned."""

from __future__ import annotations

from typing import Any

import numpy as np

from crfkit._types import CodeArray, Expectations, FloatArray, Scores
from crfkit.structures.segment_tables import parts_of
from crfkit.structures.semimarkov import SemiMarkov


class ShiftedSemiMarkov(SemiMarkov):
    """A :class:`SemiMarkov` that adds the same scores to the steps and lengths of all sequences.

    What a solver sees of the scores is then linear in the weights, and finite: products and
    differences of scores are those of what is learned.

    Parameters
    ----------
    steps : ndarray of shape (K, K)
        Added to the scores of steps from a label to the next; ``-inf`` forbids.
    lengths : ndarray of shape (L, K)
        Added to the scores of lengths.

    Attributes
    ----------
    only_forbids : bool
        Whether what is added is 0 or ``-inf``.
    """

    def __init__(self, steps: FloatArray, lengths: FloatArray) -> None:
        self.steps, self.lengths = steps, lengths
        added = np.concatenate([steps, lengths])
        self.only_forbids = not added[added > -np.inf].any()

    def shifted(self, scores: Scores) -> Scores:
        """Return the scores with what is added."""
        pair, n_steps = scores.pair.copy(), parts_of(scores).n_steps
        pair[:n_steps] += np.tile(self.steps, (n_steps // len(self.steps), 1))
        pair[n_steps : n_steps + len(self.lengths)] += self.lengths
        return scores._replace(pair=pair)

    def sum(self, scores: Scores, weight: FloatArray, out: Expectations) -> FloatArray:
        """Return log Z of each sequence and the expected counts, as :meth:`SemiMarkov.sum`."""
        return super().sum(self.shifted(scores), weight, out)

    def max(self, scores: Scores) -> tuple[CodeArray, FloatArray]:
        """Return the best segmentation of each sequence, as :meth:`SemiMarkov.max`."""
        return super().max(self.shifted(scores))

    def n_best(self, scores: Scores, count: int) -> tuple[CodeArray, FloatArray]:
        """Return the best segmentations of a sequence, as :meth:`SemiMarkov.n_best`."""
        return super().n_best(self.shifted(scores), count)

    def score(self, scores: Scores, labels: CodeArray) -> FloatArray:
        """Return the score of the given segmentations, as :meth:`SemiMarkov.score`."""
        return super().score(self.shifted(scores), labels)


def added_scores(structure: Any, scores: Scores, labels: CodeArray) -> FloatArray:
    """Return what a structure adds to the score of allowed labellings of sequences, shape (S,)."""
    if not isinstance(structure, ShiftedSemiMarkov) or structure.only_forbids:
        return np.zeros(len(scores.offsets) - 1)
    none = scores._replace(unary=np.zeros_like(scores.unary), pair=np.zeros_like(scores.pair))
    return structure.score(none, labels)


def with_added(structure: Any, scores: Scores) -> Scores:
    """Return the scores with what a structure adds to them."""
    return structure.shifted(scores) if isinstance(structure, ShiftedSemiMarkov) else scores


def tempered(structure: Any, temperature: float) -> Any:
    """Return a structure for scores that are divided by a temperature: so is what it adds."""
    if temperature == 1.0 or not isinstance(structure, ShiftedSemiMarkov):
        return structure
    return ShiftedSemiMarkov(structure.steps / temperature, structure.lengths / temperature)
