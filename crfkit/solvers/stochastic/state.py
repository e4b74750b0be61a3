"""Searches whose kernel updates the weights after each batch, or after several at once."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

from crfkit._parallel import cut
from crfkit._types import FloatArray, IntArray
from crfkit.compiler.jit import frozen
from crfkit.kernels.solvers.batches import ALL, APPLY, COMPUTE, PREPARE, batch_losses
from crfkit.objective.stochastic import StochasticObjective, rounds
from crfkit.oracles.batches import BatchOracle
from crfkit.oracles.design import PIECES
from crfkit.solvers.stochastic.general import make_batch_oracle

# Batches, and their potentials, that are worked on between two times that the interpreter is heard:
# a few hundredths of a second.
AT_ONCE, POTENTIALS_AT_ONCE = 256, 1 << 20


class BatchUpdates(ABC):
    """Batches that a kernel updates one after the other, or some from the same weights.

    What kernels read of them, the oracle, is the fastest there is, if not given.
    """

    # Whether a batch has to be prepared before it is computed beside others.
    prepares: ClassVar[bool] = False

    def __init__(self, batches: StochasticObjective, oracle: BatchOracle | None) -> None:
        self.batches, self.oracle = batches, oracle or make_batch_oracle(batches)
        # Room for a batch, for each of some threads, and what else the updates of each need.
        self._rooms: list[Any] = []
        self._workspaces: list[Any] = []
        largest = self.oracle.n_potentials // max(len(batches), 1)
        self._at_once = max(1, min(AT_ONCE, POTENTIALS_AT_ONCE // max(largest, 1)))

    @abstractmethod
    def _update(self, order: IntArray, stage: int, workspace: Any) -> None:
        """Update batches, or do that part of it."""

    @abstractmethod
    def _workspace(self, room: Any) -> Any:
        """Return what the updates of a thread need, given room for a batch: more, maybe."""

    def update(self, order: IntArray, batches_per_update: int = 1) -> None:
        """Update some batches, so many of them from the same weights, over threads."""
        while len(self._workspaces) < min(batches_per_update, max(len(order), 1)):
            self._rooms.append(self.oracle.workspace())
            self._workspaces.append(self._workspace(self._rooms[-1]))
        if batches_per_update > 1:
            for chosen in rounds(order, batches_per_update):
                self._update_together(chosen)
            return
        for first in range(0, len(order), self._at_once):
            piece = frozen(order[first : first + self._at_once])
            self.batches.n_computed += len(piece)
            self._update(piece, ALL, self._workspaces[0])

    def _update_together(self, chosen: list[int]) -> None:
        alone = [frozen(np.array([batch])) for batch in chosen]
        if self.prepares:
            self._update(frozen(np.array(chosen)), PREPARE, self._workspaces[0])

        def compute(number: int) -> None:
            self._update(alone[number], COMPUTE, self._workspaces[number])

        self.batches.map_batches(compute, range(len(chosen)))
        for batch, workspace in zip(alone, self._workspaces, strict=False):
            self._update(batch, APPLY, workspace)

    def value(self, w: FloatArray, chosen: IntArray | None = None) -> float:
        """Return the objective at some parameters, or some losses plus their share of the rest."""
        oracle, weights = self.oracle, self.oracle.weights(self.oracle.pack(w))
        every = np.arange(len(self.batches)) if chosen is None else chosen
        idle = list(self._rooms)

        def work(first: int, last: int, losses: FloatArray) -> None:
            try:
                room = idle.pop()
            except IndexError:  # others work in what there is
                room = oracle.workspace()
            oracle.run(batch_losses)(
                frozen(every[first:last]), oracle.problem, weights, room, losses[first:last]
            )
            idle.append(room)

        size = max(1, min(self._at_once, -(-len(every) // PIECES)))
        pieces = cut(slice(0, len(every)), size)
        total, share = sum_of_losses(self.batches, pieces, work), 1.0
        if chosen is not None and len(self.batches):
            share = len(chosen) / len(self.batches)
        return total + share * self.batches.penalty_at(w)

    def evaluate(self, w: FloatArray) -> tuple[FloatArray, float]:
        """Return the parameters and the objective there."""
        return w, self.value(w)


def sum_of_losses(
    batches: StochasticObjective, pieces: list[slice], work: Callable[[int, int, FloatArray], None]
) -> float:
    """Return the sum of what ``work(first, last, losses)`` writes for all batches, over threads."""
    count = pieces[-1].stop if pieces else 0
    losses = np.zeros(count)
    batches.n_computed += count
    batches.threads(lambda piece: work(piece.start, piece.stop, losses), pieces)
    return float(losses.sum())
