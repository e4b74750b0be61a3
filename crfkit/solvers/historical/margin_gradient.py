"""Exponentiated gradient on the dual of a margin."""

from __future__ import annotations

from functools import partial
from typing import Any, ClassVar, NamedTuple

import numpy as np

from crfkit._types import Counts, FloatArray, IdArray, IntArray, Potentials, Random
from crfkit.compiler.jit import frozen
from crfkit.kernels.solvers.stochastic import dual_step
from crfkit.objective.stochastic import StochasticObjective
from crfkit.solvers.base import SolverLog
from crfkit.solvers.margin.dual import DualSearch, check_dual, inner
from crfkit.solvers.margin.tangents import why_certified
from crfkit.solvers.stochastic.base import MiniBatchSolver
from crfkit.solvers.stochastic.dual_state import GOLD

# The first rate, and by how much a step may change the rate of a batch at most.
FIRST_RATE, SLOWER, FASTER = 1.0, 0.1, 4.0
# So many rates are tried in a visit.
TRIES = 4
LARGEST_RATE, TINY = 1e4, 1e-300
# A step along a smaller slope, for a sequence of weight 1, moves no mass to speak of; a part of the
# gap that is a smaller share of the scores is what rounding leaves.
NO_SLOPE, NO_GAP = 1e-12, 1e-10


class MarginEG(MiniBatchSolver):
    """Exponentiated gradient on the dual of a margin (Bartlett, Collins, Taskar, McAllester 2004).

    The distribution of the labellings of a sequence is ``a(y) ~ exp(sum of theta over its parts)``,
    and a step multiplies each probability by ``exp(r gradient)``: it adds ``r (cost + score)`` to
    the ``theta`` of each label and step, with the scores of ``w = sum_i (f_i(y_i) - E f_i(y)) / (2
    c2)`` (algorithm 2 and equation 50 of Gupta's report on conditional random fields). Sequences
    are visited one after the other. The rate ``r`` of a sequence follows from what its last step
    did to the dual, a parabola along the way: it falls where the best step would have been shorter,
    and a step that lowers the dual is not made.

    The gap between the objective and the dual bounds how far the parameters are from the optimum.

    Parameters
    ----------
    max_iter : int, default=200
        Passes over the data at most.
    tol : float, default=1e-2
        Stop when the gap is below this share of the objective.
    batch_tokens : int, default=1
        About as many tokens has a batch, whose sequences have one rate; 1 is a sequence each.
    random_state : int, RandomState or None, default=0
        Deals the sequences to the batches, and orders the batches of a pass.

    Notes
    -----
    Needs the hinge loss with margin rescaling and a cost that is a sum over tokens. It works with
    any structure. Holds two numbers for each token and label, and two tables of steps a batch. One
    thread makes the steps; the dual method of choice is "bcfw", which is many times faster. The
    smaller c2 and the larger numeric features, the more passes. Parameters to start from are not
    used.

    Examples
    --------
    >>> from crfkit.solvers.historical.margin_gradient import MarginEG
    >>> MarginEG(tol=1e-3)
    MarginEG(tol=0.001)
    """

    handles_l1: ClassVar[bool] = False
    batches_per_update = 1

    def __init__(
        self,
        *,
        max_iter: int = 200,
        tol: float = 1e-2,
        batch_tokens: int = 1,
        random_state: int | np.random.RandomState | None = 0,
    ) -> None:
        self.max_iter = max_iter
        self.tol = tol
        self.batch_tokens = batch_tokens
        self.random_state = random_state

    def _check_objective(self, objective: Any) -> None:
        check_dual(self, objective)

    def _start(
        self, batches: StochasticObjective, start: FloatArray, random: Random
    ) -> _Distributions:
        return _Distributions(batches)

    def _pass(
        self, search: _Distributions, number: int, random: Random, log: SolverLog
    ) -> FloatArray:
        search.steps.advance(random.permutation(len(search.batches)), search.c2)
        return search.weights()

    def _why_done(self, search: _Distributions, w: FloatArray, log: SolverLog) -> str | None:
        return why_certified(search, log, self.tol)


