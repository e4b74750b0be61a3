"""Stochastic average gradient: steps after each small batch that converge like those of a batch."""

from __future__ import annotations

import math
from typing import ClassVar

import numpy as np

from crfkit._params import check_number
from crfkit._types import FloatArray, Random
from crfkit.compiler.jit import frozen
from crfkit.kernels.solvers.sag import LEAST_CHANGE
from crfkit.kernels.solvers.vector import vector_dot
from crfkit.objective.stochastic import StochasticObjective
from crfkit.solvers.base import SolverLog
from crfkit.solvers.stochastic.base import MiniBatchSolver
from crfkit.solvers.stochastic.sag_state import SagState

# Passes in which the objective has to fall.
PERIOD = 5


class SAG(MiniBatchSolver):
    """Stochastic average gradient with non-uniform sampling (Schmidt et al. 2015).

    Remembers the last gradient of each batch of sequences, as expected minus observed counts of
    its labels and transitions, and moves along the mean of them after each visit. Batches are
    visited half at random, half in proportion to the estimated smoothness ``L_b`` of their loss,
    which also gives the length of a step, ``1/2 (1 / max L + 1 / mean L)``. Weights of sparse
    features that a batch does not touch are moved when they are next needed.

    With dense features, steps along their principal axes are the longer the less the data vary
    there, by the square root; those of the weights of transitions between labels in the same way,
    by how often these occur; and the length of a step is ``1 / max L``.

    The remembered gradients and losses bound the optimum from below (each loss lies above its
    tangent), so that the gap to the optimum is known: with c2 > 0, a smooth and convex loss, and
    equal weights within a sequence.

    Parameters
    ----------
    max_iter : int, default=200
        Passes over the data at most.
    tol : float, default=1e-4
        Stop when the gap is below this share of the objective; where the gap is not known, when
        the objective fell by less than this, relatively, over 5 passes.
    gtol : float, default=1e-5
        Stop when the norm of the gradient is below this times the norm of the parameters (or 1).
    batch_tokens : int or None, default=None
        About as many tokens has a batch; if None, a five-hundredth of all. A larger one takes less
        time a pass and more passes.
    batches_per_update : int, default=1
        Batches that are computed from the same parameters, by as many threads at once, and applied
        one after the other. The result depends on it, and not on the number of threads.
    check_every : int or None, default=None
        The objective is evaluated, and the log gets a record, after so many passes. None: where the
        gap is known, after every 5 passes, and where the last losses of the batches let it be
        expected near `tol`; else after each.
    random_state : int, RandomState or None, default=0
        Deals the sequences to the batches and chooses the batches to visit.

    Notes
    -----
    Needs c1 = 0 and linear potentials. Holds a number for each token and label, and a table of
    steps for each batch.

    Examples
    --------
    >>> from crfkit import CRFClassifier
    >>> from crfkit.solvers import SAG
    >>> CRFClassifier(solver=SAG(tol=1e-3))
    CRFClassifier(solver=SAG(tol=0.001))
    """

    handles_l1: ClassVar[bool] = False
    needs_of_loss: ClassVar[tuple[str, ...]] = ("is_smooth",)
    n_batches: ClassVar[int | None] = 500
    told: ClassVar[str] = "gradient_norm"

    def __init__(
        self,
        *,
        max_iter: int = 200,
        tol: float = 1e-4,
        gtol: float = 1e-5,
        batch_tokens: int | None = None,
        batches_per_update: int = 1,
        check_every: int | None = None,
        random_state: int | np.random.RandomState | None = 0,
    ) -> None:
        self.max_iter = max_iter
        self.tol = tol
        self.gtol = gtol
        self.batch_tokens = batch_tokens
        self.batches_per_update = batches_per_update
        self.check_every = check_every
        self.random_state = random_state

    def _check_own_parameters(self) -> None:
        check_number("gtol", self.gtol)

    def _start(self, batches: StochasticObjective, start: FloatArray, random: Random) -> SagState:
        return SagState(batches, start)

    def _pass(self, search: SagState, number: int, random: Random, log: SolverLog) -> FloatArray:
        if log.history[-1].iteration == number and _has_risen(log):  # once for each rise
            search.smoothness.raise_all()
        search.run_pass(random, int(self.batches_per_update))
        return search.weights()

    def _why_done(self, search: SagState, w: FloatArray, log: SolverLog) -> str | None:
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


def _has_risen(log: SolverLog) -> bool:
    """Whether the objective rose since the record before, by more than rounding."""
    values = [record.value for record in log.history[-2:]]
    return values[-1] - values[0] > LEAST_CHANGE * abs(values[0])
