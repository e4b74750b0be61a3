"""Expected scores and counts of independent labels: of chains and of forests."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from crfkit._types import Counts, FloatArray, IntArray, Potentials
from crfkit.compiler.jit import frozen
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
    potentials: Potentials, source: IntArray, shares: FloatArray
) -> FloatArray:
    """Return the expected score of each sequence, shape (S,).

    `source`, shape (N,), is the token that the transition into each one comes from, or -1.
    """
    parts = frozen(source), frozen(potentials.transition_index), frozen(potentials.offsets)

    def score(unary: FloatArray, pair: FloatArray, out: FloatArray) -> None:
        score_shares(*parts, frozen(shares), unary, pair, out)

    return expected_scores(potentials, score)


def add_expected_paths(
    potentials: Potentials, source: IntArray, shares: FloatArray, weight: FloatArray, out: Counts
) -> None:
    """Add the expected counts of labels and transitions, times the weights of sequences, (S,)."""
    add_share_of_labels(potentials, shares, weight, out)
    add_shares(
        frozen(source), frozen(potentials.transition_index), frozen(potentials.offsets),
        frozen(shares), frozen(weight), out.pair,
    )  # fmt: skip


def add_share_of_labels(
    potentials: Potentials, shares: FloatArray, weight: FloatArray, out: Counts
) -> None:
    """Add the shares of labels, times the weights of sequences, (S,), to ``out.unary``."""
    out.unary[...] += np.repeat(weight, np.diff(potentials.offsets))[:, None] * shares
