"""Steps of block-coordinate Frank-Wolfe over tangents that were found before, without a search.

The loss of a sequence is the largest of its planes ``level + change . w``, one for each labeling;
that of the true labels is 0. The dual is concave in the shares of planes, and where no parameter is
bounded, a parabola along each direction.
"""

from __future__ import annotations

from typing import NamedTuple

from crfkit._types import BoolArray, FloatArray, IdArray, IntArray
from crfkit.compiler.jit import kernel, part
from crfkit.kernels.solvers.frank_wolfe import FrankWolfeOptions

# Halvings of the interval of a length at most.
MOST_HALVINGS = 60


class Planes(NamedTuple):
    """M planes of one sequence."""

    ptr: IntArray  # (M + 1,) where each one starts, and the end
    places: IdArray  # (n,) parameters
    changes: FloatArray  # (n,) what the plane changes by with these
    levels: FloatArray  # (M,) the planes at 0
    shares: FloatArray  # (M,) of the sequence


class Descent(NamedTuple):
    """Parameters on their way, and room."""

    sums: FloatArray  # (P,) ``-1 / (2 c2)`` times the sum of all planes, by their shares
    nonnegative: BoolArray  # (P,) where the parameters are 0 if the sums are negative
    values: FloatArray  # (M,) of the planes
    scratch: FloatArray  # (P,) zeros
    places: IdArray  # (n,) of a direction
    changes: FloatArray  # (n,)


@kernel
def plane_steps(planes: Planes, options: FrankWolfeOptions, descent: Descent) -> float:
    """Make some steps for one sequence; returns its part in the gap before the first.

    A step moves shares from the plane of the least value, or from all, to the largest one. They end
    where the part in the gap is small enough.
    """
    first = 0.0
    for tried in range(options.most):
        top, away, mean = _evaluate(planes, descent)
        values = descent.values
        gap = max(values[top] - mean, 0.0)
        if tried == 0:
            first = gap
        slope = values[top] - values[away] if options.pairwise else gap
        if not slope > 0.0 or (tried > 0 and gap <= options.enough * first):
            break
        count = _direction(planes, top, away, options.pairwise, descent)
        most = planes.shares[away] if options.pairwise else 1.0
        length = _length(count, slope, most, options.c2, descent)
        for i in range(count):
            p = descent.places[i]
            descent.sums[p] -= length / (2.0 * options.c2) * descent.changes[i]
        if options.pairwise:
            planes.shares[away] -= length
        else:
            for c in range(planes.shares.shape[0]):
                planes.shares[c] *= 1.0 - length
        planes.shares[top] += length
    return first


@part
def _evaluate(planes: Planes, descent: Descent) -> tuple[int, int, float]:
    """Write the values of planes; the largest, the least that has a share, and the mean."""
    top, away, mean = 0, -1, 0.0
    for c in range(planes.shares.shape[0]):
        value = planes.levels[c]
        for j in range(planes.ptr[c], planes.ptr[c + 1]):
            w = descent.sums[planes.places[j]]
            if not descent.nonnegative[planes.places[j]] or w > 0.0:
                value += planes.changes[j] * w
        descent.values[c] = value
        mean += planes.shares[c] * value
        if value > descent.values[top]:
            top = c
        if planes.shares[c] > 0.0 and (away < 0 or value < descent.values[away]):
            away = c
    return top, away, mean


@part
def _direction(planes: Planes, top: int, away: int, pairwise: bool, descent: Descent) -> int:
    """List how the sum of planes changes with a step of length 1; returns at how many places."""
    for c in range(planes.shares.shape[0]):
        factor = 1.0 if c == top else 0.0
        if not pairwise:
            factor -= planes.shares[c]
        elif c == away:
            factor -= 1.0
        if factor != 0.0:
            for j in range(planes.ptr[c], planes.ptr[c + 1]):
                descent.scratch[planes.places[j]] += factor * planes.changes[j]
    count = 0
    for c in range(planes.shares.shape[0]):
        if c == top or c == away or not pairwise:
            for j in range(planes.ptr[c], planes.ptr[c + 1]):
                p = planes.places[j]
                if descent.scratch[p] != 0.0:
                    descent.places[count] = p
                    descent.changes[count] = descent.scratch[p]
                    descent.scratch[p] = 0.0
                    count += 1
    return count


@part
def _length(count: int, slope: float, most: float, c2: float, descent: Descent) -> float:
    """Return the length of the step along which the dual rises most, at most some length.

    In closed form, if the parameters that are 0 stay the same along it, else between two lengths
    where the dual rises and where it falls.
    """
    low, high, length = 0.0, most, most
    for _ in range(MOST_HALVINGS):
        rise, curvature = _slope(length, count, c2, descent)
        rise += slope
        if rise >= 0.0:
            low = length
        else:
            high = length
        if low == most or abs(rise) <= 1e-12 * slope:
            break
        length += rise / curvature if curvature > 0.0 else high
        if not low < length < high:
            length = 0.5 * (low + high)
    return length


@part
def _slope(length: float, count: int, c2: float, descent: Descent) -> tuple[float, float]:
    """How much less the dual rises at a length than at first, and how fast its slope falls there.

    The rise at first is the difference of values of planes.
    """
    change, curvature = 0.0, 0.0
    for i in range(count):
        p, d = descent.places[i], descent.changes[i]
        before = descent.sums[p]
        after = before - length / (2.0 * c2) * d
        if descent.nonnegative[p]:
            if after > 0.0:
                curvature += d * d / (2.0 * c2)
            before, after = max(before, 0.0), max(after, 0.0)
        else:
            curvature += d * d / (2.0 * c2)
        change += d * (after - before)
    return change, curvature