class BlockDistribution(NamedTuple):
    """The distributions of a batch.

    Attributes
    ----------
    scores : ndarray of shape (Q,)
        The potentials that stand for them, those of labels before those of transitions.
    expected : ndarray of shape (Q,)
        Their expected counts, weighted, in the same order.
    cost : float
        Their expected cost, weighted.
    """

    scores: FloatArray
    expected: FloatArray
    cost: float


class Proposal(NamedTuple):
    """An update of a batch: where it leads, and what it changes.

    Attributes
    ----------
    block : BlockDistribution
        The distributions after it.
    rise : float
        The rise of their cost.
    slope : float
        The rise of the dual if that were linear.
    indices : ndarray of shape (n,)
        Parameters that it moves.
    gradient : ndarray of shape (n,)
        The change of the expected counts of their features.
    """

    block: BlockDistribution
    rise: float
    slope: float
    indices: IdArray
    gradient: FloatArray


class _Distributions(DualSearch):
    """Distributions of all batches in their exponential form."""

    def __init__(self, batches: StochasticObjective) -> None:
        super().__init__(batches)
        self.steps = _AscentSteps(self)
        self.steps.rates[:] = FIRST_RATE

    def weights(self) -> FloatArray:
        """Return the parameters, a new array."""
        return self.steps.w.copy()

    def evaluate(self, w: FloatArray) -> tuple[FloatArray, float]:
        """Return the parameters and the objective there."""
        return w, float(self.batches.value(w))

    def squared_norm(self) -> float:
        """Return the squared norm of the weights."""
        return inner(self.steps.w, self.steps.w)

    def expected_cost(self) -> float:
        """Return the expected cost of all sequences, weighted."""
        return float(self.steps.costs.sum())


class _AscentSteps:
    """Updates along the gradient of the dual.

    Parameters
    ----------
    search : DualSearch
        Has the data and the costs.
    """

    def __init__(self, search: DualSearch) -> None:
        self.batches, self._search, self._ascents = search.batches, search, _Ascents(search)
        self.costs, self.rates = np.zeros((2, len(self.batches)))
        self.w = np.zeros(self.batches.n_parameters)
        self._blocks: list[BlockDistribution | None] = [None] * len(self.batches)

    def block(self, index: int) -> BlockDistribution | None:
        """Return the distributions of a batch; None for those on the true labels."""
        return self._blocks[index]

    def advance(self, order: IntArray, c2: float) -> None:
        """Update each of some batches, with a smaller rate where that lowers the dual."""
        for index in order.tolist():
            bound = self.batches.bind(self.w)
            for _ in range(TRIES):
                [found] = self.batches.map_batches(partial(self._proposal, bound), [index])
                if self._has_all(index, found, bound) or self._is_made(index, found, c2):
                    break

    def _proposal(self, bound: Any, index: int) -> Proposal:
        """Return the update of a batch at some parameters."""
        return self._ascents(bound, index, self._blocks[index], float(self.rates[index]))

    def _apply(self, proposal: Proposal, factor: float) -> float:
        """Move the parameters there, or back; returns the rise of |w|^2."""
        return dual_step(frozen(proposal.indices), proposal.gradient, factor, 0.0, self.w, self.w)

    def _has_all(self, index: int, proposal: Proposal, bound: Any) -> bool:
        """Whether the worst labellings of a batch have all mass, and more of a score is no use.

        Potentials would grow without end, and the mass could not come back soon.
        """
        weight = self._ascents.weights[index]
        if proposal.slope > NO_SLOPE * float(weight.sum()):
            return False
        scores, block = self._search.augmented(bound, index), self.block(index)
        worst = inner(weight, self.batches.structure.argmax(scores)[1])
        counts = proposal.block.expected if block is None else block.expected
        mean = inner(counts, np.concatenate([scores.unary.reshape(-1), scores.pair.reshape(-1)]))
        return worst - mean <= NO_GAP * (abs(worst) + abs(mean))

    def _is_made(self, index: int, proposal: Proposal, c2: float) -> bool:
        """Make a step if it raises the dual, and choose the next rate; returns if it does.

        Along the way from one distribution to the other the dual is a parabola.
        """
        fall = c2 * self._apply(proposal, -0.5 / c2)
        rises = proposal.rise - fall >= -NO_SLOPE * proposal.slope
        if rises:
            self._blocks[index], self.costs[index] = proposal.block, proposal.block.cost
        else:
            self._apply(proposal, 0.5 / c2)
        best = 0.5 * proposal.slope / max(proposal.slope - (proposal.rise - fall), TINY)
        factor = min(max(best, SLOWER), FASTER) if proposal.slope > 0.0 else FASTER
        self.rates[index] = min(self.rates[index] * factor, LARGEST_RATE)
        return rises


