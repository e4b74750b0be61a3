"""Labels that spread along edges."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components
from scipy.sparse.linalg import cg
from sklearn.exceptions import ConvergenceWarning

from crfkit._params import check_number, check_option
from crfkit._types import FloatArray, IntArray
from crfkit._warnings import warn_user
from crfkit.collective import local
from crfkit.collective.base import CollectiveClassifier
from crfkit.collective.links import Network, inverse
from crfkit.persistence import register

METHODS = ("harmonic", "spreading")
TOLERANCE = 1e-10  # of the residual, relative to the right-hand side


@register
@dataclass(kw_only=True, eq=False, repr=False)
class LabelPropagation(CollectiveClassifier):
    """Label propagation: a node is what its neighbors are, and these what theirs are.

    Known labels spread along the edges; nothing is learned, but by `estimator` if there is one. So
    predictions need the labels of some nodes, given as `known`.

    Parameters
    ----------
    method : {"harmonic", "spreading"}, default="harmonic"
        "harmonic": the probabilities of a node are the mean of those of its neighbors, known labels
        stay (Zhu and Ghahramani 2002; Zhu, Ghahramani and Lafferty 2003). "spreading": ``(1 -
        alpha) (I - alpha S)^-1 Y`` with ``S = D^-1/2 W D^-1/2`` and Y the known labels, local and
        global consistency (Zhou et al. 2004), each row divided by its sum.
    alpha : float, default=0.9
        Of "spreading": what a node takes from its neighbors; at least 0, below 1.
    estimator : estimator, default=None
        A classifier of nodes by their attributes, with `predict_proba`, fitted to the known labels.
        What it says of a node counts as one more neighbor (Zhu, Ghahramani and Lafferty 2003).
    weight : float, default=0.1
        Of `estimator`: with "harmonic" the share of this neighbor, at most 1; with "spreading" what
        it counts in Y beside known labels.

    Attributes
    ----------
    estimator_ : estimator or None
        The fitted classifier.
    prior_ : ndarray of shape (K,)
        The shares of the known labels: probabilities of nodes that no known label can reach, where
        there is no `estimator`.
    classes_ : ndarray of shape (K,)
        The labels.
    transduction_ : LabelSequences
        The labels of the nodes of `fit`: those that were known, and for all others what is
        predicted.

    Notes
    -----
    The linear equations are solved by conjugate gradients, in time linear in the edges for each
    step. Edges that join the same nodes add up; attributes of edges are not used.

    References
    ----------
    Zhu and Ghahramani (2002), "Learning from labeled and unlabeled data with label propagation";
    Zhu, Ghahramani and Lafferty (2003), "Semi-supervised learning using Gaussian fields and
    harmonic functions"; Zhou, Bousquet, Lal, Weston and Schoelkopf (2004), "Learning with local and
    global consistency".

    Examples
    --------
    >>> from crfkit import UNLABELED
    >>> from crfkit.collective import LabelPropagation
    >>> from crfkit.data import FeatureGraph
    >>> path = FeatureGraph([["a"], ["b"], ["c"], ["d"]], [(0, 1), (1, 2), (2, 3)])
    >>> model = LabelPropagation().fit([path], [["x", UNLABELED, UNLABELED, "y"]])
    >>> model.transduction_
    [['x', 'x', 'y', 'y']]
    >>> model.predict_proba([path], known=[["x", UNLABELED, UNLABELED, "y"]])[0][1].round(3)
    array([0.667, 0.333])
    """

    method: str = "harmonic"
    alpha: float = 0.9
    estimator: Any = None
    weight: float = 0.1

    def _check_parameters(self) -> None:
        check_option("method", self.method, METHODS)
        for name, value in {"alpha": self.alpha, "weight": self.weight}.items():
            check_number(name, value)
        if self.alpha >= 1.0:
            raise ValueError(f"alpha={self.alpha!r} must be below 1.")
        if self.weight > 1.0:
            raise ValueError(f"weight={self.weight!r} must be at most 1.")

    def _learn(self, network: Network) -> dict[str, Any]:
        sums = network.indicators().sum(axis=0)
        model = None if self.estimator is None else local.of_attributes(self.estimator, network)
        return {"prior_": sums / sums.sum(), "estimator_": model}

    def _proba(self, network: Network) -> FloatArray:
        free = network.free
        if self.estimator_ is None and len(free) == network.data.n_tokens:
            raise ValueError(
                "no label of the graphs is known, so that there is none to propagate: give some as "
                "known=..., or a classifier of nodes as estimator=..."
            )
        said = np.broadcast_to(self.prior_, (len(free), network.n_labels))
        share = 0.0
        if self.estimator_ is not None:
            said, share = local.proba(self.estimator_, network.attributes(free)), self.weight
        if self.method == "harmonic":
            found = _harmonic(network, said, share)
        else:
            found = _spread(network, share * said, self.alpha)
        missing = found.sum(axis=1) <= 0.0  # no known label reaches them, or hardly
        found[missing] = said[missing]
        found /= found.sum(axis=1, keepdims=True)
        return found


def _harmonic(network: Network, said: FloatArray, share: float) -> FloatArray:
    """Return what is the mean of its neighbors, of which `said` is one with a share, (n, K)."""
    reached = network.free if share > 0.0 else _reached(network)
    found = np.zeros_like(said)
    rows = network.links[reached]
    degrees = rows.sum(axis=1)
    degrees[degrees == 0.0] = 1.0
    place = np.searchsorted(network.free, reached)
    fixed = (1.0 - share) * (rows @ network.indicators())
    fixed += share * degrees[:, None] * said[place]
    matrix = sp.diags_array(degrees) - (1.0 - share) * rows[:, reached]
    found[place] = _solve(matrix, fixed)
    return found


def _spread(network: Network, said: FloatArray, alpha: float) -> FloatArray:
    """Return ``(1 - alpha) (I - alpha S)^-1 Y`` of the nodes that are not known, (n, K)."""
    given = network.indicators()
    given[network.free] = said
    scale = sp.diags_array(np.sqrt(inverse(network.links.sum(axis=1))))
    matrix = sp.eye_array(len(given)) - alpha * (scale @ network.links @ scale)
    return _solve(matrix, (1.0 - alpha) * given)[network.free]


def _solve(matrix: Any, given: FloatArray) -> FloatArray:
    """Return the solution of equations, positive definite, for each column; none is below 0."""
    matrix = matrix.tocsr()
    scale = sp.diags_array(1.0 / matrix.diagonal())
    found = np.zeros_like(given)
    for k, column in enumerate(given.T):
        found[:, k], stopped = cg(matrix, column, rtol=TOLERANCE, M=scale)
        if stopped:
            warn_user(
                f"label {k}: conjugate gradients did not converge in {stopped} steps.",
                ConvergenceWarning,
            )
    return np.maximum(found, 0.0)


def _reached(network: Network) -> IntArray:
    """Return the nodes without a known label from which a path leads to one that has one."""
    _, part = connected_components(network.links, directed=False)
    known = np.isin(part, part[network.is_known])
    return np.flatnonzero(known & ~network.is_known)
