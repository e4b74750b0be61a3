"""Steps along the mean of the last gradients of batches on chains, whole runs of visits at a time.

A visit sums a batch at the weights, replaces its gradient in the sum of all, and makes a step along
``(direction / known + decay w)``. Weights of sparse attributes are ``w = scale v``; they are moved
when a batch next needs them, as in the kernel ``lazy_read``. Weights of dense features and of steps
change with each step, by a metric: a matrix for the features, a number for each step.

Arrays come in groups, of which each kernel reads some:

- `entries`, the data: the first sequence of each batch (B + 1,), offsets (S + 1,) and weights (S,)
  of sequences; three groups from `batches_deal`: tokens with their rows, cells, and rows with their
  tokens; `step`; labels (N,); values of dense features (N, F).
- `memory`: residuals of labels (N, K) and of steps (B K, K); tangents (B, 3), see `OFFSET`.
- `vectors`: v (L,) and its rows (H, W), of which the last F + K are those of dense features and
  steps and hold w; the direction in the same way; how far each sparse row (H - F - K,) and each
  cell (L - H W,) has been moved; bits (H, V) of the weights in rows.
- `metric`: of dense features (F, F) and of steps (K, W); the largest number times the decay; the
  share of the largest smoothness that their mean is taken for at least.
- `smooth`: estimated smoothness of each batch, visits until it is tested, and between tests (B,);
  numbers (N_NUMBERS,), see `SCALE`.
- `own`, the workspace: groups as for `chain_dual_steps`; the last holds others: a probe (L,) and
  its rows; residual and change (Q, W), each also flat; scores moved along the probe (Q, K), also to
  read; where the dense features of each token that are not 0 start (Q + 1,), their rows and their
  values (Q F,); counts of steps (K, K), room for dense features (1, F, W) and (F, W).

``Q``: tokens of the largest batch. ``W``: K, padded to whole vectors.
"""

from __future__ import annotations

from typing import Any

from crfkit._types import FloatArray, IntArray
from crfkit.compiler.jit import inlined, kernel, part
from crfkit.compiler.simd import (
    WIDTH,
    add,
    fill,
    load,
    load_of,
    multiply,
    multiply_add,
    prefetch,
    prefetch_at,
    store,
    store_of,
    total,
    where_bits,
)
from crfkit.kernels._strips import strips_add, strips_product
from crfkit.kernels.chain._parts import count_steps, loss_of_part
from crfkit.kernels.design.gather import CELLS_AHEAD, ROWS_AHEAD

# Numbers that visits share: the scale, the sum of the lengths of all steps, how many batches were
# looked at, the first guess of a smoothness, and of all estimates the sum, the largest, the number.
SCALE, TOTAL, KNOWN, GUESS, SUM, MOST, COUNT = 0, 1, 2, 3, 4, 5, 6
N_NUMBERS = 7

# Columns of the tangents: the loss, by how much it is above ``residual . scores``, 1 where known.
VALUE, OFFSET, SEEN = 0, 1, 2

# What happens to the estimate of a smoothness before it is tested, and each time it is too small.
LESS, MORE = 0.9, 1.5
# Visits between tests at most, and tests at a visit.
LONGEST_PAUSE, MOST_TESTS = 32, 200
# A decrease of the loss by less than this share of it is not told from rounding.
LEAST_CHANGE = 1e-9
# The scale of the weights below which they are written anew, before anything overflows.
LEAST_SCALE = 1e-9