class _Ascents:
    """Steps along the gradient of the dual: expected costs take the place of entropies.

    Parameters
    ----------
    search : DualSearch
        Has the data and the costs.
    """

    def __init__(self, search: DualSearch) -> None:
        self._search, self.batches = search, search.batches
        batches = self.batches
        self.weights = [frozen(batches.sequence_weight(i)) for i in range(len(batches))]

    def __call__(
        self, bound: Any, index: int, block: BlockDistribution | None, rate: float
    ) -> Proposal:
        """Return the step of a batch, with its rate."""
        scores = self._search.augmented(bound, index)
        before = block or self._first(scores, index)
        target = np.concatenate([scores.unary.reshape(-1), scores.pair.reshape(-1)])
        moved = frozen(before.scores + rate * target)
        expected, theta = np.zeros_like(moved), parts_of(moved, scores)
        with self.batches.original_sequence_numbers():
            self.batches.structure.log_partition(
                scores.with_arrays(*theta), self.weights[index],
                parts_of(expected, scores),
            )  # fmt: skip
        added = self._search.cost.added(self.batches.labels(index))
        mean = inner(parts_of(expected, scores).unary[:, : added.shape[1]], added)
        residual = expected - before.expected
        gradient = self.batches.gradient(index, parts_of(residual, scores))
        return Proposal(
            BlockDistribution(moved, frozen(expected), mean), mean - before.cost,
            inner(residual, target),
            self.batches.places(index), frozen(gradient),
        )  # fmt: skip

    def _vertex(self, scores: Potentials, index: int) -> BlockDistribution:
        """Return the distributions of a batch that are all on the true labels."""
        start, expected = np.zeros((2, scores.unary.size + scores.pair.size))
        labels = self.batches.labels(index)
        parts_of(start, scores).unary[np.arange(len(labels)), labels] = GOLD
        self.batches.structure.add_counts(
            scores, labels, self.weights[index], parts_of(expected, scores)
        )
        return BlockDistribution(frozen(start), frozen(expected), 0.0)

    def _first(self, scores: Potentials, index: int) -> BlockDistribution:
        """Return the distributions of a batch before its first visit.

        The true labels have the more mass, the farther a share of others moves the parameters: the
        best step is about ``c2 / (v |f(y1) - f(y2)|^2)`` long.
        """
        vertex, structure = self._vertex(scores, index), self.batches.structure
        weight = self.weights[index]
        residual = structure.zeros(scores)
        structure.add_counts(scores, structure.argmax(scores)[0], weight, residual)
        structure.add_counts(scores, self.batches.labels(index), -weight, residual)
        change = self.batches.gradient(index, residual)
        square = inner(change, change) / max(float(weight.max(initial=0.0)), TINY)
        more = np.log(max(1.0, square / self.batches.penalty.l2))
        return vertex._replace(scores=frozen((1.0 + more / GOLD) * vertex.scores))


def parts_of(flat: FloatArray, scores: Potentials) -> Counts:
    """Return views of a vector in the shapes of unary and pair scores."""
    cut = scores.unary.size
    return Counts(flat[:cut].reshape(scores.unary.shape), flat[cut:].reshape(scores.pair.shape))
