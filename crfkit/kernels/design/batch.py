"""The design matrix batch by batch: from rows and single weights to potentials, and the adjoint.

Shapes: ``B`` batches, ``N`` tokens of all, ``L`` weights, ``H`` rows of ``W`` columns, ``Q`` tokens
of the largest batch, ``F`` dense features.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from crfkit._types import ByteArray, FloatArray, IdArray, IntArray
from crfkit.compiler.jit import kernel, part
from crfkit.compiler.simd import (
    WIDTH,
    add,
    fill,
    larger,
    load,
    multiply,
    multiply_add,
    prefetch,
    prefetch_at,
    smaller,
    store,
    subtract,
    total,
    where_bits,
)
from crfkit.kernels._strips import STRIP, Strip, strip_columns, strips_add
from crfkit.kernels.design.gather import CELLS_AHEAD
from crfkit.kernels.design.tokens import BatchRows, Design
from crfkit.kernels.solvers.stochastic import cumulative_l1_of_run

# Rows that are moved are asked for so many before they are needed; of a longer row the machine
# itself fetches what comes next.
ROWS_AHEAD, MOST_ASKED = 8, 64


class BatchRoom(NamedTuple):
    """Room for a batch."""

    scores: FloatArray  # (Q, W)
    scores_flat: FloatArray  # (Q W,) the same
    residual: FloatArray  # (Q, W)
    residual_flat: FloatArray  # (Q W,) the same
    dense_ptr: IntArray  # (Q + 1,) where the dense features of each token that are not 0 start
    dense_rows: IdArray  # (Q F + 1,) their rows
    dense_values: FloatArray  # (Q F + 1,)
    products: FloatArray  # (F, W)


class Weights(NamedTuple):
    """A vector over the weights, and views of it as rows."""

    flat: FloatArray  # (L,)
    table: FloatArray  # (H, W) its beginning
    wide: FloatArray  # (G, K W) rows of attributes of transitions


class DualStep(NamedTuple):
    """A step of a dual vector v, and of its weights ``w = sign(v) max(|v| - threshold, 0)``.

    Where the threshold is 0, both may be the same arrays.
    """

    dual: FloatArray  # (L,)
    dual_table: FloatArray  # (H, W) some of its rows
    w: FloatArray  # (L,)
    w_table: FloatArray  # (H, W)
    bits: ByteArray  # (H, V) which columns of rows are weights
    factor: float  # what is added is this times the gradient
    threshold: float


class LazyWeights(NamedTuple):
    """Weights that are moved when they are next needed (Schmidt et al. 2015, section 3.3)."""

    v: Weights
    direction: Weights
    seen_rows: FloatArray  # (H,) the sum of the lengths of all steps when each row was moved
    seen_wide: FloatArray  # (G,)
    seen: FloatArray  # (L,) the same of single weights


class Metric(NamedTuple):
    """How far steps go along weights that are moved in each step."""

    features: FloatArray  # (F, F) of dense features, or (F, 1): its diagonal
    transitions: FloatArray  # (K, W), or (P2,)


@kernel
def list_dense(design: Design, batch: int, room: BatchRoom) -> None:
    """List the dense features of the tokens of a batch that are not 0."""
    count, dense, first = 0, design.dense, design.batches.dense_heads[batch]
    n_dense = design.batches.dense_heads[batch + 1] - first
    room.dense_ptr[0] = 0
    for row in range(design.batches.heads[batch + 1] - design.batches.heads[batch]):
        for f in range(dense.shape[1] if row < n_dense else 0):
            room.dense_rows[count] = design.first_dense + f
            room.dense_values[count] = dense[first + row, f]
            count += dense[first + row, f] != 0.0
        room.dense_ptr[row + 1] = count


@part
def _ask(lists: BatchRows, batch: int, c: int, table: FloatArray) -> None:
    """Have the machine fetch a row that comes soon after the one of a place of a batch."""
    soon = lists.rows[min(c + ROWS_AHEAD, lists.ptr[batch + 1] - 1)]
    for k in range(0, min(table.shape[1], MOST_ASKED), WIDTH):
        prefetch(table, soon, k)


@part
def _spread_row(
    lists: BatchRows,
    stride: int,
    begin: int,
    end: int,
    table: FloatArray,
    h: int,
    scores: FloatArray,
) -> None:
    """``scores[tokens[n]] += values[n] table[h]`` over ``begin <= n < end``.

    A row is whole vectors: a strip has three of them, two or one.
    """
    for p in range(0, table.shape[1], STRIP):
        left, q, r = table.shape[1] - p, p + WIDTH, p + 2 * WIDTH
        if left >= STRIP:
            a, b, c = load(table, h, p), load(table, h, q), load(table, h, r)
            for n in range(begin, end):
                x, row = fill(lists.values[n * stride]), lists.tokens[n]
                store(multiply_add(x, a, load(scores, row, p)), scores, row, p)
                store(multiply_add(x, b, load(scores, row, q)), scores, row, q)
                store(multiply_add(x, c, load(scores, row, r)), scores, row, r)
        elif left > WIDTH:
            a, b = load(table, h, p), load(table, h, q)
            for n in range(begin, end):
                x, row = fill(lists.values[n * stride]), lists.tokens[n]
                store(multiply_add(x, a, load(scores, row, p)), scores, row, p)
                store(multiply_add(x, b, load(scores, row, q)), scores, row, q)
        else:
            a = load(table, h, p)
            for n in range(begin, end):
                x, row = fill(lists.values[n * stride]), lists.tokens[n]
                store(multiply_add(x, a, load(scores, row, p)), scores, row, p)


@kernel
def gather_batch(
    design: Design,
    batch: int,
    scale: float,
    dense_scale: float,  # of the weights of dense features
    flat: FloatArray,  # (L,)
    table: FloatArray,  # (H, W)
    room: BatchRoom,
) -> None:
    """``scores[t, k] = scale sum_a x[t, a] w[a, k]`` for the tokens of a batch."""
    scores, scores_flat, lists = room.scores, room.scores_flat, design.batches
    width, stride = scores.shape[1], design.stride
    count = lists.heads[batch + 1] - lists.heads[batch]
    first, end = lists.cell_ptr[batch], lists.cell_ptr[batch + 1]
    for n in range(count * width):
        scores_flat[n] = 0.0
    for n in range(first, end):
        prefetch_at(flat, design.positions[min(n + CELLS_AHEAD, end - 1)])
        value = design.cell_values[n * stride] * flat[design.positions[n]]
        scores_flat[design.cells[n]] += value
    start = begin = lists.token_ptr[batch]
    for c in range(lists.ptr[batch], lists.ptr[batch + 1]):
        _ask(lists, batch, c, table)
        _spread_row(lists, stride, begin, start + lists.ends[c], table, lists.rows[c], scores)
        begin = start + lists.ends[c]
    if scale != 1.0:
        for n in range(count * width):
            scores_flat[n] *= scale
    if design.dense.shape[1]:
        list_dense(design, batch, room)
        for n in range(room.dense_ptr[count]):
            room.dense_values[n] *= dense_scale
        for row in range(count):
            strips_add(room.dense_rows, room.dense_values, 1, room.dense_ptr[row],
                       room.dense_ptr[row + 1], table, row, scores)  # fmt: skip


@kernel
def _add_dense(design: Design, batch: int, room: BatchRoom) -> None:
    """``products[f, k] = sum_t x[t, f] residual[t, k]``."""
    products, residual = room.products, room.residual
    if products.shape[0] == 0:
        return
    list_dense(design, batch, room)
    for f in range(products.shape[0]):
        for k in range(0, products.shape[1], WIDTH):
            store(fill(0.0), products, f, k)
    for row in range(design.batches.heads[batch + 1] - design.batches.heads[batch]):
        for n in range(room.dense_ptr[row], room.dense_ptr[row + 1]):
            x, f = fill(room.dense_values[n]), room.dense_rows[n] - design.first_dense
            for k in range(0, products.shape[1], WIDTH):
                after = multiply_add(x, load(residual, row, k), load(products, f, k))
                store(after, products, f, k)


@kernel
def add_batch(
    design: Design,
    batch: int,
    flat: FloatArray,  # (L,) out, added to
    table: FloatArray,  # (H, W) its rows
    room: BatchRoom,
) -> float:
    """``out[a, k] += sum_t x[t, a] residual[t, k]``; returns the rise of the squares of cells.

    Rows get something also where they have no weight.
    """
    lists, stride, rise = design.batches, design.stride, 0.0
    start = begin = lists.token_ptr[batch]
    for c in range(lists.ptr[batch], lists.ptr[batch + 1]):
        end = start + lists.ends[c]
        strips_add(lists.tokens, lists.values, stride, begin, end, room.residual, lists.rows[c],
                   table)  # fmt: skip
        begin = end
    for n in range(lists.cell_ptr[batch], lists.cell_ptr[batch + 1]):
        p = design.positions[n]
        before = flat[p]
        after = before + design.cell_values[n * stride] * room.residual_flat[design.cells[n]]
        flat[p] = after
        rise += (after - before) * (after + before)
    _add_dense(design, batch, room)
    for f in range(room.products.shape[0]):
        h = design.first_dense + f
        for k in range(0, table.shape[1], WIDTH):
            store(multiply_add(fill(1.0), load(room.products, f, k), load(table, h, k)), table, h,
                  k)  # fmt: skip
    return rise


@kernel
def step_batch(design: Design, batch: int, weights: DualStep, room: BatchRoom) -> float:
    """``v += factor X' residual`` for the weights of a batch; returns the rise of ``|w|^2``."""
    lists, stride, rises = design.batches, design.stride, fill(0.0)
    width = weights.w_table.shape[1]
    start = begin = lists.token_ptr[batch]
    for c in range(lists.ptr[batch], lists.ptr[batch + 1]):
        _ask(lists, batch, c, weights.dual_table)
        _ask(lists, batch, c, weights.w_table)
        end = start + lists.ends[c]
        for column in range(0, width, STRIP):
            strip = _tokens_strip(lists, stride, begin, end, room.residual, column, width)
            rises = _step_strip(strip, lists.rows[c], column, weights, rises)
        begin = end
    rise = _step_cells(design, batch, weights, room)
    if room.products.shape[0]:
        _add_dense(design, batch, room)
        rises = step_rows(room.products, design.first_dense, weights, rises)
    return rise + total(rises)


