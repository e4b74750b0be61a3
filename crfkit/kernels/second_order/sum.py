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
from crfkit.kernels.second_order.arrays import LiveLabels, SecondOrderScores, Step, group, n_states


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
    (t, p, old, _), ptr, label = at, live.ptr, live.label
    m = group(scores, t)
    first_h, first_i, first_j = ptr[p - 2], ptr[p - 1], ptr[p]
    i, j, n_i = label[first_i + a], label[first_j + b], first_j - first_i
    for c in range(first_i - first_h):
        if alpha[old + c * n_i + a] > 0.0:
            if scores.pair[m + label[first_h + c], i, j] > -math.inf:
                return True
    return False


@kernel
def _forward_status(scores: SecondOrderScores, live: LiveLabels, at: Step,
                    alpha: FloatArray) -> int:  # fmt: skip
    """Tell an underflow from a state that no path reaches, and that from the end of all paths."""
    t, p, old, new = at
    n_i, n_j = live.ptr[p] - live.ptr[p - 1], live.ptr[p + 1] - live.ptr[p]
    alive = False
    for a in range(n_i):
        for b in range(n_j):
            if alpha[new + a * n_j + b] >= TINY:
                alive = True
            elif old < 0 or _reachable(scores, live, at, a, b, alpha):
                return UNDERFLOW
    return OK if alive else t


@part
def _raise_labels(scores: SecondOrderScores, live: LiveLabels, t: int, p: int,
                  rooms: SecondOrderRooms) -> None:  # fmt: skip
    """Write the exponentials of the live labels of a token."""
    top, shift = -math.inf, 0.0
    for e in range(live.ptr[p], live.ptr[p + 1]):
        top = max(top, scores.unary[t, live.label[e]])
    shift = top if top > -math.inf else 0.0
    rooms.shift[t] = shift
    for e in range(live.ptr[p], live.ptr[p + 1]):
        rooms.node[e] = math.exp(scores.unary[t, live.label[e]] - shift)


