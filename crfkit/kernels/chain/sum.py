"""Recurrences on linear chains.

Shapes: ``N`` tokens of ``S`` sequences, ``K`` labels, ``M`` tables of pair scores. The step into
token ``t`` reads the table ``table[t * stride]``: the stride is 0 where `table` has one entry,
because all steps share it, and 1 where it has ``N``.
"""

from __future__ import annotations

import math

from crfkit._types import FloatArray, IdArray, IntArray
from crfkit.compiler.jit import kernel, part
from crfkit.compiler.simd import WIDTH
from crfkit.kernels._strips import (
    strips_outer,
    strips_product,
    strips_shift,
    strips_step_back,
    strips_weigh,
)
from crfkit.kernels.chain._two import two_backward, two_forward

# A forward probability below this is not trusted: the scaled recurrence leaves the sequence to
# the log-domain one. Its inverse, the bound of a backward value, is finite.
TINY = 1e-200

# The exponential of anything below this is 0.
NOTHING = -745.2

# Pairs of sequences of a call in which a probability may vanish before all are summed alone.
MOST_FAILURES = 2

# Status of a sequence; a position >= 0 says that no path gets past it.
OK = -1
UNDERFLOW = -2


@kernel
def chain_shift(
    unary: FloatArray,  # (N, K) scores
    shifted: FloatArray,  # (N, K) out: the scores minus the largest of their row
    shift: FloatArray,  # (N,) out: the largest score of each row
) -> None:
    """``shifted[t, k] = unary[t, k] - max_j unary[t, j]``; a row of ``-inf`` stays one."""
    if unary.shape[1] >= WIDTH:
        strips_shift(unary, shifted, shift)
        return
    for t in range(unary.shape[0]):
        top = -math.inf
        for k in range(unary.shape[1]):
            if unary[t, k] > top:
                top = unary[t, k]
        shift[t] = top
        if top == -math.inf:
            top = 0.0
        for k in range(unary.shape[1]):
            shifted[t, k] = unary[t, k] - top


@kernel
def _reachable(alpha: FloatArray, before: int, unary: FloatArray, pair: FloatArray, m: int, t: int,
               first: bool, label: int) -> bool:  # fmt: skip
    """Whether some allowed step leads from a reachable label at ``t - 1`` to `label` at ``t``."""
    if unary[t, label] == -math.inf:
        return False
    if first:
        return True
    for i in range(alpha.shape[1]):
        if alpha[before, i] > 0.0 and pair[m, i, label] > -math.inf:
            return True
    return False


@kernel
def _forward_status(alpha: FloatArray, row: int, unary: FloatArray, pair: FloatArray, m: int,
                    t: int, first: bool) -> int:  # fmt: skip
    """Tell an underflow from a label that no path reaches, and that from the end of all paths."""
    alive = False
    for j in range(alpha.shape[1]):
        if alpha[row, j] >= TINY:
            alive = True
        elif _reachable(alpha, row - 1, unary, pair, m, t, first, j):
            return UNDERFLOW
    return OK if alive else t


@part
def _product(source: FloatArray, row: int, tables: FloatArray, m: int, out: FloatArray,
             to: int) -> None:  # fmt: skip
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
def _weigh(work: FloatArray, node: FloatArray, t: int, scale: float, alpha: FloatArray,
           row: int) -> tuple[float, float]:  # fmt: skip
    """``alpha(j) = scale node_t(j) work(j)``; returns the sum and the least of it."""
    if node.shape[1] >= WIDTH:
        return strips_weigh(work, node, t, scale, alpha, row)
    total, least = 0.0, 1.0
    for j in range(node.shape[1]):
        value = work[0, j] * scale * node[t, j]
        alpha[row, j] = value
        total += value
        least = min(least, value)
    return total, least


@kernel
def _forward(
    unary: FloatArray,  # (N, K)
    node: FloatArray,  # (N, K) exp(unary - its largest)
    pair: FloatArray,  # (M, K, K)
    factor: FloatArray,  # (M, K, K) exp(pair - its largest)
    table: IdArray,  # (N,) or (1,)
    begin: int,
    low: int,
    high: int,
    work: FloatArray,  # (1, K) workspace
    alpha: FloatArray,  # (R, K) out: the rows from `row` on
    row: int,  # of the first token of the sequence
    norm: FloatArray,  # (N,) out
) -> int:
    """Scaled forward recurrence (Rabiner 1989, section V.A) at some tokens; returns the status.

    Those before `low` of the sequence that starts at `begin` are done.
    ``alpha_t(j) = node_t(j) sum_i alpha_{t-1}(i) factor(i, j) / norm_{t-1}``, ``norm_t = sum_j
    alpha_t(j)``: nothing waits for the division.
    """
    stride = 0 if table.shape[0] == 1 else 1
    for j in range(node.shape[1]):
        work[0, j] = 1.0
    scale = 1.0 / norm[low - 1] if low > begin else 1.0
    for t in range(low, high):
        m, at = table[t * stride], row + t - begin
        if t > begin:
            _product(alpha, at - 1, factor, m, work, 0)
        total, least = _weigh(work, node, t, scale, alpha, at)
        if least < TINY:
            status = _forward_status(alpha, at, unary, pair, m, t, t == begin)
            if status != OK:
                return status
        norm[t] = total
        scale = 1.0 / total
    return OK


