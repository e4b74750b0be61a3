"""Slopes of eight chains side by side, carried as :mod:`crfkit.kernels.chain.posterior` does.

Each lane of a vector is a sequence, laid out as in :mod:`crfkit.kernels.chain.interleaved`. Where
a sequence has ended, or has not begun, all its numbers are 0.
"""

from __future__ import annotations

from typing import NamedTuple

from crfkit._types import FloatArray, IntArray
from crfkit.compiler.jit import kernel, part
from crfkit.compiler.simd import (
    WIDTH,
    add,
    decay,
    divide,
    fill,
    fill_at,
    larger,
    load_at,
    multiply,
    multiply_add,
    store_at,
    subtract,
    total,
    where_positive,
)
from crfkit.kernels.chain.interleaved import (
    BLOCK,
    FILLED,
    LACKING,
    LOWEST,
    TILE,
    LaneTables,
    Three,
    add_flow,
    lanes_order,
    take_lanes,
)
from crfkit.kernels.chain.posterior import LEAST_SHARE, LOST, MOST, NO_SHARE, ChainSlopes, SlopeSums
from crfkit.kernels.chain.sum import OK, UNDERFLOW

# Status of a sequence that was carried.
DONE = -3


class SlopeLanes(NamedTuple):
    """Workspace for sequences of up to ``T`` tokens; the first four as in `LaneRooms`."""

    order: IntArray  # (S,)
    places: IntArray  # (L + 2,) zeros
    begin: IntArray  # (8,)
    size: IntArray  # (8,)
    node: FloatArray  # (8 P T,) exponentials of the scores
    marginal: FloatArray  # (8 P T,)
    ratio: FloatArray  # (8 P T,) slopes, divided by the marginals
    gain: FloatArray  # (8 P T,) what comes to each token
    moved: FloatArray  # (8 P T,) as in `SlopeRooms`
    share: FloatArray  # (8 P T,) as in `SlopeRooms`
    alpha: FloatArray  # (16 P,) of the last two tokens
    mass: FloatArray  # (8,) the sum of the last alpha
    starts: FloatArray  # (8,) 1 where a sequence begins, in the direction it is carried
    most: FloatArray  # (8,) the largest number that matters
    flow: FloatArray  # (8 P P,) divided by factor


@part
def _load(given: ChainSlopes, t: int, places: int, rooms: SlopeLanes) -> None:
    """Lay the scores, marginals and slopes of a token of each lane."""
    node, marginal, ratio = rooms.node, rooms.marginal, rooms.ratio
    size, first = given.unary.shape[1], WIDTH * places * t
    for b in range(rooms.size.shape[0]):
        there, row = t < rooms.size[b], rooms.begin[b] + t
        for k in range(size):
            place = first + WIDTH * k + b
            node[place] = given.unary[row, k] if there else 0.0
            marginal[place] = given.marginals[row, k] if there else 0.0
            ratio[place] = given.slopes[row, k] if there else 0.0
    for place in range(first + WIDTH * size, first + WIDTH * places, WIDTH):
        store_at(fill(LOWEST), node, place)
        store_at(fill(0.0), marginal, place)
        store_at(fill(0.0), ratio, place)


@part
def _divide(t: int, places: int, rooms: SlopeLanes) -> None:
    """Take exponentials of the scores of a token, and divide its slopes by the marginals."""
    node, marginal, ratio = rooms.node, rooms.marginal, rooms.ratio
    first, last = WIDTH * places * t, WIDTH * places * (t + 1)
    top, surplus, most = fill(LOWEST), fill(0.0), load_at(rooms.most, 0)
    for place in range(first, last, WIDTH):
        top = larger(top, load_at(node, place))
        surplus = add(surplus, load_at(ratio, place))
    for place in range(first, last, WIDTH):
        mu = load_at(marginal, place)
        slope = subtract(load_at(ratio, place), multiply(surplus, mu))
        known = subtract(mu, fill(NO_SHARE))
        share = where_positive(known, divide(slope, larger(mu, fill(NO_SHARE))))
        store_at(share, ratio, place)
        store_at(decay(subtract(load_at(node, place), top)), node, place)
        store_at(fill(0.0), rooms.gain, place)
        lost = where_positive(subtract(fill(LEAST_SHARE), mu), multiply(fill(LOST), slope))
        most = larger(most, larger(lost, subtract(fill(0.0), lost)))
    store_at(most, rooms.most, 0)


@part
def _products(source: FloatArray, place: int, other: FloatArray, beside: int, table: FloatArray,
              begin: int, size: int) -> tuple[Three, Three]:  # fmt: skip
    """Products as in `lanes_sum`, of two vectors with the columns of the table from `begin` on."""
    a, b, c = fill(0.0), fill(0.0), fill(0.0)
    u, v, w = fill(0.0), fill(0.0), fill(0.0)
    for i in range(size):
        x, y = load_at(source, place + WIDTH * i), load_at(other, beside + WIDTH * i)
        cell = begin + TILE * i
        d, e, f = fill_at(table, cell), fill_at(table, cell + 1), fill_at(table, cell + 2)
        a, b, c = multiply_add(d, x, a), multiply_add(e, x, b), multiply_add(f, x, c)
        u, v, w = multiply_add(d, y, u), multiply_add(e, y, v), multiply_add(f, y, w)
    return Three(a, b, c), Three(u, v, w)


