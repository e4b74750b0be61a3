"""State of the exponentiated-gradient dual: distributions of batches, and the weights they give."""

from __future__ import annotations

from typing import Any

import numpy as np

from crfkit._types import FloatArray, IntArray
from crfkit.compiler.jit import frozen
from crfkit.kernels.solvers.eg import (
    DualBlocks,
    DualSettings,
    DualWeights,
    eg_apply,
    eg_propose,
    eg_updates,
)
from crfkit.objective.stochastic import StochasticObjective, rounds
from crfkit.oracles.batches import BatchOracle
from crfkit.solvers.stochastic.general import make_batch_oracle, total_loss

# Potential of the true labels before a batch is first updated, all others being 0.
GOLD = 12.0
# Batches that are updated between two times that the interpreter is heard.
AT_ONCE = 256


class DualState:
    """Distributions of all batches, and the weights they amount to.

    Parameters
    ----------
    batches : StochasticObjective
        The data.
    own_w : bool
        Whether the weights are another vector than the dual one: a penalty shrinks them.
    oracle : BatchOracle, optional
        What kernels read of the batches; the fastest there is, if not given.

    Attributes
    ----------
    blocks : DualBlocks
        The distributions, with their entropies, rates and gaps.
    dual, w : ndarray of shape (L,)
        The dual vector and the weights.
    """

    def __init__(
        self, batches: StochasticObjective, own_w: bool, oracle: BatchOracle | None = None
    ) -> None:
        self.batches, self.oracle = batches, oracle or make_batch_oracle(batches)
        self.dual = self.oracle.pack(np.zeros(batches.n_parameters))
        self.w = self.dual.copy() if own_w else self.dual
        self._workspaces: list[Any] = []
        potentials, counts = self.oracle.true_labels(GOLD)
        sums = np.zeros((3, len(batches)))
        self.blocks = DualBlocks(potentials.astype(np.float32), counts, *sums)

    @property
    def entropies(self) -> FloatArray:
        """Sum of the entropies of each batch, weighted, shape (B,)."""
        return self.blocks.entropies

    @property
    def rates(self) -> FloatArray:
        """How far the next update of each batch goes, shape (B,)."""
        return self.blocks.rates

    @property
    def gaps(self) -> FloatArray:
        """About the part of each batch in the gap at its last update, shape (B,); 0 before."""
        return self.blocks.gaps

    def collect(self, flat: FloatArray) -> FloatArray:
        """Return the parameters, shape (P,), in a vector of shape (L,): a new array."""
        return self.oracle.unpack(flat)

    def reset(self) -> None:
        """Put all distributions on the true labels: entropy 0, no weights."""
        potentials, counts = self.oracle.true_labels(GOLD)
        self.blocks.potentials[:], self.blocks.expected[:] = potentials, counts
        for vector in (self.entropies, self.gaps, self.dual, self.w):
            vector[:] = 0.0

    def advance(
        self, order: IntArray, batches_per_update: int, c2: float, threshold: float
    ) -> None:
        """Update some batches, where that raises the dual.

        Parameters
        ----------
        order : ndarray of shape (n,)
            The batches.
        batches_per_update : int
            So many updates are computed from the same weights, over threads.
        c2, threshold : float
            The penalty, and by how much it shrinks the dual vector.
        """
        settings = DualSettings(0.5 / c2, float(threshold), False)
        if batches_per_update == 1:
            self._run(order, self.w, settings)
            return
        for chosen in rounds(order, batches_per_update):
            self._update_together(chosen, settings)

    def adopt(self, parameters: FloatArray, c2: float, threshold: float) -> None:
        """Move all distributions, from the true labels, to those of some parameters."""
        self.rates[:] = 1.0
        settings = DualSettings(0.5 / c2, float(threshold), True)
        self._run(np.arange(len(self.batches)), self.oracle.pack(parameters), settings)

    def value(self, parameters: FloatArray) -> float:
        """Return the objective at some parameters."""
        loss = total_loss(self.batches, self.oracle, parameters)
        return loss + self.batches.penalty_at(parameters)

    def _weights(self, read: FloatArray) -> DualWeights:
        views = self.oracle.weights
        return DualWeights(views(read), views(self.dual), views(self.w))

    def _workspace(self, number: int) -> Any:
        while len(self._workspaces) <= number:
            self._workspaces.append(self.oracle.workspace())
        return self._workspaces[number]

    def _run(self, order: IntArray, read: FloatArray, settings: DualSettings) -> None:
        """Update batches, one after the other, towards the potentials of some weights."""
        oracle, weights, workspace = self.oracle, self._weights(read), self._workspace(0)
        for first in range(0, len(order), AT_ONCE):
            piece = frozen(order[first : first + AT_ONCE])
            self.batches.n_computed += len(piece)
            oracle.run(eg_updates)(
                piece, settings, oracle.problem, oracle.index, self.blocks, weights, workspace
            )

    def _update_together(self, chosen: list[int], settings: DualSettings) -> None:
        """Compute the updates of batches from the same weights, and make one after the other."""
        oracle, weights = self.oracle, self._weights(self.w)
        workspaces = [self._workspace(number) for number in range(len(chosen))]
        propose, apply = oracle.run(eg_propose), oracle.run(eg_apply)

        def work(number: int) -> Any:
            return propose(
                chosen[number], oracle.problem, oracle.index, self.blocks, weights.read,
                workspaces[number],
            )  # fmt: skip

        proposals = self.batches.map_batches(work, range(len(chosen)))
        for batch, proposal, workspace in zip(chosen, proposals, workspaces, strict=True):
            apply(
                batch, proposal, settings, oracle.problem, oracle.index, self.blocks, weights,
                workspace,
            )  # fmt: skip
