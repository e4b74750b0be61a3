"""Losses that are given by one labelling of each sequence, the worst one."""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar

import numpy as np
from sklearn.base import BaseEstimator

from crfkit._types import CodeArray, Counts, FloatArray, Potentials
from crfkit.data.labels import Targets, Weights
from crfkit.losses.base import Loss
from crfkit.losses.likelihood import raise_if_forbidden
from crfkit.structures import Structure


class WorstLabellingLoss(BaseEstimator, Loss):  # type: ignore[misc]
    """The largest loss of a labelling, which is linear in the scores: convex, with corners.

    A subclass finds the labelling and says what its loss is.
    """

    is_convex: ClassVar[bool] = True
    is_smooth: ClassVar[bool] = False
    needs_sequence_weights: ClassVar[bool] = True

    def worst(
        self, structure: Structure, scores: Potentials, labels: CodeArray
    ) -> tuple[CodeArray, FloatArray]:
        """Return the worst labelling of each sequence, and its loss.

        Parameters
        ----------
        structure : Structure
            Finds it.
        scores : Potentials
            Potentials of the parts of N tokens.
        labels : ndarray of shape (N,)
            The true labels.

        Returns
        -------
        path : ndarray of shape (N,)
            The true labels, where no labelling has a loss above 0.
        value : ndarray of shape (S,)
            Its loss, never negative.

        Raises
        ------
        ValueError
            If the true labels are forbidden, or the search is not to be had.
        """
        path, value, _ = self._find(structure, scores, labels)
        return path, value

    def value_and_grad(
        self,
        structure: Structure,
        potentials: Potentials,
        targets: Targets,
        weights: Weights,
        out: Counts,
    ) -> float:
        """Return the loss of a batch and a subgradient, as in :class:`Loss`.

        Raises
        ------
        ValueError
            If the weights of the tokens of a sequence differ, tokens may have several labels, or as
            for `worst`.
        """
        level, labels = self.sequence_weights(weights), targets.labels
        path, value, slope = self._find(structure, potentials, labels)
        out.unary[...] = 0.0
        structure.add_counts(potentials, path, level * slope, out)
        structure.add_counts(potentials, labels, -level * slope, out)
        return float(np.sum(level * value))

    def _find(
        self, structure: Structure, scores: Potentials, labels: CodeArray
    ) -> tuple[CodeArray, FloatArray, FloatArray]:
        """Return the worst labellings, their losses, and the slopes of these by the scores."""
        gold = structure.score(scores, labels)
        if np.isneginf(gold).any():
            raise_if_forbidden(gold, structure.argmax(scores)[1], scores)
        path = self._search(structure, scores, labels, gold)
        rise = structure.score(scores, path) - gold
        value, slope = self._linear(scores, labels, path, rise)
        none = value <= 0.0  # also where rounding makes a tie of it
        value[none] = 0.0
        return np.where(np.repeat(none, np.diff(scores.offsets)), labels, path), value, slope

    @abstractmethod
    def _search(
        self, structure: Structure, scores: Potentials, labels: CodeArray, gold: FloatArray
    ) -> CodeArray:
        """Return the worst labellings, given the scores of the true ones, shape (S,)."""

    @abstractmethod
    def _linear(
        self, scores: Potentials, labels: CodeArray, path: CodeArray, rise: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Return the losses of labellings, and their slopes, given how much better they score."""
