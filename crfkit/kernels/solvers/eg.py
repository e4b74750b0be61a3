"""Steps of the dual for batches on chains, by several threads that never leave compiled code.

A step has three phases, each of ``SHARES`` items that any thread may take: it computes the new
distributions of the parts of a batch, then moves the shares of the weights, then keeps the parts
or moves the shares back. The items are numbered through, and each thread takes the next one: a
thread that comes late, or not at all, keeps nobody waiting, and the results do not depend on who
takes what. Sums over items are made in order, by the thread that finishes the last one.

Arrays come in groups, of which each kernel reads some:

- `entries`, the data: the first sequence of each part (B SHARES + 1,), offsets (S + 1,) and weights
  (S,) of sequences; three groups from `shares_deal`: tokens with their rows, cells, and rows with
  their tokens; `step`; 0, 1, 2, ... (Q + K,) and a 1.
- `state`, the distributions: scores of labels (N, K), of 32 bits, and the same flat; their expected
  counts, in the same way; scores and expected counts of steps (B K, K); entropies, rates and gaps
  (B,).
- `vectors`: weights that are read (L,) and their rows (H, W), the last K for steps; `dual` (L,) and
  its rows; weights that are written (L,) and their rows; bits (H, V) of the weights in rows. Where
  the threshold is 0, all three may be the same.
- `team`, of the batch that the threads are at: numbers (N_NUMBERS,); sums (SHARES + 1, N_SUMS);
  mixed scores (Q, K), flat, to read, and their direction; expected counts (Q, K) and flat; their
  change (Q + K, W), the last K for steps, and flat; expected steps by part (SHARES K, K), all
  together (K, K), and mixed scores of steps (K, K).
- `own`, the workspace of a thread: scores of a part (T, W), flat, and without padding (T, K), to
  read, with counts (T, K); direction and mixture of the scores of steps, their exponentials, these
  turned around (K, K), and the largest score (1,); all but the first to read; expected steps in
  two tables; room for the recurrences; and where the code of these begins (see `apart`).

What kernels of other modules read stands there twice, once read-only: see `frozen`.

``T``, ``Q``: tokens of the largest part and of the largest batch. ``W``: K, padded to whole
vectors.
"""

from __future__ import annotations

import math
from typing import Any

from crfkit._types import CodeArray, FloatArray, IntArray
from crfkit.compiler.atomic import claim, look, publish, take
from crfkit.compiler.jit import inlined, kernel
from crfkit.compiler.simd import WIDTH, fill, prefetch, prefetch_at, total
from crfkit.kernels._strips import strips_add
from crfkit.kernels.chain._parts import count_steps, loss_of_part, sum_part
from crfkit.kernels.design.gather import CELLS_AHEAD, MOST_ASKED, ROWS_AHEAD
from crfkit.kernels.design.partition import SHARES
from crfkit.kernels.solvers._eg_rows import rows_change, rows_mix, rows_move

# Numbers that threads share, each on a line of a cache: the next item, how many are finished, the
# phase that has begun, and what becomes of the step at hand.
NEXT, FINISHED, OPEN, FATE = 0, 8, 16, 24
N_NUMBERS = 32

COMPUTE, MOVE = 0, 1  # the third phase is all the same for others
PHASES = 3

# Fates of a step.
REFUSED, UNDONE, KEPT = 0, 1, 2

# A thread that finds nothing to do for so many looks, tens of microseconds, goes to sleep.
LOOKS = 1 << 16

# A rate is changed by these factors at most; where a step did not raise the dual, by the last.
SLOWER, FASTER, FAR_SLOWER = 0.5, 1.1, 0.1
TINY = 1e-300

# Columns of the sums of items: log Z, moved . counts, change . direction, rise of |w|^2.
LOG_Z, INNER, SLOPE, RISE = 0, 1, 2, 3
N_SUMS = 4


