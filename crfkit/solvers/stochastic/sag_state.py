"""Steps along the mean of the last gradients of all batches."""

from __future__ import annotations

import math
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from crfkit._types import Counts, FloatArray, IdArray, IntArray, Random
from crfkit.compiler.jit import frozen
from crfkit.compiler.simd import padded
from crfkit.kernels.solvers.sag import (
    COUNT,
    GUESS,
    KNOWN,
    LEAST_SCALE,
    MOST,
    N_NUMBERS,
    SCALE,
    SUM,
    average_settle,
    chain_average_losses,
    chain_average_steps,
)
from crfkit.kernels.solvers.stochastic import DIRECTION, SEEN, VALUE, lazy_read, lazy_turn
from crfkit.kernels.solvers.vector import vector_dot
from crfkit.losses.likelihood import LogLoss
from crfkit.objective.stochastic import StochasticObjective, rounds
from crfkit.oracles.chain import AT_ONCE, visit_workspace
from crfkit.oracles.partition import BatchPartition
from crfkit.oracles.weights import AlignedWeights, aligned
from crfkit.solvers.stochastic.chain_losses import chain_losses
from crfkit.solvers.stochastic.lipschitz import LipschitzEstimates, Metric, inner

# Tokens of the visits between which the interpreter is heard: a few hundredths of a second.
TOKENS_AT_ONCE = 1 << 15
# Batches that are computed before their gradients are remembered.
REFRESHED = 16


class _Tangent(NamedTuple):
    """The loss of a batch at its last visit: ``loss(w) >= offset + residual . scores(w)``."""

    residual: Counts
    offset: float
    value: float


class _Visit(NamedTuple):
    """What a visit of a batch changes.

    Attributes
    ----------
    tangent : _Tangent
        The loss at the current parameters.
    places : ndarray of shape (n,)
        Parameters that the batch touches.
    change : ndarray of shape (n,)
        The change of its gradient to them.
    """

    tangent: _Tangent
    places: IdArray
    change: FloatArray


class Averages:
    """The parameters, the last gradient of each batch, and their sum.

    Parameters
    ----------
    batches : StochasticObjective
        The data.

    Attributes
    ----------
    smoothness : LipschitzEstimates
        Of the loss of each batch.
    """

    def __init__(self, batches: StochasticObjective) -> None:
        self.batches, self.metric = batches, Metric(batches)
        self.smoothness = LipschitzEstimates(batches, self.metric)
        self._decay = 2.0 * batches.penalty.l2 / max(len(batches), 1)

    @property
    def direction(self) -> FloatArray:
        """The sum of the remembered gradients of the loss, shape (P,)."""
        raise NotImplementedError

    def _known(self) -> tuple[int, float, float]:
        """Return how many batches were looked at, and the sums of their losses and offsets."""
        raise NotImplementedError

    def _last(self) -> FloatArray:
        """Return the parameters of the last call of `weights`."""
        raise NotImplementedError

    def weights(self) -> FloatArray:
        """Return the parameters after all steps, a new array."""
        raise NotImplementedError

    def run_pass(self, random: Random, batches_per_update: int) -> None:
        """Make as many steps as there are batches."""
        raise NotImplementedError

    def refresh(self) -> None:
        """Compute the gradients of all batches at the current parameters."""
        raise NotImplementedError

    def value(self, w: FloatArray) -> float:
        """Return the objective at some parameters."""
        return self.batches.value(w)

    def gradient_norm(self) -> float:
        """Return the norm of the remembered gradient; to be called right after `weights`."""
        if self._known()[0] < len(self.batches):
            return math.nan
        gradient = self.direction + 2.0 * self.batches.penalty.l2 * self._last()
        return math.sqrt(vector_dot(frozen(gradient), frozen(gradient)))

    def lower_bound(self) -> float:
        """Return a value that no parameters have less than.

        The least value of the tangents plus the penalty: ``sum_b offset_b - |d|^2 / (4 c2)``.
        """
        known, _, offset = self._known()
        if known < len(self.batches):
            return -math.inf
        direction = self.direction
        square = vector_dot(frozen(direction), frozen(direction))
        if square == 0.0:
            return offset
        c2 = self.batches.penalty.l2
        return offset - square / (4.0 * c2) if c2 else -math.inf

    def expected_gap(self) -> float:
        """Return what the gap would be if all losses still were those of the last visits.

        To be called right after `weights`. Losses of earlier parameters are larger as a rule.
        """
        return (
            self._known()[1] + self.batches.penalty.smooth_value(self._last()) - self.lower_bound()
        )


