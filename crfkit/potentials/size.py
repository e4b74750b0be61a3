"""How large a model is."""

from __future__ import annotations

from typing import NamedTuple

from crfkit.potentials.base import PotentialsModel

# Vectors of P numbers that L-BFGS holds: six pairs of corrections, point, gradient and direction,
# the same of the iteration before.
SOLVER_VECTORS = 18


class ParameterCounts(NamedTuple):
    """Numbers of weights.

    Attributes
    ----------
    by_kind : dict of str to int
        By what the weights are: "attribute x label", "label x label", and so on.
    """

    by_kind: dict[str, int]

    @property
    def total(self) -> int:
        """All weights."""
        return sum(self.by_kind.values())

    @property
    def fit_bytes(self) -> int:
        """Bytes that the vectors of L-BFGS take while fitting, without the training data."""
        return 8 * SOLVER_VECTORS * self.total

    def __str__(self) -> str:
        named = ", ".join(f"{count:,} {kind}" for kind, count in self.by_kind.items() if count)
        return f"{self.total:,} weights ({named})"


def parameter_counts(model: PotentialsModel) -> ParameterCounts:
    """Return the numbers of weights of a model."""
    return ParameterCounts(model.parameter_counts)
