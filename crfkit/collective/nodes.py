"""Nodes by themselves."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from crfkit._types import FloatArray
from crfkit.collective import local
from crfkit.collective.base import CollectiveClassifier
from crfkit.collective.links import Network
from crfkit.persistence import register


@register
@dataclass(kw_only=True, eq=False, repr=False)
class NodeClassifier(CollectiveClassifier):
    """Labels of nodes by their own attributes: what edges tell is left out.

    Parameters
    ----------
    estimator : estimator, default=None
        A classifier of scikit-learn with `predict_proba`, or one of sequences, which reads all
        nodes as one sequence; ``TokenClassifier(all_possible_states=True)`` if None.

    Attributes
    ----------
    estimator_ : estimator
        The fitted classifier.
    classes_ : ndarray of shape (K,)
        The labels.
    transduction_ : LabelSequences
        The labels of the nodes of `fit`: those that were known, and for all others what is
        predicted.

    See Also
    --------
    IterativeClassifier : Neighbors' labels are attributes too.
    crfkit.TokenClassifier : The same for sequences.

    Examples
    --------
    >>> from crfkit.collective import NodeClassifier
    >>> from crfkit.datasets import make_planted_partition
    >>> data = make_planted_partition(n_graphs=2, random_state=0)
    >>> model = NodeClassifier().fit(data.X[:1], data.y[:1])
    >>> 0.5 < model.score(data.X[1:], data.y[1:]) < 0.6  # the words of 0.6 are those of their class
    True
    """

    estimator: Any = None

    def _check_parameters(self) -> None:
        pass

    def _learn(self, network: Network) -> dict[str, Any]:
        return {"estimator_": local.of_attributes(self.estimator, network)}

    def _proba(self, network: Network) -> FloatArray:
        return local.proba(self.estimator_, network.attributes(network.free))
