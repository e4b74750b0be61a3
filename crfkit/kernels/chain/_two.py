"""Two sequences side by side: inner loops of `chain_sum` for rows of ``WIDTH`` columns and more.

What is done with each number, and in which order, is what is done for a sequence alone.
"""

from __future__ import annotations

from crfkit._types import FloatArray
from crfkit.compiler.jit import part
from crfkit.compiler.simd import fill, load_of, multiply_add, smallest, total
from crfkit.kernels._strips import (
    STRIP,
    Strip,
    back_strip,
    column_product,
    last_strip,
    new_lanes,
    strip_columns,
    weigh_strip,
)
from crfkit.kernels.chain.arrays import ChainExponentials, ChainWorkspace, Run


@part
def two_products(source: FloatArray, row: int, other: int, tables: FloatArray, m: int,
                  start: int) -> tuple[Strip, Strip]:  # fmt: skip
    """``sum_i source[row, i] tables[m, i, j]`` for a strip of ``j``, and the same for `other`."""
    p, q, r = strip_columns(start, tables.shape[2])
    if p == r:
        a = column_product(source, row, tables, m, p)
        u = column_product(source, other, tables, m, p)
        return Strip(a, a, a), Strip(u, u, u)
    a, b, c = fill(0.0), fill(0.0), fill(0.0)
    u, v, w = fill(0.0), fill(0.0), fill(0.0)
    for i in range(tables.shape[1]):
        d, e, f = load_of(tables, m, i, p), load_of(tables, m, i, q), load_of(tables, m, i, r)
        x, y = fill(source[row, i]), fill(source[other, i])
        a, b, c = multiply_add(x, d, a), multiply_add(x, e, b), multiply_add(x, f, c)
        u, v, w = multiply_add(y, d, u), multiply_add(y, e, v), multiply_add(y, f, w)
    return Strip(a, b, c), Strip(u, v, w)


@part
def two_forward(
    exponentials: ChainExponentials,
    m: int,
    short: Run,  # the sequences, whose first tokens are done; no longer than the other one
    long: Run,
    workspace: ChainWorkspace,
) -> float:
    """Scaled forward recurrence at as many tokens of two sequences as the shorter one has.

    Returns the least ``alpha``: nothing that follows a tiny one is valid.
    """
    node, factor = exponentials.node, exponentials.factor
    alpha, norm = workspace.alpha, workspace.norm
    begin, start, size = short.begin, long.begin, node.shape[1]
    one, two = 1.0 / norm[begin], 1.0 / norm[start]
    least, new = fill(1.0), new_lanes(size)
    for t in range(1, short.end - begin):
        mass, more = fill(0.0), fill(0.0)
        row, other = short.row + t, long.row + t
        for first in range(last_strip(size), -1, -STRIP):
            a, b = two_products(alpha, row - 1, other - 1, factor, m, first)
            mass, least = weigh_strip(
                a, fill(one), node, begin + t, first, alpha, row, new, mass, least
            )
            more, least = weigh_strip(
                b, fill(two), node, start + t, first, alpha, other, new, more, least
            )
        norm[begin + t], norm[start + t] = total(mass), total(more)
        if norm[begin + t] == 0.0 or norm[start + t] == 0.0:
            break
        one, two = 1.0 / norm[begin + t], 1.0 / norm[start + t]
    return smallest(least)


@part
def two_backward(
    exponentials: ChainExponentials,
    m: int,
    short: Run,  # the sequences, whose last messages are there; no longer than the other one
    long: Run,
    workspace: ChainWorkspace,  # with the forward vectors
    marginals: FloatArray,  # (N, K) out: weighted marginals
) -> None:
    """Scaled backward recurrence at as many tokens of two sequences as the shorter one has."""
    node, transposed = exponentials.node, exponentials.transposed
    norm, alpha, message = workspace.norm, workspace.alpha, workspace.message
    for t in range(short.end - 2, short.begin - 1, -1):
        n = t + long.end - short.end
        one = 1.0 / norm[t - 1] if t > short.begin else 0.0
        two = 1.0 / norm[n - 1] if n > long.begin else 0.0
        row, other = short.row + t - short.begin, long.row + n - long.begin
        for first in range(last_strip(node.shape[1]), -1, -STRIP):
            a, b = two_products(message, row + 1, other + 1, transposed, m, first)
            back_strip(a, fill(one), node, t, first, alpha, row, message, marginals)
            back_strip(b, fill(two), node, n, first, alpha, other, message, marginals)
