"""How large a model is going to be."""

from __future__ import annotations

from typing import NamedTuple

from crfkit._warnings import warn_user
from crfkit.potentials import PotentialsModel

LARGE = 50_000_000  # weights
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


def warn_if_large(model: PotentialsModel) -> None:
    """Warn of a model whose fit may not fit into memory."""
    counts = ParameterCounts(model.parameter_counts)
    if counts.total > LARGE:
        warn_user(
            f"the model has {counts}; fitting it takes about {counts.fit_bytes / 2**30:.0f} GiB "
            "beside the data. A larger min_freq, fewer templates, or observed pairs only "
            "(all_possible_states=False, all_possible_transitions=False) make it smaller.",
        )
