"""Sums over the labelings of rooted forests: from the leaves to the roots and back.

Without recursion: a depth of 100,000 is a loop. Shapes: ``N`` tokens of ``S`` sequences, ``K``
labels, ``M`` tables of pair scores. The groups of arrays that are not said here are those of
:mod:`crfkit.kernels.chain.arrays`.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from crfkit._types import FloatArray, IdArray, IntArray
from crfkit.compiler.jit import kernel, part
from crfkit.kernels._strips import add_outer, product
from crfkit.kernels.chain.arrays import ChainExponentials, ChainSums
from crfkit.kernels.chain.sum import NOTHING, OK, TINY, UNDERFLOW, log_sum


class TreeScores(NamedTuple):
    """Scores of the parts of forests; ``-inf`` forbids a part. Read-only."""

    unary: FloatArray  # (N, K)
    pair: FloatArray  # (M, K, K) each label of a parent (axis 1) with each of a child (axis 2)
    transition_index: IdArray  # (N,) or (1,) the table of the transition into each token
    parent: IntArray  # (N,) the position of the parent within the sequence, -1 for a root
    order: IntArray  # (N,) the positions of each sequence, parents before their children
    offsets: IntArray  # (S + 1,) where the sequences start, and the end


class TreeWorkspace(NamedTuple):
    """Messages of one forest of at most ``R`` tokens."""

    inside: FloatArray  # (R, K) what the subtree below each token says of its label
    message: FloatArray  # (R, K) what it says of the label of the parent
    mean: FloatArray  # (R, K) the mean tangent of the subtree, given its label
    row: FloatArray  # (1, K)


@part
def edge(scores: TreeScores, begin: int, n: int) -> tuple[int, int, int]:
    """Return the n-th token in order, its parent (-1 for a root), and the table between them."""
    c = scores.order[n]
    stride = 0 if scores.transition_index.shape[0] == 1 else 1
    return c, scores.parent[begin + c], scores.transition_index[(begin + c) * stride]


@part
def scale_row(inside: FloatArray, row: int) -> float:
    """Scale a row to the sum 1; returns the sum, or 0 where the row has none."""
    total = 0.0
    for k in range(inside.shape[1]):
        total += inside[row, k]
    if total > 0.0:
        scale = 1.0 / total
        for k in range(inside.shape[1]):
            inside[row, k] *= scale
    return total


@part
def _is_forbidden(scores: TreeScores, work: TreeWorkspace, c: int, m: int, i: int) -> bool:
    """Whether no allowed transition leads from label `i` to a possible one of the child `c`."""
    for j in range(scores.unary.shape[1]):
        if work.inside[c, j] > 0.0 and scores.pair[m, i, j] > -math.inf:
            return False
    return True


@part
def _send(
    scores: TreeScores, exponentials: ChainExponentials, work: TreeWorkspace, c: int, p: int, m: int
) -> bool:
    """Multiply the row of a parent with the message of a child; whether it can be trusted.

    ``message_c(i) = sum_j factor(i, j) inside_c(j)``, ``inside_p(i) *= message_c(i)``: a product
    that is tiny and not 0 is not.
    """
    product(work.inside, c, exponentials.transposed, m, work.message, c)
    for i in range(work.inside.shape[1]):
        if work.inside[p, i] > 0.0:
            if work.message[c, i] < TINY:
                if not _is_forbidden(scores, work, c, m, i):
                    return False
                work.message[c, i] = 0.0
            work.inside[p, i] *= work.message[c, i]
            if work.inside[p, i] < TINY and work.message[c, i] > 0.0:
                return False
    return True


@kernel
def inside_forest(
    scores: TreeScores,
    exponentials: ChainExponentials,
    s: int,
    work: TreeWorkspace,
    log_z: FloatArray,  # (S,) out
) -> int:
    """Sum over the labelings of one forest in linear form, up to the roots; returns its status.

    ``inside_t(k) = node_t(k) prod_c message_c(k)`` over the children ``c`` of ``t``, scaled to the
    sum 1 after each product, so that the number of children does not matter.
    """
    begin, end, whole = scores.offsets[s], scores.offsets[s + 1], 0.0
    for t in range(begin, end):
        for k in range(work.inside.shape[1]):
            work.inside[t - begin, k] = exponentials.node[t, k]
            if exponentials.node[t, k] < TINY and scores.unary[t, k] > -math.inf:
                return UNDERFLOW
        whole += exponentials.shift[t]
    for n in range(end - 1, begin - 1, -1):
        c, p, m = edge(scores, begin, n)
        total = scale_row(work.inside, c)
        if not total > 0.0:
            dead: int = begin + c
            return dead
        whole += math.log(total)
        if p >= 0:
            if not _send(scores, exponentials, work, c, p, m):
                return UNDERFLOW
            total = scale_row(work.inside, p)
            if not total > 0.0:
                dead = begin + p
                return dead
            whole += math.log(total) + exponentials.pair_shift[m]
    log_z[s] = whole
    return OK


@kernel
def sum_forest(
    scores: TreeScores,
    exponentials: ChainExponentials,
    s: int,
    weight: float,
    work: TreeWorkspace,
    out: ChainSums,
) -> int:
    """Sum over the labelings of one forest in linear form; returns its status."""
    status: int = inside_forest(scores, exponentials, s, work, out.log_z)
    if status == OK:
        begin, end = scores.offsets[s], scores.offsets[s + 1]
        _outside(scores, exponentials, begin, end, weight, work, out)
    return status


@kernel
def _outside(
    scores: TreeScores,
    exponentials: ChainExponentials,
    begin: int,
    end: int,
    weight: float,
    work: TreeWorkspace,
    out: ChainSums,
) -> None:
    """Write the marginals from the roots to the leaves; ratios take the place of messages.

    With ``ratio_c(i) = P(y_p = i) / message_c(i)``, 0 for a root, the expected transition is
    ``ratio(i) factor(i, j) inside_c(j)``, and the marginal of the child its sum over ``i``.
    """
    size = work.inside.shape[1]
    for n in range(begin, end):
        c, p, m = edge(scores, begin, n)
        if p < 0:
            for k in range(size):
                out.marginals[begin + c, k] = weight * work.inside[c, k]
                work.message[c, k] = 0.0
            continue
        for i in range(size):
            known = out.marginals[begin + p, i]
            work.message[c, i] = known / work.message[c, i] if known != 0.0 else 0.0
        product(work.message, c, exponentials.factor, m, work.row, 0)
        for j in range(size):
            out.marginals[begin + c, j] = work.row[0, j] * work.inside[c, j]
    index, above, below = scores.transition_index, work.message, work.inside
    if index.shape[0] == 1:
        add_outer(above, 0, below, 0, end - begin, out.flow, index[0])
        return
    for t in range(begin, end):
        if scores.parent[t] >= 0:
            add_outer(above, 0, below, t - begin, t - begin + 1, out.flow, index[t])


@kernel
def tree_sum(
    scores: TreeScores,
    exponentials: ChainExponentials,
    weight: FloatArray,  # (S,)
    work: TreeWorkspace,
    out: ChainSums,
) -> None:
    """Sum over the labelings of each forest: log Z and weighted expected counts.

    Sum-product from the leaves to the roots and back (Pearl 1988, section 4.3), in O(N K^2). The
    status of a forest in which a possible label has a vanishing share is `UNDERFLOW`, and of it
    nothing is written: it is left to :func:`tree_sum_log`.
    """
    for s in range(weight.shape[0]):
        out.status[s] = sum_forest(scores, exponentials, s, weight[s], work, out)


@kernel
def tree_sum_log(
    scores: TreeScores, s: int, weight: float, work: TreeWorkspace, out: ChainSums
) -> int:
    """Sum over the labelings of one forest in logarithms; returns `OK` or a dead position.

    ``inside_t(k) = unary_t(k) + sum_c message_c(k)``, relative to its sum, so that logarithms do
    not grow with the tree; ``message_c(i) = log sum_j exp(pair(i, j) + inside_c(j))``. On the way
    back ``P(y_c = j) = sum_i P(y_p = i) exp(pair(i, j) + inside_c(j) - message_c(i))``.
    """
    begin, end, size = scores.offsets[s], scores.offsets[s + 1], scores.unary.shape[1]
    inside, message, marginals, run = work.inside, work.message, out.marginals, 0.0
    out.log_z[s] = 0.0
    for t in range(begin, end):
        for k in range(size):
            inside[t - begin, k] = scores.unary[t, k]
    for n in range(end - 1, begin - 1, -1):
        c, p, m = edge(scores, begin, n)
        norm = log_sum(inside, c)
        if norm == -math.inf:
            dead: int = begin + c
            return dead
        for k in range(size):
            inside[c, k] -= norm
        run += norm
        if n % 128 == 0 or n == begin:  # in runs: long sums lose digits
            out.log_z[s] += run
            run = 0.0
        for i in range(size if p >= 0 else 0):
            for j in range(size):
                work.row[0, j] = scores.pair[m, i, j] + inside[c, j]
            message[c, i] = log_sum(work.row, 0)
            inside[p, i] += message[c, i]
    for n in range(begin, end):
        c, p, m = edge(scores, begin, n)
        for j in range(size):
            marginals[begin + c, j] = weight * math.exp(inside[c, j]) if p < 0 else 0.0
        for i in range(size if p >= 0 else 0):
            above = marginals[begin + p, i]
            for j in range(size if above != 0.0 else 0):
                share = scores.pair[m, i, j] + inside[c, j] - message[c, i]
                if share > NOTHING:
                    marginals[begin + c, j] += above * math.exp(share)
                    out.flow[m, i, j] += above * math.exp(share)
    return OK
