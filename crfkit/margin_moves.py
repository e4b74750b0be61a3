"""Steps of the dual of a margin: a few labellings of each batch, and how much counts for each."""

from __future__ import annotations

from typing import Any, NamedTuple, cast

import numpy as np

from crfkit._jit import frozen
from crfkit._types import CodeArray, Expectations, FloatArray, IntArray, Scores
from crfkit.chain_visits import AT_ONCE, chain_losses
from crfkit.costs import AdditiveCost
from crfkit.data import PackedSequences
from crfkit.kernels.chain_margin import chain_margin_losses, chain_margin_steps
from crfkit.kernels.chain_segments import chain_segment_steps
from crfkit.kernels.vector import vector_dot
from crfkit.losses import HingeLoss
from crfkit.losses._costs import find_cost
from crfkit.minibatches import MiniBatches
from crfkit.scores.shares import FlatWeights, aligned, padded
from crfkit.scores.tokens import TokenEntries
from crfkit.structures import added_scores

# Labellings of each batch that there is room for at first.
ROOM = 8
# A visit ends where the part of the batch in the gap is this share of what it was.
ENOUGH = 0.1


class Corner(NamedTuple):
    """A labelling of a batch as a point of the dual.

    Its value at some scores is ``level + sum_s factor_s (score(labels_s) - score(true labels_s))``,
    where scores are sums of weights.

    Attributes
    ----------
    labels : ndarray of shape (n,)
        Label codes.
    factor : ndarray of shape (S,)
        The weight of each sequence, times its cost where the slack is rescaled.
    level : float
        The cost, weighted, and what the structure adds to the difference of the scores.
    """

    labels: CodeArray
    factor: FloatArray
    level: float


class _Look(NamedTuple):
    """What a visit finds.

    Attributes
    ----------
    gap : float
        The part of the batch in the gap.
    slope : float
        The rise of the dual along the direction, were it linear.
    longest : float
        The longest step.
    gradient : ndarray of shape (n,)
        How the direction, pulled back, changes the parameters that the batch touches.
    found : Corner
        The labelling that violates its margin most.
    away : int
        The corner that a step takes from; -1 where it takes from all.
    """

    gap: float
    slope: float
    longest: float
    gradient: FloatArray
    found: Corner
    away: int


class MarginSteps:
    """Shares of labellings of all batches, and the parameters they amount to, that steps move.

    The dual of ``sum_i weight_i xi_i + c2 |w|^2`` is ``sum_i a_i . level_i - c2 |w(a)|^2``, where
    ``a_i`` are shares, of sum 1, of the labellings of sequence i, and ``-2 c2 w(a)`` is the sum of
    ``a_i(y) factor_i(y) (f(x_i, y) - f(x_i, y_i))``. Costs and factors are those of `Corner`.

    Parameters
    ----------
    batches : MiniBatches
        The data, and a loss with the method ``worst``.
    pairwise : bool
        Whether a step moves the share of one labelling to another, or some of all shares to one.
    most : int
        Steps in a visit. It ends earlier where the part of the batch in the gap is `ENOUGH` of what
        it was.

    Attributes
    ----------
    w : ndarray of shape (L,)
        The parameters, each at some place; elsewhere there are zeros.
    levels : ndarray of shape (B,)
        The expected cost of each batch.
    gaps : ndarray of shape (B,)
        The part of each batch in the gap, as it was at its last visit; 0 before that.
    """

    def __init__(self, batches: MiniBatches, pairwise: bool, most: int = 1) -> None:
        self.batches, self.pairwise, self.most = batches, pairwise, most
        self.c2 = batches.penalty.l2
        self.levels, self.gaps = np.zeros(len(batches)), np.zeros(len(batches))
        self.loss = cast(HingeLoss, batches.loss)
        self.cost = find_cost(self.loss.cost, batches.model.n_codes)
        self.w = aligned(self._size())

    def _size(self) -> int:
        return self.batches.n_parameters

    @property
    def lower_bound(self) -> float:
        """The dual: no parameters have a smaller objective."""
        w = frozen(self.w)
        return float(self.levels.sum()) - self.c2 * vector_dot(w, w)

    def collect(self, flat: FloatArray) -> FloatArray:
        """Return the parameters, shape (P,), in a vector of shape (L,): a new array."""
        return flat.copy()

    def advance(self, order: IntArray) -> None:
        """Make a step of each of some batches, one after the other."""
        raise NotImplementedError

    def value(self, parameters: FloatArray) -> float:
        """Return the objective at some parameters."""
        return self.batches.value(parameters)


