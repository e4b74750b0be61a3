"""States of the dual of a margin, which block-coordinate Frank-Wolfe updates."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, cast

import numpy as np

from crfkit._parallel import CHUNKS_AT_ONCE, cut_order, make_chunks
from crfkit._types import FloatArray, IntArray
from crfkit.compiler.jit import frozen
from crfkit.kernels.oracle import FOUND, ActiveSet
from crfkit.kernels.solvers.frank_wolfe import (
    FrankWolfeOptions,
    MarginProgress,
    VertexDual,
    frank_wolfe_updates,
    margin_losses,
)
from crfkit.kernels.solvers.marginal_fw import Edges, MarginalDual, MarginalWorkspace
from crfkit.kernels.solvers.vector import vector_dot
from crfkit.labels.costs import AdditiveCost, find_cost
from crfkit.losses import HingeLoss
from crfkit.objective.stochastic import StochasticObjective
from crfkit.oracles import Oracle, find_oracle
from crfkit.oracles.design import PIECES
from crfkit.oracles.label_order import LabelOrder
from crfkit.oracles.linear_chain import ChainOracle
from crfkit.solvers.stochastic.state import sum_of_losses

# Updates of a sequence end where its part in the gap is this share of what it was.
ENOUGH = 0.1
# Vertices of each sequence that there is room for at first.
ROOM = 8
# Steps of a sequence over what was found before, where a search is no part of them, at least.
STEPS = 3


class MarginState(ABC):
    """A point of the dual of a margin, and the parameters `w` it amounts to, that updates move.

    The dual of ``sum_i weight_i xi_i + c2 |w|^2`` is ``sum_i a_i . level_i - c2 |w(a)|^2``, where
    ``a_i`` are shares of the labelings of sequence i, and ``-2 c2 w(a)`` is the sum of ``a_i(y)
    factor_i(y) (f(x_i, y) - f(x_i, y_i))``. Levels are costs and scores that are not learned,
    weighted; factors are weights of sequences, times costs where the slack is rescaled.
    """

    def __init__(self, batches: StochasticObjective, c2: float) -> None:
        self.batches, self.c2 = batches, c2
        self.gaps, self.levels = np.zeros(len(batches)), np.zeros(len(batches))
        self.loss, self.w = cast(HingeLoss, batches.loss), np.zeros(batches.n_parameters)
        starts = [chunk.tokens.start for chunk in batches.chunks]
        self.offsets = frozen(np.array([*starts, batches.n_tokens]))

    @property
    def lower_bound(self) -> float:
        """The dual: no parameters have a smaller objective."""
        return self.dual(float(self.levels.sum()), self.w)

    @abstractmethod
    def dual(self, level: float, flat: FloatArray) -> float:
        """Return the dual, given the expected level and a vector as `w`."""

    @abstractmethod
    def unpack(self, flat: FloatArray) -> FloatArray:
        """Return the parameters, shape (P,), that a vector as `w` stands for: a new array."""

    @abstractmethod
    def advance(self, order: IntArray) -> None:
        """Update some batches, one after the other."""

    @abstractmethod
    def value_and_bound(self, parameters: FloatArray) -> tuple[float, float]:
        """Return the objective at some parameters, and what it does not exceed.

        They differ where a search may miss the worst labeling.
        """

    def value(self, parameters: FloatArray) -> float:
        """Return the objective at some parameters, by the labelings that are found."""
        return self.value_and_bound(parameters)[0]

    def _raise(self, parameters: FloatArray, index: int) -> None:
        """Raise what the search of any structure says of a batch that has no loss."""
        batches = self.batches
        scores = batches.scores(batches.bind(parameters), index)
        with batches.original_sequence_numbers():
            self.loss.worst(batches.structure, scores, batches.labels(index))
        raise ValueError(
            "scores became infinite. Scale numeric features to about 1, or use a larger c2."
        )


class CompiledState(MarginState):
    """The same with the searches and the steps in one kernel, for one batch after the other."""

    def __init__(
        self, batches: StochasticObjective, oracle: Oracle, options: FrankWolfeOptions
    ) -> None:
        super().__init__(batches, options.c2)
        self.options, self.oracle = options, oracle
        self.progress = MarginProgress(self.levels, self.gaps)
        self.w = oracle.weights.pack(self.w)
        self._tokens_at_once = CHUNKS_AT_ONCE * batches.model.chunk_tokens
        weight = np.array([batches.sequence_weight(i).max() for i in range(len(batches))])
        cost = cast(AdditiveCost, find_cost(self.loss.cost, batches.model.n_codes))
        oracle.regroup(self.offsets)
        self._examples = oracle.examples(weight, batches.all_labels, cost.table)
        self._problem, self._workspace = oracle.problem, oracle.workspace(self.w)

    def dual(self, level: float, flat: FloatArray) -> float:
        """Return the dual, given the expected level and a vector of shape (L,)."""
        return level - self.c2 * vector_dot(frozen(flat), frozen(flat))

    def unpack(self, flat: FloatArray) -> FloatArray:
        """Return the parameters, shape (P,), in a vector of shape (L,): a new array."""
        return self.oracle.weights.unpack(flat)

    def advance(self, order: IntArray) -> None:
        """Update some batches, one after the other."""
        for left in cut_order(order, np.diff(self.offsets), self._tokens_at_once):
            while len(left):
                done, status = frank_wolfe_updates(
                    frozen(left), self._problem, self._dual(), self._workspace
                )
                if status != FOUND:
                    self._raise(self.unpack(self.w), int(left[done]))
                self.batches.n_computed += done
                left = left[done:]
                if len(left):
                    self._make_room()

    @abstractmethod
    def _dual(self) -> Any:
        """Return the dual as the kernel has it."""

    @abstractmethod
    def _make_room(self) -> None:
        """Double the room for shares."""

    def value_and_bound(self, parameters: FloatArray) -> tuple[float, float]:
        """Return the objective at some parameters, twice."""
        tokens = max(1, min(self._tokens_at_once, self.batches.n_tokens // PIECES))
        pieces = [chunk.sequences for chunk in make_chunks(self.offsets, tokens)]
        total = sum_of_losses(self.batches, pieces, self._losses(parameters))
        value = total + self.batches.penalty_at(parameters)
        return value, value

    def _losses(self, parameters: FloatArray) -> Callable[[int, int, FloatArray], None]:
        """Return what writes the losses of the batches from a first to a last one."""
        oracle, examples = self.oracle, self._examples
        flat = oracle.weights.pack(parameters)

        def work(first: int, last: int, losses: FloatArray) -> None:
            own = oracle.workspace(flat)
            refused, _ = margin_losses(first, last, oracle.problem, examples, own, losses)
            if refused >= 0:
                self._raise(parameters, refused)

        return work


class VertexState(CompiledState):
    """Shares of labelings of all batches: vertices of their marginal polytopes."""

    def __init__(
        self, batches: StochasticObjective, oracle: Oracle, options: FrankWolfeOptions
    ) -> None:
        super().__init__(batches, oracle, options)
        room = max(ROOM, options.most + 1)
        vertices = np.empty((room, batches.n_tokens), np.uint16)
        alphas = np.zeros((room, len(batches)))
        vertices[0], alphas[0] = self._examples.labels[0], 1.0
        self.active = ActiveSet(vertices, alphas, np.ones(len(batches), np.int64))

    def _dual(self) -> VertexDual:
        values = np.empty(len(self.active.vertices))
        return VertexDual(self.options, self._examples, self.progress, self.active, values)

    def _make_room(self) -> None:
        vertices, alphas, counts = self.active
        self.active = ActiveSet(
            np.concatenate([vertices, np.empty_like(vertices)]),
            np.concatenate([alphas, 0.0 * alphas]), counts,
        )  # fmt: skip


class ChainMarginalFW(CompiledState):
    """Shares of transitions into the tokens of chains (`edges`), which runs of labels move."""

    def __init__(
        self, batches: StochasticObjective, oracle: ChainOracle, options: FrankWolfeOptions
    ) -> None:
        super().__init__(batches, oracle, options)
        self._norms = frozen(oracle.norms(batches.data))
        shape = max(ROOM, options.most + 1), batches.n_tokens
        before, after = np.zeros(shape, np.uint16), np.zeros(shape, np.uint16)
        shares, labels = np.zeros(shape), self._examples.labels[0]
        before[0, 1:], after[0], shares[0] = labels[:-1], labels, 1.0
        before[0, batches.offsets[:-1][np.diff(batches.offsets) > 0]] = 0
        self.edges = Edges(before, after, shares, np.ones(batches.n_tokens, np.int64))

    def _dual(self) -> MarginalDual:
        longest, room = int(np.diff(self.offsets).max(initial=0)), len(self.edges.shares)
        more = MarginalWorkspace(
            np.empty((longest, room)), np.empty((longest, room), np.int64),
            np.empty(longest, np.int32), np.empty(longest, np.int64), np.empty(longest),
        )  # fmt: skip
        examples = self._examples
        return MarginalDual(self.options, examples, self.progress, self.edges, self._norms, more)

    def _make_room(self) -> None:
        before, after, shares = (np.concatenate([one, 0 * one]) for one in self.edges[:3])
        self.edges = Edges(before, after, shares, self.edges.counts)


def make_margin_state(batches: StochasticObjective, kind: str, most: int = 1) -> MarginState:
    """Return the state that is updated fastest; `most` updates of a sequence follow one another.

    The kind is what they move; where "marginals" are not to be had, updates are "pairwise".
    """
    loss, oracle = cast(HingeLoss, batches.loss), None
    cost = find_cost(loss.cost, batches.model.n_codes)
    options = FrankWolfeOptions(kind != "classic", int(most), ENOUGH, float(batches.penalty.l2))
    compilable = isinstance(cost, AdditiveCost) and loss.rescaling == "margin"
    if compilable and batches.nonnegative is None:
        order = LabelOrder.by_code(batches.model.n_codes)
        oracle = find_oracle(batches.model, batches.structure, batches.data, order, batches.threads)
    if oracle is None:
        from crfkit.solvers.margin.planes import PlaneState  # few fits need it

        return PlaneState(batches, options._replace(most=max(options.most, STEPS)))
    marginals = oracle.has_marginal_updates and kind == "marginals"
    state: MarginState = (
        ChainMarginalFW(batches, cast(ChainOracle, oracle), options)
        if marginals
        else VertexState(batches, oracle, options)
    )
    batches.release_data()
    return state
