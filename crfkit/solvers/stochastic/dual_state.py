"""Steps of the dual: from the distributions of a batch towards those of some parameters."""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from crfkit._types import Counts, FloatArray, IdArray, IntArray, Potentials
from crfkit.compiler.jit import frozen
from crfkit.compiler.simd import padded
from crfkit.kernels.design.touched import dual_change, dual_mix, touched_dual_step
from crfkit.kernels.solvers.eg import (
    FAR_SLOWER,
    FASTER,
    SLOWER,
    TINY,
    chain_dual_losses,
    chain_dual_steps,
)
from crfkit.objective.stochastic import StochasticObjective, rounds
from crfkit.oracles.chain import AT_ONCE, visit_workspace
from crfkit.oracles.partition import BatchPartition
from crfkit.oracles.weights import AlignedWeights, aligned
from crfkit.solvers.stochastic.chain_losses import chain_losses

# Score of the true label before a batch is first looked at, all others being 0.
GOLD = 12.0


class Block(NamedTuple):
    """The distributions of a batch.

    Attributes
    ----------
    scores : ndarray of shape (Q,)
        The scores that stand for them, those of labels before those of steps.
    expected : ndarray of shape (Q,)
        Their expected counts, weighted, in the same order.
    entropy : float
        Sum of their entropies, weighted. Where the structure adds scores, these are those of a
        prior: it is what is expected of them less that of the true labels more.
    """

    scores: FloatArray
    expected: FloatArray
    entropy: float


class Move(NamedTuple):
    """A step of a batch: where it leads, and what it changes.

    Attributes
    ----------
    block : Block
        The distributions after it.
    rise : float
        The rise of their entropy.
    slope : float
        The rise of the dual if that were linear along the step.
    places : ndarray of shape (n,)
        Parameters that it moves.
    gradient : ndarray of shape (n,)
        The change of the expected counts of their features.
    """

    block: Block
    rise: float
    slope: float
    places: IdArray
    gradient: FloatArray


class Moves:
    """Steps of the dual for any structure.

    Parameters
    ----------
    batches : StochasticObjective
        The data.
    """

    def __init__(self, batches: StochasticObjective) -> None:
        self.batches = batches
        self.weights = [frozen(batches.sequence_weight(i)) for i in range(len(batches))]

    def __call__(self, bound: Any, index: int, block: Block | None, rate: float) -> Move:
        """Return the step of a batch towards the scores of parameters.

        Parameters
        ----------
        bound : object
            The parameters, bound by the batches.
        index : int
            The batch.
        block : Block or None
            Its distributions; None before its first visit.
        rate : float
            How far to go, in terms of the scores: 1 is all the way.
        """
        target = self.batches.scores(bound, index)
        flat = frozen(np.concatenate([target.unary.reshape(-1), target.pair.reshape(-1)]))
        before = block or self._vertex(target, index)
        moved, expected, residual = np.empty_like(flat), np.zeros_like(flat), np.empty_like(flat)
        dual_mix(before.scores, flat, rate, moved)
        weight, after = self.weights[index], parts_of(moved, target)
        with self.batches.original_sequence_numbers():
            log_z = self.batches.structure.log_partition(
                target.with_arrays(*after), weight,
                parts_of(expected, target),
            )  # fmt: skip
        inner, slope = dual_change(
            before.scores, flat, frozen(moved), before.expected, frozen(expected), residual
        )
        level = log_z - self.batches.structure.offset_score(target, self.batches.labels(index))
        reached = Block(frozen(moved), frozen(expected), float(np.sum(weight * level)) - inner)
        gradient = self.batches.gradient(index, parts_of(residual, target))
        places = self.batches.places(index)
        return Move(reached, reached.entropy - before.entropy, slope, places, frozen(gradient))

    def _vertex(self, scores: Potentials, index: int) -> Block:
        """Return the distributions of a batch before its first visit: all on the true labels."""
        size = scores.unary.size + scores.pair.size
        start, expected = np.zeros(size), np.zeros(size)
        labels = self.batches.labels(index)
        parts_of(start, scores).unary[np.arange(len(labels)), labels] = GOLD
        self.batches.structure.add_counts(
            scores, labels, self.weights[index], parts_of(expected, scores)
        )
        return Block(frozen(start), frozen(expected), 0.0)


