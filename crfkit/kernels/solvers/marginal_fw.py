"""Steps of the dual of a margin on chains, in marginals: each run of wrong labels has its own step.

As `chain_margin`, but for

- `state`: the steps between labels that have a share: the label before (E, N), that of the token
  (E, N), the share (E, N), how many each token has (N,); the step into a first token comes from
  label 0. Then the expected cost (B,) and the part in the gap (B,).
- `own`: the same in one group, and in another the least scores of paths that end with a step
  (Q, E), the step before it on that path (Q, E), a path (Q,) and its steps (Q,), and how much of
  its share each token moves (Q,).
"""

from __future__ import annotations

import math
from typing import Any

from crfkit._types import CodeArray, FloatArray, IntArray
from crfkit.compiler.jit import inlined, kernel, part
from crfkit.kernels.chain.oracle import apply_scratch, scatter_sequence
from crfkit.kernels.solvers.frank_wolfe import _clear, _look

# A share of less is none.
NO_SHARE = 1e-13


@kernel
def chain_segment_steps(
    order: IntArray,  # (n,) batches
    most: int,  # steps in a visit
    enough: float,  # a visit ends where the part in the gap is this share of what it was
    c2: float,
    norms: FloatArray,  # (N,) squares of the attributes of each token
    blocks: Any,
    entries: Any,
    state: Any,
    vectors: Any,
    own: Any,
) -> int:
    """Make steps; returns how many visits were made before one that needs more room.

    The best labelling and the worst one that has a share differ in runs of tokens. Shares move
    along each run by about what raises the dual most if it alone moved; the line through all of
    these is searched exactly.
    """
    (offsets, weight, _, _), (edges, _, gaps) = blocks, state
    size: int = order.shape[0]
    for n in range(size):
        batch = order[n]
        begin, end = offsets[batch], offsets[batch + 1]
        if begin == end or not weight[batch] > 0.0:
            continue
        if not _has_room(begin, end, most, edges[3], edges[2].shape[0]):
            return n
        first = 0.0
        for tried in range(most):
            rises = _step(batch, c2, norms, blocks, entries, state, vectors, own)
            if tried == 0:
                first = gaps[batch]
            if not rises or gaps[batch] <= enough * first:
                break
    return size


@part
def _has_room(begin: int, end: int, most: int, counts: Any, size: int) -> bool:
    """Whether each token can have so many more steps."""
    enough = True
    for t in range(begin, end):
        if counts[t] + most > size:
            enough = False
    return enough


@inlined
def _step(batch: int, c2: float, norms: FloatArray, blocks: Any, entries: Any, state: Any,
          vectors: Any, own: Any) -> bool:  # fmt: skip
    """Make a step of a batch, if one raises the dual; returns whether one does."""
    offsets, weight, labels, cost = blocks
    edges, levels, gaps = state
    flat, table, scratch, scratch_table, bits = vectors
    chain, (low, link, away, chosen, amount) = own
    _, target, _, path, residual, active, flows, _ = chain
    size, begin, end = flows.shape[0], offsets[batch], offsets[batch + 1]
    first = table.shape[0] - size
    best = _look(begin, end, blocks, entries, flat, table, chain)
    mean = _mean(begin, end, target, table, first, edges)
    gaps[batch] = max(weight[batch] * (best - mean), 0.0)
    found = _find_lowest(begin, end, target, table, first, edges, low, link, away, chosen)
    slope, longest = 0.0, 0.0
    if found:
        slope, longest = _choose_amounts(
            begin, end, 2.0 * c2 / weight[batch], target, table, first, edges, norms, path, away,
            chosen, active, amount,
        )  # fmt: skip
    slope *= weight[batch]
    rises: bool = slope > 0.0
    if rises:
        _clear(end - begin, residual, flows)
        _direct(end - begin, weight[batch], path, away, active, amount, residual, flows)
        square = scatter_sequence(
            begin, end, residual, active, flows, entries, bits, scratch, scratch_table
        )
        length = longest
        if 2.0 * c2 * slope < length * square:
            length = 2.0 * c2 * slope / square
        apply_scratch(
            begin, end, active, size, -length / (2.0 * c2), entries, scratch, scratch_table, flat,
            table,
        )  # fmt: skip
        for row in range(end - begin):
            if active[row]:
                truth = labels[begin + row]
                change = cost[truth, path[row]] - cost[truth, away[row]]
                levels[batch] += weight[batch] * length * amount[row] * change
        _share(begin, end, length, path, active, amount, chosen, edges)
    return rises


