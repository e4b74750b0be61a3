"""The best labellings of a chain."""

from __future__ import annotations

import numpy as np

from crfkit._types import CodeArray, Potentials
from crfkit.compiler.jit import frozen
from crfkit.kernels.chain.k_best import chain_n_best


def n_best(scores: Potentials, count: int) -> CodeArray:
    """Return the labellings of the largest scores of one sequence.

    The list Viterbi algorithm (Seshadri and Sundberg 1994). Of equal scores, the lowest labels
    come first, from the last token on.

    Parameters
    ----------
    scores : Potentials
        Of one sequence of T tokens.
    count : int
        How many, at most: there may be fewer of a finite score.

    Returns
    -------
    ndarray of shape (n, T)
        Label codes, the best labelling first.
    """
    (length, size), count = scores.unary.shape, int(count)
    shape, value = (length, size, count), np.empty(count)
    labels = np.empty((count, length), np.int32)
    if not length:
        return labels[:1]
    chain_n_best(
        frozen(scores.unary), frozen(scores.pair), frozen(scores.transition_index), np.empty(shape),
        np.empty(shape, np.int64), np.empty(count, np.int64), value, labels,
    )  # fmt: skip
    found: CodeArray = labels[value > -np.inf]
    return found
