"""Numbers of 16 bits in the format bfloat16: the upper half of a number of single precision.

Two or three decimals of numbers of any size: enough for what is multiplied and added up elsewhere.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
from llvmlite import ir

from crfkit.compiler.simd import emitted

_HALF, _WHOLE = ir.IntType(16), ir.IntType(32)
# What is added to the bits of a single before its lower half is cut off: half of what is kept.
ALMOST_HALF = 0x7FFF


def _emit_upper(context: Any, builder: Any, kinds: Any, values: Any) -> Any:
    single = builder.fptrunc(values[0], ir.FloatType())
    bits, half = builder.bitcast(single, _WHOLE), _WHOLE(16)
    odd = builder.and_(builder.lshr(bits, half), _WHOLE(1))
    rounded = builder.add(bits, builder.add(odd, _WHOLE(ALMOST_HALF)))
    return builder.trunc(builder.lshr(rounded, half), _HALF)


def _emit_number(context: Any, builder: Any, kinds: Any, values: Any) -> Any:
    bits = builder.shl(builder.zext(values[0], _WHOLE), _WHOLE(16))
    return builder.fpext(builder.bitcast(bits, ir.FloatType()), ir.DoubleType())


@emitted(numba.types.uint16, _emit_upper)
def to_bfloat(x: float) -> int:
    """Return the bits of the nearest number of 16 bits; of two, that with an even last bit."""
    bits = int(np.float32(x).view(np.uint32))
    return ((bits + (bits >> 16 & 1) + ALMOST_HALF) >> 16) & 0xFFFF


@emitted(numba.types.float64, _emit_number)
def of_bfloat(bits: int) -> float:
    """Return the number that has these bits."""
    return float(np.uint32(int(bits) << 16).view(np.float32))
