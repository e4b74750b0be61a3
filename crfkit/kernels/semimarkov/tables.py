"""Scores of tokens in segments: from those of attributes, to tables of each kind, and back.

Shapes as in :mod:`crfkit.kernels.semimarkov.arrays`; unary scores have ``4 K`` columns.
"""

from __future__ import annotations

import math

from crfkit._types import FloatArray
from crfkit.compiler.jit import kernel, part
from crfkit.compiler.simd import WIDTH, fill, larger, largest, load


@part
def _top(unary: FloatArray, t: int, columns: int) -> float:
    """``max_c unary[t, c]`` over the first columns."""
    if columns >= WIDTH:
        most = fill(-math.inf)
        for p in range(0, columns, WIDTH):
            most = larger(most, load(unary, t, min(p, columns - WIDTH)))
        return largest(most)
    top = -math.inf
    for c in range(columns):
        top = unary[t, c] if unary[t, c] > top else top
    return top


@kernel
def semimarkov_shift(
    unary: FloatArray,  # (N, 4 K) scores of going on, beginning, ending, being alone
    size: int,  # K
    most: float,
    shifted: FloatArray,  # (N, 4 K) out: the first two minus the shift, others up to `most`
    shift: FloatArray,  # (N,) out: the largest score of going on and beginning
) -> None:
    """``shifted_t = unary_t - shift_t``; the shift is 0 where all of them are ``-inf``."""
    for t in range(unary.shape[0]):
        top = _top(unary, t, 2 * size)
        shift[t] = top if top > -math.inf else 0.0
        for c in range(2 * size):
            shifted[t, c] = unary[t, c] - shift[t]
        for c in range(2 * size, 4 * size):
            shifted[t, c] = min(unary[t, c], most)


@kernel
def semimarkov_part(
    unary: FloatArray,  # (N, 4 K)
    size: int,  # K
    stay: FloatArray,  # (N, W) out: the first K columns, and what it had in further ones
    start: FloatArray,  # (N, W) out: the next
    finish: FloatArray,  # (N, W) out: the next
    alone: FloatArray,  # (N, W) out: the last
) -> None:
    """Write each quarter of the columns into the rows of a table of its own."""
    for t in range(unary.shape[0]):
        for k in range(size):
            stay[t, k] = unary[t, k]
        for k in range(size):
            start[t, k] = unary[t, size + k]
        for k in range(size):
            finish[t, k] = unary[t, 2 * size + k]
        for k in range(size):
            alone[t, k] = unary[t, 3 * size + k]
