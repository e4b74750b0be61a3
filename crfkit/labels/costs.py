"""Costs of wrong labels: what a loss adds to the scores of labels that are not the true ones."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from crfkit._params import check_number, check_option
from crfkit._types import CodeArray, FloatArray, IntArray, ObjectArray
from crfkit._warnings import warn_user
from crfkit.data.targets import Targets


class Cost(ABC):
    """The cost of a labeling, given the true one: never negative, 0 for the true one."""

    is_additive: ClassVar[bool] = False  # a sum over tokens, which has `added`

    @abstractmethod
    def total(self, labels: CodeArray, predicted: CodeArray, offsets: IntArray) -> FloatArray:
        """Return the cost of the predicted codes of labels of each sequence, shape (S,)."""

    @abstractmethod
    def of_labels(self, codes: IntArray) -> Cost:
        """Return the cost where some labels, shape (K2,), are all there are."""

    @abstractmethod
    def of_segments(self) -> Cost:
        """Return the cost of codes of segments (:class:`crfkit.structures.SemiMarkov`)."""

    @abstractmethod
    def check_size(self, n_labels: int) -> None:
        """Raise ValueError if it is the cost of another number of labels."""

    def added(self, labels: CodeArray) -> FloatArray:
        """Return what to add to unary scores, (N, K), given true labels; ValueError if no sum."""
        raise ValueError(
            f"the cost {type(self).__name__} is no sum over tokens, which this loss adds to the "
            "scores. Use cost='hamming' or a matrix, or loss='hinge'."
        )


class AdditiveCost(Cost):
    """A sum over tokens, added to unary scores (Taskar, Guestrin and Koller 2003, section 3).

    `table`, shape (K, K), has at ``[i, j]`` the cost of label `j` where `i` is true. ValueError if
    one is negative or not finite, or not 0 on the diagonal.
    """

    is_additive: ClassVar[bool] = True

    def __init__(self, table: FloatArray) -> None:
        _check_table(table)
        self.table = table

    def check_size(self, n_labels: int) -> None:
        """Raise ValueError if it is the cost of another number of labels."""
        if len(self.table) != n_labels:
            raise ValueError(f"the cost is one of {len(self.table)} labels, not of {n_labels}.")

    def of_labels(self, codes: IntArray) -> AdditiveCost:
        """Return the cost where some labels, shape (K2,), are all there are."""
        return AdditiveCost(np.ascontiguousarray(self.table[codes][:, codes]))

    def added(self, labels: CodeArray) -> FloatArray:
        """Return what to add to the unary scores of tokens with these true labels, (N, K)."""
        return self.table[labels]

    def total(self, labels: CodeArray, predicted: CodeArray, offsets: IntArray) -> FloatArray:
        """Return the cost of the predicted labels of each sequence, shape (S,)."""
        return sums(self.table[labels, predicted], offsets)

    def of_segments(self) -> AdditiveCost:
        """Return the cost of codes: going on with each label, beginning with it.

        Where one is taken for the other, it is that of the worst label; 1 if there is no other.
        """
        size = len(self.table)
        edge = np.ones(1) if size == 1 else self.table.max(axis=1)
        other = self.table + np.diag(edge)
        return AdditiveCost(np.block([[self.table, other], [other, self.table]]))

    @property
    def counts_errors(self) -> bool:
        """Whether it is the Hamming loss: the number of wrong labels."""
        return bool(np.array_equal(self.table, hamming(len(self.table)).table))


class ZeroOneCost(Cost):
    """1 where any label of a sequence is wrong."""

    def check_size(self, n_labels: int) -> None:
        """Accept any number of labels."""

    def of_labels(self, codes: IntArray) -> ZeroOneCost:
        """Return itself: it is the same for all labels."""
        return self

    def of_segments(self) -> ZeroOneCost:
        """Return itself: it is the same for all codes."""
        return self

    def total(self, labels: CodeArray, predicted: CodeArray, offsets: IntArray) -> FloatArray:
        """Return the cost of the predicted labels of each sequence, shape (S,)."""
        return np.minimum(sums((labels != predicted).astype(float), offsets), 1.0)


def added_cost(cost: Cost, targets: Targets) -> FloatArray:
    """Return what a cost adds to unary scores, (N, C), given what is known of the true labels.

    Where a token may have several, the least that each label costs: nothing, if it is allowed.
    """
    added = cost.added(targets.states)
    if targets.allowed is None:
        return added
    several = np.flatnonzero(targets.allowed.sum(axis=1) > 1)
    allowed, least = targets.allowed[several], np.zeros((len(several), added.shape[1]))
    some = ~allowed.all(axis=1)
    least[some] = np.inf
    for code in np.flatnonzero(allowed[some].any(axis=0)):
        rows = np.flatnonzero(some & allowed[:, code])
        least[rows] = np.minimum(least[rows], cost.added(np.array([code], np.int32)))
    added[several] = least
    return added


def total_cost(cost: Cost, targets: Targets, predicted: CodeArray, offsets: IntArray) -> FloatArray:
    """Return the cost of predicted codes of each sequence, (S,), given what is known of the true.

    ValueError for a cost that is no sum over tokens, where tokens may have several labels.
    """
    if targets.allowed is None:
        return cost.total(targets.states, predicted, offsets)
    return sums(added_cost(cost, targets)[np.arange(len(predicted)), predicted], offsets)


def sums(values: FloatArray, offsets: IntArray) -> FloatArray:
    """Return the sum over the tokens of each sequence, shape (S,)."""
    runs = np.add.reduceat(np.append(values, 0.0), np.minimum(offsets[:-1], len(values)))
    return np.where(np.diff(offsets) > 0, runs, 0.0)


def hamming(n_labels: int) -> AdditiveCost:
    """Return the Hamming loss, the number of wrong labels."""
    return AdditiveCost(1.0 - np.eye(n_labels))


def find_cost(cost: Any, n_labels: int) -> Cost:
    """Return the cost of a loss, which may be the name of one that is the same for all labels."""
    if isinstance(cost, str) and cost in ("hamming", "zero_one"):
        return hamming(n_labels) if cost == "hamming" else ZeroOneCost()
    if not isinstance(cost, Cost):
        raise TypeError(
            f"cost={cost!r:.80} must be 'hamming', 'zero_one' or a cost made of labels by "
            "crfkit.labels.costs.make_cost."
        )
    cost.check_size(n_labels)
    return cost


def make_cost(cost: Any, classes: ObjectArray) -> Cost:
    """Return a cost, given the labels, (K,), and what users say, or raise what is wrong with that.

    "hamming", "zero_one", a dict of true labels (1 for others), or the table of an `AdditiveCost`.
    """
    if isinstance(cost, str):
        check_option("cost", cost, ("hamming", "zero_one"))
        return ZeroOneCost() if cost == "zero_one" else hamming(len(classes))
    if isinstance(cost, Mapping):
        return _weighted(cost, classes)
    try:
        table = np.array(cost, np.float64)
    except (TypeError, ValueError) as error:
        raise TypeError(
            f"cost={cost!r:.80} must be 'hamming', 'zero_one', a dict of costs of true labels, or "
            "a matrix."
        ) from error
    shape = (len(classes), len(classes))
    if table.shape != shape:
        raise ValueError(
            f"cost has the shape {table.shape}, but there are {len(classes)} labels: give a matrix "
            f"of shape {shape}, its rows the true labels in the order of classes_. A part of the "
            "data may lack labels, as in cross-validation: give a dict then."
        )
    return AdditiveCost(table)


def _weighted(cost: Mapping[Any, Any], classes: ObjectArray) -> AdditiveCost:
    known = set(classes.tolist())
    for label, value in cost.items():
        check_number(f"cost[{label!r}]", value)
    unknown = [label for label in cost if label not in known]
    if unknown:
        # A part of the data, as in cross-validation, may lack a rare label.
        warn_user(
            f"cost names the label {unknown[0]!r}, which does not occur in y: it has no effect."
        )
    weights = np.array([float(cost.get(label, 1.0)) for label in classes.tolist()])
    return AdditiveCost(weights[:, None] * (1.0 - np.eye(len(classes))))


def _check_table(table: FloatArray) -> None:
    wrong = ~(np.isfinite(table) & (table >= 0.0)) | (np.eye(len(table), dtype=bool) & (table != 0))
    if wrong.any():
        i, j = np.argwhere(wrong)[0]
        raise ValueError(
            f"cost[{i}, {j}]={table[i, j]:g} (the true label first): costs must be finite numbers "
            "of at least 0, and 0 on the diagonal."
        )
