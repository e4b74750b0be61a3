"""Sums over eight chains side by side, for transitions that share one table.

Each lane of a vector is a sequence. They begin together and are of about one length, so that all
inner loops are over vectors, for any number of labels ``K``. What a lane computes does not depend
on the others. Lanes go on where their sequence has ended, with scores of 0 that count for nothing.

Labels are worked on three at a time: there are ``P`` places for them, a multiple of three, and
those beyond ``K`` have the probability 0. The vector of label ``k`` at step ``t`` begins at
``8 (P t + k)``.
"""

from __future__ import annotations

from typing import NamedTuple

from crfkit._types import FloatArray, IntArray
from crfkit.compiler.blocks import lay_column, lay_rows, take_column, take_rows
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
    smaller,
    store_at,
    subtract,
    total,
)
from crfkit.kernels.chain.arrays import ChainScores, ChainSums
from crfkit.kernels.chain.sum import OK, TINY, UNDERFLOW, strided_total

# Labels at a time.
TILE = 3
# So few columns beyond blocks of eight are laid one by one.
FEW = 2
# Sequences are summed side by side if they have so many times the tokens of the longest one, or
# lack so many at most.
FILLED, LACKING = 3, 256
# Vectors of the steps whose transitions are added up at a time: they stay in the nearest cache.
BLOCK = 384
LOWEST = -1.7e308


class LaneRooms(NamedTuple):
    """Workspace for sequences of up to ``T`` tokens."""

    order: IntArray  # (S,) sequences, the longest first
    places: IntArray  # (L + 2,) zeros, where L is the length of the longest sequence
    begin: IntArray  # (8,) the first token of the sequence in each lane
    size: IntArray  # (8,) how many tokens it has; 0 for none
    # (8 P (T + 1) + 64,) exponentials of the scores, then backward vectors, and room for a block
    node: FloatArray
    alpha: FloatArray  # (8 P T,) forward vectors
    shift: FloatArray  # (8 T,) the largest score of each token
    norm: FloatArray  # (8 T,) sums of the forward vectors
    ending: FloatArray  # (8 T,) where a sequence ends, its weight over the norm; else 0
    flow: FloatArray  # (8 P P,) expected transitions, divided by factor
    marginal: FloatArray  # (8 P + 64,) of one token, and room for a block
    least: FloatArray  # (8,) the least forward probability


class LaneTables(NamedTuple):
    """The table of transitions as lanes read it. Read-only."""

    forward: FloatArray  # (P K,) exp(pair - shift): three columns, then the next three
    backward: FloatArray  # (P K,) the same of the transposed table
    shift: FloatArray  # (1,) the largest pair score


class Three(NamedTuple):
    """Vectors of three labels."""

    first: FloatArray
    second: FloatArray
    third: FloatArray


@part
def n_places(rooms: LaneRooms) -> int:
    """Return P."""
    places: int = rooms.marginal.shape[0] // WIDTH - WIDTH
    return places


@part
def lanes_order(offsets: IntArray, places: IntArray, order: IntArray) -> None:
    """Sort sequences, the longest first; `places` are zeros."""
    longest = places.shape[0] - 2
    for s in range(order.shape[0]):
        places[longest - (offsets[s + 1] - offsets[s]) + 1] += 1
    for size in range(longest + 1):
        places[size + 1] += places[size]
    for s in range(order.shape[0]):
        place = longest - (offsets[s + 1] - offsets[s])
        order[places[place]] = s
        places[place] += 1


@part
def take_lanes(offsets: IntArray, n: int, order: IntArray, begins: IntArray,
               sizes: IntArray) -> tuple[int, int]:  # fmt: skip
    """Give eight sequences a lane each; returns how many tokens they have, and the longest."""
    tokens, length = 0, 0
    for b in range(sizes.shape[0]):
        begins[b], sizes[b] = 0, 0
        if n + b < order.shape[0]:
            begin, end = offsets[order[n + b]], offsets[order[n + b] + 1]
            begins[b], sizes[b] = begin, end - begin
            tokens, length = tokens + end - begin, max(length, end - begin)
    return tokens, length


@part
def _load(unary: FloatArray, t: int, places: int, rooms: LaneRooms) -> None:
    """Lay the scores of a token of each lane, as exponentials relative to the largest."""
    node, size, first, top = rooms.node, unary.shape[1], WIDTH * places * t, fill(LOWEST)
    begin, count, whole = rooms.begin, rooms.size, size - size % WIDTH
    for k in range(0, whole, WIDTH):
        lay_rows(unary, begin, count, t, k, WIDTH, node, first + WIDTH * k)
    if size - whole > FEW or whole == 0:
        lay_rows(unary, begin, count, t, whole, size - whole, node, first + WIDTH * whole)
    else:
        for k in range(whole, size):
            lay_column(unary, begin, count, t, k, node, first + WIDTH * k)
    for k in range(size):
        top = larger(top, load_at(node, first + WIDTH * k))
    for k in range(size, places):
        store_at(fill(LOWEST), node, first + WIDTH * k)
    store_at(top, rooms.shift, WIDTH * t)
    for place in range(first, first + WIDTH * places, TILE * WIDTH):
        x, y = load_at(node, place), load_at(node, place + WIDTH)
        z = load_at(node, place + 2 * WIDTH)
        store_at(decay(subtract(x, top)), node, place)
        store_at(decay(subtract(y, top)), node, place + WIDTH)
        store_at(decay(subtract(z, top)), node, place + 2 * WIDTH)


