"""Partition functions and expected counts of linear chains: forward-backward recurrences.

Shapes as in :mod:`crfkit.kernels.chain.arrays`.
"""

from __future__ import annotations

import math

from crfkit._types import FloatArray, IdArray, IntArray
from crfkit.compiler.jit import kernel, part
from crfkit.compiler.simd import WIDTH, add_few, exponential, load, load_few, store
from crfkit.kernels._strips import add_outer, product, strips_shift, strips_step_back, strips_weigh
from crfkit.kernels.chain._two import two_backward, two_forward
from crfkit.kernels.chain.arrays import (
    ChainExponentials,
    ChainScores,
    ChainSums,
    ChainWorkspace,
    Run,
)

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
def exponentials(row: FloatArray) -> None:
    """``row[0, n] = exp(row[0, n])``, for a row of any length.

    NumPy has vectors for this on some machines only.
    """
    size = row.shape[1]
    whole = size - size % WIDTH
    for n in range(0, whole, WIDTH):
        store(exponential(load(row, 0, n)), row, 0, n)
    last = exponential(load_few(row, 0, whole, size - whole))
    for n in range(whole, size):
        row[0, n] = 0.0
    add_few(last, row, 0, whole, size - whole)


@kernel
def _reachable(alpha: FloatArray, before: int, scores: ChainScores, m: int, t: int, first: bool,
               label: int) -> bool:  # fmt: skip
    """Whether an allowed transition leads from a reachable label at ``t - 1`` to this at ``t``."""
    if scores.unary[t, label] == -math.inf:
        return False
    if first:
        return True
    for i in range(alpha.shape[1]):
        if alpha[before, i] > 0.0 and scores.pair[m, i, label] > -math.inf:
            return True
    return False


@kernel
def _forward_status(alpha: FloatArray, row: int, scores: ChainScores, m: int, t: int,
                    first: bool) -> int:  # fmt: skip
    """Tell an underflow from a label that no path reaches, and that from the end of all paths."""
    alive = False
    for j in range(alpha.shape[1]):
        if alpha[row, j] >= TINY:
            alive = True
        elif _reachable(alpha, row - 1, scores, m, t, first, j):
            return UNDERFLOW
    return OK if alive else t


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
def forward(
    scores: ChainScores,
    exponentials: ChainExponentials,
    run: Run,  # the sequence
    low: int,  # tokens low:high
    high: int,
    workspace: ChainWorkspace,
) -> int:
    """Scaled forward recurrence (Rabiner 1989, section V.A) at some tokens; returns the status.

    Those of the sequence before `low` are done.
    ``alpha_t(j) = node_t(j) sum_i alpha_{t-1}(i) factor(i, j) / norm_{t-1}``, ``norm_t = sum_j
    alpha_t(j)``: nothing waits for the division.
    """
    node, factor, index = exponentials.node, exponentials.factor, scores.transition_index
    norm, vector, alpha = workspace.norm, workspace.vector, workspace.alpha
    stride = 0 if index.shape[0] == 1 else 1
    for j in range(node.shape[1]):
        vector[0, j] = 1.0
    scale = 1.0 / norm[low - 1] if low > run.begin else 1.0
    for t in range(low, high):
        m, row = index[t * stride], run.row + t - run.begin
        if t > run.begin:
            product(alpha, row - 1, factor, m, vector, 0)
        total, least = _weigh(vector, node, t, scale, alpha, row)
        if least < TINY:
            status = _forward_status(alpha, row, scores, m, t, t == run.begin)
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


@kernel
def _backward(
    exponentials: ChainExponentials,
    index: IdArray,  # (N,) or (1,)
    run: Run,  # the sequence
    low: int,  # tokens low:high
    high: int,
    weight: float,
    workspace: ChainWorkspace,
    marginals: FloatArray,  # (N, K) out: weighted marginals
) -> None:
    """Scaled backward recurrence at some tokens of a sequence, and their marginals.

    Those from `high` on are done. The first message of the sequence is 0.
    ``beta_{t-1}(i) = sum_j factor(i, j) b_t(j)`` with ``b_t(j) = node_t(j) beta_t(j) /
    norm_{t-1}``, ``P(y_t = j) = alpha_t(j) beta_t(j)``,
    ``P(y_{t-1} = i, y_t = j) = alpha_{t-1}(i) factor(i, j) b_t(j)``
    """
    node, transposed = exponentials.node, exponentials.transposed
    norm, beta, alpha = workspace.norm, workspace.vector, workspace.alpha
    message = workspace.message
    stride = 0 if index.shape[0] == 1 else 1
    for j in range(node.shape[1]):
        beta[0, j] = weight / norm[run.end - 1]
    for t in range(high - 1, low - 1, -1):
        scale = 1.0 / norm[t - 1] if t > run.begin else 0.0
        row = run.row + t - run.begin
        if t < run.end - 1:
            product(message, row + 1, transposed, index[(t + 1) * stride], beta, 0)
        _step_back(node, t, scale, alpha, row, beta, message, marginals)


