"""Attributes of the transitions between tokens."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from crfkit.data import PackedSequences
from crfkit.features.base import SequenceTransformer


class TransitionFeatures(SequenceTransformer):
    """Make the features of a transformer attributes of the transitions into the tokens.

    A model has a weight for each (attribute, label) pair of ordinary features, and for each
    (attribute, label, next label) triple of these. Use it as a part of
    :func:`make_sequence_union`.

    Parameters
    ----------
    transformer : transformer
        Turns sequences into PackedSequences, such as ``SequenceVectorizer()``.

    Attributes
    ----------
    transformer_ : transformer
        The fitted transformer.

    Examples
    --------
    >>> from crfkit.features import SequenceVectorizer, TransitionFeatures
    >>> packed = TransitionFeatures(SequenceVectorizer()).fit_transform([[["a"], ["b"]]])
    >>> packed.n_features, packed.transitions.feature_names.tolist()
    (0, ['a', 'b'])
    """

    def __init__(self, transformer: Any) -> None:
        self.transformer = transformer

    def fit_transform(self, X: Any, y: Any = None) -> PackedSequences:
        """Fit the transformer and return sequences without features but those of the steps.

        Parameters
        ----------
        X : iterable of sequences
            What the transformer takes.
        y : passed on

        Returns
        -------
        PackedSequences
            No ordinary features; `steps` has those of the transformer.

        Raises
        ------
        TypeError
            If the transformer does not give PackedSequences.
        ValueError
            If its result has steps itself.
        """
        self.transformer_ = clone(self.transformer)
        return _as_steps(self.transformer_.fit_transform(X, y))

    def transform(self, X: Any) -> PackedSequences:
        """Return sequences without features but those of the steps.

        Parameters
        ----------
        X : iterable of sequences
            What the transformer takes.
        """
        check_is_fitted(self)
        return _as_steps(self.transformer_.transform(X))

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[np.object_]:
        """Return no names: there are no ordinary features.

        Parameters
        ----------
        input_features : ignored
        """
        check_is_fitted(self)
        return np.empty(0, object)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "transformer_")


def _as_steps(steps: Any) -> PackedSequences:
    if not isinstance(steps, PackedSequences):
        raise TypeError(
            f"TransitionFeatures: the transformer gives {type(steps).__name__}, not "
            "PackedSequences. Use SequenceVectorizer, TemplateFeatures or another transformer of "
            "sequences."
        )
    empty = np.zeros((steps.n_tokens, 0))
    return PackedSequences(dense=empty, offsets=steps.offsets, feature_names=[], transitions=steps)
