"""A small quadratic program over a simplex.

``m``: number of variables.
"""

from __future__ import annotations

from crfkit._types import FloatArray
from crfkit.compiler.jit import kernel

# A curvature below this share of the largest one is that of a straight line.
FLAT = 1e-14


@kernel
def simplex_ascend(
    gram: FloatArray,  # (m, m) positive semidefinite
    tol: float,
    most: int,  # steps
    shares: FloatArray,  # (m,) in and out: not negative; their sum stays
    slope: FloatArray,  # (m,) in and out: linear - gram shares
) -> int:
    """Maximize ``linear . a - a' gram a / 2``, two variables at a time; returns the steps made.

    To the largest slope, from where it rises most: SMO (Fan, Chen and Lin 2005, second order).
    """
    size = shares.shape[0]
    scale = 0.0
    for k in range(size):
        scale = max(scale, gram[k, k])
    for n in range(most):
        best, least = 0, -1
        for k in range(size):
            if slope[k] > slope[best]:
                best = k
        rise, length = 0.0, 0.0
        for k in range(size):
            gain = slope[best] - slope[k]
            if shares[k] > 0.0 and gain > tol:
                curvature = gram[best, best] + gram[k, k] - 2.0 * gram[best, k]
                far = shares[k]
                if curvature > FLAT * scale:
                    far = min(far, gain / curvature)
                found = far * (gain - 0.5 * far * max(curvature, 0.0))
                if found > rise:
                    rise, length, least = found, far, k
        if least < 0:
            return n
        shares[best] += length
        shares[least] -= length
        for k in range(size):
            slope[k] += length * (gram[least, k] - gram[best, k])
    return most
