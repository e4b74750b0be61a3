"""Steps of solvers that look at a few sequences at a time, at the weights these touch alone.

Shapes: ``n`` touched weights of ``P``. The weights are ``w = scale v``, so that a decay of all of
them changes one number.
"""

from __future__ import annotations

import math

from crfkit._types import FloatArray, IdArray
from crfkit.compiler.jit import kernel

# Columns of a table of weights that are moved later, side by side: most are not in any cache.
VALUE = 0
SEEN = 1
DIRECTION = 2


@kernel
def lazy_read(
    places: IdArray,  # (n,)
    scale: float,
    total: float,  # sum of the lengths of all steps so far
    lazy: FloatArray,  # (P, 3) in and out: v, the total when it was last moved, direction since
    w: FloatArray,  # (P,) out
) -> None:
    """``v -= (total - seen) direction`` and ``w = scale v``: all steps that were put off, at once.

    Just-in-time updates (Schmidt et al. 2015, section 3.3).
    """
    for n in range(places.shape[0]):
        p = places[n]
        v = lazy[p, VALUE] - (total - lazy[p, SEEN]) * lazy[p, DIRECTION]
        lazy[p, VALUE] = v
        lazy[p, SEEN] = total
        w[p] = scale * v


@kernel
def lazy_turn(
    places: IdArray,  # (n,)
    change: FloatArray,  # (n,)
    total: float,
    lazy: FloatArray,  # (P, 3) in and out
) -> None:
    """``direction += change``, after the steps along the old one that were put off."""
    for n in range(places.shape[0]):
        p = places[n]
        lazy[p, VALUE] -= (total - lazy[p, SEEN]) * lazy[p, DIRECTION]
        lazy[p, SEEN] = total
        lazy[p, DIRECTION] += change[n]


@kernel
def scaled_read(
    places: IdArray,  # (n,)
    scale: float,
    v: FloatArray,  # (P,)
    w: FloatArray,  # (P,) out
) -> None:
    """``w = scale v``."""
    for n in range(places.shape[0]):
        w[places[n]] = scale * v[places[n]]


@kernel
def averaged_step(
    places: IdArray,  # (n,)
    gradient: FloatArray,  # (n,)
    factor: float,
    past: float,  # sum of the scales of all averaged weights so far
    v: FloatArray,  # (P,) out, added to
    lag: FloatArray,  # (P,) out, added to
) -> None:
    """``v -= factor g`` and ``lag -= past factor g``.

    The sum of all weights so far is then ``past v - lag`` (Xu 2011, section 5.1).
    """
    for n in range(places.shape[0]):
        p = places[n]
        change = factor * gradient[n]
        v[p] -= change
        lag[p] -= past * change


@kernel
def cumulative_l1(
    places: IdArray,  # (n,)
    scale: float,
    due: float,  # the penalty that any weight could have got so far
    paid: FloatArray,  # (P,) in and out: the penalty that it has got, with its sign
    v: FloatArray,  # (P,) in and out
) -> None:
    """Move weights towards 0 by the penalty that they still owe, and never past it.

    The cumulative penalty of Tsuruoka, Tsujii and Ananiadou (2009), section 3.2, for
    ``w = scale v``.
    """
    for n in range(places.shape[0]):
        p = places[n]
        w = scale * v[p]
        if w == 0.0:
            continue
        side = math.copysign(1.0, w)
        clipped = side * max(0.0, abs(w) - (due + side * paid[p]))
        paid[p] += clipped - w
        v[p] = clipped / scale