@part
def _tokens_strip(
    lists: BatchRows,
    stride: int,
    begin: int,
    end: int,
    residual: FloatArray,
    start: int,
    width: int,
) -> Strip:
    """Return a strip of ``sum_n values[n] residual[tokens[n]]`` over ``begin <= n < end``."""
    p, q, r = strip_columns(start, width)
    a, b, c = fill(0.0), fill(0.0), fill(0.0)
    for n in range(begin, end):
        x, row = fill(lists.values[n * stride]), lists.tokens[n]
        a = multiply_add(x, load(residual, row, p), a)
        b = multiply_add(x, load(residual, row, q), b)
        c = multiply_add(x, load(residual, row, r), c)
    return Strip(a, b, c)


@part
def _step_cells(design: Design, batch: int, weights: DualStep, room: BatchRoom) -> float:
    """Move the single weights of a batch; returns the rise of ``|w|^2``."""
    dual, w, rise = weights.dual, weights.w, 0.0
    end = design.batches.cell_ptr[batch + 1]
    for n in range(design.batches.cell_ptr[batch], end):
        soon = design.positions[min(n + CELLS_AHEAD, end - 1)]
        prefetch_at(dual, soon)
        prefetch_at(w, soon)
        p = design.positions[n]
        before = w[p]
        change = design.cell_values[n * design.stride] * room.residual_flat[design.cells[n]]
        value = dual[p] + weights.factor * change
        dual[p] = value
        after = math.copysign(max(abs(value) - weights.threshold, 0.0), value)
        w[p] = after
        rise += (after - before) * (after + before)
    return rise


