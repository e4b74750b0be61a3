"""Blocks of eight by eight numbers: rows become columns."""

from __future__ import annotations

from typing import Any

import numba
from llvmlite import ir

from crfkit._types import FloatArray
from crfkit.compiler.simd import WIDTH, address_of, emitted


def _emit_transpose(context: Any, builder: Any, kinds: Any, values: Any) -> None:
    """Exchange halves of pairs of rows: single numbers, pairs of numbers and fours."""
    first = address_of(context, builder, kinds[:2], values[:2])
    target = address_of(context, builder, kinds[2:], values[2:])
    whole = ir.IntType(32)
    rows = [builder.load(builder.gep(first, [whole(n)]), align=8) for n in range(WIDTH)]
    for size in (1, 2, 4):
        low = [k if not k & size else WIDTH + k - size for k in range(WIDTH)]
        masks = [ir.Constant(ir.VectorType(whole, WIDTH), [k + n * size for k in low])
                 for n in range(2)]  # fmt: skip
        for n in range(WIDTH):
            if not n & size:
                pair = rows[n], rows[n + size]
                rows[n], rows[n + size] = (builder.shuffle_vector(*pair, mask) for mask in masks)
    for n, row in enumerate(rows):
        builder.store(row, builder.gep(target, [whole(n)]), align=8)


@emitted(numba.types.void, _emit_transpose)
def transpose_at(source: FloatArray, place: int, target: FloatArray, where: int) -> None:
    """Write eight rows of eight numbers, one after the other, as columns to another place."""
    rows = source[place : place + WIDTH * WIDTH].reshape(WIDTH, WIDTH)
    target[where : where + WIDTH * WIDTH] = rows.T.ravel()
