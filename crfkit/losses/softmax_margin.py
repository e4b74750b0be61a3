"""The log loss with a cost."""

from __future__ import annotations

from typing import Any, ClassVar

from sklearn.base import BaseEstimator

from crfkit._types import CodeArray, Counts, FloatArray, Potentials
from crfkit.losses._costs import find_cost, weight_of_sequences, with_cost
from crfkit.losses.likelihood import LogLoss
from crfkit.structures import Structure, tempered


class SoftmaxMarginLoss(BaseEstimator):  # type: ignore[misc]
    """``log sum_y exp(cost(y) + score(x, y)) - score(x, y_i)`` (Gimpel and Smith 2010, table 1).

    The log loss where the cost is added to the scores of the labels: labellings of a high cost have
    to be less probable than others. It bounds both the log loss and the structured hinge loss from
    above, is convex, and as smooth as the log loss: every gradient solver minimizes it.

    Parameters
    ----------
    cost : "hamming", Cost, dict or array of shape (K, K), default="hamming"
        The number of wrong labels, or a cost that is a sum over tokens. Of a dict or a matrix, the
        estimators make one for their labels (:func:`crfkit.labels.costs.make_cost`).

    Examples
    --------
    >>> from crfkit import CRFClassifier
    >>> CRFClassifier(loss="softmax_margin", cost={"O": 0.5})
    CRFClassifier(cost={'O': 0.5}, loss='softmax_margin')
    """

    requires: ClassVar[tuple[str, ...]] = LogLoss.requires
    is_convex: ClassVar[bool] = True
    is_smooth: ClassVar[bool] = True
    needs_sequence_weights: ClassVar[bool] = True
    takes_cost: ClassVar[bool] = True

    def __init__(self, cost: Any = "hamming") -> None:
        self.cost = cost

    def value_and_grad(
        self,
        structure: Structure,
        scores: Potentials,
        labels: CodeArray,
        weight: FloatArray,
        out: Counts,
    ) -> float:
        """Return the loss of a batch and its gradient, as in :class:`Loss`.

        Raises
        ------
        ValueError
            If the weights of the tokens of a sequence differ, the true labels are forbidden, or
            the cost is not a sum over tokens.
        """
        level = weight_of_sequences(self, weight, scores)
        augmented, structure = self._augmented(scores, labels), tempered(structure, self._heat)
        return self._heat * LogLoss().of_sequences(structure, augmented, labels, level, out)

    def hessian_product(
        self,
        structure: Structure,
        scores: Potentials,
        tangent: Potentials,
        labels: CodeArray,
        weight: FloatArray,
        out: Counts,
    ) -> None:
        """Write the product of the Hessian with a direction, as :meth:`LogLoss.hessian_product`."""
        augmented = self._augmented(scores, labels)
        LogLoss().hessian_product(structure, augmented, tangent, labels, weight / self._heat, out)

    def hessian_diagonal(
        self,
        structure: Structure,
        scores: Potentials,
        labels: CodeArray,
        weight: FloatArray,
        out: Counts,
    ) -> None:
        """Write an estimate of the diagonal of the Hessian, as :meth:`LogLoss.hessian_diagonal`."""
        augmented, structure = self._augmented(scores, labels), tempered(structure, self._heat)
        LogLoss().hessian_diagonal(structure, augmented, labels, weight / self._heat, out)

    @property
    def _heat(self) -> float:
        """The temperature ``tau`` of ``tau log sum_y exp((cost(y) + score(y)) / tau)``."""
        return 1.0

    def _augmented(self, scores: Potentials, labels: CodeArray) -> Potentials:
        """Return ``(cost + score) / tau``."""
        cost = find_cost(self.cost, scores.n_codes)
        augmented, heat = with_cost(scores, labels, cost), self._heat
        if heat == 1.0:
            return augmented
        return augmented._replace(unary=augmented.unary / heat, pair=augmented.pair / heat)