@part
def step_rows(
    gradient: FloatArray,  # (F, W)
    first: int,  # the row of the first of these
    weights: DualStep,
    rises: FloatArray,
) -> FloatArray:
    """``v += factor gradient`` for rows that follow one another; returns vector `rises` + rises."""
    for f in range(gradient.shape[0]):
        for start in range(0, gradient.shape[1], STRIP):
            p, q, r = strip_columns(start, gradient.shape[1])
            strip = Strip(load(gradient, f, p), load(gradient, f, q), load(gradient, f, r))
            rises = _step_strip(strip, first + f, start, weights, rises)
    return rises


@part
def _step_strip(
    strip: Strip, h: int, start: int, weights: DualStep, rises: FloatArray
) -> FloatArray:
    """``v[h] += factor strip`` where there is a weight; returns `rises` plus that of |w|^2."""
    dual, w, bits, byte = weights.dual_table, weights.w_table, weights.bits, start // WIDTH
    p, q, r = strip_columns(start, w.shape[1])
    x, threshold = fill(weights.factor), weights.threshold
    a = multiply_add(x, where_bits(bits[h, byte], strip.first), load(dual, h, p))
    b = multiply_add(x, where_bits(bits[h, byte + 1], strip.second), load(dual, h, q))
    c = multiply_add(x, where_bits(bits[h, byte + 2], strip.third), load(dual, h, r))
    d, e, f = load(w, h, p), load(w, h, q), load(w, h, r)
    store(a, dual, h, p)
    store(b, dual, h, q)
    store(c, dual, h, r)
    a, b, c = _shrunk(a, threshold), _shrunk(b, threshold), _shrunk(c, threshold)
    store(a, w, h, p)
    store(b, w, h, q)
    store(c, w, h, r)
    rises = multiply_add(subtract(a, d), add(a, d), rises)
    if q > p:  # else they are the same numbers
        rises = multiply_add(subtract(b, e), add(b, e), rises)
    if r > q:
        rises = multiply_add(subtract(c, f), add(c, f), rises)
    return rises