@part
def _product(source: FloatArray, place: int, table: FloatArray, begin: int, size: int) -> Three:
    """``sum_i source[i] table[i, j]`` for three labels ``j``, whose columns are `begin` on."""
    x, y, z = fill(0.0), fill(0.0), fill(0.0)
    for i in range(size):
        one, cell = load_at(source, place + WIDTH * i), begin + TILE * i
        x = multiply_add(fill_at(table, cell), one, x)
        y = multiply_add(fill_at(table, cell + 1), one, y)
        z = multiply_add(fill_at(table, cell + 2), one, z)
    return Three(x, y, z)


@part
def next_step(size: int, places: int, t: int, table: FloatArray, node: FloatArray,
              alpha: FloatArray, norm: FloatArray) -> None:  # fmt: skip
    """Scaled forward recurrence at one token: see `chain.sum._forward`."""
    row, mass = WIDTH * places * t, Three(fill(0.0), fill(0.0), fill(0.0))
    scale = divide(fill(1.0), load_at(norm, WIDTH * (t - 1)))
    for j in range(0, size, TILE):
        three = _product(alpha, row - WIDTH * places, table, j * size, size)
        place = row + WIDTH * j
        x = multiply(three.first, multiply(scale, load_at(node, place)))
        y = multiply(three.second, multiply(scale, load_at(node, place + WIDTH)))
        z = multiply(three.third, multiply(scale, load_at(node, place + 2 * WIDTH)))
        store_at(x, alpha, place)
        store_at(y, alpha, place + WIDTH)
        store_at(z, alpha, place + 2 * WIDTH)
        mass = Three(add(mass.first, x), add(mass.second, y), add(mass.third, z))
    store_at(add(add(mass.first, mass.second), mass.third), norm, WIDTH * t)


@part
def first_step(places: int, node: FloatArray, alpha: FloatArray, norm: FloatArray) -> None:
    """Begin the forward recurrence."""
    mass = fill(0.0)
    for place in range(0, WIDTH * places, WIDTH):
        one = load_at(node, place)
        store_at(one, alpha, place)
        mass = add(mass, one)
    store_at(mass, norm, 0)


@part
def _back(beta: FloatArray, place: int, row: int, scale: FloatArray, rooms: LaneRooms) -> None:
    """Step back for one label."""
    node = rooms.node
    store_at(multiply(load_at(rooms.alpha, place), beta), rooms.marginal, place - row)
    store_at(multiply(multiply(scale, load_at(node, place)), beta), node, place)


@part
def step_back(size: int, places: int, t: int, table: FloatArray, rooms: LaneRooms) -> None:
    """Scaled backward recurrence at one token, and its marginals: see `chain.sum._backward`."""
    row, ending = WIDTH * places * t, load_at(rooms.ending, WIDTH * t)
    scale = divide(fill(1.0), load_at(rooms.norm, WIDTH * max(t - 1, 0)))
    for j in range(0, size, TILE):
        three = _product(rooms.node, row + WIDTH * places, table, j * size, size)
        place = row + WIDTH * j
        _back(add(three.first, ending), place, row, scale, rooms)
        _back(add(three.second, ending), place + WIDTH, row, scale, rooms)
        _back(add(three.third, ending), place + 2 * WIDTH, row, scale, rooms)


@part
def _add_three(three: Three, flow: FloatArray, place: int) -> None:
    """Add to the transitions from a label to three others."""
    store_at(add(load_at(flow, place), three.first), flow, place)
    store_at(add(load_at(flow, place + WIDTH), three.second), flow, place + WIDTH)
    store_at(add(load_at(flow, place + 2 * WIDTH), three.third), flow, place + 2 * WIDTH)


@part
def add_flow(begin: int, end: int, places: int, alpha: FloatArray, node: FloatArray,
              flow: FloatArray) -> None:  # fmt: skip
    """``flow[i, j] += sum_t alpha[t - 1, i] node[t, j]`` over ``begin <= t < end``.

    For two labels `i` and three `j` at a time: with more, sums would not stay in sixteen registers
    of four numbers.
    """
    width = WIDTH * places
    for i in range(0, width, 2 * WIDTH):
        k = min(i + WIDTH, width - WIDTH)
        for j in range(0, width, TILE * WIDTH):
            a, b, c = fill(0.0), fill(0.0), fill(0.0)
            d, e, f = fill(0.0), fill(0.0), fill(0.0)
            for t in range(begin, end):
                before, here = (t - 1) * width, t * width + j
                u, v = load_at(alpha, before + i), load_at(alpha, before + k)
                x, y = load_at(node, here), load_at(node, here + WIDTH)
                z = load_at(node, here + 2 * WIDTH)
                a, b, c = multiply_add(u, x, a), multiply_add(u, y, b), multiply_add(u, z, c)
                d, e, f = multiply_add(v, x, d), multiply_add(v, y, e), multiply_add(v, z, f)
            _add_three(Three(a, b, c), flow, i * places + j)
            if k > i:
                _add_three(Three(d, e, f), flow, k * places + j)


