"""Transformers that say what the attributes of another transformer belong to."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from crfkit._params import check_whole
from crfkit.data import PackedSequences
from crfkit.data.forest import Forest
from crfkit.data.names import Names
from crfkit.features.vectorizer import SequenceTransformer


class TransitionFeatures(SequenceTransformer):
    """Make the features of a transformer attributes of the transitions into the tokens.

    A model has a weight for each (attribute, label) pair of ordinary features, and for each
    (attribute, label, next label) triple of these. Use it as a part of
    :func:`make_sequence_union`.

    Parameters
    ----------
    transformer : transformer
        Turns sequences into PackedSequences without attributes of transitions, such as
        ``SequenceVectorizer()``.

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

    def _fit(self, X: Any, y: Any) -> PackedSequences:
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


class TreeFeatures(SequenceTransformer):
    """Read the parent of each token, and make the features of the rest by a transformer.

    Parameters
    ----------
    transformer : transformer
        Turns sequences of tokens into PackedSequences, such as ``SequenceVectorizer()``. It gets
        the tokens without their parents, where they are dicts.
    parent : hashable, default="parent"
        The key, or the number of the column, under which a token tells its parent's position in
        the sequence. None tells of a root.
    first : int, default=0
        The position of the first token. Where it is 1, as in CoNLL-U, 0 tells of a root; where it
        is 0, -1 does.

    Attributes
    ----------
    transformer_ : transformer
        The fitted transformer.

    Examples
    --------
    >>> from crfkit.features import SequenceVectorizer, TreeFeatures
    >>> X = [[{"word": "dogs", "head": 2}, {"word": "bark", "head": 0}]]
    >>> packed = TreeFeatures(SequenceVectorizer(), parent="head", first=1).fit_transform(X)
    >>> packed.topology.parent.tolist(), packed.feature_names.tolist()
    ([1, -1], ['word:bark', 'word:dogs'])
    """

    def __init__(self, transformer: Any, *, parent: Any = "parent", first: int = 0) -> None:
        self.transformer = transformer
        self.parent = parent
        self.first = first

    def _fit(self, X: Any, y: Any) -> PackedSequences:
        check_whole("first", self.first)
        tokens, forest = self._read(X)
        self.transformer_ = clone(self.transformer)
        packed: PackedSequences = self.transformer_.fit_transform(tokens, y)
        return packed.with_topology(forest)

    def _transform(self, X: Any) -> PackedSequences:
        tokens, forest = self._read(X)
        packed: PackedSequences = self.transformer_.transform(tokens)
        return packed.with_topology(forest)

    def _token_names(self) -> Names:
        names: Names = self.transformer_.get_feature_names_out()
        return names

    def _read(self, X: Any) -> tuple[list[list[Any]], Forest]:
        """Return the tokens without their parents, and these."""
        tokens, parents = [], []
        for s, sequence in enumerate(X):
            found = [self._parent(token, s, t) for t, token in enumerate(sequence)]
            tokens.append([rest for rest, _ in found])
            parents.append([parent for _, parent in found])
        return tokens, Forest.from_lists(parents)

    def _parent(self, token: Any, s: int, t: int) -> tuple[Any, Any]:
        """Return a token without its parent, and the position of the parent, counted from 0."""
        try:
            parent = token[self.parent]
        except (KeyError, IndexError, TypeError) as error:
            raise ValueError(
                f"sequence {s}, position {t}: the token tells no parent: it has no "
                f"{self.parent!r}. Give parent=None to the token for a root."
            ) from error
        rest = token
        if isinstance(token, Mapping):
            rest = {key: value for key, value in token.items() if key != self.parent}
        if isinstance(parent, str) and parent.lstrip("-").isdigit():
            parent = int(parent)
        if parent is None or isinstance(parent, (str, float, bool)):
            return rest, parent
        return rest, parent - self.first
