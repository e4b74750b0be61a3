"""Sums over the labelings of rooted forests: from the leaves to the roots and back.

Shapes as in :mod:`crfkit.kernels.tree.arrays`. Without recursion: a depth of 100,000 is a loop.
"""

from __future__ import annotations

import math

from crfkit._types import FloatArray
from crfkit.compiler.jit import kernel, part
from crfkit.compiler.simd import WIDTH
from crfkit.kernels._strips import strips_outer, strips_product
from crfkit.kernels.chain.arrays import ChainExponentials, ChainSums
from crfkit.kernels.chain.sum import OK, TINY, UNDERFLOW
from crfkit.kernels.tree.arrays import TreeScores, TreeWorkspace


@part
def _product(
    source: FloatArray, row: int, tables: FloatArray, m: int, out: FloatArray, to: int
) -> None:
    """``out[to, j] = sum_i source[row, i] tables[m, i, j]``."""
    size = tables.shape[2]
    if size >= WIDTH:
        strips_product(source, row, tables, m, out, to)
        return
    for j in range(size):
        total = 0.0
        for i in range(size):
            total += source[row, i] * tables[m, i, j]
        out[to, j] = total


@part
def _is_forbidden(scores: TreeScores, work: TreeWorkspace, c: int, m: int, i: int) -> bool:
    """Whether no allowed transition leads from label `i` to a possible one of the child `c`."""
    for j in range(scores.unary.shape[1]):
        if work.inside[c, j] > 0.0 and scores.pair[m, i, j] > -math.inf:
            return False
    return True


@part
def _scale(inside: FloatArray, row: int) -> float:
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
def _send(
    scores: TreeScores, exponentials: ChainExponentials, work: TreeWorkspace, c: int, p: int, m: int
) -> bool:
    """Multiply the row of a parent with the message of a child; whether it can be trusted.

    ``message_c(i) = sum_j factor(i, j) inside_c(j)``, ``inside_p(i) *= message_c(i)``: a product
    that is tiny and not 0 is not.
    """
    _product(work.inside, c, exponentials.transposed, m, work.message, c)
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
def _inside(
    scores: TreeScores,
    exponentials: ChainExponentials,
    begin: int,
    end: int,
    work: TreeWorkspace,
) -> tuple[int, float]:
    """Sum the subtrees from the leaves to the roots; returns the status and log Z.

    ``inside_t(k) = node_t(k) prod_c message_c(k)`` over the children ``c`` of ``t``, scaled to the
    sum 1 after each product, so that the number of children does not matter.
    """
    stride = 0 if scores.transition_index.shape[0] == 1 else 1
    log_z = 0.0
    for t in range(begin, end):
        for k in range(work.inside.shape[1]):
            work.inside[t - begin, k] = exponentials.node[t, k]
            if exponentials.node[t, k] < TINY and scores.unary[t, k] > -math.inf:
                return UNDERFLOW, 0.0
        log_z += exponentials.shift[t]
    for n in range(end - 1, begin - 1, -1):
        c = scores.order[n]
        total = _scale(work.inside, c)
        if not total > 0.0:
            return begin + c, 0.0
        log_z += math.log(total)
        p, m = scores.parent[begin + c], scores.transition_index[(begin + c) * stride]
        if p >= 0:
            if not _send(scores, exponentials, work, c, p, m):
                return UNDERFLOW, 0.0
            total = _scale(work.inside, p)
            if not total > 0.0:
                return begin + p, 0.0
            log_z += math.log(total) + exponentials.pair_shift[m]
    return OK, log_z


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
    """Write the marginals from the roots to the leaves.

    With ``ratio(i) = P(y_p = i) / message_c(i)`` the expected transition is ``ratio(i) factor(i, j)
    inside_c(j)``, and the marginal of the child its sum over ``i``.
    """
    size = work.inside.shape[1]
    stride = 0 if scores.transition_index.shape[0] == 1 else 1
    for n in range(begin, end):
        c = scores.order[n]
        p, m = scores.parent[begin + c], scores.transition_index[(begin + c) * stride]
        if p < 0:
            for k in range(size):
                out.marginals[begin + c, k] = weight * work.inside[c, k]
                work.message[c, k] = 0.0
            continue
        for i in range(size):
            known = out.marginals[begin + p, i]
            work.message[c, i] = known / work.message[c, i] if known != 0.0 else 0.0
        _product(work.message, c, exponentials.factor, m, work.row, 0)
        for j in range(size):
            out.marginals[begin + c, j] = work.row[0, j] * work.inside[c, j]
    if stride == 0:
        _add_flow(work, 0, end - begin, scores.transition_index[0], out.flow)
    else:
        for t in range(begin, end):
            if scores.parent[t] >= 0:
                _add_flow(work, t - begin, t - begin + 1, scores.transition_index[t], out.flow)


