"""Eight numbers at a time: vectors for kernels whose inner loops are rows of tables.

Compilers cut a loop over 22 labels into vectors and a tail of single numbers, and test before each
whether the arrays overlap. The functions here say what is meant. A row of at least ``WIDTH``
columns is covered by vectors that begin at every ``WIDTH``-th column, the last at its end: where
two overlap, both compute the same.

Each function is defined in Python; a compiled kernel gets the instructions instead. Positions are
not checked, and negative ones do not count from the end.

The instructions are built by parts of numba that may change. With a version that is newer than
those tested here, they are tried at import; where they fail, kernels are compiled from the
definitions in Python: slower, and the same but for rounding.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import cache
from typing import Any, TypeVar

import numba
import numpy as np
from llvmlite import ir
from numba.extending import intrinsic, models, register_model
from numpy.typing import NDArray

from crfkit._types import FloatArray
from crfkit.compiler.instructions import (
    BITS,
    NUMBER,
    VECTOR,
    address_of,
    by_parts,
    function_of,
    lanes_below,
    repeated,
)
from crfkit.compiler.instructions import WIDTH as WIDTH
from crfkit.compiler.jit import count_references, is_tested
from crfkit.compiler.series import rest_of_exponential

F = TypeVar("F", bound=Callable[..., Any])


def padded(size: int) -> int:
    """Return the length of a row for so many numbers: whole vectors."""
    return -(-size // WIDTH) * WIDTH


# Operations are those that are written, in that order; only eight numbers add up in any order.
_FLAGS = ("arcp", "nsz", "afn")
_ANY_ORDER = ("reassoc", *_FLAGS)
_SINGLES = ir.VectorType(ir.FloatType(), WIDTH)

# The logarithm of 2, and what is missing in it.
_LOG2, _LOG2_REST = 0.6931471805599453, 2.3190468138462996e-17
_LEAST = -708.0  # the exponential of less is next to nothing


class _VectorType(numba.types.Type):  # type: ignore[misc]
    """The type of eight numbers in a kernel."""

    def __init__(self) -> None:
        super().__init__("Vector")


_vector = _VectorType()


@register_model(_VectorType)
class _VectorModel(models.PrimitiveModel):  # type: ignore[misc]
    """Eight numbers are one value to the machine."""

    def __init__(self, manager: Any, kind: Any) -> None:
        super().__init__(manager, kind, VECTOR)


def emitted(result: Any, emit: Callable[..., Any]) -> Callable[[F], F]:
    """Return a decorator: a compiled kernel gets what `emit` builds instead of the function.

    Parameters
    ----------
    result : type of numba
        Of what is returned; called with the types of the arguments, it is the signature.
    emit : callable
        Builds the instructions, given what numba's code generators are given.
    """

    def replace(function: F) -> F:
        if numba.config.DISABLE_JIT:
            return np.errstate(divide="ignore", over="ignore", invalid="ignore")(function)
        if emits():
            return _intrinsic(function, result, emit)
        count_references()
        made: F = numba.njit(function)
        return made

    return replace


def _intrinsic(function: F, result: Any, emit: Callable[..., Any]) -> F:
    """Return a function of kernels that stands for the instructions that `emit` builds."""

    def typed(typing_context: Any, *arguments: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
            made = emit(context, builder, signature.args, values)
            return context.get_dummy_value() if made is None else made

        return result(*arguments), generate

    typed.__name__ = function.__name__
    names = ["typing_context", *inspect.signature(function).parameters]
    typed.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD) for name in names]
    )
    return intrinsic(typed)  # type: ignore[no-any-return]


@cache
def emits() -> bool:
    """Whether instructions can be built with this version of numba."""
    return is_tested() or _doubles()


def _doubles() -> bool:
    """Whether a kernel that is made of instructions computes what it should."""

    def read(array: FloatArray, row: int, column: int) -> Any: ...
    def write(vector: FloatArray, array: FloatArray, row: int, column: int) -> Any: ...
    def plus(x: FloatArray, y: FloatArray) -> Any: ...
    def read_few(array: FloatArray, row: int, column: int, count: int) -> Any: ...

    try:
        load_row = _intrinsic(read, _vector, _emit_load)
        load_few = _intrinsic(read_few, _vector, emit_load_few)
        store_row = _intrinsic(write, numba.types.void, _emit_store)
        sum_of = _intrinsic(plus, _vector, _arithmetic("fadd"))

        @numba.njit  # type: ignore[untyped-decorator]
        def double(array: FloatArray) -> None:
            store_row(sum_of(load_row(array, 0, 1), load_few(array, 0, 1, 7)), array, 0, 0)

        numbers = np.arange(9.0)[None]
        double(numbers)
        return bool(np.array_equal(numbers[0], [2, 4, 6, 8, 10, 12, 14, 8, 8]))
    except Exception:  # whatever it is that has changed
        return False


def _emit_load(context: Any, builder: Any, kinds: Any, values: Any) -> Any:
    address = address_of(context, builder, kinds, values)
    if kinds[0].dtype != numba.types.float32:
        return builder.load(address, align=8)
    singles = builder.load(builder.bitcast(address, _SINGLES.as_pointer()), align=4)
    return builder.fpext(singles, VECTOR)


def _emit_fill_at(context: Any, builder: Any, kinds: Any, values: Any) -> Any:
    address = builder.bitcast(address_of(context, builder, kinds, values), NUMBER.as_pointer())
    return repeated(builder, VECTOR, builder.load(address))


def emit_load_few(context: Any, builder: Any, kinds: Any, values: Any) -> Any:
    """Build what `load_few` says."""
    address = address_of(context, builder, kinds[:3], values[:3])
    lanes, align = lanes_below(context, builder, kinds[3], values[3]), ir.IntType(32)
    kind = ir.FunctionType(VECTOR, [address.type, align, lanes.type, VECTOR])
    function = function_of(builder, kind, "llvm.masked.load.v8f64.p0v8f64")
    return builder.call(function, [address, align(8), lanes, ir.Constant(VECTOR, None)])


def _emit_add_few(context: Any, builder: Any, kinds: Any, values: Any) -> None:
    """Add by parts: what is written next to them may be on its way to memory."""
    address = address_of(context, builder, kinds[1:4], values[1:4])
    count = context.cast(builder, values[4], kinds[4], numba.types.int64)

    def add_part(part: Any, place: Any) -> None:
        some = builder.fadd(builder.load(place, align=8), part)
        builder.store(some, place, align=8)

    by_parts(builder, values[0], address, builder.and_(count, count.type(WIDTH - 1)), add_part)


def _emit_store(context: Any, builder: Any, kinds: Any, values: Any) -> None:
    address = address_of(context, builder, kinds[1:], values[1:])
    builder.store(values[0], address, align=8)


def _emit_readable(context: Any, builder: Any, kinds: Any, values: Any) -> Any:
    return values[0]


def _emit_rounded(context: Any, builder: Any, kinds: Any, values: Any) -> Any:
    single = _SINGLES if values[0].type == VECTOR else ir.FloatType()
    return builder.fpext(builder.fptrunc(values[0], single), values[0].type)


def _emit_prefetch(context: Any, builder: Any, kinds: Any, values: Any) -> None:
    address = builder.bitcast(
        address_of(context, builder, kinds, values), ir.IntType(8).as_pointer()
    )
    whole = ir.IntType(32)
    kind = ir.FunctionType(ir.VoidType(), [address.type, whole, whole, whole])
    function = function_of(builder, kind, "llvm.prefetch.p0i8")
    builder.call(function, [address, *(whole(number) for number in (0, 3, 1))])  # read, keep, data


def _emit_fill(context: Any, builder: Any, kinds: Any, values: Any) -> Any:
    return repeated(builder, VECTOR, values[0])


def _emit_lanes_from(context: Any, builder: Any, kinds: Any, values: Any) -> Any:
    first = context.cast(builder, values[0], kinds[0], numba.types.int64)
    lanes, bound = ir.Constant(BITS, list(range(WIDTH))), repeated(builder, BITS, first)
    return builder.uitofp(builder.icmp_signed(">=", lanes, bound), VECTOR)


def _arithmetic(name: str) -> Callable[..., Any]:
    """Return what emits an operation of two vectors."""

    def emit(context: Any, builder: Any, kinds: Any, values: Any) -> Any:
        return getattr(builder, name)(*values, flags=_FLAGS)

    return emit


def _selection(comparison: str) -> Callable[..., Any]:
    """Return what emits the second of two vectors where it compares so with the first."""

    def emit(context: Any, builder: Any, kinds: Any, values: Any) -> Any:
        first, second = values
        chosen = builder.fcmp_ordered(comparison, second, first)
        return builder.select(chosen, second, first)

    return emit


def _emit_where_positive(context: Any, builder: Any, kinds: Any, values: Any) -> Any:
    nothing = ir.Constant(VECTOR, None)
    return builder.select(builder.fcmp_ordered(">", values[0], nothing), values[1], nothing)


def _emit_where_bits(context: Any, builder: Any, kinds: Any, values: Any) -> Any:
    byte = context.cast(builder, values[0], kinds[0], numba.types.uint8)
    mask = builder.bitcast(byte, ir.VectorType(ir.IntType(1), WIDTH))
    return builder.select(mask, values[1], ir.Constant(VECTOR, None))


def _all(number: float) -> Any:
    """Return a constant in all lanes."""
    return ir.Constant(VECTOR, [number] * WIDTH)


def _called(builder: Any, name: str, *values: Any, flags: tuple[str, ...] = ()) -> Any:
    """Return what a function of LLVM makes of some vectors."""
    kind = ir.FunctionType(VECTOR, [VECTOR] * len(values))
    function = function_of(builder, kind, f"llvm.{name}.v{WIDTH}f64")
    return builder.call(function, values, fastmath=flags)


def _emit_multiply_add(context: Any, builder: Any, kinds: Any, values: Any) -> Any:
    return _called(builder, "fmuladd", *values, flags=_FLAGS)  # rounds once where the machine can


def _raised(builder: Any, values: Any, powers: Any) -> Any:
    """Return ``values 2**powers`` for whole powers, by adding them to the bits of the exponents."""
    whole = builder.sext(builder.fptosi(powers, ir.VectorType(ir.IntType(32), WIDTH)), BITS)
    added = builder.shl(whole, ir.Constant(BITS, [52] * WIDTH))
    return builder.bitcast(builder.add(builder.bitcast(values, BITS), added), VECTOR)


def _series(builder: Any, x: Any, n: Any) -> Any:
    """Return ``exp(x - n log 2)`` by a series (Cody and Waite 1980, chapter 6).

    The products with ``log 2`` are fused into the differences, which the compiler may not reorder.
    Terms are added in pairs first: one by one, each would wait for the one before. What they leave
    out is below 2e-17.
    """
    rest = _called(builder, "fma", n, _all(-_LOG2), x)
    rest = _called(builder, "fma", n, _all(-_LOG2_REST), rest)
    square, terms = (
        builder.fmul(rest, rest),
        list(map(_all, rest_of_exponential(_LOG2 / 2.0, 20, 10))),
    )
    pairs = zip(terms[::2], terms[1::2], strict=True)
    y, *further = [_called(builder, "fma", odd, rest, even) for even, odd in pairs][::-1]
    for pair in further:
        y = _called(builder, "fma", y, square, pair)
    return builder.fadd(_called(builder, "fma", y, square, rest), _all(1.0))


def _emit_exponential(context: Any, builder: Any, kinds: Any, values: Any) -> Any:
    """Put the powers of 2 on in two halves, since one may be too small for a number."""
    x, least, most = values[0], _all(-1000.0), _all(1000.0)
    x = builder.select(builder.fcmp_ordered("<", x, least), least, x)
    x = builder.select(builder.fcmp_ordered(">", x, most), most, x)
    n = _called(builder, "rint", builder.fmul(x, _all(1.0 / _LOG2)))
    y = _series(builder, x, n)
    half = _called(builder, "rint", builder.fmul(n, _all(0.5)))
    power = _raised(builder, _all(1.0), builder.fsub(n, half))
    return builder.fmul(_raised(builder, y, half), power)


def _emit_decay(context: Any, builder: Any, kinds: Any, values: Any) -> Any:
    """Round ``x / log 2`` by a sum that has it in its lowest bits: added to those of exponents."""
    x, added = values[0], _all(1.5 * 2.0**52)
    whole = _called(builder, "fma", x, _all(1.0 / _LOG2), added)
    y = _series(builder, x, builder.fsub(whole, added))
    power = builder.shl(builder.bitcast(whole, BITS), ir.Constant(BITS, [52] * WIDTH))
    y = builder.bitcast(builder.add(builder.bitcast(y, BITS), power), VECTOR)
    return builder.select(builder.fcmp_ordered("<", x, _all(_LEAST)), _all(0.0), y)


def _reduced(name: str, *start: Any) -> Callable[..., Any]:
    """Return what emits a reduction of a vector to a number."""

    def emit(context: Any, builder: Any, kinds: Any, values: Any) -> Any:
        kind = ir.FunctionType(NUMBER, [*(NUMBER for _ in start), VECTOR])
        full = f"llvm.vector.reduce.{name}.v{WIDTH}f64"
        function = function_of(builder, kind, full)
        return builder.call(function, [*start, values[0]], fastmath=_ANY_ORDER)

    return emit


@emitted(_vector, _emit_load)
def load(array: NDArray[Any], row: int, column: int) -> FloatArray:
    """Return eight numbers of a row: ``array[row, column : column + 8]``, of 32 or 64 bits."""
    return array[row, column : column + WIDTH].astype(np.float64)


@emitted(_vector, _emit_load)
def load_of(tables: FloatArray, table: int, row: int, column: int) -> FloatArray:
    """Return eight numbers of a row of a table: ``tables[table, row, column : column + 8]``."""
    return tables[table, row, column : column + WIDTH].copy()


@emitted(_vector, _emit_load)
def load_at(array: FloatArray, place: int) -> FloatArray:
    """Return eight numbers: ``array[place : place + 8]``."""
    return array[place : place + WIDTH].copy()


@emitted(_vector, _emit_fill_at)
def fill_at(array: FloatArray, place: int) -> FloatArray:
    """Return ``array[place]`` eight times."""
    return np.full(WIDTH, array[place])


@emitted(numba.types.void, _emit_store)
def store_at(vector: FloatArray, array: FloatArray, place: int) -> None:
    """Write eight numbers: ``array[place : place + 8] = vector``."""
    for lane in range(WIDTH):
        array[place + lane] = vector[lane]


@emitted(numba.types.void, _emit_store)
def store(vector: FloatArray, array: FloatArray, row: int, column: int) -> None:
    """Write eight numbers to a row: ``array[row, column : column + 8] = vector``."""
    for lane in range(WIDTH):
        array[row, column + lane] = vector[lane]


@emitted(numba.types.void, _emit_store)
def store_of(vector: FloatArray, tables: FloatArray, table: int, row: int, column: int) -> None:
    """Write eight numbers to a row of a table."""
    for lane in range(WIDTH):
        tables[table, row, column + lane] = vector[lane]


@emitted(_vector, emit_load_few)
def load_few(array: FloatArray, row: int, column: int, count: int) -> FloatArray:
    """Return some numbers of a row, at most eight, and 0 in the other lanes."""
    return np.array([array[row, column + k] if k < count else 0.0 for k in range(WIDTH)])


@emitted(numba.types.void, _emit_add_few)
def add_few(x: FloatArray, array: FloatArray, row: int, column: int, count: int) -> None:
    """Add the first lanes, fewer than eight, to numbers of a row."""
    for lane in range(count):
        array[row, column + lane] += x[lane]


@emitted(lambda kind: kind.copy(readonly=True)(kind), _emit_readable)
def readable(array: NDArray[Any]) -> NDArray[Any]:
    """Return a read-only view, as kernels pass their inputs to other kernels: see `frozen`."""
    return array


@emitted(_vector, _emit_rounded)
def rounded(x: FloatArray) -> FloatArray:
    """Return eight numbers, rounded to such of 32 bits."""
    return x.astype(np.float32).astype(np.float64)


@emitted(numba.types.float64, _emit_rounded)
def rounded_number(x: float) -> float:
    """Return a number, rounded to one of 32 bits."""
    return float(np.float32(x))


@emitted(numba.types.void, _emit_prefetch)
def prefetch(array: NDArray[Any], row: int, column: int) -> None:
    """Ask for the memory of ``array[row, column]`` to be fetched while other work is done."""


@emitted(numba.types.void, _emit_prefetch)
def prefetch_at(array: NDArray[Any], place: int) -> None:
    """Ask for the memory of ``array[place]`` to be fetched while other work is done."""


@emitted(_vector, _emit_fill)
def fill(number: float) -> FloatArray:
    """Return a number eight times."""
    return np.full(WIDTH, number)


@emitted(_vector, _emit_lanes_from)
def lanes_from(first: int) -> FloatArray:
    """Return 1 in the lanes from `first` on, and 0 in those before."""
    return (np.arange(WIDTH) >= first).astype(np.float64)


@emitted(_vector, _emit_multiply_add)
def multiply_add(x: FloatArray, y: FloatArray, z: FloatArray) -> FloatArray:
    """Return ``x y + z``."""
    return x * y + z


@emitted(_vector, _emit_where_bits)
def where_bits(bits: int, x: FloatArray) -> FloatArray:
    """Return `x` in the lanes whose bit is set in the lowest byte of `bits`, 0 in the others."""
    return np.array([x[k] if (int(bits) >> k) & 1 else 0.0 for k in range(WIDTH)])


@emitted(_vector, _emit_exponential)
def exponential(x: FloatArray) -> FloatArray:
    """Return ``exp(x)``, to 2 units in the last place; 0 for ``-inf``."""
    return np.exp(x)


@emitted(_vector, _emit_decay)
def decay(x: FloatArray) -> FloatArray:
    """Return ``exp(x)`` for ``x <= 0``, faster; 0 where it is below ``exp(-708)``."""
    return np.where(x < _LEAST, 0.0, np.exp(x))


def _operation(result: Any, name: str, emit: Callable[..., Any], function: F) -> F:
    """Return an operation on vectors, of which the definition in Python is one expression."""
    function.__name__ = name
    return emitted(result, emit)(function)


Binary = Callable[[FloatArray, FloatArray], FloatArray]
Reduction = Callable[[FloatArray], float]

add: Binary = _operation(_vector, "add", _arithmetic("fadd"), lambda x, y: x + y)
subtract: Binary = _operation(_vector, "subtract", _arithmetic("fsub"), lambda x, y: x - y)
divide: Binary = _operation(_vector, "divide", _arithmetic("fdiv"), lambda x, y: x / y)
multiply: Binary = _operation(_vector, "multiply", _arithmetic("fmul"), lambda x, y: x * y)
larger: Binary = _operation(_vector, "larger", _selection(">"), lambda x, y: np.maximum(x, y))
smaller: Binary = _operation(_vector, "smaller", _selection("<"), lambda x, y: np.minimum(x, y))
# y in the lanes where x > 0, and 0 in the others.
where_positive: Binary = _operation(
    _vector, "where_positive", _emit_where_positive,
    lambda x, y: np.array([y[k] if x[k] > 0.0 else 0.0 for k in range(WIDTH)]),
)  # fmt: skip
# The sum, the largest and the smallest of the lanes.
_float = numba.types.float64
_sum = _reduced("fadd", ir.Constant(NUMBER, 0.0))
total: Reduction = _operation(_float, "total", _sum, lambda x: float(x.sum()))
largest: Reduction = _operation(_float, "largest", _reduced("fmax"), lambda x: float(x.max()))
smallest: Reduction = _operation(_float, "smallest", _reduced("fmin"), lambda x: float(x.min()))
