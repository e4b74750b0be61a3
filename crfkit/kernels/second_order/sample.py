"""Labelings of second-order chains drawn from their distribution, and the entropy of that.

Shapes as in :mod:`crfkit.kernels.second_order.arrays`, ``n`` labelings of each sequence.
"""

from __future__ import annotations

import math

from crfkit._types import CodeArray, FloatArray, IntArray
from crfkit.compiler.jit import kernel, part
from crfkit.kernels.chain.sum import NOTHING, OK, UNDERFLOW
from crfkit.kernels.second_order.arrays import LiveLabels, SecondOrderScores, Step, step_into
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
def _weigh_ends(at: Step, in_logs: bool, rooms: SecondOrderRooms) -> int:
    """Write the shares of the labels of the last token; returns how many these are."""
    for b in range(at.n_j):
        whole = 0.0
        for a in range(at.n_i):
            known = rooms.alpha[at.new + a * at.n_j + b]
            whole += math.exp(known) if in_logs else known
        rooms.row[0, b] = whole
    return at.n_j


@part
def _weigh_before_end(at: Step, b: int, in_logs: bool, rooms: SecondOrderRooms) -> int:
    """Write the shares of the labels before the last one; returns how many these are."""
    top = -math.inf
    for a in range(at.n_i):
        rooms.row[0, a] = rooms.alpha[at.new + a * at.n_j + b]
        top = max(top, rooms.row[0, a])
    for a in range(at.n_i if in_logs else 0):
        rooms.row[0, a] = math.exp(rooms.row[0, a] - top)
    return at.n_i


@part
def _weigh_before(scores: SecondOrderScores, raised: SecondOrderExponentials, live: LiveLabels,
                  at: Step, a: int, b: int, in_logs: bool,
                  rooms: SecondOrderRooms) -> int:  # fmt: skip
    """Write the shares of the labels two before a token, given its label and that before it."""
    row, i, j = rooms.row, live.label[at.first_i + a], live.label[at.first_j + b]
    if in_logs:
        whole = log_before(scores, live, at, a, b, rooms)
        for c in range(at.n_h):
            row[0, c] = math.exp(row[0, c] - whole)
        return at.n_h
    for c in range(at.n_h):
        known = rooms.alpha[at.old + c * at.n_i + a]
        row[0, c] = 0.0
        if known > 0.0:  # else the row of the table may not be there
            row[0, c] = known * raised.factor[at.group + live.label[at.first_h + c], i, j]
    return at.n_h


@part
def _draw(
    scores: SecondOrderScores,
    raised: SecondOrderExponentials,
    live: LiveLabels,
    s: int,
    in_logs: bool,
    uniforms: FloatArray,
    rooms: SecondOrderRooms,
    labels: CodeArray,
) -> None:
    """Draw the labels of a sequence, given its forward vectors."""
    begin, end = scores.offsets[s], scores.offsets[s + 1]
    for n in range(labels.shape[0]):
        a, b = 0, 0  # of the labels of the next token and of that after it
        for t in range(end - 1, begin - 1, -1):
            at = step_into(scores, live, s, min(t + 2, end - 1), rooms.starts)
            if t == end - 1:
                drawn = _drawn(rooms.row, _weigh_ends(at, in_logs, rooms), uniforms[n, t])
                labels[n, t] = live.label[at.first_j + drawn]
            elif t == end - 2:
                count = _weigh_before_end(at, a, in_logs, rooms)
                drawn = _drawn(rooms.row, count, uniforms[n, t])
                labels[n, t] = live.label[at.first_i + drawn]
            else:
                count = _weigh_before(scores, raised, live, at, a, b, in_logs, rooms)
                drawn = _drawn(rooms.row, count, uniforms[n, t])
                labels[n, t] = live.label[at.first_h + drawn]
            a, b = drawn, a


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
    for s in range(status.shape[0]):
        status[s], in_logs = OK, False
        if scores.offsets[s] == scores.offsets[s + 1]:
            continue
        status[s] = forward_states(scores, raised, live, s, rooms)
        if status[s] == UNDERFLOW:
            status[s], in_logs = forward_logs(scores, live, s, rooms, log_z), True
        if status[s] == OK:
            _draw(scores, raised, live, s, in_logs, uniforms, rooms, labels)


@part
def _entropy_of_end(at: Step, rooms: SecondOrderRooms) -> float:
    """Return the entropy of the last label, and of the one before it given that."""
    row, whole = rooms.row, 0.0
    for b in range(at.n_j):
        for a in range(at.n_i):
            row[0, a] = rooms.alpha[at.new + a * at.n_j + b]
        row[1, b] = log_of_sum(row, 0, at.n_i)
        if row[1, b] > NOTHING:
            whole += math.exp(row[1, b]) * entropy_of(row, 0, at.n_i)
    return whole + entropy_of(row, 1, at.n_j)


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
    alpha, beta = rooms.alpha, rooms.beta
    for s in range(status.shape[0]):
        begin, end = scores.offsets[s], scores.offsets[s + 1]
        entropy[s] = 0.0
        status[s] = forward_logs(scores, live, s, rooms, log_z)
        for t in range(end - 1, begin - 1 if status[s] == OK else end - 1, -1):
            at = step_into(scores, live, s, t, rooms.starts)
            if t == end - 1:
                entropy[s] = _entropy_of_end(at, rooms)
            if t <= begin + 1:
                break  # the label two before is known
            for state in range(at.n_i * at.n_j):
                a, b, ahead = state // at.n_j, state % at.n_j, 0.0
                if t < end - 1:
                    ahead = beta[state]
                if alpha[at.new + state] + ahead > NOTHING:
                    log_before(scores, live, at, a, b, rooms)
                    share = math.exp(alpha[at.new + state] + ahead)
                    entropy[s] += share * entropy_of(rooms.row, 0, at.n_h)
                own = scores.unary[t, live.label[at.first_j + b]]
                alpha[at.new + state] = own + ahead - rooms.norm[t]
            log_step_back(scores, live, at, 0.0, rooms, flow)
