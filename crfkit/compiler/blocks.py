"""Blocks of eight by eight numbers: a row of each lane becomes vectors over the lanes, and back."""

from __future__ import annotations

from typing import Any

import numba
from llvmlite import ir

from crfkit._types import FloatArray, IntArray
from crfkit.compiler.instructions import BITS, NUMBER, VECTOR, WIDTH, address_of, by_parts, repeated
from crfkit.compiler.simd import emit_load_few, emitted

_WHOLE = ir.IntType(32)


def _transposed(builder: Any, rows: list[Any]) -> list[Any]:
    """Exchange halves of pairs of rows: single numbers, pairs of numbers and fours."""
    for size in (1, 2, 4):
        low = [k if not k & size else WIDTH + k - size for k in range(WIDTH)]
        masks = [ir.Constant(ir.VectorType(_WHOLE, WIDTH), [k + n * size for k in low])
                 for n in range(2)]  # fmt: skip
        for n in range(WIDTH):
            if not n & size:
                pair = rows[n], rows[n + size]
                rows[n], rows[n + size] = (builder.shuffle_vector(*pair, mask) for mask in masks)
    return rows


class _Lanes:
    """The row ``first[lane] + t`` of each lane, if it is there: ``t < size[lane]``."""

    def __init__(self, context: Any, builder: Any, kinds: Any, values: Any) -> None:
        """Given an array of rows, `first`, `size` and `t`."""
        self.builder, zero = builder, ir.Constant(ir.IntType(64), 0)
        plain = numba.types.int64
        first, size = (
            builder.load(
                builder.bitcast(
                    address_of(context, builder, (kinds[n], plain), (values[n], zero)),
                    BITS.as_pointer(),
                ),
                align=8,
            )
            for n in (1, 2)
        )
        t = repeated(builder, BITS, context.cast(builder, values[3], kinds[3], plain))
        self.there = builder.icmp_signed("<", t, size)
        rows = builder.add(first, builder.select(self.there, t, ir.Constant(BITS, None)))
        self._context, self._kinds, self._array = context, (kinds[0], plain, plain), values[0]
        self._rows = rows

    def is_there(self, lane: int) -> Any:
        """Return whether a lane has the row."""
        return self.builder.extract_element(self.there, _WHOLE(lane))

    def place(self, lane: int, column: Any) -> tuple[Any, Any, Any]:
        """Return the array, the row of a lane or its first one, and the column."""
        return self._array, self.builder.extract_element(self._rows, _WHOLE(lane)), column

    def address(self, lane: int, column: Any) -> Any:
        """Return the address of eight numbers of that row."""
        place = self.place(lane, column)
        return address_of(self._context, self.builder, self._kinds, place)

    def some(self, lane: int, column: Any, kind: Any, count: Any) -> Any:
        """Return `count` numbers of that row; 0 in all other lanes, and where it is not there."""
        kinds, place = (*self._kinds, kind), (*self.place(lane, column), count)
        row = emit_load_few(self._context, self.builder, kinds, place)
        return self.builder.select(self.is_there(lane), row, ir.Constant(VECTOR, None))


def _emit_lay_rows(context: Any, builder: Any, kinds: Any, values: Any) -> None:
    lanes = _Lanes(context, builder, kinds, values)
    column = context.cast(builder, values[4], kinds[4], numba.types.int64)
    rows = [lanes.some(lane, column, kinds[5], values[5]) for lane in range(WIDTH)]
    target = address_of(context, builder, kinds[6:], values[6:])
    for n, vector in enumerate(_transposed(builder, rows)):
        builder.store(vector, builder.gep(target, [_WHOLE(n)]), align=8)


