"""Recurrences on linear chains.

Shapes: ``N`` tokens of ``S`` sequences, ``K`` labels, ``M`` tables of pair scores. The step into
token ``t`` reads the table ``table[t * stride]``: the stride is 0 where `table` has one entry,
because all steps share it, and 1 where it has ``N``.
"""

from __future__ import annotations

import math

from crfkit._jit import kernel, part
from crfkit._simd import WIDTH
from crfkit._types import CodeArray, FloatArray, IdArray, IntArray
from crfkit.kernels._strips import (
    strips_best,
    strips_outer,
    strips_product,
    strips_shift,
    strips_step_back,
    strips_weigh,
)

# A forward probability below this is not trusted: the scaled recurrence leaves the sequence to
# the log-domain one. Its inverse, the bound of a backward value, is finite.
TINY = 1e-200

# The exponential of anything below this is 0.
NOTHING = -745.2

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
    end: int,
    work: FloatArray,  # (1, K) workspace
    alpha: FloatArray,  # (R, K) out: the rows from `row` on
    row: int,
    norm: FloatArray,  # (N,) out
) -> int:
    """Scaled forward recurrence of one sequence (Rabiner 1989, section V.A); returns its status.

    ``alpha_t(j) = node_t(j) sum_i alpha_{t-1}(i) factor(i, j) / norm_{t-1}``, ``norm_t = sum_j
    alpha_t(j)``: nothing waits for the division.
    """
    stride = 0 if table.shape[0] == 1 else 1
    for j in range(node.shape[1]):
        work[0, j] = 1.0
    scale = 1.0
    for t in range(begin, end):
        m = table[t * stride]
        if t > begin:
            _product(alpha, row - 1, factor, m, work, 0)
        total, least = _weigh(work, node, t, scale, alpha, row)
        if least < TINY:
            status = _forward_status(alpha, row, unary, pair, m, t, t == begin)
            if status != OK:
                return status
        norm[t] = total
        scale = 1.0 / total
        row += 1
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
    norm: FloatArray,  # (N,) from the forward recurrence
    weight: float,
    beta: FloatArray,  # (1, K) workspace
    alpha: FloatArray,  # (R, K) from the forward recurrence
    row: int,
    message: FloatArray,  # (R, K) out: the rows from `row` on, 0 in the first
    marginals: FloatArray,  # (N, K) out: weighted marginals
) -> None:
    """Scaled backward recurrence of one sequence, and the marginals.

    ``beta_{t-1}(i) = sum_j factor(i, j) b_t(j)`` with ``b_t(j) = node_t(j) beta_t(j) /
    norm_{t-1}``, ``P(y_t = j) = alpha_t(j) beta_t(j)``,
    ``P(y_{t-1} = i, y_t = j) = alpha_{t-1}(i) factor(i, j) b_t(j)``
    """
    stride = 0 if table.shape[0] == 1 else 1
    for j in range(node.shape[1]):
        beta[0, j] = weight / norm[end - 1]
    for t in range(end - 1, begin - 1, -1):
        scale = 1.0 / norm[t - 1] if t > begin else 0.0
        at = row + t - begin
        _step_back(node, t, scale, alpha, at, beta, message, marginals)
        if t > begin:
            _product(message, at, turned, table[t * stride], beta, 0)


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

    Scaled forward-backward in the linear domain, one sequence after the other. Where all share a
    table, their steps are added up for as many of them as fit in the workspace.
    """
    shared = table.shape[0] == 1
    filled = 0
    for n in range(which.shape[0]):
        s = which[n]
        begin = offsets[s]
        end = offsets[s + 1]
        log_z[s] = 0.0
        status[s] = OK
        if begin == end:
            continue
        if filled + end - begin > alpha.shape[0]:
            _add_steps(alpha, message, 1, filled, flow, table[0])
            filled = 0
        status[s] = _forward(
            unary, node, pair, factor, table, begin, end, work, alpha, filled, norm
        )
        if status[s] != OK:
            continue
        log_z[s] = _log_total(norm, shift, pair_shift, table, begin, end)
        _backward(
            node, turned, table, begin, end, norm, weight[s], work, alpha, filled, message,
            marginals,
        )  # fmt: skip
        if shared:
            filled += end - begin
            continue
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


@kernel
def _extend(best: FloatArray, pair: FloatArray, m: int, t: int) -> None:
    """``best_t(j) = max_i (best_{t-1}(i) + pair(i, j))``."""
    size = best.shape[1]
    if size >= WIDTH:
        strips_best(best, t - 1, pair, m, best, t)
        return
    for j in range(size):
        top = -math.inf
        for i in range(size):
            score = best[t - 1, i] + pair[m, i, j]
            top = score if score > top else top
        best[t, j] = top


@kernel
def chain_max(
    unary: FloatArray,  # (N, K) scores
    pair: FloatArray,  # (M, K, K) scores
    table: IdArray,  # (N,) or (1,)
    offsets: IntArray,  # (S + 1,)
    best: FloatArray,  # (N, K) workspace
    labels: CodeArray,  # (N,) out
    value: FloatArray,  # (S,) out
    status: IntArray,  # (S,) out
) -> None:
    """Find the path of the largest score (Viterbi 1967); of equal ones, the lowest labels.

    ``best_t(j) = unary_t(j) + max_i (best_{t-1}(i) + pair(i, j))``; the way back finds the ``i``
    again, which is cheaper than to store it for all ``j``.
    """
    size = unary.shape[1]
    stride = 0 if table.shape[0] == 1 else 1
    for s in range(offsets.shape[0] - 1):
        begin = offsets[s]
        end = offsets[s + 1]
        value[s] = 0.0
        status[s] = OK
        if begin == end:
            continue
        for t in range(begin, end):
            m = table[t * stride]
            if t == begin:
                for j in range(size):
                    best[t, j] = unary[t, j]
            else:
                _extend(best, pair, m, t)
                for j in range(size):
                    best[t, j] += unary[t, j]
        status[s] = _trace_back(best, pair, table, begin, end, labels)
        value[s] = best[end - 1, labels[end - 1]]


@kernel
def _trace_back(best: FloatArray, pair: FloatArray, table: IdArray, begin: int, end: int,
                labels: CodeArray) -> int:  # fmt: skip
    """Follow the best path from its end; returns the status of the sequence."""
    size = best.shape[1]
    stride = 0 if table.shape[0] == 1 else 1
    for t in range(end - 1, begin - 1, -1):
        label = 0
        top = -math.inf
        for i in range(size):
            score = best[t, i]
            if t < end - 1:
                score += pair[table[(t + 1) * stride], i, labels[t + 1]]
            if score > top:
                top = score
                label = i
        labels[t] = label
        if top == -math.inf:
            return _dead_end(best, begin, end)
    return OK


@kernel
def _dead_end(best: FloatArray, begin: int, end: int) -> int:
    """Return the first position at which no path is left."""
    for t in range(begin, end):
        alive = False
        for j in range(best.shape[1]):
            if best[t, j] > -math.inf:
                alive = True
        if not alive:
            return t
    return OK


@kernel
def chain_score(
    unary: FloatArray,  # (N, K) scores
    pair: FloatArray,  # (M, K, K) scores
    table: IdArray,  # (N,) or (1,)
    offsets: IntArray,  # (S + 1,)
    labels: CodeArray,  # (N,)
    score: FloatArray,  # (S,) out
) -> None:
    """``score = sum_t unary_t(y_t) + sum_{t > 1} pair_t(y_{t-1}, y_t)``."""
    stride = 0 if table.shape[0] == 1 else 1
    for s in range(offsets.shape[0] - 1):
        score[s] = 0.0
        for t in range(offsets[s], offsets[s + 1]):
            score[s] += unary[t, labels[t]]
            if t > offsets[s]:
                score[s] += pair[table[t * stride], labels[t - 1], labels[t]]


@kernel
def chain_add_path(
    table: IdArray,  # (N,) or (1,)
    offsets: IntArray,  # (S + 1,)
    labels: CodeArray,  # (N,)
    weight: FloatArray,  # (S,)
    unary: FloatArray,  # (N, K) out, added to
    pair: FloatArray,  # (M, K, K) out, added to
) -> None:
    """Add the weight of each sequence to the parts on its path (the adjoint of the score)."""
    stride = 0 if table.shape[0] == 1 else 1
    for s in range(offsets.shape[0] - 1):
        for t in range(offsets[s], offsets[s + 1]):
            unary[t, labels[t]] += weight[s]
            if t > offsets[s]:
                pair[table[t * stride], labels[t - 1], labels[t]] += weight[s]
