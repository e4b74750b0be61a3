"""Losses that are given by the worst labeling of each sequence: hinge losses, the perceptron's."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar, NamedTuple

import numpy as np
from sklearn.base import BaseEstimator

from crfkit._params import check_option
from crfkit._types import BoolArray, CodeArray, Counts, FloatArray, IntArray, Potentials
from crfkit.data.targets import Targets, Weights
from crfkit.labels.costs import AdditiveCost, Cost, ZeroOneCost, added_cost, find_cost, total_cost
from crfkit.losses.base import Loss
from crfkit.losses.likelihood import forbidden_labels, raise_if_forbidden
from crfkit.structures import NoPathError, Structure

RESCALINGS, SEARCHES = ("margin", "slack"), ("exact", "approximate")
# Labelings that an approximate search looks at, at most; each is a vertex of a hull.
MOST_VERTICES = 30


class WorstLabelingLoss(BaseEstimator, Loss):  # type: ignore[misc]
    """The largest loss of a labeling, which is linear in the scores: convex, with corners."""

    is_convex: ClassVar[bool] = True
    is_smooth: ClassVar[bool] = False
    needs_sequence_weights: ClassVar[bool] = True

    def worst(
        self, structure: Structure, scores: Potentials, labels: CodeArray
    ) -> tuple[CodeArray, FloatArray]:
        """Return the worst labeling of each sequence, shape (N,), and its loss, shape (S,).

        The true one where no loss is above 0. ValueError if it is forbidden, or there is no search.
        """
        path, value, _ = self._find(structure, scores, labels, Targets(labels))
        return path, value

    def value_and_grad(
        self,
        structure: Structure,
        potentials: Potentials,
        targets: Targets,
        weights: Weights,
        out: Counts,
    ) -> float:
        """Return the loss of a batch and a subgradient, as in :class:`Loss`.

        Where tokens may have several labels, the true labeling is the best that is allowed: not
        convex. Allowed labels cost nothing.
        """
        level, labels = self.sequence_weights(weights), best_allowed(structure, potentials, targets)
        path, value, slope = self._find(structure, potentials, labels, targets)
        out.unary[...] = 0.0
        structure.add_counts(potentials, path, level * slope, out)
        structure.add_counts(potentials, labels, -level * slope, out)
        return float(np.sum(level * value))

    def _find(
        self, structure: Structure, scores: Potentials, labels: CodeArray, targets: Targets
    ) -> tuple[CodeArray, FloatArray, FloatArray]:
        """Return the worst labelings, their losses, and the slopes of these by the scores.

        Given the true labels, and what is known of them.
        """
        gold = structure.score(scores, labels)
        if np.isneginf(gold).any():
            raise_if_forbidden(gold, structure.argmax(scores)[1], scores)
        path = self._search(structure, scores, targets, gold)
        rise = structure.score(scores, path) - gold
        value, slope = self._linear(scores, targets, path, rise)
        none = value <= 0.0  # also where rounding makes a tie of it
        value[none] = 0.0
        return np.where(np.repeat(none, np.diff(scores.offsets)), labels, path), value, slope

    @abstractmethod
    def _search(
        self, structure: Structure, scores: Potentials, targets: Targets, gold: FloatArray
    ) -> CodeArray:
        """Return the worst labelings, given the scores of the true ones, shape (S,)."""

    @abstractmethod
    def _linear(
        self, scores: Potentials, targets: Targets, path: CodeArray, rise: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Return the losses of labelings, and their slopes, given how much better they score."""


def best_allowed(structure: Structure, potentials: Potentials, targets: Targets) -> CodeArray:
    """Return the labeling of the largest score of those that are allowed, (N,).

    ValueError where none is.
    """
    if targets.allowed is None:
        return targets.states
    try:
        return structure.argmax(potentials.clamp(targets.allowed))[0]
    except NoPathError as error:
        first = int(potentials.offsets[error.sequence - potentials.first])
        raise forbidden_labels(potentials, first) from error