class GeneralMarginSteps(MarginSteps):
    """Steps for any structure and any cost."""

    def __init__(self, batches: MiniBatches, pairwise: bool, most: int = 1) -> None:
        super().__init__(batches, pairwise, most)
        self.weights = [batches.sequence_weight(i) for i in range(len(batches))]
        self.corners = [[self._true(i)] for i in range(len(batches))]
        self.shares = [[1.0] for _ in range(len(batches))]

    def _true(self, index: int) -> Corner:
        return Corner(self.batches.labels(index), np.zeros(len(self.weights[index])), 0.0)

    def advance(self, order: IntArray) -> None:
        """Make a step of each of some batches, one after the other."""
        for index in order.tolist():
            self.batches.visits += 1
            first = self._step(index)
            for _ in range(self.most - 1):
                if not self.gaps[index] > ENOUGH * first:
                    break
                self._step(index)

    def _step(self, index: int) -> float:
        """Make a step of a batch, if one raises the dual; returns its part of the gap before."""
        look = self._look(self.batches.bind(self.w), index)
        self.gaps[index] = max(look.gap, 0.0)
        if look.slope > 0.0:
            self._move(index, look)
        return float(self.gaps[index])

    def _look(self, bound: Any, index: int) -> _Look:
        """Return the direction of a step at some parameters."""
        scores, labels = self.batches.scores(bound, index), self.batches.labels(index)
        structure, plain = self.batches.structure, self.batches.plain
        with self.batches.numbering():
            worst = self.loss.worst(structure, scores, labels)[0]
        found = self._corner(index, worst, scores)
        truth = plain.score(scores, labels)

        def value(corner: Corner) -> float:
            rise = plain.score(scores, corner.labels) - truth
            return corner.level + float(np.sum(corner.factor * rise))

        known, shares = self.corners[index], self.shares[index]
        values, best = [value(corner) for corner in known], value(found)
        gap = best - float(np.dot(shares, values))
        away = int(np.argmin(values)) if self.pairwise else -1
        taken = {away: 1.0} if self.pairwise else dict(enumerate(shares))
        residual = structure.empty(scores)
        self._add(index, scores, found, 1.0, residual)
        for place, share in taken.items():
            self._add(index, scores, known[place], -share, residual)
        gradient = self.batches.gradient(index, residual)
        slope, longest = (best - values[away], shares[away]) if self.pairwise else (gap, 1.0)
        return _Look(gap, slope, longest, gradient, found, away)

    def _corner(self, index: int, worst: CodeArray, scores: Scores) -> Corner:
        """Return the corner of a labelling."""
        weight, labels = self.weights[index], self.batches.labels(index)
        cost = self.cost.total(labels, worst, scores.offsets)
        factor = weight * cost if self.loss.rescaling == "slack" else weight
        added, before = (
            added_scores(self.batches.structure, scores, path) for path in (worst, labels)
        )
        return Corner(worst, factor, float(np.sum(weight * cost + factor * (added - before))))

    def _add(
        self, index: int, scores: Scores, corner: Corner, share: float, out: Expectations
    ) -> None:
        """Add a share of a corner to counts."""
        add_path = self.batches.structure.add_path
        add_path(scores, corner.labels, share * corner.factor, out)
        add_path(scores, self.batches.labels(index), -share * corner.factor, out)

    def _move(self, index: int, look: _Look) -> None:
        """Go to the highest point along a direction."""
        square = float(np.dot(look.gradient, look.gradient))
        length = look.longest
        if look.slope * 2.0 * self.c2 < length * square:
            length = look.slope * 2.0 * self.c2 / square
        self.w[self.batches.places(index)] -= length / (2.0 * self.c2) * look.gradient
        known, shares = self.corners[index], self.shares[index]
        if look.away < 0:
            self.levels[index] += length * (look.found.level - self.levels[index])
            shares[:] = [share * (1.0 - length) for share in shares]
        else:
            self.levels[index] += length * (look.found.level - known[look.away].level)
            shares[look.away] -= length
        place = self._place(index, look.found)
        shares[place] += length
        kept = [i for i, share in enumerate(shares) if share > 0.0]
        self.corners[index] = [known[i] for i in kept]
        self.shares[index] = [shares[i] for i in kept]

    def _place(self, index: int, corner: Corner) -> int:
        """Return which corner of a batch it is; one that is not known is added with no share."""
        known = self.corners[index]
        for place, other in enumerate(known):
            if np.array_equal(other.labels, corner.labels):
                return place
        known.append(corner)
        self.shares[index].append(0.0)
        return len(known) - 1


