"""Labelings of second-order chains drawn from their distribution, and the entropy of that.

Shapes as in :mod:`crfkit.kernels.second_order.arrays`, ``n`` labelings of each sequence.
"""

from __future__ import annotations

import math

from crfkit._types import CodeArray, FloatArray, IntArray
from crfkit.compiler.jit import kernel, part
from crfkit.kernels.chain.sum import NOTHING, OK, UNDERFLOW
from crfkit.kernels.second_order.arrays import LiveLabels, SecondOrderScores, Step, group, n_states
from crfkit.kernels.second_order.sum import (
    SecondOrderExponentials,
    SecondOrderRooms,
    forward_logs,
    forward_states,
    log_before,
    log_of_sum,
    log_step_back,
)
from crfkit.kernels.tree.sample import entropy_of


@part
def _drawn(weights: FloatArray, count: int, uniform: float) -> int:
    """Return the column at which the sum of so many passes a share of the whole: a weight above 0.

    Weights are in the first row.
    """
    total, below = 0.0, 0.0
    for k in range(count):
        total += weights[0, k]
    target = uniform * total
    for k in range(count):
        below += weights[0, k]
        if below > target:
            return k
    column = count - 1
    while weights[0, column] == 0.0 and column > 0:  # in another order of rounding
        column -= 1
    return column


@part
def _weigh_ends(live: LiveLabels, p: int, start: int, in_logs: bool,
                rooms: SecondOrderRooms) -> int:  # fmt: skip
    """Write the shares of the labels of the last token; returns how many these are."""
    n_i = live.ptr[p] - live.ptr[p - 1]
    n_j: int = live.ptr[p + 1] - live.ptr[p]
    for b in range(n_j):
        whole = 0.0
        for a in range(n_i):
            known = rooms.alpha[start + a * n_j + b]
            whole += math.exp(known) if in_logs else known
        rooms.row[0, b] = whole
    return n_j


@part
def _weigh_before_end(live: LiveLabels, p: int, start: int, b: int, in_logs: bool,
                      rooms: SecondOrderRooms) -> int:  # fmt: skip
    """Write the shares of the labels before the last one; returns how many these are."""
    n_j = live.ptr[p + 1] - live.ptr[p]
    n_i: int = live.ptr[p] - live.ptr[p - 1]
    top = -math.inf
    for a in range(n_i):
        rooms.row[0, a] = rooms.alpha[start + a * n_j + b]
        top = max(top, rooms.row[0, a])
    for a in range(n_i if in_logs else 0):
        rooms.row[0, a] = math.exp(rooms.row[0, a] - top)
    return n_i


@part
def _weigh_before(scores: SecondOrderScores, raised: SecondOrderExponentials, live: LiveLabels,
                  at: Step, a: int, b: int, in_logs: bool,
                  rooms: SecondOrderRooms) -> int:  # fmt: skip
    """Write the shares of the labels two before a token, given its label and that before it."""
    (t, p, old, _), ptr, label = at, live.ptr, live.label
    row, m = rooms.row, group(scores, t)
    first_h, first_i, first_j = ptr[p - 2], ptr[p - 1], ptr[p]
    i, j, n_i = label[first_i + a], label[first_j + b], first_j - first_i
    count: int = first_i - first_h
    if in_logs:
        whole = log_before(scores, live, at, a, b, rooms)
        for c in range(count):
            row[0, c] = math.exp(row[0, c] - whole)
        return count
    for c in range(count):
        known = rooms.alpha[old + c * n_i + a]
        row[0, c] = 0.0
        if known > 0.0:  # else the row of the table may not be there
            row[0, c] = known * raised.factor[m + label[first_h + c], i, j]
    return count


