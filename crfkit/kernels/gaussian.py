"""Log densities and moments of normal distributions, eight labels at a time.

``D`` features, ``K`` labels, and ``P`` places for them, a multiple of eight. Tables have a column
for each place; what those beyond ``K`` say is not read.
"""

from __future__ import annotations

from typing import NamedTuple

from crfkit._types import FloatArray
from crfkit.compiler.jit import kernel, part
from crfkit.compiler.simd import (
    WIDTH,
    add,
    add_few,
    fill,
    load,
    load_few,
    multiply,
    multiply_add,
    store,
    subtract,
)


class NormalTables(NamedTuple):
    """Normal distributions of labels. Read-only."""

    mean: FloatArray  # (D, P)
    # (D, P) inverses of standard deviations; or (D (D + 1) / 2, P) the lower triangles, row by row,
    # of matrices that make the features independent, of variance 1
    factor: FloatArray
    constant: FloatArray  # (1, P) log density at the mean


class NormalSums(NamedTuple):
    """Moments of tokens by label, which the kernel writes."""

    mass: FloatArray  # (1, P) weights of the tokens
    mean: FloatArray  # (D, P) weighted means; 0 where the mass is
    scatter: FloatArray  # (D, P) sums of squares around the mean; (D (D + 1) / 2, P) of products


@part
def _scaled_distance(values: FloatArray, t: int, column: int, tables: NormalTables) -> FloatArray:
    """Return squared distances of a token from the means of independent features."""
    total = fill(0.0)
    for d in range(values.shape[1]):
        apart = subtract(fill(values[t, d]), load(tables.mean, d, column))
        one = multiply(load(tables.factor, d, column), apart)
        total = multiply_add(one, one, total)
    return total


@part
def _turned_distance(values: FloatArray, t: int, column: int, tables: NormalTables) -> FloatArray:
    """Return squared distances of a token from the means, two rows of a triangle at a time."""
    total, factor, mean = fill(0.0), tables.factor, tables.mean
    for d in range(0, values.shape[1], 2):
        row, a, b = d * (d + 1) // 2, fill(0.0), fill(0.0)
        below = row + d + 1 if d + 1 < values.shape[1] else row
        for e in range(d + 1):
            apart = subtract(fill(values[t, e]), load(mean, e, column))
            a = multiply_add(load(factor, row + e, column), apart, a)
            b = multiply_add(load(factor, below + e, column), apart, b)
        total = multiply_add(a, a, total)
        if below != row:
            apart = subtract(fill(values[t, d + 1]), load(mean, d + 1, column))
            b = multiply_add(load(factor, below + d + 1, column), apart, b)
            total = multiply_add(b, b, total)
    return total


@kernel
def normal_scores(
    values: FloatArray,  # (N, D)
    begin: int,  # the first of the n tokens
    tables: NormalTables,
    out: FloatArray,  # (n, K) added to: log densities
) -> None:
    """``out[t, k] += constant[k] - |factor[k] (values[t] - mean[k])|**2 / 2``."""
    size, half, is_scaled = out.shape[1], fill(-0.5), tables.factor.shape[0] == values.shape[1]
    for t in range(out.shape[0]):
        for column in range(0, size, WIDTH):
            if is_scaled:
                total = _scaled_distance(values, begin + t, column, tables)
            else:
                total = _turned_distance(values, begin + t, column, tables)
            score = multiply_add(half, total, load(tables.constant, 0, column))
            if column + WIDTH <= size:
                store(add(load(out, t, column), score), out, t, column)
            else:
                add_few(score, out, t, column, size - column)


@part
def _shares(shares: FloatArray, t: int, column: int) -> FloatArray:
    """Return the shares of eight labels, 0 beyond the last."""
    return load_few(shares, t, column, min(shares.shape[1] - column, WIDTH))


@part
def _add_means(values: FloatArray, begin: int, shares: FloatArray, column: int,
               out: NormalSums) -> None:  # fmt: skip
    """Write masses and means of eight labels."""
    mass, mean = out.mass, out.mean
    whole = fill(0.0)
    for t in range(shares.shape[0]):
        whole = add(whole, _shares(shares, t, column))
    store(whole, mass, 0, column)
    for d in range(values.shape[1]):
        sums = fill(0.0)
        for t in range(shares.shape[0]):
            sums = multiply_add(_shares(shares, t, column), fill(values[begin + t, d]), sums)
        store(sums, mean, d, column)
        for k in range(column, column + WIDTH):
            mean[d, k] = mean[d, k] / mass[0, k] if mass[0, k] > 0.0 else 0.0


@part
def _add_squares(values: FloatArray, begin: int, shares: FloatArray, column: int,
                 out: NormalSums) -> None:  # fmt: skip
    """Write sums of squares of eight labels."""
    for d in range(values.shape[1]):
        mean, sums = load(out.mean, d, column), fill(0.0)
        for t in range(shares.shape[0]):
            apart = subtract(fill(values[begin + t, d]), mean)
            sums = multiply_add(multiply(_shares(shares, t, column), apart), apart, sums)
        store(sums, out.scatter, d, column)


@part
def _add_products(values: FloatArray, begin: int, shares: FloatArray, column: int,
                  out: NormalSums) -> None:  # fmt: skip
    """Write sums of products of eight labels: those with two features at a time."""
    mean, scatter = out.mean, out.scatter
    for d in range(values.shape[1]):
        own, row = load(mean, d, column), d * (d + 1) // 2
        for e in range(0, d + 1, 2):
            f = min(e + 1, d)
            first, second, a, b = load(mean, e, column), load(mean, f, column), fill(0.0), fill(0.0)
            for t in range(shares.shape[0]):
                place = begin + t
                weighted = multiply(
                    _shares(shares, t, column), subtract(fill(values[place, d]), own)
                )
                a = multiply_add(weighted, subtract(fill(values[place, e]), first), a)
                b = multiply_add(weighted, subtract(fill(values[place, f]), second), b)
            store(a, scatter, row + e, column)
            store(b, scatter, row + f, column)


@kernel
def normal_sums(
    values: FloatArray,  # (N, D)
    begin: int,  # the first of the n tokens
    shares: FloatArray,  # (n, K) weights of the tokens for each label
    out: NormalSums,
) -> None:
    """Weighted moments of each label, those of second order around the means: nothing cancels."""
    for column in range(0, shares.shape[1], WIDTH):
        _add_means(values, begin, shares, column, out)
        if out.scatter.shape[0] == values.shape[1]:
            _add_squares(values, begin, shares, column, out)
        else:
            _add_products(values, begin, shares, column, out)
