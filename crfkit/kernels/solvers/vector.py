"""Loops over long vectors whose result does not depend on the threads of a BLAS library.

Shapes: ``P`` parameters, all or a range of them, that of vectors where no other is said: the
caller cuts long ones in a fixed way and spreads the ranges over threads. ``R`` is the number of
rows of a memory of earlier vectors, numbers of 16 bits: see :mod:`crfkit.compiler.bfloat`.
"""

from __future__ import annotations

from crfkit._types import ByteArray, FloatArray, IdArray, IntArray, LabelArray
from crfkit.compiler.bfloat import of_bfloat, to_bfloat
from crfkit.compiler.jit import kernel, part

# Riedmiller and Braun (1993): by how much steps of Rprop grow and shrink.
GROW, SHRINK = 1.2, 0.5
# What 0 is to a parameter: nothing, where steps stop on their way to the other sign, or a bound.
FREE, ORTHANT, NONNEGATIVE = 0, 1, 2


@kernel
def vector_dot(a: FloatArray, b: FloatArray) -> float:
    """``sum_p a[p] b[p]``."""
    total = 0.0
    for p in range(a.shape[0]):
        total += a[p] * b[p]
    return total


@kernel
def vector_add(factor: float, a: FloatArray, out: FloatArray) -> None:
    """``out[p] += factor a[p]``."""
    for p in range(a.shape[0]):
        out[p] += factor * a[p]


@kernel
def vector_step(w: FloatArray, factor: float, direction: FloatArray, out: FloatArray) -> None:
    """``out[p] = w[p] + factor direction[p]``."""
    for p in range(w.shape[0]):
        out[p] = w[p] + factor * direction[p]


@kernel
def vector_size(a: FloatArray, out: FloatArray) -> None:
    """Write ``sum_p a[p]**2`` and ``sum_p |a[p]|``, (2,)."""
    squares = 0.0
    absolute = 0.0
    for p in range(a.shape[0]):
        value = a[p]
        squares += value * value
        absolute += abs(value)
    out[0] = squares
    out[1] = absolute


@kernel
def memory_store(
    w: FloatArray,  # parameters before
    w_next: FloatArray,  # and after a step
    g: FloatArray,  # gradient before
    g_next: FloatArray,  # and after it
    units: FloatArray,  # the parameters are counted in these
    scales: FloatArray,  # (2,) what the two changes are multiplied with
    row: int,
    memory: LabelArray,  # (R, P) out: the changes in the rows `row` and `row + 1`
    out: FloatArray,  # (2,) out
) -> None:
    """``s = (w_next - w) / u`` and ``y = u (g_next - g)``, scaled and rounded; their products."""
    curvature, square = 0.0, 0.0
    for p in range(w.shape[0]):
        memory[row, p] = to_bfloat(scales[0] * (w_next[p] - w[p]) / units[p])
        memory[row + 1, p] = to_bfloat(scales[1] * (g_next[p] - g[p]) * units[p])
        change = of_bfloat(memory[row + 1, p])
        curvature += change * of_bfloat(memory[row, p])
        square += change * change
    out[0] = curvature
    out[1] = square


@kernel
def memory_dots(
    memory: LabelArray,  # (R, P)
    rows: IdArray,  # (r,) rows that are used
    newest: int,  # row of the newest change of the gradient
    g: FloatArray,
    out: FloatArray,  # (2, r) out
) -> None:
    """``memory[i] . memory[newest]`` and ``memory[i] . g`` for all rows in use, in one sweep."""
    for i in range(rows.shape[0]):
        row, with_newest, with_g = rows[i], 0.0, 0.0
        for p in range(g.shape[0]):
            value = of_bfloat(memory[row, p])
            with_newest += value * of_bfloat(memory[newest, p])
            with_g += value * g[p]
        out[0, i] = with_newest
        out[1, i] = with_g


@kernel
def memory_combine(
    memory: LabelArray,  # (R, P)
    rows: IdArray,  # (r,) rows that are used, an even number
    factors: FloatArray,  # (r,)
    scale: float,
    g: FloatArray,
    out: FloatArray,
) -> None:
    """``out = scale g + sum_i factors[i] memory[i]`` in one sweep, two rows at a time."""
    for p in range(g.shape[0]):
        out[p] = scale * g[p]
    for i in range(0, rows.shape[0], 2):
        first, second = rows[i], rows[i + 1]
        a, b = factors[i], factors[i + 1]
        for p in range(g.shape[0]):
            out[p] += a * of_bfloat(memory[first, p]) + b * of_bfloat(memory[second, p])


@kernel
def orthant_gradient(
    w: FloatArray, g: FloatArray, l1: float, sides: ByteArray, out: FloatArray
) -> None:
    """Pseudo-gradient of ``f(w) + l1 sum |w|`` (Andrew and Gao 2007, equation 4), given that of f.

    Where ``w[p] = 0``, the one-sided derivative that is negative along the way, or 0; a parameter
    that may not be negative has only one side.
    """
    for p in range(w.shape[0]):
        if w[p] > 0.0:
            out[p] = g[p] + l1
        elif w[p] < 0.0:
            out[p] = g[p] - l1
        elif g[p] > l1 and sides[p] != NONNEGATIVE:
            out[p] = g[p] - l1
        elif g[p] < -l1:
            out[p] = g[p] + l1
        else:
            out[p] = 0.0 * g[p]  # a gradient that is no number stays one


@kernel
def memory_columns(
    memory: LabelArray,  # (R, P)
    rows: IdArray,  # (r,) rows that are used, and the ones after them
    places: IntArray,  # (A,) parameters
    first: int,  # of those that are copied
    out: LabelArray,  # (R, at least A) out: their columns
) -> None:
    """Copy some columns side by side."""
    for i in range(rows.shape[0]):
        row = rows[i]
        for a in range(first, places.shape[0]):
            out[row, a] = memory[row, places[a]]
            out[row + 1, a] = memory[row + 1, places[a]]


