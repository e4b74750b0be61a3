"""Segmentations with scores that are not learned."""

from __future__ import annotations

from typing import Any

import numpy as np

from crfkit._types import CodeArray, Counts, FloatArray, Potentials
from crfkit.structures.segment_tables import parts_of
from crfkit.structures.semimarkov import SemiMarkov


class OffsetSemiMarkov(SemiMarkov):
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
    has_only_hard_constraints : bool
        Whether what is added is 0 or ``-inf``.
    """

    def __init__(self, steps: FloatArray, lengths: FloatArray) -> None:
        self.steps, self.lengths = steps, lengths
        added = np.concatenate([steps, lengths])
        self.has_only_hard_constraints = not added[added > -np.inf].any()

    def shifted(self, scores: Potentials) -> Potentials:
        """Return the scores with what is added."""
        pair, n_steps = scores.pair.copy(), parts_of(scores).n_steps
        pair[:n_steps] += np.tile(self.steps, (n_steps // len(self.steps), 1))
        pair[n_steps : n_steps + len(self.lengths)] += self.lengths
        return scores._replace(pair=pair)

    def sum(self, scores: Potentials, weight: FloatArray, out: Counts) -> FloatArray:
        """Return log Z of each sequence and the expected counts, as :meth:`SemiMarkov.sum`."""
        return super().sum(self.shifted(scores), weight, out)

    def max(self, scores: Potentials) -> tuple[CodeArray, FloatArray]:
        """Return the best segmentation of each sequence, as :meth:`SemiMarkov.max`."""
        return super().max(self.shifted(scores))

    def n_best(self, scores: Potentials, count: int) -> tuple[CodeArray, FloatArray]:
        """Return the best segmentations of a sequence, as :meth:`SemiMarkov.n_best`."""
        return super().n_best(self.shifted(scores), count)

    def score(self, scores: Potentials, labels: CodeArray) -> FloatArray:
        """Return the score of the given segmentations, as :meth:`SemiMarkov.score`."""
        return super().score(self.shifted(scores), labels)


def offset_scores(structure: Any, scores: Potentials, labels: CodeArray) -> FloatArray:
    """Return what a structure adds to the score of allowed labellings of sequences, shape (S,)."""
    if not isinstance(structure, OffsetSemiMarkov) or structure.has_only_hard_constraints:
        return np.zeros(len(scores.offsets) - 1)
    none = scores._replace(unary=np.zeros_like(scores.unary), pair=np.zeros_like(scores.pair))
    return structure.score(none, labels)


def with_offsets(structure: Any, scores: Potentials) -> Potentials:
    """Return the scores with what a structure adds to them."""
    return structure.shifted(scores) if isinstance(structure, OffsetSemiMarkov) else scores


def tempered(structure: Any, temperature: float) -> Any:
    """Return a structure for scores that are divided by a temperature: so is what it adds."""
    if temperature == 1.0 or not isinstance(structure, OffsetSemiMarkov):
        return structure
    return OffsetSemiMarkov(structure.steps / temperature, structure.lengths / temperature)