class CompiledMarginSteps(MarginSteps):
    """Steps for a chain whose steps share their scores and a sum of costs, in compiled code.

    A subclass has the shares, and makes visits.
    """

    def __init__(self, batches: MiniBatches, pairwise: bool, most: int = 1) -> None:
        self._weights = FlatWeights(batches.model)
        super().__init__(batches, pairwise, most)
        self._entries = TokenEntries(self._weights, batches.data, batches.threads).arrays
        self._norms = frozen(_norms(batches.data))
        batches.let_go()
        n_labels, n_batches = batches.model.n_labels, len(batches)
        bounds = [chunk.tokens.start for chunk in batches.chunks] + [batches.n_tokens]
        weight = [batches.sequence_weight(i).max() for i in range(n_batches)]
        cost = np.zeros((n_labels, padded(n_labels)))
        cost[:, :n_labels] = self.cost.table  # type: ignore[attr-defined]
        self._blocks = (
            frozen(np.array(bounds)), frozen(np.array(weight)), frozen(batches.all_labels),
            frozen(cost),
        )  # fmt: skip
        self._scratch = aligned(self._size())

    def _size(self) -> int:
        return self._weights.size

    def collect(self, flat: FloatArray) -> FloatArray:
        """Return the parameters in a vector of shape (L,)."""
        return self._weights.collect(flat)

    def advance(self, order: IntArray) -> None:
        """Make a step of each of some batches, one after the other."""
        table, first = self._weights.table, 0
        vectors = (self.w, table(self.w), self._scratch, table(self._scratch), self._weights.bits)
        while first < len(order):
            piece = frozen(order[first : first + AT_ONCE])
            done = self._visit(piece, vectors)
            first += done
            self.batches.visits += done
            if done < len(piece):
                self._make_room()

    def _visit(self, order: IntArray, vectors: tuple[Any, ...]) -> int:
        """Visit batches; returns how many were visited before one that needs more room."""
        raise NotImplementedError

    def _make_room(self) -> None:
        """Double the room for shares."""
        raise NotImplementedError

    def _own(self, n_values: int = 0) -> tuple[Any, ...]:
        """Return the workspace of a thread."""
        n_labels, n_dense = self.batches.model.n_labels, self._entries[3].shape[1]
        longest, width = self._longest, padded(n_labels)
        return (
            (np.zeros(n_dense + 1, np.uint32), np.zeros(n_dense + 1)), aligned(longest, width),
            aligned(longest, width), np.zeros(longest, np.int32), aligned(longest, width),
            np.zeros(longest, np.int64), aligned(n_labels, width), np.empty(n_values),
        )  # fmt: skip

    @property
    def _longest(self) -> int:
        """Tokens of the longest sequence."""
        return int(np.diff(self._blocks[0]).max(initial=0))

    def value(self, parameters: FloatArray) -> float:
        """Return the objective at some parameters."""
        flat = frozen(self._weights.spread(parameters))
        table = self._weights.table(flat)

        def work(first: int, last: int, losses: FloatArray) -> None:
            chain_margin_losses(
                first, last, self._blocks, self._entries, flat, table, self._own(), losses
            )

        total = chain_losses(self.batches, len(self.batches), work)
        return total + self.batches.penalty_at(parameters)


