"""Questions about labels and their probabilities: methods of the estimators that answer them."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import numpy as np

from crfkit._types import FloatArray, Potentials
from crfkit.data import PackedSequences
from crfkit.data.labels import by_sequence
from crfkit.data.sequence_list import SequenceList
from crfkit.inference.base import expectations, marginals
from crfkit.inference.log_probability import log_probability
from crfkit.labels.segmentation import ANY, allowed_codes
from crfkit.structures import Structure

# Tokens of a chunk whose results depend on each other, whatever the number of threads.
SHARE = 2000


def predict_proba(self: Any, X: Any, *, constraints: Any = None) -> list[FloatArray]:
    """Return the marginal probabilities of the labels; parameters and errors are as of `predict`.

    Returns
    -------
    list of S ndarrays of shape (T, K)
        ``P(y_t = k | x)`` in the order of `classes_`; rows sum to 1. With constraints, the
        probabilities given that these are kept to.
    """

    def ask(structure: Structure, potentials: Potentials) -> list[FloatArray]:
        return np.split(marginals(structure, potentials)[0], potentials.offsets[1:-1])

    found = self._ask(self._pack(X), ask, constraints=constraints)
    return SequenceList(rows for chunk in found for rows in chunk)


def predict_marginals(
    self: Any, X: Any, *, constraints: Any = None
) -> list[list[dict[Hashable, float]]]:
    """Return the marginal probabilities as dicts, as sklearn-crfsuite does.

    For each token ``{label: probability}``; parameters and errors are as of `predict_proba`.
    """
    rows = self.predict_proba(X, constraints=constraints)
    labels = self.classes_.tolist()
    return SequenceList([dict(zip(labels, p, strict=True)) for p in row.tolist()] for row in rows)


def sequence_log_proba(self: Any, X: Any, y: Any, *, constraints: Any = None) -> FloatArray:
    """Return the log-probability of whole sequences of labels, or of segments.

    In a model of segments, labels of tokens may stand for several segmentations, whose
    probabilities add up: a run of equal labels (or of "IO" tags) may be one segment or several, a
    run of tokens outside too.

    Parameters
    ----------
    X : iterable of sequences
        As for `predict`, also in what is raised.
    y : iterable of sequences of labels, or of lists of (start, stop, label)
        The labels, or the segments, in the number and lengths of X (else ValueError). Where some
        are sets or `UNLABELED`, the probability is that of all labelings that are allowed.
    constraints : Constraints, rule, list of rules, str or None, default=None
        As for `predict`: the probability is the one given that these are kept to.

    Returns
    -------
    ndarray of shape (S,)
        ``log P(y | x)``; ``-inf`` where a label is not one of `classes_`, a tag is none of the
        scheme or may not stand there, a segment is too long or too short, or one may not follow
        another, or constraints are not kept to; 0 for an empty sequence.
    """
    data, labels = self._pack(X), self._fitted_labels()
    codes, possible, allowed = labels.codes(self, by_sequence(y, data.offsets), data.offsets)
    sequences = np.repeat(np.arange(len(data)), data.lengths)
    cannot = np.bincount(sequences[~possible], minlength=len(data)) > 0
    if labels.of_segments:
        codes[cannot[sequences]] = ANY

    def ask(structure: Structure, potentials: Potentials) -> FloatArray:
        tokens = tokens_of(data, potentials)
        own = codes[tokens]
        if labels.of_segments:
            return log_probability(structure, potentials, allowed_codes(own, len(self.classes_)))
        if allowed is not None:
            return log_probability(structure, potentials, allowed[tokens])
        return structure.score(potentials, own) - expectations(structure, potentials)[1]

    share = SHARE if labels.of_segments else None
    answers = self._ask(data, ask, share=share, constraints=constraints)
    log_proba = np.concatenate([np.zeros(0), *answers])
    if np.isnan(log_proba).any():
        raise ValueError(
            "the method of inference has no log Z, which probabilities of labelings need: use "
            "inference='exact', or another one."
        )
    log_proba[cannot] = -np.inf
    return log_proba


def tokens_of(data: PackedSequences, potentials: Potentials) -> slice:
    """Return the tokens that a chunk of potentials is of."""
    begin = int(data.offsets[potentials.first])
    return slice(begin, begin + int(potentials.offsets[-1]))


def expected_lengths(self: Any, X: Any, *, constraints: Any = None) -> FloatArray:
    """Return how many segments of each length and label, (L, K), the model expects in sequences.

    Divided by the sums of columns, these are distributions of lengths. Parameters are as of
    `predict`.
    """
    data = self._pack(X)

    def count(structure: Structure, potentials: Any) -> FloatArray:
        expected, begin = expectations(structure, potentials)[0], potentials.n_transitions
        return expected.pair[begin : begin + potentials.n_lengths].copy()

    found = self._ask(data, count, share=SHARE, constraints=constraints)
    return sum(found, np.zeros(self.length_scores_.shape))