@part
def strided_total(norm: FloatArray, shift: FloatArray, first: int, count: int,
                  stride: int) -> float:  # fmt: skip
    """Add up ``log norm_t + shift_t`` of some tokens, which stand `stride` apart.

    In runs: the rounding of a long sum grows with the number of terms added to one total. Norms are
    multiplied as long as the product is a number of normal size: a logarithm costs far more.
    """
    whole = 0.0
    for start in range(0, count, 128):
        partial, product = 0.0, 1.0
        for t in range(start, min(start + 128, count)):
            if product < 1e-100 or product > 1e100:
                partial += math.log(product)
                product = 1.0
            product *= norm[first + t * stride]
            partial += shift[first + t * stride]
        whole += partial + math.log(product)
    return whole


@part
def log_total(norm: FloatArray, shift: FloatArray, begin: int, end: int) -> float:
    """Add up ``log norm_t + shift_t`` of the tokens ``begin:end``."""
    whole: float = strided_total(norm, shift, begin, end - begin, 1)
    return whole


@part
def _log_z(
    norm: FloatArray, exponentials: ChainExponentials, index: IdArray, begin: int, end: int
) -> float:
    """Add up ``log norm_t + shift_t + pair_shift_t``."""
    pair_shift = exponentials.pair_shift
    whole: float = log_total(norm, exponentials.shift, begin, end)
    if index.shape[0] == 1:
        whole += (end - begin - 1) * pair_shift[index[0]]
        return whole
    for start in range(begin + 1, end, 128):
        partial = 0.0
        for t in range(start, min(start + 128, end)):
            partial += pair_shift[index[t]]
        whole += partial
    return whole


@part
def _sum_one(
    scores: ChainScores,
    exponentials: ChainExponentials,
    s: int,
    weight: FloatArray,  # (S,)
    workspace: ChainWorkspace,
    row: int,  # where the rows of the workspace begin
    out: ChainSums,
) -> None:
    """Sum one sequence."""
    begin, end = scores.offsets[s], scores.offsets[s + 1]
    out.log_z[s] = 0.0
    out.status[s] = OK
    if begin == end:
        return
    run = Run(begin, end, row)
    out.status[s] = forward(scores, exponentials, run, begin, end, workspace)
    if out.status[s] == OK:
        out.log_z[s] = _log_z(workspace.norm, exponentials, scores.transition_index, begin, end)
        _backward(
            exponentials,
            scores.transition_index,
            run,
            begin,
            end,
            weight[s],
            workspace,
            out.marginals,
        )


@part
def _sum_two(
    scores: ChainScores,
    exponentials: ChainExponentials,
    first: int,
    second: int,
    weight: FloatArray,  # (S,)
    workspace: ChainWorkspace,
    row: int,  # where the rows of the workspace begin
    out: ChainSums,
) -> bool:
    """Sum two sequences that share a table, side by side as far as the shorter one goes.

    Each row of the table is read once for both, and neither waits for the other. Returns whether
    it succeeded: where a probability is tiny, each has to be summed alone.
    """
    offsets, index, norm, log_z = scores.offsets, scores.transition_index, workspace.norm, out.log_z
    marginals, status, m = out.marginals, out.status, index[0]
    sizes = offsets[first + 1] - offsets[first], offsets[second + 1] - offsets[second]
    s, u = (first, second) if sizes[0] <= sizes[1] else (second, first)
    size = offsets[s + 1] - offsets[s]
    short = Run(offsets[s], offsets[s + 1], row)
    long = Run(offsets[u], offsets[u + 1], row + size)
    status[s] = forward(scores, exponentials, short, short.begin, short.begin + 1, workspace)
    status[u] = forward(scores, exponentials, long, long.begin, long.begin + 1, workspace)
    if status[s] != OK or status[u] != OK:
        return False
    if two_forward(exponentials, m, short, long, workspace) < TINY:
        return False
    status[u] = forward(scores, exponentials, long, long.begin + size, long.end, workspace)
    if status[u] != OK:
        return False
    for n in (s, u):
        log_z[n] = _log_z(norm, exponentials, index, offsets[n], offsets[n + 1])
    _backward(exponentials, index, short, short.end - 1, short.end, weight[s], workspace, marginals)
    _backward(exponentials, index, long, long.end - 1, long.end, weight[u], workspace, marginals)
    two_backward(exponentials, m, short, long, workspace, marginals)
    _backward(
        exponentials, index, long, long.begin, long.end - size, weight[u], workspace, marginals
    )
    return True


