"""Scores that leave a token only some codes: what is known of a segmentation."""

from __future__ import annotations

import numpy as np

from crfkit._types import CodeArray, FloatArray, Scores
from crfkit.structures import NoPathError, Structure

# Instead of a code: any; any that begins a segment; and `EITHER - k`, one of the label k.
ANY, BEGINS, EITHER = -1, -2, -3


def with_fixed(scores: Scores, fixed: CodeArray) -> Scores:
    """Return scores that forbid all codes but the fixed ones, shape (N,)."""
    if (fixed == ANY).all():
        return scores
    unary, size = scores.unary.copy(), scores.n_codes
    known = np.flatnonzero((fixed >= 0) | (fixed <= EITHER))
    labels = np.where(fixed >= 0, fixed, EITHER - fixed)[known]
    unary[known, :size] = -np.inf
    unary[known, labels] = scores.unary[known, labels]
    either = fixed[known] <= EITHER
    begins = known[either], labels[either] + size // 2
    unary[begins] = scores.unary[begins]
    unary[fixed == BEGINS, : size // 2] = -np.inf
    return scores._replace(unary=unary)


def log_shares(structure: Structure, scores: Scores, fixed: CodeArray) -> FloatArray:
    """Return the log-probability of what the fixed codes leave of each sequence, shape (S,).

    Raises
    ------
    NoPathError
        If a sequence has no segmentation at all.
    """
    whole, weight = structure.empty(scores), np.ones(len(scores.offsets) - 1)
    log_z, impossible = structure.sum(scores, weight, whole), list[int]()
    fixed = fixed.copy()
    while True:
        clamped = with_fixed(scores, fixed)
        try:
            shares: FloatArray = structure.sum(clamped, weight, structure.empty(clamped)) - log_z
        except NoPathError as error:
            s = error.sequence - scores.first
            fixed[scores.offsets[s] : scores.offsets[s + 1]] = ANY
            impossible.append(s)
        else:
            shares[impossible] = -np.inf
            return shares
