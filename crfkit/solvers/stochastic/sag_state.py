"""State of stochastic average gradient (SAG): gradient memory and lazily moved weights."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from crfkit._types import FloatArray, IntArray, IterationRecord, Random
from crfkit.compiler.jit import frozen
from crfkit.kernels.solvers.sag import (
    GUESS,
    KNOWN,
    N_NUMBERS,
    SCALE,
    GradientMemory,
    LineRoom,
    Lipschitz,
    StepSettings,
    sag_apply,
    sag_catch_up,
    sag_evaluate,
    sag_settle,
    sag_updates,
    survey,
)
from crfkit.kernels.solvers.vector import vector_dot
from crfkit.objective.stochastic import StochasticObjective, rounds
from crfkit.oracles.batches import BatchOracle
from crfkit.solvers.stochastic.base import Search
from crfkit.solvers.stochastic.general import make_batch_oracle, total_loss
from crfkit.solvers.stochastic.lipschitz import LipschitzEstimates, Preconditioner

# Batches, and their potentials, that are worked on between two times that the interpreter is heard:
# a few hundredths of a second.
AT_ONCE, POTENTIALS_AT_ONCE = 256, 1 << 20
# The objective is evaluated where the gap that is expected from the last losses of the batches is
# below so many times the one asked for.
NEARLY = 2.0


class SagState(Search):
    """The parameters, the last gradient of each batch, and their sum.

    Parameters
    ----------
    batches : StochasticObjective
        The data.
    start : ndarray of shape (P,)
        First parameters; not changed.
    oracle : BatchOracle, optional
        What kernels read of the batches; the fastest there is, if not given.

    Attributes
    ----------
    smoothness : LipschitzEstimates
        Of the loss of each batch.
    """

    batches: StochasticObjective

    def __init__(
        self, batches: StochasticObjective, start: FloatArray, oracle: BatchOracle | None = None
    ) -> None:
        self.batches, preconditioner = batches, Preconditioner(batches)
        self.smoothness = LipschitzEstimates(batches)
        self.oracle = oracle = oracle or make_batch_oracle(batches)
        self._metric = oracle.metric(preconditioner)
        self._lazy = oracle.lazy(oracle.pack(start))
        count = len(batches)
        losses, offsets, known = np.zeros((3, count))
        self._memory = GradientMemory(
            np.zeros(oracle.n_potentials), losses, offsets, known, np.zeros(N_NUMBERS)
        )
        self._memory.numbers[[SCALE, GUESS]] = 1.0, batches.mean_square or 1.0
        decay = 2.0 * batches.penalty.l2 / max(count, 1)
        steepest = decay * preconditioner.most
        self._settings = StepSettings(decay, math.inf, steepest, preconditioner.caution)
        largest = oracle.n_potentials // max(count, 1)
        self._at_once = max(1, min(AT_ONCE, POTENTIALS_AT_ONCE // max(largest, 1)))
        self._rooms: list[tuple[LineRoom, Any]] = []
        self._w = start.copy()
        if start.any():  # else the first steps would lead away from what is good already
            self.refresh()

    @property
    def direction(self) -> FloatArray:
        """The sum of the remembered gradients of the loss, shape (P,)."""
        return self.oracle.unpack(self._lazy.direction.flat)

    def weights(self) -> FloatArray:
        """Return the parameters after all steps, a new array."""
        self.oracle.run(sag_settle)(self.oracle.problem, self._memory, self._lazy)
        self._w = self.oracle.unpack(self._lazy.v.flat)
        return self._w.copy()

    def run_pass(self, random: Random, batches_per_update: int) -> None:
        """Make as many steps as there are batches."""
        order = self.smoothness.draw(random)
        if batches_per_update == 1:
            self._run(order, self._settings)
            return
        for chosen in rounds(order, batches_per_update):
            self._update_together(chosen)

    def refresh(self) -> None:
        """Compute the gradients of all batches at the current parameters."""
        self.weights()
        self._run(np.arange(len(self.batches)), self._settings._replace(longest=0.0))

    def value(self, w: FloatArray) -> float:
        """Return the objective at some parameters."""
        return total_loss(self.batches, self.oracle, w) + self.batches.penalty_at(w)

    def evaluate(self, w: FloatArray) -> tuple[FloatArray, float]:
        """Return the parameters and the objective there."""
        return w, self.value(w)

    def distance(self, value: float) -> tuple[float, float]:
        """Return the norm of the gradient and the gap, NaN where the loss is not convex."""
        bound = self.lower_bound() if self._is_convex else -math.inf
        gap = max(value - bound, 0.0) if math.isfinite(bound) else math.nan
        return self.gradient_norm(), gap

    def is_near(self, tol: float, last: IterationRecord) -> bool:
        """Whether the gap is not known, or is expected below `tol`."""
        if not (self.batches.penalty.l2 and self._is_convex):
            return True
        return self.expected_gap() <= NEARLY * tol * abs(last.value)

    def gradient_norm(self) -> float:
        """Return the norm of the remembered gradient; to be called right after `weights`."""
        if self._n_known < len(self.batches):
            return math.nan
        gradient = self.direction + 2.0 * self.batches.penalty.l2 * self._w
        return math.sqrt(vector_dot(frozen(gradient), frozen(gradient)))

    def lower_bound(self) -> float:
        """Return a value that no parameters have less than.

        The least value of the tangents plus the penalty: ``sum_b offset_b - |d|^2 / (4 c2)``.
        """
        if self._n_known < len(self.batches):
            return -math.inf
        offset = float(self._memory.offsets.sum())
        direction = self.direction
        square = vector_dot(frozen(direction), frozen(direction))
        if square == 0.0:
            return offset
        c2 = self.batches.penalty.l2
        return offset - square / (4.0 * c2) if c2 else -math.inf

    def expected_gap(self) -> float:
        """Return what the gap would be if all losses still were the remembered ones.

        To be called right after `weights`. Losses of earlier parameters are larger as a rule.
        """
        loss = float(self._memory.losses.sum())
        return loss + self.batches.penalty.smooth_value(self._w) - self.lower_bound()

    @property
    def _is_convex(self) -> bool:
        """Whether the loss lies above its tangents."""
        return bool(self.batches.has_sequence_weights and self.batches.loss.is_convex)

    @property
    def _n_known(self) -> int:
        return int(self._memory.numbers[KNOWN])

    def _room(self, number: int) -> tuple[LineRoom, Any]:
        """Return room for a thread."""
        while len(self._rooms) <= number:
            workspace, probe = self.oracle.workspace(), self.oracle.lazy(self._lazy.v.flat)
            vectors = np.zeros((3, len(workspace.potentials)))
            self._rooms.append((LineRoom(probe.direction, *vectors), workspace))
        return self._rooms[number]

    @property
    def _estimates(self) -> Lipschitz:
        known = self.smoothness
        survey(known.estimates, self._memory.numbers)
        return Lipschitz(known.estimates, known.wait, known.pause)

    def _run(self, order: IntArray, settings: StepSettings) -> None:
        """Update after one batch after the other."""
        oracle, estimates = self.oracle, self._estimates
        for first in range(0, len(order), self._at_once):
            piece = frozen(order[first : first + self._at_once])
            self.batches.n_computed += len(piece)
            oracle.run(sag_updates)(
                piece, settings, oracle.problem, oracle.index, self._memory, estimates, self._lazy,
                self._metric, *self._room(0),
            )  # fmt: skip

    def _update_together(self, chosen: list[int]) -> None:
        """Compute gradients from the same parameters, over threads, and make a step for each."""
        oracle, memory, estimates = self.oracle, self._memory, self._estimates
        rooms = [self._room(number) for number in range(len(chosen))]
        for batch in chosen:
            oracle.run(sag_catch_up)(oracle.problem, batch, memory, self._lazy)

        def work(number: int) -> float:
            value: float = oracle.run(sag_evaluate)(
                chosen[number], self._settings, oracle.problem, oracle.index, memory, estimates,
                self._lazy.v, self._metric, *rooms[number],
            )  # fmt: skip
            return value

        values = self.batches.map_batches(work, range(len(chosen)))
        for batch, value, room in zip(chosen, values, rooms, strict=True):
            oracle.run(sag_apply)(
                batch, value, self._settings, oracle.problem, oracle.index, memory, estimates,
                self._lazy, self._metric, *room,
            )  # fmt: skip
