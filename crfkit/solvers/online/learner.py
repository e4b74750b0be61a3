"""Online learning: a look at one sequence after the other, and a step after each mistake."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cached_property
from typing import Any, NamedTuple, Protocol

import numpy as np

from crfkit._types import CodeArray, Counts, FloatArray, IntArray, Potentials
from crfkit.compiler.jit import frozen
from crfkit.data.targets import Weights
from crfkit.kernels.chain.sum import OK
from crfkit.kernels.semimarkov.oracle import INFINITE
from crfkit.kernels.solvers.online import (
    COUNT,
    LOSS,
    MISTAKES,
    N_SUMS,
    SHARE,
    chain_online_visits,
    online_loss,
    online_move,
)
from crfkit.kernels.solvers.segment_online import segment_online_visits
from crfkit.labels.costs import AdditiveCost
from crfkit.losses._costs import with_cost
from crfkit.objective.stochastic import StochasticObjective, is_plain_chain
from crfkit.oracles.chain import AT_ONCE
from crfkit.oracles.label_order import LabelOrder
from crfkit.oracles.partition import AlignedWeights, aligned
from crfkit.oracles.semimarkov import SegmentVisits, is_plain_segments
from crfkit.oracles.token_design import TokenDesign
from crfkit.structures import NoSegmentationError

# Arrays of a state, each of shape (P,).
VECTORS = ("current", "later", "gained")
# Rounds of Hildreth's method at most, the change that ends it, and the share of a score it leaves.
ROUNDS, SMALL, LEFT = 1000, 1e-12, 1e-9

# Told of each step: how many sequences were looked at before, parameters and their changes.
Recorder = Callable[[int, IntArray, FloatArray], None]


class Rule(NamedTuple):
    """How long a step is; see the kernels of `chain_online`.

    Attributes
    ----------
    rate : float
        The length of all steps; 0 where the loss decides.
    cap, extra : float
        The longest step, and what is added to the square of the difference of the features.
    variance : float
        That of each weight at the start; 0 where all weights are alike.
    pays : int
        Which cost the loss adds to the rise of the score.
    n_best : int
        Of how many labellings the loss is looked at.
    """

    rate: float = 0.0
    cap: float = math.inf
    extra: float = 0.0
    variance: float = 0.0
    pays: int = SHARE
    n_best: int = 1

    @property
    def numbers(self) -> FloatArray:
        """What kernels read."""
        return frozen(np.array([self.rate, self.cap, self.extra, self.variance, self.pays], float))


class PrefixSearch(Protocol):
    """A search that may lose the true labels on its way."""

    def violation(self, scores: Potentials, labels: CodeArray) -> tuple[CodeArray, int]:
        """Return labels of a sequence, and how many of the first of them to learn from."""


class Task(NamedTuple):
    """What is learned, and how.

    Attributes
    ----------
    objective : Objective
        Score model, structure, data, labels, weights and threads; neither its loss nor its penalty.
    rule : Rule
        The lengths of steps.
    cost : AdditiveCost or None
        Added to the scores of labels when they are predicted.
    search : PrefixSearch or None
        Predicts instead of the structure.
    ties : LabelOrder or None
        Which label is predicted of some that score the same; None: that of the lowest code.
    """

    objective: Any
    rule: Rule
    cost: AdditiveCost | None = None
    search: PrefixSearch | None = None
    ties: LabelOrder | None = None

    @property
    def weight(self) -> FloatArray:
        """The weight of each sequence, shape (S,).

        Raises
        ------
        ValueError
            If the tokens of a sequence have different weights.
        """
        weight = Weights.of(self.objective.weight, self.objective.data.offsets).sequences
        if weight is None:
            raise ValueError(
                "online learning needs the same weight for all tokens of a sequence: give "
                "sample_weight a number for each sequence."
            )
        return np.ascontiguousarray(weight)


def count_looks(weight: FloatArray, offsets: IntArray) -> int:
    """Return how many sequences a pass looks at, given weights of tokens: not those of weight 0.

    Empty ones, of which no weight is known, are among them.
    """
    used = np.concatenate([[0], np.cumsum(weight > 0.0)])[offsets]
    return int(np.count_nonzero((np.diff(used) > 0) | (np.diff(offsets) == 0)))


class InfiniteScoresError(ArithmeticError):
    """The weights have grown so far that scores are no longer finite."""


class OnlineVisits:
    """Weights, and their mean, that visits of sequences move.

    Parameters
    ----------
    task : Task
        What is learned.
    start : ndarray of shape (P,)
        First parameters; not changed.
    state : dict, optional
        From :meth:`state`: goes on from there.
    """

    def __init__(self, task: Task, start: FloatArray, state: dict[str, Any] | None = None) -> None:
        self.task, self.rule = task, task.rule.numbers
        self.sums = np.zeros(N_SUMS)
        self.ties = task.ties or LabelOrder.by_code(task.objective.model.n_codes)
        state = state or {}
        self.sums[COUNT] = state.get("count", 1.0)
        given = [state.get(name) for name in VECTORS[1:]]
        given = [state.get(VECTORS[0], start), *given, None]
        self.vectors = tuple(self._spread(vector) for vector in given)
        self.recorder: Recorder | None = None

    def _spread(self, parameters: FloatArray | None) -> FloatArray:
        """Return parameters, or zeros, as kernels have them: a new array."""
        size = self.task.objective.n_parameters
        return np.zeros(size) if parameters is None else parameters + 0.0

    def _collect(self, vector: FloatArray) -> FloatArray:
        """Return a vector of kernels as parameters: a new array."""
        return vector.copy()

    def _visit_all(self, order: IntArray) -> None:
        """Look at sequences in this order."""
        raise NotImplementedError

    def run(self, order: IntArray) -> tuple[float, int]:
        """Look at sequences in this order; return the sum of their losses and the mistakes.

        Raises
        ------
        InfiniteScoresError
            If scores are no longer finite.
        """
        self.sums[[LOSS, MISTAKES]] = 0.0
        self._visit_all(order)
        return float(self.sums[LOSS]), int(self.sums[MISTAKES])

    def weights(self) -> FloatArray:
        """Return the weights, shape (P,)."""
        return self._collect(self.vectors[0])

    def mean(self) -> FloatArray:
        """Return the mean of the weights at the start and after each visit, shape (P,)."""
        current, later = self.vectors[:2]
        return self._collect(current - later / self.sums[COUNT])

    def state(self) -> dict[str, Any]:
        """Return what it takes to go on: three arrays of shape (P,), and the count."""
        arrays = dict(zip(VECTORS, map(self._collect, self.vectors[:3]), strict=True))
        return arrays | {"count": float(self.sums[COUNT])}


class GeneralVisits(OnlineVisits):
    """Visits for any structure."""

    def __init__(self, task: Task, start: FloatArray, state: dict[str, Any] | None = None) -> None:
        super().__init__(task, start, state)
        self.batches: StochasticObjective = task.objective.minibatches(0, _InOrder())
        self._weight = task.weight
        firsts = [chunk.first for chunk in self.batches.chunks]
        sequences = np.arange(len(self._weight))
        self._batch = np.searchsorted(firsts, sequences, side="right") - 1

    def _visit_all(self, order: IntArray) -> None:
        lengths = np.diff(self.batches.offsets)
        for s in order.tolist():
            if lengths[s]:
                if not self._weight[s] > 0.0:
                    continue
                with self.batches.original_sequence_numbers():
                    self._visit(int(self._batch[s]), float(self._weight[s]))
            self.sums[COUNT] += 1.0

    def _visit(self, index: int, weight: float) -> None:
        """Look at a sequence, and make a step after a mistake."""
        scores = self.batches.scores(self.batches.bind(self.vectors[0]), index)
        if not np.isfinite(scores.unary).all():
            raise InfiniteScoresError
        if self.task.rule.n_best > 1:
            self._fit_best(index, weight, scores)
            return
        labels = self.batches.labels(index)
        path, stop = self._predict(scores, labels)
        wrong = int(np.count_nonzero(path[:stop] != labels[:stop]))
        if not wrong:
            return
        delta, rise, top = self._difference(index, scores, path, stop)
        cost = self._cost(labels[:stop], path[:stop])
        near = 0.0 if self.task.cost is None else abs(top) + cost
        loss = online_loss(self.task.rule.pays, rise, cost, wrong, len(labels), near)
        if loss > 0.0:
            self._count(weight * loss)
            self._move(index, delta, loss, weight, self.rule)

    def _count(self, loss: float) -> None:
        """Count a mistake."""
        self.sums[LOSS] += loss
        self.sums[MISTAKES] += 1.0

    def _predict(self, scores: Potentials, labels: CodeArray) -> tuple[CodeArray, int]:
        """Return predicted labels, and how many of the first of them to learn from."""
        if self.task.cost is not None:
            scores = with_cost(scores, labels, self.task.cost)
        search = self.task.search
        if search is None:
            plain, scores = self.batches.plain, self.batches.structure.with_offset(scores)
            return self.ties.predict(lambda seen: plain.argmax(seen)[0], scores), len(labels)
        ranks = self.ties.rank[labels].astype(np.int32)
        path, stop = search.violation(self.ties.scores(scores), ranks)
        return self.ties.order[path].astype(np.int32), stop

    def _cost(self, labels: CodeArray, path: CodeArray) -> float:
        """Return the cost of labels: their number, if there is no other."""
        if self.task.cost is None:
            return float(np.count_nonzero(labels != path))
        return float(self.task.cost.total(labels, path, np.array([0, len(labels)]))[0])

    def _difference(
        self, index: int, scores: Potentials, path: CodeArray, stop: int
    ) -> tuple[FloatArray, float, float]:
        """Return the features of the true minus those of other labels; the rise and score of these.

        Of the first `stop` tokens. The features are those at the places of the batch.
        """
        structure, labels = self.batches.structure, self.batches.labels(index)
        out, one = structure.zeros(scores), np.ones(1)
        part = scores.take_tokens(np.arange(stop), np.array([0, stop]))
        part_out = Counts(out.unary[:stop], out.pair)
        structure.add_counts(part, labels[:stop], one, part_out)
        structure.add_counts(part, path[:stop], -one, part_out)
        top, gold = (float(structure.score(part, of[:stop])[0]) for of in (path, labels))
        return self.batches.gradient(index, out), top - gold, top

    def _move(
        self, index: int, delta: FloatArray, loss: float, weight: float, rule: FloatArray
    ) -> None:
        """Make a step."""
        places, count = frozen(self.batches.places(index)), float(self.sums[COUNT])
        online_move(places, delta, loss, weight, count, rule, self.vectors)
        if self.recorder is not None:
            moved = np.flatnonzero(delta)
            self.recorder(int(count) - 1, places[moved].astype(np.int64), delta[moved])

    def _fit_best(self, index: int, weight: float, scores: Potentials) -> None:
        """Make the shortest step after which the true labels win against the best ones."""
        rule, labels = self.task.rule, self.batches.labels(index)
        k_best = self.batches.structure.k_best
        best = self.ties.predict(lambda seen: k_best(seen, rule.n_best)[0], scores)
        paths = [path for path in best if (path != labels).any()]
        if not paths:
            return
        found = [self._difference(index, scores, path, len(labels)) for path in paths]
        deltas, rises, tops = map(np.array, zip(*found, strict=True))
        costs = np.array([self._cost(labels, path) for path in paths])
        losses = rises + costs
        factors, loss = np.zeros(len(paths)), max(float(losses.max()), 0.0)
        if loss > LEFT * float((abs(tops) + costs).max()):
            factors = hildreth(deltas @ deltas.T, losses, rule.cap)
        if factors.any() or (best[0] != labels).any():
            self._count(weight * loss)
        if factors.any():
            self._move(index, factors @ deltas, 0.0, weight, rule._replace(rate=1.0).numbers)


class CompiledVisits(OnlineVisits):
    """Visits in compiled code, many at a time."""

    def _visit_all(self, order: IntArray) -> None:
        pause = self.recorder is not None
        for first in range(0, len(order), AT_ONCE):
            piece, number = frozen(order[first : first + AT_ONCE]), 0
            while number < len(piece):
                number, size = self._look(piece, number, pause)
                if self.recorder is not None and size:
                    self._record(self.recorder, *self._last(size))

    def _look(self, order: IntArray, first: int, pause: bool) -> tuple[int, int]:
        """Visit ``order[first:]``; return where to go on and the size of the last step."""
        raise NotImplementedError

    def _last(self, size: int) -> tuple[IntArray, FloatArray]:
        """Return the places of the last step, some perhaps many times, and their changes."""
        raise NotImplementedError

    def _record(self, recorder: Recorder, places: IntArray, changes: FloatArray) -> None:
        """Tell of the last step."""
        places, which = np.unique(places, return_inverse=True)
        total = np.bincount(which, changes, len(places)).astype(np.float64)
        moved = np.flatnonzero(total)
        recorder(int(self.sums[COUNT]) - 2, places[moved].astype(np.int64), total[moved])


class SemiMarkovVisits(CompiledVisits):
    """Visits of segments whose steps share their scores."""

    def __init__(self, task: Task, start: FloatArray, state: dict[str, Any] | None = None) -> None:
        super().__init__(task, start, state)
        objective, ties = task.objective, self.ties
        model, structure = objective.model.linear(objective.structure)
        arrays = SegmentVisits(model, structure, objective.data, ties)
        cost = np.zeros((0, 0))
        if task.cost is not None:
            cost = task.cost.table[ties.order][:, ties.order]
        labels = ties.rank[objective.labels].astype(np.int32)
        own, self._noted = arrays.own(), arrays.noted()
        self._fixed = (
            self.rule, frozen(cost),
            (frozen(objective.data.offsets), frozen(task.weight), frozen(labels)), arrays.model,
            self.vectors, self.sums, own, self._noted,
        )  # fmt: skip

    def _look(self, order: IntArray, first: int, pause: bool) -> tuple[int, int]:
        number, size, found = segment_online_visits(order, first, pause, *self._fixed)
        if found == INFINITE:
            raise InfiniteScoresError
        if found != OK:
            raise NoSegmentationError(int(order[number]), found)
        return number, size

    def _last(self, size: int) -> tuple[IntArray, FloatArray]:
        _, places, changes = self._noted
        return places[:size], changes[:size]


class ChainVisits(CompiledVisits):
    """Visits of a chain whose steps share their scores."""

    def __init__(self, task: Task, start: FloatArray, state: dict[str, Any] | None = None) -> None:
        objective = task.objective
        data, n_labels = objective.data, objective.model.n_labels
        ties = task.ties or LabelOrder.by_code(n_labels)
        weights = self._weights = AlignedWeights(ties.model(objective.model))
        super().__init__(task, start, state)
        labels = ties.rank[objective.labels].astype(np.int32)
        entries = TokenDesign(weights, data, objective.threads)
        cost = np.zeros((0, weights.width))
        if task.cost is not None:
            cost = np.zeros((n_labels, weights.width))
            cost[:, :n_labels] = task.cost.table[ties.order][:, ties.order]
        self._fixed = (
            n_labels, self.rule, frozen(cost),
            (frozen(data.offsets), frozen(task.weight), frozen(labels)), entries.arrays,
            self.vectors, weights.table(self.vectors[0]), weights.bits, self.sums,
        )  # fmt: skip
        self._own = _workspace(entries, data.offsets, weights.width)

    def _spread(self, parameters: FloatArray | None) -> FloatArray:
        size = self._weights.size
        return aligned(size) if parameters is None else self._weights.spread(parameters)

    def _collect(self, vector: FloatArray) -> FloatArray:
        return self._weights.collect(vector)

    def _look(self, order: IntArray, first: int, pause: bool) -> tuple[int, int]:
        number, size = chain_online_visits(order, first, pause, *self._fixed, self._own)
        if size < 0:
            raise InfiniteScoresError
        return number, size

    def _last(self, size: int) -> tuple[IntArray, FloatArray]:
        return self._numbers[self._own[-2][:size]], self._own[-1][:size]

    @cached_property
    def _numbers(self) -> IntArray:
        """The parameter at each spot of the flat vector."""
        spots = self._weights.spots
        numbers = np.empty(self._weights.size, np.int64)
        numbers[spots] = np.arange(len(spots))
        return numbers


def make_visits(task: Task, start: FloatArray, state: dict[str, Any] | None = None) -> OnlineVisits:
    """Return what makes the visits fastest."""
    kind: type[OnlineVisits] = GeneralVisits
    if task.search is None and task.rule.n_best == 1:
        if is_plain_chain(task.objective.model, task.objective.structure):
            kind = ChainVisits
        elif is_plain_segments(task.objective.model, task.objective.structure):
            kind = SemiMarkovVisits
    return kind(task, start, state)


def hildreth(gram: FloatArray, losses: FloatArray, cap: float) -> FloatArray:
    """Return multipliers of constraints: ``max a . losses - 1/2 a' gram a``, ``0 <= a <= cap``.

    By the method of Hildreth (1957): one after the other is moved to its best value.

    Parameters
    ----------
    gram : ndarray of shape (n, n)
        Inner products of the constraints.
    losses : ndarray of shape (n,)
        By how much each is violated.
    cap : float
        The largest multiplier.
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


def _workspace(entries: TokenDesign, offsets: IntArray, width: int) -> tuple[Any, ...]:
    """Return room for the visit of a sequence; see the kernel."""
    longest, n_dense = int(np.diff(offsets).max(initial=0)), entries.dense.shape[1]
    rows, cells = entries.rows[0][offsets], entries.cells[0][offsets]
    most = int(np.max(2 * np.diff(rows) + np.diff(cells), initial=0)) + 2 * (n_dense + 1) * longest
    listed = np.zeros(n_dense + 1, np.uint32), np.zeros(n_dense + 1)
    return (
        listed, aligned(longest, width), aligned(longest, width), np.empty(longest, np.int32),
        np.empty(most + 1, np.uint32), np.empty(most + 1),
    )  # fmt: skip


class _InOrder(np.random.RandomState):
    """Deals sequences in the order of the data."""

    def permutation(self, x: Any) -> Any:
        """Return the numbers below `x` as they come."""
        return np.arange(x)
