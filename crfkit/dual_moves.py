"""Steps of the dual: from the distributions of a batch towards those of some parameters."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from crfkit._jit import frozen
from crfkit._types import Expectations, FloatArray, IdArray, Scores
from crfkit.kernels.chain import OK
from crfkit.kernels.chain_dual import chain_dual_change, chain_dual_scores
from crfkit.kernels.touched import dual_change, dual_mix
from crfkit.minibatches import MiniBatches
from crfkit.scores.steps import SharedSteps
from crfkit.structures import Chain
from crfkit.structures.chain import chain_workspace, turned

# Score of the true label before a batch is first looked at, all others being 0.
GOLD = 12.0

ONE_TABLE: IdArray = frozen(np.zeros(1, np.uint32))


class Block(NamedTuple):
    """The distributions of a batch.

    Attributes
    ----------
    scores : ndarray of shape (Q,)
        The scores that stand for them, those of labels before those of steps.
    expected : ndarray of shape (Q,)
        Their expected counts, weighted, in the same order.
    entropy : float
        Sum of their entropies, weighted.
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
    batches : MiniBatches
        The data.
    """

    def __init__(self, batches: MiniBatches) -> None:
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
        with self.batches.numbering():
            log_z = self.batches.structure.sum(
                target._replace(unary=after.unary, pair=after.pair), weight,
                parts_of(expected, target),
            )  # fmt: skip
        inner, slope = dual_change(
            before.scores, flat, frozen(moved), before.expected, frozen(expected), residual
        )
        reached = Block(frozen(moved), frozen(expected), float(np.sum(weight * log_z)) - inner)
        gradient = self.batches.gradient(index, parts_of(residual, target))
        places = self.batches.places(index)
        return Move(reached, reached.entropy - before.entropy, slope, places, frozen(gradient))

    def _vertex(self, scores: Scores, index: int) -> Block:
        """Return the distributions of a batch before its first visit: all on the true labels."""
        size = scores.unary.size + scores.pair.size
        start, expected = np.zeros(size), np.zeros(size)
        labels = self.batches.labels(index)
        parts_of(start, scores).unary[np.arange(len(labels)), labels] = GOLD
        self.batches.structure.add_path(
            scores, labels, self.weights[index], parts_of(expected, scores)
        )
        return Block(frozen(start), frozen(expected), 0.0)


class ChainMoves(Moves):
    """The same for a chain whose steps share their scores, nearly all of it in compiled code."""

    def __init__(self, batches: MiniBatches) -> None:
        super().__init__(batches)
        model = batches.model
        chunks = [batches.chunk(i) for i in range(len(batches))]
        self._offsets = [frozen(chunk.offsets - chunk.tokens.start) for chunk in chunks]
        self._every = frozen(np.arange(max((len(o) for o in self._offsets), default=0)))
        self._steps = model.step_from.astype(np.int64) * model.n_labels + model.step_to

    def __call__(self, bound: Any, index: int, block: Block | None, rate: float) -> Move:
        """Return the step of a batch, as :class:`Moves` does."""
        offsets, entries = self._offsets[index], self.batches.entries(index)
        n_tokens, n_labels = int(offsets[-1]), self.batches.model.n_labels
        shape, square = (n_tokens, n_labels), (1, n_labels, n_labels)
        like = Scores(np.empty(shape), np.empty(square), offsets)
        before = block or self._vertex(like, index)
        target, moved, exponent = (np.empty_like(before.scores) for _ in range(3))
        shift, pair_shift = np.empty(n_tokens), np.empty(1)
        moved_parts = parts_of(frozen(moved), like)
        gradient = np.zeros(len(entries.places) + len(self._steps))
        chain_dual_scores(
            *entries, frozen(bound.state.pairs), np.empty_like(gradient), frozen(bound.pair),
            before.scores, rate, target, parts_of(target, like).unary, frozen(target), moved,
            moved_parts.unary, exponent, parts_of(exponent, like).unary, shift, pair_shift,
        )  # fmt: skip
        raised = parts_of(frozen(np.exp(exponent, out=exponent)), like)
        expected, residual = np.empty_like(target), np.empty_like(target)
        weight = self.weights[index]
        log_z, status = np.empty(len(weight)), np.empty(len(weight), np.int64)
        inner, slope = chain_dual_change(
            frozen(target), frozen(moved), moved_parts.unary, moved_parts.pair, raised.unary,
            raised.pair, turned(raised.pair), frozen(shift), frozen(pair_shift),
            ONE_TABLE, offsets, self._every[: len(weight)], weight, np.empty(n_tokens),
            *chain_workspace(like), np.empty(square), log_z, status, before.scores,
            before.expected, expected, parts_of(expected, like).unary, frozen(expected), residual,
            parts_of(frozen(residual), like).unary, *entries.adjoint, gradient,
        )  # fmt: skip
        if status.min(initial=OK) != OK or status.max(initial=OK) != OK:
            return super().__call__(bound, index, block, rate)
        gradient[len(entries.places) :] = residual[shape[0] * shape[1] :][self._steps]
        reached = Block(frozen(moved), frozen(expected), float(np.sum(weight * log_z)) - inner)
        places = self.batches.places(index)
        return Move(reached, reached.entropy - before.entropy, slope, places, frozen(gradient))


def make_moves(batches: MiniBatches) -> Moves:
    """Return what computes the steps of the dual fastest."""
    model = batches.model
    plain = type(model.steps) is SharedSteps and not model.boundaries and not batches.has_dense
    return ChainMoves(batches) if plain and isinstance(batches.structure, Chain) else Moves(batches)


def parts_of(flat: FloatArray, scores: Scores) -> Expectations:
    """Return views of a vector in the shapes of unary and pair scores."""
    cut = scores.unary.size
    return Expectations(
        flat[:cut].reshape(scores.unary.shape), flat[cut:].reshape(scores.pair.shape)
    )
