"""Questions about the labels of graphs, and what is known of the answers."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from crfkit._types import BoolArray, BoundedLabels, FloatArray, Potentials
from crfkit.data.sequence_list import SequenceList
from crfkit.estimators._labelings import labels_of_codes


class GraphAnswer(NamedTuple):
    """What a model says of a graph of T nodes and E edges, with K labels.

    Attributes
    ----------
    labels : list of T labels
        The best labels that were found.
    score : float
        Their score.
    score_bound : float
        No labels have a larger score; inf where nothing is known.
    log_partition : float
        Log Z, or what the method of inference has for it.
    marginals : ndarray of shape (T, K)
        Probabilities of the labels of each node.
    edge_marginals : ndarray of shape (E, K, K)
        Probabilities of the labels at the source and the target of each edge.
    exact_ : bool
        Whether log Z and the marginals are the true ones, but for rounding.
    bound_ : str
        What `log_partition` is to the true one: "exact", an "upper" or a "lower" bound, or "none".
    converged_ : bool
        Whether the method of inference came to an end; that is no warrant of anything else.
    """

    labels: list[Any]
    score: float
    score_bound: float
    log_partition: float
    marginals: FloatArray
    edge_marginals: FloatArray
    exact_: bool
    bound_: str
    converged_: bool


class GraphProbabilities(SequenceList[FloatArray]):
    """Probabilities of the labels of nodes, one array of shape (T, K) a graph.

    Attributes
    ----------
    exact_ : ndarray of shape (S,)
        Whether those of each graph are the true ones, but for rounding.
    """

    exact_: BoolArray


def predict_proba(self: Any, X: Any, *, constraints: Any = None) -> GraphProbabilities:
    """Return the marginal probabilities of the labels; parameters and errors are as of `predict`.

    Returns
    -------
    list of S ndarrays of shape (T, K)
        ``P(y_t = k | x)`` in the order of `classes_`, as `inference` has them; rows sum to 1. Its
        attribute ``exact_``, shape (S,), tells which are the true ones.
    """

    def ask(structure: Any, potentials: Potentials) -> tuple[list[FloatArray], BoolArray]:
        found = structure.infer(potentials)
        return np.split(found.nodes, potentials.offsets[1:-1]), found.sums.exact

    answers = self._ask(self._pack(X), ask, constraints=constraints)
    found = GraphProbabilities(rows for some, _ in answers for rows in some)
    found.exact_ = np.concatenate([np.empty(0, bool), *(exact for _, exact in answers)])
    return found


def infer(self: Any, X: Any, *, constraints: Any = None) -> list[GraphAnswer]:
    """Return what the model says of each graph, and how far that is exact.

    Parameters and errors are as of `predict`.

    Returns
    -------
    list of S GraphAnswer
        Best labels with a bound of the scores of others, log Z, marginals of nodes and edges, and
        whether these are exact.
    """

    def ask(structure: Any, potentials: Any) -> list[GraphAnswer]:
        found, (codes, best) = structure.infer(potentials), structure.best(potentials)
        labels = labels_of_codes(self, codes, potentials.offsets)
        nodes = np.split(found.nodes, potentials.offsets[1:-1])
        edges = np.split(found.edges, potentials.edge_offsets[1:-1])
        sums, bounds = found.sums, np.where(found.sums.exact, "exact", structure.inference.bound)
        return list(
            map(GraphAnswer, labels, best.score.tolist(), best.bound.tolist(),
                sums.log_partition.tolist(), nodes, edges, sums.exact.tolist(), bounds.tolist(),
                sums.converged.tolist())
        )  # fmt: skip

    answers = self._ask(self._pack(X), ask, constraints=constraints)
    return [answer for some in answers for answer in some]


def predict_with_bounds(self: Any, X: Any, *, constraints: Any = None) -> list[BoundedLabels]:
    """Return the labels of the largest score that are found, and bounds of the scores of others.

    Parameters and errors are as of `predict`.

    Returns
    -------
    list of S BoundedLabels
        The labels, as `predict` gives them with ``decoding="viterbi"``; their score; a number that
        no labels have a larger score than, inf where nothing is known; the name of `search`; and
        whether the labels are proved to be the best ones.
    """

    def ask(structure: Any, potentials: Potentials) -> list[BoundedLabels]:
        codes, best = structure.best(potentials)
        labels = labels_of_codes(self, codes, potentials.offsets)
        name = self.search if isinstance(self.search, str) else type(self.search).__name__
        rows = zip(labels, best.score.tolist(), best.bound.tolist(), best.exact.tolist(),
                   strict=True)  # fmt: skip
        return [BoundedLabels(own, score, bound, name, done) for own, score, bound, done in rows]

    answers = self._ask(self._pack(X), ask, constraints=constraints)
    return [answer for some in answers for answer in some]


class OfSpans:
    """A method about spans of tokens, which graphs do not have."""

    def __set_name__(self, owner: Any, name: str) -> None:
        self.name = name

    def __get__(self, item: Any, owner: Any) -> Any:
        """Raise AttributeError."""
        raise AttributeError(
            f"nodes of graphs have no order, so that there are no spans, and no {self.name}: "
            "predict and predict_proba tell of nodes, crfkit.inspection.show_tokens shows them."
        )