class ChainMarginSteps(CompiledMarginSteps):
    """Steps between whole labellings, as those for any structure."""

    def __init__(self, batches: MiniBatches, pairwise: bool, most: int = 1) -> None:
        super().__init__(batches, pairwise, most)
        room = max(ROOM, most + 1)
        self.corners = np.empty((room, batches.n_tokens), np.uint16)
        self.corners[0] = batches.all_labels
        self.shares = np.zeros((room, len(batches)))
        self.shares[0] = 1.0
        self.counts = np.ones(len(batches), np.int64)

    def _visit(self, order: IntArray, vectors: tuple[Any, ...]) -> int:
        state = self.corners, self.shares, self.counts, self.levels, self.gaps
        done: int = chain_margin_steps(
            order, self.pairwise, self.most, ENOUGH, float(self.c2), self._blocks, self._entries,
            state, vectors, self._own(len(self.corners)),
        )  # fmt: skip
        return done

    def _make_room(self) -> None:
        """Double the room for labellings."""
        self.corners = np.concatenate([self.corners, np.empty_like(self.corners)])
        self.shares = np.concatenate([self.shares, np.zeros_like(self.shares)])


class SegmentMarginSteps(CompiledMarginSteps):
    """Steps of runs of wrong labels: shares are those of steps into tokens.

    Parameters
    ----------
    batches : MiniBatches
        The data, and a loss with the method ``worst``.
    most : int
        Steps in a visit.

    Attributes
    ----------
    edges : tuple of ndarrays
        The label before and the label of a step into a token, shape (E, N) each, its share, (E, N),
        and how many steps each token has, (N,). The label before a first token is 0.
    """

    def __init__(self, batches: MiniBatches, most: int = 1) -> None:
        super().__init__(batches, True, most)
        shape, labels = (max(ROOM, most + 1), batches.n_tokens), batches.all_labels
        before, after, share = (
            np.zeros(shape, np.uint16),
            np.zeros(shape, np.uint16),
            np.zeros(shape),
        )
        before[0, 1:], after[0], share[0] = labels[:-1], labels, 1.0
        before[0, batches.offsets[:-1][np.diff(batches.offsets) > 0]] = 0
        self.edges = before, after, share, np.ones(batches.n_tokens, np.int64)

    def _visit(self, order: IntArray, vectors: tuple[Any, ...]) -> int:
        longest, room = self._longest, len(self.edges[0])
        more = (
            np.empty((longest, room)), np.empty((longest, room), np.int64),
            np.empty(longest, np.int32), np.empty(longest, np.int64), np.empty(longest),
        )  # fmt: skip
        done: int = chain_segment_steps(
            order, self.most, ENOUGH, float(self.c2), self._norms, self._blocks, self._entries,
            (self.edges, self.levels, self.gaps), vectors, (self._own(), more),
        )  # fmt: skip
        return done

    def _make_room(self) -> None:
        """Double the room for steps."""
        *arrays, counts = self.edges
        before, after, share = (np.concatenate([one, np.zeros_like(one)]) for one in arrays)
        self.edges = before, after, share, counts


def _norms(data: PackedSequences) -> FloatArray:
    """Return the sum of the squares of the attributes of each token, shape (N,)."""
    values = np.ones(len(data.indices)) if data.values is None else np.square(data.values)
    norms: FloatArray = np.diff(np.append(0.0, np.cumsum(values))[data.indptr])
    return norms if data.dense is None else norms + np.square(data.dense).sum(axis=1)


def make_margin_steps(batches: MiniBatches, kind: str, most: int = 1) -> MarginSteps:
    """Return what makes steps of a kind fastest; each batch is one sequence.

    Parameters
    ----------
    batches : MiniBatches
        The data, and a hinge loss.
    kind : {"segments", "pairwise", "classic"}
        What a step moves. "segments" need a chain whose steps share their scores and a sum of
        costs; where there is none, steps are pairwise.
    most : int
        Steps in a visit.
    """
    loss = cast(HingeLoss, batches.loss)
    additive = isinstance(find_cost(loss.cost, batches.model.n_codes), AdditiveCost)
    if not (batches.is_plain_chain and additive and loss.rescaling == "margin"):
        return GeneralMarginSteps(batches, kind != "classic", most)
    if kind == "segments":
        return SegmentMarginSteps(batches, most)
    return ChainMarginSteps(batches, kind == "pairwise", most)
