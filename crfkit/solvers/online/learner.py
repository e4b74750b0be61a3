"""Online learning: weights that move after each mistake in a sequence."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple, Protocol, cast

import numpy as np

from crfkit._parallel import CHUNKS_AT_ONCE, cut_order
from crfkit._types import CodeArray, Counts, FloatArray, IntArray, Potentials
from crfkit.compiler.dispatch import interpreted
from crfkit.compiler.jit import frozen
from crfkit.data.targets import Targets, Weights
from crfkit.kernels.oracle import FOUND, INFINITE, Examples
from crfkit.kernels.solvers import online as kernels
from crfkit.labels.costs import AdditiveCost
from crfkit.losses import Loss
from crfkit.losses.margin import best_allowed
from crfkit.objective.batch import Objective
from crfkit.objective.penalties import ElasticNet
from crfkit.oracles import Oracle, find_oracle
from crfkit.oracles.label_order import LabelOrder
from crfkit.potentials import LinearModel
from crfkit.solvers.online.latent import LatentLabels
from crfkit.solvers.structure_problem import OnlineStructureProblem, StructureWorkspace
from crfkit.structures import NoSegmentationError, Structure, check_prefixes

# Arrays of a state, each of shape (P,).
VECTORS = ("current", "later", "gained")
# Rounds of Hildreth's method at most, the change that ends it, and the share of a score it leaves.
ROUNDS, SMALL, LEFT = 1000, 1e-12, 1e-9

Saved = dict[str, Any] | None  # what a learner goes on from
# Told of each update: how many sequences were looked at before, parameters and their changes.
Recorder = Callable[[int, IntArray, FloatArray], None]


class PrefixSearch(Protocol):
    """A search that may lose the true labels on its way."""

    def violation(self, scores: Potentials, labels: CodeArray) -> tuple[CodeArray, int]:
        """Return labels of a sequence, and how many of the first of them to learn from."""


class OnlineProblem(NamedTuple):
    """What is learned, and how."""

    objective: Objective  # neither its loss nor its penalty is read
    update: kernels.UpdateCoefficients
    cost: AdditiveCost | None = None  # added to the scores of labels when they are predicted
    search: PrefixSearch | None = None  # predicts instead of the structure
    order: LabelOrder | None = None  # of labels that score the same; None: by their codes

    @property
    def weight(self) -> FloatArray:
        """The weight of each sequence, shape (S,); ValueError if those of its tokens differ."""
        weight = Weights.of(self.objective.weight, self.objective.data.offsets).sequences
        if weight is None:
            raise ValueError(
                "online learning needs the same weight for all tokens of a sequence: give "
                "sample_weight a number for each sequence."
            )
        return np.ascontiguousarray(weight)

    @property
    def label_order(self) -> LabelOrder:
        """Which label is predicted of some that score the same."""
        return self.order or LabelOrder.by_code(self.objective.model.n_codes)

    @property
    def examples(self) -> Examples:
        """What is to be learned, with labels as they are numbered in the data."""
        cost = np.zeros((0, 0)) if self.cost is None else self.cost.table
        labels = np.asarray(self.objective.targets.states, np.int32)
        return Examples(frozen(self.weight), frozen(labels[None]), frozen(cost))


def count_updates(weight: FloatArray, offsets: IntArray) -> int:
    """Return how many sequences a pass looks at: those with a token of weight, and empty ones."""
    used = np.concatenate([[0], np.cumsum(weight > 0.0)])[offsets]
    return int(np.count_nonzero((np.diff(used) > 0) | (np.diff(offsets) == 0)))


class InfiniteScoresError(ArithmeticError):
    """The weights have grown so far that scores are no longer finite."""


class OnlineLearner(ABC):
    """Weights, and their mean, that learn sequence by sequence; `saved` lets them go on."""

    def __init__(
        self, problem: OnlineProblem, start: FloatArray, saved: Saved = None, oracle: Any = None
    ) -> None:
        self.problem, saved = problem, saved or {}
        self._oracle: Oracle | None = oracle
        sums = np.zeros(kernels.N_SUMS)
        sums[kernels.COUNT] = saved.get("count", 1.0)
        zeros = np.zeros(len(start))
        given = (saved.get(name, other) for name, other in zip(
            VECTORS, (start, zeros, zeros), strict=True))  # fmt: skip
        current, later, gained = (self._pack(vector) for vector in given)
        self.state = kernels.OnlineState(current, later, gained, self._pack(zeros), sums)
        self.recorder: Recorder | None = None

    def _pack(self, parameters: FloatArray) -> FloatArray:
        """Return parameters as kernels have them: a new array."""
        return self._oracle.weights.pack(parameters) if self._oracle else parameters + 0.0

    def _unpack(self, flat: FloatArray) -> FloatArray:
        """Return a vector of kernels as parameters: a new array."""
        return self._oracle.weights.unpack(flat) if self._oracle else flat.copy()

    @abstractmethod
    def _learn(self, order: IntArray) -> None:
        """Look at sequences in this order."""

    def run(self, order: IntArray) -> tuple[float, int]:
        """Look at sequences in this order; return the sum of their losses and the mistakes."""
        sums = self.state.sums
        sums[[kernels.LOSS, kernels.MISTAKES]] = 0.0
        self._learn(order)
        return float(sums[kernels.LOSS]), int(sums[kernels.MISTAKES])

    def weights(self) -> FloatArray:
        """Return the weights, shape (P,)."""
        return self._unpack(self.state.current)

    def mean(self) -> FloatArray:
        """Return the mean of the weights at the start and after each sequence, shape (P,)."""
        return self._unpack(self.state.current - self.state.later / self.state.sums[kernels.COUNT])

    def save(self) -> dict[str, Any]:
        """Return what it takes to go on: three arrays of shape (P,), and the count."""
        arrays = dict(zip(VECTORS, map(self._unpack, self.state[:3]), strict=True))
        return arrays | {"count": float(self.state.sums[kernels.COUNT])}

    def _record(self, count: int, numbers: IntArray, changes: FloatArray) -> None:
        """Tell of an update, of parameters some of which may be listed many times."""
        if self.recorder is not None:
            numbers, which = np.unique(numbers, return_inverse=True)
            total = np.bincount(which, changes, len(numbers)).astype(np.float64)
            moved = np.flatnonzero(total)
            self.recorder(count, numbers[moved].astype(np.int64), total[moved])


class SequentialLearner(OnlineLearner):
    """Learns by the kernel of online updates: compiled, or in Python, as the structure allows."""

    def __init__(
        self, problem: OnlineProblem, start: FloatArray, saved: Saved = None, oracle: Any = None
    ) -> None:
        super().__init__(problem, start, saved, oracle)
        own: Any
        if oracle is None:
            own, examples = _structure_problem(problem), problem.examples
            longest = int(np.diff(own.offsets).max(initial=0))
            workspace = StructureWorkspace(self.state.current, longest)
        else:
            cost = None if problem.cost is None else problem.cost.table
            own, states = oracle.problem, problem.objective.targets.states
            examples = oracle.examples(problem.weight, states, cost)
            workspace = oracle.workspace(self.state.current)
        self._latent: LatentLabels | None = None
        if not problem.objective.has_known_labels:
            labels = examples.labels[0].copy()
            examples = examples._replace(labels=frozen(labels[None]))  # which sees what changes
            if oracle is None:
                own = replace(own, labels=labels)
            targets, n_codes = problem.objective.targets, problem.objective.model.n_codes
            self._latent = LatentLabels(targets, n_codes, labels, examples, own, workspace, oracle)
        self._fixed = own, examples, self.state, workspace
        self._updates = kernels.online_updates if oracle else interpreted(kernels.online_updates)

    @property
    def is_compiled(self) -> bool:
        """Whether the structure has an oracle."""
        return self._oracle is not None

    def _learn(self, order: IntArray) -> None:
        objective = self.problem.objective
        lengths, tokens = objective.data.lengths, CHUNKS_AT_ONCE * objective.model.chunk_tokens
        for piece in map(frozen, cut_order(order, lengths, tokens)):
            if self._latent is None:
                self._update(piece)
                continue
            for run in self._latent.runs(piece):
                self._update(run, self._latent.find(run))

    def _update(self, piece: IntArray, status: int = FOUND) -> None:
        """Look at sequences with labels; `status` is what came of the search for these."""
        pause, workspace, number = self.recorder is not None, self._fixed[-1], 0
        while number < len(piece):
            size = 0
            if status == FOUND:
                number, size, status = self._updates(
                    piece, number, pause, self.problem.update, *self._fixed
                )
            if status == INFINITE:
                raise InfiniteScoresError
            if status != FOUND:
                raise NoSegmentationError(int(piece[number]), status)
            if size:
                numbers = workspace.positions[:size].astype(np.int64)
                if self._oracle is not None:
                    numbers = self._oracle.parameter_numbers(numbers)
                count = int(self.state.sums[kernels.COUNT]) - 2
                self._record(count, numbers, workspace.changes[:size])


class KBestLearner(OnlineLearner):
    """Learns from several of the best labelings of a sequence at once (MIRA)."""

    def __init__(self, problem: OnlineProblem, start: FloatArray, saved: Saved = None) -> None:
        super().__init__(problem, start, saved)
        self._own, self._weight = _structure_problem(problem), problem.weight

    def _learn(self, order: IntArray) -> None:
        lengths = np.diff(self._own.offsets)
        for s in order.tolist():
            if lengths[s]:
                if not self._weight[s] > 0.0:
                    continue
                with self._own.batches.original_sequence_numbers():
                    self._fit(int(self._own.batch[s]), float(self._weight[s]))
            self.state.sums[kernels.COUNT] += 1.0

    def _fit(self, index: int, weight: float) -> None:
        """Make the shortest update after which the true labels win against the best ones."""
        problem, batches = self.problem, self._own.batches
        targets, scores = batches.targets(index), batches.scores(
            batches.bind(self.state.current), index)  # fmt: skip
        if not np.isfinite(scores.unary).all():
            raise InfiniteScoresError
        best = problem.label_order.predict(
            lambda seen: batches.structure.k_best(seen, self.problem.update.n_best).codes, scores
        ).reshape(-1, len(scores.unary))
        labels = best_allowed(batches.structure, scores, targets)
        mask, every = targets.mask(scores.n_codes), np.arange(len(labels))
        paths = [path for path in best if not mask[every, path].all()]
        if not paths:
            return
        found = [self._difference(index, scores, labels, path) for path in paths]
        deltas, rises, tops = map(np.array, zip(*found, strict=True))
        costs = np.array([float(np.count_nonzero(labels != path)) for path in paths])
        losses = rises + costs
        factors, loss = np.zeros(len(paths)), max(float(losses.max()), 0.0)
        if loss > LEFT * float((abs(tops) + costs).max()):
            factors = hildreth(deltas @ deltas.T, losses, self.problem.update.cap)
        if factors.any() or not mask[every, best[0]].all():
            self.state.sums[[kernels.LOSS, kernels.MISTAKES]] += weight * loss, 1.0
        if factors.any():
            self._apply(index, factors @ deltas, weight)

    def _difference(
        self, index: int, scores: Potentials, labels: CodeArray, path: CodeArray
    ) -> tuple[FloatArray, float, float]:
        """Return the features of the true minus those of other labels; the rise and score."""
        batches, one = self._own.batches, np.ones(1)
        structure = batches.structure
        out = structure.zeros(scores)
        structure.add_counts(scores, labels, one, out)
        structure.add_counts(scores, path, -one, out)
        top, gold = (float(structure.score(scores, of)[0]) for of in (path, labels))
        return batches.gradient(index, out), top - gold, top

    def _apply(self, index: int, delta: FloatArray, weight: float) -> None:
        positions = np.array(self._own.batches.places(index))  # as the kernels' own lists are
        update = self.problem.update._replace(rate=1.0)
        kernels.apply_update(len(positions), positions, delta, 0.0, weight, update, self.state)
        self._record(int(self.state.sums[kernels.COUNT]) - 1, positions.astype(np.int64), delta)


class MistakeLoss(Loss):
    """The share of wrong labels of the best labeling; its gradient is the perceptron's step.

    The `mistakes` are how many sequences of each batch had a wrong label.
    """

    def __init__(self, cost: Any = None, order: LabelOrder | None = None) -> None:
        self.cost, self.order = cost, order
        self.mistakes: list[int] = []

    def value_and_grad(
        self,
        structure: Structure,
        potentials: Potentials,
        targets: Targets,
        weights: Weights,
        out: Counts,
    ) -> float:
        """Return the loss of a batch, as in :class:`crfkit.losses.Loss`."""
        level, labels = weights.shared, targets.states
        seen = scores = potentials
        if self.cost is not None:
            seen = scores.plus_unary(self.cost.added(targets.labels))
        order = self.order or LabelOrder.by_code(scores.n_codes)
        path = order.predict(lambda ordered: structure.argmax(ordered)[0], seen)
        if targets.allowed is not None:
            clamped = scores.clamp(targets.allowed)
            labels = order.predict(lambda ordered: structure.argmax(ordered)[0], clamped)
        lengths = np.diff(scores.offsets)
        out.unary[...] = 0.0
        structure.add_counts(scores, path, level, out)
        structure.add_counts(scores, labels, -level, out)
        before = np.concatenate([[0], np.cumsum(path != labels)])
        wrong: IntArray = np.diff(before[scores.offsets]).astype(np.int64)
        self.mistakes.append(int(np.count_nonzero(wrong[level > 0.0])))
        return float(np.sum(level * wrong / np.maximum(lengths, 1)))


class BatchLearner:
    """Passes at fixed weights, over threads, after each of which the mean of all steps is made."""

    def __init__(self, problem: OnlineProblem, start: FloatArray) -> None:
        self.problem, self._w = problem, start.copy()
        self._size = float(problem.weight.sum()) or 1.0

    def run(self, order: IntArray) -> tuple[float, int]:
        """Look at all sequences, in any order; return the sum of their losses and the mistakes."""
        loss = MistakeLoss(self.problem.cost, self.problem.order)
        objective = self.problem.objective.with_loss(loss).with_penalty(ElasticNet(0.0, 0.0))
        value, gradient = objective.value_and_grad(self._w)
        self._w = self._w - (self.problem.update.rate / self._size) * gradient
        if not np.isfinite(self._w).all():
            raise InfiniteScoresError
        return float(value), sum(loss.mistakes)

    def weights(self) -> FloatArray:
        """Return the weights, shape (P,)."""
        return self._w.copy()


def _structure_problem(problem: OnlineProblem) -> OnlineStructureProblem:
    """Return the problem in the form that needs no oracle."""
    objective = problem.objective
    batches = objective.minibatches(0, _InOrder())
    firsts = [chunk.first for chunk in batches.chunks]
    batch = np.searchsorted(firsts, np.arange(len(objective.data)), side="right") - 1
    return OnlineStructureProblem(
        batches, batches.offsets, batch, problem.label_order, problem.cost, problem.search,
        objective.targets.states,
    )  # fmt: skip


def make_learner(problem: OnlineProblem, start: FloatArray, saved: Saved = None) -> OnlineLearner:
    """Return what learns fastest."""
    if problem.update.n_best > 1:
        return KBestLearner(problem, start, saved)
    objective, oracle = problem.objective, None
    if problem.search is not None:
        check_prefixes(objective.structure)
    elif objective.has_known_labels or objective.model.n_codes == objective.model.n_labels:
        model, structure = cast(LinearModel, objective.model).linear(objective.structure)
        order = problem.label_order
        oracle = find_oracle(model, structure, objective.data, order, objective.threads)
    return SequentialLearner(problem, start, saved, oracle)


def hildreth(gram: FloatArray, losses: FloatArray, cap: float) -> FloatArray:
    """Return multipliers of constraints: ``max a . losses - 1/2 a' gram a``, ``0 <= a <= cap``.

    Hildreth (1957): one after the other is moved to its best value. `losses`, (n,), are violations.
    """
    factors = np.zeros(len(losses))
    for _ in range(ROUNDS):
        most = 0.0
        for i in np.flatnonzero(np.diag(gram) > 0.0):
            better = factors[i] + (losses[i] - gram[i] @ factors) / gram[i, i]
            better = min(max(better, 0.0), cap)
            most = max(most, abs(better - factors[i]))
            factors[i] = better
        if most <= SMALL * max(float(factors.max()), 1.0):
            break
    return factors


class _InOrder(np.random.RandomState):
    """Deals sequences in the order of the data."""

    def permutation(self, x: Any) -> Any:
        """Return the numbers below `x` as they come."""
        return np.arange(x)
