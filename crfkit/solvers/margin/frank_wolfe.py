"""Block-coordinate Frank-Wolfe on the dual of a margin, with a certificate of the distance."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from crfkit._params import check_flag
from crfkit._types import FloatArray, IterationRecord, Random
from crfkit.compiler.jit import frozen
from crfkit.kernels.solvers.vector import vector_add
from crfkit.objective.batch import Objective
from crfkit.objective.penalties import within_bounds
from crfkit.objective.stochastic import StochasticObjective
from crfkit.solvers.base import Check, Solver, SolverLog, at_least_one, one_of
from crfkit.solvers.margin.bounds import certified_gap, check_l2, misses_labelings, why_certified
from crfkit.solvers.margin.dual_state import MarginState, make_margin_state
from crfkit.solvers.stochastic.base import MiniBatchSolver, Search
from crfkit.solvers.stochastic.exponentiated_gradient import SAMPLINGS, drawn_by_gap

STEPS = ("marginals", "pairwise", "classic")
# The mean of the parameters of a pass is that at so many points of it.
POINTS = 16
# Options that the form for kernels has too.
SHARED_OPTIONS = ("max_iter", "tol", "random_state")


def with_kernel(solver: BlockFrankWolfe) -> Solver:
    """Return the form for kernels; ValueError if an option is set that it does not have."""
    from crfkit.solvers.margin.kernel_frank_wolfe import KernelFrankWolfe  # few fits need it

    solver.check_parameters()
    usual, given = BlockFrankWolfe().get_params(), solver.get_params()
    for name, value in given.items():
        if name not in SHARED_OPTIONS and value != usual[name]:
            raise ValueError(
                f"BlockFrankWolfe({name}={value!r}) needs kernel='linear'; with a kernel use "
                "KernelFrankWolfe, which has options of its own."
            )
    return KernelFrankWolfe(**{name: given[name] for name in SHARED_OPTIONS})


@dataclass(kw_only=True, eq=False, repr=False)
class BlockFrankWolfe(MiniBatchSolver):
    """Block-coordinate Frank-Wolfe (Lacoste-Julien, Jaggi, Schmidt and Pletscher 2013).

    The dual of ``sum_i weight_i xi_i + c2 |w|**2`` is a sum of expected costs, minus ``c2
    |w(a)|**2``, where ``a_i`` are shares of the labelings of sequence i. A visit of a sequence
    looks for the labeling that violates its margin most, and gives it the share that raises the
    dual most, which is known in closed form. No rate has to be chosen.

    The log has the gap between the objective and the largest dual so far, which bounds how far the
    parameters are from the optimum. They are those of the smallest objective so far, of the last
    step of a pass or of their mean over it.

    Parameters
    ----------
    max_iter : int, default=1000
        Passes over the data at most.
    tol : float, default=1e-3
        Stop when the gap is below this share of the objective.
    steps : {"marginals", "pairwise", "classic"}, default="marginals"
        "classic": a step shrinks the shares of all labelings. "pairwise": it takes from the one of
        the sequence's that violates the margin least (Osokin, Alayrac, Lukasewitz, Dokania and
        Lacoste-Julien 2016, section 4), and so changes only the tokens where the two differ.
        "marginals": the same, but each run of such tokens moves by its own length, in terms of the
        marginals of labels and steps (Taskar, Guestrin and Koller 2003, section 4), much faster for
        long sequences: on a chain, with margin rescaling and a cost that is a sum over tokens; else
        as "pairwise".
    max_steps : int, default=1
        Steps of a sequence at most before the next one has its turn; they end where its part of the
        gap is a tenth of what it was.
    averaging : bool, default=True
        Whether the mean of the parameters of a pass is looked at too.
    check_every, sampling
        As for :class:`crfkit.solvers.OEG`; each sequence is a batch (Osokin et al. 2016, section
        3.1).
    random_state : int, RandomState or None, default=0
        Chooses and orders the sequences of a pass.

    Notes
    -----
    Where nothing is compiled for a structure or a loss, or weights may not be negative, several
    sequences are a batch: their worst labelings are looked for at once and kept as planes below the
    loss, between which shares move more often (Shah, Kolmogorov and Lampert 2015), of the batches
    with the largest gaps too; a plane takes 12 bytes for each weight that it differs in. Where a
    search misses labelings, the gap is that of the bound it knows.

    Needs a hinge loss, and c2 > 0; the smaller c2, and the farther numeric features are from 1, the
    more passes. Holds what has a share: labelings, two bytes a token for each, or, with
    "marginals", transitions, 12 bytes for each, with room for as many in every token as the one
    that has most needs. One thread makes the visits; threads share evaluations of the objective.
    The search begins where the dual is 0; parameters to start from are only evaluated.
    """

    handles_l1: ClassVar[bool] = False
    handles_bounds: ClassVar[bool] = True
    needs_known_labels: ClassVar[bool] = True
    why_done: ClassVar[Callable[..., str | None]] = why_certified
    remedy: ClassVar[str] = (
        ". Where features are numbers, scale them to about 1, or take solver='cutting_plane' of "
        "MaxMarginCRF, which depends less on their scale"
    )
    kernel_form: ClassVar[Callable[[Any], Any] | None] = with_kernel
    # Each sequence is a batch.
    batch_tokens = 1
    batches_per_update = 1

    checks: ClassVar[dict[str, Check]] = {
        "steps": one_of(*STEPS),
        "max_steps": at_least_one,
        "sampling": one_of(*SAMPLINGS),
        "averaging": check_flag,
    }

    max_iter: int = 1000
    tol: float = 1e-3
    steps: str = "marginals"
    max_steps: int = 1
    averaging: bool = True
    check_every: int | None = None
    sampling: str = "gap"
    random_state: int | np.random.RandomState | None = 0

    def _check_objective(self, objective: Objective) -> None:
        check_l2(self, objective)
        if not objective.loss.is_hinge:
            raise ValueError(
                f"solver BlockFrankWolfe needs a hinge loss, not {type(objective.loss).__name__}. "
                "Use solver='lbfgs'."
            )

    def _start(self, batches: StochasticObjective, start: FloatArray, random: Random) -> _Search:
        state = make_margin_state(batches, self.steps, int(self.max_steps))
        return _Search(state, self.averaging, start)

    def _pass(self, search: _Search, number: int, random: Random, log: SolverLog) -> FloatArray:
        gaps = search.state.gaps
        chosen = drawn_by_gap(gaps, random) if self.sampling == "gap" else np.arange(len(gaps))
        search.run_pass(random.permutation(chosen))
        return search.weights()


class _Search(Search):
    """Shares of labelings, the parameters that they amount to, and their mean."""

    def __init__(self, state: MarginState, averaging: bool, start: FloatArray) -> None:
        self.batches, self.state = state.batches, state
        self.start = within_bounds(start, state.batches.nonnegative)
        self.averaging = averaging
        self.mean, self._passes = np.zeros_like(state.w), 0
        self.lower_bound, self._best = 0.0, self.start
        self.value = self.bound = math.inf  # the objective there, and what it does not exceed

    def weights(self) -> FloatArray:
        """Return the parameters, a new array."""
        return self.state.unpack(self.state.w) if self._passes else self.start.copy()

    def run_pass(self, order: Any) -> None:
        """Visit sequences; the mean of the parameters is taken on the way."""
        edges = np.unique(len(order) * np.arange(1, POINTS + 1) // POINTS)
        points = edges[edges > 0].tolist()
        first, level, share = 0, 0.0, 1.0 / max(len(points), 1)
        self.mean[:] = 0.0
        for last in points:
            self.state.advance(order[first:last])
            first = last
            if self.averaging:
                vector_add(share, frozen(self.state.w), self.mean)
                level += share * float(self.state.levels.sum())
        self._passes += 1
        # The dual at the mean of the shares, of which that of the parameters is one.
        of_mean = self.state.dual(level, self.mean)
        self.lower_bound = max(self.lower_bound, self.state.lower_bound, of_mean)

    def is_near(self, tol: float, last: IterationRecord) -> bool:
        """Whether the gap is below `tol` if the parts of the sequences are still the same."""
        return float(self.state.gaps.sum()) <= tol * abs(self.lower_bound)

    def evaluate(self, w: FloatArray) -> tuple[FloatArray, float]:
        """Return the parameters of the smallest objective so far, and that.

        Of several whose objective has a bound, those of the smallest bound.
        """
        candidates = [w]
        if self.averaging and self._passes:
            candidates.append(self.state.unpack(self.mean))
        for candidate in candidates:
            value, bound = self.state.value_and_bound(candidate)
            if not (bound, value) >= (self.bound, self.value):
                self.value, self.bound, self._best = value, bound, candidate
        return self._best, self.value

    def distance(self, value: float) -> tuple[float, float]:
        """Return NaN for the gradient norm, and the gap to `lower_bound`, NaN if it is not known.

        It is that of the bound of the objective.
        """
        known = not misses_labelings(self.state.loss) and self.bound < math.inf
        return math.nan, certified_gap(self.bound, self.lower_bound) if known else math.nan