class Steps:
    """Distributions of all batches, and the parameters they amount to, that steps move.

    Parameters
    ----------
    batches : StochasticObjective
        The data.
    own_w : bool
        Whether the parameters are another vector than the dual one: a penalty shrinks them.

    Attributes
    ----------
    entropies : ndarray of shape (B,)
        Sum of the entropies of each batch, weighted.
    rates : ndarray of shape (B,)
        How far the next step of each batch goes.
    gaps : ndarray of shape (B,)
        About the part of each batch in the gap, as it was at its last visit; 0 before that.
    dual, w : ndarray of shape (L,)
        The dual vector and the parameters, each at some place; elsewhere there are zeros.
    """

    def __init__(self, batches: StochasticObjective, own_w: bool) -> None:
        self.batches = batches
        self.entropies, self.rates = np.zeros(len(batches)), np.empty(len(batches))
        self.gaps = np.zeros(len(batches))
        self.dual = aligned(self._size())
        self.w = aligned(self._size()) if own_w else self.dual

    def _size(self) -> int:
        return self.batches.n_parameters

    def spread(self, parameters: FloatArray) -> FloatArray:
        """Return parameters, shape (P,), as a vector of shape (L,)."""
        return parameters

    def collect(self, flat: FloatArray) -> FloatArray:
        """Return the parameters, shape (P,), in a vector of shape (L,): a new array."""
        return flat.copy()

    def reset(self) -> None:
        """Put all distributions on the true labels: entropy 0, no parameters."""
        for vector in (self.entropies, self.gaps, self.dual, self.w):
            vector[:] = 0.0

    def block(self, index: int) -> Block | None:
        """Return the distributions of a batch; None for those on the true labels."""
        raise NotImplementedError

    def advance(
        self, order: IntArray, batches_per_update: int, c2: float, threshold: float
    ) -> None:
        """Make a step of each of some batches, where it raises the dual.

        Parameters
        ----------
        order : ndarray of shape (n,)
            The batches.
        batches_per_update : int
            So many are computed from the same parameters.
        c2, threshold : float
            The penalty, and by how much it shrinks the dual vector.
        """
        raise NotImplementedError

    def adopt(self, parameters: FloatArray, c2: float, threshold: float) -> None:
        """Move all distributions, from the true labels, to those of some parameters."""
        raise NotImplementedError

    def value(self, parameters: FloatArray) -> float:
        """Return the objective at some parameters."""
        return self.batches.value(parameters)


