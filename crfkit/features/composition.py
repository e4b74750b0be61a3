"""Transformers of other transformers: side by side, of transitions, of trees."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone

from crfkit._params import check_whole
from crfkit._types import ObjectArray
from crfkit.data import PackedSegments, PackedSequences
from crfkit.data.forest import Forest
from crfkit.data.labels import object_array
from crfkit.data.names import LazyNames, Names, name_array
from crfkit.features.segments.vectorizer import aligned
from crfkit.features.vectorizer import SequenceTransformer

_SAME = "passthrough"


class JoinedNames(LazyNames):
    """The names of several blocks of features, each with a prefix."""

    def __init__(self, prefixes: list[str], blocks: list[Names]) -> None:
        self.prefixes = prefixes
        self.blocks = blocks

    def __len__(self) -> int:
        return sum(map(len, self.blocks))

    def leads(self) -> Iterator[str]:
        """Yield what names of those blocks begin with that are not built."""
        for prefix, block in zip(self.prefixes, self.blocks, strict=True):
            if isinstance(block, LazyNames):
                yield from (f"{prefix}{lead}" for lead in block.leads())

    def _build(self) -> ObjectArray:
        pairs = zip(self.prefixes, self.blocks, strict=True)
        return object_array(f"{prefix}{name}" for prefix, b in pairs for name in name_array(b))


@dataclass(eq=False, repr=False)
class SequenceUnion(SequenceTransformer):
    """Join the features of several transformers of sequences.

    Templates, vectorized dicts, embeddings, attributes of transitions and of segments become one
    set of features: sparse ones first, then the dense ones, each named ``name__feature``.

    Parameters
    ----------
    transformers : list of (str, transformer) tuples
        Each transformer turns sequences into PackedSequences, or into a list with one array or
        sparse matrix of shape (T, D) for each sequence; "passthrough" takes the input as it is.

    Attributes
    ----------
    transformers_ : list of (str, transformer) tuples
        The fitted transformers.

    See Also
    --------
    make_sequence_union : Names the transformers by itself.
    """

    transformers: list[tuple[str, Any]]

    def _fit(self, X: Any, y: Any) -> PackedSequences:
        _check_parts(self.transformers)
        X = X if hasattr(X, "__len__") else list(X)  # each transformer reads it
        parts = [(name, t if t == _SAME else clone(t)) for name, t in self.transformers]
        blocks = [_packed(name, X if t == _SAME else t.fit_transform(X, y)) for name, t in parts]
        self.transformers_ = parts
        joined = self._join(blocks)
        self._names = joined.names
        self._transition_names = None if joined.transitions is None else joined.transitions.names
        self._segment_names = None if joined.segments is None else joined.segments.rows.names
        return joined

    def _transform(self, X: Any) -> PackedSequences:
        X = X if hasattr(X, "__len__") else list(X)
        joined = self._join(
            [_packed(name, X if t == _SAME else t.transform(X)) for name, t in self.transformers_]
        )
        joined.names = self._names  # one object for all: equal names need not be compared
        if joined.transitions is not None:
            joined.transitions.names = self._transition_names
        if joined.segments is not None:
            joined.segments.rows.names = self._segment_names
        return joined

    def _token_names(self) -> Names:
        assert self._names is not None  # what was joined has names
        return self._names

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters, with `deep` those of the parts as ``name__parameter``."""
        params: dict[str, Any] = super().get_params(deep=False)
        if deep:
            for name, part in self.transformers:
                params[name] = part
                if hasattr(part, "get_params"):
                    inner = part.get_params(deep=True).items()
                    params.update({f"{name}__{key}": value for key, value in inner})
        return params

    def set_params(self, **params: Any) -> Self:
        """Set parameters, replace a part by its name, or set its ``name__parameter``.

        ValueError if there is no such parameter.
        """
        if "transformers" in params:
            self.transformers = params.pop("transformers")
        names = [name for name, _ in self.transformers]
        new = {name: params.pop(name) for name in names if name in params}
        if new:
            self.transformers = [(name, new.get(name, part)) for name, part in self.transformers]
        super().set_params(**params)
        return self

    def _join(self, blocks: list[PackedSequences]) -> PackedSequences:
        """Return the features of all blocks side by side, those of transitions and segments too."""
        pairs = [(f"{name}__", b) for (name, _), b in zip(self.transformers_, blocks, strict=True)]
        joined = side_by_side(pairs)
        transitions = [(p, b.transitions) for p, b in pairs if b.transitions is not None]
        if transitions:
            joined.transitions = side_by_side(transitions)
        segments = [(p, b.segments) for p, b in pairs if b.segments is not None]
        if segments:
            prefixes, parts = zip(*segments, strict=True)
            runs, rows = aligned(parts)
            named = side_by_side(list(zip(prefixes, rows, strict=True)))
            joined.segments = PackedSegments._from_arrays(named, *runs)
        topologies = [block.topology for block in blocks if block.topology is not None]
        if any(topology != topologies[0] for topology in topologies):
            raise ValueError("transformers give sequences whose tokens are in different orders.")
        joined.topology = topologies[0] if topologies else None
        return joined


