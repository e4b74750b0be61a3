"""Decoders of least expected cost: each token counts for itself, what is chosen is allowed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from crfkit._types import CodeArray, FloatArray, Potentials
from crfkit.inference.base import DecodedLabels, Decoder, expectations
from crfkit.labels.costs import Cost, make_cost
from crfkit.structures import Structure


def code_marginals(structure: Structure, potentials: Potentials) -> FloatArray:
    """Return the probabilities of the codes of tokens, shape (N, C)."""
    return expectations(structure, potentials)[0].unary[:, : potentials.n_codes]


def largest_gain(structure: Structure, potentials: Potentials, gains: FloatArray) -> CodeArray:
    """Return the codes, (N,), of the allowed labelings with the largest sums of gains, (N, C).

    The best codes of single tokens are taken where a structure allows them together, the lowest
    of equal ones; elsewhere the structure is asked for its best labeling.
    """
    only_allowed, scores = allowed_alike(structure, potentials)
    own = scores.unary[:, : scores.n_codes] + gains
    if scores.n_codes != scores.n_labels:  # a segment goes on after it has begun
        return only_allowed.argmax(scores.plus_unary(gains))[0]
    codes: CodeArray = own.argmax(axis=1).astype(np.int32)
    wrong = np.isneginf(only_allowed.score(scores, codes))
    if wrong.any():
        rest = scores.plus_unary(gains).take(np.flatnonzero(wrong))
        codes[np.repeat(wrong, np.diff(scores.offsets))] = only_allowed.argmax(rest)[0]
    return codes


def allowed_alike(structure: Structure, potentials: Potentials) -> tuple[Structure, Potentials]:
    """Return the same labelings where all that are allowed have the score 0."""
    scores = structure.with_offset(potentials)
    hard = [np.where(np.isneginf(each), each, 0.0) for each in scores.arrays()]
    return structure.without_offset(), scores.with_arrays(*hard)


class PosteriorDecoder(Decoder):
    """The labels with the largest expected number of correct ones among those that are allowed.

    Where any labels may follow one another, these are the most probable labels of single tokens
    (Gross, Russakovsky, Do and Batzoglou 2006, section 2.2), of equal probabilities the lowest.
    Where some may not, the best labeling is searched with the probabilities of labels as scores.
    In a model of segments, a token is correct where its label is, and whether a segment begins.
    """

    def decode(
        self, structure: Structure, potentials: Potentials, labels: DecodedLabels | None = None
    ) -> CodeArray:
        """Return codes of tokens, shape (N,)."""
        return largest_gain(structure, potentials, code_marginals(structure, potentials))


class MinimumRisk(BaseEstimator, Decoder):  # type: ignore[misc]
    """The labels of least expected cost among those that are allowed.

    Label ``j`` at token ``t`` has the expected cost ``sum_i P(y_t = i | x) cost[i, j]``, a labeling
    the sum of those of its tokens. Of equal costs the lowest label wins.

    Parameters
    ----------
    cost : "hamming", dict or array of shape (K, K), default="hamming"
        What a wrong label costs: 1; for each true label what missing it costs, 1 for those that are
        not named; or ``cost[i, j]`` for label `j` where `i` is true, in the order of `classes_`. In
        a model of segments, a token of the right label where a segment wrongly begins, or does
        not, costs as much as the worst one.

    Notes
    -----
    Costs of true labels are a tilt between precision and recall: label ``j`` is chosen where
    ``cost[j] P(y_t = j | x)`` is largest, which adds ``log cost[j]`` to the logarithm of its
    probability. ``MinimumRisk({"O": 0.25})`` finds more and more doubtful names than "posterior",
    as to take a token that is outside for a name is a quarter as bad as to miss one.

    With costs that are the same for all, this is "posterior".

    Examples
    --------
    >>> from crfkit import CRFClassifier
    >>> from crfkit.inference import MinimumRisk
    >>> X = [[["the"], ["Nile"]], [["the"], ["dog"]], [["the"], ["cat"]]]
    >>> crf = CRFClassifier(c2=0.1).fit(X, [["O", "LOC"], ["O", "O"], ["O", "O"]])
    >>> new = [[["the"], ["Rhine"]]]
    >>> crf.predict(new)
    [['O', 'O']]
    >>> crf.set_params(decoding=MinimumRisk({"O": 0.25})).predict(new)
    [['O', 'LOC']]
    """

    def __init__(self, cost: Any = "hamming") -> None:
        self.cost = cost

    def decode(
        self, structure: Structure, potentials: Potentials, labels: DecodedLabels | None = None
    ) -> CodeArray:
        """Return codes of tokens, shape (N,)."""
        proba = code_marginals(structure, potentials)
        if isinstance(self.cost, str) and self.cost == "hamming":
            return largest_gain(structure, potentials, proba)
        if labels is None:
            raise ValueError(f"cost={self.cost!r:.80} is read by the labels, which are not given.")
        cost = labels.coding.cost(self._cost(labels, tell=potentials.first == 0))
        gains = np.zeros_like(proba)
        for code in range(proba.shape[1]):  # no matrix product: its bits depend on that of rows
            gains -= proba[:, code, None] * cost.added(np.array([code], np.int32))
        return largest_gain(structure, potentials, gains)

    def _cost(self, labels: DecodedLabels, tell: bool) -> Cost:
        """Return the cost of labels; ValueError if it is none of single tokens.

        `tell` says whether to warn of costs of labels that the model does not have.
        """
        given = self.cost
        if isinstance(given, str) and given == "zero_one":
            raise ValueError(
                "cost='zero_one' is that of whole sequences: decoding='viterbi' has the least."
            )
        if isinstance(given, Mapping) and not tell:
            given = {label: given[label] for label in labels.classes.tolist() if label in given}
        return make_cost(given, labels.classes)
