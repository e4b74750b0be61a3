"""Sums and maxima of rows of tables, for rows of at least ``WIDTH`` columns where not said.

A strip of a row is three vectors that stay in registers while other rows are added to them; a
wider row has several strips. Vectors that would reach beyond the row begin earlier and overlap with
others: they compute the same numbers once more.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from crfkit._types import FloatArray, PlaceArray
from crfkit.compiler.jit import loop, part
from crfkit.compiler.simd import (
    WIDTH,
    add,
    fill,
    lanes_from,
    larger,
    largest,
    load,
    load_of,
    multiply,
    multiply_add,
    smaller,
    smallest,
    store,
    store_of,
    total,
    where_positive,
)

STRIP = 3 * WIDTH


class Strip(NamedTuple):
    """Three vectors: columns of a strip of a row."""

    first: FloatArray
    second: FloatArray
    third: FloatArray


@part
def strip_columns(start: int, size: int) -> tuple[int, int, int]:
    """Return where the vectors of a strip of a row begin."""
    last = size - WIDTH
    return min(start, last), min(start + WIDTH, last), min(start + 2 * WIDTH, last)


@part
def last_strip(size: int) -> int:
    """Return where the last strip of a row starts.

    The products of a step go from it to the first: columns of two strips then are those of the full
    strip, whether strips are worked on one by one or row by row.
    """
    return (size - 1) // STRIP * STRIP


@part
def _add_column(a: FloatArray, out: FloatArray, row: int, start: int) -> None:
    """Add a vector to the last columns of a row, but for those before `start`."""
    p = out.shape[1] - WIDTH
    store(multiply_add(lanes_from(start - p), a, load(out, row, p)), out, row, p)


@part
def _add_strip(strip: Strip, out: FloatArray, row: int, start: int) -> None:
    """Add to a strip of a row, but for columns before it: these have theirs."""
    p, q, r = strip_columns(start, out.shape[1])
    a = multiply_add(lanes_from(start - p), strip.first, load(out, row, p))
    b = multiply_add(lanes_from(start - q), strip.second, load(out, row, q))
    c = multiply_add(lanes_from(start - r), strip.third, load(out, row, r))
    store(a, out, row, p)
    store(b, out, row, q)
    store(c, out, row, r)


@part
def strips_top(scores: FloatArray, row: int) -> float:
    """``max_k scores[row, k]``."""
    size = scores.shape[1]
    most = fill(-math.inf)
    for start in range(0, size, STRIP):
        for column in strip_columns(start, size):
            most = larger(most, load(scores, row, column))
    return largest(most)


@part
def _one_add(slots: PlaceArray, values: FloatArray, step: int, begin: int, end: int,
             table: FloatArray, row: int, out: FloatArray, start: int) -> None:  # fmt: skip
    """Add the last columns of rows, two rows at a time; those before `start` are left out."""
    p, a, b = table.shape[1] - WIDTH, fill(0.0), fill(0.0)
    twos = end - (end - begin) % 2
    if step == 0:
        for n in range(begin, twos, 2):
            a = add(a, load(table, slots[n], p))
            b = add(b, load(table, slots[n + 1], p))
        for n in range(twos, end):
            a = add(a, load(table, slots[n], p))
    else:
        for n in range(begin, twos, 2):
            a = multiply_add(fill(values[n]), load(table, slots[n], p), a)
            b = multiply_add(fill(values[n + 1]), load(table, slots[n + 1], p), b)
        for n in range(twos, end):
            a = multiply_add(fill(values[n]), load(table, slots[n], p), a)
    _add_column(add(a, b), out, row, start)


@part
def nine_add(slots: PlaceArray, values: FloatArray, step: int, begin: int, end: int,
             table: FloatArray, row: int, out: FloatArray) -> None:  # fmt: skip
    """Add rows of a vector and one number: see `strips_add`.

    Nine are the labels of four types of entities that begin and go on.
    """
    a, b = load(out, row, 0), out[row, WIDTH]
    if step == 0:
        for n in range(begin, end):
            a = add(a, load(table, slots[n], 0))
            b += table[slots[n], WIDTH]
    else:
        for n in range(begin, end):
            x, slot = values[n], slots[n]
            a = multiply_add(fill(x), load(table, slot, 0), a)
            b += x * table[slot, WIDTH]
    store(a, out, row, 0)
    out[row, WIDTH] = b


@part
def two_add(slots: PlaceArray, values: FloatArray, step: int, begin: int, end: int,
            table: FloatArray, row: int, out: FloatArray) -> None:  # fmt: skip
    """Add rows of up to two vectors: see `strips_add`."""
    p, a, b = table.shape[1] - WIDTH, load(out, row, 0), load(out, row, table.shape[1] - WIDTH)
    if step == 0:
        for n in range(begin, end):
            a, b = add(a, load(table, slots[n], 0)), add(b, load(table, slots[n], p))
    else:
        for n in range(begin, end):
            x, slot = fill(values[n]), slots[n]
            a = multiply_add(x, load(table, slot, 0), a)
            b = multiply_add(x, load(table, slot, p), b)
    store(a, out, row, 0)
    store(b, out, row, p)


@part
def _strip_sum(slots: PlaceArray, values: FloatArray, step: int, begin: int, end: int,
               table: FloatArray, start: int, strip: Strip) -> Strip:  # fmt: skip
    """Return a strip plus those of rows."""
    p, q, r = strip_columns(start, table.shape[1])
    a, b, c = strip
    if step == 0:
        for n in range(begin, end):
            slot = slots[n]
            a, b = add(a, load(table, slot, p)), add(b, load(table, slot, q))
            c = add(c, load(table, slot, r))
    else:
        for n in range(begin, end):
            x, slot = fill(values[n]), slots[n]
            a = multiply_add(x, load(table, slot, p), a)
            b = multiply_add(x, load(table, slot, q), b)
            c = multiply_add(x, load(table, slot, r), c)
    return Strip(a, b, c)


@part
def three_add(slots: PlaceArray, values: FloatArray, step: int, begin: int, end: int,
              table: FloatArray, row: int, out: FloatArray) -> None:  # fmt: skip
    """Add the first strip of rows: see `strips_add`."""
    p, q, r = strip_columns(0, table.shape[1])
    before = Strip(load(out, row, p), load(out, row, q), load(out, row, r))
    after = _strip_sum(slots, values, step, begin, end, table, 0, before)
    store(after.first, out, row, p)
    store(after.second, out, row, q)
    store(after.third, out, row, r)


@part
def strips_add(slots: PlaceArray, values: FloatArray, step: int, begin: int, end: int,
               table: FloatArray, row: int, out: FloatArray) -> None:  # fmt: skip
    """``out[row, k] += sum_n values[n] table[slots[n], k]`` over ``begin <= n < end``.

    All values are 1 where the step is 0. Rows are not asked for before they are needed: to ask
    takes as long as to add.
    """
    size = table.shape[1]
    if size <= 2 * WIDTH:
        two_add(slots, values, step, begin, end, table, row, out)
        return
    three_add(slots, values, step, begin, end, table, row, out)
    for start in range(STRIP, size, STRIP):
        if size - start <= WIDTH:
            _one_add(slots, values, step, begin, end, table, row, out, start)
        else:
            nothing = Strip(fill(0.0), fill(0.0), fill(0.0))
            strip = _strip_sum(slots, values, step, begin, end, table, start, nothing)
            _add_strip(strip, out, row, start)


@part
def column_product(source: FloatArray, row: int, tables: FloatArray, m: int,
                    p: int) -> FloatArray:  # fmt: skip
    """``sum_i source[row, i] tables[m, i, p : p + 8]``, four ``i`` at a time."""
    size = tables.shape[1]
    a, b, c, d = fill(0.0), fill(0.0), fill(0.0), fill(0.0)
    fours = size - size % 4
    for i in range(0, fours, 4):
        a = multiply_add(fill(source[row, i]), load_of(tables, m, i, p), a)
        b = multiply_add(fill(source[row, i + 1]), load_of(tables, m, i + 1, p), b)
        c = multiply_add(fill(source[row, i + 2]), load_of(tables, m, i + 2, p), c)
        d = multiply_add(fill(source[row, i + 3]), load_of(tables, m, i + 3, p), d)
    for i in range(fours, size):
        a = multiply_add(fill(source[row, i]), load_of(tables, m, i, p), a)
    return add(add(a, b), add(c, d))


@part
def _strip_product(source: FloatArray, row: int, tables: FloatArray, m: int, start: int) -> Strip:
    """``sum_i source[row, i] tables[m, i, j]`` for a strip of ``j``."""
    p, q, r = strip_columns(start, tables.shape[2])
    a, b, c = fill(0.0), fill(0.0), fill(0.0)
    for i in range(tables.shape[1]):
        x = fill(source[row, i])
        a = multiply_add(x, load_of(tables, m, i, p), a)
        b = multiply_add(x, load_of(tables, m, i, q), b)
        c = multiply_add(x, load_of(tables, m, i, r), c)
    return Strip(a, b, c)


@part
def strips_product(source: FloatArray, row: int, tables: FloatArray, m: int, out: FloatArray,
                   to: int) -> None:  # fmt: skip
    """``out[to, j] = sum_i source[row, i] tables[m, i, j]``."""
    size = tables.shape[2]
    for start in range(last_strip(size), -1, -STRIP):
        p, q, r = strip_columns(start, size)
        if p == r:
            store(column_product(source, row, tables, m, p), out, to, p)
        else:
            strip = _strip_product(source, row, tables, m, start)
            store(strip.first, out, to, p)
            store(strip.second, out, to, q)
            store(strip.third, out, to, r)


@part
def product(source: FloatArray, row: int, tables: FloatArray, m: int, out: FloatArray,
            to: int) -> None:  # fmt: skip
    """``out[to, j] = sum_i source[row, i] tables[m, i, j]``, for rows of any length."""
    size = tables.shape[2]
    if size >= WIDTH:
        strips_product(source, row, tables, m, out, to)
        return
    for j in range(size):
        mass = 0.0
        for i in range(size):
            mass += source[row, i] * tables[m, i, j]
        out[to, j] = mass


@part
def strips_add_product(source: FloatArray, row: int, tables: FloatArray, m: int, out: FloatArray,
                       to: int) -> None:  # fmt: skip
    """``out[to, j] += sum_i source[row, i] tables[m, i, j]``."""
    size = tables.shape[2]
    for start in range(0, size, STRIP):
        p, _, r = strip_columns(start, size)
        if p == r:
            _add_column(column_product(source, row, tables, m, p), out, to, start)
        else:
            _add_strip(_strip_product(source, row, tables, m, start), out, to, start)


@part
def _column_best(source: FloatArray, row: int, tables: FloatArray, m: int, p: int) -> FloatArray:
    """``max_i (source[row, i] + tables[m, i, p : p + 8])``, two ``i`` at a time."""
    size = tables.shape[1]
    a, b = fill(-math.inf), fill(-math.inf)
    for i in range(0, size - 1, 2):
        a = larger(a, add(fill(source[row, i]), load_of(tables, m, i, p)))
        b = larger(b, add(fill(source[row, i + 1]), load_of(tables, m, i + 1, p)))
    if size % 2:
        a = larger(a, add(fill(source[row, size - 1]), load_of(tables, m, size - 1, p)))
    return larger(a, b)


@part
def strips_best(source: FloatArray, row: int, tables: FloatArray, m: int, added: FloatArray,
                t: int, out: FloatArray, to: int) -> None:  # fmt: skip
    """``out[to, j] = added[t, j] + max_i (source[row, i] + tables[m, i, j])``."""
    for start in range(0, tables.shape[2], STRIP):
        p, q, r = strip_columns(start, tables.shape[2])
        if p == r:
            a = _column_best(source, row, tables, m, p)
            store(add(load(added, t, p), a), out, to, p)
            return
        a, b, c = fill(-math.inf), fill(-math.inf), fill(-math.inf)
        for i in range(tables.shape[1]):
            x = fill(source[row, i])
            a = larger(a, add(x, load_of(tables, m, i, p)))
            b = larger(b, add(x, load_of(tables, m, i, q)))
            c = larger(c, add(x, load_of(tables, m, i, r)))
        store(add(load(added, t, p), a), out, to, p)
        store(add(load(added, t, q), b), out, to, q)
        store(add(load(added, t, r), c), out, to, r)


@loop
def strips_outer(left: FloatArray, first: int, right: FloatArray, begin: int, end: int,
                 out: FloatArray, m: int, low: int, high: int) -> None:  # fmt: skip
    """``out[m, i, j] += sum_t left[first + t, i] right[t, j]`` over ``begin <= t < end``.

    For the rows ``low <= i < high``, two at a time.
    """
    size = out.shape[2]
    for start in range(0, size, STRIP):
        p, q, r = strip_columns(start, size)
        if p == r:
            _column_outer(left, first, right, begin, end, out, m, low, high, start)
            return
        for i in range(low, high, 2):
            k = min(i + 1, high - 1)
            a, b, c = fill(0.0), fill(0.0), fill(0.0)
            d, e, f = fill(0.0), fill(0.0), fill(0.0)
            for t in range(begin, end):
                u, v, w = load(right, t, p), load(right, t, q), load(right, t, r)
                x, y = fill(left[first + t, i]), fill(left[first + t, k])
                a, b, c = multiply_add(x, u, a), multiply_add(x, v, b), multiply_add(x, w, c)
                d, e, f = multiply_add(y, u, d), multiply_add(y, v, e), multiply_add(y, w, f)
            _add_strip_of(Strip(a, b, c), out, m, i, start)
            if k > i:
                _add_strip_of(Strip(d, e, f), out, m, k, start)


@part
def add_outer(left: FloatArray, first: int, right: FloatArray, begin: int, end: int,
              out: FloatArray, m: int) -> None:  # fmt: skip
    """``out[m, i, j] += sum_t left[first + t, i] right[t, j]``, for rows of any length."""
    size = out.shape[2]
    if begin >= end:
        return
    if size >= WIDTH:
        strips_outer(left, first, right, begin, end, out, m, 0, size)
        return
    for t in range(begin, end):
        for i in range(size):
            for j in range(size):
                out[m, i, j] += left[first + t, i] * right[t, j]


@part
def _column_outer(left: FloatArray, first: int, right: FloatArray, begin: int, end: int,
                  out: FloatArray, m: int, low: int, high: int, start: int) -> None:  # fmt: skip
    """Add products as `strips_outer` does, for the last columns of a row, four ``i`` at a time."""
    p = out.shape[2] - WIDTH
    once = lanes_from(start - p)
    for i in range(low, high, 4):
        j, k, n = min(i + 1, high - 1), min(i + 2, high - 1), min(i + 3, high - 1)
        a, b, c, d = fill(0.0), fill(0.0), fill(0.0), fill(0.0)
        for t in range(begin, end):
            u = multiply(once, load(right, t, p))
            a = multiply_add(fill(left[first + t, i]), u, a)
            b = multiply_add(fill(left[first + t, j]), u, b)
            c = multiply_add(fill(left[first + t, k]), u, c)
            d = multiply_add(fill(left[first + t, n]), u, d)
        store_of(add(a, load_of(out, m, i, p)), out, m, i, p)
        if j > i:
            store_of(add(b, load_of(out, m, j, p)), out, m, j, p)
        if k > j:
            store_of(add(c, load_of(out, m, k, p)), out, m, k, p)
        if n > k:
            store_of(add(d, load_of(out, m, n, p)), out, m, n, p)


@part
def _add_strip_of(strip: Strip, out: FloatArray, m: int, i: int, start: int) -> None:
    """Add to a row of a table, but for columns before the strip."""
    p, q, r = strip_columns(start, out.shape[2])
    a = multiply_add(lanes_from(start - p), strip.first, load_of(out, m, i, p))
    b = multiply_add(lanes_from(start - q), strip.second, load_of(out, m, i, q))
    c = multiply_add(lanes_from(start - r), strip.third, load_of(out, m, i, r))
    store_of(a, out, m, i, p)
    store_of(b, out, m, i, q)
    store_of(c, out, m, i, r)


@part
def strips_shift(unary: FloatArray, shifted: FloatArray, shift: FloatArray) -> None:
    """``shifted[t, k] = unary[t, k] - max_j unary[t, j]``; a row of ``-inf`` stays one."""
    size = unary.shape[1]
    for t in range(unary.shape[0]):
        top = strips_top(unary, t)
        shift[t] = top
        down = fill(-top if top > -math.inf else 0.0)
        for start in range(0, size, STRIP):
            for column in strip_columns(start, size):
                store(add(load(unary, t, column), down), shifted, t, column)


@part
def new_lanes(size: int) -> Strip:
    """Return 1 for each lane of the last strip of a row whose column no earlier vector has."""
    start = last_strip(size)
    p, q, r = strip_columns(start, size)
    return Strip(lanes_from(start - p), lanes_from(p + WIDTH - q), lanes_from(q + WIDTH - r))


@part
def weigh_strip(strip: Strip, scale: FloatArray, node: FloatArray, t: int, start: int,
                alpha: FloatArray, row: int, new: Strip, mass: FloatArray,
                least: FloatArray) -> tuple[FloatArray, FloatArray]:  # fmt: skip
    """``alpha(j) = scale node_t(j) strip(j)``.

    Returns the sums and the least numbers of the lanes; `new` is that of `new_lanes`.
    """
    p, q, r = strip_columns(start, node.shape[1])
    a = multiply(strip.first, multiply(scale, load(node, t, p)))
    b = multiply(strip.second, multiply(scale, load(node, t, q)))
    c = multiply(strip.third, multiply(scale, load(node, t, r)))
    store(a, alpha, row, p)
    store(b, alpha, row, q)
    store(c, alpha, row, r)
    least = smaller(smaller(least, a), smaller(b, c))
    if start + STRIP < node.shape[1]:
        return add(mass, add(a, add(b, c))), least
    mass = multiply_add(new.first, a, multiply_add(new.second, b, multiply_add(new.third, c, mass)))
    return mass, least


@part
def strips_weigh(work: FloatArray, node: FloatArray, t: int, scale: float, alpha: FloatArray,
                 row: int) -> tuple[float, float]:  # fmt: skip
    """``alpha(j) = scale node_t(j) work(j)``; returns the sum and the least of it."""
    size = node.shape[1]
    x, mass, least, new = fill(scale), fill(0.0), fill(1.0), new_lanes(size)
    for start in range(last_strip(size), -1, -STRIP):
        p, q, r = strip_columns(start, size)
        strip = Strip(load(work, 0, p), load(work, 0, q), load(work, 0, r))
        mass, least = weigh_strip(strip, x, node, t, start, alpha, row, new, mass, least)
    return total(mass), smallest(least)


@part
def _back(beta: FloatArray, scale: FloatArray, node: FloatArray, t: int, column: int,
          alpha: FloatArray, row: int, message: FloatArray,
          marginals: FloatArray) -> None:  # fmt: skip
    """Step back as `back_strip` does, for one vector."""
    forward = load(alpha, row, column)
    back = where_positive(forward, beta)
    store(multiply(forward, back), marginals, t, column)
    store(multiply(multiply(scale, load(node, t, column)), back), message, row, column)


@part
def back_strip(beta: Strip, scale: FloatArray, node: FloatArray, t: int, start: int,
               alpha: FloatArray, row: int, message: FloatArray,
               marginals: FloatArray) -> None:  # fmt: skip
    """``marginals_t(j) = alpha(j) beta(j)`` and ``message(j) = scale node_t(j) beta(j)``.

    Both are 0 where alpha is: beta may be unbounded there.
    """
    p, q, r = strip_columns(start, node.shape[1])
    _back(beta.first, scale, node, t, p, alpha, row, message, marginals)
    _back(beta.second, scale, node, t, q, alpha, row, message, marginals)
    _back(beta.third, scale, node, t, r, alpha, row, message, marginals)


@part
def strips_step_back(node: FloatArray, t: int, scale: float, alpha: FloatArray, row: int,
                     beta: FloatArray, message: FloatArray,
                     marginals: FloatArray) -> None:  # fmt: skip
    """``marginals_t(j) = alpha(j) beta(j)`` and ``message(j) = scale node_t(j) beta(j)``."""
    for start in range(0, node.shape[1], STRIP):
        p, q, r = strip_columns(start, node.shape[1])
        strip = Strip(load(beta, 0, p), load(beta, 0, q), load(beta, 0, r))
        back_strip(strip, fill(scale), node, t, start, alpha, row, message, marginals)
