"""Partition functions and expected counts of second-order chains: forward-backward recurrences.

Shapes as in :mod:`crfkit.kernels.second_order.arrays`. The recurrences are those of chains, over
states: a label and the one before.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from crfkit._types import BoolArray, FloatArray, IntArray
from crfkit.compiler.jit import kernel, part
from crfkit.compiler.simd import WIDTH, decay, fill, load_of, store_of, subtract
from crfkit.kernels.chain.arrays import ChainSums
from crfkit.kernels.chain.sum import NOTHING, OK, TINY, UNDERFLOW, log_total
from crfkit.kernels.second_order.arrays import LiveLabels, SecondOrderScores, Step, step_into

# Of smaller sums at a token, backward messages, at most 1 / (TINY norm), may overflow.
LEAST_NORM = 1e-100


class SecondOrderExponentials(NamedTuple):
    """Exponentials of scores, each row of a table computed when it is first read."""

    factor: FloatArray  # (M (K + 1), K, K) exp(pair - pair_shift)
    done: BoolArray  # (M (K + 1), K) which rows are
    pair_shift: FloatArray  # (M,) the largest score of each group


class SecondOrderRooms(NamedTuple):
    """Rooms of the forward-backward recurrences."""

    starts: IntArray  # (R,) where the states of each token of a sequence start, and the end
    alpha: FloatArray  # forward vectors, then backward messages: the states of any sequence
    beta: FloatArray  # the states of any token
    node: FloatArray  # (n,) exp(unary - shift) of live labels
    norm: FloatArray  # (N,) scales of the forward vectors
    shift: FloatArray  # (N,) the largest score of each token
    row: FloatArray  # (2, K)


@part
def _raise_row(scores: SecondOrderScores, shift: float, h: int, i: int,
               factor: FloatArray) -> None:  # fmt: skip
    """``factor(h, i, j) = exp(pair(h, i, j) - shift)`` for all ``j``."""
    size = factor.shape[2]
    if size < WIDTH:
        for j in range(size):
            factor[h, i, j] = math.exp(scores.pair[h, i, j] - shift)
        return
    for place in range(0, size, WIDTH):
        p = min(place, size - WIDTH)
        store_of(decay(subtract(load_of(scores.pair, h, i, p), fill(shift))), factor, h, i, p)


@kernel
def _reachable(scores: SecondOrderScores, live: LiveLabels, at: Step, a: int, b: int,
               alpha: FloatArray) -> bool:  # fmt: skip
    """Whether an allowed step leads from a reachable state of the token before to one of this."""
    i, j = live.label[at.first_i + a], live.label[at.first_j + b]
    for c in range(at.n_h):
        if alpha[at.old + c * at.n_i + a] > 0.0:
            if scores.pair[at.group + live.label[at.first_h + c], i, j] > -math.inf:
                return True
    return False


@kernel
def _forward_status(scores: SecondOrderScores, live: LiveLabels, at: Step, is_first: bool,
                    alpha: FloatArray) -> int:  # fmt: skip
    """Tell an underflow from a state that no path reaches, and that from the end of all paths."""
    alive = False
    for a in range(at.n_i):
        for b in range(at.n_j):
            if alpha[at.new + a * at.n_j + b] >= TINY:
                alive = True
            elif is_first or _reachable(scores, live, at, a, b, alpha):
                return UNDERFLOW
    return OK if alive else at.t


@part
def _raise_labels(scores: SecondOrderScores, live: LiveLabels, at: Step,
                  rooms: SecondOrderRooms) -> None:  # fmt: skip
    """Write the exponentials of the live labels of a token."""
    top, unary = -math.inf, scores.unary
    for e in range(at.first_j, at.first_j + at.n_j):
        top = max(top, unary[at.t, live.label[e]])
    rooms.shift[at.t] = top
    for e in range(at.first_j, at.first_j + at.n_j):
        rooms.node[e] = math.exp(unary[at.t, live.label[e]] - top)


@part
def _forward_step(scores: SecondOrderScores, raised: SecondOrderExponentials, live: LiveLabels,
                  at: Step, scale: float, rooms: SecondOrderRooms) -> None:  # fmt: skip
    """``alpha_t(i, j) = scale sum_h alpha_{t-1}(h, i) factor(h, i, j)``, without `node`."""
    label, alpha, factor, done = live.label, rooms.alpha, raised.factor, raised.done
    pair_shift = raised.pair_shift[at.group // (scores.unary.shape[1] + 1)]
    whole = at.n_j == scores.unary.shape[1]
    for state in range(at.new, at.new + at.n_i * at.n_j):
        alpha[state] = 0.0
    for c in range(at.n_h):  # in the order of the tables
        h = at.group + label[at.first_h + c]
        for a in range(at.n_i):
            i, row = label[at.first_i + a], at.new + a * at.n_j
            known = alpha[at.old + c * at.n_i + a] * scale
            if known == 0.0:
                continue
            if not done[h, i]:
                _raise_row(scores, pair_shift, h, i, factor)
                done[h, i] = True
            if whole:
                for b in range(at.n_j):
                    alpha[row + b] += known * factor[h, i, b]
            else:
                for b in range(at.n_j):
                    alpha[row + b] += known * factor[h, i, label[at.first_j + b]]


@kernel
def forward_states(
    scores: SecondOrderScores,
    raised: SecondOrderExponentials,
    live: LiveLabels,
    s: int,  # a sequence that is not empty
    rooms: SecondOrderRooms,
) -> int:
    """Scaled forward recurrence of a sequence; returns its status.

    ``alpha_t(i, j) = node_t(j) sum_h alpha_{t-1}(h, i) factor(h, i, j) / norm_{t-1}``, ``norm_t =
    sum_ij alpha_t(i, j)``.
    """
    alpha, node, scale = rooms.alpha, rooms.node, 1.0
    begin, end = scores.offsets[s], scores.offsets[s + 1]
    for t in range(begin, end):
        at = step_into(scores, live, s, t, rooms.starts)
        _raise_labels(scores, live, at, rooms)
        if t == begin:
            for b in range(at.n_j):
                alpha[b] = 1.0
        else:
            _forward_step(scores, raised, live, at, scale, rooms)
        total, least = 0.0, 1.0
        for a in range(at.n_i):
            for b in range(at.n_j):
                value = alpha[at.new + a * at.n_j + b] * node[at.first_j + b]
                alpha[at.new + a * at.n_j + b] = value
                total += value
                least = min(least, value)
        if least < TINY or at.n_i * at.n_j == 0:
            status = _forward_status(scores, live, at, t == begin, alpha)
            if status != OK:
                return status
        if total < LEAST_NORM:
            return UNDERFLOW
        rooms.norm[t] = total
        scale = 1.0 / total
    return OK


@part
def _step_back(scores: SecondOrderScores, raised: SecondOrderExponentials, live: LiveLabels,
               at: Step, rooms: SecondOrderRooms, flow: FloatArray) -> None:  # fmt: skip
    """``beta_{t-1}(h, i) = sum_j factor(h, i, j) b_t(i, j)``, and the expected steps into a token.

    With the messages ``b_t(i, j) = node_t(j) beta_t(i, j) / norm_{t-1}``.
    """
    label, alpha, beta, factor = live.label, rooms.alpha, rooms.beta, raised.factor
    whole = at.n_j == scores.unary.shape[1]
    for c in range(at.n_h):
        h = at.group + label[at.first_h + c]
        for a in range(at.n_i):
            i, row, total = label[at.first_i + a], at.new + a * at.n_j, 0.0
            known = alpha[at.old + c * at.n_i + a]
            if known > 0.0 and whole:
                for b in range(at.n_j):
                    moved = factor[h, i, b] * alpha[row + b]
                    total += moved
                    flow[h, i, b] += known * moved
            elif known > 0.0:
                for b in range(at.n_j):
                    j = label[at.first_j + b]
                    moved = factor[h, i, j] * alpha[row + b]
                    total += moved
                    flow[h, i, j] += known * moved
            beta[c * at.n_i + a] = total


@part
def _backward(
    scores: SecondOrderScores,
    raised: SecondOrderExponentials,
    live: LiveLabels,
    s: int,
    weight: float,
    rooms: SecondOrderRooms,
    out: ChainSums,
) -> None:
    """Scaled backward recurrence of a sequence, whose marginals and expected steps are added."""
    alpha, beta, marginals = rooms.alpha, rooms.beta, out.marginals
    begin, end = scores.offsets[s], scores.offsets[s + 1]
    for t in range(end - 1, begin - 1, -1):
        at, scale = step_into(scores, live, s, t, rooms.starts), 0.0
        if t > begin:
            scale = 1.0 / rooms.norm[t - 1]
        for a in range(at.n_i):
            for b in range(at.n_j):
                state, ahead = at.new + a * at.n_j + b, weight / rooms.norm[t]
                if t < end - 1:
                    ahead = beta[a * at.n_j + b]
                # A state that no path reaches may have an unbounded beta: it must not count.
                if alpha[state] > 0.0:
                    marginals[t, live.label[at.first_j + b]] += alpha[state] * ahead
                    alpha[state] = rooms.node[at.first_j + b] * scale * ahead
        if t > begin:
            _step_back(scores, raised, live, at, rooms, out.flow)


@kernel
def second_order_sum(
    scores: SecondOrderScores,
    raised: SecondOrderExponentials,
    live: LiveLabels,
    weight: FloatArray,  # (S,) factor of the expected counts of each sequence
    rooms: SecondOrderRooms,
    out: ChainSums,  # the marginals are added to, and so are the expected steps
) -> None:
    """``log Z = log sum_y exp score(x, y)`` and the expected counts of all parts.

    Scaled forward-backward in the linear domain, in time of the steps between live labels.
    """
    index = scores.transition_index
    for s in range(out.status.shape[0]):
        begin, end = scores.offsets[s], scores.offsets[s + 1]
        out.log_z[s], out.status[s] = 0.0, OK
        if begin == end:
            continue
        out.status[s] = forward_states(scores, raised, live, s, rooms)
        if out.status[s] == OK:
            whole = log_total(rooms.norm, rooms.shift, begin, end)
            if index.shape[0] == 1:
                whole += (end - begin - 1) * raised.pair_shift[index[0]]
            else:
                for t in range(begin + 1, end):
                    whole += raised.pair_shift[index[t]]
            out.log_z[s] = whole
            _backward(scores, raised, live, s, weight[s], rooms, out)


@part
def log_before(scores: SecondOrderScores, live: LiveLabels, at: Step, a: int, b: int,
               rooms: SecondOrderRooms) -> float:  # fmt: skip
    """Write the logarithms of what leads to a state by label two before; returns that of the sum.

    ``log alpha_{t-1}(h, i) + pair(h, i, j)``.
    """
    i, j, row = live.label[at.first_i + a], live.label[at.first_j + b], rooms.row
    for c in range(at.n_h):
        pair = scores.pair[at.group + live.label[at.first_h + c], i, j]
        row[0, c] = rooms.alpha[at.old + c * at.n_i + a] + pair
    return log_of_sum(row, 0, at.n_h)


@part
def log_of_sum(values: FloatArray, row: int, count: int) -> float:
    """``log sum_k exp(values[row, k])`` of so many columns; ``-inf`` for no mass at all."""
    top, total = -math.inf, 0.0
    for k in range(count):
        top = max(top, values[row, k])
    if top == -math.inf:
        return top
    for k in range(count):
        below = values[row, k] - top
        if below > NOTHING:
            total += math.exp(below)
    return top + math.log(total)


@kernel
def forward_logs(
    scores: SecondOrderScores,
    live: LiveLabels,
    s: int,  # a sequence
    rooms: SecondOrderRooms,
    log_z: FloatArray,  # (S,) out
) -> int:
    """Forward recurrence of a sequence in logarithms, of sum 1 at each token; returns its status.

    Unnormalized logarithms grow with the length and lose their digits.
    """
    alpha, partial = rooms.alpha, 0.0
    begin, end = scores.offsets[s], scores.offsets[s + 1]
    log_z[s] = 0.0
    for t in range(begin, end):
        at, top, total = step_into(scores, live, s, t, rooms.starts), -math.inf, 0.0
        for state in range(at.n_i * at.n_j):
            value = scores.unary[t, live.label[at.first_j + state % at.n_j]]
            if t > begin:
                value += log_before(scores, live, at, state // at.n_j, state % at.n_j, rooms)
            alpha[at.new + state] = value
            top = max(top, value)
        if top == -math.inf:
            return t
        for state in range(at.new, at.new + at.n_i * at.n_j):
            total += math.exp(alpha[state] - top)
        norm = top + math.log(total)
        rooms.norm[t] = norm
        partial += norm
        if t % 128 == 0 or t == end - 1:  # in runs: long sums lose digits
            log_z[s] += partial
            partial = 0.0
        for state in range(at.new, at.new + at.n_i * at.n_j):
            alpha[state] -= norm
    return OK


@part
def log_step_back(scores: SecondOrderScores, live: LiveLabels, at: Step, weight: float,
                  rooms: SecondOrderRooms, flow: FloatArray) -> None:  # fmt: skip
    """``log beta_{t-1}(h, i) = log sum_j exp(pair(h, i, j) + b_t(i, j))``, and expected steps.

    The messages ``b_t = unary_t + log beta_t - norm_t`` stand in place of the forward vector. Steps
    are not counted where there is no room for them.
    """
    label, alpha, work, counted = live.label, rooms.alpha, rooms.row, flow.shape[0] > 0
    for c in range(at.n_h):
        h = at.group + label[at.first_h + c]
        for a in range(at.n_i):
            i, known = label[at.first_i + a], alpha[at.old + c * at.n_i + a]
            for b in range(at.n_j):
                j = label[at.first_j + b]
                work[0, b] = scores.pair[h, i, j] + alpha[at.new + a * at.n_j + b]
                if counted and known + work[0, b] > NOTHING:
                    flow[h, i, j] += weight * math.exp(known + work[0, b])
            rooms.beta[c * at.n_i + a] = log_of_sum(work, 0, at.n_j)


@kernel
def second_order_sum_log(
    scores: SecondOrderScores,
    live: LiveLabels,
    s: int,
    weight: float,
    rooms: SecondOrderRooms,
    out: ChainSums,  # the status is not written
) -> int:
    """Log Z and expected counts of one sequence, by sums of logarithms; returns its status.

    Many times slower than `second_order_sum`, and right for scores of any size.
    """
    alpha, beta = rooms.alpha, rooms.beta
    begin, end = scores.offsets[s], scores.offsets[s + 1]
    status = forward_logs(scores, live, s, rooms, out.log_z)
    if status != OK:
        return status
    for t in range(end - 1, begin - 1, -1):
        at = step_into(scores, live, s, t, rooms.starts)
        for state in range(at.n_i * at.n_j):
            label, ahead = live.label[at.first_j + state % at.n_j], 0.0
            if t < end - 1:
                ahead = beta[state]
            out.marginals[t, label] += weight * math.exp(alpha[at.new + state] + ahead)
            alpha[at.new + state] = scores.unary[t, label] + ahead - rooms.norm[t]
        if t > begin:
            log_step_back(scores, live, at, weight, rooms, out.flow)
    return OK