@kernel
def chain_sum(
    scores: ChainScores,
    exponentials: ChainExponentials,
    sequences: IntArray,  # (n,) the sequences to sum
    weight: FloatArray,  # (S,) factor of the expected counts of each sequence
    workspace: ChainWorkspace,
    out: ChainSums,  # the expected transitions are divided by factor
) -> None:
    """``log Z = log sum_y exp score(x, y)`` and the expected counts of all parts.

    Scaled forward-backward in the linear domain: two sequences at a time, one after the other where
    transitions have tables of their own, and after a few pairs in which a probability vanished.
    Where all share a table, their transitions are added up for as many sequences as fit in the
    workspace.
    """
    offsets, index, status, flow = scores.offsets, scores.transition_index, out.status, out.flow
    alpha, message = workspace.alpha, workspace.message
    shared = index.shape[0] == 1
    tries = MOST_FAILURES if shared and scores.unary.shape[1] >= WIDTH else 0
    filled = n = alone = 0
    while n < sequences.shape[0]:
        s, count = sequences[n], 1
        size = offsets[s + 1] - offsets[s]
        if tries > 0 and alone == 0 and n + 1 < sequences.shape[0]:
            both = size + offsets[sequences[n + 1] + 1] - offsets[sequences[n + 1]]
            count = 2 if both > size > 0 and both <= alpha.shape[0] else 1
            size = both if count == 2 else size
        if filled + size > alpha.shape[0]:
            add_outer(alpha, -1, message, 1, filled, flow, index[0])
            filled = 0
        if count == 2:
            if _sum_two(scores, exponentials, s, sequences[n + 1], weight, workspace, filled, out):
                filled += size
                n += 2
            else:
                tries -= 1
                alone = 2
            continue
        n += 1
        alone = max(alone - 1, 0)
        _sum_one(scores, exponentials, s, weight, workspace, filled, out)
        begin, end = offsets[s], offsets[s + 1]
        if status[s] == OK and shared:
            filled += end - begin
        elif status[s] == OK:
            for t in range(1, end - begin):
                add_outer(alpha, -1, message, t, t + 1, flow, index[begin + t])
    add_outer(alpha, -1, message, 1, filled, flow, index[0])


@part
def log_sum(values: FloatArray, row: int) -> float:
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
    scores: ChainScores,
    s: int,
    weight: FloatArray,  # (S,) factor of the expected counts of each sequence
    norm: FloatArray,  # (N,) workspace
    work: FloatArray,  # (3, K) workspace
    out: ChainSums,  # the status is not written
) -> int:
    """Log Z and expected counts of one sequence, by sums of logarithms; returns its status.

    ``log alpha_t(j) = unary_t(j) + log sum_i exp(log alpha_{t-1}(i) + pair(i, j)) - norm_t``: many
    times slower than `chain_sum`, and right for scores of any size. The norm makes the sum of
    ``alpha_t`` one: unnormalized logarithms grow with the length and lose their digits.
    """
    unary, pair, index, begin = (
        scores.unary,
        scores.pair,
        scores.transition_index,
        scores.offsets[s],
    )
    end, marginals, log_z = scores.offsets[s + 1], out.marginals, out.log_z
    size = unary.shape[1]
    stride = 0 if index.shape[0] == 1 else 1
    log_z[s] = 0.0
    partial = 0.0
    for t in range(begin, end):
        for j in range(size):
            if t == begin:
                work[1, j] = unary[t, j]
                continue
            for i in range(size):
                work[0, i] = marginals[t - 1, i] + pair[index[t * stride], i, j]
            work[1, j] = unary[t, j] + log_sum(work, 0)
        norm[t] = log_sum(work, 1)
        if norm[t] == -math.inf:
            return t
        partial += norm[t]
        if t % 128 == 0 or t == end - 1:  # in runs, as in log_total
            log_z[s] += partial
            partial = 0.0
        for j in range(size):
            marginals[t, j] = work[1, j] - norm[t]
    for j in range(size):
        work[1, j] = 0.0
    # work[1] is log beta_t; the rows of log alpha turn into marginals from behind.
    for t in range(end - 1, begin - 1, -1):
        for j in range(size):
            work[2, j] = unary[t, j] + work[1, j] - norm[t]
            marginals[t, j] = weight[s] * math.exp(marginals[t, j] + work[1, j])
        if t == begin:
            break
        m = index[t * stride]
        for i in range(size):
            for j in range(size):
                work[0, j] = pair[m, i, j] + work[2, j]
                log_probability = marginals[t - 1, i] + work[0, j]
                if log_probability > NOTHING:
                    out.flow[m, i, j] += weight[s] * math.exp(log_probability)
            work[1, i] = log_sum(work, 0)
    return OK
