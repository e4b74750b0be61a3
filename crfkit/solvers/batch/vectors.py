"""Operations on vectors of parameters, over the threads of an objective."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from crfkit._parallel import ThreadMap
from crfkit._types import FloatArray
from crfkit.compiler.jit import frozen
from crfkit.kernels.solvers import vector as kernels

# Parameters in a range: a few such vectors fit the second-level cache. The cut is the same for any
# number of threads, and so are the sums.
RANGE = 1 << 14


class Vectors:
    """Vectors of P parameters in fixed ranges, which the threads of an objective share.

    Parameters
    ----------
    objective : object
        If it has ``threads``, an open :class:`~crfkit._parallel.ThreadMap`, they do the work.
    size : int
        P.
    """

    def __init__(self, objective: Any, size: int) -> None:
        self.size = size
        self._threads: ThreadMap = getattr(objective, "threads", None) or ThreadMap(1)
        edges = [*range(0, size, RANGE), size] if size else [0, 0]
        self.ranges = [slice(i, j) for i, j in zip(edges[:-1], edges[1:], strict=True)]

    def run(self, work: Callable[[int], None]) -> None:
        """Call a function with the number of each range."""
        self._threads(work, range(len(self.ranges)))

    def total(self, work: Callable[[int, FloatArray], None], *shape: int) -> FloatArray:
        """Add up what a function writes for each range, in the order of the ranges."""
        parts = np.empty((len(self.ranges), *shape))
        self.run(lambda index: work(index, parts[index]))
        result: FloatArray = np.add.accumulate(parts)[-1]
        return result

    def dot(self, a: FloatArray, b: FloatArray) -> float:
        """Return ``a . b``."""

        def work(index: int, out: FloatArray) -> None:
            cut = self.ranges[index]
            out[0] = kernels.vector_dot(frozen(a[cut]), frozen(b[cut]))

        return float(self.total(work, 1)[0])

    def size_of(self, a: FloatArray) -> tuple[float, float]:
        """Return the Euclidean norm and the sum of the absolute values."""
        square, absolute = self.total(
            lambda index, out: kernels.vector_size(frozen(a[self.ranges[index]]), out), 2
        )
        return float(np.sqrt(square)), float(absolute)

    def step(self, w: FloatArray, factor: float, direction: FloatArray) -> FloatArray:
        """Return ``w + factor direction``."""
        out = np.empty(self.size)

        def work(index: int) -> None:
            cut = self.ranges[index]
            kernels.vector_step(frozen(w[cut]), float(factor), frozen(direction[cut]), out[cut])

        self.run(work)
        return out

    def l1_value(self, w: FloatArray, l1: float) -> float:
        """Return ``l1 sum |w|``."""
        return l1 * self.size_of(w)[1] if l1 else 0.0

    def descent(self, w: FloatArray, gradient: FloatArray, l1: float) -> FloatArray:
        """Return the gradient, or the pseudo-gradient where there is an L1 norm."""
        return self.pseudo_gradient(w, gradient, l1) if l1 else gradient

    def pseudo_gradient(self, w: FloatArray, gradient: FloatArray, l1: float) -> FloatArray:
        """Return the one-sided derivative of steepest descent (Andrew and Gao 2007, equation 4)."""
        out = np.empty(self.size)

        def work(index: int) -> None:
            cut = self.ranges[index]
            kernels.orthant_gradient(frozen(w[cut]), frozen(gradient[cut]), float(l1), out[cut])

        self.run(work)
        return out

    def align(self, direction: FloatArray, descent: FloatArray) -> float:
        """Set a direction to 0 where it does not descend; return its slope."""

        def work(index: int, out: FloatArray) -> None:
            cut = self.ranges[index]
            kernels.orthant_align(frozen(descent[cut]), direction[cut], out)

        return float(self.total(work, 1)[0])

    def orthant_step(
        self, w: FloatArray, factor: float, direction: FloatArray, descent: FloatArray
    ) -> tuple[FloatArray, float]:
        """Return ``w + factor direction``, 0 where a sign would change, and the linear decrease."""
        moved = np.empty(self.size)

        def work(index: int, out: FloatArray) -> None:
            cut = self.ranges[index]
            kernels.orthant_step(
                frozen(w[cut]), float(factor), frozen(direction[cut]), frozen(descent[cut]),
                moved[cut], out,
            )  # fmt: skip

        return moved, float(self.total(work, 1)[0])
