"""Probabilities of labels and label sequences: methods of the estimators that have such.

An estimator whose scores are logarithms of probabilities lists them among its attributes; for all
others they do not exist.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import numpy as np

from crfkit._types import FloatArray, Potentials
from crfkit.inference import marginals
from crfkit.structures import Structure


def predict_proba(self: Any, X: Any) -> list[FloatArray]:
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
    chunks = self._ask(data, _marginals)
    return [rows for chunk in chunks for rows in chunk]


def predict_marginals(self: Any, X: Any) -> list[list[dict[Hashable, float]]]:
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


def sequence_log_proba(self: Any, X: Any, y: Any) -> FloatArray:
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
    codes, known = self._fitted_labels().codes(self, y, data.offsets)

    def ask(structure: Structure, potentials: Potentials) -> FloatArray:
        begin = data.offsets[potentials.first]
        own = codes[begin : begin + potentials.offsets[-1]]
        log_z = marginals(structure, potentials)[1]
        share: FloatArray = structure.score(potentials, own) - log_z
        return share

    log_proba = np.concatenate([np.zeros(0), *self._ask(data, ask)])
    sequences = np.repeat(np.arange(len(data)), data.lengths)
    log_proba[sequences[~known]] = -np.inf
    return log_proba


def _marginals(structure: Structure, potentials: Potentials) -> list[FloatArray]:
    """Return the marginals of each sequence."""
    proba = marginals(structure, potentials)[0]
    bounds = potentials.offsets
    return [proba[b:e] for b, e in zip(bounds[:-1], bounds[1:], strict=True)]
