"""The negative conditional log-likelihood."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from crfkit._types import Counts, FloatArray, IntArray, Potentials
from crfkit.data.targets import Targets, Weights
from crfkit.losses.base import Loss
from crfkit.structures import NoPathError, Structure


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

    Where tokens may have several labels (``Targets.allowed``), it is minus the logarithm of the
    probability of all labelings that are allowed, ``log Z(x) - log Z(x, allowed)``: not convex.

    Where tokens have shares of labels (``Targets.soft``), it is the expectation of the negative
    log-likelihood, the labels being independent draws: ``log Z(x) - E score(x, y)``. All tokens of
    a sequence must have one weight then.
    """

    is_convex: ClassVar[bool] = True  # where the tokens of a sequence have one weight
    needs_log_z: ClassVar[bool] = True
    is_log_likelihood: ClassVar[bool] = True
    takes_soft: ClassVar[bool] = True
    has_hessian: ClassVar[bool] = True

    def value_and_grad(
        self,
        structure: Structure,
        potentials: Potentials,
        targets: Targets,
        weights: Weights,
        out: Counts,
    ) -> float:
        """Return the loss of a batch and its gradient, as in :class:`Loss`."""
        if targets.soft is not None:
            return _expected_loss(structure, potentials, targets.soft, weights, out)
        if targets.allowed is None and weights.sequences is not None:
            log_z = structure.log_partition(potentials, weights.sequences, out)
            structure.add_counts(potentials, targets.states, -weights.sequences, out)
            gold = structure.score(potentials, targets.states)
            raise_if_forbidden(gold, log_z, potentials)
            return float(np.sum(weights.sequences * (log_z - gold)))
        levels = _levels(weights, potentials.offsets)
        top = levels[:, -1].copy()
        value = float(np.sum(top * structure.log_partition(potentials, top, out)))
        allowed = targets.mask(potentials.n_codes)
        for before, level in zip(levels.T[:-1], levels.T[1:], strict=True):
            reached = weights.tokens >= np.repeat(level, np.diff(potentials.offsets))
            clamped = potentials.clamp(allowed | ~reached[:, None])
            value += _clamped_part(structure, clamped, before, level, out)
        return value

    def hessian_product(
        self,
        structure: Structure,
        potentials: Potentials,
        tangent: Potentials,
        targets: Targets,
        weights: Weights,
        out: Counts,
    ) -> None:
        """Write the product of the Hessian with a direction of the scores, as a gradient to them.

        ValueError if weights differ within a sequence, or the structure has no such products.
        """
        weight = weights.shared
        structure.hessian_product(potentials, tangent, weight, out)
        if targets.allowed is not None:
            part, clamped = structure.zeros(potentials), potentials.clamp(targets.allowed)
            structure.hessian_product(clamped, tangent, -weight, part)
            for whole, of_clamped in zip(out, part, strict=True):
                whole += of_clamped

    def hessian_diagonal(
        self,
        structure: Structure,
        potentials: Potentials,
        targets: Targets,
        weights: Weights,
        out: Counts,
    ) -> None:
        """Write an estimate of the diagonal of the Hessian with respect to the scores.

        The variance of each label, ``P (1 - P)``, and the expected number of each transition,
        a bound of it. All tokens of a sequence count by the largest of their weights.
        """
        level = _levels(weights, potentials.offsets)[:, -1].copy()
        structure.log_partition(potentials, level, out)
        of_token = np.repeat(level, np.diff(potentials.offsets))[:, None]
        share = np.zeros_like(out.unary)
        np.divide(out.unary, of_token, out=share, where=of_token > 0.0)
        out.unary[...] *= 1.0 - share


def _expected_loss(
    structure: Structure, potentials: Potentials, shares: FloatArray, weights: Weights, out: Counts
) -> float:
    """Return the loss that is expected of independent labels, and write its gradient."""
    weight = weights.sequences
    if weight is None:
        raise ValueError(
            "labels that are given as distributions need the same weight for all tokens of a "
            "sequence: give sample_weight a number for each sequence, or the most probable "
            "labels, y.argmax()."
        )
    log_z = structure.log_partition(potentials, weight, out)
    structure.add_expected_counts(potentials, shares, -weight, out)
    gold = structure.expected_score(potentials, shares)
    raise_if_forbidden(gold, log_z, potentials)
    return float(np.sum(weight * (log_z - gold)))


def _clamped_part(
    structure: Structure, clamped: Potentials, before: FloatArray, level: FloatArray, out: Counts
) -> float:
    """Subtract sums over the labelings that are left, where ``level > before``; returns them."""
    chosen = np.flatnonzero(level > before)
    some, factor = clamped.take(chosen), (before - level)[chosen]
    part = structure.zeros(some)
    try:
        log_z = structure.log_partition(some, factor, part)
    except NoPathError as error:
        raise _forbidden(clamped.first + int(chosen[error.sequence])) from error
    out.unary[np.repeat(level > before, np.diff(clamped.offsets))] += part.unary
    out.pair[...] += part.pair
    return float(np.sum(factor * log_z))


def _levels(weights: Weights, offsets: IntArray) -> FloatArray:
    """Return 0 and the distinct weights of each sequence, rising, the last one repeated."""
    if weights.sequences is not None:
        return np.column_stack([np.zeros_like(weights.sequences), weights.sequences])
    bounds = zip(offsets[:-1], offsets[1:], strict=True)
    distinct = [np.unique(np.append(weights.tokens[b:e], 0.0)) for b, e in bounds]
    width = max(len(row) for row in distinct)
    return np.array([np.pad(row, (0, width - len(row)), mode="edge") for row in distinct])


def raise_if_forbidden(gold: FloatArray, log_z: FloatArray, potentials: Potentials) -> None:
    """Raise where the labels alone are impossible; an overflow of all scores is no such case."""
    impossible = np.isneginf(gold) & np.isfinite(log_z)
    if impossible.any():
        raise _forbidden(potentials.first + int(np.argmax(impossible)))


def forbidden_labels(potentials: Potentials, token: int) -> ValueError:
    """Return the error that the label of a token has the score ``-inf``, whatever the others."""
    sequence = int(np.searchsorted(potentials.offsets, token, side="right")) - 1
    return _forbidden(potentials.first + sequence)


def _forbidden(sequence: int) -> ValueError:
    return ValueError(
        f"sequence {sequence}: its labels have the score -inf: they use a forbidden label or step. "
        "Allow it, or correct the labels."
    )
