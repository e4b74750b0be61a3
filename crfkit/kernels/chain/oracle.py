"""Visits of one sequence of a chain whose steps share their scores, for kernels that make many.

Weights are a flat vector (L,), as `AlignedWeights` lays it out, and a view of its rows (H, W): the
last K are those of steps, the F before them those of dense features. Rows are padded to whole
vectors of eight: ``W >= K``. Lanes that hold no weight are 0 and stay 0.

`entries` are the `arrays` of `TokenDesign`: where the rows of each token start (N + 1,), the rows
and their values; where its single weights start (N + 1,), their labels, places and values; `step`;
and dense features (N, F).

``Q``: tokens of the longest sequence. Row ``t - begin`` of what belongs to a sequence is that of
token ``t``.
"""

from __future__ import annotations

import math
from typing import Any

from crfkit._types import CodeArray, FloatArray, IdArray, IntArray
from crfkit.compiler.jit import inlined, part
from crfkit.compiler.simd import (
    WIDTH,
    add,
    fill,
    larger,
    load,
    multiply_add,
    prefetch_at,
    store,
    subtract,
    total,
    where_bits,
)
from crfkit.kernels._strips import STRIP, strip_columns, strips_add
from crfkit.kernels.design.gather import CELLS_AHEAD


@inlined
def gather_sequence(
    begin: int,  # tokens begin:end
    end: int,
    flat: FloatArray,  # (L,) weights
    table: FloatArray,  # (H, W) their rows
    n_labels: int,
    entries: Any,
    listed: Any,  # room for the dense features of a token: rows (F + 1,) and values (F + 1,)
    target: FloatArray,  # (Q, W) out: scores
) -> None:
    """``target[t - begin, k] = sum_a x[t, a] w[a, k]``; 0 for lanes beyond the labels."""
    (row_ptr, found, factor), (cell_ptr, columns, places, values), step, dense = entries
    slots, numbers = listed
    final = places.shape[0] - 1
    for t in range(begin, end):
        row = t - begin
        for k in range(0, target.shape[1], WIDTH):
            store(fill(0.0), target, row, k)
        strips_add(found, factor, step, row_ptr[t], row_ptr[t + 1], table, row, target)
        for n in range(cell_ptr[t], cell_ptr[t + 1]):
            prefetch_at(flat, places[min(n + CELLS_AHEAD, final)])
            target[row, columns[n]] += values[n * step] * flat[places[n]]
        if dense.shape[1]:
            count = _list_dense(
                t, table.shape[0] - n_labels - dense.shape[1], dense, slots, numbers
            )
            strips_add(slots, numbers, 1, 0, count, table, row, target)


@part
def _list_dense(t: int, first: int, dense: FloatArray, slots: IdArray, numbers: FloatArray) -> int:
    """List the dense features of a token that are not 0, whose rows begin at `first`."""
    count = 0
    for f in range(dense.shape[1]):
        slots[count] = first + f
        numbers[count] = dense[t, f]
        count += dense[t, f] != 0.0
    return count


@part
def add_cost(
    row: int,
    label: int,
    cost: FloatArray,  # (K, W) of each label (column) where another is true (row)
    target: FloatArray,  # (Q, W) scores, added to
) -> None:
    """``target[row, k] += cost[label, k]``."""
    for k in range(0, target.shape[1], WIDTH):
        store(add(load(target, row, k), load(cost, label, k)), target, row, k)


@part
def _extend(t: int, scores: FloatArray, steps: FloatArray, first: int, size: int,
            best: FloatArray) -> None:  # fmt: skip
    """``best_t(j) = scores_t(j) + max_i (best_{t-1}(i) + steps(i, j))``."""
    width = best.shape[1]
    for start in range(0, width, STRIP):
        p, q, r = strip_columns(start, width)
        a, b, c = fill(-math.inf), fill(-math.inf), fill(-math.inf)
        if p == r:
            for i in range(size - 1, 0, -2):
                a = larger(a, add(fill(best[t - 1, i]), load(steps, first + i, p)))
                b = larger(b, add(fill(best[t - 1, i - 1]), load(steps, first + i - 1, p)))
            if size % 2:
                a = larger(a, add(fill(best[t - 1, 0]), load(steps, first, p)))
            store(add(load(scores, t, p), larger(a, b)), best, t, p)
            return
        for i in range(size):
            x = fill(best[t - 1, i])
            a = larger(a, add(x, load(steps, first + i, p)))
            b = larger(b, add(x, load(steps, first + i, q)))
            c = larger(c, add(x, load(steps, first + i, r)))
        store(add(load(scores, t, p), a), best, t, p)
        store(add(load(scores, t, q), b), best, t, q)
        store(add(load(scores, t, r), c), best, t, r)