@kernel
def chain_average_steps(
    order: IntArray,  # (n,) batches
    decay: float,
    longest: float,  # steps are no longer; with 0, nothing is moved and nothing tested
    entries: Any,
    memory: Any,
    vectors: Any,
    metric: Any,
    smooth: Any,
    own: Any,
) -> None:
    """Visit batches: ``w -= length metric (direction / known + decay w)`` after each."""
    estimates, wait, pause, numbers = smooth
    for n in range(order.shape[0]):
        batch = order[n]
        _move_batch(batch, entries, vectors, numbers[TOTAL])
        value = _look(batch, numbers[SCALE], vectors[0], vectors[1], entries, own)
        _remember(batch, value, entries, memory, vectors, numbers, own)
        if longest == 0.0:
            continue
        new = estimates[batch] == 0.0
        if new:
            estimates[batch] = numbers[GUESS] / LESS
        else:
            wait[batch] -= 1
        if new or wait[batch] < 0:
            _test(batch, value, entries, vectors, metric, smooth, own)
            _survey(estimates, numbers)
        if pause[batch] > 0:  # it was tested
            numbers[GUESS] = 0.5 * estimates[batch]
        length = min(_length(numbers, metric[2], metric[3]), longest)
        _step(length, decay, vectors, metric, numbers, own)
        numbers[SCALE] *= 1.0 - length * decay
        numbers[TOTAL] += length / (numbers[KNOWN] * numbers[SCALE])
        if numbers[SCALE] < LEAST_SCALE:
            average_settle(vectors, numbers)


@kernel
def chain_average_losses(
    first: int,  # batches first:last
    last: int,
    entries: Any,
    flat: FloatArray,  # (L,) weights
    table: FloatArray,  # (H, W) their rows
    own: Any,
    losses: FloatArray,  # (B,) out
) -> None:
    """Compute ``sum_s weight_s (log Z_s - score_s)`` of each batch."""
    for batch in range(first, last):
        losses[batch] = _look(batch, 1.0, flat, table, entries, own)


@kernel
def average_settle(vectors: Any, numbers: FloatArray) -> None:
    """Make all steps that were put off, and write the weights with the scale 1."""
    v, table, direction, direction_table, seen_rows, seen_cells, bits = vectors
    scale, first = numbers[SCALE], table.shape[0] * table.shape[1]
    x = fill(scale)
    for h in range(seen_rows.shape[0]):
        _move_row(h, numbers[TOTAL] - seen_rows[h], table, direction_table, bits)
        for k in range(0, table.shape[1], WIDTH):
            store(multiply(x, load(table, h, k)), table, h, k)
        seen_rows[h] = 0.0
    for n in range(seen_cells.shape[0]):
        p = first + n
        v[p] = scale * (v[p] - (numbers[TOTAL] - seen_cells[n]) * direction[p])
        seen_cells[n] = 0.0
    numbers[SCALE], numbers[TOTAL] = 1.0, 0.0


