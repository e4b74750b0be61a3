"""Scores of tokens in segments: from those of attributes, to exponentials, and back.

Shapes and letters as in `semimarkov`; unary scores have ``3 K`` columns.
"""

from __future__ import annotations

import math

from crfkit._jit import kernel, part
from crfkit._simd import WIDTH, exponential, fill, larger, largest, load, store, subtract
from crfkit._types import FloatArray


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


@part
def _exponentials(unary: FloatArray, t: int, first: int, size: int, shift: float, work: FloatArray,
                  out: FloatArray) -> None:  # fmt: skip
    """``out[t, k] = exp(unary[t, first + k] - shift)``; `work` ends with ``-inf``."""
    down = fill(shift)
    if size >= WIDTH:
        for p in range(0, size, WIDTH):
            k = min(p, size - WIDTH)
            store(exponential(subtract(load(unary, t, first + k), down)), out, t, k)
        return
    for k in range(size):
        work[0, k] = unary[t, first + k]
    store(exponential(subtract(load(work, 0, 0), down)), out, t, 0)


@kernel
def semimarkov_exponentials(
    unary: FloatArray,  # (N, 3 K) scores of going on, of beginning and of ending
    size: int,  # K
    work: FloatArray,  # (1, W) -inf, changed
    stay: FloatArray,  # (N, W) zeros; out: exp(score of going on - shift)
    start: FloatArray,  # (N, W) zeros; out: exp(score of beginning - shift)
    finish: FloatArray,  # (N, W) zeros; out: exp(score of ending)
    shift: FloatArray,  # (N,) out: the largest score of going on and beginning
) -> None:
    """``exp(unary - shift)``; the shift is 0 where all of them are ``-inf``."""
    for t in range(unary.shape[0]):
        top = _top(unary, t, 2 * size)
        shift[t] = top if top > -math.inf else 0.0
        _exponentials(unary, t, 0, size, shift[t], work, stay)
        _exponentials(unary, t, size, size, shift[t], work, start)
        _exponentials(unary, t, 2 * size, size, 0.0, work, finish)


@kernel
def semimarkov_add_inside(unary: FloatArray, size: int) -> None:  # (N, 3 K), changed
    """``begin_t(k) += inside_t(k)``: the token that a segment begins with is one of its tokens."""
    for t in range(unary.shape[0]):
        for k in range(size):
            unary[t, size + k] += unary[t, k]


@kernel
def semimarkov_collect_inside(unary: FloatArray, size: int) -> None:  # (N, 3 K), changed
    """``inside_t(k) += begin_t(k)``, the adjoint of `semimarkov_add_inside`."""
    for t in range(unary.shape[0]):
        for k in range(size):
            unary[t, k] += unary[t, size + k]
