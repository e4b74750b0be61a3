"""Numbers that several threads count up and wait for, in compiled code.

A kernel that several threads run at the same time shares an array of whole numbers between them.
What a thread wrote before it publishes or takes a number can be read by each that looks at it
later.
"""

from __future__ import annotations

import threading
from typing import Any

import numba
from llvmlite import ir

from crfkit._types import IntArray
from crfkit.compiler.simd import emitted

_WHOLE = ir.IntType(64)

# Without the compiler the interpreter may change between threads anywhere.
_LOCK = threading.Lock()


def _address(context: Any, builder: Any, kinds: Any, values: Any) -> Any:
    """Return the address of a number in an array, given its index."""
    array = context.make_array(kinds[0])(context, builder, values[0])
    return builder.gep(array.data, [context.cast(builder, values[1], kinds[1], numba.types.int64)])


def _emit_take(context: Any, builder: Any, kinds: Any, values: Any) -> Any:
    one = ir.Constant(_WHOLE, 1)
    return builder.atomic_rmw("add", _address(context, builder, kinds, values), one, "seq_cst")


def _emit_claim(context: Any, builder: Any, kinds: Any, values: Any) -> Any:
    expected = context.cast(builder, values[2], kinds[2], numba.types.int64)
    after = builder.add(expected, ir.Constant(_WHOLE, 1))
    place = _address(context, builder, kinds, values)
    return builder.extract_value(builder.cmpxchg(place, expected, after, "seq_cst", "seq_cst"), 1)


def _emit_look(context: Any, builder: Any, kinds: Any, values: Any) -> Any:
    return builder.load_atomic(_address(context, builder, kinds, values), "acquire", 8)


def _emit_publish(context: Any, builder: Any, kinds: Any, values: Any) -> None:
    value = context.cast(builder, values[2], kinds[2], numba.types.int64)
    builder.store_atomic(value, _address(context, builder, kinds, values), "release", 8)


def _gives_whole(*arguments: Any) -> Any:
    return numba.types.int64(*arguments)


def _gives_truth(*arguments: Any) -> Any:
    return numba.types.boolean(*arguments)


def _gives_nothing(*arguments: Any) -> Any:
    return numba.types.void(*arguments)


@emitted(_gives_whole, _emit_take)
def take(numbers: IntArray, index: int) -> int:
    """Return a number and add 1 to it, in one."""
    with _LOCK:
        number = int(numbers[index])
        numbers[index] = number + 1
    return number


@emitted(_gives_truth, _emit_claim)
def claim(numbers: IntArray, index: int, expected: int) -> bool:
    """Add 1 to a number if it is the expected one, in one; returns whether it was."""
    with _LOCK:
        equal = bool(numbers[index] == expected)
        numbers[index] += equal
    return equal


@emitted(_gives_whole, _emit_look)
def look(numbers: IntArray, index: int) -> int:
    """Return a number as it is now."""
    with _LOCK:
        return int(numbers[index])


@emitted(_gives_nothing, _emit_publish)
def publish(numbers: IntArray, index: int, value: int) -> None:
    """Write a number."""
    with _LOCK:
        numbers[index] = value