@part
def _move_row(h: int, lag: float, table: FloatArray, direction: FloatArray, bits: Any) -> None:
    """``v -= lag direction`` for the weights of a row."""
    x = fill(-lag)
    for k in range(0, table.shape[1], WIDTH):
        along = where_bits(bits[h, k // WIDTH], load(direction, h, k))
        store(multiply_add(x, along, load(table, h, k)), table, h, k)


@inlined
def _move_batch(batch: int, entries: Any, vectors: Any, whole: float) -> None:
    """Make the steps that were put off, for the sparse weights of a batch."""
    (cell_ptr, _, places, _), (batch_ptr, columns, _, _, _) = entries[2], entries[3]
    v, table, direction, direction_table, seen_rows, seen_cells, bits = vectors
    first = table.shape[0] * table.shape[1]
    end = batch_ptr[batch + 1]
    for c in range(batch_ptr[batch], end):
        soon = columns[min(c + ROWS_AHEAD, end - 1)]
        for k in range(0, table.shape[1], WIDTH):
            prefetch(table, soon, k)
            prefetch(direction_table, soon, k)
        h = columns[c]
        _move_row(h, whole - seen_rows[h], table, direction_table, bits)
        seen_rows[h] = whole
    end = cell_ptr[batch + 1]
    for n in range(cell_ptr[batch], end):
        soon = places[min(n + CELLS_AHEAD, end - 1)]
        prefetch_at(v, soon)
        prefetch_at(direction, soon)
        p = places[n]
        v[p] -= (whole - seen_cells[p - first]) * direction[p]
        seen_cells[p - first] = whole


@inlined
def _look(batch: int, scale: float, flat: FloatArray, table: FloatArray, entries: Any,
          own: Any) -> float:  # fmt: skip
    """Return the loss of a batch; its gradient replaces counts of labels and steps."""
    (parts, offsets, weight), labels = entries[0], entries[5]
    target, _, scores, scores_read, counts = own[0]
    pair, flows = own[1][1], own[-1][4][0]
    begin, end, size = offsets[parts[batch]], offsets[parts[batch + 1]], pair.shape[0]
    _list_dense(begin, end, table.shape[0] - size, entries[6], own)
    _gather(batch, scale, flat, table, entries, own)
    for row in range(end - begin):
        for k in range(size):
            scores[row, k] = target[row, k]
    for i in range(size):
        for j in range(size):
            pair[i, j] = table[table.shape[0] - size + i, j]
    value = loss_of_part(batch, labels, entries, scores, scores_read, counts, own)
    count_steps(0, flows, own)
    for s in range(parts[batch], parts[batch + 1]):
        for t in range(offsets[s], offsets[s + 1]):
            counts[t - begin, labels[t]] -= weight[s]
            if t > offsets[s]:
                flows[labels[t - 1], labels[t]] -= weight[s]
    return value


@inlined
def _list_dense(begin: int, end: int, after: int, dense: FloatArray, own: Any) -> None:
    """List the dense features of each token that are not 0: their rows, which end at `after`."""
    ptr, slots, values = own[-1][3]
    count = 0
    ptr[0] = 0
    for t in range(begin, end):
        for f in range(dense.shape[1]):
            slots[count] = after - dense.shape[1] + f
            values[count] = dense[t, f]
            count += dense[t, f] != 0.0
        ptr[t - begin + 1] = count


@kernel
def _gather(batch: int, scale: float, flat: FloatArray, table: FloatArray, entries: Any,
            own: Any) -> None:  # fmt: skip
    """``target[t, k] = scale sum_a x[t, a] w[a, k]``, over dense features without the scale."""
    (parts, offsets, _), (row_ptr, found, factor), cell_lists = entries[0], entries[1], entries[2]
    cell_ptr, cells, places, values = cell_lists
    step, (target, target_flat, _, _, _), (ptr, slots, dense) = entries[4], own[0], own[-1][3]
    begin, end, width = offsets[parts[batch]], offsets[parts[batch + 1]], target.shape[1]
    for n in range((end - begin) * width):
        target_flat[n] = 0.0
    for n in range(cell_ptr[batch], cell_ptr[batch + 1]):
        target_flat[cells[n]] += values[n * step] * flat[places[n]]
    for t in range(begin, end):
        row = t - begin
        strips_add(found, factor, step, row_ptr[t], row_ptr[t + 1], table, row, target)
        for k in range(width):
            target[row, k] *= scale
        strips_add(slots, dense, 1, ptr[row], ptr[row + 1], table, row, target)


@kernel
def _scatter(batch: int, source: FloatArray, source_flat: FloatArray, flat: FloatArray,
             table: FloatArray, entries: Any, own: Any) -> float:  # fmt: skip
    """``out[a, k] += sum_t x[t, a] source[t, k]``; returns the rise of the squares of cells."""
    (parts, offsets, _), cell_lists, row_lists = entries[0], entries[2], entries[3]
    cell_ptr, cells, places, values = cell_lists
    batch_ptr, columns, col_ptr, rows, turned = row_lists
    step, (ptr, slots, dense) = entries[4], own[-1][3]
    for c in range(batch_ptr[batch], batch_ptr[batch + 1]):
        strips_add(rows, turned, step, col_ptr[c], col_ptr[c + 1], source, columns[c], table)
    rise = 0.0
    for n in range(cell_ptr[batch], cell_ptr[batch + 1]):
        before = flat[places[n]]
        after = before + values[n * step] * source_flat[cells[n]]
        flat[places[n]] = after
        rise += (after - before) * (after + before)
    for row in range(offsets[parts[batch + 1]] - offsets[parts[batch]]):
        for n in range(ptr[row], ptr[row + 1]):
            x, h = fill(dense[n]), slots[n]
            for k in range(0, table.shape[1], WIDTH):
                store(multiply_add(x, load(source, row, k), load(table, h, k)), table, h, k)
    return rise


@inlined
def _remember(batch: int, value: float, entries: Any, memory: Any, vectors: Any,
              numbers: FloatArray, own: Any) -> None:  # fmt: skip
    """Replace the loss and the gradient of a batch, in the sum of all gradients too."""
    (parts, offsets, _), (residuals, pair_residuals, tangents) = entries[0], memory
    (_, _, scores, _, counts), pair, flows = own[0], own[1][1], own[-1][4][0]
    whole, _, change, change_flat = own[-1][1]
    direction, direction_table = vectors[2], vectors[3]
    begin, end, size = offsets[parts[batch]], offsets[parts[batch + 1]], pair.shape[0]
    inner = 0.0
    for t in range(begin, end):
        for k in range(size):
            residual = counts[t - begin, k]
            inner += residual * scores[t - begin, k]
            whole[t - begin, k] = residual
            change[t - begin, k] = residual - residuals[t, k]
            residuals[t, k] = residual
    for i in range(size):
        h = direction_table.shape[0] - size + i
        for j in range(size):
            inner += flows[i, j] * pair[i, j]
            direction_table[h, j] += flows[i, j] - pair_residuals[batch * size + i, j]
            pair_residuals[batch * size + i, j] = flows[i, j]
    _scatter(batch, change, change_flat, direction, direction_table, entries, own)
    numbers[KNOWN] += 1.0 - tangents[batch, SEEN]
    tangents[batch, VALUE], tangents[batch, OFFSET] = value, value - inner
    tangents[batch, SEEN] = 1.0


@inlined
def _test(batch: int, value: float, entries: Any, vectors: Any, metric: Any, smooth: Any,
          own: Any) -> None:  # fmt: skip
    """Find a smoothness L with ``loss(w - metric g / L) <= loss(w) - g . metric g / (2 L)``."""
    (parts, offsets, _), (estimates, wait, pause, _) = entries[0], smooth
    (target, _, scores, _, counts), pair, flows = own[0], own[1][1], own[-1][4][0]
    (probe, probe_table), (moved, moved_read), table = own[-1][0], own[-1][2], vectors[1]
    size = pair.shape[0]
    square = _aim(batch, flows, entries, vectors[6], metric, own)
    estimate = LESS * estimates[batch]
    if square > LEAST_CHANGE * abs(value) * estimate:
        _gather(batch, 1.0, probe, probe_table, entries, own)
        tests = 0
        while tests < MOST_TESTS:
            for row in range(offsets[parts[batch + 1]] - offsets[parts[batch]]):
                for k in range(size):
                    moved[row, k] = scores[row, k] - target[row, k] / estimate
            for i in range(size):
                h = table.shape[0] - size + i
                for j in range(size):
                    pair[i, j] = table[h, j] - probe_table[h, j] / estimate
            tests += 1
            loss = loss_of_part(batch, entries[5], entries, moved, moved_read, counts, own)
            if loss <= value - 0.5 * square / estimate:
                break
            estimate *= MORE
        estimates[batch] = estimate
        pause[batch] = min(2 * max(pause[batch], 1), LONGEST_PAUSE) if tests == 1 else 1
        wait[batch] = pause[batch]
    _clear(batch, entries, own)


@kernel
def _aim(batch: int, flows: FloatArray, entries: Any, bits: Any, metric: Any,
         own: Any) -> float:  # fmt: skip
    """Let the probe be ``metric g`` for the gradient of a batch; returns ``g . metric g``."""
    batch_ptr, columns, _, _, _ = entries[3]
    (probe, probe_table), (whole, whole_flat, _, _) = own[-1][0], own[-1][1]
    size, n_rows = flows.shape[0], probe_table.shape[0]
    square = _scatter(batch, whole, whole_flat, probe, probe_table, entries, own)
    squares = fill(0.0)
    for c in range(batch_ptr[batch], batch_ptr[batch + 1]):
        for k in range(0, probe_table.shape[1], WIDTH):
            x = where_bits(bits[columns[c], k // WIDTH], load(probe_table, columns[c], k))
            store(x, probe_table, columns[c], k)
            squares = multiply_add(x, x, squares)
    for i in range(size):
        for j in range(size):
            x = metric[1][i, j] * flows[i, j]
            probe_table[n_rows - size + i, j] = x
            square += flows[i, j] * x
    features, product = own[-1][4][1], own[-1][4][2]
    first = n_rows - size - product.shape[0]
    for f in range(product.shape[0]):
        for k in range(0, product.shape[1], WIDTH):
            x = where_bits(bits[first + f, k // WIDTH], load(probe_table, first + f, k))
            store_of(x, features, 0, f, k)
    for f in range(product.shape[0]):
        _stretch(metric[0], f, features, product)
        for k in range(0, product.shape[1], WIDTH):
            x = where_bits(bits[first + f, k // WIDTH], load(product, f, k))
            squares = multiply_add(x, load_of(features, 0, f, k), squares)
            store(x, probe_table, first + f, k)
    return square + total(squares)


@part
def _stretch(metric: FloatArray, f: int, features: FloatArray, product: FloatArray) -> None:
    """``product[f] = sum_g metric[f, g] features[g]``; of a diagonal there is one column."""
    if metric.shape[1] > 1:
        strips_product(metric, f, features, 0, product, f)
        return
    x = fill(metric[f, 0])
    for k in range(0, product.shape[1], WIDTH):
        store(multiply(x, load_of(features, 0, f, k)), product, f, k)


@inlined
def _clear(batch: int, entries: Any, own: Any) -> None:
    """Let the probe be 0 again where the batch has weights."""
    (cell_ptr, _, places, _), (batch_ptr, columns, _, _, _) = entries[2], entries[3]
    (probe, probe_table), dense = own[-1][0], entries[6]
    for c in range(batch_ptr[batch], batch_ptr[batch + 1]):
        for k in range(0, probe_table.shape[1], WIDTH):
            store(fill(0.0), probe_table, columns[c], k)
    for n in range(cell_ptr[batch], cell_ptr[batch + 1]):
        probe[places[n]] = 0.0
    n_rows = probe_table.shape[0]
    for h in range(n_rows - own[1][1].shape[0] - dense.shape[1], n_rows):
        for k in range(0, probe_table.shape[1], WIDTH):
            store(fill(0.0), probe_table, h, k)


@inlined
def _survey(estimates: FloatArray, numbers: FloatArray) -> None:
    """Note the sum, the largest and the number of the estimates."""
    numbers[SUM], numbers[MOST], numbers[COUNT] = 0.0, 0.0, 0.0
    for n in range(estimates.shape[0]):
        numbers[SUM] += estimates[n]
        numbers[MOST] = max(numbers[MOST], estimates[n])
        numbers[COUNT] += estimates[n] > 0.0


@inlined
def _length(numbers: FloatArray, decay: float, share: float) -> float:
    """Return ``1/2 (1 / (max L + decay) + 1 / (mean L + decay))``, less for a large decay."""
    mean = max(numbers[SUM] / numbers[COUNT], share * numbers[MOST])
    length: float = 0.5 / (numbers[MOST] + decay) + 0.5 / (mean + decay)
    return min(length, 0.5 / decay) if decay > 0.0 else length


@inlined
def _step(length: float, decay: float, vectors: Any, metric: Any, numbers: FloatArray,
          own: Any) -> None:  # fmt: skip
    """Move the weights of dense features and of steps."""
    table, direction, bits = vectors[1], vectors[3], vectors[6]
    features, product = own[-1][4][1], own[-1][4][2]
    n_features, size, n_rows = product.shape[0], metric[1].shape[0], table.shape[0]
    mean, shrink, back = fill(1.0 / numbers[KNOWN]), fill(decay), fill(-length)
    first = n_rows - size - n_features
    for h in range(first, n_rows):
        for k in range(0, table.shape[1], WIDTH):
            x = multiply_add(mean, load(direction, h, k), multiply(shrink, load(table, h, k)))
            if h < n_rows - size:
                store_of(where_bits(bits[h, k // WIDTH], x), features, 0, h - first, k)
            else:
                x = multiply(x, load(metric[1], h - n_rows + size, k))
                store(multiply_add(back, x, load(table, h, k)), table, h, k)
    for f in range(n_features):
        _stretch(metric[0], f, features, product)
        for k in range(0, table.shape[1], WIDTH):
            x = where_bits(bits[first + f, k // WIDTH], load(product, f, k))
            store(add(multiply(back, x), load(table, first + f, k)), table, first + f, k)
