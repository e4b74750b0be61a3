"""The objective: score model x structure x loss x penalty, over threads."""

from __future__ import annotations

from functools import partial

import numpy as np

from crfkit._parallel import ThreadMap
from crfkit._types import Chunk, CodeArray, Expectations, FloatArray
from crfkit.data import PackedSequences
from crfkit.data.chunks import make_blocks, make_chunks
from crfkit.losses import Loss
from crfkit.penalties import ElasticNet
from crfkit.scores import LinearScores
from crfkit.scores.linear import LinearWeights, PreparedBlock
from crfkit.structures import Structure


class Objective:
    """Loss of labeled data plus penalty, as a function of the parameters.

    All a solver sees. The value is a sum over sequences, not a mean.

    Parameters
    ----------
    model : ScoreModel
        From parameters to scores.
    structure : Structure
        Answers questions about scores.
    loss : Loss
        From scores and labels to value and gradient.
    penalty : ElasticNet
        On the parameters.
    data : PackedSequences
        S sequences of N tokens.
    labels : ndarray of shape (N,)
        Label codes.
    weight : ndarray of shape (N,)
        Token weights.
    threads : ThreadMap
        An open pool of threads. Values and gradients are the same to the last bit for any number.

    Attributes
    ----------
    n_parameters : int
        P.
    l1 : float
        Weight of the L1 norm, which is not part of :meth:`value_and_grad`.
    evaluations : int
        How often :meth:`value_and_grad` was called.
    """

    def __init__(
        self,
        model: LinearScores,
        structure: Structure,
        loss: Loss,
        penalty: ElasticNet,
        data: PackedSequences,
        labels: CodeArray,
        weight: FloatArray,
        threads: ThreadMap,
    ) -> None:
        self.model, self.structure, self.loss, self.penalty = model, structure, loss, penalty
        self.data, self.labels, self.weight, self.threads = data, labels, weight, threads
        blocks = make_blocks(make_chunks(data.offsets, model.n_labels), model.n_labels)
        self._blocks = [(block, model.prepare(data, block, threads)) for block in blocks]
        sizes = [block[-1].tokens.stop - block[0].tokens.start for block in blocks]
        self._residual = np.empty((max(sizes, default=0), model.n_labels))
        self.evaluations = 0

    @property
    def n_parameters(self) -> int:
        """Number of parameters P."""
        return self.model.n_parameters

    @property
    def l1(self) -> float:
        """Weight of the L1 norm."""
        return self.penalty.l1

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
        bound = self.model.bind(w)
        gradient = np.zeros(self.n_parameters)
        value = 0.0
        for chunks, prepared in self._blocks:
            begin = chunks[0].tokens.start
            run = partial(self._chunk, bound, chunks, prepared)
            results = self.threads(run, range(len(chunks)))
            value += sum(loss for loss, _ in results)
            pair = sum((pair for _, pair in results[1:]), start=results[0][1])
            unary = self._residual[: chunks[-1].tokens.stop - begin]
            self.model.pullback(Expectations(unary, pair), prepared, self.threads, gradient)
        self.penalty.add_smooth_gradient(w, gradient)
        return value + self.penalty.smooth_value(w), gradient

    def _chunk(
        self, bound: LinearWeights, chunks: list[Chunk], prepared: PreparedBlock, index: int
    ) -> tuple[float, FloatArray]:
        """Write the gradient to the unary scores of a chunk; return its loss and pair gradient."""
        tokens, begin = chunks[index].tokens, chunks[0].tokens.start
        scores = self.model.prepared_scores(bound, prepared, index)
        unary = self._residual[tokens.start - begin : tokens.stop - begin]
        out = Expectations(unary, np.zeros_like(scores.pair))
        loss = self.loss.value_and_grad(
            self.structure, scores, self.labels[tokens], self.weight[tokens], out
        )
        return loss, out.pair

    def l1_value(self, w: FloatArray) -> float:
        """Return the part of the objective that :meth:`value_and_grad` leaves out."""
        return self.penalty.l1_value(w)
