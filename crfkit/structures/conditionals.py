"""Scores of the labels of single tokens, all other labels given: of chains and of forests."""

from __future__ import annotations

import numpy as np

from crfkit._types import CodeArray, Counts, FloatArray, IntArray, Potentials
from crfkit.compiler.jit import frozen
from crfkit.kernels.chain.conditionals import add_neighbors, add_to_neighbors
from crfkit.structures.potentials import transposed


def neighbor_scores(potentials: Potentials, source: IntArray, labels: CodeArray) -> FloatArray:
    """Return the scores of the labels of each token, those of its neighbors given, (N, K).

    `source`, shape (N,), is the token that the transition into each one comes from, or -1.
    """
    scores, pair = potentials.unary.copy(), frozen(potentials.pair)
    index = frozen(potentials.transition_index)
    add_neighbors(frozen(source), index, frozen(labels), pair, transposed(pair), scores)
    return scores


def add_to_neighbor_scores(
    potentials: Potentials, source: IntArray, labels: CodeArray, weight: FloatArray, out: Counts
) -> None:
    """Write the weights, shape (N, K), of the scores of labels as weights of their parts."""
    out.unary[...] = weight
    turned, index = np.zeros_like(out.pair), frozen(potentials.transition_index)
    add_to_neighbors(frozen(source), index, frozen(labels), frozen(weight), out.pair, turned)
    out.pair[...] += turned.transpose(0, 2, 1)
