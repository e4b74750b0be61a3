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
def _distance(column: int, n_features: int, factor: FloatArray, work: FloatArray) -> FloatArray:
    """Return squared distances from the means, where `work` has the differences."""
    total, row = fill(0.0), 0
    if factor.shape[0] == n_features:
        for d in range(n_features):
            one = multiply(load(factor, d, column), load(work, d, 0))
            total = multiply_add(one, one, total)
        return total
    for d in range(n_features):
        one = fill(0.0)
        for e in range(d + 1):
            one = multiply_add(load(factor, row + e, column), load(work, e, 0), one)
        row += d + 1
        total = multiply_add(one, one, total)
    return total


@kernel
def normal_scores(
    values: FloatArray,  # (N, D)
    begin: int,  # the first of the n tokens
    tables: NormalTables,
    work: FloatArray,  # (D, 8) workspace
    out: FloatArray,  # (n, K) added to: log densities
) -> None:
    """``out[t, k] += constant[k] - |factor[k] (values[t] - mean[k])|**2 / 2``."""
    mean, size, n_features = tables.mean, out.shape[1], values.shape[1]
    half = fill(-0.5)
    for t in range(out.shape[0]):
        for column in range(0, size, WIDTH):
            for d in range(n_features):
                x = fill(values[begin + t, d])
                store(subtract(x, load(mean, d, column)), work, d, 0)
            total = _distance(column, n_features, tables.factor, work)
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
def _add_means(values: FloatArray, begin: int, shares: FloatArray, out: NormalSums) -> None:
    """Write masses and means."""
    mass, mean = out.mass, out.mean
    for column in range(0, shares.shape[1], WIDTH):
        whole = fill(0.0)
        for t in range(shares.shape[0]):
            share = _shares(shares, t, column)
            whole = add(whole, share)
            for d in range(values.shape[1]):
                sums = multiply_add(share, fill(values[begin + t, d]), load(mean, d, column))
                store(sums, mean, d, column)
        store(whole, mass, 0, column)
    for d in range(values.shape[1]):
        for k in range(mass.shape[1]):
            mean[d, k] = mean[d, k] / mass[0, k] if mass[0, k] > 0.0 else 0.0


@part
def _add_square(d: int, column: int, share: FloatArray, work: FloatArray,
                scatter: FloatArray) -> None:  # fmt: skip
    """Add the square of a difference from the mean."""
    x = load(work, d, 0)
    store(multiply_add(multiply(share, x), x, load(scatter, d, column)), scatter, d, column)


@part
def _add_products(d: int, column: int, share: FloatArray, work: FloatArray,
                  scatter: FloatArray) -> None:  # fmt: skip
    """Add the products of a difference with those of the features up to it."""
    weighted, row = multiply(share, load(work, d, 0)), d * (d + 1) // 2
    for e in range(d + 1):
        sums = multiply_add(weighted, load(work, e, 0), load(scatter, row + e, column))
        store(sums, scatter, row + e, column)


@kernel
def normal_sums(
    values: FloatArray,  # (N, D)
    begin: int,  # the first of the n tokens
    shares: FloatArray,  # (n, K) weights of the tokens for each label
    work: FloatArray,  # (D, 8) workspace
    out: NormalSums,  # zeros
) -> None:
    """Weighted moments of each label, those of second order around the means: nothing cancels."""
    mean, scatter, n_features = out.mean, out.scatter, values.shape[1]
    _add_means(values, begin, shares, out)
    for column in range(0, shares.shape[1], WIDTH):
        for t in range(shares.shape[0]):
            share = _shares(shares, t, column)
            for d in range(n_features):
                x = subtract(fill(values[begin + t, d]), load(mean, d, column))
                store(x, work, d, 0)
                if scatter.shape[0] == n_features:
                    _add_square(d, column, share, work, scatter)
                else:
                    _add_products(d, column, share, work, scatter)
