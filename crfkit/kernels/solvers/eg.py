"""Updates of the dual for batches on chains, whole runs of them in compiled code.

An update computes the new distributions of a batch, moves the weights by what that changes, and
either keeps the distributions or moves the weights back.

Arrays come in groups, of which each kernel reads some:

- `entries`, the data: the first sequence of each batch (B + 1,), offsets (S + 1,) and weights
  (S,) of sequences; three groups from `batches_deal`: tokens with their rows, cells, and rows with
  their tokens; `step`; 0, 1, 2, ... (Q + K,) and a 1.
- `state`, the distributions: scores of labels (N, K), of 32 bits, and the same flat; their expected
  counts, in the same way; scores and expected counts of steps (B K, K); entropies, rates and gaps
  (B,).
- `vectors`: weights that are read (L,) and their rows (H, W), the last K for steps; `dual` (L,) and
  its rows; weights that are written (L,) and their rows; bits (H, V) of the weights in rows. Where
  the threshold is 0, all three may be the same.
- `shared`, of the batch at hand: mixed scores (Q, K), flat, to read, and their direction; expected
  counts (Q, K) and flat; their change (Q + K, W), the last K for steps, and flat; expected steps
  (K, K).
- `own`, the workspace: scores of a batch (Q, W), flat, and without padding (Q, K), to read, with
  counts (Q, K); direction and mixture of the scores of steps, their exponentials, these
  turned around (K, K), and the largest score (1,); all but the first to read; expected steps in
  two tables; and room for the recurrences.

What kernels of other modules read stands there twice, once read-only: see `frozen`.

``Q``: tokens of the largest batch. ``W``: K, padded to whole vectors.
"""

from __future__ import annotations

import math
from typing import Any

from crfkit._types import CodeArray, FloatArray, IntArray
from crfkit.compiler.jit import inlined, kernel
from crfkit.compiler.simd import WIDTH, fill, prefetch, prefetch_at, total
from crfkit.kernels._strips import strips_add
from crfkit.kernels.chain._parts import count_steps, loss_of_part, sum_part
from crfkit.kernels.design.gather import CELLS_AHEAD, MOST_ASKED, ROWS_AHEAD
from crfkit.kernels.solvers._eg_rows import rows_change, rows_mix, rows_move

# A rate is changed by these factors at most; where a step did not raise the dual, by the last.
SLOWER, FASTER, FAR_SLOWER = 0.5, 1.1, 0.1
TINY = 1e-300


@kernel
def chain_dual_steps(
    order: IntArray,  # (n,) batches
    c2: float,
    threshold: float,
    forced: bool,  # keep each update, whatever becomes of the dual
    entries: Any,
    state: Any,
    vectors: Any,
    shared: Any,
    own: Any,
) -> None:
    """Update each batch: ``(1 - r) scores + r scores(w)``, if the dual rises."""
    rates = state[3][1]
    for n in range(order.shape[0]):
        batch = order[n]
        entropy, slope = _propose(batch, entries, state, vectors, shared, own)
        if not (forced or abs(entropy) + abs(slope) < math.inf):
            rates[batch] *= FAR_SLOWER
            continue
        square = _move(batch, 0.5 / c2, threshold, entries, vectors, shared)
        if _decide(batch, entropy, slope, c2 * square, forced, state):
            _keep(batch, entries, state, shared, own)
        else:
            _move(batch, -0.5 / c2, threshold, entries, vectors, shared)


@kernel
def chain_dual_losses(
    first: int,  # batches first:last
    last: int,
    labels: CodeArray,  # (N,)
    entries: Any,
    vectors: Any,
    own: Any,
    losses: FloatArray,  # (B,) out
) -> None:
    """Compute ``sum_s weight_s (log Z_s - score_s)`` of each batch."""
    heads, offsets, _ = entries[0]
    target, _, scores, scores_read, counts = own[0]
    pair = own[1][1]
    table = vectors[1]
    size = pair.shape[0]
    for batch in range(first, last):
        begin = offsets[heads[batch]]
        _gather(batch, entries, vectors, own)
        for i in range(size):
            for j in range(size):
                pair[i, j] = table[table.shape[0] - size + i, j]
        for row in range(offsets[heads[batch + 1]] - begin):
            for k in range(size):
                scores[row, k] = target[row, k]
        losses[batch] = loss_of_part(batch, labels, entries, scores, scores_read, counts, own)


@inlined
def _propose(batch: int, entries: Any, state: Any, vectors: Any, shared: Any,
             own: Any) -> tuple[float, float]:  # fmt: skip
    """Mix the scores of a batch with those of the weights, and count what that changes.

    Returns the entropy after it, and by how much the dual would rise if it were linear.
    """
    heads, offsets, _ = entries[0]
    scores, expected, (pair_scores, pair_expected) = state[0][0], state[1][0], state[2]
    moved, _, moved_read, direction = shared[0]
    counts, residual, flows = shared[1][0], shared[2][0], shared[3]
    target, pair_direction, pair = own[0][0], own[1][0], own[1][1]
    begin, end = offsets[heads[batch]], offsets[heads[batch + 1]]
    rate = state[3][1][batch]
    _gather(batch, entries, vectors, own)
    for t in range(begin, end):
        rows_mix(scores, t, target, t - begin, rate, direction, moved, t - begin)
    table = vectors[1]
    size = pair.shape[0]
    for i in range(size):
        row = table.shape[0] - size + i
        rows_mix(pair_scores, batch * size + i, table, row, rate, pair_direction, pair, i)
    entropy = sum_part(batch, 0, entries, moved, moved_read, counts, own)
    count_steps(0, flows, own)
    slope = 0.0
    for t in range(begin, end):
        row = t - begin
        more, steeper = rows_change(counts, row, expected, t, moved, direction, residual,
                                    row)  # fmt: skip
        entropy -= more
        slope += steeper
    for i in range(size):
        more, steeper = rows_change(
            flows, i, pair_expected, batch * size + i, pair, pair_direction, residual,
            residual.shape[0] - size + i,
        )  # fmt: skip
        entropy -= more
        slope += steeper
    return entropy, slope


