"""Weights of tokens by their labels."""

from __future__ import annotations

import itertools
from collections.abc import Hashable, Mapping
from typing import Any

import numpy as np

from crfkit._params import check_number
from crfkit._types import FloatArray, ObjectArray
from crfkit.data.labels import LabelStream
from crfkit.data.soft import SoftLabels, label_shares


def token_weights(
    y: Any, class_weight: str | Mapping[Hashable, float] | None = "balanced"
) -> list[FloatArray]:
    """Return weights of tokens by their labels, for `sample_weight` of `fit`.

    The meaning is that of :func:`sklearn.utils.class_weight.compute_sample_weight`, each token
    being a sample.

    Parameters
    ----------
    y : iterable of S sequences of labels
        As for `fit`. ``UNLABELED`` tokens get 0, and do not count for others; of a set of labels,
        or of :class:`SoftLabels`, the mean of the weights.
    class_weight : "balanced", dict or None, default="balanced"
        "balanced": ``N / (K n_k)`` for a label that `n_k` of N tokens have, of K labels; a dict:
        the weight of each label, 1 for those that it does not name; None: 1.

    Returns
    -------
    list of ndarray of shape (T,)
        One for each sequence.

    Raises
    ------
    ValueError, TypeError
        If y or `class_weight` cannot be used; a dict names a label that y does not have; or a
        weight is negative or not finite.

    Examples
    --------
    >>> from crfkit import token_weights
    >>> [w.tolist() for w in token_weights([["O", "O", "B"], ["O"]])]
    [[0.6666666666666666, 0.6666666666666666, 2.0], [0.6666666666666666]]
    """
    if isinstance(y, SoftLabels):
        classes, offsets, shares = y.classes, y.offsets, y.probabilities
    else:
        stream = LabelStream(y, partial=True)
        classes, offsets = stream.classes(), stream.offsets
        shares = label_shares(stream, classes)
    weights = shares @ _class_weights(class_weight, classes, shares)
    return [weights[b:e] for b, e in itertools.pairwise(offsets.tolist())]


def _class_weights(given: Any, classes: ObjectArray, shares: FloatArray) -> FloatArray:
    """Return the weight of each label, shape (K,)."""
    if given is None:
        return np.ones(len(classes))
    if isinstance(given, str) and given == "balanced":
        counts: FloatArray = shares.sum(axis=0)
        used = counts > 0.0
        weights = np.zeros(len(classes))
        weights[used] = counts.sum() / (np.count_nonzero(used) * counts[used])
        return weights
    if not isinstance(given, Mapping):
        raise TypeError(f"class_weight={given!r:.60} must be 'balanced', a dict or None.")
    known = set(classes)
    for label, weight in given.items():
        check_number(f"class_weight[{label!r}]", weight)
        if label not in known:
            raise ValueError(f"class_weight has the label {label!r}, which y does not have.")
    return np.array([given.get(label, 1.0) for label in classes.tolist()], np.float64)
