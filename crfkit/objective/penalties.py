"""Penalties on the parameters, and bounds."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from crfkit._types import BoolArray, FloatArray
from crfkit.compiler.jit import frozen
from crfkit.kernels.solvers.vector import vector_add, vector_dot


class ElasticNet(NamedTuple):
    """``c1 sum |w| + c2 sum w**2``, without factors, as CRFsuite counts it."""

    l1: float = 0.0  # c1
    l2: float = 0.0  # c2: that of a Gaussian prior of variance s2 is 1 / (2 s2)

    def smooth_value(self, w: FloatArray) -> float:
        """Return the differentiable part."""
        return self.l2 * vector_dot(frozen(w), frozen(w)) if self.l2 else 0.0

    def add_smooth_gradient(self, w: FloatArray, out: FloatArray) -> None:
        """Add the gradient of the differentiable part."""
        if self.l2:
            vector_add(2.0 * self.l2, frozen(w), out)


def within_bounds(w: FloatArray, nonnegative: BoolArray | None) -> FloatArray:
    """Return parameters, a new array, where negative ones that may not be so are 0."""
    return w.copy() if nonnegative is None else np.where(nonnegative & (w < 0.0), 0.0, w)