@part
def end_lane(s: int, b: int, length: int, pair_shift: float, weight: FloatArray, rooms: LaneRooms,
             out: ChainSums) -> None:  # fmt: skip
    """Write log Z of a sequence, and where it ends; a lane with a tiny number becomes 0."""
    size, norm, shift = rooms.size[b], rooms.norm, rooms.shift
    if not rooms.least[b] >= TINY:
        out.status[s] = UNDERFLOW
        for t in range(length):
            norm[WIDTH * t + b] = 1.0
        for place in range(b, length * WIDTH * n_places(rooms), WIDTH):
            rooms.node[place] = 0.0
            rooms.alpha[place] = 0.0
        return
    out.status[s] = OK
    whole = strided_total(norm, shift, b, size, WIDTH)
    out.log_z[s] = whole + (size - 1) * pair_shift
    final = WIDTH * (size - 1) + b
    rooms.ending[final] = weight[s] / norm[final]


@part
def _store(t: int, rooms: LaneRooms, out: FloatArray) -> None:
    """Write the marginals of a token of each lane."""
    size, marginal, begin, count = out.shape[1], rooms.marginal, rooms.begin, rooms.size
    whole = size - size % WIDTH
    for k in range(0, whole, WIDTH):
        take_rows(out, begin, count, t, k, WIDTH, marginal, WIDTH * k)
    if size - whole > FEW or whole == 0:
        take_rows(out, begin, count, t, whole, size - whole, marginal, WIDTH * whole)
    else:
        for k in range(whole, size):
            take_column(out, begin, count, t, k, marginal, WIDTH * k)


@part
def _forward(scores: ChainScores, places: int, length: int, table: FloatArray,
             rooms: LaneRooms) -> None:  # fmt: skip
    """Scaled forward recurrence."""
    size, node, alpha, norm = scores.unary.shape[1], rooms.node, rooms.alpha, rooms.norm
    least = fill(1.0)
    for t in range(length):
        _load(scores.unary, t, places, rooms)
        if t == 0:
            first_step(places, node, alpha, norm)
        else:
            next_step(size, places, t, table, node, alpha, norm)
        for k in range(size):
            least = smaller(least, load_at(alpha, WIDTH * (places * t + k)))
        store_at(fill(0.0), rooms.ending, WIDTH * t)
    store_at(least, rooms.least, 0)


@part
def _backward(places: int, length: int, size: int, table: FloatArray,
              rooms: LaneRooms, out: FloatArray) -> None:  # fmt: skip
    """Scaled backward recurrence, and what is expected."""
    node, block = rooms.node, max(BLOCK // places, 1)
    for k in range(places):
        store_at(fill(0.0), node, WIDTH * (places * length + k))
    for t in range(length - 1, -1, -1):
        step_back(size, places, t, table, rooms)
        _store(t, rooms, out)
        if t % block == 0:
            add_flow(max(t, 1), min(t + block, length), places, rooms.alpha, node, rooms.flow)


@kernel
def lanes_sum(
    scores: ChainScores,  # with one table
    tables: LaneTables,
    weight: FloatArray,  # (S,)
    rooms: LaneRooms,
    out: ChainSums,  # the expected transitions are divided by factor
) -> None:
    """Sum sequences as `chain_sum` does, eight by eight.

    Only where the status comes out OK: those are left that are far longer than others, and those
    in which a probability vanishes.
    """
    n, size, places = 0, scores.unary.shape[1], n_places(rooms)
    offsets, order, flow = scores.offsets, rooms.order, rooms.flow
    lanes_order(offsets, rooms.places, order)
    for place in range(0, flow.shape[0], WIDTH):
        store_at(fill(0.0), flow, place)
    while n < order.shape[0]:
        tokens, length = take_lanes(offsets, n, order, rooms.begin, rooms.size)
        if tokens + LACKING < FILLED * length or length == 0:
            out.status[order[n]] = UNDERFLOW if length else OK
            n += 1
            continue
        _forward(scores, places, length, tables.forward, rooms)
        for b in range(rooms.size.shape[0]):
            if rooms.size[b]:
                end_lane(order[n + b], b, length, tables.shift[0], weight, rooms, out)
            elif n + b < order.shape[0]:
                out.status[order[n + b]] = OK
        _backward(places, length, size, tables.backward, rooms, out.marginals)
        n += WIDTH
    for i in range(size):
        for j in range(size):
            out.flow[0, i, j] += total(load_at(flow, WIDTH * (places * i + j)))
