"""Small batches on any structure and with any loss, as a problem of the kernels of solvers.

The text of the solvers is the one that is compiled for linear chains; what it asks of batches is
answered by the methods of the objective.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from crfkit._parallel import return_memory
from crfkit._types import Counts, FloatArray, IdArray, Potentials, SingleArray
from crfkit.compiler.dispatch import implements, interpreted
from crfkit.compiler.jit import frozen
from crfkit.kernels.design.batch import LazyWeights, Metric, Weights
from crfkit.kernels.solvers import batches as kernels
from crfkit.kernels.solvers.stochastic import (
    averaged_step,
    catch_up_weights,
    cumulative_l1,
    dual_step,
)
from crfkit.kernels.solvers.vector import vector_dot
from crfkit.objective.stochastic import StochasticObjective
from crfkit.oracles.batches import BatchData, BatchOracle, Preconditioner, find_batch_oracle

NOTHING = slice(0, 0)


class GeneralWorkspace(NamedTuple):
    """Vectors (V,) over the potentials of the largest batch."""

    potentials: FloatArray
    counts: FloatArray
    direction: FloatArray
    change: FloatArray


class _OfThread(threading.local):
    """What a thread keeps: the potentials of its last batch, and room for parameters."""

    scores: Potentials
    w: FloatArray | None = None


class GeneralBatches:
    """Batches whose potentials an objective computes; parameters at `always` move in each step."""

    precondition: Preconditioner

    def __init__(self, batches: StochasticObjective) -> None:
        self.batches, self.always = batches, NOTHING
        self._own = _OfThread()
        model, data, chunks = batches.model, batches.data, batches.chunks
        tokens = np.array([0, *(chunk.tokens.stop for chunk in chunks)], np.int64)
        cells = np.cumsum([0, *(model.cells(data, chunk) for chunk in chunks)], dtype=np.int64)
        unary = tokens * model.n_columns
        pair, most = cells - unary, int(np.diff(unary).max(initial=0))
        self.index = kernels.BlockIndex(frozen(unary), frozen(pair + unary[-1]), most)
        self.room = most + int(np.diff(pair).max(initial=0))

    def gather(self, batch: int, scale: float, flat: FloatArray, workspace: Any) -> None:
        """Compute the potentials of a batch."""
        if scale != 1.0:
            places, w = self.batches.places(batch), self._scratch(len(flat))
            w[places] = scale * flat[places]
            w[self.always] = flat[self.always]
            flat = w
        scores = self.batches.scores(self.batches.bind(flat), batch)
        self._own.scores = scores
        parts = self._cleared(workspace.potentials)
        parts.unary[...], parts.pair[...] = scores.unary, scores.pair

    def _cleared(self, vector: FloatArray) -> Counts:
        """Return views of a vector (V,), whose numbers are 0: a batch may have fewer than room."""
        vector[:] = 0.0
        return self.parts(vector)

    def write_gradient(self, workspace: Any, residual: Counts) -> None:
        """Let the gradient to the potentials be the counts."""
        out = self._cleared(workspace.counts)
        out.unary[...], out.pair[...] = residual.unary, residual.pair

    def _scratch(self, size: int) -> FloatArray:
        """Return room for parameters, of this thread."""
        if self._own.w is None:
            self._own.w = np.zeros(size)
        return self._own.w

    def parts(self, vector: FloatArray, batch: int | None = None) -> Counts:
        """Return views of a vector (V,), for the batch that this thread has gathered last."""
        if batch is not None and self._own.scores.first != self.batches.chunks[batch].first:
            zeros = np.zeros(self.batches.n_parameters)
            self._own.scores = self.batches.scores(self.batches.bind(zeros), batch)
        unary, pair = self._own.scores.unary, self._own.scores.pair
        at = self.index.first_pair
        return Counts(
            vector[: unary.size].reshape(unary.shape),
            vector[at : at + pair.size].reshape(pair.shape),
        )

    def potentials(self, workspace: Any) -> Potentials:
        """Return the potentials in a workspace."""
        unary, pair = self.parts(workspace.potentials)
        return self._own.scores.with_arrays(unary, pair)

    def gradient(self, batch: int, workspace: Any) -> FloatArray:
        """Return the gradient to the parameters of a batch, given a change of its counts."""
        return self.batches.gradient(batch, self.parts(workspace.change, batch))

    def lazy(self, batch: int) -> IdArray:
        """Return the parameters of a batch that are moved when they are needed."""
        places = self.batches.places(batch)
        always = self.always
        if always.start == always.stop:
            return frozen(places)
        return frozen(places[(places < always.start) | (places >= always.stop)])


class GeneralBatchOracle(BatchOracle):
    """Batches on any structure and with any loss."""

    def __init__(self, batches: StochasticObjective) -> None:
        self.problem = GeneralBatches(batches)
        self.index, self.size = self.problem.index, batches.n_parameters

    def run(self, kernel: Callable[..., Any]) -> Callable[..., Any]:
        """Return the text of a kernel as a Python function."""
        return interpreted(kernel)

    def pack(self, parameters: FloatArray) -> FloatArray:
        """Return a copy."""
        return parameters.copy()

    def unpack(self, flat: FloatArray) -> FloatArray:
        """Return a copy."""
        return flat.copy()

    def weights(self, flat: FloatArray) -> Weights:
        """Return a vector, shape (P,), without rows."""
        return Weights(flat, np.zeros((0, 0)), np.zeros((0, 0)))

    def metric(self, preconditioner: Preconditioner) -> Metric:
        """Return how far steps go along the parameters that are moved in each step."""
        self.problem.precondition, self.problem.always = preconditioner, preconditioner.always
        return Metric(preconditioner.features, preconditioner.transitions)

    def true_potentials(self, batch: int, gold: float) -> SingleArray:
        """Return potentials of the labels of a batch, (n,): `gold` for true ones and 0 else."""
        batches, labels = self.problem.batches, self.problem.batches.labels(batch)
        potentials = np.zeros((len(labels), batches.model.n_columns), np.float32)
        potentials[np.arange(len(labels)), labels] = gold
        return potentials.reshape(-1)

    def workspace(self) -> GeneralWorkspace:
        """Return room for a batch, for one thread."""
        return GeneralWorkspace(*np.zeros((4, self.problem.room)))


def make_batch_oracle(batches: StochasticObjective) -> BatchOracle:
    """Return the compiled form of batches, or, where there is none, the general one."""
    found = None
    known = batches.has_known_labels and batches.has_sequence_weights
    if batches.loss.is_log_likelihood and known:
        weight = np.concatenate([[], *map(batches.sequence_weight, range(len(batches)))])
        data = BatchData(
            batches.model, batches.structure, batches.source, batches.tokens, batches.offsets,
            lambda: batches.data, batches.chunks, batches.all_labels, weight, batches.threads,
        )  # fmt: skip
        found = find_batch_oracle(data)
        batches.release_data()
        return_memory(batches.source.nbytes)
    return GeneralBatchOracle(batches) if found is None else found


@implements(kernels.gather, GeneralBatches)
def _gather(problem: Any, batch: int, scale: float, weights: Weights, workspace: Any) -> None:
    problem.gather(batch, scale, weights.flat, workspace)


@implements(kernels.loss, GeneralBatches)
def _loss(problem: Any, batch: int, workspace: Any) -> float:
    value, residual = problem.batches.value_and_residual(problem.potentials(workspace), batch)
    problem.write_gradient(workspace, residual)
    return float(value)


@implements(kernels.step_dual, GeneralBatches)
def _step_dual(
    problem: Any, batch: int, factor: float, threshold: float, dual: Weights, w: Weights,
    workspace: Any,
) -> float:  # fmt: skip
    places, gradient = problem.batches.places(batch), problem.gradient(batch, workspace)
    return dual_step(frozen(places), frozen(gradient), -factor, threshold, dual.flat, w.flat)


@implements(kernels.descend, GeneralBatches)
def _descend(
    problem: Any, batch: int, factor: float, past: float, v: Weights, lag: Weights, workspace: Any
) -> None:
    places, gradient = problem.batches.places(batch), problem.gradient(batch, workspace)
    averaged_step(frozen(places), frozen(gradient), factor, past, v.flat, lag.flat)


@implements(kernels.pay, GeneralBatches)
def _pay(problem: Any, batch: int, scale: float, due: float, paid: Weights, v: Weights) -> None:
    cumulative_l1(frozen(problem.batches.places(batch)), scale, due, paid.flat, v.flat)


@implements(kernels.catch_up, GeneralBatches)
def _catch_up(problem: Any, batch: int, total: float, lazy: LazyWeights) -> None:
    catch_up_weights(problem.lazy(batch), total, lazy.direction.flat, lazy.v.flat, lazy.seen)


@implements(kernels.add_gradient, GeneralBatches)
def _add_gradient(problem: Any, batch: int, out: Weights, workspace: Any) -> float:
    out.flat[problem.batches.places(batch)] += problem.gradient(batch, workspace)
    return 0.0


@implements(kernels.aim, GeneralBatches)
def _aim(problem: Any, batch: int, metric: Metric, probe: Weights, workspace: Any) -> float:
    gradient, places = problem.gradient(batch, workspace), problem.batches.places(batch)
    probe.flat[places] = gradient
    probe.flat[problem.always] = problem.precondition(probe.flat[problem.always])
    return vector_dot(frozen(gradient), frozen(probe.flat[places]))


@implements(kernels.clear, GeneralBatches)
def _clear(problem: Any, batch: int, probe: Weights) -> None:
    probe.flat[problem.batches.places(batch)] = 0.0
    probe.flat[problem.always] = 0.0


@implements(kernels.step_always, GeneralBatches)
def _step_always(
    problem: Any, length: float, decay: float, known: float, metric: Metric, lazy: LazyWeights,
    workspace: Any,
) -> None:  # fmt: skip
    w = lazy.v.flat[problem.always]
    mean = lazy.direction.flat[problem.always] / known + decay * w
    lazy.v.flat[problem.always] = w - length * problem.precondition(mean)


@implements(kernels.settle, GeneralBatches)
def _settle(problem: Any, scale: float, total: float, lazy: LazyWeights) -> None:
    kept = lazy.v.flat[problem.always].copy()
    lazy.v.flat[:] = scale * (lazy.v.flat - (total - lazy.seen) * lazy.direction.flat)
    lazy.v.flat[problem.always] = kept
    lazy.seen[:] = 0.0