@part
def _forward_step(scores: SecondOrderScores, raised: SecondOrderExponentials, live: LiveLabels,
                  at: Step, scale: float, rooms: SecondOrderRooms) -> None:  # fmt: skip
    """``alpha_t(i, j) = scale sum_h alpha_{t-1}(h, i) factor(h, i, j)``, without `node`."""
    (t, p, old, new), ptr, label, alpha = at, live.ptr, live.label, rooms.alpha
    m = group(scores, t)
    first_h, first_i, first_j = ptr[p - 2], ptr[p - 1], ptr[p]
    n_i, n_j = first_j - first_i, ptr[p + 1] - first_j
    whole, factor, done = n_j == scores.unary.shape[1], raised.factor, raised.done
    pair_shift = raised.pair_shift[m // (scores.unary.shape[1] + 1)]
    for state in range(new, new + n_i * n_j):
        alpha[state] = 0.0
    for c in range(first_i - first_h):  # in the order of the tables
        h = m + label[first_h + c]
        for a in range(n_i):
            i, row, known = label[first_i + a], new + a * n_j, alpha[old + c * n_i + a] * scale
            if known == 0.0:
                continue
            if not done[h, i]:
                _raise_row(scores, pair_shift, h, i, factor)
                done[h, i] = True
            if whole:
                for b in range(n_j):
                    alpha[row + b] += known * factor[h, i, b]
            else:
                for b in range(n_j):
                    alpha[row + b] += known * factor[h, i, label[first_j + b]]


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
    starts, alpha, node, scale = rooms.starts, rooms.alpha, rooms.node, 1.0
    begin, end = scores.offsets[s], scores.offsets[s + 1]
    starts[0] = 0
    for t in range(begin, end):
        p, new = t + s + 1, starts[t - begin]
        count = n_states(live, p)
        starts[t - begin + 1], at = new + count, Step(t, p, -1, new)
        _raise_labels(scores, live, t, p, rooms)
        if t == begin:
            for b in range(count):
                alpha[b] = 1.0
        else:
            at = Step(t, p, starts[t - begin - 1], new)
            _forward_step(scores, raised, live, at, scale, rooms)
        first, n_j, total, least = live.ptr[p], live.ptr[p + 1] - live.ptr[p], 0.0, 1.0
        for row in range(new, new + count, max(n_j, 1)):
            for b in range(n_j):
                value = alpha[row + b] * node[first + b]
                alpha[row + b] = value
                total += value
                least = min(least, value)
        if least < TINY or count == 0:
            status = _forward_status(scores, live, at, alpha)
            if status != OK:
                return status
        rooms.norm[t] = total
        scale = 1.0 / total
    return OK


@part
def _step_back(scores: SecondOrderScores, raised: SecondOrderExponentials, live: LiveLabels,
               at: Step, rooms: SecondOrderRooms, flow: FloatArray) -> None:  # fmt: skip
    """``beta_{t-1}(h, i) = sum_j factor(h, i, j) b_t(i, j)``, and the expected steps into a token.

    With the messages ``b_t(i, j) = node_t(j) beta_t(i, j) / norm_{t-1}``.
    """
    (t, p, old, new), ptr, label = at, live.ptr, live.label
    alpha, beta = rooms.alpha, rooms.beta
    first_h, first_i, first_j = ptr[p - 2], ptr[p - 1], ptr[p]
    n_i, n_j, factor, m = first_j - first_i, ptr[p + 1] - first_j, raised.factor, group(scores, t)
    whole = n_j == scores.unary.shape[1]
    for c in range(first_i - first_h):
        h = m + label[first_h + c]
        for a in range(n_i):
            i, row, known, total = label[first_i + a], new + a * n_j, alpha[old + c * n_i + a], 0.0
            if known > 0.0 and whole:
                for b in range(n_j):
                    moved = factor[h, i, b] * alpha[row + b]
                    total += moved
                    flow[h, i, b] += known * moved
            elif known > 0.0:
                for b in range(n_j):
                    j = label[first_j + b]
                    moved = factor[h, i, j] * alpha[row + b]
                    total += moved
                    flow[h, i, j] += known * moved
            beta[c * n_i + a] = total


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
    starts, alpha, beta, marginals = rooms.starts, rooms.alpha, rooms.beta, out.marginals
    begin, end = scores.offsets[s], scores.offsets[s + 1]
    for state in range(n_states(live, end + s)):
        beta[state] = weight / rooms.norm[end - 1]
    for t in range(end - 1, begin - 1, -1):
        p, new, scale = t + s + 1, starts[t - begin], 0.0
        if t > begin:
            scale = 1.0 / rooms.norm[t - 1]
        first, n_j = live.ptr[p], live.ptr[p + 1] - live.ptr[p]
        for row in range(0, n_states(live, p), n_j):
            for b in range(n_j):
                known, ahead = alpha[new + row + b], beta[row + b]
                # A state that no path reaches may have an unbounded beta: it must not count.
                if known > 0.0:
                    marginals[t, live.label[first + b]] += known * ahead
                    alpha[new + row + b] = rooms.node[first + b] * scale * ahead
        if t > begin:
            at = Step(t, p, starts[t - begin - 1], new)
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
    index, size = scores.transition_index, scores.unary.shape[1]
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
                    whole += raised.pair_shift[group(scores, t) // (size + 1)]
            out.log_z[s] = whole
            _backward(scores, raised, live, s, weight[s], rooms, out)


@part
def log_before(scores: SecondOrderScores, live: LiveLabels, at: Step, a: int, b: int,
               rooms: SecondOrderRooms) -> float:  # fmt: skip
    """Write the logarithms of what leads to a state by label two before; returns that of the sum.

    ``log alpha_{t-1}(h, i) + pair(h, i, j)``.
    """
    (t, p, old, _), ptr, label = at, live.ptr, live.label
    alpha, row, m = rooms.alpha, rooms.row, group(scores, t)
    first_h, first_i, first_j = ptr[p - 2], ptr[p - 1], ptr[p]
    i, j, n_i = label[first_i + a], label[first_j + b], first_j - first_i
    for c in range(first_i - first_h):
        known = alpha[old + c * n_i + a]
        row[0, c] = known + scores.pair[m + label[first_h + c], i, j]
    return log_of_sum(row, 0, first_i - first_h)


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
    starts, alpha, partial = rooms.starts, rooms.alpha, 0.0
    begin, end = scores.offsets[s], scores.offsets[s + 1]
    starts[0], log_z[s] = 0, 0.0
    for t in range(begin, end):
        p, new = t + s + 1, starts[t - begin]
        count, n_j, first = n_states(live, p), live.ptr[p + 1] - live.ptr[p], live.ptr[p]
        starts[t - begin + 1], top, total = new + count, -math.inf, 0.0
        for state in range(count):
            a, b = state // n_j, state % n_j
            value = scores.unary[t, live.label[first + b]]
            if t > begin:
                at = Step(t, p, starts[t - begin - 1], new)
                value += log_before(scores, live, at, a, b, rooms)
            alpha[new + state] = value
            top = max(top, value)
        if top == -math.inf:
            return t
        for state in range(new, new + count):
            total += math.exp(alpha[state] - top)
        norm = top + math.log(total)
        rooms.norm[t] = norm
        partial += norm
        if t % 128 == 0 or t == end - 1:  # in runs: long sums lose digits
            log_z[s] += partial
            partial = 0.0
        for state in range(new, new + count):
            alpha[state] -= norm
    return OK


@part
def log_step_back(scores: SecondOrderScores, live: LiveLabels, at: Step, weight: float,
                  rooms: SecondOrderRooms, flow: FloatArray) -> None:  # fmt: skip
    """``log beta_{t-1}(h, i) = log sum_j exp(pair(h, i, j) + b_t(i, j))``, and expected steps.

    The messages ``b_t = unary_t + log beta_t - norm_t`` stand in place of the forward vector. Steps
    are not counted where there is no room for them.
    """
    (t, p, old, new), ptr, label = at, live.ptr, live.label
    alpha, work, m = rooms.alpha, rooms.row, group(scores, t)
    first_h, first_i, first_j = ptr[p - 2], ptr[p - 1], ptr[p]
    n_i, n_j, counted = first_j - first_i, ptr[p + 1] - first_j, flow.shape[0] > 0
    for c in range(first_i - first_h):
        h = m + label[first_h + c]
        for a in range(n_i):
            i, known = label[first_i + a], alpha[old + c * n_i + a]
            for b in range(n_j):
                j = label[first_j + b]
                work[0, b] = scores.pair[h, i, j] + alpha[new + a * n_j + b]
                if counted and known + work[0, b] > NOTHING:
                    flow[h, i, j] += weight * math.exp(known + work[0, b])
            rooms.beta[c * n_i + a] = log_of_sum(work, 0, n_j)


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
    starts, alpha, beta, norm = rooms.starts, rooms.alpha, rooms.beta, rooms.norm
    begin, end = scores.offsets[s], scores.offsets[s + 1]
    status = forward_logs(scores, live, s, rooms, out.log_z)
    if status != OK:
        return status
    for state in range(n_states(live, end + s)):
        beta[state] = 0.0
    for t in range(end - 1, begin - 1, -1):
        p, new, first = t + s + 1, starts[t - begin], live.ptr[t + s + 1]
        n_j = live.ptr[p + 1] - first
        for state in range(n_states(live, p)):
            label = live.label[first + state % n_j]
            out.marginals[t, label] += weight * math.exp(alpha[new + state] + beta[state])
            alpha[new + state] = scores.unary[t, label] + beta[state] - norm[t]
        if t > begin:
            at = Step(t, p, starts[t - begin - 1], new)
            log_step_back(scores, live, at, weight, rooms, out.flow)
    return OK