@part
def _mean(begin: int, end: int, scores: FloatArray, steps: FloatArray, first: int,
          edges: Any) -> float:  # fmt: skip
    """Return the mean score."""
    before, after, share, counts = edges
    value = 0.0
    for t in range(begin, end):
        for e in range(counts[t]):
            score = scores[t - begin, after[e, t]]
            if t > begin:
                score += steps[first + before[e, t], after[e, t]]
            value += share[e, t] * score
    return value


@part
def _find_lowest(begin: int, end: int, scores: FloatArray, steps: FloatArray, first: int,
                 edges: Any, low: FloatArray, link: IntArray, away: CodeArray,
                 chosen: IntArray) -> bool:  # fmt: skip
    """Find the path of the least score among steps that have a share."""
    before, after, _, counts = edges
    for t in range(begin, end):
        row = t - begin
        for e in range(counts[t]):
            least, place = 0.0, 0
            if row > 0:
                least, place = math.inf, 0
                for b in range(counts[t - 1]):
                    if after[b, t - 1] == before[e, t] and low[row - 1, b] < least:
                        least, place = low[row - 1, b], b
                least += steps[first + before[e, t], after[e, t]]
            low[row, e] = least + scores[row, after[e, t]]
            link[row, e] = place
    row, place = end - begin - 1, 0
    for e in range(counts[end - 1]):
        if low[row, e] < low[row, place]:
            place = e
    found: bool = low[row, place] < math.inf
    for t in range(end - 1, begin - 1, -1):
        chosen[t - begin] = place
        away[t - begin] = after[place, t]
        place = link[t - begin, place]
    return found


@part
def _choose_amounts(begin: int, end: int, rate: float, scores: FloatArray, steps: FloatArray,
                    first: int, edges: Any, norms: FloatArray, path: CodeArray, away: CodeArray,
                    chosen: IntArray, active: IntArray,
                    amount: FloatArray) -> tuple[float, float]:  # fmt: skip
    """Choose how much of the share of each run moves; returns the slope and the longest step."""
    share, length = edges[2], end - begin
    slope, longest, row = 0.0, math.inf, 0
    while row < length:
        active[row], amount[row] = 0, 0.0
        start, gain, square, room = row, 0.0, 4.0, math.inf
        while row < length and path[row] != away[row]:
            gain += scores[row, path[row]] - scores[row, away[row]]
            if row > 0:
                gain += steps[first + path[row - 1], path[row]]
                gain -= steps[first + away[row - 1], away[row]]
            room = min(room, share[chosen[row], begin + row])
            square += 2.0 * norms[begin + row]
            active[row] = 1
            row += 1
        if row == start:
            row += 1
            continue
        if row < length:
            gain += steps[first + path[row - 1], path[row]]
            gain -= steps[first + away[row - 1], away[row]]
            room = min(room, share[chosen[row], begin + row])
        moved = max(min(room, rate * gain / square), 0.0)
        for r in range(start, row):
            amount[r] = moved
        if moved > 0.0:
            slope += moved * gain
            longest = min(longest, room / moved)
    return slope, longest


@part
def _direct(length: int, weight: float, path: CodeArray, away: CodeArray, active: IntArray,
            amount: FloatArray, residual: FloatArray, flows: FloatArray) -> None:  # fmt: skip
    """Write the direction of a step."""
    for row in range(length):
        change = weight * amount[row]
        if active[row]:
            residual[row, path[row]] += change
            residual[row, away[row]] -= change
        elif row > 0:
            change = weight * amount[row - 1]
        if row > 0 and (active[row] or active[row - 1]):
            flows[path[row - 1], path[row]] += change
            flows[away[row - 1], away[row]] -= change


@part
def _share(begin: int, end: int, length: float, path: CodeArray, active: IntArray,
           amount: FloatArray, chosen: IntArray, edges: Any) -> None:  # fmt: skip
    """Move shares."""
    before, after, share, counts = edges
    for t in range(begin, end):
        row = t - begin
        moved = length * amount[row]
        if row > 0 and not active[row]:
            moved = length * amount[row - 1]
        if not moved > 0.0:
            continue
        last = path[row - 1] if row > 0 else 0
        place = counts[t]
        for e in range(counts[t]):
            if after[e, t] == path[row] and before[e, t] == last:
                place = e
        if place == counts[t]:
            before[place, t], after[place, t], share[place, t] = last, path[row], 0.0
            counts[t] += 1
        share[place, t] += moved
        gone = chosen[row]
        share[gone, t] -= moved
        if not share[gone, t] > NO_SHARE:
            counts[t] -= 1
            final = counts[t]
            before[gone, t], after[gone, t] = before[final, t], after[final, t]
            share[gone, t] = share[final, t]
