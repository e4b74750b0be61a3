"""Sums over long vectors whose result does not depend on the threads of a BLAS library."""

from __future__ import annotations

from crfkit._jit import kernel
from crfkit._types import FloatArray


@kernel
def vector_dot(
    a: FloatArray,  # (P,)
    b: FloatArray,  # (P,)
) -> float:
    """``sum_p a[p] b[p]``."""
    total = 0.0
    for p in range(a.shape[0]):
        total += a[p] * b[p]
    return total


@kernel
def vector_add(
    factor: float,
    a: FloatArray,  # (P,)
    out: FloatArray,  # (P,) out, added to
) -> None:
    """``out[p] += factor a[p]``."""
    for p in range(a.shape[0]):
        out[p] += factor * a[p]
