"""Features in any accepted form, packed."""

from __future__ import annotations

from itertools import chain
from typing import Any, NamedTuple, Self

import numpy as np

from crfkit.data import PackedSequences
from crfkit.data.labels import iterate_sequences
from crfkit.data.names import Names, name_array
from crfkit.data.validation import is_matrix
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


class Attributes(NamedTuple):
    """How many attributes there are, and their names, where they have any."""

    size: int
    names: Names | None


class Schema(NamedTuple):
    """The attributes of tokens, of transitions and of segments; None where there are no such."""

    tokens: Attributes
    transitions: Attributes | None
    segments: Attributes | None

    @classmethod
    def of(cls, data: PackedSequences) -> Self:
        """Return those of packed sequences."""
        rows = None if data.segments is None else data.segments.rows
        return cls(
            Attributes(data.n_features, data.names),
            *(
                None if part is None else Attributes(part.n_features, part.names)
                for part in (data.transitions, rows)
            ),
        )

    def check_counts(self, data: PackedSequences) -> None:
        """Raise ValueError if there are other attributes of transitions or segments."""
        for kind in ("transitions", "segments"):
            parts = (getattr(one, kind) for one in (Schema.of(data), self))
            given, expected = (None if part is None else part.size for part in parts)
            if given != expected:
                counts = ["no" if count is None else count for count in (given, expected)]
                raise ValueError(
                    f"X has {counts[0]} attributes of {kind}, but the model was fitted with "
                    f"{counts[1]}. Transform X with the transformer the model was fitted with."
                )

    def check_names(self, data: PackedSequences) -> None:
        """Raise ValueError if attributes have other names, or another order."""
        for given, expected in zip(Schema.of(data), self, strict=True):
            if given is not None and expected is not None:
                _check_names(given.names, expected.names)


def _check_names(names: Names | None, expected: Names | None) -> None:
    if names is None or expected is None or names is expected:
        return
    ours, theirs = name_array(names), name_array(expected)
    if np.array_equal(ours, theirs):
        return
    place = int(np.argmax(ours != theirs))
    raise ValueError(
        f"feature {place} of X has the name {ours[place]!r}, but the model was fitted with "
        f"{theirs[place]!r} there. Transform X with the vectorizer the model was fitted with."
    )