@kernel
def chain_dual_steps(
    order: IntArray,  # (n,) batches
    c2: float,
    threshold: float,
    forced: bool,  # take each step, whatever becomes of the dual
    entries: Any,
    state: Any,
    vectors: Any,
    team: Any,
    own: Any,
) -> bool:
    """Make a step of each batch: ``(1 - r) scores + r scores(w)``, if the dual rises.

    Returns whether all items are taken; if not, others take long: call again, soon.
    """
    numbers = team[0]
    looks = 0
    while True:
        ticket = look(numbers, NEXT)
        phase = ticket // SHARES
        if phase == order.shape[0] * PHASES:
            return True
        if look(numbers, OPEN) < phase:
            looks += 1
            if looks == LOOKS:
                return False
            continue
        if not claim(numbers, NEXT, ticket):
            continue
        looks = 0
        batch, item = order[phase // PHASES], ticket % SHARES
        if phase % PHASES == COMPUTE:
            _compute(batch, item, entries, state, vectors, team, own)
        elif phase % PHASES == MOVE:
            if numbers[FATE] != REFUSED:
                _move(batch, item, 0.5 / c2, threshold, entries, vectors, team)
        elif numbers[FATE] == KEPT:
            _keep(batch, item, entries, state, team)
        elif numbers[FATE] == UNDONE:
            _move(batch, item, -0.5 / c2, threshold, entries, vectors, team)
        if take(numbers, FINISHED) + 1 == (phase + 1) * SHARES:
            if phase % PHASES == COMPUTE:
                _complete(batch, forced, state, team, own)
            elif phase % PHASES == MOVE:
                _decide(batch, c2, forced, state, team)
            publish(numbers, OPEN, phase + 1)


@kernel
def chain_dual_losses(
    first: int,  # parts first:last
    last: int,
    labels: CodeArray,  # (N,)
    entries: Any,
    vectors: Any,
    own: Any,
    losses: FloatArray,  # (B SHARES,) out
) -> None:
    """Compute ``sum_s weight_s (log Z_s - score_s)`` of each part."""
    parts, offsets, _ = entries[0]
    target, _, scores, scores_read, counts = own[0]
    pair = own[1][1]
    table = vectors[1]
    size = pair.shape[0]
    for part in range(first, last):
        begin = offsets[parts[part]]
        _gather(part, entries, vectors, own)
        for i in range(size):
            for j in range(size):
                pair[i, j] = table[table.shape[0] - size + i, j]
        for row in range(offsets[parts[part + 1]] - begin):
            for k in range(size):
                scores[row, k] = target[row, k]
        losses[part] = loss_of_part(part, labels, entries, scores, scores_read, counts, own)


@inlined
def _compute(batch: int, item: int, entries: Any, state: Any, vectors: Any, team: Any,
             own: Any) -> None:  # fmt: skip
    """Mix the scores of a part of a batch with those of the weights, and count what that changes.

    Each part has the same mixture of the scores of steps, in its own place.
    """
    parts, offsets, _ = entries[0]
    scores, expected, pair_scores, rates = state[0][0], state[1][0], state[2][0], state[3][1]
    sums, (moved, _, moved_read, direction) = team[1], team[2]
    counts, residual, flows = team[3][0], team[4][0], team[5][0]
    target, pair_direction, pair = own[0][0], own[1][0], own[1][1]
    part = batch * SHARES + item
    begin, end = offsets[parts[part]], offsets[parts[part + 1]]
    base = begin - offsets[parts[batch * SHARES]]
    rate = rates[batch]
    _gather(part, entries, vectors, own)
    for t in range(begin, end):
        rows_mix(scores, t, target, t - begin, rate, direction, moved, base + t - begin)
    table = vectors[1]
    size = pair.shape[0]
    for i in range(size):
        row = table.shape[0] - size + i
        rows_mix(pair_scores, batch * size + i, table, row, rate, pair_direction, pair, i)
    sums[item, LOG_Z] = sum_part(part, base, entries, moved, moved_read, counts, own)
    count_steps(item, flows, own)
    inner, slope = 0.0, 0.0
    for t in range(begin, end):
        row = base + t - begin
        more, steeper = rows_change(counts, row, expected, t, moved, direction, residual,
                                    row)  # fmt: skip
        inner += more
        slope += steeper
    sums[item, INNER], sums[item, SLOPE] = inner, slope


@kernel
def _gather(part: int, entries: Any, vectors: Any, own: Any) -> None:
    """``target[t - begin, k] = sum_a x[t, a] w[a, k]`` for the tokens of a part."""
    (parts, offsets, _), (row_ptr, found, factor), cell_lists = entries[0], entries[1], entries[2]
    cell_ptr, cells, places, values = cell_lists
    step, read, table = entries[4], vectors[0], vectors[1]
    target, target_flat, _, _, _ = own[0]
    begin, end = offsets[parts[part]], offsets[parts[part + 1]]
    for n in range((end - begin) * target.shape[1]):
        target_flat[n] = 0.0
    # Cells are numbered in the batch, from its first token on.
    skipped = (begin - offsets[parts[part - part % SHARES]]) * target.shape[1]
    end_of_cells = cell_ptr[(part + 1) * SHARES]
    for n in range(cell_ptr[part * SHARES], end_of_cells):
        prefetch_at(read, places[min(n + CELLS_AHEAD, end_of_cells - 1)])
        target_flat[cells[n] - skipped] += values[n * step] * read[places[n]]
    for t in range(begin, end):
        strips_add(found, factor, step, row_ptr[t], row_ptr[t + 1], table, t - begin, target)


@inlined
def _complete(batch: int, forced: bool, state: Any, team: Any, own: Any) -> None:
    """Add up the steps of all parts; a step to what is not finite is refused.

    By a thread that has computed a part: its mixture of the scores of steps is that of the batch.
    """
    numbers, sums, residual = team[0], team[1], team[4][0]
    flows, pair_counts, pair_moved = team[5]
    pair_direction, pair, pair_expected = own[1][0], own[1][1], state[2][1]
    size = pair.shape[0]
    sums[SHARES, LOG_Z], sums[SHARES, INNER], sums[SHARES, SLOPE] = 0.0, 0.0, 0.0
    for i in range(size):
        for j in range(size):
            pair_moved[i, j] = pair[i, j]
            pair_counts[i, j] = 0.0
            for item in range(SHARES):
                pair_counts[i, j] += flows[item * size + i, j]
        inner, slope = rows_change(
            pair_counts, i, pair_expected, batch * size + i, pair, pair_direction, residual,
            residual.shape[0] - size + i,
        )  # fmt: skip
        sums[SHARES, INNER] += inner
        sums[SHARES, SLOPE] += slope
    size_of_all = 0.0
    for item in range(SHARES + 1):
        sums[item, RISE] = 0.0
        size_of_all += abs(sums[item, LOG_Z]) + abs(sums[item, INNER]) + abs(sums[item, SLOPE])
    numbers[FATE] = KEPT if forced or size_of_all < math.inf else REFUSED


@kernel
def _move(batch: int, share: int, factor: float, threshold: float, entries: Any, vectors: Any,
          team: Any) -> None:  # fmt: skip
    """``v -= factor change``, ``w = sign(v) max(|v| - threshold, 0)``, for a share of a batch."""
    _, _, cell_lists, row_lists, step, counting, one = entries
    cell_ptr, cells, places, values = cell_lists
    columns, col_ptr, share_ptr, rows, turned = row_lists
    _, _, dual, dual_table, w, w_table, bits = vectors
    sums, (residual, residual_flat) = team[1], team[4]
    item = batch * SHARES + share
    rise, rises = 0.0, fill(0.0)
    end = share_ptr[item + 1]
    for c in range(share_ptr[item], end):
        soon = columns[min(c + ROWS_AHEAD, end - 1)]
        for k in range(0, min(w_table.shape[1], MOST_ASKED), WIDTH):
            prefetch(dual_table, soon, k)
            prefetch(w_table, soon, k)
        rises = rows_move(rows, turned, step, col_ptr[c], col_ptr[c + 1], residual, bits, -factor,
                          threshold, columns[c], dual_table, w_table, rises)  # fmt: skip
    for part in range(batch * SHARES, (batch + 1) * SHARES):
        end = cell_ptr[part * SHARES + share + 1]
        for n in range(cell_ptr[part * SHARES + share], end):
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
    if share == 0:
        size = team[5][1].shape[0]
        for i in range(size):
            row = residual.shape[0] - size + i
            rises = rows_move(counting, one, 0, row, row + 1, residual, bits, -factor, threshold,
                              w_table.shape[0] - size + i, dual_table, w_table,
                              rises)  # fmt: skip
    sums[share, RISE] = rise + total(rises)


@inlined
def _decide(batch: int, c2: float, forced: bool, state: Any, team: Any) -> None:
    """Keep a step if it raises the dual; choose the next rate of the batch."""
    numbers, sums, (entropies, rates, gaps) = team[0], team[1], state[3]
    entropy, slope, square = 0.0, 0.0, 0.0
    for item in range(SHARES + 1):
        entropy += sums[item, LOG_Z] - sums[item, INNER]
        slope += sums[item, SLOPE]
        square += sums[item, RISE]
    rise = entropy - entropies[batch] - c2 * square
    if numbers[FATE] == REFUSED:
        rates[batch] *= FAR_SLOWER
        return
    # The gap is half the slope all the way to the scores of the weights.
    gaps[batch] = max(0.5 * slope / max(rates[batch], TINY), 0.0)
    # A parabola with this slope and this rise is highest at half its slope.
    factor = 0.5 * slope / max(slope - rise, 1e-3 * slope, TINY)
    if forced or rise >= 0.0:
        entropies[batch] = entropy
        factor = min(max(factor, SLOWER), FASTER)
    else:
        numbers[FATE] = UNDONE
        factor = min(max(factor, FAR_SLOWER), SLOWER)
    if not forced:
        rates[batch] = min(rates[batch] * factor, 1.0)


@inlined
def _keep(batch: int, item: int, entries: Any, state: Any, team: Any) -> None:
    """Make the distributions of a part those that were computed."""
    parts, offsets, _ = entries[0]
    scores, expected, (pair_scores, pair_expected) = state[0][1], state[1][1], state[2]
    moved, counts, (_, pair_counts, pair_moved) = team[2][1], team[3][1], team[5]
    part, size = batch * SHARES + item, pair_moved.shape[0]
    first = offsets[parts[batch * SHARES]] * size
    for n in range(offsets[parts[part]] * size, offsets[parts[part + 1]] * size):
        scores[n] = moved[n - first]
        expected[n] = counts[n - first]
    if item == 0:
        for i in range(size):
            for j in range(size):
                pair_scores[batch * size + i, j] = pair_moved[i, j]
                pair_expected[batch * size + i, j] = pair_counts[i, j]
