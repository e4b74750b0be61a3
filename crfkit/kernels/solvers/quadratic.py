"""A quadratic function plus an L1 norm, minimized one coordinate after the other."""

from __future__ import annotations

from crfkit._types import FloatArray
from crfkit.compiler.jit import kernel


@kernel
def descend_coordinates(
    matrix: FloatArray,  # (P, P) symmetric, of a positive diagonal
    gradient: FloatArray,  # (P,)
    w: FloatArray,  # (P,)
    l1: FloatArray,  # (P,) weight of the norm of each coordinate
    sweeps: int,  # at most
    tol: float,  # it ends where no step is so large a part of the largest one in the first sweep
    product: FloatArray,  # (P,) workspace: 0 at first
    out: FloatArray,  # (P,) out, 0 at first
) -> float:
    """Minimize ``g . d + d . H d / 2 + l1 . |w + d|`` over ``d``; the change without H."""
    first = 0.0
    for sweep in range(sweeps):
        largest = 0.0
        for p in range(w.shape[0]):
            curvature = matrix[p, p]
            before = w[p] + out[p]
            after = before - (gradient[p] + product[p]) / curvature
            shrink = l1[p] / curvature
            after = after - shrink if after > shrink else min(after + shrink, 0.0)
            step = after - before
            if step != 0.0:
                out[p] += step
                largest = max(largest, step * step * curvature)
                for q in range(w.shape[0]):
                    product[q] += step * matrix[p, q]
        first = largest if sweep == 0 else first
        if not largest > tol * tol * first:
            break
    change = 0.0
    for p in range(w.shape[0]):
        change += gradient[p] * out[p] + l1[p] * (abs(w[p] + out[p]) - abs(w[p]))
    return change
