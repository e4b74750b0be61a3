"""Losses of single tokens, and their slopes, given probabilities of labels.

The slopes of a loss ``f`` of the probabilities ``p`` of a token are ``p(k) (f'(k) - sum_j p(j)
f'(j))``, as if these were a softmax of free scores. They are written such that nothing cancels
where a probability is nearly 1. Shapes: ``N`` tokens, ``C`` codes of labels.
"""

from __future__ import annotations

import math

from crfkit._types import CodeArray, FloatArray
from crfkit.compiler.jit import kernel

NONE = -1


@kernel
def slopes_of_logarithm(
    mass: FloatArray,  # (N, C) probabilities times any number
    labels: CodeArray,  # (N,)
    weight: FloatArray,  # (N,)
    slopes: FloatArray,  # (N, C) out, may be the masses
    others: FloatArray,  # (N,) out: the mass of all other labels
) -> None:
    """Slopes of ``- weight log p(y)``: ``weight (p(k) - [k = y])``."""
    for t in range(labels.shape[0]):
        label, total = labels[t], 0.0
        for k in range(label):
            total += mass[t, k]
        for k in range(label + 1, mass.shape[1]):
            total += mass[t, k]
        scale = weight[t] / (total + mass[t, label])
        for k in range(mass.shape[1]):
            slopes[t, k] = mass[t, k] * scale
        slopes[t, label] = -total * scale
        others[t] = total


@kernel
def slopes_of_cost(
    probability: FloatArray,  # (N, C)
    costs: FloatArray,  # (R, C) never negative
    rows: CodeArray,  # (N,) which costs each token has
    weight: FloatArray,  # (N,)
    slopes: FloatArray,  # (N, C) out
    expected: FloatArray,  # (N,) out
) -> None:
    """Expect costs, ``sum_k p(k) cost(k)``; the slopes are ``weight p(k) (cost(k) - expected)``."""
    for t in range(rows.shape[0]):
        row, total, top = rows[t], 0.0, 0
        for k in range(probability.shape[1]):
            total += probability[t, k] * costs[row, k]
            if probability[t, k] > probability[t, top]:
                top = k
        expected[t], rest = total, 0.0
        for k in range(probability.shape[1]):
            slopes[t, k] = weight[t] * probability[t, k] * (costs[row, k] - total)
            if k != top:
                rest += slopes[t, k]
        slopes[t, top] = -rest  # where that is nearly certain, the difference of costs is lost


@kernel
def slopes_of_difference(
    probability: FloatArray,  # (N, C)
    labels: CodeArray,  # (N,)
    rivals: CodeArray,  # (N,) other labels; `NONE`: the most probable one
    weight: FloatArray,  # (N,)
    steepness: float,
    slopes: FloatArray,  # (N, C) out
    errors: FloatArray,  # (N,) out
) -> None:
    """Count errors, ``1 / (1 + exp(steepness (p(y) - p(rival))))``; slopes of ``weight error``.

    With ``g`` the derivative by ``p(rival)`` and ``rest`` the probability of the other labels:
    ``-g p(y) (rest + 2 p(rival))``, ``g p(rival) (rest + 2 p(y))``, ``g p(k) (p(y) - p(rival))``.
    Without another label, the error is 0.
    """
    size = probability.shape[1]
    for t in range(labels.shape[0]):
        label, rival = labels[t], rivals[t]
        if rival == NONE:
            for k in range(size):
                if k != label and (rival == NONE or probability[t, k] > probability[t, rival]):
                    rival = k
        if rival == NONE:
            errors[t], slopes[t, label] = 0.0, 0.0
            continue
        own, other, rest = probability[t, label], probability[t, rival], 0.0
        small = math.exp(-steepness * abs(own - other))
        error = (small if own > other else 1.0) / (1.0 + small)
        slope = weight[t] * steepness * small / (1.0 + small) ** 2
        for k in range(size):
            if k != label and k != rival:
                rest += probability[t, k]
            slopes[t, k] = slope * (own - other) * probability[t, k]
        slopes[t, label] = -slope * own * (rest + 2.0 * other)
        slopes[t, rival] = slope * other * (rest + 2.0 * own)
        errors[t] = error