@part
def _carry(f: FloatArray, measure: FloatArray, scale: FloatArray, place: int, to: int,
           rooms: SlopeLanes) -> tuple[FloatArray, FloatArray]:  # fmt: skip
    """Carry one label to a token; returns alpha, and the largest number that matters."""
    mu, scaled = load_at(rooms.marginal, place), multiply(scale, load_at(rooms.node, place))
    inverse = divide(fill(1.0), larger(f, fill(NO_SHARE)))
    inverse = where_positive(subtract(mu, fill(NO_SHARE)), inverse)
    share, alpha = multiply(mu, inverse), multiply(scaled, f)
    moved = multiply(scaled, multiply_add(load_at(rooms.ratio, place), f, measure))
    store_at(alpha, rooms.alpha, to)
    store_at(moved, rooms.moved, place)
    store_at(share, rooms.share, place)
    store_at(multiply_add(share, measure, load_at(rooms.gain, place)), rooms.gain, place)
    # Last, as what was moved may be no number where the other is infinite.
    return alpha, larger(inverse, larger(moved, subtract(fill(0.0), moved)))


@part
def _carry_all(t: int, before: int, count: int, size: int, places: int, table: FloatArray,
               rooms: SlopeLanes) -> None:  # fmt: skip
    """Carry all labels from the token `before`, of which there are `count`, to the token `t`."""
    width = WIDTH * places
    here, there, starts = width * (t % 2), width * ((t + 1) % 2), load_at(rooms.starts, 0)
    most, mass = load_at(rooms.most, 0), fill(0.0)
    scale = divide(fill(1.0), larger(add(load_at(rooms.mass, 0), starts), fill(1.0 / MOST)))
    for j in range(0, size, TILE):
        f, measure = _products(
            rooms.alpha, there, rooms.moved, width * before, table, j * size, count
        )
        place, to = width * t + WIDTH * j, here + WIDTH * j
        a, x = _carry(add(f.first, starts), measure.first, scale, place, to, rooms)
        place, to = place + WIDTH, to + WIDTH
        b, y = _carry(add(f.second, starts), measure.second, scale, place, to, rooms)
        place, to = place + WIDTH, to + WIDTH
        c, z = _carry(add(f.third, starts), measure.third, scale, place, to, rooms)
        mass = add(add(mass, a), add(b, c))
        most = larger(larger(most, x), larger(y, z))
    store_at(mass, rooms.mass, 0)
    store_at(most, rooms.most, 0)


@part
def _carry_tokens(length: int, size: int, places: int, tables: LaneTables,
                  rooms: SlopeLanes) -> None:  # fmt: skip
    """Carry the slopes of the lanes in both directions, and add up their transitions."""
    moved, share, flow = rooms.moved, rooms.share, rooms.flow
    block = max(BLOCK // places, 1)
    for step in (1, -1):
        table = tables.forward if step > 0 else tables.backward
        store_at(fill(0.0), rooms.mass, 0)
        for n in range(length):
            t = n if step > 0 else length - 1 - n
            for b in range(rooms.size.shape[0]):
                first = 0 if step > 0 else rooms.size[b] - 1
                rooms.starts[b] = 1.0 if t == first else 0.0
            count, before = (size, t - step) if n else (0, t)
            _carry_all(t, before, count, size, places, table, rooms)
        left, right = (moved, share) if step > 0 else (share, moved)
        for begin in range(1, length, block):
            add_flow(begin, min(begin + block, length), places, left, right, flow)


@part
def _add_gains(t: int, places: int, rooms: SlopeLanes, out: FloatArray) -> None:
    """Add what came to a token of each lane."""
    first = WIDTH * places * t
    for b in range(rooms.size.shape[0]):
        row = rooms.begin[b] + t
        if t < rooms.size[b] and rooms.most[b] <= MOST:
            for k in range(out.shape[1]):
                out[row, k] += rooms.gain[first + WIDTH * k + b]


@kernel
def lanes_pull_back(
    given: ChainSlopes,  # with one table, which is not read
    tables: LaneTables,
    offsets: IntArray,  # (S + 1,)
    rooms: SlopeLanes,
    out: SlopeSums,
) -> None:
    """Carry the slopes of sequences in both directions, eight by eight.

    Only those are `DONE` that are not far longer than others, and that can be trusted.
    """
    n, size, places = 0, given.unary.shape[1], rooms.alpha.shape[0] // (2 * WIDTH)
    order, status, flow = rooms.order, out.status, rooms.flow
    lanes_order(offsets, rooms.places, order)
    for place in range(0, flow.shape[0], WIDTH):
        store_at(fill(0.0), flow, place)
    while n < order.shape[0]:
        tokens, length = take_lanes(offsets, n, rooms.order, rooms.begin, rooms.size)
        if tokens + LACKING < FILLED * length or length == 0:
            n += 1
            continue
        for b in range(rooms.size.shape[0]):
            if rooms.size[b] and status[order[n + b]] != OK:
                rooms.size[b] = 0
        store_at(fill(0.0), rooms.most, 0)
        for t in range(length):
            _load(given, t, places, rooms)
            _divide(t, places, rooms)
        _carry_tokens(length, size, places, tables, rooms)
        for t in range(length):
            _add_gains(t, places, rooms, out.unary)
        for b in range(rooms.size.shape[0]):
            if rooms.size[b]:
                status[order[n + b]] = DONE if rooms.most[b] <= MOST else UNDERFLOW
        n += WIDTH
    for i in range(size):
        for j in range(size):
            out.flow[0, i, j] += total(load_at(flow, WIDTH * (places * i + j)))
