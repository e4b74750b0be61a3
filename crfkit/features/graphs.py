"""From graphs, and sequences with skip edges, to packed features."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import combinations, pairwise
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone

from crfkit._params import check_option
from crfkit.data import PackedSequences
from crfkit.data.edges import Edges, FeatureGraph
from crfkit.data.graph_forms import as_graph, is_pair
from crfkit.data.labels import iterate_sequences
from crfkit.data.names import Names
from crfkit.data.validation import is_matrix
from crfkit.features.vectorizer import SequenceTransformer, SequenceVectorizer


@dataclass(kw_only=True, eq=False, repr=False)
class GraphVectorizer(SequenceTransformer):
    """Pack graphs, and make the features of their nodes and edges.

    :class:`crfkit.GraphCRF` does so by itself where it is given graphs; as a step of a pipeline it
    takes transformers of its own.

    Parameters
    ----------
    nodes, edges : transformer or None, default=None
        Make the attributes of nodes, and of edges, of what graphs have of them: each gets one
        sequence for each graph. None is for features that are matrices, which stay as they are,
        and for dicts and lists of strings, as :class:`SequenceVectorizer`.

    Attributes
    ----------
    nodes_, edges_ : transformer or None
        The fitted transformers; None for matrices, and where edges have no features.

    Examples
    --------
    >>> from crfkit.features import GraphVectorizer
    >>> X = [([{"w": "a"}, {"w": "b"}, {"w": "a"}], [[0, 1], [1, 2], [2, 0]])]
    >>> packed = GraphVectorizer().fit_transform(X)
    >>> packed.feature_names.tolist(), packed.topology.target.tolist()
    (['w:a', 'w:b'], [1, 2, 0])
    """

    nodes: Any = None
    edges: Any = None

    def _fit(self, X: Any, y: Any) -> PackedSequences:
        graphs = _read(X)
        self.nodes_, nodes = _fitted(self.nodes, [graph.nodes for graph in graphs], y)
        rows = _edge_features(graphs)
        with _told_of_edges():
            self.edges_, edges = _fitted(self.edges, rows, None)
        self.n_features_in_ = nodes.n_features
        self.n_edge_features_ = None if edges is None else edges.n_features
        self._names = nodes.names
        return _packed(graphs, nodes, edges)

    def _transform(self, X: Any) -> PackedSequences:
        graphs = _read(X)
        rows = _edge_features(graphs)
        if rows is None and self.n_edge_features_ is not None:
            for s, graph in enumerate(graphs):
                if len(graph.edges):
                    raise ValueError(
                        f"graph {s} has no features of edges, but those that were learned from had "
                        f"{self.n_edge_features_}."
                    )
            rows = [[] for _ in graphs]
        with _told_of_edges():
            edges = None if rows is None else _transformed(self.edges_, rows, self.n_edge_features_)
        given = [graph.nodes for graph in graphs]
        return _packed(graphs, _transformed(self.nodes_, given, self.n_features_in_), edges)

    def _token_names(self) -> Names:
        return np.empty(0, object) if self._names is None else self._names


def _read(X: Any) -> list[FeatureGraph]:
    """Return graphs that are given in several forms; errors name the graph."""
    if isinstance(X, FeatureGraph) or hasattr(X, "edges") or is_pair(X):
        raise TypeError("X is one graph: give a list of graphs, [X], and of their labels, [y].")
    graphs = []
    for s, item in enumerate(iterate_sequences(X, "X")):
        try:
            graphs.append(as_graph(item))
        except (TypeError, ValueError) as error:
            raise type(error)(f"graph {s}: {error}") from error
    return graphs


def _edge_features(graphs: list[FeatureGraph]) -> list[Any] | None:
    """Return the features of the edges of each graph; None where none has any."""
    rows = [graph.edge_features for graph in graphs]
    given = [row is not None for row in rows]
    if not any(given):
        return None
    for s, graph in enumerate(graphs):
        if not given[s] and len(graph.edges):
            raise ValueError(
                f"graph {s} has no features of edges, but graph {given.index(True)} has some: give "
                "all graphs some, or none."
            )
        count = rows[s].shape[0] if is_matrix(rows[s]) else len(rows[s] or ())
        if count != len(graph.edges):
            raise ValueError(f"graph {s}: {len(graph.edges)} edges, features of {count}.")
    return [[] if row is None else row for row in rows]


@contextmanager
def _told_of_edges() -> Iterator[None]:
    """Say in errors that the features are those of edges."""
    try:
        yield
    except (TypeError, ValueError) as error:
        raise type(error)(f"features of edges, one row each: {error}") from error


def _fitted(transformer: Any, rows: Any, y: Any) -> tuple[Any, Any]:
    """Return a fitted transformer, None for matrices, and what it makes; None of nothing."""
    if rows is None:
        return None, None
    if transformer is None and _are_matrices(rows):
        return None, PackedSequences.from_matrices(rows)
    fitted = SequenceVectorizer() if transformer is None else clone(transformer)
    found: PackedSequences = fitted.fit_transform(rows, y)
    return fitted, found


def _are_matrices(rows: list[Any]) -> bool:
    """Whether the first of some features that are not empty is a matrix."""
    return next((is_matrix(own) for own in rows if is_matrix(own) or len(own)), False)


def _transformed(transformer: Any, rows: list[Any], n_features: int | None) -> PackedSequences:
    """Return what a fitted transformer makes; None is for matrices."""
    is_plain = transformer is None or isinstance(transformer, SequenceVectorizer)
    if is_plain and _are_matrices(rows):
        return PackedSequences.from_matrices(rows)
    if transformer is not None:
        found: PackedSequences = transformer.transform(rows)
        return found
    if any(map(len, rows)):
        raise TypeError(
            "the features that were learned from are matrices, so that there is no vocabulary for "
            "others: give matrices too."
        )
    return PackedSequences.from_matrices(rows, n_features)


@dataclass(kw_only=True, eq=False, repr=False)
class SkipChainFeatures(SequenceTransformer):
    """Connect tokens that are far apart: skip-chain CRFs (Sutton and McCallum 2004).

    Edges lead from each token to the next one, and between tokens of the same word, so that what
    is told about a word in one place counts in others too.

    Parameters
    ----------
    transformer : transformer
        Turns sequences of tokens into PackedSequences, such as ``TemplateFeatures(...)``.
    skip : transformer or None, default=None
        Makes attributes of tokens that become those of skip edges: an edge has what one of its
        tokens has. None: all that skip edges have is the attribute "skip".
    word : hashable, default=0
        The key, or the number of the column, under which a token has its word; tokens may also be
        strings.
    equal : {"capitalized", "any"} or callable, default="capitalized"
        Which equal words are connected: those that begin with a capital letter, or all; or a
        function that returns for a word what others must share with it, None for no edges.
    pairs : {"all", "next"}, default="all"
        Whether a token is connected with each equal one, or with the next one only, which leaves
        fewer cycles.

    Attributes
    ----------
    transformer_, skip_ : transformer
        The fitted transformers.

    Notes
    -----
    Edges have the attributes "chain" and "skip", so that each kind has weights of its own. They
    lead from the earlier to the later token: with ``GraphCRF(directed=True)`` the order counts.

    Examples
    --------
    >>> from crfkit.features import SequenceVectorizer, SkipChainFeatures
    >>> features = SkipChainFeatures(SequenceVectorizer(), word="w")
    >>> packed = features.fit_transform([[{"w": "Ada"}, {"w": "and"}, {"w": "Ada"}]])
    >>> packed.topology.source.tolist(), packed.topology.target.tolist()
    ([0, 1, 0], [1, 2, 2])
    >>> packed.transitions.to_dicts()
    [[{'chain': 1.0}, {'chain': 1.0}, {'skip': 1.0}]]
    """

    transformer: Any = field(kw_only=False)
    skip: Any = None
    word: Any = 0
    equal: Any = "capitalized"
    pairs: str = "all"

    def _fit(self, X: Any, y: Any) -> PackedSequences:
        check_option("pairs", self.pairs, ("all", "next"))
        if not callable(self.equal):
            check_option("equal", self.equal, tuple(_KEYS))
        X = list(X)
        self.transformer_ = clone(self.transformer)
        self.skip_ = None if self.skip is None else clone(self.skip)
        packed: PackedSequences = self.transformer_.fit_transform(X, y)
        return self._joined(X, packed, None if self.skip_ is None else self.skip_.fit_transform(X))

    def _transform(self, X: Any) -> PackedSequences:
        X = list(X)
        packed = self.transformer_.transform(X)
        return self._joined(X, packed, None if self.skip_ is None else self.skip_.transform(X))

    def _token_names(self) -> Names:
        names: Names = self.transformer_.get_feature_names_out()
        return names

    def _joined(
        self, X: list[Any], packed: PackedSequences, ends: PackedSequences | None
    ) -> PackedSequences:
        """Return the features of tokens, with edges and their attributes."""
        pairs = [self._edges(s, tokens) for s, tokens in enumerate(X)]
        offsets = np.cumsum([0, *map(len, pairs)]).astype(np.int64)
        counts = np.diff(offsets)
        place = np.arange(offsets[-1]) - np.repeat(offsets[:-1], counts)
        is_skip = place >= np.repeat(np.maximum(packed.lengths - 1, 0), counts)
        topology = Edges.of_graphs(pairs, packed.lengths.tolist())
        source, target = topology.ends
        names, blocks = ["chain", "skip"], [sp.csr_array(np.eye(2)[is_skip.astype(np.int64)])]
        if ends is not None and self.skip_ is not None:
            rows, chosen = ends.to_csr(), np.flatnonzero(is_skip)
            either = rows[source[chosen]].maximum(rows[target[chosen]])
            ones, steps = np.ones(len(chosen)), np.arange(len(chosen))
            spread = sp.csr_array((ones, (chosen, steps)), (len(is_skip), len(chosen)))
            blocks.append(spread @ either)
            names += [f"skip__{name}" for name in self.skip_.get_feature_names_out()]
        edges = PackedSequences(
            sp.hstack(blocks, format="csr"), offsets=offsets, feature_names=names
        )
        return packed.with_topology(topology).with_transitions(edges)

    def _edges(self, s: int, tokens: Sequence[Any]) -> list[tuple[int, int]]:
        """Return the edges of a sequence: to the next tokens, then between equal words."""
        key = self.equal if callable(self.equal) else _KEYS[self.equal]
        places: dict[Hashable, list[int]] = {}
        for t, token in enumerate(tokens):
            found = key(self._word(token, s, t))
            if found is not None:
                places.setdefault(found, []).append(t)
        choose = pairwise if self.pairs == "next" else _all_pairs
        skips = [pair for own in places.values() for pair in choose(own) if pair[1] > pair[0] + 1]
        return [*pairwise(range(len(tokens))), *sorted(skips)]

    def _word(self, token: Any, s: int, t: int) -> Any:
        """Return the word of a token."""
        if isinstance(token, str):
            return token
        try:
            return token[self.word]
        except (KeyError, IndexError, TypeError) as error:
            raise ValueError(
                f"sequence {s}, position {t}: the token has no {self.word!r}, which `word` says "
                "is its word."
            ) from error


def _all_pairs(places: list[int]) -> Any:
    """Return all pairs of places."""
    return combinations(places, 2)


def _capitalized(word: Any) -> Any:
    """Return a word that begins with a capital letter, None for others."""
    return word if isinstance(word, str) and word[:1].isupper() else None


def _as_it_is(word: Any) -> Any:
    """Return the word."""
    return word


_KEYS: dict[str, Callable[[Any], Hashable | None]] = {
    "capitalized": _capitalized, "any": _as_it_is,
}  # fmt: skip


def _packed(
    graphs: list[FeatureGraph], nodes: PackedSequences, edges: PackedSequences | None
) -> PackedSequences:
    """Return the nodes of graphs with their edges, and the features of these."""
    types = [graph.types for graph in graphs]
    topology = Edges.of_graphs([graph.edges for graph in graphs], nodes.lengths.tolist(), types)
    return nodes.with_topology(topology).with_transitions(edges)
