"""Two sequences side by side: inner loops of `chain_sum` for rows of ``WIDTH`` columns and more.

What is done with each number, and in which order, is what is done for a sequence alone.
"""

from __future__ import annotations

from crfkit._types import FloatArray
from crfkit.compiler.jit import kernel, part
from crfkit.compiler.simd import fill, load_of, multiply_add, smallest, total
from crfkit.kernels._strips import (
    STRIP,
    back_strip,
    column_product,
    last_strip,
    once,
    strip_columns,
    weigh_strip,
)


@part
def _two_products(source: FloatArray, row: int, other: int, tables: FloatArray, m: int,
                  start: int) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray, FloatArray,
                                       FloatArray]:  # fmt: skip
    """``sum_i source[row, i] tables[m, i, j]`` for a strip of ``j``, and the same for `other`."""
    p, q, r = strip_columns(start, tables.shape[2])
    if p == r:
        a = column_product(source, row, tables, m, p)
        u = column_product(source, other, tables, m, p)
        return a, a, a, u, u, u
    a, b, c = fill(0.0), fill(0.0), fill(0.0)
    u, v, w = fill(0.0), fill(0.0), fill(0.0)
    for i in range(tables.shape[1]):
        d, e, f = load_of(tables, m, i, p), load_of(tables, m, i, q), load_of(tables, m, i, r)
        x, y = fill(source[row, i]), fill(source[other, i])
        a, b, c = multiply_add(x, d, a), multiply_add(x, e, b), multiply_add(x, f, c)
        u, v, w = multiply_add(y, d, u), multiply_add(y, e, v), multiply_add(y, f, w)
    return a, b, c, u, v, w


@kernel
def two_forward(
    node: FloatArray,  # (N, K) exp(unary - its largest)
    factor: FloatArray,  # (M, K, K) exp(pair - its largest)
    m: int,
    begin: int,  # the first tokens, whose rows are there already
    start: int,
    count: int,
    alpha: FloatArray,  # (R, K) out: the rows from `row` and `other` on
    row: int,
    other: int,
    norm: FloatArray,  # (N,) out
) -> float:
    """Scaled forward recurrence at the first `count` tokens of two sequences.

    Returns the least ``alpha``: nothing that follows a tiny one is valid.
    """
    size = node.shape[1]
    one, two = 1.0 / norm[begin], 1.0 / norm[start]
    least = fill(1.0)
    x, y, z = once(size)
    for t in range(1, count):
        mass, more = fill(0.0), fill(0.0)
        at, below = row + t, other + t
        for first in range(last_strip(size), -1, -STRIP):
            a, b, c, u, v, w = _two_products(alpha, at - 1, below - 1, factor, m, first)
            mass, least = weigh_strip(
                a, b, c, fill(one), node, begin + t, first, mass, least, alpha, at, x, y, z
            )
            more, least = weigh_strip(
                u, v, w, fill(two), node, start + t, first, more, least, alpha, below, x, y, z
            )
        norm[begin + t], norm[start + t] = total(mass), total(more)
        if norm[begin + t] == 0.0 or norm[start + t] == 0.0:
            break
        one, two = 1.0 / norm[begin + t], 1.0 / norm[start + t]
    return smallest(least)


@kernel
def two_backward(
    node: FloatArray,  # (N, K)
    turned: FloatArray,  # (M, K, K) exp(pair - its largest), each transposed
    m: int,
    begin: int,  # the shorter sequence
    end: int,
    start: int,  # the other
    stop: int,
    norm: FloatArray,  # (N,) from the forward recurrence
    alpha: FloatArray,  # (R, K) from the forward recurrence
    row: int,
    other: int,
    message: FloatArray,  # (R, K) out; the last rows of both are there already
    marginals: FloatArray,  # (N, K) out: weighted marginals
) -> None:
    """Scaled backward recurrence at as many tokens of two sequences as the shorter one has."""
    shift = other + (stop - end) - start + begin - row
    for t in range(end - 2, begin - 1, -1):
        n = t + stop - end
        one = 1.0 / norm[t - 1] if t > begin else 0.0
        two = 1.0 / norm[n - 1] if n > start else 0.0
        at = row + t - begin
        for first in range(last_strip(node.shape[1]), -1, -STRIP):
            a, b, c, u, v, w = _two_products(message, at + 1, at + shift + 1, turned, m, first)
            back_strip(a, b, c, fill(one), node, t, first, alpha, at, message, marginals)
            back_strip(u, v, w, fill(two), node, n, first, alpha, at + shift, message, marginals)
