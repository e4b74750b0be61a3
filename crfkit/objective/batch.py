"""The objective: potentials x structure x loss x penalty, over threads."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from functools import cached_property, partial
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from crfkit._parallel import ThreadMap
from crfkit._types import (
    Chunk,
    CodeArray,
    Counts,
    FloatArray,
    IterationRecord,
    Potentials,
)
from crfkit.data import PackedSequences
from crfkit.data.chunks import make_blocks, make_chunks
from crfkit.data.labels import Targets, Weights
from crfkit.losses import Loss, check_match
from crfkit.objective.penalties import ElasticNet
from crfkit.objective.stochastic import StochasticObjective
from crfkit.potentials import LinearModel, PotentialsModel
from crfkit.structures import Structure

# What is done with the scores of a chunk: (scores, tokens, out, prepared block, number in it).
Work = Callable[[Potentials, slice, Counts, Any, int], float]


class _PreparedData:
    """The data in the form that an evaluation reads, made when the first one comes.

    A solver that works with mini-batches alone does not need it.
    """

    def __init__(self, model: LinearModel, data: PackedSequences, threads: ThreadMap) -> None:
        self.model, self.data, self.threads = model, data, threads

    @cached_property
    def blocks(self) -> list[tuple[list[Chunk], Any]]:
        """Chunks and the prepared form of each block."""
        chunks = make_chunks(self.data.offsets, self.model.chunk_tokens)
        blocks = make_blocks(chunks, [self.model.cells(self.data, chunk) for chunk in chunks])
        return [(block, self.model.prepare(self.data, block, self.threads)) for block in blocks]

    @cached_property
    def squared(self) -> _PreparedData | None:
        """The data with the squares of all values; None where these are the values."""
        squares = _squared(self.data)
        same = squares is self.data
        return None if same else _PreparedData(self.model, squares, self.threads)

    @cached_property
    def residual(self) -> FloatArray:
        """Room for the gradient to the unary scores of one block."""
        sizes = [block[-1].tokens.stop - block[0].tokens.start for block, _ in self.blocks]
        return np.empty((max(sizes, default=0), self.model.n_columns))


class Objective:
    """Loss of labeled data plus penalty, as a function of the parameters.

    All a solver sees. The value is a sum over sequences, not a mean.

    Parameters
    ----------
    model : PotentialsModel
        From parameters to scores.
    structure : Structure
        Answers questions about scores.
    loss : Loss
        From scores and labels to value and gradient.
    penalty : ElasticNet
        On the parameters.
    data : PackedSequences
        S sequences of N tokens.
    labels : ndarray of shape (N,), or Targets
        Label codes, or the codes that tokens may have.
    weight : ndarray of shape (N,)
        Token weights.
    threads : ThreadMap
        An open pool of threads. Values and gradients are the same to the last bit for any number.

    Raises
    ------
    ValueError
        If the structure lacks what the loss requires.

    Attributes
    ----------
    n_parameters : int
        Number of parameters P.
    l1 : float
        Weight of the L1 norm, which is not part of :meth:`value_and_grad`.
    evaluations : int
        How often :meth:`value_and_grad` and :meth:`hessian_product` were called, plus the passes of
        solvers that work with mini-batches.
    """

    def __init__(
        self,
        model: PotentialsModel,
        structure: Structure,
        loss: Loss,
        penalty: ElasticNet,
        data: PackedSequences,
        labels: CodeArray | Targets,
        weight: FloatArray,
        threads: ThreadMap,
    ) -> None:
        check_match(structure, loss)
        self.model, self.structure = model, structure.in_parallel(threads)
        self.loss, self.penalty = loss, penalty
        self.data, self.weight, self.threads = data, weight, threads
        self.targets = labels if isinstance(labels, Targets) else Targets(labels)
        self._prepared = _PreparedData(cast(LinearModel, model), data, threads)
        self.evaluations = 0

    @property
    def n_parameters(self) -> int:
        """Number of parameters P."""
        return self.model.n_parameters

    @property
    def labels(self) -> CodeArray:
        """The label codes of all tokens, shape (N,); ValueError if some may have several."""
        return self.targets.labels

    @property
    def l1(self) -> float:
        """Weight of the L1 norm."""
        return self.penalty.l1

    @property
    def l2(self) -> float:
        """Weight of the squared Euclidean norm."""
        return self.penalty.l2

    def with_penalty(self, penalty: ElasticNet) -> Objective:
        """Return the objective with another penalty; both share the prepared data.

        Not to be evaluated at the same time as this one.
        """
        other = copy.copy(self)
        other.penalty, other.evaluations = penalty, 0
        return other

    def with_loss(self, loss: Loss) -> Objective:
        """Return the objective with another loss; both share the prepared data.

        Not to be evaluated at the same time as this one.
        """
        other = copy.copy(self)
        other.loss = loss
        return other

    def value_and_grad(self, w: FloatArray) -> tuple[float, FloatArray]:
        """Return the differentiable part of the objective and its gradient.

        Parameters
        ----------
        w : ndarray of shape (P,)
            Parameters.

        Returns
        -------
        value : float
            Loss plus the differentiable part of the penalty.
        gradient : ndarray of shape (P,)
            A new array.
        """
        self.evaluations += 1
        value, gradient = self._pull_back(w, self._loss_of_chunk)
        self.penalty.add_smooth_gradient(w, gradient)
        return value + self.penalty.smooth_value(w), gradient

    def hessian_product(self, w: FloatArray, direction: FloatArray) -> FloatArray:
        """Return the product of the Hessian of the differentiable part with a direction.

        Parameters
        ----------
        w : ndarray of shape (P,)
            Parameters.
        direction : ndarray of shape (P,)
            What to multiply with.

        Returns
        -------
        ndarray of shape (P,)
            A new array.

        Raises
        ------
        ValueError
            If the weights of the tokens of a sequence differ.
        """
        bound = self.model.bind(direction)

        def work(
            scores: Potentials, tokens: slice, out: Counts, prepared: Any, index: int
        ) -> float:
            tangent = self._prepared.model.prepared_scores(bound, prepared, index, self.threads)
            self.loss.hessian_product(
                self.structure,
                scores,
                tangent,
                self.targets.take(tokens),
                self._weights(scores, tokens),
                out,
            )
            return 0.0

        self.evaluations += 1
        product = self._pull_back(w, work)[1]
        self.penalty.add_smooth_gradient(direction, product)
        return product

    def hessian_diagonal(self, w: FloatArray) -> FloatArray:
        """Return an estimate of the diagonal of the Hessian, shape (P,): cheap, never negative.

        The variance of each feature as if tokens were independent (Sha and Pereira 2003,
        section 3.2.1), and for transitions their expected number, plus what the penalty adds.

        Parameters
        ----------
        w : ndarray of shape (P,)
            Parameters.
        """

        def work(
            scores: Potentials, tokens: slice, out: Counts, prepared: Any, index: int
        ) -> float:
            self.loss.hessian_diagonal(
                self.structure,
                scores,
                self.targets.take(tokens),
                self._weights(scores, tokens),
                out,
            )
            return 0.0

        diagonal = np.abs(self._pull_back(w, work, self._prepared.squared)[1])
        diagonal += 2.0 * self.penalty.l2
        return diagonal

    def expected_counts(self, w: FloatArray, chosen: NDArray[np.bool_]) -> FloatArray:
        """Return how often each feature is expected in some of the sequences, shape (P,).

        Parameters
        ----------
        w : ndarray of shape (P,)
            Parameters.
        chosen : ndarray of bool, shape (S,)
            Sequences to count in.
        """

        def work(
            scores: Potentials, tokens: slice, out: Counts, prepared: Any, index: int
        ) -> float:
            level = self._weights(scores, tokens).shared
            part = chosen[scores.first : scores.first + len(level)]
            self.structure.log_partition(scores, level * part, out)
            return 0.0

        return self._pull_back(w, work)[1]

    def observed_counts(self) -> FloatArray:
        """Return how often each feature occurs with the true labels, shape (P,)."""

        def work(
            scores: Potentials, tokens: slice, out: Counts, prepared: Any, index: int
        ) -> float:
            level = self._weights(scores, tokens).shared
            out.unary[...] = 0.0
            self.structure.add_counts(scores, self.labels[tokens], level, out)
            return 0.0

        return self._pull_back(np.zeros(self.n_parameters), work)[1]

    def total_counts(self) -> FloatArray:
        """Return the largest sum of all features over the labellings of each sequence, shape (S,).

        Raises
        ------
        ValueError
            If a feature is negative somewhere, or scores have a part that is not learned.
        """
        self._prepared.model.check_counts(self.data)
        totals = np.zeros(len(self.data))

        def work(
            scores: Potentials, tokens: slice, out: Counts, prepared: Any, index: int
        ) -> float:
            found = self.structure.argmax(scores)[1]
            totals[scores.first : scores.first + len(found)] = found
            out.unary[...] = 0.0
            return 0.0

        self._pull_back(np.ones(self.n_parameters), work)
        return totals

    @property
    def has_sequence_weights(self) -> bool:
        """Whether all tokens of a sequence have the same weight, for each sequence."""
        return self._level is not None

    @cached_property
    def _level(self) -> FloatArray | None:
        """The weight of each sequence, shape (S,); None where tokens of one differ."""
        return Weights.of(self.weight, self.data.offsets).sequences

    def gap(self, record: IterationRecord) -> float:
        """Return how much a value is above the optimum at most; NaN where that is not known.

        From the record of an iteration: its gap, or with an L2 penalty and a smooth and convex
        loss ``|g|**2 / (4 c2)`` for the (pseudo-)gradient ``g``, by strong convexity.
        """
        if not math.isnan(record.gap):
            return record.gap
        convex = self.loss.is_convex and self.has_sequence_weights
        known = convex and self.loss.is_smooth and self.l2
        return record.gradient_norm**2 / (4.0 * self.penalty.l2) if known else math.nan

    def minibatches(
        self, tokens: int, random_state: int | np.random.RandomState
    ) -> StochasticObjective:
        """Return the same objective as a sum over small batches of sequences.

        Parameters
        ----------
        tokens : int
            About as many tokens has a batch; a sequence is never cut.
        random_state : int or RandomState
            Deals the sequences to the batches.
        """
        return StochasticObjective(
            self.model, self.structure, self.loss, self.penalty, self.data, self.labels,
            self.weight, self.threads, tokens, random_state,
        )  # fmt: skip

    def _pull_back(
        self, w: FloatArray, work: Work, adjoint: _PreparedData | None = None
    ) -> tuple[float, FloatArray]:
        """Return the sum of what `work` returns, and what it writes, pulled back to parameters.

        `adjoint` are other values of the features, for the way back alone.
        """
        bound = self.model.bind(w)
        gradient = np.zeros(self.n_parameters)
        value = 0.0
        ways_back = (adjoint or self._prepared).blocks
        for (chunks, prepared), (_, way_back) in zip(self._prepared.blocks, ways_back, strict=True):
            run = partial(self._chunk, bound, chunks, prepared, work)
            results = self.threads(run, range(len(chunks)))
            value += sum(part for part, _ in results)
            unary = self._prepared.residual[: chunks[-1].tokens.stop - chunks[0].tokens.start]
            pairs = [pair for _, pair in results]
            self._prepared.model.pullback(unary, pairs, way_back, self.threads, gradient)
        return value, gradient

    def _chunk(
        self, bound: Any, chunks: list[Chunk], prepared: Any, work: Work, index: int
    ) -> tuple[float, FloatArray]:
        """Write the gradient to the unary scores of a chunk; return its value and pair gradient."""
        tokens, begin = chunks[index].tokens, chunks[0].tokens.start
        scores = self._prepared.model.prepared_scores(bound, prepared, index, self.threads)
        unary = self._prepared.residual[tokens.start - begin : tokens.stop - begin]
        out = Counts(unary, np.zeros_like(scores.pair))
        return work(scores, tokens, out, prepared, index), out.pair

    def _loss_of_chunk(
        self, scores: Potentials, tokens: slice, out: Counts, prepared: Any, index: int
    ) -> float:
        """Return the loss of a chunk and write its gradient."""
        return self.loss.value_and_grad(
            self.structure, scores, self.targets.take(tokens), self._weights(scores, tokens), out
        )

    def _weights(self, scores: Potentials, tokens: slice) -> Weights:
        """Return the weights of a chunk."""
        if self._level is None:
            return Weights.of(self.weight[tokens], scores.offsets)
        level = self._level[scores.first : scores.first + len(scores.offsets) - 1]
        return Weights(self.weight[tokens], level)


def _squared(data: PackedSequences) -> PackedSequences:
    """Return data with squared values, but those of transitions: the same, where all are 1."""
    if data.values is None and data.dense is None:
        return data
    values = None if data.values is None else data.values**2
    dense = None if data.dense is None else data.dense**2
    return data._from_arrays(**data.__dict__ | {"values": values, "dense": dense})