class GeneralSteps(Steps):
    """Steps for any structure, a round of batches at a time."""

    def __init__(self, batches: StochasticObjective, own_w: bool) -> None:
        super().__init__(batches, own_w)
        self._moves = Moves(batches)
        self.reset()

    def reset(self) -> None:
        """Put all distributions on the true labels."""
        super().reset()
        self._blocks: list[Block | None] = [None] * len(self.batches)

    def block(self, index: int) -> Block | None:
        """Return the distributions of a batch."""
        return self._blocks[index]

    def advance(
        self, order: IntArray, batches_per_update: int, c2: float, threshold: float
    ) -> None:
        """Make a step of each of some batches, where it raises the dual."""
        for chosen in rounds(order, batches_per_update):
            moves = self.batches.visit(partial(self._move, self.batches.bind(self.w)), chosen)
            for index, move in zip(chosen, moves, strict=True):
                self._try(index, move, c2, threshold)

    def adopt(self, parameters: FloatArray, c2: float, threshold: float) -> None:
        """Move all distributions to those of some parameters."""
        bound = self.batches.bind(parameters)
        self.rates[:] = 1.0
        for index in range(len(self.batches)):
            [move] = self.batches.visit(partial(self._move, bound), [index])
            self._apply(move, -0.5 / c2, threshold)
            self._keep(index, move)

    def _move(self, bound: Any, index: int) -> Move:
        """Return the step of a batch towards the scores of some parameters."""
        return self._moves(bound, index, self._blocks[index], float(self.rates[index]))

    def _try(self, index: int, move: Move, c2: float, threshold: float) -> None:
        """Make a step if it raises the dual; choose the next rate of the batch."""
        rise = move.rise - c2 * self._apply(move, -0.5 / c2, threshold)
        # The gap is half the slope all the way to the scores of the weights.
        self.gaps[index] = max(0.5 * move.slope / max(self.rates[index], TINY), 0.0)
        # A parabola with this slope and this rise is highest at half its slope.
        factor = 0.5 * move.slope / max(move.slope - rise, 1e-3 * move.slope, TINY)
        if rise >= 0.0:
            self._keep(index, move)
            factor = min(max(factor, SLOWER), FASTER)
        else:
            self._apply(move, 0.5 / c2, threshold)
            factor = min(max(factor, FAR_SLOWER), SLOWER)
        self.rates[index] = min(self.rates[index] * factor, 1.0)

    def _keep(self, index: int, move: Move) -> None:
        self._blocks[index], self.entropies[index] = move.block, move.block.entropy

    def _apply(self, move: Move, factor: float, threshold: float) -> float:
        """Move the parameters there, or back; returns the rise of |w|^2."""
        rise: float = touched_dual_step(
            frozen(move.places), move.gradient, factor, threshold, self.dual, self.w
        )
        return rise


