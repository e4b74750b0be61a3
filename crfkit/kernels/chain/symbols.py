"""Sums over eight chains side by side whose tokens are symbols: of equal ones, scores are equal.

As :mod:`crfkit.kernels.chain.interleaved`, but the exponentials of the scores are read from a table
with a row for each symbol, and marginals are added to such rows: tokens have no scores of their
own, nor marginals.
"""

from __future__ import annotations

from typing import NamedTuple

from crfkit._types import FloatArray, IdArray, IntArray
from crfkit.compiler.jit import kernel, part
from crfkit.compiler.simd import WIDTH, fill, load_at, smaller, store_at, total
from crfkit.kernels.chain.arrays import ChainSums
from crfkit.kernels.chain.interleaved import (
    BLOCK,
    FILLED,
    LACKING,
    LaneRooms,
    LaneTables,
    add_flow,
    end_lane,
    first_step,
    lanes_order,
    n_places,
    next_step,
    step_back,
    take_lanes,
)
from crfkit.kernels.chain.sum import OK, UNDERFLOW


class SymbolScores(NamedTuple):
    """Sequences of symbols, and exponentials of the scores of ``U`` symbols. Read-only."""

    offsets: IntArray  # (S + 1,) where the sequences start, and the end
    symbol: IdArray  # (N,)
    node: FloatArray  # (U, K) exp(score - shift)
    shift: FloatArray  # (U,) the largest score of each symbol
    start: FloatArray  # (K,) exponentials of the scores of first labels
    end: FloatArray  # (K,) of last labels


class EndCounts(NamedTuple):
    """Expected labels, which the kernel adds to."""

    start: FloatArray  # (K,) first ones
    end: FloatArray  # (K,) last ones


@part
def _lay(scores: SymbolScores, b: int, t: int, first: int, rooms: LaneRooms) -> None:
    """Lay the exponentials of a token in a lane; of none, those of scores of 0."""
    node, size, place = rooms.node, scores.node.shape[1], first + b
    if t >= rooms.size[b]:
        rooms.shift[WIDTH * t + b] = 0.0
        for k in range(size):
            node[place + WIDTH * k] = 1.0
        return
    symbol = scores.symbol[rooms.begin[b] + t]
    rooms.shift[WIDTH * t + b] = scores.shift[symbol]
    for k in range(size):
        node[place + WIDTH * k] = scores.node[symbol, k]
    if t == 0:
        for k in range(size):
            node[place + WIDTH * k] *= scores.start[k]
    if t == rooms.size[b] - 1:
        for k in range(size):
            node[place + WIDTH * k] *= scores.end[k]


@part
def _forward(scores: SymbolScores, places: int, length: int, table: FloatArray,
             rooms: LaneRooms) -> None:  # fmt: skip
    """Scaled forward recurrence."""
    size, node, alpha, norm = scores.node.shape[1], rooms.node, rooms.alpha, rooms.norm
    least = fill(1.0)
    for t in range(length):
        first = WIDTH * places * t
        for b in range(rooms.size.shape[0]):
            _lay(scores, b, t, first, rooms)
        for k in range(size, places):
            store_at(fill(0.0), node, first + WIDTH * k)
        if t == 0:
            first_step(places, node, alpha, norm)
        else:
            next_step(size, places, t, table, node, alpha, norm)
        for k in range(size):
            least = smaller(least, load_at(alpha, first + WIDTH * k))
        store_at(fill(0.0), rooms.ending, WIDTH * t)
    store_at(least, rooms.least, 0)


@part
def _add(scores: SymbolScores, t: int, rooms: LaneRooms, counts: FloatArray,
         ends: EndCounts) -> None:  # fmt: skip
    """Add the marginals of a token of each lane to those of its symbol."""
    marginal, size = rooms.marginal, scores.node.shape[1]
    for b in range(rooms.size.shape[0]):
        if t < rooms.size[b]:
            symbol = scores.symbol[rooms.begin[b] + t]
            for k in range(size):
                counts[symbol, k] += marginal[WIDTH * k + b]
            if t == 0:
                for k in range(size):
                    ends.start[k] += marginal[WIDTH * k + b]
            if t == rooms.size[b] - 1:
                for k in range(size):
                    ends.end[k] += marginal[WIDTH * k + b]


@part
def _backward(scores: SymbolScores, places: int, length: int, table: FloatArray,
              rooms: LaneRooms, out: ChainSums, ends: EndCounts) -> None:  # fmt: skip
    """Scaled backward recurrence, and what is expected."""
    node, block, size = rooms.node, max(BLOCK // places, 1), scores.node.shape[1]
    for k in range(places):
        store_at(fill(0.0), node, WIDTH * (places * length + k))
    for t in range(length - 1, -1, -1):
        step_back(size, places, t, table, rooms)
        _add(scores, t, rooms, out.marginals, ends)
        if t % block == 0:
            add_flow(max(t, 1), min(t + block, length), places, rooms.alpha, node, rooms.flow)


@kernel
def lanes_sum_symbols(
    scores: SymbolScores,
    tables: LaneTables,
    weight: FloatArray,  # (S,)
    rooms: LaneRooms,
    out: ChainSums,  # the marginals are of symbols, (U, K), and added to; flow as in `chain_sum`
    ends: EndCounts,
) -> None:
    """Sum sequences of symbols as `lanes_sum` does, eight by eight.

    Those whose status comes out as UNDERFLOW are left, and count for nothing.
    """
    n, size, places = 0, scores.node.shape[1], n_places(rooms)
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
        _backward(scores, places, length, tables.backward, rooms, out, ends)
        n += WIDTH
    for i in range(size):
        for j in range(size):
            out.flow[0, i, j] += total(load_at(flow, WIDTH * (places * i + j)))
