"""Attributes of the transitions between tokens."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

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
        """Fit the transformer and return its features as attributes of transitions.

        Parameters
        ----------
        X : iterable of sequences
            What the transformer takes.
        y : passed on

        Returns
        -------
        PackedSequences
            No ordinary features; `transitions` has those of the transformer.

        Raises
        ------
        TypeError
            If the transformer does not give PackedSequences.
        ValueError
            If its result has attributes of transitions itself.
        """
        self.transformer_ = clone(self.transformer)
        return _as_transitions(self.transformer_.fit_transform(X, y))

    def _transform(self, X: Any) -> PackedSequences:
        return _as_transitions(self.transformer_.transform(X))

    def _token_names(self) -> NDArray[np.object_]:
        return np.empty(0, object)


def _as_transitions(packed: Any) -> PackedSequences:
    if not isinstance(packed, PackedSequences):
        raise TypeError(
            f"TransitionFeatures: the transformer gives {type(packed).__name__}, not "
            "PackedSequences. Use SequenceVectorizer, TemplateFeatures or another transformer of "
            "sequences."
        )
    empty = np.zeros((packed.n_tokens, 0))
    return PackedSequences(
        dense=empty, offsets=packed.offsets, feature_names=[], transitions=packed
    )
