"""Losses of the parts of the data, which threads compute."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from crfkit._types import FloatArray
from crfkit.objective.stochastic import StochasticObjective
from crfkit.oracles.token_design import PIECES


def chain_losses(
    batches: StochasticObjective, n_parts: int, work: Callable[[int, int, FloatArray], None]
) -> float:
    """Return the sum of the losses of parts of the data, which threads compute.

    Parameters
    ----------
    batches : StochasticObjective
        The data; a visit of each batch is counted.
    n_parts : int
        How many parts there are.
    work : callable
        Given ``(first, last, losses)``, writes the losses of the parts first to last - 1.
    """
    losses = np.zeros(n_parts)
    edges = np.linspace(0, n_parts, PIECES + 1).astype(int).tolist()
    batches.n_computed += len(batches)
    batches.threads(lambda i: work(edges[i], edges[i + 1], losses), range(PIECES))
    return float(losses.sum())
