"""Iterative classification: each node is labeled given the labels of its neighbors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from crfkit._params import check_flag, check_whole
from crfkit._types import FloatArray
from crfkit._warnings import warn_user
from crfkit.collective.links import Network
from crfkit.collective.relational import RelationalClassifier, Sweeps, likeliest
from crfkit.persistence import register

CHANGE = 1e-4  # of a probability, from where on it is none


@register
@dataclass(kw_only=True, eq=False, repr=False)
class IterativeClassifier(RelationalClassifier):
    """Iterative classification (ICA; Neville and Jensen 2000, Lu and Getoor 2003, Sen et al. 2008).

    A classifier of nodes, whose attributes are the node's own and how many of its neighbors have
    each label. A first one, of own attributes alone, labels the nodes to begin with; then each is
    labeled anew, given its neighbors as they are, until none changes.

    Parameters
    ----------
    estimator : estimator, default=None
        A classifier of scikit-learn with `predict_proba`, or one of sequences, which reads all
        nodes as one sequence; ``TokenClassifier(all_possible_states=True)`` if None.
    aggregate : {"count", "proportion", "mode", "exists"}, default="count"
        What a node is told of its neighbors: how many have each label, their share, which label is
        the most frequent, or which there are (Lu and Getoor 2003).
    n_rounds : int, default=1
        How many times the second classifier is fitted. Neighbors of nodes that `y` leaves
        `UNLABELED` count with the labels predicted so far; each round has better ones. Where
        all labels are known, one round tells all.
    soft : bool, default=False
        Whether neighbors count with the probabilities of their labels, in place of 1 for the most
        probable one, so that those that are in doubt tell less.
    max_iter : int, default=100
        Passes over all nodes at most.

    Attributes
    ----------
    own_estimator_, estimator_ : estimator
        The fitted classifiers: of own attributes, and of own and neighbors' ones.
    classes_ : ndarray of shape (K,)
        The labels.
    transduction_ : LabelSequences
        The labels of the nodes of `fit`: those that were known, and for all others what is
        predicted.

    See Also
    --------
    GibbsClassifier : The same classifiers, drawn from.
    crfkit.GraphCRF : One model of all labels of a graph.

    Notes
    -----
    Nodes without an edge between them are labeled at once, group after group, which is a pass over
    the nodes one by one. Labels may change forever, since classifiers know nothing of a common
    model: a warning tells where `max_iter` ends that. Attributes of edges are not used.

    References
    ----------
    Neville and Jensen (2000), "Iterative classification in relational data"; Lu and Getoor (2003),
    "Link-based classification"; Sen, Namata, Bilgic, Getoor, Gallagher and Eliassi-Rad (2008),
    "Collective classification in network data".

    Examples
    --------
    >>> from crfkit.collective import IterativeClassifier
    >>> from crfkit.datasets import make_planted_partition
    >>> data = make_planted_partition(n_graphs=2, random_state=0)
    >>> model = IterativeClassifier().fit(data.X[:1], data.y[:1])
    >>> model.score(data.X[1:], data.y[1:]) > 0.75  # alone, words tell of 0.6 of the nodes
    True
    """

    estimator: Any = None
    aggregate: str = "count"
    n_rounds: int = 1
    soft: bool = False
    max_iter: int = 100

    def _check_options(self) -> None:
        check_flag("soft", self.soft)
        check_whole("max_iter", self.max_iter, 1)

    def _believed(self, proba: FloatArray) -> FloatArray:
        return proba if self.soft else likeliest(proba)

    def _answer(self, sweeps: Sweeps, network: Network) -> FloatArray:
        """Return the probabilities of labels given those of neighbors, when these stay."""
        found = np.zeros((network.data.n_tokens, network.n_labels))
        for _ in range(self.max_iter):
            change = 0.0
            for nodes, proba in sweeps.groups():
                found[nodes] = proba
                change = max(change, sweeps.set(nodes, self._believed(proba)))
            if change <= CHANGE:
                return found[network.free]
        warn_user(
            f"labels still change after max_iter={self.max_iter} passes over the nodes. They may "
            "go round forever; soft=True, or another aggregate, may settle.",
            ConvergenceWarning,
        )
        return found[network.free]
