"""Steps of solvers that look at a few sequences at a time, of the weights these depend on alone.

Shapes: ``n`` such weights of ``P``. The weights are ``w = scale v``.
"""

from __future__ import annotations

import math

from crfkit._types import FloatArray, IdArray
from crfkit.compiler.jit import kernel, part


@kernel
def catch_up_weights(
    indices: IdArray, total: float, direction: FloatArray, v: FloatArray, seen: FloatArray
) -> None:
    """``v -= (total - seen) direction``: steps that were put off (Schmidt et al. 2015, 3.3).

    The total is that of the lengths of all steps; what each of the n weights has seen of it, (P,).
    """
    for n in range(indices.shape[0]):
        p = indices[n]
        v[p] -= (total - seen[p]) * direction[p]
        seen[p] = total


@kernel
def averaged_step(
    places: IdArray,  # (n,)
    gradient: FloatArray,  # (n,)
    factor: float,
    past: float,  # sum of the scales of all averaged weights so far
    v: FloatArray,  # (P,) out, added to
    lag: FloatArray,  # (P,) out, added to
) -> None:
    """``v -= factor g``, ``lag -= past factor g``: the sum so far is ``past v - lag`` (Xu 2011)."""
    for n in range(places.shape[0]):
        p = places[n]
        change = factor * gradient[n]
        v[p] -= change
        lag[p] -= past * change


@part
def _pay(p: int, scale: float, due: float, paid: FloatArray, v: FloatArray) -> None:
    """Let a weight pay what it owes."""
    w = scale * v[p]
    if w != 0.0:
        side = math.copysign(1.0, w)
        clipped = side * max(0.0, abs(w) - (due + side * paid[p]))
        paid[p] += clipped - w
        v[p] = clipped / scale


@kernel
def cumulative_l1(
    places: IdArray, scale: float, due: float, paid: FloatArray, v: FloatArray
) -> None:
    """Let weights ``scale v`` pay the L1 penalty they owe, not beyond 0 (Tsuruoka et al. 2009).

    What is due is the penalty that any weight could have got so far; (P,) have paid it in part.
    """
    for n in range(places.shape[0]):
        _pay(places[n], scale, due, paid, v)


@kernel
def cumulative_l1_of_run(
    first: int, last: int, scale: float, due: float, paid: FloatArray, v: FloatArray
) -> None:
    """Do the same for the weights ``first:last``."""
    for p in range(first, last):
        _pay(p, scale, due, paid, v)


@kernel
def dual_step(
    indices: IdArray,  # (n,)
    change: FloatArray,  # (n,)
    factor: float,
    threshold: float,
    dual: FloatArray,  # (P,) out, added to; w may be the same where the threshold is 0
    w: FloatArray,  # (P,) out: the dual vector shrunk to zero by the threshold
) -> float:
    """``v += factor change``, ``w = sign(v) max(|v| - threshold, 0)``; returns |w|^2's rise."""
    rise = 0.0
    for n in range(indices.shape[0]):
        p = indices[n]
        before = w[p]
        value = dual[p] + factor * change[n]
        dual[p] = value
        after = math.copysign(max(abs(value) - threshold, 0.0), value)
        w[p] = after
        rise += (after - before) * (after + before)
    return rise
