"""Gibbs sampling of the labels of nodes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from crfkit._params import check_whole
from crfkit._types import FloatArray
from crfkit.collective.links import Network
from crfkit.collective.relational import RelationalClassifier, Sweeps, likeliest
from crfkit.persistence import register


@register
@dataclass(kw_only=True, eq=False, repr=False)
class GibbsClassifier(RelationalClassifier):
    """Gibbs sampling with a classifier of nodes (Sen et al. 2008).

    What :class:`IterativeClassifier` is, but that labels are drawn by their probabilities given
    those of neighbors, again and again, and each node gets the label that it has most of the
    time.

    Parameters
    ----------
    estimator, aggregate, n_rounds
        As for :class:`IterativeClassifier`.
    burn_in : int, default=50
        Passes over all nodes before any is counted.
    n_samples : int, default=200
        Passes that count. The probability of a label is the mean of what it was given the
        neighbors in each of them, which varies less than how often it was drawn.
    random_state : int, RandomState instance or None, default=None
        What is drawn, in `fit` (of nodes without a label) and in each prediction.

    Attributes
    ----------
    own_estimator_, estimator_, classes_, transduction_
        As of :class:`IterativeClassifier`.

    Notes
    -----
    The conditional probabilities of a classifier need not be those of any joint distribution, so
    that what is drawn from depends on the order of nodes too (Heckerman et al. 2000, "Dependency
    networks"). Attributes of edges are not used.

    References
    ----------
    Sen, Namata, Bilgic, Getoor, Gallagher and Eliassi-Rad (2008), "Collective classification in
    network data".

    Examples
    --------
    >>> from crfkit.collective import GibbsClassifier
    >>> from crfkit.datasets import make_planted_partition
    >>> data = make_planted_partition(n_graphs=2, random_state=0)
    >>> model = GibbsClassifier(burn_in=10, n_samples=20, random_state=0)
    >>> _ = model.fit(data.X[:1], data.y[:1])
    >>> model.score(data.X[1:], data.y[1:]) > 0.75  # alone, words tell of 0.6 of the nodes
    True
    """

    estimator: Any = None
    aggregate: str = "count"
    n_rounds: int = 1
    burn_in: int = 50
    n_samples: int = 200
    random_state: Any = None

    def _check_options(self) -> None:
        check_whole("burn_in", self.burn_in)
        check_whole("n_samples", self.n_samples, 1)

    def _believed(self, proba: FloatArray) -> FloatArray:
        return likeliest(proba)

    def _answer(self, sweeps: Sweeps, network: Network) -> FloatArray:
        """Return the mean probabilities of labels given drawn ones of neighbors."""
        random = check_random_state(self.random_state)
        sums = np.zeros((network.data.n_tokens, network.n_labels))
        for sweep in range(self.burn_in + self.n_samples):
            for nodes, proba in sweeps.groups():
                limits = np.cumsum(proba, axis=1)
                drawn = random.uniform(size=(len(nodes), 1)) * limits[:, -1:]
                sweeps.set(nodes, np.eye(network.n_labels)[(limits <= drawn).sum(axis=1)])
                if sweep >= self.burn_in:
                    sums[nodes] += proba
        return sums[network.free] / self.n_samples
