"""Features of tokens that are nodes of trees."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sklearn.base import clone

from crfkit._params import check_whole
from crfkit.data import PackedSequences
from crfkit.data.forest import Forest
from crfkit.data.names import Names
from crfkit.features.base import SequenceTransformer


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

    def fit_transform(self, X: Any, y: Any = None) -> PackedSequences:
        """Fit the transformer and return its features, with the parents of the tokens.

        Parameters
        ----------
        X : iterable of sequences of dicts, or of rows of columns
            Tokens with their parents.
        y : passed on

        Raises
        ------
        ValueError
            If a token tells no parent, or the parents of a sequence are those of no forest: the
            message names the sequence and the position.
        """
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
