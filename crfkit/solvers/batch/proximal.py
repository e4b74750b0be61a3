"""Proximal quasi-Newton, for L1 penalties."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from crfkit._types import FloatArray, IntArray
from crfkit.compiler.jit import frozen
from crfkit.kernels.solvers.vector import proximal_descent, vector_dot
from crfkit.solvers.base import Check
from crfkit.solvers.batch.base import QUASI_NEWTON, BatchSolver, Point, Vectors
from crfkit.solvers.batch.line_search import ARMIJO, ROUNDING

# Iterations after which the diagonal is computed anew.
REFRESH = 10
# What is added to the diagonal: a feature whose label is certain has a curvature of almost 0.
CURVATURE_FLOOR = 1.0
# Sweeps of coordinate descent at most, and how many iterations each further one waits for.
FIRST_SWEEPS, MOST_SWEEPS, PATIENCE = 2, 20, 3
# Sweeps end where no coordinate has this part of the L1 weight to gain.
SWEEP_TOL = 1e-3


@dataclass(kw_only=True, eq=False, repr=False)
class ProximalQuasiNewton(BatchSolver):
    """Proximal quasi-Newton method with coordinate descent (Scheinberg and Tang 2016).

    Minimizes a differentiable function plus ``c1 sum |w|``. Each step minimizes a quadratic model
    plus the L1 norm by coordinate descent over the parameters that are not 0 or want to leave it;
    all others stay 0. The model is that of L-BFGS (Byrd, Nocedal and Schnabel 1994), on top of a
    multiple of the square root of the diagonal of the Hessian, which puts frequent and rare
    features on a par. A step costs more than one of :class:`OWLQN`; where few parameters stay,
    fewer evaluations are needed.

    Parameters
    ----------
    max_iter, period, gtol
        As for :class:`LBFGS`; the gradient is the pseudo-gradient.
    tol : float, default=5e-6
        As for :class:`LBFGS`.
    memory : int, default=8
        Number of correction pairs.
    max_line_search : int, default=20
        Evaluations for one step at most.
    """

    handles_l1: ClassVar[bool] = True

    checks: ClassVar[dict[str, Check]] = QUASI_NEWTON

    tol: float = 5e-6
    gtol: float = 5e-6
    memory: int = 8
    max_line_search: int = 20

    def _memory(self, objective: Any, vectors: Vectors) -> QuadraticModel:
        return QuadraticModel(objective, self.memory)

    def _step(
        self, objective: Any, vectors: Vectors, point: Point, memory: QuadraticModel
    ) -> Point | None:
        model = memory.at(point)
        slack = ROUNDING * abs(point.value)
        for attempt in range(self.max_line_search):
            step = model.minimize(objective.l1, memory.sweeps, damping=memory.damping**attempt)
            w = point.w.copy()
            w[model.places] += step
            longer = np.abs(w[model.places]).sum() - np.abs(model.w).sum()
            predicted = float(step @ model.gradient) + objective.l1 * float(longer)
            if not predicted < 0.0 or np.array_equal(w, point.w):
                return None
            value, gradient = self._evaluate(objective, vectors, w)
            if value <= point.value + ARMIJO * predicted + slack:
                return Point(1.0, w, value, gradient, predicted)
        return None


class LocalModel(NamedTuple):
    """A quadratic model of some parameters."""

    places: IntArray  # (A,) which parameters
    w: FloatArray  # (A,)
    gradient: FloatArray  # (A,)
    diagonal: FloatArray  # (A,) that the corrections start from
    steps: FloatArray  # (R, A) changes of the parameters
    changes: FloatArray  # (R, A) and of the gradient
    products: FloatArray  # (R, R) ``steps @ changes.T``, over all parameters

    def minimize(self, l1: float, sweeps: int, damping: float) -> FloatArray:
        """Return the step to the minimum of the model plus the L1 norm, shape (A,).

        `damping` multiplies the diagonal, for shorter steps.
        """
        diagonal = damping * self.diagonal
        if not len(self.steps):
            free = self.w - self.gradient / diagonal
            shrunk: FloatArray = np.sign(free) * np.maximum(np.abs(free) - l1 / diagonal, 0.0)
            return shrunk - self.w
        scaled = diagonal * self.steps
        lower = np.tril(self.products, -1)
        middle = np.block(
            [[scaled @ self.steps.T, lower], [lower.T, -np.diag(np.diag(self.products))]]
        )
        rows = np.concatenate([scaled, self.changes])
        step = np.zeros(len(self.w))
        # `solve` takes several times as long for so many right sides.
        combined = np.linalg.inv(middle) @ rows
        proximal_descent(
            frozen(rows.T), frozen(combined.T), frozen(diagonal),
            frozen(self.gradient), frozen(self.w), float(l1), sweeps, SWEEP_TOL * l1,
            np.zeros(len(rows)), step,
        )  # fmt: skip
        return step


class QuadraticModel:
    """The last changes of parameters and gradient, and a diagonal, which stand for the Hessian.

    The objective tells the diagonal, if it can.
    """

    def __init__(self, objective: Any, limit: int) -> None:
        self._curvature = getattr(objective, "hessian_diagonal", None)
        self._limit = limit
        self._asked = 0
        self._scale: FloatArray | None = None
        self._pairs: list[tuple[IntArray, FloatArray, FloatArray]] = []
        self._products = np.zeros((0, 0))  # of steps and changes of the gradient

    def __len__(self) -> int:
        return len(self._pairs)

    @property
    def sweeps(self) -> int:
        """How many sweeps the model is worth: the better it is the more."""
        return min(FIRST_SWEEPS + self._asked // PATIENCE, MOST_SWEEPS)

    @property
    def damping(self) -> float:
        """Factor of the diagonal where a step was too long."""
        return 2.0 if self._pairs else 4.0

    def clear(self) -> None:
        """Forget all changes."""
        self._pairs.clear()
        self._products = np.zeros((0, 0))

    def add(self, before: Point, after: Point) -> None:
        """Keep the changes between two points, unless their curvature is not clearly positive."""
        step, change = frozen(after.w - before.w), frozen(after.gradient - before.gradient)
        if vector_dot(step, change) > np.finfo(float).eps * vector_dot(change, change):
            moved = np.flatnonzero(step)
            self._pairs = [*self._pairs, (moved, step[moved], change)][-self._limit :]
            new = [vector_dot(step, change) for _, _, change in self._pairs]
            products = np.zeros((len(self._products) + 1,) * 2)
            products[:-1, :-1] = self._products
            self._products = products[-len(new) :, -len(new) :]
            self._products[-1] = new

    def at(self, point: Point) -> LocalModel:
        """Return the model of the parameters that are not 0, or want to leave it, or have moved."""
        if self._curvature is not None and self._asked % REFRESH == 0:
            self._scale = np.sqrt(self._curvature(point.w) + CURVATURE_FLOOR)
        self._asked += 1
        chosen = self._active(point)
        active, rank = np.flatnonzero(chosen), np.cumsum(chosen) - 1
        scale = np.ones(len(active)) if self._scale is None else self._scale[active]
        steps = np.zeros((len(self._pairs), len(active)))
        for row, (moved, step, _) in zip(steps, self._pairs, strict=True):
            row[rank[moved]] = step
        changes = np.array([change[active] for _, _, change in self._pairs]).reshape(steps.shape)
        if self._pairs:
            factor = float(changes[-1] @ (changes[-1] / scale)) / self._products[-1, -1]
        else:
            descent = point.descent[active]
            factor = math.sqrt(float(descent @ (descent / scale)))
        return LocalModel(
            active, point.w[active], point.gradient[active], factor * scale, steps, changes,
            self._products,
        )  # fmt: skip

    def _active(self, point: Point) -> NDArray[np.bool_]:
        """Return which parameters may move."""
        active: NDArray[np.bool_] = (point.w != 0.0) | (point.descent != 0.0)
        for moved, _, _ in self._pairs:
            active[moved] = True
        return active
