"""Step lengths along a direction."""

from __future__ import annotations

import math
from collections.abc import Callable

from crfkit._types import FloatArray
from crfkit.solvers.batch.base import Point, Vectors

ARMIJO = 1e-4
CURVATURE = 0.9
# A step is far too long where a parabola is lowest at this share of it; it is not cut by more.
FAR, SHORTEST = 0.25, 0.1
# Two values closer than this, relatively, may differ by rounding alone.
ROUNDING = 1e-14


def wolfe_search(
    evaluate: Callable[[FloatArray], tuple[float, FloatArray]],
    vectors: Vectors,
    start: Point,
    direction: FloatArray,
    first_step: float,
    max_steps: int,
    curvature: float = CURVATURE,
) -> Point | None:
    """Return a point that meets the strong Wolfe conditions, after `max_steps` evaluations at most.

    Bracketing and zoom of Nocedal and Wright (2006), algorithms 3.5 and 3.6, with cubic
    interpolation; the decrease is ``1e-4``, and `curvature` the share of the first slope that may
    be left. `start` has a negative slope. A point that only decreases the value enough is returned
    if no better one was found, and None if not even that.
    """

    def at(step: float) -> Point:
        w = vectors.step(start.w, step, direction)
        value, gradient = evaluate(w)
        return Point(step, w, value, gradient, vectors.dot(gradient, direction))

    def decreases(point: Point) -> bool:
        slack = ROUNDING * abs(start.value)
        return point.value <= start.value + ARMIJO * point.step * start.slope + slack

    low, high, step = start, None, first_step
    for _ in range(max_steps):
        point = at(step)
        if not decreases(point) or (low is not start and point.value >= low.value):
            high = point._replace(w=start.w, gradient=start.gradient)  # never returned
        elif abs(point.slope) <= -curvature * start.slope:
            return point
        elif high is None and point.slope < 0:
            low = point
        else:
            if high is None or point.slope * (high.step - low.step) >= 0:
                high = low
            low = point
        if high is not None and high.step == low.step:
            break  # the interval has shrunk to nothing
        step = 4.0 * low.step if high is None else _between(low, high)
        del point  # its vectors need not be there when the next one is evaluated
    return low if low is not start else None


def _between(low: Point, high: Point) -> float:
    """Return the minimum of the cubic through two points, kept well inside."""
    width = high.step - low.step
    step = low.step + 0.5 * width
    if math.isfinite(high.value) and math.isfinite(high.slope):
        d1 = low.slope + high.slope - 3.0 * (low.value - high.value) / (low.step - high.step)
        square = d1 * d1 - low.slope * high.slope
        if square >= 0.0:
            d2 = math.copysign(math.sqrt(square), width)
            bottom = high.slope - low.slope + 2.0 * d2
            if bottom != 0.0:
                step = high.step - width * (high.slope + d2 - d1) / bottom
    inside = sorted((low.step + 0.1 * width, low.step + 0.9 * width))
    return min(max(step, inside[0]), inside[1])


def orthant_search(
    evaluate: Callable[[FloatArray], tuple[float, FloatArray]],
    vectors: Vectors,
    start: Point,
    direction: FloatArray,
    first_step: float,
    max_steps: int,
    shrink: float,
) -> Point | None:
    """Return a point of a lower value in the orthant of the start, or None if none was found.

    Backtracking with projection (Andrew and Gao 2007, section 3.2): where a parameter would
    change its sign it becomes 0; the descent of the start chooses the orthant where it is 0.
    `evaluate` adds the L1 norm to the value. A step that was too long is multiplied by `shrink`:
    halves do better than interpolation, as the function along a projected line is no parabola. One
    that was far too long becomes shorter at once, a tenth at the least.
    """
    step = first_step
    for _ in range(max_steps):
        w, decrease = vectors.orthant_step(start.w, step, direction, start.descent)
        if decrease == 0.0:
            return None  # the step is lost in rounding, or all of it left the orthant
        value, gradient = evaluate(w)
        if value <= start.value + ARMIJO * decrease + ROUNDING * abs(start.value):
            return Point(step, w, value, gradient, decrease)
        step *= min(shrink, _share(decrease, value - start.value))
    return None


def _share(decrease: float, change: float) -> float:
    """Return the share of a step that a parabola tells, at least a tenth; 1 unless that is small.

    Given by how much the value would fall along a line, and by how much it did change.
    """
    if not math.isfinite(change):
        return SHORTEST
    curvature = 2.0 * (change - decrease)
    if not 0.0 < -decrease < FAR * curvature:
        return 1.0
    return max(-decrease / curvature, SHORTEST)