@part
def best_path(
    length: int,  # tokens, at least 1
    scores: FloatArray,  # (Q, W)
    steps: FloatArray,  # (H, W) a table whose rows first:first + K are the scores of steps
    first: int,
    size: int,  # K
    best: FloatArray,  # (Q, W) workspace
    labels: CodeArray,  # (Q,) out
) -> float:
    """Find the path of the largest score (Viterbi 1967), which is returned.

    Of equal ones the lowest labels, from the last token on, as the kernel `chain_max` does.
    """
    for k in range(0, best.shape[1], WIDTH):
        store(load(scores, 0, k), best, 0, k)
    for t in range(1, length):
        _extend(t, scores, steps, first, size, best)
    value = 0.0
    for t in range(length - 1, -1, -1):
        label, top = 0, -math.inf
        for i in range(size):
            score = best[t, i]
            if t < length - 1:
                score += steps[first + i, labels[t + 1]]
            if score > top:
                top = score
                label = i
        labels[t] = label
        if t == length - 1:
            value = best[t, label]
    return value


@part
def path_score(
    length: int,  # tokens
    scores: FloatArray,  # (Q, W)
    steps: FloatArray,  # (H, W) a table whose rows from `first` on are the scores of steps
    first: int,
    labels: CodeArray,  # (n,)
    begin: int,  # where those of the sequence begin among the labels
) -> float:
    """``sum_t scores_t(y_t) + sum_{t > 1} steps(y_{t-1}, y_t)``."""
    value, before = 0.0, 0
    for t in range(length):
        label = labels[begin + t]
        value += scores[t, label]
        if t > 0:
            value += steps[first + before, label]
        before = label
    return value


@inlined
def scatter_sequence(
    begin: int,  # tokens begin:end
    end: int,
    residual: FloatArray,  # (Q, W) of labels
    active: IntArray,  # (Q,) 0 where the residual of a token is 0
    flows: FloatArray,  # (K, W) of steps
    entries: Any,
    bits: Any,  # (H, V) which lanes of rows are weights
    scratch: FloatArray,  # (L,) out, added to
    scratch_table: FloatArray,  # (H, W) its rows
) -> float:
    """``scratch[a, k] += sum_t x[t, a] residual[t, k]``, steps too.

    Returns the rise of ``|scratch|^2``.
    """
    (row_ptr, found, factor), (cell_ptr, columns, places, values), step, dense = entries
    rises, rise, first = fill(0.0), 0.0, scratch_table.shape[0] - flows.shape[0]
    for t in range(begin, end):
        row = t - begin
        if active[row] == 0:
            continue
        for n in range(row_ptr[t], row_ptr[t + 1]):
            rises = _add_row(factor[n * step], residual, row, bits, found[n], scratch_table, rises)
        for n in range(cell_ptr[t], cell_ptr[t + 1]):
            change = values[n * step] * residual[row, columns[n]]
            rise += change * (change + 2.0 * scratch[places[n]])
            scratch[places[n]] += change
        for f in range(dense.shape[1]):
            if dense[t, f] != 0.0:
                h = first - dense.shape[1] + f
                rises = _add_row(dense[t, f], residual, row, bits, h, scratch_table, rises)
    for i in range(flows.shape[0]):
        rises = _add_row(1.0, flows, i, bits, first + i, scratch_table, rises)
    return rise + total(rises)


@part
def _add_row(value: float, source: FloatArray, row: int, bits: Any, h: int, table: FloatArray,
             rises: FloatArray) -> FloatArray:  # fmt: skip
    """``table[h] += value source[row]`` for the weights of a row; returns the rise of squares."""
    x = fill(value)
    for k in range(0, table.shape[1], WIDTH):
        before = load(table, h, k)
        after = multiply_add(x, where_bits(bits[h, k // WIDTH], load(source, row, k)), before)
        rises = multiply_add(subtract(after, before), add(after, before), rises)
        store(after, table, h, k)
    return rises


@inlined
def apply_scratch(
    begin: int,  # tokens begin:end
    end: int,
    active: IntArray,  # (Q,) as for scatter_sequence
    n_labels: int,
    factor: float,
    entries: Any,
    scratch: FloatArray,  # (L,) in, out: zeros
    scratch_table: FloatArray,  # (H, W)
    flat: FloatArray,  # (L,) out, added to
    table: FloatArray,  # (H, W)
) -> None:
    """``w += factor scratch`` wherever a sequence has weights; the scratch is 0 then."""
    (row_ptr, found, _), (cell_ptr, _, places, _), _, dense = entries
    first = table.shape[0] - n_labels
    for t in range(begin, end):
        if active[t - begin] == 0:
            continue
        end_of_rows = row_ptr[t + 1]
        for n in range(row_ptr[t], end_of_rows):
            _move_row(factor, found[n], scratch_table, table)
        for n in range(cell_ptr[t], cell_ptr[t + 1]):
            flat[places[n]] += factor * scratch[places[n]]
            scratch[places[n]] = 0.0
        for f in range(dense.shape[1]):
            if dense[t, f] != 0.0:
                _move_row(factor, first - dense.shape[1] + f, scratch_table, table)
    for i in range(n_labels):
        _move_row(factor, first + i, scratch_table, table)


@part
def _move_row(factor: float, h: int, scratch: FloatArray, table: FloatArray) -> None:
    """``table[h] += factor scratch[h]``; the row of the scratch is 0 then."""
    x = fill(factor)
    for k in range(0, table.shape[1], WIDTH):
        store(multiply_add(x, load(scratch, h, k), load(table, h, k)), table, h, k)
        store(fill(0.0), scratch, h, k)