@part
def catch_up_row(h: int, lag: float, v: FloatArray, direction: FloatArray, bits: ByteArray) -> None:
    """``v[h] -= lag direction[h]`` for the weights of a row."""
    x = fill(-lag)
    for k in range(0, v.shape[1], WIDTH):
        along = where_bits(bits[h, k // WIDTH], load(direction, h, k))
        store(multiply_add(x, along, load(v, h, k)), v, h, k)


@kernel
def catch_up_batch(
    design: Design,
    batch: int,
    whole: float,  # the sum of the lengths of all steps
    v: FloatArray,  # (H, W)
    direction: FloatArray,  # (H, W)
    seen: FloatArray,  # (H,)
    bits: ByteArray,  # (H, V)
    lazy: LazyWeights,
) -> None:
    """Make the steps that were put off, for the sparse weights of a batch."""
    lists = design.batches
    end = lists.ptr[batch + 1]
    for c in range(lists.ptr[batch], end):
        soon = lists.rows[min(c + ROWS_AHEAD, end - 1)]
        for k in range(0, v.shape[1], WIDTH):
            prefetch(v, soon, k)
            prefetch(direction, soon, k)
        h = lists.rows[c]
        catch_up_row(h, whole - seen[h], v, direction, bits)
        seen[h] = whole
    end = lists.cell_ptr[batch + 1]
    flat, along, lags = lazy.v.flat, lazy.direction.flat, lazy.seen
    for n in range(lists.cell_ptr[batch], end):
        soon = design.positions[min(n + CELLS_AHEAD, end - 1)]
        prefetch_at(flat, soon)
        prefetch_at(along, soon)
        p = design.positions[n]
        flat[p] -= (whole - lags[p]) * along[p]
        lags[p] = whole


@kernel
def settle_rows(
    first: int,  # rows first:last
    last: int,
    scale: float,
    whole: float,
    v: FloatArray,  # (H, W)
    direction: FloatArray,  # (H, W)
    seen: FloatArray,  # (H,)
    bits: ByteArray,  # (H, V)
) -> None:
    """Make the steps that were put off for some rows, and write them with the scale 1."""
    x = fill(scale)
    for h in range(first, last):
        catch_up_row(h, whole - seen[h], v, direction, bits)
        for k in range(0, v.shape[1], WIDTH):
            store(multiply(x, load(v, h, k)), v, h, k)
        seen[h] = 0.0


@kernel
def pay_batch(
    design: Design,
    batch: int,
    begin: int,  # where the rows start in the vectors
    width: int,  # of a row
    scale: float,
    due: float,
    paid: FloatArray,  # (L,) in and out
    v: FloatArray,  # (L,) in and out
) -> None:
    """Let the weights of a batch pay the L1 penalty that they owe."""
    lists = design.batches
    for c in range(lists.ptr[batch], lists.ptr[batch + 1]):
        first = begin + lists.rows[c] * width
        cumulative_l1_of_run(first, first + width, scale, due, paid, v)
    for n in range(lists.cell_ptr[batch], lists.cell_ptr[batch + 1]):
        p = design.positions[n]
        cumulative_l1_of_run(p, p + 1, scale, due, paid, v)
    first = begin + design.first_dense * width
    last = first + design.dense.shape[1] * width
    cumulative_l1_of_run(first, last, scale, due, paid, v)


@kernel
def mask_rows(design: Design, batch: int, probe: FloatArray, bits: ByteArray) -> float:
    """Let what is no weight be 0 in the rows of a batch; returns the sum of the squares."""
    squares = fill(0.0)
    for c in range(design.batches.ptr[batch], design.batches.ptr[batch + 1]):
        h = design.batches.rows[c]
        for k in range(0, probe.shape[1], WIDTH):
            x = where_bits(bits[h, k // WIDTH], load(probe, h, k))
            store(x, probe, h, k)
            squares = multiply_add(x, x, squares)
    return total(squares)


@kernel
def mask_dense(design: Design, probe: FloatArray, bits: ByteArray) -> float:
    """Let what is no weight be 0 in the rows of dense features; returns the sum of the squares."""
    squares = fill(0.0)
    for h in range(design.first_dense, design.first_dense + design.dense.shape[1]):
        for k in range(0, probe.shape[1], WIDTH):
            x = where_bits(bits[h, k // WIDTH], load(probe, h, k))
            store(x, probe, h, k)
            squares = multiply_add(x, x, squares)
    return total(squares)


@kernel
def clear_batch(design: Design, batch: int, flat: FloatArray, table: FloatArray) -> None:
    """Write zeros where a batch has weights."""
    lists = design.batches
    for c in range(lists.ptr[batch], lists.ptr[batch + 1]):
        clear_rows(lists.rows[c], lists.rows[c] + 1, table)
    for n in range(lists.cell_ptr[batch], lists.cell_ptr[batch + 1]):
        flat[design.positions[n]] = 0.0
    clear_rows(design.first_dense, design.first_dense + design.dense.shape[1], table)


@part
def clear_rows(first: int, last: int, table: FloatArray) -> None:
    """Write zeros to some rows."""
    for h in range(first, last):
        for k in range(0, table.shape[1], WIDTH):
            store(fill(0.0), table, h, k)


@part
def _shrunk(x: FloatArray, threshold: float) -> FloatArray:
    """``sign(x) max(|x| - threshold, 0)``, as the sum of its positive and its negative part."""
    nothing = fill(0.0)
    up = larger(nothing, subtract(x, fill(threshold)))
    return add(up, smaller(nothing, add(x, fill(threshold))))