@part
def _step_back(node: FloatArray, t: int, scale: float, alpha: FloatArray, row: int,
               beta: FloatArray, message: FloatArray, marginals: FloatArray) -> None:  # fmt: skip
    """``marginals_t(j) = alpha_t(j) beta(j)`` and ``message(j) = scale node_t(j) beta(j)``.

    A label that no path reaches may have an unbounded beta: it must not count.
    """
    if node.shape[1] >= WIDTH:
        strips_step_back(node, t, scale, alpha, row, beta, message, marginals)
        return
    for j in range(node.shape[1]):
        reached = alpha[row, j] > 0.0
        message[row, j] = node[t, j] * scale * beta[0, j] if reached else 0.0
        marginals[t, j] = alpha[row, j] * beta[0, j] if reached else 0.0


@part
def _add_steps(alpha: FloatArray, message: FloatArray, begin: int, end: int, flow: FloatArray,
               m: int) -> None:  # fmt: skip
    """``flow(i, j) += alpha_{t-1}(i) b_t(j)`` over the rows ``begin:end``."""
    size = flow.shape[2]
    if begin >= end:
        return
    if size >= WIDTH:
        strips_outer(alpha, -1, message, begin, end, flow, m, 0, size)
        return
    for t in range(begin, end):
        for i in range(size):
            for j in range(size):
                flow[m, i, j] += alpha[t - 1, i] * message[t, j]


@kernel
def _backward(
    node: FloatArray,  # (N, K) exp(unary - its largest)
    turned: FloatArray,  # (M, K, K) exp(pair - its largest), each transposed
    table: IdArray,  # (N,) or (1,)
    begin: int,
    end: int,
    low: int,
    high: int,
    norm: FloatArray,  # (N,) from the forward recurrence
    weight: float,
    beta: FloatArray,  # (1, K) workspace
    alpha: FloatArray,  # (R, K) from the forward recurrence
    row: int,  # of the first token of the sequence
    message: FloatArray,  # (R, K) out: the rows from `row` on, 0 in the first
    marginals: FloatArray,  # (N, K) out: weighted marginals
) -> None:
    """Scaled backward recurrence at some tokens of the sequence ``begin:end``, and their marginals.

    Those from `high` on are done.
    ``beta_{t-1}(i) = sum_j factor(i, j) b_t(j)`` with ``b_t(j) = node_t(j) beta_t(j) /
    norm_{t-1}``, ``P(y_t = j) = alpha_t(j) beta_t(j)``,
    ``P(y_{t-1} = i, y_t = j) = alpha_{t-1}(i) factor(i, j) b_t(j)``
    """
    stride = 0 if table.shape[0] == 1 else 1
    for j in range(node.shape[1]):
        beta[0, j] = weight / norm[end - 1]
    for t in range(high - 1, low - 1, -1):
        scale = 1.0 / norm[t - 1] if t > begin else 0.0
        at = row + t - begin
        if t < end - 1:
            _product(message, at + 1, turned, table[(t + 1) * stride], beta, 0)
        _step_back(node, t, scale, alpha, at, beta, message, marginals)


@kernel
def _log_total(norm: FloatArray, shift: FloatArray, pair_shift: FloatArray, table: IdArray,
               begin: int, end: int) -> float:  # fmt: skip
    """Add up ``log norm_t + shift_t + pair_shift_t``.

    In runs: the rounding of a long sum grows with the number of terms added to one total. Norms are
    multiplied as long as the product is a number of normal size: a logarithm costs far more.
    """
    stride = 0 if table.shape[0] == 1 else 1
    total = 0.0
    for run in range(begin, end, 128):
        part, product = 0.0, 1.0
        for t in range(run, min(run + 128, end)):
            if product < 1e-100 or product > 1e100:
                part += math.log(product)
                product = 1.0
            product *= norm[t]
            part += shift[t]
            if t > begin:
                part += pair_shift[table[t * stride]]
        total += part + math.log(product)
    return total


