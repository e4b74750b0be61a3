"""Online exponentiated gradient on the dual, with a certificate of how far the optimum is."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from crfkit._parallel import return_memory
from crfkit._types import FloatArray, IntArray, IterationRecord, Random
from crfkit.compiler.jit import frozen
from crfkit.kernels.solvers.batches import BlockIndex
from crfkit.kernels.solvers.eg import (
    N_NUMBERS,
    N_PROPOSED,
    DualBlocks,
    DualSettings,
    DualWeights,
    ShortBlocks,
    eg_updates,
)
from crfkit.kernels.solvers.vector import vector_add, vector_dot
from crfkit.objective.batch import Objective
from crfkit.objective.penalties import ElasticNet
from crfkit.objective.stochastic import StochasticObjective
from crfkit.oracles.batches import BatchOracle
from crfkit.oracles.weights import aligned
from crfkit.solvers.base import Check, SolverLog, check_convex_sums, one_of
from crfkit.solvers.stochastic.base import MiniBatchSolver, Search
from crfkit.solvers.stochastic.dual_store import make_store
from crfkit.solvers.stochastic.state import BatchUpdates

# The first c2 is such that the squared norm of a token's attributes is this many times 2 c2 ...
COUPLING = 10.0
# ... and after as many passes it is lowered by this factor a pass until it is the one asked for.
PASSES_AT_FIRST = 3
LOWERING = 0.7
FIRST_RATE = 0.5
# How far rounding to 32 bits, or to 16, may take an entropy out of its range.
ROUNDING, SHORT_ROUNDING = 1e-6, 1e-3
# This share of the visits goes to all batches alike, the others to those with large gaps.
ALIKE = 0.5
SAMPLINGS = ("gap", "uniform")
# The parameters returned are the mean of those at so many points of the last pass.
POINTS = 24
# Potential of the true labels before a batch is first updated, all others being 0.
GOLD = 12.0
# With a smaller tolerance the distributions are kept in 32 bits.
LEAST_TOL = 1e-5
# A vector of all parameters is added in so many parts, over threads.
N_PARTS = 4


@dataclass(kw_only=True, eq=False, repr=False)
class OEG(MiniBatchSolver):
    """Online exponentiated gradient on the dual (Collins et al. 2008), in small batches.

    The dual of ``sum_i NLL_i(w) + c1 sum |w| + c2 sum w**2`` is ``sum_i H(a_i) - c2 |w(a)|**2``,
    where ``a_i`` is a distribution of the labels of sequence ``i``, ``H`` its entropy, and ``w(a)``
    shrinks ``sum_i (f(x_i, y_i) - E_{a_i} f(x_i, y))`` by c1 and divides by ``2 c2``. A step
    replaces the scores ``t`` that stand for the distributions of a batch by ``(1 - r) t + r s``
    with ``s`` the scores of w. The rate ``r`` of a batch is the one that would have been best at
    its last visit, for a dual that is quadratic along the step.

    The parameters returned are the mean of those of the last pass. Objective minus dual bounds how
    far they are from the optimum: the gap.

    Parameters
    ----------
    max_iter : int, default=200
        Passes over the data at most.
    tol : float, default=1e-4
        Stop when the gap is below this share of the objective.
    batch_tokens : int, default=100
        About as many tokens has a batch. A larger one takes less time a pass and more passes.
    batches_per_update : int, default=1
        Batches that are computed from the same parameters, by as many threads, and applied one
        after the other: of use where a batch takes a millisecond. The result depends on it, and not
        on the number of threads.
    check_every : int or None, default=None
        Passes between evaluations of the objective, each of which gives a record of the log. None:
        where the gap is expected near `tol`, and at the latest every 5 passes.
    sampling : {"gap", "uniform"}, default="gap"
        "uniform": a pass visits each batch once. "gap": half of its visits go to batches in
        proportion to their part of the gap (Le Priol, Piche and Lacoste-Julien 2018), which takes
        fewer passes, the more so the smaller the batches.
    random_state : int, RandomState or None, default=0
        Deals the sequences to the batches, and chooses and orders the batches of a pass.

    Notes
    -----
    Needs c2 > 0 and the log loss; the smaller c2, the more passes: the first ones are made with a
    larger c2. Holds two numbers of 16 bits for each token and label, of 32 where `tol` is below
    1e-5, and as many for two tables of transitions a batch; where there are at least 64 labels, and
    these numbers take more than 64 MiB, in a temporary file. A start is used where its dual is
    above that of the usual one. Stopped after a few passes, the parameters need not be better than
    the start: only the dual rises, but for rounding and for batches that would else be stuck.

    Examples
    --------
    >>> from crfkit import CRFClassifier
    >>> from crfkit.solvers import OEG
    >>> CRFClassifier(solver=OEG(tol=1e-3))
    CRFClassifier(solver=OEG(tol=0.001))
    """

    needs_of_loss: ClassVar[tuple[str, ...]] = ("is_log_likelihood",)
    needs_known_labels: ClassVar[bool] = True

    checks: ClassVar[dict[str, Check]] = {"sampling": one_of(*SAMPLINGS)}

    max_iter: int = 200
    tol: float = 1e-4
    batch_tokens: int = 100
    batches_per_update: int = 1
    check_every: int | None = None
    sampling: str = "gap"
    random_state: int | np.random.RandomState | None = 0

    def _check_objective(self, objective: Objective) -> None:
        check_convex_sums(self, objective)
        if not objective.penalty.l2 > 0.0:
            raise ValueError("solver OEG needs c2 > 0, but c2=0. Use solver='lbfgs' or 'owlqn'.")

    def _start(self, batches: StochasticObjective, start: FloatArray, random: Random) -> _Dual:
        for index in range(len(batches)):
            batches.sequence_weight(index)  # ValueError where the tokens of a sequence differ
        return _Dual(batches, batches.penalty, start, short=self.tol >= LEAST_TOL)

    def _pass(self, search: _Dual, number: int, random: Random, log: SolverLog) -> FloatArray:
        search.lower_c2(number)
        gaps = search.steps.gaps
        chosen = drawn_by_gap(gaps, random) if self.sampling == "gap" else np.arange(len(gaps))
        return search.run_pass(random.permutation(chosen), int(self.batches_per_update))


def drawn_by_gap(gaps: FloatArray, random: Random) -> IntArray:
    """Return the batches of a pass, shape (B,), given what is known of the gap of each, shape (B,).

    Systematic sampling: each comes as often as it should, to within one visit. All come once before
    the gaps are known.
    """
    size, total = len(gaps), float(gaps.sum())
    if not 0.0 < total < math.inf:
        return np.arange(size)
    often = (1.0 - ALIKE) * size * (gaps / total) + ALIKE
    drawn = np.searchsorted(np.cumsum(often), random.random_sample() + np.arange(size))
    return np.minimum(drawn, size - 1)


def _first_c2(batches: StochasticObjective) -> float:
    """Return the c2 of the first passes, if a smaller one is asked for."""
    return batches.mean_square / (2.0 * COUPLING)


class DualState(BatchUpdates):
    """Distributions of all batches (`store`), the dual vector (L,) and the weights they make.

    With `own_w` the weights are another vector than the dual one: a penalty shrinks them. With
    `short` numbers, enough for a gap that is not too small, they take half the room. Of each batch,
    (B,): `entropies`, weighted; `rates`, how far the next update goes; `gaps`, about its part in
    the gap at its last update, 0 before.
    """

    def __init__(
        self,
        batches: StochasticObjective,
        own_w: bool,
        oracle: BatchOracle | None = None,
        short: bool = False,
    ) -> None:
        super().__init__(batches, oracle)
        self.dual = self.oracle.pack(np.broadcast_to(0.0, batches.n_parameters))
        self.w = self.dual.copy() if own_w else self.dual
        self.entropies, self.rates, self.gaps = np.zeros((3, len(batches)))
        return_memory(4 * self.oracle.n_potentials)  # of lists that made others: about as much
        self.store = make_store(self.oracle, GOLD, batches.model.n_labels, short)
        self._proposals = np.zeros((len(batches), N_PROPOSED + 2 * N_NUMBERS))
        self._settings, self._read = DualSettings(math.nan, 0.0, False), self.w

    def reset(self) -> None:
        """Put all distributions on the true labels: entropy 0, no weights."""
        self.store.reset()
        for vector in (self.entropies, self.gaps, self.dual, self.w):
            vector[:] = 0.0

    def advance(
        self, order: IntArray, batches_per_update: int, c2: float, threshold: float
    ) -> None:
        """Update batches where that raises the dual, shrunk by the penalty's threshold."""
        self._settings, self._read = DualSettings(0.5 / c2, float(threshold), False), self.w
        self.update(order, batches_per_update)

    def adopt(self, parameters: FloatArray, c2: float, threshold: float) -> None:
        """Move all distributions, from the true labels, to those of some parameters."""
        self.rates[:] = 1.0
        self._settings = DualSettings(0.5 / c2, float(threshold), True)
        self._read = self.oracle.pack(parameters)
        self.update(np.arange(len(self.batches)))

    def _workspace(self, room: Any) -> Any:
        """Return the room: no more is needed."""
        return room

    def _update(self, order: IntArray, stage: int, workspace: Any) -> None:
        oracle, views = self.oracle, self.oracle.weights
        weights = DualWeights(views(self._read), views(self.dual), views(self.w))
        of_batches = self.entropies, self.rates, self.gaps, self._proposals

        def update(some: IntArray, index: BlockIndex, potentials: Any, residuals: Any) -> None:
            vectors = potentials, residuals, *of_batches
            short = self.store.short
            blocks = ShortBlocks(*vectors, self.store.numbers) if short else DualBlocks(*vectors)
            oracle.run(eg_updates)(
                some, stage, self._settings, oracle.problem, index, blocks, weights, workspace
            )

        self.store.work_on(order, update)


