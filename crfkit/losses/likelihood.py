"""The negative conditional log-likelihood."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from crfkit._types import CodeArray, Counts, FloatArray, IntArray, Potentials
from crfkit.losses.base import Loss
from crfkit.structures import NoPathError, Structure

DIFFERENT_WEIGHTS = (
    "this solver needs the same weight for all tokens of a sequence: give sample_weight "
    "a number for each sequence, or use solver='lbfgs'."
)


class LogLoss(Loss):
    """``-log P(y | x) = log Z(x) - score(x, y)`` (Lafferty, McCallum and Pereira 2001).

    The gradient with respect to the scores is the expected minus the observed counts.

    With token weights ``w_t`` that differ within a sequence, the loss is the integral over all
    thresholds ``h > 0`` of the negative log-likelihood of the labels with ``w_t >= h``, the other
    labels being summed out:  ``sum_m (h_m - h_{m-1}) (-log P(y_t for all t with w_t >= h_m | x))``
    over the distinct weights ``0 = h_0 < h_1 < ...`` of the sequence. Equal weights multiply the
    loss of the sequence, a token of weight 0 counts as unlabeled, and the loss is never negative.
    A sequence takes one forward-backward pass for each of its distinct weights, and one more;
    where weights differ the loss need not be convex.
    """

    is_convex: ClassVar[bool] = True  # where the tokens of a sequence have one weight
    is_log_likelihood: ClassVar[bool] = True
    has_hessian: ClassVar[bool] = True

    def __init_subclass__(cls, **kwargs: Any) -> None:
        """Let a subclass be another loss, which the dual of this one is no dual of."""
        super().__init_subclass__(**kwargs)
        cls.is_log_likelihood = cls.__dict__.get("is_log_likelihood", False)

    def value_and_grad(
        self,
        structure: Structure,
        scores: Potentials,
        labels: CodeArray,
        weight: FloatArray,
        out: Counts,
    ) -> float:
        """Return the loss of a batch and its gradient, as in :class:`Loss`."""
        shared = shared_weight(weight, scores.offsets)
        if shared is not None:
            return self.of_sequences(structure, scores, labels, shared, out)
        levels = _levels(weight, scores.offsets)
        top = levels[:, -1].copy()
        value = float(np.sum(top * structure.log_partition(scores, top, out)))
        for before, level in zip(levels.T[:-1], levels.T[1:], strict=True):
            value += _fixed_part(structure, scores, labels, weight, before, level, out)
        return value

    def of_sequences(
        self,
        structure: Structure,
        scores: Potentials,
        labels: CodeArray,
        weight: FloatArray,
        out: Counts,
    ) -> float:
        """Return the loss and its gradient where each sequence has one weight, shape (S,)."""
        log_z = structure.log_partition(scores, weight, out)
        structure.add_counts(scores, labels, -weight, out)
        gold = structure.score(scores, labels)
        _raise_if_forbidden(gold, log_z, scores)
        return float(np.sum(weight * (log_z - gold)))

    def hessian_product(
        self,
        structure: Structure,
        scores: Potentials,
        tangent: Potentials,
        labels: CodeArray,
        weight: FloatArray,
        out: Counts,
    ) -> None:
        """Write the product of the Hessian with a direction of the scores, as a gradient to them.

        Parameters
        ----------
        structure : Structure
            With products with the Hessian of log Z.
        scores, tangent : Potentials
            Where, and the direction.
        labels : ndarray of shape (N,)
            The true labels, which the Hessian does not depend on.
        weight : ndarray of shape (N,)
            Token weights, the same within a sequence.
        out : Counts
            As in ``value_and_grad``.

        Raises
        ------
        ValueError
            If the weights of the tokens of a sequence differ, or the structure has no products
            with the Hessian.
        """
        structure.hessian_product(scores, tangent, sequence_weight(weight, scores.offsets), out)

    def hessian_diagonal(
        self,
        structure: Structure,
        scores: Potentials,
        labels: CodeArray,
        weight: FloatArray,
        out: Counts,
    ) -> None:
        """Write an estimate of the diagonal of the Hessian with respect to the scores.

        The variance of each label, ``P (1 - P)``, and the expected number of each step, which
        bounds its variance if steps are taken one by one. All tokens of a sequence count by the
        largest of their weights.
        """
        level = _levels(weight, scores.offsets)[:, -1].copy()
        structure.log_partition(scores, level, out)
        of_token = np.repeat(level, np.diff(scores.offsets))[:, None]
        share = np.zeros_like(out.unary)
        np.divide(out.unary, of_token, out=share, where=of_token > 0.0)
        out.unary[...] *= 1.0 - share


def shared_weight(weight: FloatArray, offsets: IntArray) -> FloatArray | None:
    """Return the weight of each sequence, shape (S,), or None where tokens of one differ."""
    level = np.append(weight, 0.0)[offsets[:-1]]
    return level if np.array_equal(np.repeat(level, np.diff(offsets)), weight) else None


def sequence_weight(weight: FloatArray, offsets: IntArray) -> FloatArray:
    """Return the weight of each sequence, shape (S,), where its tokens share it."""
    level = shared_weight(weight, offsets)
    if level is None:
        raise ValueError(DIFFERENT_WEIGHTS)
    return level


def _fixed_part(
    structure: Structure,
    scores: Potentials,
    labels: CodeArray,
    weight: FloatArray,
    before: FloatArray,
    level: FloatArray,
    out: Counts,
) -> float:
    """Subtract the sums over paths through the labels that reach a level; returns their value.

    Only sequences that have the level, ``level > before``, are summed.
    """
    chosen = np.flatnonzero(level > before)
    lengths = np.diff(scores.offsets)
    tokens = np.flatnonzero(np.repeat(level > before, lengths))
    clamped = _clamp(scores, labels, weight, level)
    part_scores = clamped.take(chosen)
    part = structure.zeros(part_scores)
    factor = (before - level)[chosen]
    try:
        log_z = structure.log_partition(part_scores, factor, part)
    except NoPathError as error:
        raise _forbidden(scores.first + int(chosen[error.sequence])) from error
    out.unary[tokens] += part.unary
    out.pair[...] += part.pair
    return float(np.sum(factor * log_z))


def _levels(weight: FloatArray, offsets: IntArray) -> FloatArray:
    """Return 0 and the distinct weights of each sequence, rising, the last one repeated."""
    shared = shared_weight(weight, offsets)
    if shared is not None:
        return np.column_stack([np.zeros_like(shared), shared])
    bounds = zip(offsets[:-1], offsets[1:], strict=True)
    distinct = [np.unique(np.append(weight[b:e], 0.0)) for b, e in bounds]
    width = max(len(row) for row in distinct)
    return np.array([np.pad(row, (0, width - len(row)), mode="edge") for row in distinct])


def _clamp(
    scores: Potentials, labels: CodeArray, weight: FloatArray, level: FloatArray
) -> Potentials:
    """Return potentials that forbid all but the true label where a weight reaches the level."""
    fixed = np.flatnonzero(weight >= np.repeat(level, np.diff(scores.offsets)))
    allowed = np.ones((len(labels), scores.n_codes), bool)
    allowed[fixed] = False
    allowed[fixed, labels[fixed]] = True
    return scores.clamp(allowed)


def _raise_if_forbidden(gold: FloatArray, log_z: FloatArray, scores: Potentials) -> None:
    """Raise where the labels alone are impossible; an overflow of all scores is no such case."""
    impossible = np.isneginf(gold) & np.isfinite(log_z)
    if impossible.any():
        raise _forbidden(scores.first + int(np.argmax(impossible)))


def _forbidden(sequence: int) -> ValueError:
    return ValueError(
        f"sequence {sequence}: its labels have the score -inf: they use a forbidden label or step. "
        "Allow it, or correct the labels."
    )
