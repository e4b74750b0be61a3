"""How large a model is going to be."""

from __future__ import annotations

from typing import NamedTuple

from crfkit._warnings import warn_user
from crfkit.potentials import LinearChainModel

# Vectors of P numbers that L-BFGS holds: six pairs of corrections, point, gradient and direction,
# the same of the step before.
SOLVER_VECTORS = 18
LARGE = 50_000_000


class ParameterCounts(NamedTuple):
    """Numbers of weights.

    Attributes
    ----------
    state : int
        (Attribute, label) pairs.
    transitions : int
        (Label, next label) pairs.
    boundaries : int
        First and last labels.
    step_attributes : int
        (Attribute, label, next label) triples.
    lengths : int, default=0
        Of models of segments: (feature of the length, label) pairs.
    segment_attributes : int, default=0
        Of models of segments: (attribute of segments, label) pairs.
    """

    state: int
    transitions: int
    boundaries: int
    step_attributes: int
    lengths: int = 0
    segment_attributes: int = 0

    @property
    def total(self) -> int:
        """All weights."""
        return sum(self)

    @property
    def fit_bytes(self) -> int:
        """Bytes that the vectors of L-BFGS take while fitting, without the training data."""
        return 8 * SOLVER_VECTORS * self.total

    def __str__(self) -> str:
        kinds = {
            "attribute x label": self.state,
            "label x label": self.transitions,
            "boundary": self.boundaries,
            "attribute x label x label": self.step_attributes,
            "length x label": self.lengths,
            "attribute of segments x label": self.segment_attributes,
        }
        named = ", ".join(f"{count:,} {kind}" for kind, count in kinds.items() if count)
        return f"{self.total:,} weights ({named})"


def parameter_counts(model: LinearChainModel) -> ParameterCounts:
    """Return the numbers of weights of a score model."""
    lengths, segments = getattr(model, "lengths", None), getattr(model, "segments", None)
    return ParameterCounts(
        state=model.state.n_parameters,
        transitions=len(model.transition_from),
        boundaries=2 * model.n_labels if model.boundaries else 0,
        step_attributes=model.transitions.n_parameters,
        lengths=0 if lengths is None else lengths.n_parameters,
        segment_attributes=0 if segments is None else segments.n_parameters,
    )


def warn_if_large(model: LinearChainModel) -> None:
    """Warn of a model whose fit may not fit into memory."""
    counts = parameter_counts(model)
    if counts.total > LARGE:
        warn_user(
            f"the model has {counts}; fitting it takes about {counts.fit_bytes / 2**30:.0f} GiB "
            "beside the data. A larger min_freq, fewer templates, or observed pairs only "
            "(all_possible_states=False, all_possible_transitions=False) make it smaller.",
        )