@kernel
def _gather(batch: int, entries: Any, vectors: Any, own: Any) -> None:
    """``target[t - begin, k] = sum_a x[t, a] w[a, k]`` for the tokens of a batch."""
    (heads, offsets, _), (row_ptr, found, factor), cell_lists = entries[0], entries[1], entries[2]
    cell_ptr, cells, places, values = cell_lists
    step, read, table = entries[4], vectors[0], vectors[1]
    target, target_flat, _, _, _ = own[0]
    begin, end = offsets[heads[batch]], offsets[heads[batch + 1]]
    for n in range((end - begin) * target.shape[1]):
        target_flat[n] = 0.0
    end_of_cells = cell_ptr[batch + 1]
    for n in range(cell_ptr[batch], end_of_cells):
        prefetch_at(read, places[min(n + CELLS_AHEAD, end_of_cells - 1)])
        target_flat[cells[n]] += values[n * step] * read[places[n]]
    for t in range(begin, end):
        strips_add(found, factor, step, row_ptr[t], row_ptr[t + 1], table, t - begin, target)


@kernel
def _move(batch: int, factor: float, threshold: float, entries: Any, vectors: Any,
          shared: Any) -> float:  # fmt: skip
    """``v -= factor change``, ``w = sign(v) max(|v| - threshold, 0)``; return how |w|^2 rises."""
    _, _, cell_lists, row_lists, step, counting, one = entries
    cell_ptr, cells, places, values = cell_lists
    batch_ptr, columns, col_ptr, rows, turned = row_lists
    _, _, dual, dual_table, w, w_table, bits = vectors
    (residual, residual_flat), size = shared[2], shared[3].shape[0]
    rise, rises = 0.0, fill(0.0)
    end = batch_ptr[batch + 1]
    for c in range(batch_ptr[batch], end):
        soon = columns[min(c + ROWS_AHEAD, end - 1)]
        for k in range(0, min(w_table.shape[1], MOST_ASKED), WIDTH):
            prefetch(dual_table, soon, k)
            prefetch(w_table, soon, k)
        rises = rows_move(rows, turned, step, col_ptr[c], col_ptr[c + 1], residual, bits, -factor,
                          threshold, columns[c], dual_table, w_table, rises)  # fmt: skip
    end = cell_ptr[batch + 1]
    for n in range(cell_ptr[batch], end):
        soon = places[min(n + CELLS_AHEAD, end - 1)]
        prefetch_at(dual, soon)
        prefetch_at(w, soon)
        p = places[n]
        before = w[p]
        value = dual[p] - factor * (values[n * step] * residual_flat[cells[n]])
        dual[p] = value
        after = math.copysign(max(abs(value) - threshold, 0.0), value)
        w[p] = after
        rise += (after - before) * (after + before)
    for i in range(size):
        row = residual.shape[0] - size + i
        rises = rows_move(counting, one, 0, row, row + 1, residual, bits, -factor, threshold,
                          w_table.shape[0] - size + i, dual_table, w_table, rises)  # fmt: skip
    return rise + total(rises)


@inlined
def _decide(batch: int, entropy: float, slope: float, square: float, forced: bool,
            state: Any) -> bool:  # fmt: skip
    """Return whether an update is kept: if it raises the dual; choose the next rate."""
    entropies, rates, gaps = state[3]
    rise = entropy - entropies[batch] - square
    # The gap is half the slope all the way to the scores of the weights.
    gaps[batch] = max(0.5 * slope / max(rates[batch], TINY), 0.0)
    # A parabola with this slope and this rise is highest at half its slope.
    factor = 0.5 * slope / max(slope - rise, 1e-3 * slope, TINY)
    kept = forced or rise >= 0.0
    if kept:
        entropies[batch] = entropy
        factor = min(max(factor, SLOWER), FASTER)
    else:
        factor = min(max(factor, FAR_SLOWER), SLOWER)
    if not forced:
        rates[batch] = min(rates[batch] * factor, 1.0)
    return kept


@inlined
def _keep(batch: int, entries: Any, state: Any, shared: Any, own: Any) -> None:
    """Make the distributions of a batch those that were computed."""
    heads, offsets, _ = entries[0]
    scores, expected, (pair_scores, pair_expected) = state[0][1], state[1][1], state[2]
    moved, counts, flows, pair = shared[0][1], shared[1][1], shared[3], own[1][1]
    size = flows.shape[0]
    first = offsets[heads[batch]] * size
    for n in range(first, offsets[heads[batch + 1]] * size):
        scores[n] = moved[n - first]
        expected[n] = counts[n - first]
    for i in range(size):
        for j in range(size):
            pair_scores[batch * size + i, j] = pair[i, j]
            pair_expected[batch * size + i, j] = flows[i, j]
