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
    sweeps: int,
    product: FloatArray,  # (P,) in and out: H d
    out: FloatArray,  # (P,) in and out: d
) -> None:
    """Decrease ``g . d + d . H d / 2 + l1 . |w + d|`` by sweeps over the coordinates of ``d``."""
    for _ in range(sweeps):
        for p in range(w.shape[0]):
            curvature = matrix[p, p]
            before = w[p] + out[p]
            after = before - (gradient[p] + product[p]) / curvature
            shrink = l1[p] / curvature
            after = after - shrink if after > shrink else min(after + shrink, 0.0)
            step = after - before
            if step != 0.0:
                out[p] += step
                for q in range(w.shape[0]):
                    product[q] += step * matrix[p, q]
