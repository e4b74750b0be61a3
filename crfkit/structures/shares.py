"""Expected scores and counts of independent labels: of chains, forests and graphs."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from crfkit._types import Counts, FloatArray, Potentials
from crfkit.compiler.jit import frozen
from crfkit.kernels.chain.arrays import TransitionRows
from crfkit.kernels.chain.shares import add_shares, score_shares


def expected_scores(
    potentials: Potentials, score: Callable[[FloatArray, FloatArray, FloatArray], None]
) -> FloatArray:
    """Return what `score` writes, given finite scores, shape (S,); -inf where some are not.

    `score` is linear in the unary and pair scores. What has no share may be forbidden.
    """
    arrays = potentials.arrays()
    unary, pair = arrays
    no_label, no_pair = map(np.isneginf, arrays)
    found, lost = np.empty((2, len(potentials.offsets) - 1))
    if not (no_label.any() or no_pair.any()):
        score(frozen(unary), frozen(pair), found)
        return found
    score(frozen(np.where(no_label, 0.0, unary)), frozen(np.where(no_pair, 0.0, pair)), found)
    score(frozen(no_label.astype(float)), frozen(no_pair.astype(float)), lost)
    found[lost > 0.0] = -np.inf
    return found


def expected_path_scores(
    potentials: Potentials, rows: TransitionRows, shares: FloatArray
) -> FloatArray:
    """Return the expected score of each sequence, shape (S,)."""

    def score(unary: FloatArray, pair: FloatArray, out: FloatArray) -> None:
        score_shares(rows, frozen(potentials.offsets), frozen(shares), unary, pair, out)

    return expected_scores(potentials, score)


def add_expected_paths(
    potentials: Potentials,
    rows: TransitionRows,
    shares: FloatArray,
    weight: FloatArray,
    out: Counts,
) -> None:
    """Add the expected counts of labels and transitions, times the weights of sequences, (S,)."""
    add_share_of_labels(potentials, shares, weight, out)
    add_shares(rows, frozen(shares), frozen(weight), out.pair)


def add_share_of_labels(
    potentials: Potentials, shares: FloatArray, weight: FloatArray, out: Counts
) -> None:
    """Add the shares of labels, times the weights of sequences, (S,), to ``out.unary``."""
    out.unary[...] += np.repeat(weight, np.diff(potentials.offsets))[:, None] * shares