def make_sequence_union(*transformers: Any) -> SequenceUnion:
    """Join transformers of sequences, named by their classes.

    Parameters
    ----------
    *transformers : transformers
        As for :class:`SequenceUnion`.

    Returns
    -------
    SequenceUnion
        Its parts are called ``sequencevectorizer``, ``templatefeatures-2`` and so on.

    Examples
    --------
    >>> from crfkit.features import SequenceVectorizer, TransitionFeatures, make_sequence_union
    >>> union = make_sequence_union(SequenceVectorizer(), TransitionFeatures(SequenceVectorizer()))
    >>> packed = union.fit_transform([[["a"], ["b"]]])
    >>> packed.feature_names.tolist()
    ['sequencevectorizer__a', 'sequencevectorizer__b']
    >>> packed.transitions.feature_names.tolist()
    ['transitionfeatures__a', 'transitionfeatures__b']
    """
    names = [t if t == _SAME else type(t).__name__.lower() for t in transformers]
    numbered = [
        name if names.count(name) == 1 else f"{name}-{names[: place + 1].count(name)}"
        for place, name in enumerate(names)
    ]
    return SequenceUnion(list(zip(numbered, transformers, strict=True)))


def _check_parts(transformers: Any) -> None:
    """Raise if these are no pairs of different names and transformers."""
    if not transformers:
        raise ValueError("the union has no transformers: give at least one.")
    if not all(isinstance(part, (tuple, list)) and len(part) == 2 for part in transformers):
        raise TypeError(
            "transformers must be pairs of a name and a transformer; make_sequence_union names "
            "them by itself."
        )
    names = [name for name, _ in transformers]
    for name, transformer in transformers:
        if not isinstance(name, str):
            raise TypeError(f"the name {name!r} of a transformer must be a string.")
        if "__" in name or name == "transformers":
            raise ValueError(
                f"the name {name!r} of a transformer would be mistaken for a parameter: take one "
                "without '__', other than 'transformers'."
            )
        if names.count(name) > 1:
            raise ValueError(f"two transformers have the name {name!r}: names must be unique.")
        if transformer != _SAME and not hasattr(transformer, "transform"):
            raise TypeError(
                f"transformer {name!r} is a {type(transformer).__name__} without the method "
                "'transform'; 'passthrough' takes the input as it is."
            )


def _packed(name: str, block: Any) -> PackedSequences:
    """Return the output of a transformer packed."""
    if isinstance(block, PackedSequences):
        return block
    try:
        return PackedSequences.from_matrices(block)
    except (TypeError, ValueError) as error:
        raise type(error)(f"transformer {name!r}: {error}") from error


def side_by_side(pairs: Sequence[tuple[str, PackedSequences]]) -> PackedSequences:
    """Return the features of blocks, each with a prefix: the sparse ones, then the dense."""
    first, offsets = pairs[0][1], pairs[0][1].offsets
    for prefix, block in pairs:
        if not np.array_equal(block.offsets, offsets):
            raise ValueError(
                f"transformer {prefix[:-2]!r} gives {len(block)} sequences of {block.n_tokens} "
                f"tokens, {pairs[0][0][:-2]!r} {len(first)} of {offsets[-1]}: all must have "
                "the same lengths."
            )
    sparse = [(p, b) for p, b in pairs if b.n_sparse]
    dense = [(p, b) for p, b in pairs if b.n_features > b.n_sparse]
    kinds = [(p, _named(b, 0, b.n_sparse)) for p, b in sparse]
    kinds += [(p, _named(b, b.n_sparse, b.n_features)) for p, b in dense]
    none = [np.zeros((int(offsets[-1]), 0))] if not kinds else []
    columns = [b.dense for _, b in dense if b.dense is not None] or none
    joined = PackedSequences(
        sp.hstack([b.sparse for _, b in sparse], format="csr") if sparse else None,
        np.hstack(columns) if columns else None,
        offsets=offsets,
    )
    joined.names = JoinedNames([prefix for prefix, _ in kinds], [names for _, names in kinds])
    return joined


def _named(block: PackedSequences, begin: int, end: int) -> Names:
    """Return the names of a range of the features of a block; numbers, where it has none."""
    if block.names is None:
        return object_array(map(str, range(begin, end)))
    whole = begin == 0 and end == len(block.names)
    return block.names if whole else name_array(block.names)[begin:end]


@dataclass(eq=False, repr=False)
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

    transformer: Any

    def _fit(self, X: Any, y: Any) -> PackedSequences:
        self.transformer_ = clone(self.transformer)
        return _as_transitions(self.transformer_.fit_transform(X, y))

    def _transform(self, X: Any) -> PackedSequences:
        return _as_transitions(self.transformer_.transform(X))

    def _token_names(self) -> ObjectArray:
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


@dataclass(kw_only=True, eq=False, repr=False)
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

    transformer: Any = field(kw_only=False)
    parent: Any = "parent"
    first: int = 0

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