class ChainSteps(Steps):
    """Steps for a chain whose steps share their scores, in compiled code."""

    def __init__(self, batches: StochasticObjective, own_w: bool) -> None:
        self._weights = AlignedWeights(batches.model)
        super().__init__(batches, own_w)
        entries = BatchPartition(self._weights, batches.data, batches.chunks, batches.threads)
        batches.release_data()
        self._weight = np.concatenate([[], *map(batches.sequence_weight, range(len(batches)))])
        n_labels, self._numbers = batches.model.n_labels, np.arange(len(batches))
        self._most = int(np.diff(batches.offsets[entries.heads]).max(initial=0))
        self._room = partial(
            visit_workspace, n_labels, self._most, self._most,
            int(np.diff(entries.heads).max(initial=0)),
        )  # fmt: skip
        counting = np.arange(self._most + n_labels, dtype=np.uint32)
        self._entries: tuple[Any, ...] = (
            (entries.heads, frozen(batches.offsets), frozen(self._weight)), *entries.arrays,
            entries.step, frozen(counting), frozen(np.ones(1)),
        )  # fmt: skip
        self.reset()

    def _size(self) -> int:
        return self._weights.size

    def spread(self, parameters: FloatArray) -> FloatArray:
        """Return parameters as a vector of shape (L,)."""
        return self._weights.pack(parameters)

    def collect(self, flat: FloatArray) -> FloatArray:
        """Return the parameters in a vector of shape (L,)."""
        return self._weights.unpack(flat)

    def reset(self) -> None:
        """Put all distributions on the true labels."""
        super().reset()
        labels, tokens = self.batches.all_labels, np.arange(self.batches.n_tokens)
        offsets, n_labels = self.batches.offsets, self.batches.model.n_labels
        lengths = np.diff(offsets)
        weight = np.repeat(self._weight, lengths)
        shape, square = (len(tokens), n_labels), (len(self.entropies) * n_labels, n_labels)
        # Numbers of 32 bits are scores as good as any: all else is computed from what they are.
        self._scores, self._expected = np.zeros(shape, np.float32), np.zeros(shape)
        self._pair_scores, self._pair_expected = np.zeros(square, np.float32), np.zeros(square)
        self._scores[tokens, labels] = GOLD
        self._expected[tokens, labels] = weight
        later = np.delete(tokens, offsets[:-1][lengths > 0])
        batch = np.repeat(
            self._numbers, [len(self.batches.labels(i)) for i in range(len(self.entropies))]
        )
        np.add.at(
            self._pair_expected,
            (batch[later] * n_labels + labels[later - 1], labels[later]),
            weight[later],
        )

    def block(self, index: int) -> Block:
        """Return the distributions of a batch."""
        tokens, n_labels = self.batches.chunks[index].tokens, self.batches.model.n_labels
        steps = slice(index * n_labels, (index + 1) * n_labels)

        def joined(unary: NDArray[Any], pair: NDArray[Any]) -> FloatArray:
            both = [unary[tokens].reshape(-1), pair[steps].reshape(-1)]
            return np.concatenate(both, dtype=np.float64)

        return Block(
            joined(self._scores, self._pair_scores), joined(self._expected, self._pair_expected),
            float(self.entropies[index]),
        )  # fmt: skip

    def advance(
        self, order: IntArray, batches_per_update: int, c2: float, threshold: float
    ) -> None:
        """Make a step of each of some batches.

        `batches_per_update` is not read: updates follow one another in compiled code.
        """
        self._run(order, self.w, float(c2), float(threshold), forced=False)

    def adopt(self, parameters: FloatArray, c2: float, threshold: float) -> None:
        """Move all distributions to those of some parameters."""
        self.rates[:] = 1.0
        self._run(self._numbers, self.spread(parameters), float(c2), float(threshold), forced=True)

    def _run(
        self, order: IntArray, read: FloatArray, c2: float, threshold: float, *, forced: bool
    ) -> None:
        """Make updates, towards the scores of some weights."""
        state = (
            (self._scores, self._scores.reshape(-1)), (self._expected, self._expected.reshape(-1)),
            (self._pair_scores, self._pair_expected), (self.entropies, self.rates, self.gaps),
        )  # fmt: skip
        vectors, own = self._vectors(read), self._room()
        shared = shared_arrays(self.batches.model.n_labels, self._most)
        for first in range(0, len(order), AT_ONCE):
            piece = frozen(order[first : first + AT_ONCE])
            self.batches.visits += len(piece)
            chain_dual_steps(
                piece, c2, threshold, forced, self._entries, state, vectors, shared, own
            )

    def _vectors(self, read: FloatArray) -> tuple[Any, ...]:
        table, read = self._weights.table, frozen(read)
        return (read, table(read), self.dual, table(self.dual), self.w, table(self.w),
                self._weights.bits)  # fmt: skip

    def value(self, parameters: FloatArray) -> float:
        """Return the objective at some parameters."""
        vectors, n_parts = self._vectors(self.spread(parameters)), len(self._entries[0][0]) - 1
        labels = frozen(self.batches.all_labels)

        def work(first: int, last: int, losses: FloatArray) -> None:
            chain_dual_losses(first, last, labels, self._entries, vectors, self._room(), losses)

        return chain_losses(self.batches, n_parts, work) + self.batches.penalty_at(parameters)


def make_steps(batches: StochasticObjective, own_w: bool) -> Steps:
    """Return what makes the steps of the dual fastest."""
    fast = batches.is_plain_chain and not batches.has_dense
    return (ChainSteps if fast else GeneralSteps)(batches, own_w)


def shared_arrays(n_labels: int, tokens: int) -> tuple[Any, ...]:
    """Return room for a batch of so many tokens; see the kernels."""
    moved, counts = np.empty((tokens, n_labels)), np.empty((tokens, n_labels))
    residual = aligned(tokens + n_labels, padded(n_labels))
    return (
        (moved, moved.reshape(-1), frozen(moved), np.empty((tokens, n_labels))),
        (counts, counts.reshape(-1)), (residual, residual.reshape(-1)),
        np.empty((n_labels, n_labels)),
    )  # fmt: skip


def parts_of(flat: FloatArray, scores: Potentials) -> Counts:
    """Return views of a vector in the shapes of unary and pair scores."""
    cut = scores.unary.size
    return Counts(flat[:cut].reshape(scores.unary.shape), flat[cut:].reshape(scores.pair.shape))
