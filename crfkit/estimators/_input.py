"""Features in any accepted form, packed."""

from __future__ import annotations

from itertools import chain
from typing import Any

from crfkit.data import PackedSequences
from crfkit.data.labels import iterate_sequences
from crfkit.data.matrices import is_matrix
from crfkit.features import SequenceVectorizer


def pack_training(X: Any) -> tuple[PackedSequences, SequenceVectorizer | None]:
    """Pack training features, learning a vocabulary where tokens are dicts or strings.

    Parameters
    ----------
    X : PackedSequences, or iterable of sequences
        Sequences of dicts or lists of strings, or matrices of shape (T, D).

    Returns
    -------
    data : PackedSequences
        The packed features.
    vectorizer : SequenceVectorizer or None
        The vocabulary, if one was learned.
    """
    if isinstance(X, PackedSequences):
        return X, None
    matrices, sequences = _look_ahead(X)
    if matrices:
        return PackedSequences.from_matrices(sequences), None
    vectorizer = SequenceVectorizer()
    return vectorizer.fit_transform(sequences), vectorizer


def pack_new(X: Any, vectorizer: SequenceVectorizer | None, n_features: int) -> PackedSequences:
    """Pack features for a fitted model.

    Parameters
    ----------
    X : PackedSequences, or iterable of sequences
        In the form the model was fitted with, or packed.
    vectorizer : SequenceVectorizer or None
        The vocabulary of the model.
    n_features : int
        Number of attributes of the model.

    Raises
    ------
    ValueError
        If the number of features is another one.
    TypeError
        If tokens are given to a model that was fitted on matrices.
    """
    if isinstance(X, PackedSequences):
        data = X
    else:
        matrices, sequences = _look_ahead(X)
        if matrices:
            data = PackedSequences.from_matrices(sequences, n_features)
        elif vectorizer is None:
            data = _only_empty(sequences, n_features)
        else:
            return vectorizer.transform(sequences)
    if data.n_features != n_features:
        raise ValueError(
            f"X has {data.n_features} features a token, but the model was fitted with {n_features}."
        )
    return data


def pack_more(
    X: Any, vectorizer: SequenceVectorizer | None, n_features: int
) -> tuple[PackedSequences, SequenceVectorizer | None]:
    """Pack further training features, giving new attributes of tokens the next columns.

    Parameters
    ----------
    X, vectorizer, n_features
        As for :func:`pack_new`.

    Returns
    -------
    data : PackedSequences
        The packed features.
    vectorizer : SequenceVectorizer or None
        The vocabulary: the same, or a larger one.

    Raises
    ------
    ValueError, TypeError
        As :func:`pack_new`; matrices cannot be added to a vocabulary.
    """
    if vectorizer is None or isinstance(X, PackedSequences):
        return pack_new(X, vectorizer, n_features), vectorizer
    return vectorizer.extend(X)


def _look_ahead(X: Any) -> tuple[bool, Any]:
    """Return whether the first sequence with tokens is a matrix, and all sequences."""
    stream = iterate_sequences(X, "X")
    seen = []
    for sequence in stream:
        seen.append(sequence)
        if is_matrix(sequence):
            return True, chain(seen, stream)
        if not _is_empty(sequence):
            return False, chain(seen, stream)
    return False, seen


def _is_empty(sequence: Any) -> bool:
    return hasattr(sequence, "__len__") and len(sequence) == 0


def _only_empty(sequences: Any, n_features: int) -> PackedSequences:
    """Pack sequences of no tokens; any token is an error, as the model has no vocabulary."""
    packed = list(sequences)
    if not all(map(_is_empty, packed)):
        raise TypeError(
            "the model was fitted on matrices and has no vocabulary for tokens: give X as "
            "matrices or PackedSequences too."
        )
    return PackedSequences.from_matrices(packed, n_features)
