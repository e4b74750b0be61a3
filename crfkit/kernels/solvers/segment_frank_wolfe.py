"""Steps of the dual of a margin on segments whose steps share their scores, many at a time.

What a visit does is what `chain_margin` says; arrays come in groups:

- `blocks`, the data: where the tokens of each batch, one sequence, start (B + 1,); its weight
  (B,); codes (N,); costs (2 K, 2 K).
- `model`, `own` and `noted`: as `_segment_visits` says.
- `state`: segmentations (M, N) of which each batch has some, their shares (M, B), how many there
  are (B,); the expected cost (B,), the part in the gap (B,).
- `vectors`: w (P,), and a scratch of zeros (P,).
- `work`: `own`, `noted`, and room for the codes (Q,) of a segmentation that a batch has, and for
  values (M,).

The level of a segmentation is its cost, and how much more is added to its score than to that of
the true one; the sum of the level and the rise of the score that is learned is the loss.
"""

from __future__ import annotations

import math
from typing import Any

from crfkit._types import CodeArray, FloatArray, IntArray
from crfkit.compiler.jit import inlined, kernel, part
from crfkit.kernels.chain.sum import OK
from crfkit.kernels.semimarkov.oracle import (
    added_score,
    look_at,
    note_difference,
    place_pairs,
    segmentation_score,
)
from crfkit.kernels.solvers.frank_wolfe import _find


@kernel
def segment_margin_steps(
    order: IntArray,  # (n,) batches
    pairwise: bool,  # whether steps take from one segmentation, or from all
    most: int,  # steps in a visit
    enough: float,  # a visit ends where the part in the gap is this share of what it was
    c2: float,
    blocks: Any,
    model: Any,
    state: Any,
    vectors: Any,
    work: Any,
) -> tuple[int, bool]:
    """Make steps, whose lengths are those of `chain_margin_steps`.

    Returns how many visits were made before one that needs more room, and whether it is one where
    the true segmentation is forbidden, or all are.
    """
    offsets, (corners, _, counts, _, gaps), own = blocks[0], state, work[0]
    place_pairs(vectors[0], model[2], model[3], model[6], own)
    size: int = order.shape[0]
    for n in range(size):
        batch = order[n]
        if offsets[batch] == offsets[batch + 1]:
            continue
        if counts[batch] + most > corners.shape[0]:
            return n, False
        first = 0.0
        for tried in range(most):
            found = _find_worst(batch, blocks, model, vectors[0], own)
            if not found >= 0.0:
                return n, True
            rises = _step(batch, found, pairwise, c2, blocks, model, state, vectors, work)
            if tried == 0:
                first = gaps[batch]
            if not rises or gaps[batch] <= enough * first:
                break
    return size, False


@kernel
def segment_margin_losses(
    first: int,  # batches first:last
    last: int,
    blocks: Any,
    model: Any,
    flat: FloatArray,  # (P,) weights
    own: Any,
    losses: FloatArray,  # (B,) out
) -> int:
    """``weight max_y (cost(y) + score(y) - score)`` of each batch.

    Returns the first one where the true segmentation is forbidden, or all are; else -1.
    """
    offsets, weight, _, _ = blocks
    place_pairs(flat, model[2], model[3], model[6], own)
    for batch in range(first, last):
        losses[batch] = 0.0
        if offsets[batch] < offsets[batch + 1]:
            found = _find_worst(batch, blocks, model, flat, own)
            if not found >= 0.0:
                return batch
            losses[batch] = weight[batch] * found
    return -1


@inlined
def _find_worst(batch: int, blocks: Any, model: Any, flat: FloatArray, own: Any) -> float:
    """Find the segmentation of the largest loss, the true one if it is 0; returns the loss.

    It is NaN where the true segmentation is forbidden, or all are.
    """
    offsets, _, labels, cost = blocks
    begin, end, path = offsets[batch], offsets[batch + 1], own[4]
    loss, gold = math.nan, 0.0
    if look_at(begin, end, flat, labels, cost, model, own) == OK:
        gold = segmentation_score(begin, end, labels, begin, model[5], own)
        if gold > -math.inf:
            loss = segmentation_score(begin, end, path, 0, model[5], own) - gold
            loss += _cost(begin, end, labels, path, cost)
            if loss <= 0.0:
                loss = 0.0
                for t in range(begin, end):
                    path[t - begin] = labels[t]
    return loss


@inlined
def _step(batch: int, found: float, pairwise: bool, c2: float, blocks: Any, model: Any, state: Any,
          vectors: Any, work: Any) -> bool:  # fmt: skip
    """Make a step of a batch, if one raises the dual; returns whether one does."""
    shares, gaps, values, count = state[1], state[4], work[2][1], state[2][batch]
    best, mean, away = blocks[1][batch] * found, 0.0, 0
    _evaluate(batch, blocks, model, state, work)
    for c in range(count):
        mean += shares[c, batch] * values[c]
        if values[c] < values[away]:
            away = c
    gaps[batch] = max(best - mean, 0.0)
    slope = best - values[away] if pairwise else best - mean
    rises: bool = slope > 0.0
    if rises:
        length, first, last = 1.0, 0, count
        if pairwise:
            length, first, last = shares[away, batch], away, away + 1
        square = _direct(batch, first, last, pairwise, blocks, model, state, vectors, work)
        if 2.0 * c2 * slope < length * square:
            length = 2.0 * c2 * slope / square
        _apply(batch, first, last, -length / (2.0 * c2), blocks, model, state, vectors, work)
        place_pairs(vectors[0], model[2], model[3], model[6], work[0])
        _share(batch, length, away, pairwise, blocks, model, state, work)
    return rises


