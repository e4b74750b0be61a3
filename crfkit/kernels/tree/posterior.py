"""Beliefs about the labels of rooted forests, and the way back from slopes to scores.

Shapes as in :mod:`crfkit.kernels.tree.sum`. The slopes of a function of the marginals are measures
over the labels of each token, of total mass 0, so that nothing cancels. They move along the edges
by the probabilities of a label given that of a neighbor: up to the roots, then down again. What has
come together at a token is the gradient with respect to its scores.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from crfkit._types import Counts, FloatArray
from crfkit.compiler.jit import kernel, part
from crfkit.kernels.chain.sum import NOTHING, OK, log_sum
from crfkit.kernels.tree.sum import TreeScores, edge


class TreeBeliefs(NamedTuple):
    """Logarithms of what is known of the label of each token."""

    inside: FloatArray  # (N, K) what the subtree below it says, relative to its sum
    message: FloatArray  # (N, K) what that says of the label of the parent
    marginal: FloatArray  # (N, K) what all say


@kernel
def tree_beliefs_log(
    scores: TreeScores,
    s: int,
    row: FloatArray,  # (1, K) workspace
    log_z: FloatArray,  # (S,) out
    out: TreeBeliefs,
) -> int:
    """Sum over the labelings of one forest by logarithms; returns `OK` or a dead position.

    The sums are those of `tree_sum_log`. The logarithms of the marginals are exact where these
    underflow.
    """
    begin, end, size = scores.offsets[s], scores.offsets[s + 1], scores.unary.shape[1]
    inside, message, run = out.inside, out.message, 0.0
    log_z[s] = 0.0
    for t in range(begin, end):
        for k in range(size):
            inside[t, k] = scores.unary[t, k]
    for n in range(end - 1, begin - 1, -1):
        c, p, m = edge(scores, begin, n)
        c, p = begin + c, begin + p if p >= 0 else -1
        norm = log_sum(inside, c)
        if norm == -math.inf:
            dead: int = c
            return dead
        for k in range(size):
            inside[c, k] -= norm
        run += norm
        if n % 128 == 0 or n == begin:  # in runs: long sums lose digits
            log_z[s] += run
            run = 0.0
        for i in range(size if p >= 0 else 0):
            for j in range(size):
                row[0, j] = scores.pair[m, i, j] + inside[c, j]
            message[c, i] = log_sum(row, 0)
            inside[p, i] += message[c, i]
    for n in range(begin, end):
        c, p, m = edge(scores, begin, n)
        _believe(scores, begin + c, begin + p if p >= 0 else -1, m, row, out)
    return OK


@part
def _above(beliefs: TreeBeliefs, c: int, p: int, i: int) -> float:
    """Return what all but the subtree of a child say of a label of its parent."""
    known: float = beliefs.marginal[p, i]
    return known - beliefs.message[c, i] if known > -math.inf else known


@part
def _believe(
    scores: TreeScores, c: int, p: int, m: int, row: FloatArray, beliefs: TreeBeliefs
) -> None:
    """Write the marginals of a token, given those of its parent, relative to their sum."""
    size, marginal = scores.unary.shape[1], beliefs.marginal
    for j in range(size):
        marginal[c, j] = beliefs.inside[c, j]
        if p >= 0:
            for i in range(size):
                row[0, i] = _above(beliefs, c, p, i) + scores.pair[m, i, j]
            marginal[c, j] += log_sum(row, 0)
    norm = log_sum(marginal, c)
    for j in range(size):
        marginal[c, j] -= norm


@kernel
def tree_pull_back_log(
    scores: TreeScores,
    s: int,
    beliefs: TreeBeliefs,
    up: FloatArray,  # (R, K) workspace: what came from each token of the forest to its parent
    out: Counts,  # in: the slopes, as the unary part
) -> None:
    """Move the slopes of one forest along its edges, up and down; they turn into the gradient.

    ``up_c(i) = sum_j a_c(j) P(y_p = i | y_c = j)`` with the sum ``a_c`` of the slopes of the token
    and of all that came up to it; ``down_c(j) = sum_i (a_p(i) - up_c(i)) P(y_c = j | y_p = i)``.
    """
    begin, end, size = scores.offsets[s], scores.offsets[s + 1], scores.unary.shape[1]
    whole, pair = out.unary, out.pair
    for n in range(end - 1, begin - 1, -1):
        c, p, m = edge(scores, begin, n)
        if p < 0:
            continue
        for i in range(size):
            up[c, i] = 0.0
        for j in range(size):
            mass, known = whole[begin + c, j], beliefs.marginal[begin + c, j]
            if mass == 0.0 or known == -math.inf:
                continue
            rest = beliefs.inside[begin + c, j] - known
            for i in range(size):
                share = _above(beliefs, begin + c, begin + p, i) + scores.pair[m, i, j] + rest
                if share > NOTHING:
                    moved = mass * math.exp(share)
                    up[c, i] += moved
                    pair[m, i, j] += moved
        for i in range(size):
            whole[begin + p, i] += up[c, i]
    for n in range(begin, end):
        c, p, m = edge(scores, begin, n)
        for i in range(size if p >= 0 else 0):
            mass, known = whole[begin + p, i] - up[c, i], beliefs.message[begin + c, i]
            if mass == 0.0 or known == -math.inf:
                continue
            for j in range(size):
                share = scores.pair[m, i, j] + beliefs.inside[begin + c, j] - known
                if share > NOTHING:
                    moved = mass * math.exp(share)
                    whole[begin + c, j] += moved
                    pair[m, i, j] += moved
