"""How large a model is going to be."""

from __future__ import annotations

from crfkit._warnings import warn_user
from crfkit.potentials import PotentialsModel
from crfkit.potentials.size import parameter_counts

LARGE = 50_000_000


def warn_if_large(model: PotentialsModel) -> None:
    """Warn of a model whose fit may not fit into memory."""
    counts = parameter_counts(model)
    if counts.total > LARGE:
        warn_user(
            f"the model has {counts}; fitting it takes about {counts.fit_bytes / 2**30:.0f} GiB "
            "beside the data. A larger min_freq, fewer templates, or observed pairs only "
            "(all_possible_states=False, all_possible_transitions=False) make it smaller.",
        )
