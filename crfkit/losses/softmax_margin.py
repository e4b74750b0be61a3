"""The log loss with a cost, at some temperature: softmax-margin, softened hinge losses."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar

from sklearn.base import BaseEstimator

from crfkit._params import check_number
from crfkit._types import Counts, Potentials
from crfkit.data.targets import Targets, Weights
from crfkit.labels.costs import added_cost, find_cost
from crfkit.losses.base import Loss
from crfkit.losses.likelihood import LogLoss
from crfkit.structures import Structure


class CostAugmentedLoss(BaseEstimator, Loss):  # type: ignore[misc]
    """``tau log sum_y exp((cost(y) + score(x, y)) / tau) - score(x, y_i)``, for some ``tau``."""

    is_convex: ClassVar[bool] = True
    needs_log_z: ClassVar[bool] = True
    needs_sequence_weights: ClassVar[bool] = True
    takes_cost: ClassVar[bool] = True
    has_hessian: ClassVar[bool] = True
    cost: Any

    @property
    @abstractmethod
    def _temperature(self) -> float:
        """The temperature ``tau``."""

    def value_and_grad(
        self,
        structure: Structure,
        potentials: Potentials,
        targets: Targets,
        weights: Weights,
        out: Counts,
    ) -> float:
        """Return the loss of a batch and its gradient, as in :class:`Loss`."""
        self.sequence_weights(weights)
        plain, augmented = self._augmented(structure, potentials, targets)
        loss = LogLoss().value_and_grad(plain, augmented, targets, weights, out)
        return self._temperature * loss

    def hessian_product(
        self,
        structure: Structure,
        potentials: Potentials,
        tangent: Potentials,
        targets: Targets,
        weights: Weights,
        out: Counts,
    ) -> None:
        """Write the product of the Hessian with a direction, as :meth:`LogLoss.hessian_product`."""
        plain, augmented = self._augmented(structure, potentials, targets)
        weights = Weights(weights.tokens, weights.shared / self._temperature)
        LogLoss().hessian_product(plain, augmented, tangent, targets, weights, out)

    def hessian_diagonal(
        self,
        structure: Structure,
        potentials: Potentials,
        targets: Targets,
        weights: Weights,
        out: Counts,
    ) -> None:
        """Write an estimate of the diagonal of the Hessian, as :meth:`LogLoss.hessian_diagonal`."""
        plain, augmented = self._augmented(structure, potentials, targets)
        weights = Weights(weights.tokens, weights.shared / self._temperature)
        LogLoss().hessian_diagonal(plain, augmented, targets, weights, out)

    def _augmented(
        self, structure: Structure, scores: Potentials, targets: Targets
    ) -> tuple[Structure, Potentials]:
        """Return ``(cost + score) / tau``, and a structure that adds no more to it."""
        tau = self._temperature
        cost = find_cost(self.cost, scores.n_codes)
        augmented = scores.plus_unary(added_cost(cost, targets))
        if tau == 1.0:
            return structure, augmented
        whole = structure.with_offset(augmented)
        tempered = whole.with_arrays(*(array / tau for array in whole.arrays()))
        return structure.without_offset(), tempered


class SoftmaxMarginLoss(CostAugmentedLoss):
    """``log sum_y exp(cost(y) + score(x, y)) - score(x, y_i)`` (Gimpel and Smith 2010, table 1).

    The log loss where the cost is added to the scores of the labels: labelings of a high cost have
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

    def __init__(self, cost: Any = "hamming") -> None:
        self.cost = cost

    @property
    def _temperature(self) -> float:
        return 1.0


class SoftenedHingeLoss(CostAugmentedLoss):
    """``tau log sum_y exp((cost(y) + score(x, y)) / tau) - score(x, y_i)`` for a temperature tau.

    With ``tau = 1`` the softmax-margin loss; for ``tau`` towards 0 the structured hinge loss, from
    which it differs by at most ``tau`` times the logarithm of the number of labelings (Hazan and
    Urtasun 2010, who call the temperature epsilon). Smooth and convex for every temperature.

    Parameters
    ----------
    cost : "hamming", Cost, dict or array of shape (K, K), default="hamming"
        As for :class:`SoftmaxMarginLoss`.
    temperature : float, default=0.1
        The temperature, above 0.

    Examples
    --------
    >>> from crfkit import CRFClassifier
    >>> from crfkit.losses import SoftenedHingeLoss
    >>> CRFClassifier(loss=SoftenedHingeLoss(temperature=0.3))
    CRFClassifier(loss=SoftenedHingeLoss(temperature=0.3))
    """

    def __init__(self, cost: Any = "hamming", *, temperature: float = 0.1) -> None:
        self.cost = cost
        self.temperature = temperature

    @property
    def _temperature(self) -> float:
        return _checked(self.temperature, "temperature")


class AnnealedHingeLoss(CostAugmentedLoss):
    """The structured hinge loss, approached by softened ones of falling temperatures.

    Its value is that of :class:`SoftenedHingeLoss` at the last temperature. An estimator lets its
    solver minimize the losses one after the other, each from the weights of the one before: the
    warmer ones are easier to minimize, and bring the weights near the optimum of the next. The
    records of the training log then have the values of different losses, and a gap is known at the
    last temperature only.

    Parameters
    ----------
    cost : "hamming", Cost, dict or array of shape (K, K), default="hamming"
        As for :class:`SoftmaxMarginLoss`.
    temperatures : sequence of float, default=(1.0, 0.3, 0.1, 0.03, 0.01)
        Falling temperatures, above 0.

    Examples
    --------
    >>> from crfkit import CRFClassifier
    >>> from crfkit.losses import AnnealedHingeLoss
    >>> CRFClassifier(loss=AnnealedHingeLoss(temperatures=(1.0, 0.1)))
    CRFClassifier(loss=AnnealedHingeLoss(temperatures=(1.0, 0.1)))
    """

    is_staged: ClassVar[bool] = True

    def __init__(
        self, cost: Any = "hamming", *, temperatures: Sequence[float] = (1.0, 0.3, 0.1, 0.03, 0.01)
    ) -> None:
        self.cost = cost
        self.temperatures = temperatures

    @property
    def _temperature(self) -> float:
        return self._checked_temperatures()[-1]

    def stages(self) -> list[SoftenedHingeLoss]:
        """Return the losses that are minimized one after the other, of falling temperatures."""
        return [
            SoftenedHingeLoss(self.cost, temperature=temperature)
            for temperature in self._checked_temperatures()
        ]

    def _checked_temperatures(self) -> list[float]:
        found = [_checked(value, "temperatures") for value in self.temperatures]
        if not found or any(b >= a for a, b in zip(found[:-1], found[1:], strict=True)):
            raise ValueError(
                f"temperatures={self.temperatures!r} must be falling numbers, at least one."
            )
        return found


def _checked(value: Any, name: str) -> float:
    check_number(name, value)
    if not value > 0.0 or not math.isfinite(1.0 / value):
        raise ValueError(f"{name}={value!r} must be above 0.")
    return float(value)
