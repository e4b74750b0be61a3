"""Probabilities of labels and label sequences under a linear chain."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import numpy as np

from crfkit._types import Chunk, CodeArray, FloatArray, Potentials
from crfkit.data import PackedSequences
from crfkit.estimators._base import LinearChainClassifier
from crfkit.inference import marginals
from crfkit.structures import Structure


class ProbabilisticChain(LinearChainClassifier):
    """A linear chain with ``P(y | x) = exp(score(x, y)) / Z(x)``."""

    def predict_proba(self, X: Any) -> list[FloatArray]:
        """Return the marginal probabilities of the labels.

        Parameters
        ----------
        X : iterable of sequences
            As for `predict`.

        Returns
        -------
        list of S ndarrays of shape (T, K)
            ``P(y_t = k | x)`` in the order of `classes_`; rows sum to 1.

        Raises
        ------
        NotFittedError
            Before `fit`.
        TypeError, ValueError
            As for `predict`.
        """
        data = self._pack(X)
        proba, _ = self._infer(data)
        return [proba[b:e] for b, e in zip(data.offsets[:-1], data.offsets[1:], strict=True)]

    def predict_marginals(self, X: Any) -> list[list[dict[Hashable, float]]]:
        """Return the marginal probabilities as dicts, as sklearn-crfsuite does.

        Parameters
        ----------
        X : iterable of sequences
            As for `predict`.

        Returns
        -------
        list of lists of dicts
            ``{label: probability}`` for each token of each sequence.

        Raises
        ------
        NotFittedError
            Before `fit`.
        TypeError, ValueError
            As for `predict`.
        """
        rows = self.predict_proba(X)
        labels = self.classes_.tolist()
        return [[dict(zip(labels, p, strict=True)) for p in row.tolist()] for row in rows]

    def sequence_log_proba(self, X: Any, y: Any) -> FloatArray:
        """Return the log-probability of whole label sequences.

        Parameters
        ----------
        X : iterable of sequences
            As for `predict`.
        y : iterable of sequences of labels
            The labels whose probability is asked for.

        Returns
        -------
        ndarray of shape (S,)
            ``log P(y | x)``; ``-inf`` where a label is not one of `classes_`, 0 for an empty
            sequence.

        Raises
        ------
        NotFittedError
            Before `fit`.
        TypeError, ValueError
            As for `predict`, or if X and y do not match in number and lengths.
        """
        data = self._pack(X)
        codes, known = self._fitted_layout.codes(self, y, data.offsets)
        _, log_proba = self._infer(data, codes)
        sequences = np.repeat(np.arange(len(data)), data.lengths)
        log_proba[sequences[~known]] = -np.inf
        return log_proba

    def _infer(
        self, data: PackedSequences, codes: CodeArray | None = None
    ) -> tuple[FloatArray, FloatArray]:
        """Return the marginals, shape (N, K), and, given labels, their log-probability, (S,)."""
        proba = np.empty((data.n_tokens, len(self.classes_)))
        log_proba = np.zeros(len(data))

        def infer(structure: Structure, chunk: Chunk, scores: Potentials) -> None:
            proba[chunk.tokens], log_z = marginals(structure, scores)
            if codes is not None:
                path = structure.score(scores, codes[chunk.tokens])
                log_proba[chunk.sequences] = path - log_z

        self._each_chunk(data, infer)
        return proba, log_proba