@part
def _add_flow(work: TreeWorkspace, begin: int, end: int, m: int, flow: FloatArray) -> None:
    """``flow(i, j) += ratio_t(i) inside_t(j)`` over the rows ``begin:end``; roots have no ratio."""
    size = flow.shape[2]
    if size >= WIDTH:
        strips_outer(work.message, 0, work.inside, begin, end, flow, m, 0, size)
        return
    for t in range(begin, end):
        for i in range(size):
            for j in range(size):
                flow[m, i, j] += work.message[t, i] * work.inside[t, j]


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
def sum_forest(
    scores: TreeScores,
    exponentials: ChainExponentials,
    s: int,
    weight: float,
    work: TreeWorkspace,
    out: ChainSums,
) -> int:
    """Sum over the labelings of one forest in linear form; returns its status."""
    begin, end = scores.offsets[s], scores.offsets[s + 1]
    status, out.log_z[s] = _inside(scores, exponentials, begin, end, work)
    if status == OK:
        _outside(scores, exponentials, begin, end, weight, work, out)
    return status


@kernel
def tree_sum_log(
    scores: TreeScores,
    s: int,
    weight: float,
    work: TreeWorkspace,
    out: ChainSums,
) -> int:
    """Sum over the labelings of one forest in logarithms; returns `OK` or a dead position.

    ``inside_t(k) = unary_t(k) + sum_c message_c(k)``, ``message_c(i) = log sum_j exp(pair(i, j) +
    inside_c(j))``; then ``P(y_c = j) = sum_i P(y_p = i) P(y_c = j | y_p = i)``.
    """
    begin, end = scores.offsets[s], scores.offsets[s + 1]
    status = _inside_log(scores, begin, end, work)
    if status != OK:
        return status
    stride = 0 if scores.transition_index.shape[0] == 1 else 1
    size = scores.unary.shape[1]
    log_z = 0.0
    for n in range(begin, end):
        c = scores.order[n]
        p, m = scores.parent[begin + c], scores.transition_index[(begin + c) * stride]
        for j in range(size):
            out.marginals[begin + c, j] = 0.0
        if p < 0:
            top = log_sum(work.inside, c)
            log_z += top
            for j in range(size):
                out.marginals[begin + c, j] = weight * math.exp(work.inside[c, j] - top)
            continue
        for i in range(size):
            above = out.marginals[begin + p, i]
            if above != 0.0:
                for j in range(size):
                    below = scores.pair[m, i, j] + work.inside[c, j]
                    expected = above * math.exp(below - work.message[c, i])
                    out.marginals[begin + c, j] += expected
                    out.flow[m, i, j] += expected
    out.log_z[s] = log_z
    return OK


@part
def log_sum(values: FloatArray, row: int) -> float:
    """``log sum_k exp(values[row, k])``."""
    top = -math.inf
    for k in range(values.shape[1]):
        top = max(top, values[row, k])
    if top == -math.inf:
        return top
    total = 0.0
    for k in range(values.shape[1]):
        total += math.exp(values[row, k] - top)
    return top + math.log(total)


@kernel
def _inside_log(scores: TreeScores, begin: int, end: int, work: TreeWorkspace) -> int:
    """Sum the subtrees in logarithms; returns `OK` or a position below which nothing is left."""
    size = scores.unary.shape[1]
    stride = 0 if scores.transition_index.shape[0] == 1 else 1
    for t in range(begin, end):
        for k in range(size):
            work.inside[t - begin, k] = scores.unary[t, k]
    for n in range(end - 1, begin - 1, -1):
        c = scores.order[n]
        p, m = scores.parent[begin + c], scores.transition_index[(begin + c) * stride]
        if log_sum(work.inside, c) == -math.inf:
            dead: int = begin + c
            return dead
        if p >= 0:
            for i in range(size):
                for j in range(size):
                    work.row[0, j] = scores.pair[m, i, j] + work.inside[c, j]
                work.message[c, i] = log_sum(work.row, 0)
                work.inside[p, i] += work.message[c, i]
    return OK
