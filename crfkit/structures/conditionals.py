"""Scores of the labels of single tokens, all other labels given: of chains, forests and graphs."""

from __future__ import annotations

import numpy as np

from crfkit._types import CodeArray, Counts, FloatArray, Potentials
from crfkit.compiler.jit import frozen
from crfkit.kernels.chain.arrays import TransitionRows
from crfkit.kernels.chain.conditionals import add_neighbors, add_to_neighbors
from crfkit.structures.potentials import transposed


def neighbor_scores(potentials: Potentials, rows: TransitionRows, labels: CodeArray) -> FloatArray:
    """Return the scores of the labels of each token, those of its neighbors given, (N, K)."""
    scores, pair = potentials.unary.copy(), frozen(potentials.pair)
    add_neighbors(rows, frozen(labels), pair, transposed(pair), scores)
    return scores


def add_to_neighbor_scores(
    rows: TransitionRows, labels: CodeArray, weight: FloatArray, out: Counts
) -> None:
    """Write the weights, shape (N, K), of the scores of labels as weights of their parts."""
    out.unary[...] = weight
    turned = np.zeros_like(out.pair)
    add_to_neighbors(rows, frozen(labels), frozen(weight), out.pair, turned)
    out.pair[...] += turned.transpose(0, 2, 1)
