"""Graphs of labeled nodes, by a method of inference of one's choice."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any, NamedTuple, TypeVar

import numpy as np

from crfkit._types import BoolArray, CodeArray, Counts, FloatArray, IntArray
from crfkit.compiler.jit import frozen
from crfkit.graphs.junction_tree import JunctionTree
from crfkit.graphs.methods import GraphError, Maximum, MaxMethod, Slopes, SumMethod, Sums
from crfkit.graphs.posterior import GraphPosterior
from crfkit.graphs.potentials import GraphPotentials, GraphTables, graph_tables
from crfkit.kernels.graph.tables import add_beliefs, count_labelings, score_labelings
from crfkit.structures import Capability, MissingCapabilityError, NoPathError, Structure
from crfkit.structures.conditionals import add_to_neighbor_scores, neighbor_scores
from crfkit.structures.k_best import RankedCodes, labelings_at_most
from crfkit.structures.posterior import Posterior
from crfkit.structures.potentials import restricted_tables
from crfkit.structures.samples import as_uniforms
from crfkit.structures.shares import add_expected_paths, expected_path_scores

# Questions that are answered whatever the methods, and those that a search answers.
OF_ALL = frozenset({Capability.CONDITIONALS, Capability.SHARES, Capability.BOUNDED_SEARCH})
LISTS = frozenset({Capability.K_BEST})

Answer = TypeVar("Answer")


class NoLabelingError(NoPathError):
    """A graph has no labeling of finite score.

    `position` is the first node that has no label; -1 where each has some, but they do not fit.
    """

    def __init__(self, sequence: int, position: int, others: tuple[int, ...] = ()) -> None:
        self.sequence, self.position, self.others = sequence, position, others
        why = (
            "the labels that nodes may have do not fit together. Allow more labels, or more pairs "
            "of them at the ends of edges."
            if position < 0
            else f"every label of node {position} is forbidden. Allow at least one."
        )
        ValueError.__init__(self, f"graph {sequence}: each labeling has the score -inf: {why}")


class GraphSums(NamedTuple):
    """Marginals of N nodes and E edges, and the answers of a method that they were read off."""

    nodes: FloatArray  # (N, K)
    edges: FloatArray  # (E, K, K) of the labels of the source and the target
    sums: Sums


class GraphStructure(Structure[GraphPotentials]):
    """A label at each node of a graph, scores of labels and of pairs of them at the ends of edges.

    Each graph is a random field (Lafferty, McCallum and Pereira 2001; Koller and Friedman 2009,
    chapter 4), over the labels of each node whose score is above ``-inf`` alone: what is forbidden,
    or known, makes tables smaller. Sums and maxima are those of a method of inference, by default
    exact; where a method is not, sums are what it takes for them, and its log Z has the gradient
    that it says is one (:attr:`SumMethod.is_convex`).

    Parameters
    ----------
    inference : SumMethod, optional
        What computes log Z and marginals.
    search : MaxMethod, optional
        What finds the best labeling.
    directed : bool, default=False
        Whether edges have a direction, so that a label may follow another but not the other way
        round; otherwise rules about what may follow hold in both.

    Examples
    --------
    >>> import numpy as np
    >>> from crfkit.graphs.potentials import GraphPotentials
    >>> from crfkit.graphs.structure import GraphStructure
    >>> agree, ends = np.eye(2)[None], np.array([[0, 1], [1, 2], [2, 0]])
    >>> triangle = GraphPotentials(
    ...     np.zeros((3, 2)), agree, np.zeros(1, np.uint32), np.array([0, 3]), 0, *ends.T,
    ...     np.array([0, 3]),
    ... )
    >>> GraphStructure().answers(triangle).log_partition.round(3)
    array([4.034])
    """

    potentials = GraphPotentials
    remedy = " with this method of inference: use inference='exact'"

    def __init__(
        self,
        inference: SumMethod | None = None,
        search: MaxMethod | None = None,
        directed: bool = False,
    ) -> None:
        self.inference = JunctionTree() if inference is None else inference
        self.search = JunctionTree() if search is None else search
        self.directed = directed

    @property
    def capabilities(self) -> frozenset[Capability]:  # type: ignore[override]
        """The optional questions that it answers, by what its methods do."""
        lists: frozenset[Capability] = self._lister.capabilities & LISTS
        return OF_ALL | lists | (self.inference.capabilities - LISTS)

    @property
    def is_convex(self) -> bool:  # type: ignore[override]
        """Whether log Z, as the method of inference has it, is convex."""
        return self.inference.is_convex

    @property
    def _lister(self) -> Any:
        """The method that lists the best labelings, if one does."""
        return self.search if self.search.capabilities & LISTS else self.inference

    def answers(self, potentials: GraphPotentials) -> Sums:
        """Return log Z and marginals of live labels as the method has them, and what they are.

        ValueError if a graph has no labeling.
        """
        return self._sums(potentials)[1]

    def _tables(self, potentials: GraphPotentials, all_labels: bool = False) -> GraphTables:
        """Return the factor graphs; NoLabelingError if a node of one has no label."""
        dead = np.flatnonzero(potentials.unary.max(axis=1, initial=-np.inf) == -np.inf)
        if len(dead):
            graphs, at = np.unique(
                np.searchsorted(potentials.offsets, dead, side="right") - 1, return_index=True
            )
            _raise_dead(potentials, graphs, int(dead[at[0]] - potentials.offsets[graphs[0]]))
        return graph_tables(potentials, all_labels)

    def _sums(self, potentials: GraphPotentials) -> tuple[GraphTables, Sums]:
        tables = self._tables(potentials)
        found = _asked(potentials, self.inference.sums, tables.graph)
        _raise_dead(potentials, np.flatnonzero(found.log_partition == -np.inf), -1)
        return tables, found

    def log_partition(
        self, potentials: GraphPotentials, weight: FloatArray, out: Counts
    ) -> FloatArray:
        """Return log Z, and the expected counts of labels and of pairs at the ends of edges."""
        tables, found = self._sums(potentials)
        _write(potentials, tables, found, weight, out)
        return found.log_partition

    def hessian_product(
        self, potentials: GraphPotentials, tangent: GraphPotentials, weight: FloatArray, out: Counts
    ) -> None:
        """Differentiate the expected counts along a direction of the potentials."""
        self._check(Capability.HESSIAN_PRODUCT, "solver='lbfgs' (or 'auto'), or ")
        tables = self._tables(potentials)
        along = tables.filled(*tangent.arrays())
        found = _asked(potentials, self.inference.derivative, tables.graph, along)
        _write(potentials, tables, found, weight, out)

    def posterior(self, potentials: GraphPotentials) -> Posterior:
        """Return the distribution of the label of each node."""
        self._check(Capability.POSTERIOR, "loss='log', or ")
        return GraphPosterior(self, potentials)

    def sample(self, potentials: GraphPotentials, uniforms: FloatArray) -> CodeArray:
        """Return labelings drawn by the method, shape (n, N)."""
        self._check(Capability.SAMPLE, "inference='gibbs', or ")
        tables, numbers = self._tables(potentials), as_uniforms(potentials, uniforms)
        drawn = _asked(potentials, self.inference.sample, tables.graph, numbers)
        labels = tables.labels(drawn)
        if len(labels):
            score = self.score(potentials, labels[0])
            _raise_dead(potentials, np.flatnonzero(score == -np.inf), -1)
        return labels

    def entropy(self, potentials: GraphPotentials) -> FloatArray:
        """Return the entropy of the labelings of each graph, shape (S,)."""
        self._check(Capability.ENTROPY)
        return self.inference.entropy(self._sums(potentials)[0].graph)

    def k_best(self, potentials: GraphPotentials, k: int) -> RankedCodes:
        """Return the k best labelings of each graph, and their scores."""
        self._check(Capability.K_BEST, "search='exact', or ")
        tables, most = (
            self._tables(potentials),
            int(labelings_at_most(potentials, k).max(initial=1)),
        )
        found = _asked(potentials, self._lister.k_best, tables.graph, most)
        _raise_dead(potentials, np.flatnonzero(found.counts == 0), -1)
        labels, codes = tables.labels(found.values), [np.empty(0, np.int32)]
        for count, (begin, end) in zip(found.counts, pairwise(potentials.offsets), strict=True):
            codes.append(labels[:count, begin:end].ravel())
        listed = np.arange(found.scores.shape[1]) < found.counts[:, None]
        return RankedCodes(np.concatenate(codes), found.scores[listed], found.counts)

    def _check(self, capability: Capability, instead: str = "") -> None:
        """Raise MissingCapabilityError if no method answers a question."""
        if capability not in self.capabilities:
            raise MissingCapabilityError(
                f"the structure {type(self).__name__} has no {capability.value} with "
                f"{self.inference!r}. Use {instead}inference='exact'."
            )

    def infer(self, potentials: GraphPotentials) -> GraphSums:
        """Return the marginals of nodes and of each edge, and what the method says of them."""
        tables, found = self._sums(potentials)
        size, rows = potentials.n_labels, tables.rows
        nodes, edges = np.zeros((len(potentials.unary), size)), len(rows.source)
        nodes[tables.node, tables.live.label] = found.marginals
        pairs, own = np.zeros((edges, size, size)), np.arange(edges).astype(np.uint32)
        each, weight = rows._replace(table=frozen(own)), np.ones(len(potentials.offsets) - 1)
        add_beliefs(each, tables.live, frozen(found.beliefs), frozen(weight), pairs)
        return GraphSums(nodes, pairs, found)

    def argmax(self, potentials: GraphPotentials) -> tuple[CodeArray, FloatArray]:
        """Return the labels of the best labeling that is found, (N,), and scores (S,)."""
        labels, found = self.best(potentials)
        return labels, found.score

    def bounded_argmax(
        self, potentials: GraphPotentials
    ) -> tuple[CodeArray, FloatArray, FloatArray]:
        """Return the labeling that is found, its score, and one that no labeling exceeds."""
        labels, found = self.best(potentials)
        return labels, found.score, found.bound

    def best(self, potentials: GraphPotentials) -> tuple[CodeArray, Maximum]:
        """Return the labels of the best labeling that is found, (N,), and what is known of it."""
        tables = self._tables(potentials, self.search.same_labels)
        found = _asked(potentials, self.search.maximum, tables.graph)
        missing = found.score == -np.inf
        _raise_dead(potentials, np.flatnonzero(missing & (found.bound == -np.inf)), -1)
        if missing.any():
            raise ValueError(
                f"graph {potentials.first + int(np.argmax(missing))}: {self.search!r} has found no "
                "labeling that is allowed; exact search finds one, if there is one."
            )
        if self.gaps is not None:
            self.gaps += (found.bound - found.score)[~found.exact].tolist()
        return tables.labels(found.values), found

    def score(self, potentials: GraphPotentials, labels: CodeArray) -> FloatArray:
        """Return the score of one labeling of each graph, shape (S,)."""
        total = np.empty(len(potentials.offsets) - 1)
        unary, pair = frozen(potentials.unary), frozen(potentials.pair)
        score_labelings(potentials.ends, unary, pair, _codes(labels), total)
        return total

    def add_counts(
        self, potentials: GraphPotentials, labels: CodeArray, weight: FloatArray, out: Counts
    ) -> None:
        """Add `weight`, shape (S,), to the parts of one labeling of each graph."""
        weights = frozen(np.asarray(weight, np.float64))
        count_labelings(potentials.ends, _codes(labels), weights, out.unary, out.pair)

    def restricted(
        self, potentials: GraphPotentials, steps: BoolArray, which: IntArray | None = None
    ) -> tuple[GraphStructure, GraphPotentials]:
        """Return the structure, and potentials without some pairs of labels at the ends of edges.

        Where edges have no direction, each label of a pair has to be allowed to follow the other.
        """
        rows, tables = potentials.rows, potentials[1:3]
        into: Any = None if which is None else which[rows.target]
        pair, index = restricted_tables(*tables, steps, into)
        if not self.directed:
            back: Any = None if which is None else which[rows.source]
            pair, index = restricted_tables(pair, index, np.swapaxes(steps, -1, -2), back)
        return self, potentials._replace(pair=pair, transition_index=index)

    def conditional_scores(self, potentials: GraphPotentials, labels: CodeArray) -> FloatArray:
        """Return the scores of labels of nodes, those of their neighbors given, (N, K)."""
        return neighbor_scores(potentials, potentials.rows, labels)

    def add_conditional_counts(
        self, potentials: GraphPotentials, labels: CodeArray, weight: FloatArray, out: Counts
    ) -> None:
        """Write the weights, (N, K), of `conditional_scores` as weights of their parts."""
        add_to_neighbor_scores(potentials.rows, labels, weight, out)

    def expected_score(self, potentials: GraphPotentials, shares: FloatArray) -> FloatArray:
        """Return the expected score of independent labels, shape (S,)."""
        return expected_path_scores(potentials, potentials.rows, shares)

    def add_expected_counts(
        self, potentials: GraphPotentials, shares: FloatArray, weight: FloatArray, out: Counts
    ) -> None:
        """Add the expected counts of independent labels, and of pairs of them."""
        add_expected_paths(potentials, potentials.rows, shares, weight, out)


def _codes(labels: CodeArray) -> CodeArray:
    """Return labels as kernels read them."""
    return frozen(np.asarray(labels, np.int32))


def _write(
    potentials: GraphPotentials,
    tables: GraphTables,
    found: Sums | Slopes,
    weight: FloatArray,
    out: Counts,
) -> None:
    """Write marginals times weights of graphs, (S,), and add the beliefs of edges times these."""
    of_node = np.repeat(weight, np.diff(potentials.offsets))[tables.node]
    out.unary[...] = 0.0
    out.unary[tables.node, tables.live.label] = of_node * found.marginals
    add_beliefs(tables.rows, tables.live, frozen(found.beliefs), frozen(weight), out.pair)


def _asked(potentials: GraphPotentials, question: Callable[..., Answer], *given: Any) -> Answer:
    """Ask a method; graphs are named in errors by their numbers in the data."""
    try:
        return question(*given)
    except GraphError as error:
        raise type(error)(potentials.first + error.graph, error.why) from None


def _raise_dead(potentials: GraphPotentials, graphs: IntArray, position: int) -> None:
    """Raise the error that graphs, (n,), the first of them at a position, have no labeling."""
    if len(graphs):
        first, *others = (potentials.first + graphs).tolist()
        raise NoLabelingError(first, position, tuple(others))
