"""Classifiers of single nodes, given their attributes and what their neighbors are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.utils import get_tags

from crfkit._params import check_method
from crfkit._types import CodeArray, FloatArray
from crfkit.collective.links import Network, inverse
from crfkit.data import PackedSequences
from crfkit.estimators import TokenClassifier


def _count(counts: FloatArray) -> FloatArray:
    """Return how many neighbors have each label."""
    return counts


def _proportion(counts: FloatArray) -> FloatArray:
    """Return the share of the neighbors that have each label; none where there are none."""
    return counts * inverse(counts.sum(axis=1))[:, None]


def _mode(counts: FloatArray) -> FloatArray:
    """Return 1 for the label that most neighbors have, the first of several."""
    largest = counts.argmax(axis=1)[:, None] == np.arange(counts.shape[1])
    return np.asarray(largest & (counts > 0.0), float)


def _exists(counts: FloatArray) -> FloatArray:
    """Return 1 for each label that a neighbor has."""
    return np.asarray(counts > 0.0, float)


# What a node is told of its neighbors' labels, given how many have each label, (n, K).
AGGREGATES: dict[str, Callable[[FloatArray], FloatArray]] = {
    "count": _count, "proportion": _proportion, "mode": _mode, "exists": _exists
}  # fmt: skip


def fitted(estimator: Any, rows: Any, codes: CodeArray) -> Any:
    """Return a clone of a classifier that has learned codes from rows of attributes."""
    if estimator is None:
        estimator = TokenClassifier(all_possible_states=True)
    check_method("estimator", estimator, "predict_proba", "None")
    model = clone(estimator)
    if _of_sequences(model):
        return model.fit(_packed(rows), [codes.tolist()])
    return model.fit(rows, codes)


def of_attributes(estimator: Any, network: Network) -> Any:
    """Return a clone of a classifier that has learned the known labels from own attributes."""
    known = np.flatnonzero(network.is_known)
    return fitted(estimator, network.attributes(known), network.codes[known])


def proba(model: Any, rows: Any) -> FloatArray:
    """Return the probabilities of codes, (n, K), given rows of attributes."""
    if not rows.shape[0]:
        return np.zeros((0, len(model.classes_)))
    found = model.predict_proba(_packed(rows))[0] if _of_sequences(model) else None
    return np.asarray(model.predict_proba(rows) if found is None else found, float)


def joined(rows: Any, relations: FloatArray) -> Any:
    """Return attributes with those that neighbors' labels make, (n, D + K)."""
    if sp.issparse(rows):
        return sp.hstack([rows, sp.csr_array(relations)], format="csr")
    return np.hstack([rows, relations])


def _of_sequences(estimator: Any) -> bool:
    return bool(get_tags(estimator).estimator_type == "sequence_classifier")


def _packed(rows: Any) -> PackedSequences:
    return PackedSequences.from_flat(rows, [rows.shape[0]])
