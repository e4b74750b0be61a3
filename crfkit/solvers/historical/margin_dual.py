"""Exponentiated gradient and sequential minimal optimization on the dual of a margin."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, NamedTuple

import numpy as np

from crfkit._types import CodeArray, Counts, FloatArray, IdArray, Potentials, Random
from crfkit.compiler.jit import frozen
from crfkit.kernels.solvers.stochastic import dual_step
from crfkit.objective.batch import Objective
from crfkit.objective.stochastic import StochasticObjective
from crfkit.solvers.base import Check, SolverLog, one_of
from crfkit.solvers.margin.bounds import DualSearch, check_dual, inner, why_certified
from crfkit.solvers.stochastic.base import MiniBatchSolver
from crfkit.solvers.stochastic.exponentiated_gradient import GOLD
from crfkit.structures import Chain, ChainPotentials, Structure

# The first rate, and by how much a step may change the rate of a batch at most.
FIRST_RATE, SLOWER, FASTER = 1.0, 0.1, 4.0
# So many rates are tried in a visit.
TRIES = 4
LARGEST_RATE, TINY = 1e4, 1e-300
# A step along a smaller slope, for a sequence of weight 1, moves no mass to speak of; a part of the
# gap that is a smaller share of the scores is what rounding leaves. Large potentials round so much
# of the slope that below the third number its sign tells nothing.
NO_SLOPE, NO_GAP, HIDDEN = 1e-12, 1e-10, 1e-11
PAIRS = ("worst", "drawn")
ALPHAS = ("max_entropy", "largest")


@dataclass(kw_only=True, eq=False, repr=False)
class MarginEG(MiniBatchSolver):
    """Exponentiated gradient on the dual of a margin (Bartlett, Collins, Taskar, McAllester 2004).

    The distribution of the labelings of a sequence is ``a(y) ~ exp(sum of theta over its parts)``,
    and a step multiplies each probability by ``exp(r gradient)``: it adds ``r (cost + score)`` to
    the ``theta`` of each label and step, with the scores of ``w = sum_i (f_i(y_i) - E f_i(y)) / (2
    c2)`` (algorithm 2 and equation 50 of Gupta's report on conditional random fields). Sequences
    are visited one after the other. The rate ``r`` of a sequence follows from what its last step
    did to the dual, a parabola along the way: it falls where the best step would have been shorter,
    and a step that lowers the dual is not made, unless its slope is lost in rounding. Objective
    minus dual is the gap.

    Parameters
    ----------
    max_iter, tol, batch_tokens, random_state
        As for :class:`~crfkit.solvers.margin.Subgradient`; the sequences of a batch have one rate.

    Notes
    -----
    Needs the hinge loss with margin rescaling, a cost that is a sum over tokens; any structure.
    Holds two numbers for each token and label, and two tables of steps a batch. One thread; the
    dual method of choice is "bcfw", which is many times faster. The smaller c2 and the larger
    numeric features, the more passes. Parameters to start from are not used.
    """

    handles_l1: ClassVar[bool] = False
    needs_known_labels: ClassVar[bool] = True
    why_done: ClassVar[Callable[..., str | None]] = why_certified
    batches_per_update = 1

    max_iter: int = 200
    tol: float = 1e-2
    batch_tokens: int = 1
    random_state: int | np.random.RandomState | None = 0

    def _check_objective(self, objective: Objective) -> None:
        check_dual(self, objective)

    def _start(self, batches: StochasticObjective, start: FloatArray, random: Random) -> Ascent:
        return Ascent(batches)

    def _pass(self, search: Ascent, number: int, random: Random, log: SolverLog) -> FloatArray:
        for index in random.permutation(len(search.batches)).tolist():
            search.update(index)
        return search.weights()


class BlockDistribution(NamedTuple):
    """The distributions of a batch; in vectors, (Q,), labels stand before transitions."""

    scores: FloatArray  # (Q,) the potentials that stand for them
    expected: FloatArray  # (Q,) expected counts, weighted
    cost: float  # expected, weighted


class Proposal(NamedTuple):
    """An update of a batch: where it leads, and what it changes."""

    block: BlockDistribution
    rise: float  # of the cost
    slope: float  # the rise of the dual if that were linear
    indices: IdArray  # (n,) parameters that it moves
    gradient: FloatArray  # (n,) the change of the expected counts of their features


class Ascent(DualSearch):
    """Distributions of all batches in their exponential form, None for those on the true labels."""

    def __init__(self, batches: StochasticObjective) -> None:
        super().__init__(batches)
        self.costs, self.rates = np.zeros(len(batches)), np.full(len(batches), FIRST_RATE)
        self.blocks: list[BlockDistribution | None] = [None] * len(batches)
        self._sequence_weights = [frozen(batches.sequence_weight(i)) for i in range(len(batches))]

    def expected_cost(self) -> float:
        """Return the expected cost of all sequences, weighted."""
        return float(self.costs.sum())

    def update(self, index: int) -> None:
        """Update a batch, with a smaller rate where that lowers the dual."""
        propose = partial(self.propose, self.batches.bind(self.w))
        for _ in range(TRIES):
            [found] = self.batches.map_batches(propose, [index])
            if self._has_all(index, found) or self._is_made(index, found):
                break

    def _has_all(self, index: int, proposal: Proposal) -> bool:
        """Whether the worst labelings have all mass: potentials would grow without end."""
        weight = self._sequence_weights[index]
        if proposal.slope > NO_SLOPE * float(weight.sum()):
            return False
        scores = self.augmented(self.batches.bind(self.w), index)
        worst = inner(weight, self.batches.structure.argmax(scores)[1])
        mean = inner((self.blocks[index] or proposal.block).expected, flat(scores))
        return worst - mean <= NO_GAP * (abs(worst) + abs(mean))

    def _is_made(self, index: int, proposal: Proposal) -> bool:
        """Make a step if it raises the dual, a parabola on the way, and choose the next rate.

        Where rounding hides the slope, mass is yet to come to better labelings: go on to them.
        """
        step = partial(dual_step, frozen(proposal.indices), proposal.gradient)
        fall = self.c2 * step(-0.5 / self.c2, 0.0, self.w, self.w)
        hidden = abs(proposal.slope) <= HIDDEN * float(self._sequence_weights[index].sum())
        rises = hidden or proposal.rise - fall >= -NO_SLOPE * proposal.slope
        if rises:
            self.blocks[index], self.costs[index] = proposal.block, proposal.block.cost
        else:
            step(0.5 / self.c2, 0.0, self.w, self.w)
        best = 0.5 * proposal.slope / max(proposal.slope - (proposal.rise - fall), TINY)
        growth = min(max(best, SLOWER), FASTER) if proposal.slope > 0.0 else FASTER
        self.rates[index] = min(self.rates[index] * growth, LARGEST_RATE)
        return rises

    def propose(self, bound: Any, index: int) -> Proposal:
        """Return the step of a batch along the gradient of the dual, with its rate."""
        scores = self.augmented(bound, index)
        before, target = self.blocks[index] or self._first(scores, index), flat(scores)
        moved = frozen(before.scores + float(self.rates[index]) * target)
        expected = np.zeros_like(moved)
        counts = parts_of(expected, scores)
        with self.batches.original_sequence_numbers():
            self.batches.structure.log_partition(
                scores.with_arrays(*parts_of(moved, scores)), self._sequence_weights[index], counts
            )
        added = self.cost.added(self.batches.labels(index))
        cost = inner(counts.unary[:, : added.shape[1]], added)
        change = expected - before.expected
        return Proposal(
            BlockDistribution(moved, frozen(expected), cost),
            cost - before.cost,
            inner(change, target),
            self.batches.places(index),
            frozen(self.batches.gradient(index, parts_of(change, scores))),
        )

    def _first(self, scores: Potentials, index: int) -> BlockDistribution:
        """Return the distributions of a batch before its first visit: mostly on the true labels.

        The more so, the shorter the best step is: about ``c2 / (v |f(y1) - f(y2)|^2)``.
        """
        structure, labels = self.batches.structure, self.batches.labels(index)
        weight = self._sequence_weights[index]
        start, expected = np.zeros((2, scores.unary.size + scores.pair.size))
        parts_of(start, scores).unary[np.arange(len(labels)), labels] = GOLD
        structure.add_counts(scores, labels, weight, parts_of(expected, scores))
        residual = structure.zeros(scores)
        structure.add_counts(scores, structure.argmax(scores)[0], weight, residual)
        structure.add_counts(scores, labels, -weight, residual)
        change = self.batches.gradient(index, residual)
        square = inner(change, change) / max(float(weight.max(initial=0.0)), TINY)
        more = np.log(max(1.0, square / self.c2))
        return BlockDistribution(frozen((1.0 + more / GOLD) * start), frozen(expected), 0.0)


def flat(scores: Potentials) -> FloatArray:
    """Return unary and pair scores as one vector."""
    return np.concatenate([array.reshape(-1) for array in scores.arrays()])


def parts_of(vector: FloatArray, scores: Potentials) -> Counts:
    """Return views of a vector in the shapes of unary and pair scores."""
    cut = scores.unary.size
    return Counts(vector[:cut].reshape(scores.unary.shape), vector[cut:].reshape(scores.pair.shape))


@dataclass(kw_only=True, eq=False, repr=False)
class SMO(MiniBatchSolver):
    """Sequential minimal optimization on the factored dual (Taskar, Guestrin and Koller 2003).

    The dual variables are the marginals of the labels and steps of each sequence, in place of the
    probabilities of all its labelings. A step takes two labelings of a sequence and moves mass
    from the one to the other, as much as raises the dual most: ``2 c2 (a(y1) - a(y2)) / (v |f(y1) -
    f(y2)|^2)`` for scores ``a`` with costs added, and the weight ``v`` of the sequence, if there is
    so much (section 5 there; section 2.4.1 and equation 48 of Gupta's report on conditional random
    fields). It goes to the worst labeling, the one of the largest ``a``.

    The gap between the objective and the dual bounds how far the parameters are from the optimum.

    Parameters
    ----------
    max_iter, tol
        As for :class:`MarginEG`; a pass is one step of each sequence.
    pair : {"worst", "drawn"}, default="worst"
        Where the mass comes from. "worst": the labeling of the least ``a`` among those that have
        mass. "drawn": one drawn from the distribution of the largest entropy.
    alpha : {"largest", "max_entropy"}, default="largest"
        How much mass the other labeling has, as marginals alone do not say. "max_entropy": as much
        as in the distribution of the largest entropy that has these marginals, the choice of the
        paper. It becomes tiny for long sequences. "largest": as much as in the distribution that
        gives it most, which is the least of the marginals of its labels and steps.
    random_state : int, RandomState or None, default=0
        Orders the sequences of a pass, and draws.

    Notes
    -----
    Needs the hinge loss with margin rescaling, a cost that is a sum over tokens, and a chain whose
    steps are a table of all pairs of labels. Holds ``K * K + K`` numbers a token. One thread; the
    dual method of choice is "bcfw", which is many times faster. Parameters to start from are not
    used.
    """

    handles_l1: ClassVar[bool] = False
    needs_known_labels: ClassVar[bool] = True
    why_done: ClassVar[Callable[..., str | None]] = why_certified
    batch_tokens = 1
    batches_per_update = 1

    checks: ClassVar[dict[str, Check]] = {"pair": one_of(*PAIRS), "alpha": one_of(*ALPHAS)}

    max_iter: int = 200
    tol: float = 1e-2
    pair: str = "worst"
    alpha: str = "largest"
    random_state: int | np.random.RandomState | None = 0

    def _check_objective(self, objective: Objective) -> None:
        check_dual(self, objective)
        if not objective.structure.is_chain:
            raise ValueError(
                "solver SMO needs a chain whose steps are a table of all pairs of labels, not "
                f"{type(objective.structure).__name__}. Use another solver."
            )

    def _start(self, batches: StochasticObjective, start: FloatArray, random: Random) -> Factored:
        return Factored(batches, self.alpha == "max_entropy")

    def _pass(self, search: Factored, number: int, random: Random, log: SolverLog) -> FloatArray:
        for index in random.permutation(len(search.batches)).tolist():
            search.update(index, random if self.pair == "drawn" else None)
        return search.weights()


class Factored(DualSearch):
    """Marginals of the sequences, of largest entropy if `max_entropy`, and their parameters."""

    def __init__(self, batches: StochasticObjective, max_entropy: bool) -> None:
        super().__init__(batches)
        self.max_entropy = max_entropy
        self.chain: Structure = Chain()
        self.marginals = [
            ChainMarginals(batches.labels(index), batches.model.n_labels)
            for index in range(len(batches))
        ]
        # Empty sequences may share a batch with one: their weight has no part in it.
        self.weight = [
            float(batches.sequence_weight(index)[np.diff(chunk.offsets) > 0].sum())
            for index, chunk in enumerate(batches.chunks)
        ]

    def expected_cost(self) -> float:
        """Return the expected cost of all sequences, weighted."""
        return sum(
            weight * inner(self.cost.added(self.batches.labels(index)), marginals.node)
            for index, (weight, marginals) in enumerate(
                zip(self.weight, self.marginals, strict=True)
            )
        )

    def update(self, index: int, random: Random | None) -> None:
        """Make a step of a sequence, from a labeling that is drawn where there is `random`."""
        if not self.weight[index]:
            return
        self.batches.n_computed += 1
        marginals = self.marginals[index]
        scores = self.augmented(self.batches.bind(self.w), index)
        scores = scores.take_tokens(np.arange(len(scores.unary)), np.array([0, len(scores.unary)]))
        target, [top] = self.chain.argmax(scores)
        source = self._least(marginals, scores) if random is None else marginals.draw(random)
        slope = float(top - self.chain.score(scores, source)[0])
        if slope > 0.0:
            self._shift(index, scores, target, source, slope)

    def _least(self, marginals: ChainMarginals, scores: Potentials) -> CodeArray:
        """Return the labeling of the least score among those that have mass."""
        opposite = scores.with_arrays(-scores.unary, -scores.pair)
        return self.chain.argmax(marginals.supported(opposite))[0]

    def _shift(
        self, index: int, scores: Potentials, target: CodeArray, source: CodeArray, slope: float
    ) -> None:
        """Move the best mass, given how fast the dual rises at first."""
        marginals, one = self.marginals[index], np.ones(1)
        residual = self.chain.zeros(scores)
        self.chain.add_counts(scores, target, one, residual)
        self.chain.add_counts(scores, source, -one, residual)
        change = frozen(self.batches.gradient(index, residual))
        mass = marginals.movable(target, source)
        if self.max_entropy:
            mass = min(mass, marginals.probability(source))
        square = self.weight[index] * inner(change, change)
        if square > 0.0:
            mass = min(mass, 2.0 * self.c2 * slope / square)
        marginals.shift(target, source, mass)
        factor = -self.weight[index] * mass / (2.0 * self.c2)
        dual_step(frozen(self.batches.places(index)), change, factor, 0.0, self.w, self.w)


# Mass that is no more than what rounding leaves is none.
NO_MASS = 1e-13


class ChainMarginals:
    """Consistent marginals of one sequence: a point of the marginal polytope of a chain.

    Marginals of transitions that are not negative, and whose sums over either label are the
    marginals of the labels, belong to some distribution of the labelings (Taskar, Guestrin and
    Koller 2003, section 4). The one of the largest entropy among these is the Markov chain
    ``a(y) = prod_t mu_t(y_t, y_{t+1}) / prod_{0 < t < T - 1} mu_t(y_t)``. At first, all mass is on
    given labels. `node`, (T, K), is that of labels, `edge`, (T - 1, K, K), that of transitions.
    """

    def __init__(self, labels: CodeArray, n_labels: int) -> None:
        size = len(labels)
        self.node = np.zeros((size, n_labels))
        self.edge = np.zeros((max(size - 1, 0), n_labels, n_labels))
        self._tokens = np.arange(size)
        self._add(labels, 1.0)

    def probability(self, labels: CodeArray) -> float:
        """Return the mass of a labeling under the distribution of the largest entropy."""
        nodes, edges = self._on_path(labels)
        if not len(edges):
            return float(np.prod(nodes))
        if edges.min() <= NO_MASS:
            return 0.0
        return float(edges[0] * np.prod(edges[1:] / nodes[1:-1]))

    def movable(self, target: CodeArray, source: CodeArray) -> float:
        """Return the largest mass that any distribution of these marginals lets move."""
        nodes, edges = self._on_path(source)
        differ = target != source
        held = np.append(nodes[differ], edges[differ[1:] | differ[:-1]])
        return float(held.min(initial=1.0))

    def shift(self, target: CodeArray, source: CodeArray, mass: float) -> None:
        """Move mass from the labeling `source` to `target`.

        Equation 48 of Gupta's report, with the step size that is missing there in print.
        """
        self._add(target, mass)
        self._add(source, -mass)

    def supported(self, scores: Potentials) -> Potentials:
        """Return scores of the same sequence that forbid what has no mass."""
        size = len(self.node)
        unary = scores.clamp(self.node > NO_MASS).unary
        pair = np.zeros((size, *self.edge.shape[1:]))
        table = scores.transition_index
        steps = scores.pair if len(table) == 1 else scores.pair[table[1:]]
        pair[1:] = np.where(self.edge > NO_MASS, steps, -np.inf)
        return ChainPotentials(unary, pair, np.arange(size, dtype=np.uint32), np.array([0, size]))

    def draw(self, random: np.random.RandomState) -> CodeArray:
        """Return a labeling, drawn from the distribution of the largest entropy."""
        labels = np.empty(len(self.node), np.int32)
        row = self.node[:1].reshape(-1)
        for t, point in enumerate(random.random_sample(len(labels))):
            if t:
                row = self.edge[t - 1, labels[t - 1]]
            mass = np.cumsum(row)
            labels[t] = min(np.searchsorted(mass, point * mass[-1], side="right"), len(row) - 1)
        return labels

    def _on_path(self, labels: CodeArray) -> tuple[FloatArray, FloatArray]:
        """Return the mass of each label, (T,), and of each transition, (T - 1,), of a labeling."""
        steps = self.edge[self._tokens[:-1], labels[:-1], labels[1:]]
        return self.node[self._tokens, labels], steps

    def _add(self, labels: CodeArray, mass: float) -> None:
        """Add mass to a labeling; what rounding leaves below 0 is 0."""
        nodes, edges = self._on_path(labels)
        self.node[self._tokens, labels] = np.maximum(nodes + mass, 0.0)
        self.edge[self._tokens[:-1], labels[:-1], labels[1:]] = np.maximum(edges + mass, 0.0)