@kernel
def second_order_sample(
    scores: SecondOrderScores,
    raised: SecondOrderExponentials,
    live: LiveLabels,
    uniforms: FloatArray,  # (n, N) from 0 to 1
    rooms: SecondOrderRooms,
    log_z: FloatArray,  # (S,) workspace
    labels: CodeArray,  # (n, N) out
    status: IntArray,  # (S,) out: labels of a sequence are only written where it is OK
) -> None:
    """Forward filtering, backward sampling, by logarithms where a probability underflows.

    ``P(y_{t-1} = h | y_t = i, y_{t+1} = j) ~ alpha_t(h, i) factor(h, i, j)``
    """
    starts = rooms.starts
    for s in range(status.shape[0]):
        begin, end = scores.offsets[s], scores.offsets[s + 1]
        status[s], in_logs = OK, False
        if begin == end:
            continue
        status[s] = forward_states(scores, raised, live, s, rooms)
        if status[s] == UNDERFLOW:
            status[s], in_logs = forward_logs(scores, live, s, rooms, log_z), True
        for n in range(labels.shape[0] if status[s] == OK else 0):
            a, b = 0, 0
            for t in range(end - 1, begin - 1, -1):
                p = t + s + 1
                if t == end - 1:
                    count = _weigh_ends(live, p, starts[t - begin], in_logs, rooms)
                elif t == end - 2:
                    last = starts[t + 1 - begin]
                    count = _weigh_before_end(live, p + 1, last, b, in_logs, rooms)
                else:
                    at = Step(t + 2, p + 2, starts[t + 1 - begin], starts[t + 2 - begin])
                    count = _weigh_before(scores, raised, live, at, a, b, in_logs, rooms)
                drawn = _drawn(rooms.row, count, uniforms[n, t])
                a, b = drawn, a
                if t == end - 1:
                    b = drawn
                labels[n, t] = live.label[live.ptr[p] + drawn]


@part
def _entropy_of_end(live: LiveLabels, p: int, start: int, rooms: SecondOrderRooms) -> float:
    """Return the entropy of the last label, and of the one before it given that."""
    n_i, n_j = live.ptr[p] - live.ptr[p - 1], live.ptr[p + 1] - live.ptr[p]
    row, whole = rooms.row, 0.0
    for b in range(n_j):
        for a in range(n_i):
            row[0, a] = rooms.alpha[start + a * n_j + b]
        row[1, b] = log_of_sum(row, 0, n_i)
        if row[1, b] > NOTHING:
            whole += math.exp(row[1, b]) * entropy_of(row, 0, n_i)
    return whole + entropy_of(row, 1, n_j)


@kernel
def second_order_entropy(
    scores: SecondOrderScores,
    live: LiveLabels,
    rooms: SecondOrderRooms,
    flow: FloatArray,  # (0, 0, 0)
    log_z: FloatArray,  # (S,) workspace
    entropy: FloatArray,  # (S,) out
    status: IntArray,  # (S,) out
) -> None:
    """Entropies of the labelings of sequences by the chain rule, exact where they are tiny.

    ``H(y) = H(y_{T-1}, y_T) + sum_t sum_ij P(y_{t-1} = i, y_t = j) H(y_{t-2} | i, j)``, by
    logarithms: no term is negative.
    """
    starts, alpha, beta = rooms.starts, rooms.alpha, rooms.beta
    for s in range(status.shape[0]):
        begin, end = scores.offsets[s], scores.offsets[s + 1]
        entropy[s] = 0.0
        status[s] = forward_logs(scores, live, s, rooms, log_z)
        if begin == end or status[s] != OK:
            continue
        entropy[s] = _entropy_of_end(live, end + s, starts[end - 1 - begin], rooms)
        for state in range(n_states(live, end + s)):
            beta[state] = 0.0
        for t in range(end - 1, begin + 1, -1):
            p, new = t + s + 1, starts[t - begin]
            at = Step(t, p, starts[t - begin - 1], new)
            first, n_h = live.ptr[p], live.ptr[p - 1] - live.ptr[p - 2]
            n_j = live.ptr[p + 1] - first
            for state in range(n_states(live, p)):
                a, b = state // n_j, state % n_j
                known = alpha[new + state] + beta[state]
                if known > NOTHING:
                    log_before(scores, live, at, a, b, rooms)
                    entropy[s] += math.exp(known) * entropy_of(rooms.row, 0, n_h)
                own = scores.unary[t, live.label[first + b]]
                alpha[new + state] = own + beta[state] - rooms.norm[t]
            log_step_back(scores, live, at, 0.0, rooms, flow)
