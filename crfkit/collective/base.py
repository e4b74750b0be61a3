"""What all classifiers of nodes here share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from crfkit._doc_links import DocLink
from crfkit._types import BoolArray, CodeArray, FloatArray, IntArray, ObjectArray
from crfkit.collective.links import Network, adjacency_of
from crfkit.data import LabelSequences
from crfkit.data.labels import by_sequence
from crfkit.data.sequence_list import SequenceList
from crfkit.data.validation import token_place
from crfkit.estimators._interface import asked_for_tags, restore, score
from crfkit.labels.base import TokenLabels
from crfkit.persistence import SaveMixin
from crfkit.training.data import (
    Attributes,
    Schema,
    check_training,
    fitted_attributes,
    fitted_labels,
    pack_new,
    pack_training,
)
from crfkit.training.graphs import pack_graphs


class CollectiveClassifier(BaseEstimator, ABC):  # type: ignore[misc]
    """A classifier that finds the labels of the nodes of graphs, some of which may be known.

    A subclass says what it learns, `_learn`, and how probable labels are, `_proba`.
    """

    classes_: ObjectArray
    scheme_: str = ""
    save = SaveMixin.save
    _doc_link_module = "crfkit"
    _doc_link_template = DocLink()
    score = score
    _fitted_labels, __setstate__ = fitted_labels, restore

    def fit(self, X: Any, y: Any) -> Self:
        """Learn from graphs, and return the estimator.

        Parameters
        ----------
        X : iterable of S graphs
            As for :class:`crfkit.GraphCRF`.
        y : iterable of S sequences of labels
            One for each node; `crfkit.UNLABELED` where it is not known. Nodes without a label are
            neighbors of others all the same.

        Raises
        ------
        ValueError, TypeError
            If X, y or a parameter cannot be used; the message says where (a graph is a sequence, a
            node a position) and why.
        """
        self._check_parameters()
        data, vectorizer = pack_training(X, learn=pack_graphs)
        check_training(data)
        coded = TokenLabels().read(by_sequence(y, data.offsets), data.offsets)
        codes = _single(coded.codes, coded.targets.single, coded.targets.known, data.offsets)
        network = Network(data, adjacency_of(data), codes, len(coded.classes))
        found = self._learn(network) | {
            "classes_": coded.classes,
            "vectorizer_": vectorizer,
            "n_features_in_": data.n_features,
            "_feature_names": data.names,
        }
        old = fitted_attributes(self)
        kept = {name: value for name, value in vars(self).items() if name not in old}
        self.__dict__ = kept | found
        self.transduction_ = self._labels(network)
        return self

    def predict(self, X: Any, *, known: Any = None) -> LabelSequences:
        """Return the labels of nodes.

        Parameters
        ----------
        X : iterable of S graphs
            As for `fit`.
        known : iterable of S sequences of labels, optional
            Labels that are known, as `y` of `fit`, with `crfkit.UNLABELED` where one is to be
            found. They are kept, and tell of their neighbors.

        Returns
        -------
        LabelSequences
            A list with the list of labels of each graph.

        Raises
        ------
        NotFittedError, TypeError, ValueError
            Before `fit`; if X is not as it was there, or a known label is none of the model's.
        """
        return self._labels(self._network(X, known))

    def predict_proba(self, X: Any, *, known: Any = None) -> list[FloatArray]:
        """Return the probabilities of the labels of nodes.

        Parameters
        ----------
        X, known
            As for `predict`.

        Returns
        -------
        list of S ndarrays of shape (T, K)
            In the order of `classes_`; rows sum to 1. A known label has the probability 1.
        """
        network = self._network(X, known)
        return SequenceList(np.split(self._all_proba(network), network.data.offsets[1:-1]))

    @abstractmethod
    def _check_parameters(self) -> None:
        """Raise if a parameter cannot be used."""

    @abstractmethod
    def _learn(self, network: Network) -> dict[str, Any]:
        """Return what is learned: fitted attributes by name."""

    @abstractmethod
    def _proba(self, network: Network) -> FloatArray:
        """Return the probabilities of the labels of the nodes that are not known, (n, K)."""

    def _all_proba(self, network: Network) -> FloatArray:
        """Return the probabilities of labels, those that are known too, (N, K)."""
        found = network.indicators()
        if len(network.free):
            found[network.free] = self._proba(network)
        return found

    def _labels(self, network: Network) -> LabelSequences:
        codes = self._all_proba(network).argmax(axis=1).astype(np.int32)
        return LabelSequences.from_codes(codes, self.classes_, network.data.offsets)

    def _network(self, X: Any, known: Any) -> Network:
        """Return new graphs, and what is known of their labels."""
        check_is_fitted(self)
        data = pack_new(X, self.vectorizer_, self.n_features_in_)
        known_by = Attributes(self.n_features_in_, vars(self)["_feature_names"])
        Schema(known_by, None, None).check(Schema(Schema.of(data).tokens, None, None))
        codes = np.full(data.n_tokens, -1, np.int32)
        if known is not None:
            found = TokenLabels().codes(self, by_sequence(known, data.offsets), data.offsets)
            if not found.possible.all():
                raise ValueError(
                    f"{token_place(data.offsets, int(np.argmin(found.possible)))}: the known label "
                    "is not one of those of the model. Give crfkit.UNLABELED in its place."
                )
            counts = np.ones(data.n_tokens, np.int64)
            if found.allowed is not None:
                counts = found.allowed.sum(axis=1)
            codes = _single(found.codes, counts == 1, counts < len(self.classes_), data.offsets)
        return Network(data, adjacency_of(data), codes, len(self.classes_))

    def __sklearn_is_fitted__(self) -> bool:
        return "classes_" in vars(self)

    def __sklearn_tags__(self) -> Tags:
        return asked_for_tags(super().__sklearn_tags__())


def _single(
    codes: CodeArray, is_single: BoolArray, is_known: BoolArray, offsets: IntArray
) -> CodeArray:
    """Return codes, -1 where nothing is known; ValueError if a node may have one of several."""
    in_part = is_known & ~is_single
    if in_part.any():
        raise ValueError(
            f"{token_place(offsets, int(np.argmax(in_part)))}: the label is one of several, but "
            "this estimator needs one, or crfkit.UNLABELED."
        )
    return np.where(is_single, codes, -1).astype(np.int32)
