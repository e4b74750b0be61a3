"""Sequences of known sources as packed data, the models of the family, and their errors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from crfkit import CRFClassifier, HMMClassifier, MEMMClassifier, SequenceVectorizer, TokenClassifier
from crfkit.generative.emissions import Categorical
from crfkit.generative.smoothing import Additive

# Weights for all pairs, also for those that are never seen, and for first and last labels.
ALL_PAIRS = {
    "all_possible_states": True,
    "all_possible_transitions": True,
    "boundary_weights": True,
}
PSEUDO = 0.1  # what is added to all counts


class Split(NamedTuple):
    """Sequences to learn from and to test on.

    Attributes
    ----------
    X, X_test : PackedSequences, or lists
        The tokens; a symbol is an attribute.
    y, y_test : list of list of str
        The labels.
    """

    X: Any
    y: list[list[str]]
    X_test: Any
    y_test: list[list[str]]

    def first(self, n: int) -> Split:
        """Return the first sequences to learn from, and all to test on."""
        return self._replace(X=self.X[:n], y=self.y[:n])


def split(data: Any, n_train: int) -> Split:
    """Return the sequences of a source, the first ones to learn from."""
    packed = SequenceVectorizer().fit_transform(data.X)
    return Split(packed[:n_train], data.y[:n_train], packed[n_train:], data.y[n_train:])


def with_constant(tokens: list[list[list[str]]]) -> list[list[list[str]]]:
    """Return tokens with an attribute that all of them have."""
    return [[[*token, "any"] for token in row] for row in tokens]


def counted(order: int) -> HMMClassifier:
    """Return a model of labels and symbols, not fitted."""
    return HMMClassifier(
        order=order, emissions=Categorical(alpha=PSEUDO), smoothing=Additive(alpha=PSEUDO)
    )


def chains(c2: float) -> dict[str, Any]:
    """Return the models of chains, not fitted; all learn from the same labels and symbols."""
    return {
        "HMM": counted(1),
        "MEMM": MEMMClassifier(c2=c2, **ALL_PAIRS),
        "CRF": CRFClassifier(c2=c2, **ALL_PAIRS),
    }


def square(c2: float) -> dict[str, Any]:
    """Return naive Bayes, logistic regression, and what they are for sequences."""
    return {
        "naive Bayes": counted(0),
        "logistic regression": TokenClassifier(c2=c2),
        "HMM": counted(1),
        "CRF": CRFClassifier(c2=c2, boundary_weights=True),
    }


def wrong(y_true: Sequence[Any], y_pred: Sequence[Any]) -> NDArray[np.bool_]:
    """Return which labels are wrong, of all sequences."""
    marks: NDArray[np.bool_] = np.concatenate(list(map(np.asarray, y_true))) != np.concatenate(
        list(map(np.asarray, y_pred))
    )
    return marks


def label_error(model: Any, parts: Split) -> float:
    """Fit a model and return its share of wrong labels."""
    return float(wrong(parts.y_test, model.fit(parts.X, parts.y).predict(parts.X_test)).mean())