@kernel
def _sum_one(
    unary: FloatArray,  # the arguments of `chain_sum`
    node: FloatArray,
    shift: FloatArray,
    pair: FloatArray,
    factor: FloatArray,
    turned: FloatArray,
    pair_shift: FloatArray,
    table: IdArray,
    offsets: IntArray,
    s: int,
    weight: FloatArray,
    norm: FloatArray,
    work: FloatArray,
    alpha: FloatArray,
    row: int,  # where the rows of the workspace begin
    message: FloatArray,
    marginals: FloatArray,
    log_z: FloatArray,
    status: IntArray,
) -> None:
    """Sum one sequence."""
    begin, end = offsets[s], offsets[s + 1]
    log_z[s] = 0.0
    status[s] = OK
    if begin == end:
        return
    status[s] = _forward(
        unary, node, pair, factor, table, begin, begin, end, work, alpha, row, norm
    )
    if status[s] == OK:
        log_z[s] = _log_total(norm, shift, pair_shift, table, begin, end)
        _backward(
            node, turned, table, begin, end, begin, end, norm, weight[s], work, alpha, row,
            message, marginals,
        )  # fmt: skip


@kernel
def _sum_two(
    unary: FloatArray,  # the arguments of `chain_sum`
    node: FloatArray,
    shift: FloatArray,
    pair: FloatArray,
    factor: FloatArray,
    turned: FloatArray,
    pair_shift: FloatArray,
    table: IdArray,
    offsets: IntArray,
    first: int,
    second: int,
    weight: FloatArray,
    norm: FloatArray,
    work: FloatArray,
    alpha: FloatArray,
    row: int,  # where the rows of the workspace begin
    message: FloatArray,
    marginals: FloatArray,
    log_z: FloatArray,
    status: IntArray,
) -> bool:
    """Sum two sequences that share a table, side by side as far as the shorter one goes.

    Each row of the table is read once for both, and neither waits for the other. Returns whether
    it succeeded: where a probability is tiny, each has to be summed alone.
    """
    sizes = offsets[first + 1] - offsets[first], offsets[second + 1] - offsets[second]
    s, u = (first, second) if sizes[0] <= sizes[1] else (second, first)
    begin, end, start, stop = offsets[s], offsets[s + 1], offsets[u], offsets[u + 1]
    size, other = end - begin, row + end - begin
    status[s] = _forward(
        unary, node, pair, factor, table, begin, begin, begin + 1, work, alpha, row, norm
    )
    status[u] = _forward(
        unary, node, pair, factor, table, start, start, start + 1, work, alpha, other, norm
    )
    if status[s] != OK or status[u] != OK:
        return False
    if two_forward(node, factor, table[0], begin, start, size, alpha, row, other, norm) < TINY:
        return False
    status[u] = _forward(
        unary, node, pair, factor, table, start, start + size, stop, work, alpha, other, norm
    )
    if status[u] != OK:
        return False
    log_z[s] = _log_total(norm, shift, pair_shift, table, begin, end)
    log_z[u] = _log_total(norm, shift, pair_shift, table, start, stop)
    _backward(
        node, turned, table, begin, end, end - 1, end, norm, weight[s], work, alpha, row, message,
        marginals,
    )  # fmt: skip
    _backward(
        node, turned, table, start, stop, stop - 1, stop, norm, weight[u], work, alpha, other,
        message, marginals,
    )  # fmt: skip
    two_backward(
        node, turned, table[0], begin, end, start, stop, norm, alpha, row, other, message, marginals
    )
    _backward(
        node, turned, table, start, stop, start, stop - size, norm, weight[u], work, alpha, other,
        message, marginals,
    )  # fmt: skip
    return True


