"""What kernels may ask objects of the interpreter: types, items, hashes, numbers.

Objects are given by their addresses, which :func:`id` tells. A kernel that asks is an
`object_kernel`: it holds the interpreter lock, so that nothing it reads is changed meanwhile. All
questions are functions of the C interface of Python that run no code of users, for the types that
are named here, and make no objects. Only the type of an object is read from memory itself; where it
stands is tried before the first kernel (`can_read_objects`).
"""

from __future__ import annotations

import ctypes
import sys
from functools import cache
from typing import Any

import numba
from llvmlite import ir

from crfkit._types import IntArray
from crfkit.compiler.simd import emits, emitted

_WHOLE, _INT, _DOUBLE = ir.IntType(64), ir.IntType(32), ir.DoubleType()
_AT_TYPE = ctypes.sizeof(ctypes.c_void_p)  # where an object has its type, behind its references


@cache
def can_read_objects() -> bool:
    """Whether kernels can read objects: those of CPython with its lock, on 64 bits."""
    if numba.config.DISABLE_JIT or not emits() or sys.implementation.name != "cpython":
        return False
    if not getattr(sys, "_is_gil_enabled", lambda: True)() or _AT_TYPE != 8:
        return False
    tried: tuple[Any, ...] = ({}, [], (), "text", 0.5, 1, True, None)
    return all(ctypes.c_void_p.from_address(id(x) + _AT_TYPE).value == id(type(x)) for x in tried)


def _call(builder: Any, name: str, result: Any, *values: Any) -> Any:
    """Return what a function of the interpreter gives."""
    known = builder.module.globals.get(name)
    kind = ir.FunctionType(result, [value.type for value in values])
    return builder.call(known or ir.Function(builder.module, kind, name), values)


def _asks(name: str, result: Any) -> Any:
    """Return what emits the call of a function of the interpreter; whole results have 64 bits."""

    def emit(context: Any, builder: Any, kinds: Any, values: Any) -> Any:
        found = _call(builder, name, result, *values)
        return builder.sext(found, _WHOLE) if result is _INT else found

    return emit


def _emit_type(context: Any, builder: Any, kinds: Any, values: Any) -> Any:
    place = builder.add(values[0], _WHOLE(_AT_TYPE))
    return builder.load(builder.inttoptr(place, _WHOLE.as_pointer()))


def _emit_next_item(context: Any, builder: Any, kinds: Any, values: Any) -> Any:
    array = context.make_array(kinds[1])(context, builder, values[1])
    first = builder.add(builder.ptrtoint(array.data, _WHOLE), builder.shl(values[2], _WHOLE(3)))
    places = [builder.add(first, _WHOLE(8 * n)) for n in range(3)]
    return builder.sext(_call(builder, "PyDict_Next", _INT, values[0], *places), _WHOLE)


def _emit_whole(context: Any, builder: Any, kinds: Any, values: Any) -> Any:
    array = context.make_array(kinds[1])(context, builder, values[1])
    place = builder.ptrtoint(array.data, _WHOLE)
    return _call(builder, "PyLong_AsLongLongAndOverflow", _WHOLE, values[0], place)


_NUMBER, _REAL = numba.types.intp, numba.types.float64


@emitted(_NUMBER, _emit_type)
def type_of(item: int) -> int:
    """Return the address of the type of an object."""
    raise NotImplementedError


@emitted(_NUMBER, _asks("PyObject_Hash", _WHOLE))
def hash_of(item: int) -> int:
    """Return the hash of a string."""
    raise NotImplementedError


@emitted(_NUMBER, _asks("PyUnicode_Compare", _INT))
def compared(first: int, second: int) -> int:
    """Return 0 if two strings are equal."""
    raise NotImplementedError


@emitted(_NUMBER, _asks("PyList_Append", _INT))
def append(items: int, item: int) -> int:
    """Append an object to a list; returns 0 unless memory is at an end."""
    raise NotImplementedError


@emitted(_NUMBER, _asks("PyList_Size", _WHOLE))
def list_size(items: int) -> int:
    """Return the length of a list."""
    raise NotImplementedError


@emitted(_NUMBER, _asks("PyList_GetItem", _WHOLE))
def list_item(items: int, place: int) -> int:
    """Return an item of a list, given a place that it has."""
    raise NotImplementedError


@emitted(_NUMBER, _asks("PyTuple_Size", _WHOLE))
def tuple_size(items: int) -> int:
    """Return the length of a tuple."""
    raise NotImplementedError


@emitted(_NUMBER, _asks("PyTuple_GetItem", _WHOLE))
def tuple_item(items: int, place: int) -> int:
    """Return an item of a tuple, given a place that it has."""
    raise NotImplementedError


@emitted(_NUMBER, _emit_next_item)
def next_item(items: int, out: IntArray, first: int) -> int:
    """Find the next item of a dict; returns 0 if there is none.

    From ``out[first]`` on, there are the position, 0 for the first item, the key and the value.
    """
    raise NotImplementedError


@emitted(_REAL, _asks("PyFloat_AsDouble", _DOUBLE))
def float_of(item: int) -> float:
    """Return the value of a float."""
    raise NotImplementedError


@emitted(_NUMBER, _emit_whole)
def whole_of(item: int, overflow: IntArray) -> int:
    """Return the value of an int; ``overflow[0]``, which was 0, is not 0 if it is too large."""
    raise NotImplementedError
