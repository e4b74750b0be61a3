"""What the builders of vector instructions share: types of LLVM, addresses, lanes and parts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba
from llvmlite import ir

WIDTH = 8

VECTOR = ir.VectorType(ir.DoubleType(), WIDTH)
NUMBER = ir.DoubleType()
BITS = ir.VectorType(ir.IntType(64), WIDTH)


def function_of(builder: Any, kind: Any, name: str) -> Any:
    """Return a function of LLVM, declared once in a module."""
    known = builder.module.globals.get(name)
    return ir.Function(builder.module, kind, name) if known is None else known


def address_of(context: Any, builder: Any, kinds: Any, values: Any) -> Any:
    """Return the address of eight numbers in an array in C order, given its indices."""
    array = context.make_array(kinds[0])(context, builder, values[0])
    position = ir.Constant(ir.IntType(64), 0)
    for axis, (kind, index) in enumerate(zip(kinds[1:], values[1:], strict=True)):
        size = builder.extract_value(array.shape, axis)
        whole = context.cast(builder, index, kind, numba.types.uint64)
        position = builder.add(builder.mul(position, size), whole)
    return builder.bitcast(builder.gep(array.data, [position]), VECTOR.as_pointer())


def lanes_below(context: Any, builder: Any, kind: Any, count: Any) -> Any:
    """Return which lanes come before one: a vector of bits."""
    bound = repeated(builder, BITS, context.cast(builder, count, kind, numba.types.int64))
    return builder.icmp_signed("<", ir.Constant(BITS, list(range(WIDTH))), bound)


def repeated(builder: Any, kind: Any, number: Any) -> Any:
    """Return a vector with a number in all lanes."""
    anything, places = ir.Constant(kind, ir.Undefined), ir.VectorType(ir.IntType(32), WIDTH)
    one = builder.insert_element(anything, number, ir.IntType(32)(0))
    return builder.shuffle_vector(one, anything, ir.Constant(places, None))


def by_parts(
    builder: Any, x: Any, address: Any, count: Any, do: Callable[[Any, Any], None]
) -> None:
    """Do something with the first numbers of a vector by eights, fours, twos and ones."""
    whole, place = ir.IntType(32), builder.bitcast(address, NUMBER.as_pointer())
    for size in (WIDTH, 4, 2, 1):
        kind = ir.VectorType(NUMBER, size)
        lanes = ir.Constant(ir.VectorType(whole, size), list(range(size)))
        there = builder.trunc(builder.lshr(count, count.type(size.bit_length() - 1)), ir.IntType(1))
        with builder.if_then(there):
            do(builder.shuffle_vector(x, x, lanes), builder.bitcast(place, kind.as_pointer()))
        turned = [(lane + size) % WIDTH for lane in range(WIDTH)]
        rest = builder.shuffle_vector(x, x, ir.Constant(ir.VectorType(whole, WIDTH), turned))
        x = builder.select(there, rest, x)
        place = builder.select(there, builder.gep(place, [whole(size)]), place)