def _emit_lay_column(context: Any, builder: Any, kinds: Any, values: Any) -> None:
    lanes, vector = _Lanes(context, builder, kinds, values), ir.Constant(VECTOR, ir.Undefined)
    column = context.cast(builder, values[4], kinds[4], numba.types.int64)
    for lane in range(WIDTH):
        place = builder.bitcast(lanes.address(lane, column), NUMBER.as_pointer())
        vector = builder.insert_element(vector, builder.load(place), _WHOLE(lane))
    there = builder.select(lanes.there, vector, ir.Constant(VECTOR, None))
    builder.store(there, address_of(context, builder, kinds[5:], values[5:]), align=8)


def _emit_take_rows(context: Any, builder: Any, kinds: Any, values: Any) -> None:
    lanes = _Lanes(context, builder, kinds, values)
    column = context.cast(builder, values[4], kinds[4], numba.types.int64)
    source = address_of(context, builder, kinds[6:], values[6:])
    rows = [builder.load(builder.gep(source, [_WHOLE(n)]), align=8) for n in range(WIDTH)]
    count = context.cast(builder, values[5], kinds[5], numba.types.int64)

    def store_part(part: Any, address: Any) -> None:  # a masked store takes as long as many others
        builder.store(part, address, align=8)

    for lane, row in enumerate(_transposed(builder, rows)):
        with builder.if_then(lanes.is_there(lane)):
            by_parts(builder, row, lanes.address(lane, column), count, store_part)


def _emit_take_column(context: Any, builder: Any, kinds: Any, values: Any) -> None:
    lanes = _Lanes(context, builder, kinds, values)
    column = context.cast(builder, values[4], kinds[4], numba.types.int64)
    vector = builder.load(address_of(context, builder, kinds[5:], values[5:]), align=8)
    for lane in range(WIDTH):
        with builder.if_then(lanes.is_there(lane)):
            place = builder.bitcast(lanes.address(lane, column), NUMBER.as_pointer())
            builder.store(builder.extract_element(vector, _WHOLE(lane)), place)


@emitted(numba.types.void, _emit_lay_rows)
def lay_rows(array: FloatArray, first: IntArray, size: IntArray, t: int, column: int, count: int,
             target: FloatArray, place: int) -> None:  # fmt: skip
    """Write `count` numbers, at most eight, of the row ``first[lane] + t`` of each lane.

    Those of one column are one vector, from `place` on; eight vectors are written. What is beyond
    `count`, and lanes whose ``size`` is not above `t`, are 0.
    """
    for k in range(WIDTH):
        for lane in range(WIDTH):
            there = t < size[lane] and k < count
            number = array[first[lane] + t, column + k] if there else 0.0
            target[place + WIDTH * k + lane] = number


@emitted(numba.types.void, _emit_lay_column)
def lay_column(array: FloatArray, first: IntArray, size: IntArray, t: int, column: int,
               target: FloatArray, place: int) -> None:  # fmt: skip
    """Write one number of the row ``first[lane] + t`` of each lane as a vector, as `lay_rows`."""
    for lane in range(WIDTH):
        there = t < size[lane]
        target[place + lane] = array[first[lane] + t, column] if there else 0.0


@emitted(numba.types.void, _emit_take_rows)
def take_rows(array: FloatArray, first: IntArray, size: IntArray, t: int, column: int, count: int,
              source: FloatArray, place: int) -> None:  # fmt: skip
    """Write `count` vectors, at most eight, to columns of the row ``first[lane] + t`` of each lane.

    Eight vectors are read. Lanes whose ``size`` is not above `t` have no such row.
    """
    for lane in range(WIDTH):
        if t < size[lane]:
            for k in range(count):
                array[first[lane] + t, column + k] = source[place + WIDTH * k + lane]


@emitted(numba.types.void, _emit_take_column)
def take_column(array: FloatArray, first: IntArray, size: IntArray, t: int, column: int,
                source: FloatArray, place: int) -> None:  # fmt: skip
    """Write a vector to one column of the row ``first[lane] + t`` of each lane: see `take_rows`."""
    for lane in range(WIDTH):
        if t < size[lane]:
            array[first[lane] + t, column] = source[place + lane]
