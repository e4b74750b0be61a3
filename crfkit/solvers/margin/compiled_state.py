"""Steps of the dual of a margin in compiled code, for chains and for segments."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from crfkit._types import FloatArray, IntArray
from crfkit.compiler.jit import frozen
from crfkit.compiler.simd import padded
from crfkit.data import PackedSequences
from crfkit.kernels.solvers.frank_wolfe import chain_margin_losses, chain_margin_steps
from crfkit.kernels.solvers.marginal_fw import chain_segment_steps
from crfkit.kernels.solvers.segment_frank_wolfe import segment_margin_losses, segment_margin_steps
from crfkit.labels.costs import AdditiveCost
from crfkit.losses import HingeLoss
from crfkit.losses._costs import find_cost
from crfkit.objective.stochastic import StochasticObjective
from crfkit.oracles.chain import AT_ONCE
from crfkit.oracles.label_order import LabelOrder
from crfkit.oracles.partition import AlignedWeights, aligned
from crfkit.oracles.semimarkov import SegmentVisits, is_plain_segments
from crfkit.oracles.token_design import TokenDesign
from crfkit.potentials.semimarkov import SemiMarkovModel
from crfkit.solvers.margin.vertices import ENOUGH, GeneralMarginSteps, MarginSteps
from crfkit.solvers.stochastic.chain_losses import chain_losses

# Labellings of each batch that there is room for at first.
ROOM = 8


class Held(NamedTuple):
    """Labellings of each batch, and their shares, with room for more.

    Attributes
    ----------
    corners : ndarray of shape (M, N)
        Label codes.
    shares : ndarray of shape (M, B)
        The share of each labelling.
    counts : ndarray of shape (B,)
        How many labellings each batch has.
    """

    corners: NDArray[np.uint16]
    shares: FloatArray
    counts: IntArray

    @classmethod
    def true_ones(cls, batches: StochasticObjective, most: int) -> Held:
        """Return the true labellings, with room for a visit of so many steps."""
        room = max(ROOM, most + 1)
        corners = np.empty((room, batches.n_tokens), np.uint16)
        shares = np.zeros((room, len(batches)))
        corners[0], shares[0] = batches.all_labels, 1.0
        return cls(corners, shares, np.ones(len(batches), np.int64))

    def grown(self) -> Held:
        """Return the same with twice the room."""
        corners = np.concatenate([self.corners, np.empty_like(self.corners)])
        return Held(corners, np.concatenate([self.shares, 0.0 * self.shares]), self.counts)


class CompiledMarginSteps(MarginSteps):
    """Steps with a sum of costs, in compiled code.

    A subclass has the shares, and makes visits.
    """

    _blocks: tuple[Any, ...]

    def advance(self, order: IntArray) -> None:
        """Make a step of each of some batches, one after the other."""
        first = 0
        while first < len(order):
            piece = frozen(order[first : first + AT_ONCE])
            done = self._visit(piece)
            first += done
            self.batches.visits += done
            if done < len(piece):
                self._make_room()

    def _visit(self, order: IntArray) -> int:
        """Visit batches; returns how many were visited before one that needs more room."""
        raise NotImplementedError

    def _make_room(self) -> None:
        """Double the room for shares."""
        raise NotImplementedError

    def _make_blocks(self, cost: FloatArray) -> None:
        """Keep what kernels read of the data."""
        batches = self.batches
        bounds = [chunk.tokens.start for chunk in batches.chunks] + [batches.n_tokens]
        weight = [batches.sequence_weight(i).max() for i in range(len(batches))]
        self._blocks = (
            frozen(np.array(bounds)), frozen(np.array(weight)), frozen(batches.all_labels),
            frozen(cost),
        )  # fmt: skip

    @property
    def _longest(self) -> int:
        """Tokens of the longest sequence."""
        return int(np.diff(self._blocks[0]).max(initial=0))

    def value(self, parameters: FloatArray) -> float:
        """Return the objective at some parameters."""
        total = chain_losses(self.batches, len(self.batches), self._losses(parameters))
        return total + self.batches.penalty_at(parameters)

    def _losses(self, parameters: FloatArray) -> Callable[[int, int, FloatArray], None]:
        """Return what writes the losses of the batches from a first to a last one."""
        raise NotImplementedError


class PlainChainSteps(CompiledMarginSteps):
    """Steps for a chain whose steps share their scores."""

    def __init__(self, batches: StochasticObjective, pairwise: bool, most: int = 1) -> None:
        self._weights = AlignedWeights(batches.model)
        super().__init__(batches, pairwise, most)
        self._entries = TokenDesign(self._weights, batches.data, batches.threads).arrays
        self._norms = frozen(_norms(batches.data))
        batches.release_data()
        n_labels = batches.model.n_labels
        cost = np.zeros((n_labels, padded(n_labels)))
        cost[:, :n_labels] = self.cost.table  # type: ignore[attr-defined]
        self._make_blocks(cost)
        scratch, table = aligned(self._size()), self._weights.table
        self._vectors = self.w, table(self.w), scratch, table(scratch), self._weights.bits

    def _size(self) -> int:
        return self._weights.size

    def collect(self, flat: FloatArray) -> FloatArray:
        """Return the parameters in a vector of shape (L,)."""
        return self._weights.collect(flat)

    def _own(self, n_values: int = 0) -> tuple[Any, ...]:
        """Return the workspace of a thread."""
        n_labels, n_dense = self.batches.model.n_labels, self._entries[3].shape[1]
        longest, width = self._longest, padded(n_labels)
        return (
            (np.zeros(n_dense + 1, np.uint32), np.zeros(n_dense + 1)), aligned(longest, width),
            aligned(longest, width), np.zeros(longest, np.int32), aligned(longest, width),
            np.zeros(longest, np.int64), aligned(n_labels, width), np.empty(n_values),
        )  # fmt: skip

    def _losses(self, parameters: FloatArray) -> Callable[[int, int, FloatArray], None]:
        flat = frozen(self._weights.spread(parameters))
        table = self._weights.table(flat)

        def work(first: int, last: int, losses: FloatArray) -> None:
            chain_margin_losses(
                first, last, self._blocks, self._entries, flat, table, self._own(), losses
            )

        return work


class ChainMarginSteps(PlainChainSteps):
    """Steps between whole labellings, as those for any structure."""

    def __init__(self, batches: StochasticObjective, pairwise: bool, most: int = 1) -> None:
        super().__init__(batches, pairwise, most)
        self.held = Held.true_ones(batches, most)

    def _visit(self, order: IntArray) -> int:
        done: int = chain_margin_steps(
            order, self.pairwise, self.most, ENOUGH, float(self.c2), self._blocks, self._entries,
            (*self.held, self.levels, self.gaps), self._vectors, self._own(len(self.held.corners)),
        )  # fmt: skip
        return done

    def _make_room(self) -> None:
        self.held = self.held.grown()


class ChainMarginalSteps(PlainChainSteps):
    """Steps of runs of wrong labels: shares are those of steps into tokens.

    Parameters
    ----------
    batches : StochasticObjective
        The data, and a loss with the method ``worst``.
    most : int
        Steps in a visit.

    Attributes
    ----------
    edges : tuple of ndarrays
        The label before and the label of a step into a token, shape (E, N) each, its share, (E, N),
        and how many steps each token has, (N,). The label before a first token is 0.
    """

    def __init__(self, batches: StochasticObjective, most: int = 1) -> None:
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

    def _visit(self, order: IntArray) -> int:
        longest, room = self._longest, len(self.edges[0])
        more = (
            np.empty((longest, room)), np.empty((longest, room), np.int64),
            np.empty(longest, np.int32), np.empty(longest, np.int64), np.empty(longest),
        )  # fmt: skip
        done: int = chain_segment_steps(
            order, self.most, ENOUGH, float(self.c2), self._norms, self._blocks, self._entries,
            (self.edges, self.levels, self.gaps), self._vectors, (self._own(), more),
        )  # fmt: skip
        return done

    def _make_room(self) -> None:
        *arrays, counts = self.edges
        before, after, share = (np.concatenate([one, np.zeros_like(one)]) for one in arrays)
        self.edges = before, after, share, counts


class SemiMarkovMarginSteps(CompiledMarginSteps):
    """Steps between segmentations whose steps share their scores, as those for any structure."""

    def __init__(self, batches: StochasticObjective, pairwise: bool, most: int = 1) -> None:
        super().__init__(batches, pairwise, most)
        model, ties = (
            cast(SemiMarkovModel, batches.model),
            LabelOrder.by_code(batches.model.n_codes),
        )
        self._arrays = SegmentVisits(model, batches.structure, batches.data, ties)
        batches.release_data()
        self._make_blocks(self.cost.table)  # type: ignore[attr-defined]
        self._work = self._arrays.own(), self._arrays.noted()
        self._vectors = self.w, np.zeros_like(self.w)
        self.held = Held.true_ones(batches, most)

    def _visit(self, order: IntArray) -> int:
        room = np.empty(self._longest, np.int32), np.empty(len(self.held.corners))
        done, refused = segment_margin_steps(
            order, self.pairwise, self.most, ENOUGH, float(self.c2), self._blocks,
            self._arrays.model, (*self.held, self.levels, self.gaps), self._vectors,
            (*self._work, room),
        )  # fmt: skip
        if refused:
            self._raise(self.w, int(order[done]))
        return int(done)

    def _make_room(self) -> None:
        self.held = self.held.grown()

    def _losses(self, parameters: FloatArray) -> Callable[[int, int, FloatArray], None]:
        def work(first: int, last: int, losses: FloatArray) -> None:
            own = self._arrays.own()
            refused = segment_margin_losses(
                first, last, self._blocks, self._arrays.model, frozen(parameters), own, losses
            )
            if refused >= 0:
                self._raise(parameters, refused)

        return work

    def _raise(self, parameters: FloatArray, index: int) -> None:
        """Raise what the search of any structure says of a batch that has no loss."""
        batches = self.batches
        scores = batches.scores(batches.bind(parameters), index)
        with batches.original_sequence_numbers():
            self.loss.worst(batches.structure, scores, batches.labels(index))
        raise ValueError(
            "scores became infinite. Scale numeric features to about 1, or use a larger c2."
        )


def _norms(data: PackedSequences) -> FloatArray:
    """Return the sum of the squares of the attributes of each token, shape (N,)."""
    values = np.ones(len(data.indices)) if data.values is None else np.square(data.values)
    norms: FloatArray = np.diff(np.append(0.0, np.cumsum(values))[data.indptr])
    return norms if data.dense is None else norms + np.square(data.dense).sum(axis=1)


def make_margin_steps(batches: StochasticObjective, kind: str, most: int = 1) -> MarginSteps:
    """Return what makes steps of a kind fastest; each batch is one sequence.

    Parameters
    ----------
    batches : StochasticObjective
        The data, and a hinge loss.
    kind : {"segments", "pairwise", "classic"}
        What a step moves. "segments" need a chain whose steps share their scores and a sum of
        costs; where there is none, steps are pairwise.
    most : int
        Steps in a visit.
    """
    loss = cast(HingeLoss, batches.loss)
    additive = isinstance(find_cost(loss.cost, batches.model.n_codes), AdditiveCost)
    if additive and loss.rescaling == "margin":
        if batches.is_plain_chain and kind == "segments":
            return ChainMarginalSteps(batches, most)
        if batches.is_plain_chain:
            return ChainMarginSteps(batches, kind == "pairwise", most)
        if is_plain_segments(batches.model, batches.structure):
            return SemiMarkovMarginSteps(batches, kind != "classic", most)
    return GeneralMarginSteps(batches, kind != "classic", most)
