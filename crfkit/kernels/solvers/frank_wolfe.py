"""Steps of the dual of a margin on chains whose steps share their scores, many visits at a time.

A visit of a sequence finds the labelling that violates its margin most, and gives it some of the
share of another one, or of all. Arrays come in groups:

- `blocks`, the data: where the tokens of each batch, one sequence, start (B + 1,); its weight
  (B,); labels (N,); costs (K, W).
- `entries`: as `_chain_visits` says.
- `state`: labellings (M, N) of which each batch has some, their shares (M, B), how many there are
  (B,); the expected cost (B,), the part in the gap (B,).
- `vectors`: w (L,) and its rows (H, W), a scratch and its rows, bits (H, V).
- `own`, the workspace: room for dense features of a token (F + 1,), (F + 1,); scores (Q, W), best
  scores (Q, W), a path (Q,), residual (Q, W), whether it is not 0 (Q,), steps (K, W), values (M,).
"""

from __future__ import annotations

from typing import Any

from crfkit._types import CodeArray, FloatArray, IntArray
from crfkit.compiler.jit import inlined, kernel, part
from crfkit.kernels.chain.oracle import (
    add_cost,
    apply_scratch,
    best_path,
    gather_sequence,
    path_score,
    scatter_sequence,
)


@kernel
def chain_margin_steps(
    order: IntArray,  # (n,) batches
    pairwise: bool,  # whether steps take from one labelling, or from all
    most: int,  # steps in a visit
    enough: float,  # a visit ends where the part in the gap is this share of what it was
    c2: float,
    blocks: Any,
    entries: Any,
    state: Any,
    vectors: Any,
    own: Any,
) -> int:
    """Make steps; returns how many visits were made before one that needs more room.

    A step from `a` towards `b` raises the dual most at ``2 c2 slope / |f(b) - f(a)|^2``
    (Lacoste-Julien, Jaggi, Schmidt and Pletscher 2013, algorithm 4), or as far as shares allow.
    """
    offsets, (corners, _, counts, _, gaps) = blocks[0], state
    size: int = order.shape[0]
    for n in range(size):
        batch = order[n]
        if offsets[batch] == offsets[batch + 1]:
            continue
        if counts[batch] + most > corners.shape[0]:
            return n
        first = 0.0
        for tried in range(most):
            rises = _step(batch, pairwise, c2, blocks, entries, state, vectors, own)
            if tried == 0:
                first = gaps[batch]
            if not rises or gaps[batch] <= enough * first:
                break
    return size


@inlined
def _step(batch: int, pairwise: bool, c2: float, blocks: Any, entries: Any, state: Any,
          vectors: Any, own: Any) -> bool:  # fmt: skip
    """Make a step of a batch, if one raises the dual; returns whether one does."""
    offsets, weight, _, _ = blocks
    (corners, shares, counts, _, gaps), (flat, table, scratch, scratch_table, bits) = (
        state, vectors,
    )  # fmt: skip
    _, target, _, path, residual, active, flows, values = own
    size, begin, end = flows.shape[0], offsets[batch], offsets[batch + 1]
    best = weight[batch] * _look(begin, end, blocks, entries, flat, table, own)
    mean, away = 0.0, 0
    for c in range(counts[batch]):
        values[c] = weight[batch] * _corner_score(
            c, begin, end, target, table, table.shape[0] - size, corners
        )
        mean += shares[c, batch] * values[c]
        if values[c] < values[away]:
            away = c
    gaps[batch] = max(best - mean, 0.0)
    slope = best - values[away] if pairwise else best - mean
    rises: bool = slope > 0.0
    if rises:
        length = shares[away, batch] if pairwise else 1.0
        _find_active(begin, end, away, pairwise, counts[batch], corners, path, active)
        _direct(batch, begin, end, away, pairwise, weight[batch], state, path, residual, flows)
        square = scatter_sequence(
            begin, end, residual, active, flows, entries, bits, scratch, scratch_table
        )
        if 2.0 * c2 * slope < length * square:
            length = 2.0 * c2 * slope / square
        apply_scratch(
            begin, end, active, size, -length / (2.0 * c2), entries, scratch, scratch_table, flat,
            table,
        )  # fmt: skip
        _share(batch, begin, end, length, away, pairwise, blocks, state, path)
    return rises


@kernel
def chain_margin_losses(
    first: int,  # batches first:last
    last: int,
    blocks: Any,
    entries: Any,
    flat: FloatArray,  # (L,) weights
    table: FloatArray,  # (H, W) their rows
    own: Any,
    losses: FloatArray,  # (B,) out
) -> None:
    """``weight (max_y (cost(y) + score(y)) - score)`` of each batch."""
    offsets, weight, labels, _ = blocks
    target, size = own[1], own[6].shape[0]
    for batch in range(first, last):
        begin, end = offsets[batch], offsets[batch + 1]
        losses[batch] = 0.0
        if begin < end:
            best = _look(begin, end, blocks, entries, flat, table, own)
            first_step = table.shape[0] - size
            gold = path_score(end - begin, target, table, first_step, labels, begin)
            losses[batch] = weight[batch] * max(best - gold, 0.0)