class GeneralAverages(Averages):
    """The same for any structure, a round of batches at a time.

    The parameters are ``w = scale v``. Between two changes of the sum ``d`` of the gradients at a
    place, all steps go along the same ``d`` there: ``v -= (sum of step lengths) d``.

    Parameters
    ----------
    batches : StochasticObjective
        The data.
    start : ndarray of shape (P,)
        First parameters; not changed.
    """

    def __init__(self, batches: StochasticObjective, start: FloatArray) -> None:
        super().__init__(batches)
        self.tangents: list[_Tangent | None] = [None] * len(batches)
        self._lazy, self._w = np.zeros((len(start), 3)), start.copy()
        self._lazy[:, VALUE] = start
        self._scale, self._total, self._n_known = 1.0, 0.0, 0
        self._all = np.arange(len(start), dtype=np.uint32)
        if start.any():  # else the first steps would lead away from what is good already
            self.refresh()

    @property
    def direction(self) -> FloatArray:
        """The sum of the remembered gradients of the loss, shape (P,)."""
        return self._lazy[:, DIRECTION].copy()

    def _known(self) -> tuple[int, float, float]:
        known = [tangent for tangent in self.tangents if tangent is not None]
        return len(known), sum(t.value for t in known), sum(t.offset for t in known)

    def _last(self) -> FloatArray:
        return self._w

    def weights(self) -> FloatArray:
        """Return the parameters after all steps, a new array."""
        self._read(self._all)
        self._lazy[:, VALUE] = self._w
        self._lazy[:, SEEN] = 0.0
        self._scale, self._total = 1.0, 0.0
        return self._w.copy()

    def run_pass(self, random: Random, batches_per_update: int) -> None:
        """Make as many steps as there are batches."""
        for chosen in rounds(self.smoothness.draw(random), batches_per_update):
            for index, visit in zip(chosen, self._visit_all(chosen), strict=True):
                self._remember(index, visit)
                self._step()

    def refresh(self) -> None:
        """Compute the gradients of all batches at the current parameters."""
        bound = self.batches.bind(self.weights())
        for chosen in rounds(np.arange(len(self.batches)), REFRESHED):
            work = [(index, self.batches.places(index), False) for index in chosen]
            visits = self.batches.visit(lambda item: self._visit(bound, *item), work)
            for index, visit in zip(chosen, visits, strict=True):
                self._remember(index, visit)

    def _visit_all(self, chosen: list[int]) -> list[_Visit]:
        """Look at batches from the current parameters, which none of them changes."""
        work = [(i, self.batches.places(i), self.smoothness.is_due(i)) for i in chosen]
        for _, places, _ in work:
            self._read(places)
        bound = self.batches.bind(self._w)
        visits: list[_Visit] = self.batches.visit(lambda item: self._visit(bound, *item), work)
        self.smoothness.guess_from(chosen[-1])
        return visits

    def _visit(self, bound: Any, index: int, places: IdArray, test: bool) -> _Visit:
        """Look at a batch, and perhaps test its smoothness."""
        scores = self.batches.scores(bound, index)
        value, residual = self.batches.value_and_residual(scores, index)
        offset = value - inner(residual.unary, scores.unary) - inner(residual.pair, scores.pair)
        before, change = self.tangents[index], residual
        if before is not None:
            old = before.residual
            change = Counts(residual.unary - old.unary, residual.pair - old.pair)
        gradient = self.batches.gradient(index, change)
        if test:
            whole = gradient if before is None else self.batches.gradient(index, residual)
            self.smoothness.test(index, scores, value, whole, places)
        return _Visit(_Tangent(residual, offset, value), places, gradient)

    def _read(self, places: IdArray) -> None:
        """Bring parameters up to date."""
        lazy_read(frozen(places), self._scale, self._total, self._lazy, self._w)

    def _remember(self, index: int, visit: _Visit) -> None:
        """Replace the gradient of a batch."""
        self._n_known += self.tangents[index] is None
        self.tangents[index] = visit.tangent
        lazy_turn(frozen(visit.places), frozen(visit.change), self._total, self._lazy)

    def _step(self) -> None:
        """Move along the mean of the gradients and the gradient of the penalty."""
        length, always = self.smoothness.step(self._decay * self.metric.most), self.metric.always
        lazy = self._lazy[always]
        w = self._scale * lazy[:, VALUE]
        mean = lazy[:, DIRECTION] / self._n_known + self._decay * w
        self._scale *= 1.0 - length * self._decay
        self._total += length / (self._n_known * self._scale)
        lazy[:, VALUE] = (w - length * self.metric(mean)) / self._scale
        lazy[:, SEEN] = self._total
        if self._scale < LEAST_SCALE:
            self.weights()


