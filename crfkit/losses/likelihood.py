"""The negative conditional log-likelihood."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from crfkit._types import CodeArray, Expectations, FloatArray, IntArray, Scores
from crfkit.structures import NoPathError, Structure


class LogLoss:
    """``-log P(y | x) = log Z(x) - score(x, y)`` (Lafferty, McCallum and Pereira 2001).

    The gradient with respect to the scores is the expected minus the observed counts.

    With token weights ``w_t`` that differ within a sequence, the loss is the integral over all
    thresholds ``h > 0`` of the negative log-likelihood of the labels with ``w_t >= h``, the other
    labels being summed out:  ``sum_m (h_m - h_{m-1}) (-log P(y_t for all t with w_t >= h_m | x))``
    over the distinct weights ``0 = h_0 < h_1 < ...`` of the sequence. Equal weights multiply the
    loss of the sequence, a token of weight 0 counts as unlabeled, and the loss is never negative.
    It takes one forward-backward pass for each distinct weight in a sequence, and one more; where
    weights differ it need not be convex.
    """

    requires: ClassVar[tuple[str, ...]] = ("sum", "score", "add_path")

    def value_and_grad(
        self,
        structure: Structure,
        scores: Scores,
        labels: CodeArray,
        weight: FloatArray,
        out: Expectations,
    ) -> float:
        """Return the loss of a batch and its gradient, as in :class:`Loss`."""
        levels = _levels(weight, scores.offsets)
        top = levels[:, -1].copy()
        log_z = structure.sum(scores, top, out)
        if np.array_equal(np.repeat(top, np.diff(scores.offsets)), weight):
            structure.add_path(scores, labels, -top, out)
            gold = structure.score(scores, labels)
            _raise_if_forbidden(gold, scores)
            return float(np.sum(top * (log_z - gold)))
        value = float(np.sum(top * log_z))
        part = structure.empty(scores)
        for before, level in zip(levels.T[:-1], levels.T[1:], strict=True):
            clamped = _clamp(scores, labels, weight, level)
            part.pair.fill(0.0)
            try:
                log_z = structure.sum(clamped, before - level, part)
            except NoPathError as error:
                raise _forbidden(error.sequence) from error
            value += float(np.sum((before - level) * log_z))
            out.unary[...] += part.unary
            out.pair[...] += part.pair
        return value


def _levels(weight: FloatArray, offsets: IntArray) -> FloatArray:
    """Return 0 and the distinct weights of each sequence, rising, the last one repeated."""
    ends = np.append(weight, 0.0)[offsets[:-1]]
    if np.array_equal(np.repeat(ends, np.diff(offsets)), weight):
        return np.column_stack([np.zeros_like(ends), ends])
    bounds = zip(offsets[:-1], offsets[1:], strict=True)
    distinct = [np.unique(np.append(weight[b:e], 0.0)) for b, e in bounds]
    width = max(len(row) for row in distinct)
    return np.array([np.pad(row, (0, width - len(row)), mode="edge") for row in distinct])


def _clamp(scores: Scores, labels: CodeArray, weight: FloatArray, level: FloatArray) -> Scores:
    """Forbid all but the true label at the tokens whose weight reaches the level."""
    fixed = np.flatnonzero(weight >= np.repeat(level, np.diff(scores.offsets)))
    unary = scores.unary.copy()
    unary[fixed] = -np.inf
    unary[fixed, labels[fixed]] = scores.unary[fixed, labels[fixed]]
    return scores._replace(unary=unary)


def _raise_if_forbidden(gold: FloatArray, scores: Scores) -> None:
    if not np.isfinite(gold).all():
        raise _forbidden(scores.first + int(np.argmin(np.isfinite(gold))))


def _forbidden(sequence: int) -> ValueError:
    return ValueError(
        f"sequence {sequence}: its labels have the score -inf: they use a forbidden label or step. "
        "Allow it, or correct the labels."
    )
