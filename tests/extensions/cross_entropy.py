"""A loss: less is lost by labels that are wrong than the log loss would have it."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from crfkit._types import Counts, Potentials
from crfkit.data.targets import Targets, Weights
from crfkit.losses import Loss
from crfkit.structures import Structure


class GeneralizedCrossEntropy(Loss):
    """``(1 - P(y | x)**q) / q`` (Zhang and Sabuncu 2018, equation 6), for labels with noise.

    It tends to the log loss for ``q -> 0``. The gradient with respect to the potentials is that of
    the log loss, times ``P(y | x)**q``: sequences that the model finds impossible count little.

    Parameters
    ----------
    q : float, default=0.5
        Between 0 and 1: how little impossible labels count.
    """

    needs_sequence_weights: ClassVar[bool] = True

    def __init__(self, q: float = 0.5) -> None:
        self.q = q

    def value_and_grad(
        self,
        structure: Structure,
        potentials: Potentials,
        targets: Targets,
        weights: Weights,
        out: Counts,
    ) -> float:
        """Return the loss of a batch and its gradient, as in :class:`Loss`."""
        weight, labels = self.sequence_weights(weights), targets.labels
        log_z = structure.log_partition(potentials, weight, structure.zeros(potentials))
        power = np.exp(self.q * (structure.score(potentials, labels) - log_z))
        structure.log_partition(potentials, weight * power, out)
        structure.add_counts(potentials, labels, -weight * power, out)
        return float(np.sum(weight * (1.0 - power)) / self.q)
