"""The objective: score model x structure x loss x penalty, over threads."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from crfkit._parallel import ThreadMap
from crfkit._types import Chunk, CodeArray, Expectations, FloatArray
from crfkit.data import PackedSequences
from crfkit.data.chunks import make_blocks, make_chunks
from crfkit.losses import Loss
from crfkit.penalties import ElasticNet
from crfkit.scores import ScoreModel
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
        How often :meth:`value_and_grad` was called.
    """

    def __init__(
        self,
        model: ScoreModel,
        structure: Structure,
        loss: Loss,
        penalty: ElasticNet,
        data: PackedSequences,
        labels: CodeArray,
        weight: FloatArray,
        threads: ThreadMap,
    ) -> None:
        missing = [name for name in loss.requires if not hasattr(structure, name)]
        if missing:
            raise ValueError(
                f"loss {type(loss).__name__} needs a structure with {missing[0]!r}, which "
                f"{type(structure).__name__} does not have."
            )
        self.model, self.structure, self.loss, self.penalty = model, structure, loss, penalty
        self.data, self.labels, self.weight, self.threads = data, labels, weight, threads
        chunks = make_chunks(data.offsets, model.chunk_tokens)
        blocks = make_blocks(chunks, [model.cells(data, chunk) for chunk in chunks])
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
            run = partial(self._chunk, bound, chunks, prepared)
            results = self.threads(run, range(len(chunks)))
            value += sum(loss for loss, _ in results)
            unary = self._residual[: chunks[-1].tokens.stop - chunks[0].tokens.start]
            pairs = [pair for _, pair in results]
            self.model.pullback(unary, pairs, prepared, self.threads, gradient)
        self.penalty.add_smooth_gradient(w, gradient)
        return value + self.penalty.smooth_value(w), gradient

    def _chunk(
        self, bound: Any, chunks: list[Chunk], prepared: Any, index: int
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
