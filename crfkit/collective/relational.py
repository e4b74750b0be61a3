"""Classifiers of nodes whose attributes tell of the labels of their neighbors."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from typing import Any

import numpy as np

from crfkit._params import check_option, check_whole
from crfkit._types import FloatArray, IntArray
from crfkit.collective import local
from crfkit.collective.base import CollectiveClassifier
from crfkit.collective.links import Network, colors


class Sweeps:
    """What is believed of the labels of nodes while it changes, given that of their neighbors.

    Parameters
    ----------
    model : estimator
        What tells the probabilities of codes.
    aggregate : str
        What it is told of neighbors.
    network : Network
        The nodes, of which those without a known label change.
    beliefs : ndarray of shape (N, K)
        What is believed to begin with.
    """

    def __init__(self, model: Any, aggregate: str, network: Network, beliefs: FloatArray) -> None:
        self.model, self.aggregate = model, local.AGGREGATES[aggregate]
        self.beliefs = beliefs.copy()
        free = network.free
        groups = [free[group] for group in colors(network.links[free][:, free])]
        self._parts = [(n, network.attributes(n), network.links[n]) for n in groups]

    def groups(self) -> Iterator[tuple[IntArray, FloatArray]]:
        """Yield nodes without edges between them, and what is probable given all others now."""
        for nodes, rows, links in self._parts:
            relations = self.aggregate(links @ self.beliefs)
            yield nodes, local.proba(self.model, local.joined(rows, relations))

    def set(self, nodes: IntArray, beliefs: FloatArray) -> float:
        """Change what is believed of nodes, and return the largest difference."""
        change = float(np.abs(self.beliefs[nodes] - beliefs).max(initial=0.0))
        self.beliefs[nodes] = beliefs
        return change


class RelationalClassifier(CollectiveClassifier):
    """A classifier of nodes given neighbors' labels; a subclass says which labels nodes get."""

    estimator: Any
    aggregate: str
    n_rounds: int

    @abstractmethod
    def _check_options(self) -> None:
        """Raise if a parameter of the subclass cannot be used."""

    @abstractmethod
    def _believed(self, proba: FloatArray) -> FloatArray:
        """Return what is believed of nodes, (n, K), when neighbors first ask, given their own."""

    @abstractmethod
    def _answer(self, sweeps: Sweeps, network: Network) -> FloatArray:
        """Return the probabilities of the labels of nodes that are not known, (n, K)."""

    def _check_parameters(self) -> None:
        check_option("aggregate", self.aggregate, local.AGGREGATES)
        check_whole("n_rounds", self.n_rounds, 1)
        self._check_options()

    def _learn(self, network: Network) -> dict[str, Any]:
        """Fit both classifiers; the second one again where it has found other labels."""
        own = local.of_attributes(self.estimator, network)
        known, beliefs = np.flatnonzero(network.is_known), self._first(own, network)
        for left in range(self.n_rounds if len(network.free) else 1, 0, -1):
            relations = local.AGGREGATES[self.aggregate](network.links[known] @ beliefs)
            rows = local.joined(network.attributes(known), relations)
            model = local.fitted(self.estimator, rows, network.codes[known])
            if left > 1:
                found = self._answer(Sweeps(model, self.aggregate, network, beliefs), network)
                beliefs[network.free] = self._believed(found)
        return {"own_estimator_": own, "estimator_": model}

    def _proba(self, network: Network) -> FloatArray:
        first = self._first(self.own_estimator_, network)
        return self._answer(Sweeps(self.estimator_, self.aggregate, network, first), network)

    def _first(self, own: Any, network: Network) -> FloatArray:
        """Return what is known of labels, and of other nodes what their attributes tell, (N, K)."""
        beliefs, free = network.indicators(), network.free
        beliefs[free] = self._believed(local.proba(own, network.attributes(free)))
        return beliefs


def likeliest(proba: FloatArray) -> FloatArray:
    """Return 1 for the most probable label of each node, 0 for all others, (n, K)."""
    found: FloatArray = np.eye(proba.shape[1])[proba.argmax(axis=1)]
    return found
