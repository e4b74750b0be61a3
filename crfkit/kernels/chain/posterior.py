"""From slopes of functions of the marginals of linear chains to gradients of their scores.

Shapes as in :mod:`crfkit.kernels.chain.arrays`. The slopes of a token are a measure over its
labels, of total mass 0, so that nothing cancels. They move along the chain by the probabilities of
a label given that of its neighbor, once in each direction; the sum of what comes to a token and of
its own slopes is the gradient with respect to its scores (the recursion of Gross, Russakovsky, Do
and Batzoglou 2006, of which the marginals are divided out before it is begun).

Both directions are one recurrence, as the marginals ``mu`` are known. To move forward, ``f_t(k) =
sum_j alpha_{t-1}(j) factor(j, k)`` and ``alpha_t(k) = node_t(k) f_t(k)`` up to a scale, so that
``P(y_t = k | y_{t-1} = j) = alpha_{t-1}(j) / mu_{t-1}(j) factor(j, k) mu_t(k) / f_t(k)``. To move
backward the same is done from behind, with the transposed table.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from crfkit._types import FloatArray, IdArray, IntArray
from crfkit.compiler.jit import kernel, part
from crfkit.compiler.simd import (
    WIDTH,
    add,
    decay,
    divide,
    fill,
    lanes_from,
    larger,
    largest,
    load,
    load_of,
    multiply,
    multiply_add,
    store,
    subtract,
    total,
    where_positive,
)
from crfkit.kernels._strips import STRIP, Strip, add_outer, last_strip, strip_columns, strips_top
from crfkit.kernels.chain._two import two_products
from crfkit.kernels.chain.sum import OK, UNDERFLOW

# A label whose marginal is below the first number is left out. Whoever has a slope that matters, of
# at least SLIGHT, must be above the second: all that comes from it to those left out is then lost
# in rounding. What is scaled by more than MOST is not trusted.
NO_SHARE, LEAST_SHARE, SLIGHT, MOST = 1e-300, 1e-200, 1e-100, 1e150
LOST = MOST / SLIGHT


class ChainSlopes(NamedTuple):
    """What a direction reads. Read-only."""

    unary: FloatArray  # (N, K)
    tables: FloatArray  # (M, K, K) exp(pair - its largest); transposed to move backward
    transition_index: IdArray  # (N,) or (1,) the table of the transition into each token
    marginals: FloatArray  # (N, K)
    slopes: FloatArray  # (N, K)


class SlopeRooms(NamedTuple):
    """The tokens of a window, and what goes on to the next one."""

    moved: FloatArray  # (R + 2, K) alpha / mu times the measure; alpha of the last two tokens
    share: FloatArray  # (R, K) mu / f; 0 where a sequence begins
    gain: FloatArray  # (1, K) what came to a token


class Place(NamedTuple):
    """Where a token is read and written."""

    t: int
    here: int  # its row in the window, at least 1 but for the first of a sequence
    alpha: int  # the row of its alpha
    before: int  # the row of the alpha of the token before


class Scales(NamedTuple):
    """What the numbers of a token are scaled and shifted by, in all lanes."""

    alpha: FloatArray
    top: FloatArray  # the largest unary score
    surplus: FloatArray  # what the slopes add up to


class SlopeSums(NamedTuple):
    """What a direction writes."""

    unary: FloatArray  # (N, K) added to: what came to each token
    flow: FloatArray  # (M, K, K) added to, divided by factor; from the token that was there first
    status: IntArray  # (S,) in: others than `OK` are left out; out: whether to trust a sequence


@part
def _surplus(slopes: FloatArray, t: int) -> float:
    """Return what the slopes of a token add up to, but for rounding 0: it would be carried on."""
    size, mass = slopes.shape[1], fill(0.0)
    for first in range(0, size, WIDTH):
        p = min(first, size - WIDTH)
        mass = multiply_add(lanes_from(first - p), load(slopes, t, p), mass)
    return total(mass)


@part
def _carry(f: FloatArray, measure: FloatArray, given: ChainSlopes, at: Place, column: int,
           scales: Scales, rooms: SlopeRooms) -> tuple[FloatArray, FloatArray]:  # fmt: skip
    """Carry eight labels to a token; returns alpha, and the largest number that matters."""
    mu = load(given.marginals, at.t, column)
    slope = subtract(load(given.slopes, at.t, column), multiply(scales.surplus, mu))
    node = decay(subtract(load(given.unary, at.t, column), scales.top))
    known, scaled = subtract(mu, fill(NO_SHARE)), multiply(scales.alpha, node)
    least = fill(NO_SHARE)  # of what may be divided by
    ratio = where_positive(known, divide(slope, larger(mu, least)))
    inverse = where_positive(known, divide(fill(1.0), larger(f, least)))
    alpha, moved = multiply(scaled, f), multiply(scaled, multiply_add(ratio, f, measure))
    share = multiply(mu, inverse)
    store(moved, rooms.moved, at.here, column)
    store(alpha, rooms.moved, at.alpha, column)
    store(share, rooms.share, at.here, column)
    store(multiply(share, measure), rooms.gain, 0, column)
    lost = where_positive(subtract(fill(LEAST_SHARE), mu), multiply(fill(LOST), slope))
    most = larger(inverse, larger(lost, subtract(fill(0.0), lost)))
    # Last, as what was moved may be no number where another is infinite.
    return alpha, larger(most, larger(moved, subtract(fill(0.0), moved)))


@part
def _products(given: ChainSlopes, at: Place, m: int, starts: bool, start: int,
              moved: FloatArray) -> tuple[Strip, Strip]:  # fmt: skip
    """Return a strip of ``f`` and of what is carried; at the first token, one and nothing."""
    tables, other = given.tables, at.here - 1
    a, b, u, v = fill(0.0), fill(0.0), fill(0.0), fill(0.0)
    p, q, r = strip_columns(start, tables.shape[2])
    if starts:
        a = fill(1.0)
        return Strip(a, a, a), Strip(u, u, u)
    if p == q or q < r:
        return two_products(moved, at.before, other, tables, m, start)
    for i in range(tables.shape[1]):
        d, e = load_of(tables, m, i, p), load_of(tables, m, i, q)
        x, y = fill(moved[at.before, i]), fill(moved[other, i])
        a, b = multiply_add(x, d, a), multiply_add(x, e, b)
        u, v = multiply_add(y, d, u), multiply_add(y, e, v)
    return Strip(a, b, b), Strip(u, v, v)


@part
def _carry_strips(given: ChainSlopes, at: Place, m: int, starts: bool, scale: float,
                  rooms: SlopeRooms) -> tuple[float, float]:  # fmt: skip
    """Carry all labels to a token; returns the scale of alpha, and the largest number."""
    size, mass, most = given.unary.shape[1], fill(0.0), fill(0.0)
    top, surplus = strips_top(given.unary, at.t), _surplus(given.slopes, at.t)
    scales = Scales(fill(scale), fill(top), fill(surplus))
    for start in range(last_strip(size), -1, -STRIP):
        p, q, r = strip_columns(start, size)
        f, measure = _products(given, at, m, starts, start, rooms.moved)
        alpha, peak = _carry(f.first, measure.first, given, at, p, scales, rooms)
        mass, most = add(mass, alpha), larger(most, peak)
        if q > p:
            alpha, peak = _carry(f.second, measure.second, given, at, q, scales, rooms)
            mass, most = add(mass, alpha), larger(most, peak)
        if r > q:
            alpha, peak = _carry(f.third, measure.third, given, at, r, scales, rooms)
            mass, most = add(mass, alpha), larger(most, peak)
    return total(mass), largest(most)


@part
def _carry_few(given: ChainSlopes, at: Place, m: int, starts: bool, scale: float,
               rooms: SlopeRooms) -> tuple[float, float]:  # fmt: skip
    """Carry the labels, fewer than eight, to a token, as `_carry_strips`."""
    size, moved, mass, most, surplus = given.unary.shape[1], rooms.moved, 0.0, 0.0, 0.0
    top = -math.inf
    for k in range(size):
        surplus += given.slopes[at.t, k]
        top = max(top, given.unary[at.t, k])
    for k in range(size):
        f, measure = (1.0, 0.0) if starts else (0.0, 0.0)
        for j in range(0 if starts else size):
            f += moved[at.before, j] * given.tables[m, j, k]
            measure += moved[at.here - 1, j] * given.tables[m, j, k]
        mu = given.marginals[at.t, k]
        slope = given.slopes[at.t, k] - surplus * mu
        known = mu > NO_SHARE
        inverse = 1.0 / max(f, NO_SHARE) if known else 0.0
        ratio = slope / mu if known else 0.0
        scaled = scale * math.exp(given.unary[at.t, k] - top)
        moved[at.alpha, k] = scaled * f
        moved[at.here, k] = scaled * (ratio * f + measure)
        rooms.share[at.here, k] = mu * inverse
        rooms.gain[0, k] = mu * inverse * measure
        mass += moved[at.alpha, k]
        lost = LOST * abs(slope) if mu < LEAST_SHARE else 0.0
        most = max(max(most, max(inverse, lost)), abs(moved[at.here, k]))  # in this order
    return mass, most


@part
def _add_gain(gain: FloatArray, out: FloatArray, t: int) -> None:
    """``out[t, k] += gain[0, k]``."""
    size = out.shape[1]
    if size < WIDTH:
        for k in range(size):
            out[t, k] += gain[0, k]
        return
    for first in range(0, size, WIDTH):
        p = min(first, size - WIDTH)
        one = multiply_add(lanes_from(first - p), load(gain, 0, p), load(out, t, p))
        store(one, out, t, p)


@part
def _center(moved: FloatArray, here: int, alpha: int, gain: FloatArray) -> None:
    """Take from what goes on what it adds up to: but for rounding 0, which would add up."""
    mass = 0.0
    for k in range(gain.shape[1]):
        mass += gain[0, k]
    for k in range(gain.shape[1]):
        moved[here, k] -= mass * moved[alpha, k]


@part
def _turn(filled: int, shared: bool, m: int, rooms: SlopeRooms, flow: FloatArray) -> None:
    """Add up the transitions of a window, whose last token becomes the first of the next one."""
    moved, share = rooms.moved, rooms.share
    if shared:
        add_outer(moved, -1, share, 1, filled, flow, m)
    for k in range(share.shape[1]):
        moved[0, k] = moved[filled - 1, k]


@kernel
def chain_pull_back(
    given: ChainSlopes,
    offsets: IntArray,  # (S + 1,) the tokens of the sequences
    step: int,  # 1 to move forward, -1 to move backward
    goes_on: bool,  # whether the only sequence was begun, and its last token is in the rooms
    rooms: SlopeRooms,
    out: SlopeSums,
) -> None:
    """Carry the slopes of sequences in one direction, in time ``O(N K^2)``."""
    index, moved, share = given.transition_index, rooms.moved, rooms.share
    size, shared, window = share.shape[1], index.shape[0] == 1, share.shape[0]
    filled, scale = 0, 1.0
    before = window
    if goes_on:
        filled = 1
        mass = 0.0
        for k in range(size):
            mass += moved[window, k]
        scale = 1.0 / max(mass, 1.0 / MOST)
    for s in range(offsets.shape[0] - 1):
        begin, end = offsets[s], offsets[s + 1]
        if out.status[s] != OK:
            continue
        for n in range(end - begin):
            t = begin + n if step > 0 else end - 1 - n
            starts = n == 0 and not goes_on
            m = index[0] if shared else index[t if step > 0 else min(t + 1, index.shape[0] - 1)]
            if filled == window:
                if not starts:
                    _center(moved, filled - 1, before, rooms.gain)
                _turn(filled, shared, m, rooms, out.flow)
                filled = 1
            at = Place(t, filled, 2 * window + 1 - before, before)
            before = at.alpha
            if starts:
                scale = 1.0
            if size >= WIDTH:
                mass, most = _carry_strips(given, at, m, starts, scale, rooms)
            else:
                mass, most = _carry_few(given, at, m, starts, scale, rooms)
            if not most <= MOST:
                out.status[s] = UNDERFLOW
                break
            _add_gain(rooms.gain, out.unary, t)
            if starts:
                for k in range(size):
                    share[filled, k] = 0.0
            elif not shared:
                add_outer(moved, -1, share, filled, filled + 1, out.flow, m)
            scale = 1.0 / max(mass, 1.0 / MOST)
            filled += 1
    if filled:
        _turn(filled, shared, index[0], rooms, out.flow)
        for k in range(size):
            moved[window, k] = moved[before, k]
