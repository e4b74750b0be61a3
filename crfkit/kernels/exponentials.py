"""Exponentials of whole arrays."""

from __future__ import annotations

from crfkit._types import FloatArray
from crfkit.compiler.jit import kernel
from crfkit.compiler.simd import WIDTH, add_few, exponential, load, load_few, store


@kernel
def exponentials(row: FloatArray) -> None:
    """``row[0, n] = exp(row[0, n])``, for a row of any length.

    NumPy has vectors for this on some machines only.
    """
    size = row.shape[1]
    whole = size - size % WIDTH
    for n in range(0, whole, WIDTH):
        store(exponential(load(row, 0, n)), row, 0, n)
    last = exponential(load_few(row, 0, whole, size - whole))
    for n in range(whole, size):
        row[0, n] = 0.0
    add_few(last, row, 0, whole, size - whole)