class ChainAverages(Averages):
    """The same for a chain whose steps share their scores: runs of visits in compiled code.

    Parameters
    ----------
    batches : StochasticObjective
        The data.
    start : ndarray of shape (P,)
        First parameters; not changed.
    """

    def __init__(self, batches: StochasticObjective, start: FloatArray) -> None:
        super().__init__(batches)
        weights = self._weights = AlignedWeights(batches.model)
        data, n_labels, n_batches = batches.data, batches.model.n_labels, len(batches)
        entries = BatchPartition(weights, data, batches.chunks, batches.threads)
        batches.release_data()
        heads = entries.heads
        weight = np.concatenate([[], *map(batches.sequence_weight, range(n_batches))])
        dense = np.empty((batches.n_tokens, 0)) if data.dense is None else data.dense
        self._entries: tuple[Any, ...] = (
            (heads, frozen(data.offsets), frozen(weight)), *entries.arrays, entries.step,
            frozen(batches.all_labels), frozen(dense),
        )  # fmt: skip
        most = int(np.diff(data.offsets[heads]).max(initial=0))
        self._at_once = max(1, min(AT_ONCE, TOKENS_AT_ONCE // max(most, 1)))
        sizes = n_labels, most, int(np.diff(heads).max(initial=0)), dense.shape[1]
        self._room = partial(_workspace, weights, *sizes)
        self._own = self._room()
        self._memory = (
            np.zeros((batches.n_tokens, n_labels)), np.zeros((n_batches * n_labels, n_labels)),
            np.zeros((n_batches, 3)),
        )  # fmt: skip
        v, direction = weights.pack(start), aligned(weights.size)
        n_sparse = weights.n_rows - n_labels - dense.shape[1]
        self._vectors = (
            v, weights.table(v), direction, weights.table(direction), np.zeros(n_sparse),
            np.zeros(weights.size - weights.n_rows * weights.width), weights.bits,
        )  # fmt: skip
        steps = np.zeros((n_labels, padded(n_labels)))
        steps[batches.model.transition_from, batches.model.transition_to] = self.metric.steps
        features = frozen(self.metric.features if dense.shape[1] else np.zeros((0, 0)))
        self._metric = (
            features, frozen(steps), self._decay * self.metric.most, self.metric.caution
        )  # fmt: skip
        self._numbers = np.zeros(N_NUMBERS)
        self._numbers[[SCALE, GUESS]] = 1.0, self.smoothness.guess
        self._w = start.copy()
        if start.any():
            self.refresh()

    @property
    def direction(self) -> FloatArray:
        """The sum of the remembered gradients of the loss, shape (P,)."""
        return self._weights.unpack(self._vectors[2])

    def _known(self) -> tuple[int, float, float]:
        value, offset, _ = self._memory[2].sum(axis=0)
        return int(self._numbers[KNOWN]), float(value), float(offset)

    def _last(self) -> FloatArray:
        return self._w

    def weights(self) -> FloatArray:
        """Return the parameters after all steps, a new array."""
        average_settle(self._vectors, self._numbers)
        self._w = self._weights.unpack(self._vectors[0])
        return self._w.copy()

    def run_pass(self, random: Random, batches_per_update: int) -> None:
        """Make as many steps as there are batches; `batches_per_update` is not read."""
        self._run(self.smoothness.draw(random), math.inf)

    def refresh(self) -> None:
        """Compute the gradients of all batches at the current parameters."""
        self.weights()
        self._run(np.arange(len(self.batches)), 0.0)

    def _run(self, order: IntArray, longest: float) -> None:
        """Visit batches, and make steps that are not longer."""
        known = self.smoothness
        self._numbers[[SUM, MOST]] = known.estimates.sum(), known.estimates.max(initial=0.0)
        self._numbers[COUNT] = np.count_nonzero(known.estimates)
        smooth = (known.estimates, known.wait, known.pause, self._numbers)
        for first in range(0, len(order), self._at_once):
            piece = frozen(order[first : first + self._at_once])
            self.batches.visits += len(piece)
            chain_average_steps(
                piece, self._decay, longest, self._entries, self._memory, self._vectors,
                self._metric, smooth, self._own,
            )  # fmt: skip

    def value(self, w: FloatArray) -> float:
        """Return the objective at some parameters."""
        flat = frozen(self._weights.pack(w))

        def work(first: int, last: int, losses: FloatArray) -> None:
            chain_average_losses(
                first, last, self._entries, flat, self._weights.table(flat), self._room(), losses
            )

        return chain_losses(self.batches, len(self.batches), work) + self.batches.penalty_at(w)


def make_averages(batches: StochasticObjective, start: FloatArray) -> Averages:
    """Return what makes the steps fastest, at its first parameters."""
    fast = batches.is_plain_chain and type(batches.loss) is LogLoss and batches.has_sequence_weights
    return (ChainAverages if fast else GeneralAverages)(batches, start)


def _workspace(
    weights: AlignedWeights, n_labels: int, tokens: int, sequences: int, n_features: int
) -> tuple[Any, ...]:
    """Return room for a batch of so many tokens; see the kernels."""
    width, probe = padded(n_labels), aligned(weights.size)
    whole, change = aligned(tokens, width), aligned(tokens, width)
    moved, cells = np.empty((tokens, n_labels)), tokens * n_features
    others = (
        (probe, weights.table(probe)), (whole, whole.reshape(-1), change, change.reshape(-1)),
        (moved, frozen(moved)),
        (np.empty(tokens + 1, np.int64), np.empty(cells + 1, np.uint32), np.empty(cells + 1)),
        (np.empty((n_labels, n_labels)), aligned(1, n_features, width), aligned(n_features, width)),
    )  # fmt: skip
    return (*visit_workspace(n_labels, tokens, tokens, sequences), others)