@inlined
def _look(begin: int, end: int, blocks: Any, entries: Any, flat: FloatArray, table: FloatArray,
          own: Any) -> float:  # fmt: skip
    """Find the best path of a sequence where costs are added to its scores; returns its score."""
    _, _, labels, cost = blocks
    listed, target, room, path, _, _, flows, _ = own
    size = flows.shape[0]
    gather_sequence(begin, end, flat, table, size, entries, listed, target)
    for t in range(begin, end):
        add_cost(t - begin, labels[t], cost, target)
    return best_path(end - begin, target, table, table.shape[0] - size, size, room, path)


@part
def _corner_score(c: int, begin: int, end: int, scores: FloatArray, steps: FloatArray, first: int,
                  corners: Any) -> float:  # fmt: skip
    """Return the score of a labelling that a batch has."""
    value = 0.0
    for t in range(begin, end):
        value += scores[t - begin, corners[c, t]]
        if t > begin:
            value += steps[first + corners[c, t - 1], corners[c, t]]
    return value


@inlined
def _direct(batch: int, begin: int, end: int, away: int, pairwise: bool, weight: float, state: Any,
            path: CodeArray, residual: FloatArray, flows: FloatArray) -> None:  # fmt: skip
    """Write the direction of a step: what was found, less what it takes from."""
    corners, shares, counts, _, _ = state
    _clear(end - begin, residual, flows)
    _count_path(begin, end, weight, path, residual, flows)
    if pairwise:
        _count_corner(away, begin, end, -weight, corners, residual, flows)
    else:
        for c in range(counts[batch]):
            _count_corner(c, begin, end, -weight * shares[c, batch], corners, residual, flows)


@part
def _clear(length: int, residual: FloatArray, flows: FloatArray) -> None:
    """Set counts to 0."""
    for row in range(length):
        for k in range(residual.shape[1]):
            residual[row, k] = 0.0
    for i in range(flows.shape[0]):
        for j in range(flows.shape[1]):
            flows[i, j] = 0.0


@part
def _count_path(begin: int, end: int, change: float, path: CodeArray, residual: FloatArray,
                flows: FloatArray) -> None:  # fmt: skip
    """Add a change to the parts on a path."""
    for row in range(end - begin):
        residual[row, path[row]] += change
        if row:
            flows[path[row - 1], path[row]] += change


@part
def _count_corner(c: int, begin: int, end: int, change: float, corners: Any,
                  residual: FloatArray, flows: FloatArray) -> None:  # fmt: skip
    """Add a change to the parts on a labelling that a batch has."""
    for t in range(begin, end):
        residual[t - begin, corners[c, t]] += change
        if t > begin:
            flows[corners[c, t - 1], corners[c, t]] += change


@part
def _find_active(begin: int, end: int, away: int, pairwise: bool, count: int, corners: Any,
                 path: CodeArray, active: IntArray) -> None:  # fmt: skip
    """Find the tokens that a step changes."""
    for t in range(begin, end):
        row = t - begin
        active[row] = 1 if corners[away, t] != path[row] else 0
        if not pairwise:
            for c in range(count):
                if corners[c, t] != path[row]:
                    active[row] = 1


@inlined
def _share(batch: int, begin: int, end: int, length: float, away: int, pairwise: bool,
           blocks: Any, state: Any, path: CodeArray) -> None:  # fmt: skip
    """Give the labelling that was found some of the shares of others."""
    (_, weight, labels, cost), (corners, shares, counts, levels, _) = blocks, state
    level, before = 0.0, 0.0
    for t in range(begin, end):
        level += cost[labels[t], path[t - begin]]
        before += cost[labels[t], corners[away, t]]
    level, before = weight[batch] * level, weight[batch] * before
    place = _find(batch, begin, end, path, corners, counts)
    if place == counts[batch]:
        for t in range(begin, end):
            corners[place, t] = path[t - begin]
        shares[place, batch] = 0.0
        counts[batch] += 1
    if pairwise:
        levels[batch] += length * (level - before)
        shares[away, batch] -= length
    else:
        levels[batch] += length * (level - levels[batch])
        for c in range(counts[batch]):
            shares[c, batch] *= 1.0 - length
    shares[place, batch] += length
    for c in range(counts[batch] - 1, -1, -1):
        if not shares[c, batch] > 0.0:
            counts[batch] -= 1
            shares[c, batch] = shares[counts[batch], batch]
            for t in range(begin, end):
                corners[c, t] = corners[counts[batch], t]


@part
def _find(batch: int, begin: int, end: int, path: CodeArray, corners: Any, counts: Any) -> int:
    """Return which of the labellings of a batch a path is; their number if none."""
    count: int = counts[batch]
    for c in range(count):
        same = True
        for t in range(begin, end):
            if corners[c, t] != path[t - begin]:
                same = False
                break
        if same:
            return c
    return count