class PerceptronLoss(WorstLabelingLoss):
    """``max_y score(x, y) - score(x, y_i)``: how much the best labeling scores above the true one.

    A step along its subgradient is the update of the structured perceptron (Collins 2002). It has
    no margin, so that it is 0, its least value, where all weights are 0: a search that starts there
    stays there. To learn by such steps use :class:`crfkit.StructuredPerceptron`.

    Examples
    --------
    >>> from crfkit.losses import PerceptronLoss
    >>> PerceptronLoss()
    PerceptronLoss()
    """

    def _search(
        self, structure: Structure, scores: Potentials, targets: Targets, gold: FloatArray
    ) -> CodeArray:
        return structure.argmax(scores)[0]

    def _linear(
        self, scores: Potentials, targets: Targets, path: CodeArray, rise: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        return rise, np.ones_like(rise)


class HingeLoss(WorstLabelingLoss):
    """The structured hinge loss, with one slack variable a sequence.

    With margin rescaling (Taskar, Guestrin and Koller 2003)::

        max_y  cost(y) + score(x, y) - score(x, y_i)

    and with slack rescaling (Tsochantaridis, Hofmann, Joachims and Altun 2004, section 3)::

        max_y  cost(y) (1 + score(x, y) - score(x, y_i))

    Both bound the cost of the labeling of the largest score from above, and are 0 where the true
    labels win by the margin. The worst labeling is found exactly: by the best path, where the
    cost is a sum over tokens and is added to the scores; by the best paths for each number of
    errors (:meth:`crfkit.structures.Chain.max_by_hamming`) for slack rescaling with the Hamming
    cost, and for any cost that is 1 where any label is wrong. Slack rescaling with the Hamming cost
    takes time and memory in proportion to the square of the length of a sequence.

    Parameters
    ----------
    cost : {"hamming", "zero_one"}, Cost, dict or array of shape (K, K), default="hamming"
        The number of wrong labels, 1 where any is wrong, or a cost. Of a dict or a matrix, the
        estimators make one for their labels (:func:`crfkit.labels.costs.make_cost`).
    rescaling : {"margin", "slack"}, default="margin"
        What the cost multiplies.
    search : {"exact", "approximate"}, default="exact"
        For slack rescaling with a cost that is neither of the two, there is only an approximate
        search: the labeling of the largest ``score + lambda cost`` is looked for, with a
        multiplier that is narrowed down until no new labeling comes (Sarawagi and Gupta 2008).
        Only labelings that are best for some multiplier are found, so the loss it
        returns is a lower bound of the true one. Used only where there is a choice.

    Examples
    --------
    >>> from crfkit import CRFClassifier
    >>> from crfkit.losses import HingeLoss
    >>> CRFClassifier(loss=HingeLoss(rescaling="slack"))
    CRFClassifier(loss=HingeLoss(rescaling='slack'))
    """

    takes_cost: ClassVar[bool] = True
    is_hinge: ClassVar[bool] = True

    def __init__(
        self, cost: Any = "hamming", *, rescaling: str = "margin", search: str = "exact"
    ) -> None:
        self.cost = cost
        self.rescaling = rescaling
        self.search = search

    def value_and_bound(
        self, structure: Structure, scores: Potentials, labels: CodeArray, weight: FloatArray
    ) -> tuple[float, float]:
        """Return the loss of a batch by labelings that are found, and what it cannot exceed.

        For margin rescaling, a cost that is a sum over tokens, weights of sequences, (S,), and a
        structure that knows bounds of its search.
        """
        cost, gold = find_cost(self.cost, scores.n_codes), structure.score(scores, labels)
        seen = scores.plus_unary(added_cost(cost, Targets(labels)))
        _, found, bound = structure.bounded_argmax(seen)
        losses = np.maximum(np.stack([found, bound]) - gold, 0.0)
        used = weight > 0.0  # where it is 0, no bound need be known
        value, most = (losses[:, used] * weight[used]).sum(axis=1).tolist()
        return value, most

    def _search(
        self, structure: Structure, scores: Potentials, targets: Targets, gold: FloatArray
    ) -> CodeArray:
        check_option("rescaling", self.rescaling, RESCALINGS)
        check_option("search", self.search, SEARCHES)
        cost = find_cost(self.cost, scores.n_codes)
        whole, labels = isinstance(cost, ZeroOneCost), targets.states
        if targets.allowed is not None and (whole or self.rescaling == "slack"):
            raise ValueError(
                "where labels are known in part, the hinge loss needs margin rescaling and a cost "
                "that is a sum over tokens: 'hamming', a dict or a matrix."
            )
        if whole:
            return _worst_by_errors(structure, scores, labels, gold, most=1)
        if self.rescaling == "margin":
            return structure.argmax(scores.plus_unary(added_cost(cost, targets)))[0]
        if self.search == "approximate":
            return _worst_vertex(structure, scores, labels, gold, cost)
        if isinstance(cost, AdditiveCost) and cost.counts_errors:
            return _worst_by_errors(structure, scores, labels, gold)
        raise ValueError(
            "slack rescaling has an exact search for the costs 'hamming' and 'zero_one' only. Use "
            "one of them, rescaling='margin', or search='approximate', which finds a lower bound "
            "of the loss."
        )

    def _linear(
        self, scores: Potentials, targets: Targets, path: CodeArray, rise: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        found = find_cost(self.cost, scores.n_codes)
        cost = total_cost(found, targets, path, scores.offsets)
        if self.rescaling == "margin":
            return cost + rise, np.ones_like(rise)
        return cost * (1.0 + rise), cost


def _worst_by_errors(
    structure: Structure,
    scores: Potentials,
    labels: CodeArray,
    gold: FloatArray,
    most: int | None = None,
) -> CodeArray:
    """Return the labelings of the largest ``d (1 + score - gold)``, for ``d`` wrong labels."""
    value = structure.max_by_hamming(scores, labels, most)
    gain = np.zeros_like(value)
    gain[:, 1:] = np.arange(1, value.shape[1]) * (1.0 + value[:, 1:] - gold[:, None])
    return structure.path_at_hamming(scores, labels, gain.argmax(axis=1), most)


class _Vertex(NamedTuple):
    """A labeling of each sequence, as the point (cost, rise of the score)."""

    path: CodeArray
    cost: FloatArray
    rise: FloatArray

    def where(self, chosen: BoolArray, other: _Vertex, lengths: IntArray) -> _Vertex:
        """Return this one for the chosen sequences, shape (S,), the other one for the rest."""
        path = np.where(np.repeat(chosen, lengths), self.path, other.path)
        return _Vertex(
            path, np.where(chosen, self.cost, other.cost), np.where(chosen, self.rise, other.rise)
        )

    @property
    def gain(self) -> FloatArray:
        """What slack rescaling makes of it."""
        return self.cost * (1.0 + self.rise)


def _worst_vertex(
    structure: Structure, scores: Potentials, labels: CodeArray, gold: FloatArray, cost: Cost
) -> CodeArray:
    """Return labelings of a large ``cost (1 + score - gold)``, the largest on a hull.

    Points (cost, rise) on the upper hull are the best for some multiplier, the slope there. It is
    cut at the vertex of the slope of the line between two, and the part is kept that the product
    rises into: right of a vertex where the hull falls by less than ``(1 + rise) / cost``.
    """
    lengths, added = np.diff(scores.offsets), cost.added(labels)

    def vertex(multiplier: FloatArray) -> _Vertex:
        factor = np.repeat(multiplier, lengths)[:, None]
        path = structure.argmax(scores.plus_unary(factor * added))[0]
        rise = structure.score(scores, path) - gold
        return _Vertex(path, cost.total(labels, path, scores.offsets), rise)

    left = vertex(np.zeros(len(gold)))
    least = added[added > 0.0].min(initial=np.inf)
    right = vertex((1.0 + left.rise) / least)
    best = right.where(right.gain > left.gain, left, lengths)
    for _ in range(MOST_VERTICES - 2):
        width = right.cost - left.cost
        slope = np.zeros(len(gold))
        np.divide(left.rise - right.rise, width, out=slope, where=width > 0.0)
        middle = vertex(slope)
        inside = (left.cost < middle.cost) & (middle.cost < right.cost)
        if not inside.any():
            break
        best = middle.where(inside & (middle.gain > best.gain), best, lengths)
        rises = 1.0 + middle.rise > slope * middle.cost
        left = middle.where(inside & rises, left, lengths)
        right = middle.where(inside & ~rises, right, lengths)
    return best.path
