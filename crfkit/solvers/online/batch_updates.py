"""Online learning with one step for a whole pass, and the loss it is the gradient of."""

from __future__ import annotations

from typing import Any

import numpy as np

from crfkit._types import Counts, FloatArray, IntArray, Potentials
from crfkit.data.labels import Targets, Weights
from crfkit.losses import Loss
from crfkit.objective.penalties import ElasticNet
from crfkit.oracles.label_order import LabelOrder
from crfkit.solvers.online.learner import InfiniteScoresError, OnlineProblem
from crfkit.structures import Structure


class MistakeLoss(Loss):
    """The share of wrong labels of the best labelling, with the step of the perceptron.

    What it writes as its gradient is the features of the predicted minus those of the true labels.

    Parameters
    ----------
    cost : Cost, optional
        Added to the scores of labels when they are predicted: an additive one.
    order : LabelOrder, optional
        Which label is predicted of some that score the same.

    Attributes
    ----------
    mistakes : list of int
        How many sequences of each batch had a wrong label.
    """

    def __init__(self, cost: Any = None, order: LabelOrder | None = None) -> None:
        self.cost, self.order = cost, order
        self.mistakes: list[int] = []

    def value_and_grad(
        self,
        structure: Structure,
        potentials: Potentials,
        targets: Targets,
        weights: Weights,
        out: Counts,
    ) -> float:
        """Return the loss of a batch, as in :class:`crfkit.losses.Loss`."""
        level, labels = weights.shared, targets.labels
        seen = scores = potentials
        if self.cost is not None:
            seen = scores.plus_unary(self.cost.added(labels))
        order = self.order or LabelOrder.by_code(scores.n_codes)
        path = order.predict(lambda ordered: structure.argmax(ordered)[0], seen)
        lengths = np.diff(scores.offsets)
        out.unary[...] = 0.0
        structure.add_counts(scores, path, level, out)
        structure.add_counts(scores, labels, -level, out)
        before = np.concatenate([[0], np.cumsum(path != labels)])
        wrong: IntArray = np.diff(before[scores.offsets]).astype(np.int64)
        self.mistakes.append(int(np.count_nonzero(wrong[level > 0.0])))
        return float(np.sum(level * wrong / np.maximum(lengths, 1)))


class BatchLearner:
    """Passes at fixed weights, after each of which the mean of all steps is made.

    The sequences are looked at over threads.

    Parameters
    ----------
    problem : OnlineProblem
        With a rule that has a rate.
    start : ndarray of shape (P,)
        First parameters; not changed.
    """

    def __init__(self, problem: OnlineProblem, start: FloatArray) -> None:
        self.problem, self._w = problem, start.copy()
        self._size = float(problem.weight.sum()) or 1.0

    def run(self, order: IntArray) -> tuple[float, int]:
        """Look at all sequences, in any order; return the sum of their losses and the mistakes."""
        loss = MistakeLoss(self.problem.cost, self.problem.order)
        objective = self.problem.objective.with_loss(loss).with_penalty(ElasticNet(0.0, 0.0))
        value, gradient = objective.value_and_grad(self._w)
        self._w = self._w - (self.problem.update.rate / self._size) * gradient
        if not np.isfinite(self._w).all():
            raise InfiniteScoresError
        return float(value), sum(loss.mistakes)

    def weights(self) -> FloatArray:
        """Return the weights, shape (P,)."""
        return self._w.copy()