@kernel
def chain_sum(
    unary: FloatArray,  # (N, K) scores
    node: FloatArray,  # (N, K) exp(unary - shift)
    shift: FloatArray,  # (N,) largest unary score of each token
    pair: FloatArray,  # (M, K, K) scores
    factor: FloatArray,  # (M, K, K) exp(pair - pair_shift)
    turned: FloatArray,  # (M, K, K) the same, each transposed
    pair_shift: FloatArray,  # (M,) largest score of each table
    table: IdArray,  # (N,) or (1,)
    offsets: IntArray,  # (S + 1,)
    which: IntArray,  # (n,) the sequences to sum
    weight: FloatArray,  # (S,) factor of the expected counts of each sequence
    norm: FloatArray,  # (N,) workspace
    work: FloatArray,  # (1, K) workspace
    alpha: FloatArray,  # (R, K) workspace, at least a row for each token of the longest sequence
    message: FloatArray,  # (R, K) workspace
    marginals: FloatArray,  # (N, K) out: weighted marginals
    flow: FloatArray,  # (M, K, K) out, added to: weighted expected steps divided by factor
    log_z: FloatArray,  # (S,) out
    status: IntArray,  # (S,) out; outputs of a sequence are only valid where it is OK
) -> None:
    """``log Z = log sum_y exp score(x, y)`` and the expected counts of all parts.

    Scaled forward-backward in the linear domain: two sequences at a time, one after the other where
    steps have tables of their own, and after a few pairs in which a probability vanished. Where all
    share a table, their steps are added up for as many sequences as fit in the workspace.
    """
    shared = table.shape[0] == 1
    tries = MOST_FAILURES if shared and unary.shape[1] >= WIDTH else 0
    filled = n = alone = 0
    while n < which.shape[0]:
        s, size, count = which[n], offsets[which[n] + 1] - offsets[which[n]], 1
        if tries > 0 and alone == 0 and n + 1 < which.shape[0]:
            both = size + offsets[which[n + 1] + 1] - offsets[which[n + 1]]
            count = 2 if both > size > 0 and both <= alpha.shape[0] else 1
            size = both if count == 2 else size
        if filled + size > alpha.shape[0]:
            _add_steps(alpha, message, 1, filled, flow, table[0])
            filled = 0
        if count == 2:
            if _sum_two(
                unary, node, shift, pair, factor, turned, pair_shift, table, offsets, s,
                which[n + 1], weight, norm, work, alpha, filled, message, marginals, log_z, status,
            ):  # fmt: skip
                filled += size
                n += 2
            else:
                tries -= 1
                alone = 2
            continue
        n += 1
        alone = max(alone - 1, 0)
        _sum_one(
            unary, node, shift, pair, factor, turned, pair_shift, table, offsets, s, weight, norm,
            work, alpha, filled, message, marginals, log_z, status,
        )  # fmt: skip
        begin, end = offsets[s], offsets[s + 1]
        if status[s] == OK and shared:
            filled += end - begin
        elif status[s] == OK:
            for t in range(1, end - begin):
                _add_steps(alpha, message, t, t + 1, flow, table[begin + t])
    _add_steps(alpha, message, 1, filled, flow, table[0])


@kernel
def _log_sum(values: FloatArray, row: int) -> float:
    """``log sum_k exp(values[row, k])`` without overflow; ``-inf`` for no mass at all."""
    top = -math.inf
    for k in range(values.shape[1]):
        if values[row, k] > top:
            top = values[row, k]
    if top == -math.inf:
        return top
    total = 0.0
    for k in range(values.shape[1]):
        below = values[row, k] - top
        if below > NOTHING:  # most terms are not, where this kernel is needed
            total += math.exp(below)
    return top + math.log(total)


@kernel
def chain_sum_log(
    unary: FloatArray,  # (N, K) scores
    pair: FloatArray,  # (M, K, K) scores
    table: IdArray,  # (N,) or (1,)
    begin: int,
    end: int,
    weight: float,
    norm: FloatArray,  # (N,) workspace
    work: FloatArray,  # (3, K) workspace
    marginals: FloatArray,  # (N, K) out: weighted marginals
    steps: FloatArray,  # (M, K, K) out, added to: weighted expected steps
    log_z: FloatArray,  # (1,) out
) -> int:
    """Log Z and expected counts of one sequence, by sums of logarithms; returns its status.

    ``log alpha_t(j) = unary_t(j) + log sum_i exp(log alpha_{t-1}(i) + pair(i, j)) - norm_t``: many
    times slower than `chain_sum`, and right for scores of any size. The norm makes the sum of
    ``alpha_t`` one: unnormalized logarithms grow with the length and lose their digits.
    """
    size = unary.shape[1]
    stride = 0 if table.shape[0] == 1 else 1
    log_z[0] = 0.0
    part = 0.0
    for t in range(begin, end):
        for j in range(size):
            if t == begin:
                work[1, j] = unary[t, j]
                continue
            for i in range(size):
                work[0, i] = marginals[t - 1, i] + pair[table[t * stride], i, j]
            work[1, j] = unary[t, j] + _log_sum(work, 0)
        norm[t] = _log_sum(work, 1)
        if norm[t] == -math.inf:
            return t
        part += norm[t]
        if t % 128 == 0 or t == end - 1:  # in runs, as in _log_total
            log_z[0] += part
            part = 0.0
        for j in range(size):
            marginals[t, j] = work[1, j] - norm[t]
    for j in range(size):
        work[1, j] = 0.0
    # work[1] is log beta_t; the rows of log alpha turn into marginals from behind.
    for t in range(end - 1, begin - 1, -1):
        for j in range(size):
            work[2, j] = unary[t, j] + work[1, j] - norm[t]
            marginals[t, j] = weight * math.exp(marginals[t, j] + work[1, j])
        if t == begin:
            break
        for i in range(size):
            for j in range(size):
                work[0, j] = pair[table[t * stride], i, j] + work[2, j]
                log_step = marginals[t - 1, i] + work[0, j]
                if log_step > NOTHING:
                    steps[table[t * stride], i, j] += weight * math.exp(log_step)
            work[1, i] = _log_sum(work, 0)
    return OK
