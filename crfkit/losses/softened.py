"""The structured hinge loss with rounded corners."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, ClassVar

from crfkit._params import check_number
from crfkit.losses.softmax_margin import CostAugmentedLoss


class SoftenedHingeLoss(CostAugmentedLoss):
    """``tau log sum_y exp((cost(y) + score(x, y)) / tau) - score(x, y_i)`` for a temperature tau.

    With ``tau = 1`` the softmax-margin loss; for ``tau`` towards 0 the structured hinge loss, from
    which it differs by at most ``tau`` times the logarithm of the number of labellings (Hazan and
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
        self,
        cost: Any = "hamming",
        *,
        temperatures: Sequence[float] = (1.0, 0.3, 0.1, 0.03, 0.01),
    ) -> None:
        self.cost = cost
        self.temperatures = temperatures

    @property
    def _temperature(self) -> float:
        return self._checked_temperatures()[-1]

    def stages(self) -> list[SoftenedHingeLoss]:
        """Return the losses that are minimized one after the other.

        Raises
        ------
        ValueError, TypeError
            If the temperatures do not fall, or are not above 0.
        """
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