@part
def _take(batch: int, c: int, blocks: Any, state: Any, work: Any) -> None:
    """Copy a segmentation that a batch has."""
    offsets, corners, codes = blocks[0], state[0], work[2][0]
    for t in range(offsets[batch], offsets[batch + 1]):
        codes[t - offsets[batch]] = corners[c, t]


@inlined
def _evaluate(batch: int, blocks: Any, model: Any, state: Any, work: Any) -> None:
    """Write the losses of all segmentations that a batch has, weighted."""
    (offsets, weight, labels, cost), (own, _, (codes, values)) = blocks, work
    begin, end = offsets[batch], offsets[batch + 1]
    gold = segmentation_score(begin, end, labels, begin, model[5], own)
    for c in range(state[2][batch]):
        _take(batch, c, blocks, state, work)
        loss = segmentation_score(begin, end, codes, 0, model[5], own) - gold
        values[c] = weight[batch] * (loss + _cost(begin, end, labels, codes, cost))


@part
def _cost(begin: int, end: int, labels: CodeArray, codes: CodeArray, cost: FloatArray) -> float:
    """``sum_t cost(labels_t, codes_t)``."""
    total = 0.0
    for t in range(begin, end):
        total += cost[labels[t], codes[t - begin]]
    return total


@inlined
def _list(batch: int, c: int, blocks: Any, model: Any, state: Any, work: Any) -> int:
    """List the features of what was found, less those of a segmentation that a batch has."""
    offsets, (own, noted, (codes, _)) = blocks[0], work
    _take(batch, c, blocks, state, work)
    size: int = note_difference(
        offsets[batch], offsets[batch + 1], own[4], 0, codes, 0, model, noted
    )
    return size


@inlined
def _direct(batch: int, first: int, last: int, pairwise: bool, blocks: Any, model: Any, state: Any,
            vectors: Any, work: Any) -> float:  # fmt: skip
    """Write the direction of a step, what was found less what it takes from; returns its square.

    It takes from the segmentations first:last, from each in proportion to its share.
    """
    weight, shares, scratch, (_, places, changes) = blocks[1][batch], state[1], vectors[1], work[1]
    square = 0.0
    for c in range(first, last):
        level = weight if pairwise else weight * shares[c, batch]
        size = _list(batch, c, blocks, model, state, work)
        for n in range(size):
            p, change = places[n], level * changes[n]
            square += change * (change + 2.0 * scratch[p])
            scratch[p] += change
    return square


@inlined
def _apply(batch: int, first: int, last: int, factor: float, blocks: Any, model: Any, state: Any,
           vectors: Any, work: Any) -> None:  # fmt: skip
    """``w += factor scratch`` where the direction is not 0; the scratch is 0 then."""
    (flat, scratch), places = vectors, work[1][1]
    for c in range(first, last):
        size = _list(batch, c, blocks, model, state, work)
        for n in range(size):
            p = places[n]
            flat[p] += factor * scratch[p]
            scratch[p] = 0.0


@inlined
def _share(batch: int, length: float, away: int, pairwise: bool, blocks: Any, model: Any,
           state: Any, work: Any) -> None:  # fmt: skip
    """Give the segmentation that was found some of the shares of others."""
    (corners, shares, counts, levels, _), (own, _, (codes, _)) = state, work
    begin, end, path = blocks[0][batch], blocks[0][batch + 1], own[4]
    level = _level(batch, path, blocks, model[6])
    if pairwise:
        _take(batch, away, blocks, state, work)
        levels[batch] += length * (level - _level(batch, codes, blocks, model[6]))
        shares[away, batch] -= length
    else:
        levels[batch] += length * (level - levels[batch])
        for c in range(counts[batch]):
            shares[c, batch] *= 1.0 - length
    place = _find(batch, begin, end, path, corners, counts)
    if place == counts[batch]:
        for t in range(begin, end):
            corners[place, t] = path[t - begin]
        shares[place, batch] = 0.0
        counts[batch] += 1
    shares[place, batch] += length
    _drop(batch, begin, end, corners, shares, counts)


@part
def _level(batch: int, codes: CodeArray, blocks: Any, added: Any) -> float:
    """Return the cost of a segmentation, and how much more is added to its score, weighted."""
    offsets, weight, labels, cost = blocks
    begin, end, size = offsets[batch], offsets[batch + 1], cost.shape[0] // 2
    level = _cost(begin, end, labels, codes, cost)
    level += added_score(end - begin, codes, 0, size, added)
    level -= added_score(end - begin, labels, begin, size, added)
    change: float = weight[batch] * level
    return change


@part
def _drop(batch: int, begin: int, end: int, corners: Any, shares: Any, counts: Any) -> None:
    """Forget what has no share left; the others keep their order."""
    kept = 0
    for c in range(counts[batch]):
        if shares[c, batch] > 0.0:
            if kept < c:
                shares[kept, batch] = shares[c, batch]
                for t in range(begin, end):
                    corners[kept, t] = corners[c, t]
            kept += 1
    counts[batch] = kept