class _Dual(Search):
    """The dual problem: a distribution for each sequence, and the parameters they amount to."""

    batches: StochasticObjective

    def __init__(
        self,
        batches: StochasticObjective,
        penalty: ElasticNet,
        start: FloatArray,
        short: bool = False,
    ) -> None:
        self.batches, self.penalty = batches, penalty
        self.c2 = max(penalty.l2, _first_c2(batches))
        # Before its first visit all of a batch is on the true labels: entropy 0, no parameters.
        self.steps = DualState(batches, own_w=penalty.l1 > 0.0, short=short)
        self.steps.rates[:] = FIRST_RATE
        if start.any():
            self._start_at(start)
        self.bounds = [self.lower_bound]

    def _start_at(self, start: FloatArray) -> None:
        """Begin with the distributions that parameters amount to, if they are worth something."""
        if not np.isfinite(start).all():
            raise ValueError("the parameters to start from must be finite.")
        c2, self.c2 = self.c2, self.penalty.l2
        self.steps.adopt(start, self.c2, self._threshold)
        self.steps.rates[:], self.steps.gaps[:] = FIRST_RATE, 0.0
        if not self._is_sound():
            self.c2 = c2
            self.steps.reset()

    def _is_sound(self) -> bool:
        """Whether the bound is worth something, and no entropy is what rounding made of it."""
        entropies, n_codes = self.steps.entropies, self.batches.model.n_codes
        most = self.batches.weighted_tokens * math.log(n_codes)
        error = SHORT_ROUNDING if self.steps.store.short else ROUNDING
        possible = (entropies >= -error * (most + 1.0)) & (entropies <= (1.0 + error) * most)
        return bool(0.0 < self.lower_bound < math.inf and possible.all())

    def weights(self) -> FloatArray:
        """Return the parameters, a new array."""
        return self.steps.oracle.unpack(self.steps.w)

    def evaluate(self, w: FloatArray) -> tuple[FloatArray, float]:
        """Return the parameters and the objective there."""
        return w, self.steps.value(w)

    def distance(self, value: float) -> tuple[float, float]:
        """Return NaN for the norm of the gradient, and the gap."""
        bound = self.bounds[-1] if len(self.bounds) > 1 else self.lower_bound
        return math.nan, max(value - bound, 0.0)

    def is_near(self, tol: float, last: IterationRecord) -> bool:
        """Whether the gap is expected below `tol`."""
        return self.expected_gap <= tol * abs(self.lower_bound)

    @property
    def lower_bound(self) -> float:
        """The dual at the c2 that is asked for: no parameters have a smaller objective."""
        w = frozen(self.steps.w)
        square = self.c2 / self.penalty.l2 * vector_dot(w, w)
        return float(self.steps.entropies.sum() - self.c2 * square)

    @property
    def expected_gap(self) -> float:
        """What the gap is going to be if the dual keeps rising as in the last two passes."""
        if len(self.bounds) < 3 or self.c2 != self.penalty.l2:
            return math.inf
        before, last = np.diff(self.bounds[-3:]).tolist()
        return last * last / (before - last) if before > last else math.inf

    def lower_c2(self, passes: int) -> None:
        """Bring c2 nearer to the one that is asked for."""
        if passes < PASSES_AT_FIRST or self.c2 == self.penalty.l2:
            return
        before, self.c2 = self.c2, max(self.penalty.l2, LOWERING * self.c2)
        dual = self.steps.dual
        dual *= before / self.c2
        shrunk = np.maximum(np.abs(dual) - self._threshold, 0.0)
        self.steps.w[:] = np.copysign(shrunk, dual)

    @property
    def _threshold(self) -> float:
        return self.penalty.l1 / (2.0 * self.c2)

    def run_pass(self, order: IntArray, batches_per_update: int) -> FloatArray:
        """Visit all batches; returns the mean of the parameters at some points of the way."""
        n_rounds = -(-len(order) // batches_per_update)
        points = {n_rounds * (i + 1) // POINTS * batches_per_update for i in range(POINTS)} - {0}
        mean, first = aligned(len(self.steps.w)), 0
        for last in sorted(points):
            self.steps.advance(order[first:last], batches_per_update, self.c2, self._threshold)
            self._add_w(1.0 / len(points), mean)
            first = last
        self.bounds.append(self.lower_bound)
        return self.steps.oracle.unpack(mean)

    def _add_w(self, factor: float, out: FloatArray) -> None:
        """Add the parameters, times a factor, to a vector: a part of it each thread."""
        w, edges = frozen(self.steps.w), np.linspace(0, len(out), N_PARTS + 1).astype(int).tolist()

        def add(part: int) -> None:
            begin, end = edges[part : part + 2]
            vector_add(factor, w[begin:end], out[begin:end])

        self.batches.threads(add, range(N_PARTS))
