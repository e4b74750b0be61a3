"""A small quadratic program: how much each of some planes counts."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from crfkit._types import FloatArray
from crfkit.compiler.jit import frozen
from crfkit.kernels.solvers.simplex import simplex_ascend

# Steps between which the slopes are computed anew.
STEPS = 1000


class SimplexSolution(NamedTuple):
    """The solution of a quadratic program over a simplex.

    Attributes
    ----------
    shares : ndarray of shape (m,)
        Not negative, of a sum of at most the total.
    value : float
        The objective there.
    gap : float
        The objective is at most this much below its maximum.
    """

    shares: FloatArray
    value: float
    gap: float


def solve_simplex_qp(
    gram: FloatArray,
    linear: FloatArray,
    total: float = 1.0,
    *,
    start: FloatArray | None = None,
    tol: float = 1e-12,
    turns: int = 100,
) -> SimplexSolution:
    """Maximize ``linear . a - a' gram a / 2`` over ``a >= 0`` with ``sum a <= total``.

    Parameters
    ----------
    gram : ndarray of shape (m, m)
        Positive semidefinite.
    linear : ndarray of shape (m,)
        The linear part.
    total : float, default=1.0
        What the variables add up to at most.
    start : ndarray of shape (k,), optional
        Variables to start from, ``k <= m``: those beyond are 0. They fulfil the constraints.
    tol : float, default=1e-12
        Slopes that differ by less than this share of the largest number of `linear` are equal.
    turns : int, default=100
        A thousand steps each, at most.

    Returns
    -------
    SimplexSolution
        The solution, with a bound of how far it is from the best one.
    """
    size = len(linear)
    # What is left of the total is one more variable, which changes nothing.
    whole, rising = np.zeros((size + 1, size + 1)), np.append(linear, 0.0)
    whole[:size, :size] = gram
    shares = np.zeros(size + 1)
    if start is not None:
        shares[: len(start)] = start
    shares[size] = max(total - shares.sum(), 0.0)
    limit = tol * float(np.abs(rising).max(initial=0.0))
    for _ in range(turns):
        slope = rising - whole @ shares
        if simplex_ascend(frozen(whole), limit, STEPS, shares, slope) < STEPS:
            break
    slope = rising - whole @ shares
    value = 0.5 * float(np.dot(rising + slope, shares))
    gap = total * float(slope.max()) - float(np.dot(slope, shares))
    return SimplexSolution(shares[:size], value, max(gap, 0.0))
