"""What a step of the dual does with single rows: of scores, and of the table of weights.

Rows of scores have a column for each label, rows of the table of weights are padded to whole
vectors. The table has zeros where there is no weight; bits tell where there is one: a byte for each
vector of a row, three for each strip.
"""

from __future__ import annotations

import math

from crfkit._types import FloatArray, IdArray, SingleArray
from crfkit.compiler.jit import part
from crfkit.compiler.simd import (
    WIDTH,
    add,
    exponential,
    fill,
    lanes_from,
    larger,
    load,
    multiply,
    multiply_add,
    rounded,
    rounded_number,
    smaller,
    store,
    subtract,
    total,
    where_bits,
)
from crfkit.kernels._strips import STRIP, strip_columns, strips_top


@part
def rows_top(scores: FloatArray, row: int) -> float:
    """``max_k scores[row, k]``."""
    if scores.shape[1] >= WIDTH:
        return strips_top(scores, row)
    top = -math.inf
    for k in range(scores.shape[1]):
        top = max(top, scores[row, k])
    return top


@part
def rows_exp(scores: FloatArray, row: int, top: float, out: FloatArray) -> None:
    """``out[row, k] = exp(scores[row, k] - top)``."""
    size = scores.shape[1]
    if size >= WIDTH:
        for start in range(0, size, STRIP):
            for column in strip_columns(start, size):
                x = subtract(load(scores, row, column), fill(top))
                store(exponential(x), out, row, column)
        return
    for k in range(size):
        out[row, k] = math.exp(scores[row, k] - top)


@part
def rows_mix(before: SingleArray, t: int, target: FloatArray, row: int, rate: float,
             direction: FloatArray, moved: FloatArray, to: int) -> None:  # fmt: skip
    """``direction = target - before`` and ``moved = before + rate direction``, in 32 bits."""
    size = before.shape[1]
    if size < WIDTH:
        for k in range(size):
            direction[to, k] = target[row, k] - before[t, k]
            moved[to, k] = rounded_number(before[t, k] + rate * direction[to, k])
        return
    x = fill(rate)
    for start in range(0, size, STRIP):
        for column in strip_columns(start, size):
            y = load(before, t, column)
            d = subtract(load(target, row, column), y)
            store(d, direction, to, column)
            store(rounded(multiply_add(x, d, y)), moved, to, column)


@part
def rows_change(after: FloatArray, row: int, before: FloatArray, t: int, moved: FloatArray,
                direction: FloatArray, residual: FloatArray,
                to: int) -> tuple[float, float]:  # fmt: skip
    """``residual = after - before``; returns ``moved . after`` and ``residual . direction``."""
    size = after.shape[1]
    if size >= WIDTH:
        return _strips_change(after, row, before, t, moved, direction, residual, to)
    inner = 0.0
    slope = 0.0
    for k in range(size):
        change = after[row, k] - before[t, k]
        residual[to, k] = change
        inner += moved[row, k] * after[row, k]
        slope += change * direction[row, k]
    return inner, slope


@part
def _strips_change(after: FloatArray, row: int, before: FloatArray, t: int, moved: FloatArray,
                   direction: FloatArray, residual: FloatArray,
                   to: int) -> tuple[float, float]:  # fmt: skip
    """Do what `rows_change` does, for rows of at least ``WIDTH`` columns."""
    size = after.shape[1]
    inner, slope = fill(0.0), fill(0.0)
    seen = 0
    for start in range(0, size, STRIP):
        for column in strip_columns(start, size):
            counts = load(after, row, column)
            change = subtract(counts, load(before, t, column))
            store(change, residual, to, column)
            new = lanes_from(seen - column)  # the others are in the sums already
            inner = multiply_add(multiply(new, load(moved, row, column)), counts, inner)
            slope = multiply_add(multiply(new, change), load(direction, row, column), slope)
            seen = column + WIDTH
    return total(inner), total(slope)


@part
def rows_move(rows: IdArray, values: FloatArray, step: int, begin: int, end: int,
              residual: FloatArray, bits: FloatArray, factor: float, threshold: float, h: int,
              dual: FloatArray, w: FloatArray, rise: FloatArray) -> FloatArray:  # fmt: skip
    """``v[h, k] += factor sum_n values[n] residual[rows[n], k]`` over ``begin <= n < end``.

    Where there is a weight; ``w = sign(v) max(|v| - threshold, 0)``. Returns the vector `rise` plus
    the rise of |w|^2. Rows are padded to whole vectors. Where the threshold is 0, `dual` and `w`
    may be the same array.
    """
    size = w.shape[1]
    for start in range(0, size, STRIP):
        p, q, r = strip_columns(start, size)
        a, b, c = fill(0.0), fill(0.0), fill(0.0)
        for n in range(begin, end):
            x, row = fill(values[n * step]), rows[n]
            a = multiply_add(x, load(residual, row, p), a)
            b = multiply_add(x, load(residual, row, q), b)
            c = multiply_add(x, load(residual, row, r), c)
        x, byte = fill(factor), start // WIDTH
        a = multiply_add(x, where_bits(bits[h, byte], a), load(dual, h, p))
        b = multiply_add(x, where_bits(bits[h, byte + 1], b), load(dual, h, q))
        c = multiply_add(x, where_bits(bits[h, byte + 2], c), load(dual, h, r))
        d, e, f = load(w, h, p), load(w, h, q), load(w, h, r)
        store(a, dual, h, p)
        store(b, dual, h, q)
        store(c, dual, h, r)
        a, b, c = _shrunk(a, threshold), _shrunk(b, threshold), _shrunk(c, threshold)
        store(a, w, h, p)
        store(b, w, h, q)
        store(c, w, h, r)
        rise = multiply_add(subtract(a, d), add(a, d), rise)
        if q > p:  # else they are the same numbers
            rise = multiply_add(subtract(b, e), add(b, e), rise)
        if r > q:
            rise = multiply_add(subtract(c, f), add(c, f), rise)
    return rise


@part
def _shrunk(x: FloatArray, threshold: float) -> FloatArray:
    """``sign(x) max(|x| - threshold, 0)``, as the sum of its positive and its negative part."""
    nothing = fill(0.0)
    up = larger(nothing, subtract(x, fill(threshold)))
    return add(up, smaller(nothing, add(x, fill(threshold))))