@part
def _subtract_row(
    memory: LabelArray, last: int, factor: float, row: int, free: FloatArray, work: FloatArray
) -> tuple[float, float, float]:
    """Subtract a change of the gradient; return products of the changes in another row.

    These are ``s . y``, ``y . y`` and ``s . work``.
    """
    curvature, square, along = 0.0, 0.0, 0.0
    for a in range(work.shape[0]):
        work[a] -= factor * (free[a] * of_bfloat(memory[last + 1, a]))
        step, change = of_bfloat(memory[row, a]), free[a] * of_bfloat(memory[row + 1, a])
        curvature += step * change
        square += change * change
        along += step * work[a]
    return curvature, square, along


@part
def _add_row(
    memory: LabelArray, scale: float, last: int, factor: float, row: int, free: FloatArray,
    work: FloatArray,
) -> float:  # fmt: skip
    """Scale, and add a row; return the product with another one."""
    across = 0.0
    for a in range(work.shape[0]):
        work[a] = scale * work[a] + factor * (free[a] * of_bfloat(memory[last, a]))
        across += work[a] * of_bfloat(memory[row, a])
    return across


@kernel
def orthant_direction(
    places: IntArray,  # (A,) parameters, among them the free ones
    w: FloatArray,
    descent: FloatArray,  # pseudo-gradient
    memory: LabelArray,  # (R, at least A) changes: of parameters in even rows, of gradients in odd
    rows: IdArray,  # (r,) rows of the changes of the parameters, oldest first
    ratios: FloatArray,  # (r,) what a change of the parameters is scaled by, over the other change
    products: FloatArray,  # (2, r) workspace
    free: FloatArray,  # (A,) workspace
    work: FloatArray,  # (A,) workspace
    out: FloatArray,  # 0 at first
) -> float:
    """Two-loop recursion over the free parameters alone; the slope along ``out``.

    Free is what is not 0, or has a pseudo-gradient that is not. Changes count as far as they are
    free, if their curvature is clearly positive; what is 0 only moves where that descends. A sweep
    over the parameters ends what one pair does, and begins what the next one needs.
    """
    scale, factor, count = 0.0, 0.0, rows.shape[0]
    for a in range(places.shape[0]):
        p = places[a]
        work[a] = descent[p]
        free[a] = 1.0 if w[p] != 0.0 or descent[p] != 0.0 else 0.0
    last = rows[count - 1] if count else rows.shape[0]
    for i in range(count - 1, -1, -1):
        curvature, square, along = _subtract_row(memory, last, factor, rows[i], free, work)
        factor, products[0, i] = 0.0, 0.0
        if ratios[i] * curvature > 1e-10 * square:
            factor, last = along / curvature, rows[i]
            products[0, i], products[1, i] = curvature, factor
            if scale == 0.0:
                scale = ratios[i] * curvature / square
    if scale != 0.0:
        factor, last = -scale * factor, last + 1
        for i in range(count):
            if products[0, i] != 0.0:
                across = _add_row(memory, scale, last, factor, rows[i] + 1, free, work)
                factor, last = ratios[i] * products[1, i] - across / products[0, i], rows[i]
                scale = 1.0
        _add_row(memory, scale, last, factor, last, free, work)
    slope = 0.0
    for a in range(places.shape[0]):
        p, moved = places[a], work[a]
        if w[p] != 0.0 or moved * descent[p] > 0.0:
            out[p] = -moved
            slope -= moved * descent[p]
    return slope


@kernel
def orthant_step(
    w: FloatArray,
    factor: float,
    direction: FloatArray,
    descent: FloatArray,  # pseudo-gradient: the orthant of a parameter that is 0
    sides: ByteArray,  # those that are `FREE` may change their signs
    moved: FloatArray,  # out: ``w + factor direction``, 0 where a sign would change
    out: FloatArray,  # (1,) out
) -> None:
    """``descent . (moved - w)``, with the projection of Andrew and Gao (2007), section 3.2."""
    decrease = 0.0
    for p in range(w.shape[0]):
        value = w[p] + factor * direction[p]
        side = w[p] if w[p] != 0.0 else -descent[p]
        crosses = not (value > 0.0 and side > 0.0) and not (value < 0.0 and side < 0.0)
        if crosses and sides[p] != FREE:
            value = 0.0
        moved[p] = value
        decrease += descent[p] * (value - w[p])
    out[0] = decrease


@kernel
def sign_step(
    w: FloatArray,
    descent: FloatArray,  # gradient, or pseudo-gradient
    last: FloatArray,  # in and out: the gradient before, 0 where the last step was too long
    size: FloatArray,  # in and out: step lengths
    most: float,
    projected: bool,  # whether a parameter stops at 0 on its way to the other sign
    out: FloatArray,
) -> None:
    """One step of Rprop: ``out[p] = w[p] - size[p] sign(descent[p])``.

    The step grows while the sign of the derivative stays, and shrinks where it changes; there the
    parameter rests once.
    """
    for p in range(w.shape[0]):
        slope = descent[p]
        product = slope * last[p]
        if product > 0.0:
            size[p] = min(size[p] * GROW, most)
        elif product < 0.0:
            size[p] *= SHRINK
            slope = 0.0
        last[p] = slope
        value = w[p]
        if slope > 0.0:
            value -= size[p]
        elif slope < 0.0:
            value += size[p]
        if projected and ((w[p] > 0.0 and value < 0.0) or (w[p] < 0.0 and value > 0.0)):
            value = 0.0
        out[p] = value
