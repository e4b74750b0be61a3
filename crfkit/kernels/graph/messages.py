"""Messages of factors to variables, in logarithms: belief propagation, also reweighted.

The message of the factor f to its variable v is ``M_fv(x_v) = log sum exp(scores_f(x) / w_f + sum_u
Q_uf(x_u))`` over the values of the others, u; ``Q_vf = B_v - M_fv`` is what v tells f, and ``B_v =
sum_f w_f M_fv``. All weights ``w`` are 1 in belief propagation (Pearl 1988); in tree-reweighted
belief propagation they are the shares of trees that have the factor (Wainwright, Jaakkola and
Willsky 2005). The values of a variable that factors forbid are counted: infinities cannot be
subtracted.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from crfkit._types import BoolArray, FloatArray, IntArray
from crfkit.compiler.jit import kernel, part
from crfkit.kernels.graph.arrays import FactorTables
from crfkit.kernels.graph.links import Links

HUGE = 1e300
# Sweeps after which the change should be half of what it was, or messages move less.
PATIENCE, MOST_DAMPING = 20, 0.95


class Messages(NamedTuple):
    """The messages, and workspaces."""

    values: FloatArray  # (M,) of the states of the variable of each place; the largest is 0
    fresh: FloatArray  # (M,) what they would be now
    finite: FloatArray  # (state_ptr[-1],) sums of the finite messages, weighted
    forbidden: IntArray  # (state_ptr[-1],) how many messages are -inf
    outer: FloatArray  # (largest number of states,)
    table: FloatArray  # (largest table,)
    residual: FloatArray  # (A,) how far `fresh` is from `values`
    heap: IntArray  # (A,) places, those of each graph a heap by residual
    position: IntArray  # (A,) of each place in the heap of its graph


class Schedule(NamedTuple):
    """How messages are sent."""

    by_residual: bool  # that of the largest residual first
    damping: float  # the share of the old message in a new one
    adapts: bool  # whether messages that do not settle are damped more and more
    tol: float  # changes of messages that are small enough
    max_iter: int  # sweeps, or as many messages one by one


class MessageSums(NamedTuple):
    """What comes out."""

    log_partition: FloatArray  # (S,)
    marginals: FloatArray  # (state_ptr[-1],)
    beliefs: FloatArray  # (Z,)
    converged: BoolArray  # (S,)
    n_iter: IntArray  # (S,)


@part
def _tell(graph: FactorTables, links: Links, work: Messages, a: int) -> None:
    """Write what the variable of a place tells the factor."""
    v = graph.scope[a]
    start, states = links.message_ptr[a], graph.state_ptr[v]
    for x in range(graph.sizes[v]):
        message, others = work.values[start + x], work.forbidden[states + x]
        work.outer[x] = work.finite[states + x]
        if message == -math.inf:
            others -= 1
        else:
            work.outer[x] -= message
        if others > 0:
            work.outer[x] = -math.inf


@part
def _fill(graph: FactorTables, links: Links, work: Messages, f: int, but: int) -> None:
    """Write the scores of a factor, and what all variables tell it but that of one place."""
    begin, length = graph.score_ptr[f], graph.score_ptr[f + 1] - graph.score_ptr[f]
    scale = 1.0 / links.weight[f]
    for e in range(length):
        work.table[e] = scale * graph.scores[begin + e]
    for a in range(graph.scope_ptr[f], graph.scope_ptr[f + 1]):
        if a == but:
            continue
        _tell(graph, links, work, a)
        size, stride = graph.sizes[graph.scope[a]], links.stride[a]
        for e in range(0, length, stride):
            told = work.outer[(e // stride) % size]
            for i in range(e, e + stride):
                work.table[i] += told


@part
def _sum_table(graph: FactorTables, links: Links, work: Messages, a: int) -> None:
    """Write the logarithms of the sums of a table over all variables but that of a place."""
    f, start = links.factor[a], links.message_ptr[a]
    _fill(graph, links, work, f, a)
    size, stride = graph.sizes[graph.scope[a]], links.stride[a]
    length = graph.score_ptr[f + 1] - graph.score_ptr[f]
    for x in range(size):
        largest, total = -math.inf, 0.0
        for e in range(x * stride, length, size * stride):
            for i in range(e, e + stride):
                largest = max(largest, work.table[i])
        if largest > -math.inf:
            for e in range(x * stride, length, size * stride):
                for i in range(e, e + stride):
                    total += math.exp(work.table[i] - largest)
            largest += math.log(total)
        work.fresh[start + x] = largest


@part
def _sum_pair(graph: FactorTables, links: Links, work: Messages, a: int, b: int) -> None:
    """Write the same of a factor of two variables, without a copy of its table."""
    f, start = links.factor[a], links.message_ptr[a]
    others, stride, scale = graph.sizes[graph.scope[b]], links.stride[b], 1.0 / links.weight[f]
    _tell(graph, links, work, b)
    for x in range(graph.sizes[graph.scope[a]]):
        e = graph.score_ptr[f] + x * links.stride[a]
        largest, total, at = -math.inf, 1.0, -1
        for y in range(others):
            value = scale * graph.scores[e + y * stride] + work.outer[y]
            work.table[y] = value
            if value > largest:
                largest, at = value, y
        for y in range(others if at >= 0 else 0):
            if y != at:
                total += math.exp(work.table[y] - largest)
        work.fresh[start + x] = largest + math.log(total)


@kernel
def _renew(graph: FactorTables, links: Links, work: Messages, a: int) -> float:
    """Write the message to a place as it would be now; return how far it is from what it is."""
    f, start = links.factor[a], links.message_ptr[a]
    first, end = graph.scope_ptr[f], start + graph.sizes[graph.scope[a]]
    if graph.scope_ptr[f + 1] == first + 2:
        _sum_pair(graph, links, work, a, 2 * first + 1 - a)
    else:
        _sum_table(graph, links, work, a)
    top, far = -math.inf, 0.0
    for i in range(start, end):
        top = max(top, work.fresh[i])
    for i in range(start, end):
        if top > -math.inf:
            work.fresh[i] -= top
        far = max(far, _distance(work.fresh[i], work.values[i]))
    return far


@part
def _distance(new: float, old: float) -> float:
    """Return by how much two logarithms differ, of large ones in proportion."""
    if new == -math.inf or old == -math.inf:
        return 0.0 if new == old else HUGE
    return abs(new - old) / (1.0 + abs(old))


@part
def _disagreement(graph: FactorTables, links: Links, work: Messages, a: int) -> float:
    """Return by how much the beliefs of a variable and of a factor about its values differ."""
    v, start = graph.scope[a], links.message_ptr[a]
    states, size = graph.state_ptr[v], graph.sizes[v]
    top, top_own, total, total_own, far = -math.inf, -math.inf, 0.0, 0.0, 0.0
    for x in range(size):
        if work.forbidden[states + x] == 0:
            own = work.finite[states + x]
            top = max(top, own)
            top_own = max(top_own, own + work.fresh[start + x] - work.values[start + x])
    for x in range(size):
        if work.forbidden[states + x] == 0 and top_own > -math.inf:
            own = work.finite[states + x]
            total += math.exp(own - top)
            own += work.fresh[start + x] - work.values[start + x]
            total_own += math.exp(own - top_own)
    for x in range(size):
        if total > 0.0 and work.forbidden[states + x] == 0:
            own = work.finite[states + x]
            share = math.exp(own - top) / total
            own += work.fresh[start + x] - work.values[start + x]
            far = max(far, abs(math.exp(own - top_own) / total_own - share))
    return far


@part
def _send(graph: FactorTables, links: Links, work: Messages, a: int, damping: float) -> None:
    """Let a message be as it would be now, or be on the way to it."""
    start = links.message_ptr[a]
    for i in range(start, start + graph.sizes[graph.scope[a]]):
        old, new = work.values[i], work.fresh[i]
        if damping > 0.0 and old > -math.inf and new > -math.inf:
            new = damping * old + (1.0 - damping) * new
        work.values[i] = new


@part
def _gather(graph: FactorTables, links: Links, work: Messages, v: int) -> None:
    """Add up the messages to a variable."""
    states, size = graph.state_ptr[v], graph.sizes[v]
    for x in range(size):
        work.finite[states + x] = 0.0
        work.forbidden[states + x] = 0
    for i in range(links.places_ptr[v], links.places_ptr[v + 1]):
        a = links.places[i]
        start, weight = links.message_ptr[a], links.weight[links.factor[a]]
        for x in range(size):
            if work.values[start + x] > -math.inf:
                work.finite[states + x] += weight * work.values[start + x]
            else:
                work.forbidden[states + x] += 1


@part
def _sweep(
    graph: FactorTables, links: Links, work: Messages, s: int, damping: float, of_beliefs: bool
) -> float:
    """Renew the messages to all variables of a graph, backwards and forwards; return the change."""
    begin, end, change = graph.variable_ptr[s], graph.variable_ptr[s + 1], 0.0
    for n in range(2 * (end - begin)):
        v = links.order[end - 1 - n if n < end - begin else 2 * begin - end + n]
        for i in range(links.places_ptr[v], links.places_ptr[v + 1]):
            a = links.places[i]
            far = _renew(graph, links, work, a)
            if of_beliefs:
                far = _disagreement(graph, links, work, a)
            change = max(change, far)
            _send(graph, links, work, a, damping)
        _gather(graph, links, work, v)
    return change


@part
def _by_sweeps(graph: FactorTables, links: Links, work: Messages, s: int, way: Schedule) -> int:
    """Send all messages in turn; return after how many sweeps they changed by no more than `tol`.

    What is returned is negative if they change still. A forest needs one sweep there and back.
    """
    forest = links.is_forest[s]
    damping, before = 0.0 if forest else way.damping, HUGE
    for n in range(1, way.max_iter + 1):
        change = _sweep(graph, links, work, s, damping, way.adapts and not forest)
        if change <= way.tol or forest:
            return n
        if way.adapts and n % PATIENCE == 0:
            if change > 0.98 * before:
                damping = min(0.5 * (1.0 + damping), MOST_DAMPING)
            before = change
    return -1


@part
def _conclude(
    graph: FactorTables, links: Links, work: Messages, s: int, sums: MessageSums
) -> None:  # fmt: skip
    """Write log Z, marginals and beliefs of a graph, given its messages."""
    log_z = 0.0
    for v in range(graph.variable_ptr[s], graph.variable_ptr[s + 1]):
        begin, share = graph.state_ptr[v], 1.0
        for x in range(begin, graph.state_ptr[v + 1]):
            sums.marginals[x] = -math.inf if work.forbidden[x] > 0 else work.finite[x]
        for i in range(links.places_ptr[v], links.places_ptr[v + 1]):
            share -= links.weight[links.factor[links.places[i]]]
        own = _normalize(sums.marginals, begin, graph.sizes[v])
        log_z += share * own if own > -math.inf else -HUGE
    for f in range(graph.factor_ptr[s], graph.factor_ptr[s + 1]):
        begin, length = graph.score_ptr[f], graph.score_ptr[f + 1] - graph.score_ptr[f]
        _fill(graph, links, work, f, -1)
        for e in range(length):
            sums.beliefs[begin + e] = work.table[e]
        own = _normalize(sums.beliefs, begin, length)
        log_z += links.weight[f] * own if own > -math.inf else -HUGE
    sums.log_partition[s] = log_z
    if log_z < -0.5 * HUGE:  # what messages forbid is forbidden
        sums.log_partition[s] = -math.inf
        for x in range(
            graph.state_ptr[graph.variable_ptr[s]], graph.state_ptr[graph.variable_ptr[s + 1]]
        ):
            sums.marginals[x] = 0.0
        for e in range(
            graph.score_ptr[graph.factor_ptr[s]], graph.score_ptr[graph.factor_ptr[s + 1]]
        ):
            sums.beliefs[e] = 0.0


@kernel
def _normalize(values: FloatArray, begin: int, size: int) -> float:
    """Turn logarithms into probabilities; return the logarithm of what they added up to."""
    top, total = -math.inf, 0.0
    for i in range(begin, begin + size):
        top = max(top, values[i])
    for i in range(begin, begin + size):
        values[i] = math.exp(values[i] - top) if values[i] > -math.inf else 0.0
        total += values[i]
    for i in range(begin, begin + size):
        values[i] = values[i] / total if total > 0.0 else 0.0
    return top + math.log(total) if total > 0.0 else -math.inf


@part
def _swap(work: Messages, begin: int, i: int, j: int) -> None:
    """Let two places of a heap change their positions."""
    heap = work.heap
    heap[begin + i], heap[begin + j] = heap[begin + j], heap[begin + i]
    work.position[heap[begin + i]] = i
    work.position[heap[begin + j]] = j


@kernel
def _sift(work: Messages, begin: int, size: int, a: int) -> None:
    """Put a place whose residual has changed where it belongs in the heap."""
    i = work.position[a]
    while i > 0 and work.residual[work.heap[begin + (i - 1) // 2]] < work.residual[a]:
        _swap(work, begin, i, (i - 1) // 2)
        i = (i - 1) // 2
    while 2 * i + 1 < size:
        j = 2 * i + 1
        if (
            j + 1 < size
            and work.residual[work.heap[begin + j + 1]] > work.residual[work.heap[begin + j]]
        ):
            j += 1
        if work.residual[work.heap[begin + j]] <= work.residual[a]:
            break
        _swap(work, begin, i, j)
        i = j


@part
def _pass_on(
    graph: FactorTables, links: Links, work: Messages, begin: int, size: int, damping: float
) -> None:
    """Send the message of the largest residual in a heap, and renew those that depend on it."""
    a = work.heap[begin]
    v, start = graph.scope[a], links.message_ptr[a]
    _send(graph, links, work, a, damping)
    _gather(graph, links, work, v)
    left = 0.0
    for i in range(start, start + graph.sizes[v]):
        left = max(left, _distance(work.fresh[i], work.values[i]))
    work.residual[a] = left
    _sift(work, begin, size, a)
    for i in range(links.places_ptr[v], links.places_ptr[v + 1]):
        b = links.places[i]
        g = links.factor[b]
        if b == a and links.weight[g] == 1.0:
            continue  # it is told what others say
        for c in range(graph.scope_ptr[g], graph.scope_ptr[g + 1]):
            if c != b:
                work.residual[c] = _renew(graph, links, work, c)
                _sift(work, begin, size, c)


@part
def _by_residual(graph: FactorTables, links: Links, work: Messages, s: int, way: Schedule) -> int:
    """Send the messages of the largest residuals; return after how many none was above `tol`.

    What is returned is negative if there is one still.
    """
    begin = graph.scope_ptr[graph.factor_ptr[s]]
    size = graph.scope_ptr[graph.factor_ptr[s + 1]] - begin
    for n in range(size):
        a = begin + n
        work.heap[a], work.position[a] = a, n
        work.residual[a] = _renew(graph, links, work, a)
        _sift(work, begin, n + 1, a)
    for n in range(way.max_iter * size):
        if work.residual[work.heap[begin]] <= way.tol:
            return n
        _pass_on(graph, links, work, begin, size, way.damping)
    if size == 0 or work.residual[work.heap[begin]] <= way.tol:
        return int(way.max_iter * size)
    return -1


@kernel
def propagate(
    graph: FactorTables, links: Links, work: Messages, way: Schedule, sums: MessageSums
) -> None:
    """Send messages that are all 0 until they settle, and write what they say."""
    for s in range(graph.variable_ptr.shape[0] - 1):
        size = graph.scope_ptr[graph.factor_ptr[s + 1]] - graph.scope_ptr[graph.factor_ptr[s]]
        for v in range(graph.variable_ptr[s], graph.variable_ptr[s + 1]):
            _gather(graph, links, work, v)
        if links.is_forest[s] or not way.by_residual:
            steps = _by_sweeps(graph, links, work, s, way)
        else:
            steps = _by_residual(graph, links, work, s, way)
            if steps > 0:
                steps = (steps + size - 1) // size
        sums.converged[s] = steps >= 0
        sums.n_iter[s] = steps if steps >= 0 else way.max_iter
        _conclude(graph, links, work, s, sums)
