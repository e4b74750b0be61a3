"""Stochastic average gradient: steps after each small batch that converge like those of a batch."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from crfkit._params import check_number
from crfkit._types import FloatArray, IntArray, IterationRecord, Random
from crfkit.compiler.jit import frozen
from crfkit.kernels.solvers import sag as kernels
from crfkit.kernels.solvers.batches import ALL, PREPARE
from crfkit.kernels.solvers.vector import vector_dot
from crfkit.objective.stochastic import StochasticObjective
from crfkit.oracles.batches import BatchOracle
from crfkit.solvers.base import Check, SolverLog
from crfkit.solvers.stochastic.base import MiniBatchSolver, Search
from crfkit.solvers.stochastic.lipschitz import LipschitzEstimates, Preconditioner
from crfkit.solvers.stochastic.state import BatchUpdates

# Passes in which the objective has to fall.
PERIOD = 5
# The objective is evaluated where the gap that is expected from the last losses of the batches is
# below so many times the one asked for.
NEARLY = 2.0


@dataclass(kw_only=True, eq=False, repr=False)
class SAG(MiniBatchSolver):
    """Stochastic average gradient with non-uniform sampling (Schmidt et al. 2015).

    Remembers the last gradient of each batch of sequences, as expected minus observed counts of its
    labels and transitions, and moves along the mean of them after each visit. Batches are visited
    half at random, half in proportion to the estimated smoothness ``L_b`` of their loss, which also
    gives the length of a step, ``1/2 (1 / max L + 1 / mean L)``. Weights of sparse features that a
    batch does not touch are moved when they are next needed.

    With dense features, steps along their principal axes are the longer the less the data vary
    there, by the square root; those of the weights of transitions between labels in the same way,
    by how often these occur; and the length of a step is ``1 / max L``.

    The remembered gradients and losses bound the optimum from below (each loss lies above its
    tangent), so that the gap to the optimum is known: with c2 > 0, a smooth and convex loss, and
    equal weights within a sequence.

    Parameters
    ----------
    max_iter, batches_per_update, random_state
        As for :class:`OEG`.
    tol : float, default=1e-4
        Stop when the gap is below this share of the objective; where the gap is not known, when
        the objective fell by less than this, relatively, over 5 passes.
    gtol : float, default=1e-5
        Stop when the norm of the gradient is below this times the norm of the parameters (or 1).
    batch_tokens : int or None, default=None
        As for :class:`OEG`; if None, a five-hundredth of all tokens.
    check_every : int or None, default=None
        As for :class:`OEG`; None where the gap is not known: after each pass.

    Notes
    -----
    Needs c1 = 0 and linear potentials. Holds a number for each token and label, and a table of
    steps for each batch.
    """

    has_to_verify = True  # without c2 there is no gap
    handles_l1: ClassVar[bool] = False
    needs_of_loss: ClassVar[tuple[str, ...]] = ("is_smooth",)
    n_batches: ClassVar[int | None] = 500
    told: ClassVar[str] = "gradient_norm"

    checks: ClassVar[dict[str, Check]] = {"gtol": check_number}

    max_iter: int = 200
    tol: float = 1e-4
    gtol: float = 1e-5
    batch_tokens: int | None = None
    batches_per_update: int = 1
    check_every: int | None = None
    random_state: int | np.random.RandomState | None = 0

    def _start(self, batches: StochasticObjective, start: FloatArray, random: Random) -> SagState:
        return SagState(batches, start)

    def _pass(self, search: SagState, number: int, random: Random, log: SolverLog) -> FloatArray:
        if log.history[-1].iteration == number and _has_risen(log):  # once for each rise
            search.smoothness.raise_all()
        search.run_pass(random, int(self.batches_per_update))
        return search.weights()

    def why_done(self, search: SagState, w: FloatArray, log: SolverLog) -> str | None:
        """Return why the last record is convergence, or None."""
        record = log.history[-1]
        if record.gap <= self.tol * abs(record.value):
            return f"the gap {record.gap:.3g} is below tol"
        if not math.isfinite(record.gap) and self.tol and log.has_stalled(PERIOD, self.tol):
            return f"the objective fell by less than tol in {PERIOD} passes"
        least = self.gtol * max(1.0, math.sqrt(vector_dot(frozen(w), frozen(w))))
        # The remembered gradients are of earlier parameters: look at all batches once more.
        if record.gradient_norm <= least:
            search.refresh()
            if search.gradient_norm() <= least:
                return f"the gradient norm {search.gradient_norm():.3g} is below gtol"
        return None


class SagState(BatchUpdates, Search):
    """The parameters, the last gradient of each batch, and their sum."""

    batches: StochasticObjective
    prepares = True

    def __init__(
        self, batches: StochasticObjective, start: FloatArray, oracle: BatchOracle | None = None
    ) -> None:
        super().__init__(batches, oracle)
        oracle, preconditioner = self.oracle, Preconditioner(batches)
        self.smoothness = LipschitzEstimates(batches)
        metric, lazy = oracle.metric(preconditioner), oracle.lazy(oracle.pack(start))
        count, smoothness = len(batches), self.smoothness
        lipschitz = kernels.Lipschitz(smoothness.estimates, smoothness.wait, smoothness.pause)
        losses, offsets, known = np.zeros((3, count))
        self._memory = kernels.GradientMemory(
            np.zeros(oracle.n_potentials), losses, offsets, known, np.zeros(kernels.N_NUMBERS),
            lipschitz, lazy,
        )  # fmt: skip
        self._memory.numbers[[kernels.SCALE, kernels.GUESS]] = 1.0, batches.mean_square or 1.0
        decay = 2.0 * batches.penalty.l2 / max(count, 1)
        steepest = decay * preconditioner.most
        self._settings = kernels.StepSettings(
            decay, math.inf, steepest, preconditioner.caution, metric
        )
        self._w = start.copy()
        if start.any():  # else the first steps would lead away from what is good already
            self.refresh()

    @property
    def direction(self) -> FloatArray:
        """The sum of the remembered gradients of the loss, shape (P,)."""
        return self.oracle.unpack(self._memory.lazy.direction.flat)

    def weights(self) -> FloatArray:
        """Return the parameters after all steps, a new array."""
        self.oracle.run(kernels.sag_settle)(self.oracle.problem, self._memory)
        self._w = self.oracle.unpack(self._memory.lazy.v.flat)
        return self._w.copy()

    def run_pass(self, random: Random, batches_per_update: int) -> None:
        """Make as many steps as there are batches."""
        self.update(self.smoothness.draw(random), batches_per_update)

    def refresh(self) -> None:
        """Compute the gradients of all batches at the current parameters."""
        self.weights()
        settings = self._settings
        self._settings = settings._replace(longest=0.0)
        self.update(np.arange(len(self.batches)))
        self._settings = settings

    def distance(self, value: float) -> tuple[float, float]:
        """Return the norm of the gradient and the gap, NaN where the loss is not convex."""
        bound = self.lower_bound() if self.batches.is_convex else -math.inf
        gap = max(value - bound, 0.0) if math.isfinite(bound) else math.nan
        return self.gradient_norm(), gap

    def is_near(self, tol: float, last: IterationRecord) -> bool:
        """Whether the gap is not known, or is expected below `tol`."""
        if not (self.batches.penalty.l2 and self.batches.is_convex):
            return True
        return self.expected_gap() <= NEARLY * tol * abs(last.value)

    def gradient_norm(self) -> float:
        """Return the norm of the remembered gradient; to be called right after `weights`."""
        if self._memory.numbers[kernels.KNOWN] < len(self.batches):
            return math.nan
        gradient = self.direction + 2.0 * self.batches.penalty.l2 * self._w
        return math.sqrt(vector_dot(frozen(gradient), frozen(gradient)))

    def lower_bound(self) -> float:
        """Return a value that no parameters have less than: ``sum_b offset_b - |d|^2 / (4 c2)``."""
        if self._memory.numbers[kernels.KNOWN] < len(self.batches):
            return -math.inf
        offset = float(self._memory.offsets.sum())
        direction = self.direction
        square = vector_dot(frozen(direction), frozen(direction))
        if square == 0.0:
            return offset
        c2 = self.batches.penalty.l2
        return offset - square / (4.0 * c2) if c2 else -math.inf

    def expected_gap(self) -> float:
        """Return what the gap would be at the remembered losses; to be called after `weights`."""
        loss = float(self._memory.losses.sum())
        return loss + self.batches.penalty.smooth_value(self._w) - self.lower_bound()

    def _workspace(self, room: Any) -> tuple[kernels.LineRoom, Any]:
        """Return what the updates of a thread need: room along a line, too."""
        probe = self.oracle.lazy(self._memory.lazy.v.flat)
        potentials, along, residual = np.zeros((3, len(room.potentials)))
        return kernels.LineRoom(probe.direction, potentials, along, residual, np.zeros(1)), room

    def _update(self, order: IntArray, stage: int, workspace: tuple[kernels.LineRoom, Any]) -> None:
        oracle = self.oracle
        if stage in (ALL, PREPARE):
            kernels.survey(self.smoothness.estimates, self._memory.numbers)
        search = kernels.SagSearch(self._settings, oracle.index, self._memory)
        oracle.run(kernels.sag_updates)(order, stage, oracle.problem, search, *workspace)


def _has_risen(log: SolverLog) -> bool:
    """Whether the objective rose since the record before, by more than rounding."""
    values = [record.value for record in log.history[-2:]]
    return values[-1] - values[0] > kernels.LEAST_CHANGE * abs(values[0])
