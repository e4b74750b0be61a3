"""Orders in which the variables of a graph are eliminated, and the cliques that this makes.

A variable that is eliminated leaves its neighbors joined to one another: it and they are a clique,
and the largest table of a junction tree is that of the largest clique. Leaves are taken first, so
that a forest costs linear time and has cliques of two; in what is left then, several orders are
tried, greedy ones (Rose 1973; Kjaerulff 1990) and from one end to the other, of which the one with
the fewest entries is taken.
"""

from __future__ import annotations

import heapq
import math
import random
from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

# Orders with random ties are tried where the best of the others has a table that is so large.
LARGE_BITS = 12.0
TRIES = 12
MOST_TRIED = 1000  # in graphs of so many variables
# Fill is counted in graphs that have at most so many variables left.
MOST_FILLED = 3000
# No order is followed beyond a table of so many bits, which no memory holds.
HOPELESS_BITS = 100.0

Neighbors = list[set[int]]
Key = Callable[[int], float]


class Elimination(NamedTuple):
    """Variables in the order of their elimination, each with its neighbors at that time."""

    order: list[int]  # not to its end where a table has more than `HOPELESS_BITS`
    neighbors: list[list[int]]
    bits: float  # log2 of the entries of the largest table
    entries: float  # of all tables


def eliminate(
    sizes: Sequence[int], scopes: Sequence[Sequence[int]], most_bits: float = math.inf
) -> Elimination:
    """Return a cheap order of the variables that have more than one state.

    Parameters
    ----------
    sizes : sequence of V ints
        How many states each variable has.
    scopes : sequence of sequences of ints
        Sets of variables each two of which are neighbors.
    most_bits : float, default=inf
        log2 of the entries that a table may have: orders that keep to it go first.
    """
    near: Neighbors = [set() for _ in sizes]
    for scope in scopes:
        kept = [v for v in scope if sizes[v] > 1]
        for v in kept if len(kept) > 1 else ():
            near[v].update(kept)
    for v, own in enumerate(near):
        own.discard(v)
    logs = [math.log2(size) for size in sizes]
    leaves = _peeled([v for v, size in enumerate(sizes) if size > 1], near, logs)
    core = [v for v, own in enumerate(near) if own]
    if not core:
        return leaves
    tried = _tried(core, near, logs)
    best = min(tried, key=lambda found: (max(found.bits, most_bits), found.entries))
    return Elimination(
        leaves.order + best.order, leaves.neighbors + best.neighbors,
        max(leaves.bits, best.bits), leaves.entries + best.entries,
    )  # fmt: skip


def _elimination(order: list[int], neighbors: list[list[int]], logs: list[float]) -> Elimination:
    bits = [logs[v] + sum(logs[u] for u in own) for v, own in zip(order, neighbors, strict=True)]
    entries = sum(2.0 ** min(each, 1000.0) for each in bits)
    return Elimination(order, neighbors, max(bits, default=0.0), entries)


def _peeled(left: list[int], near: Neighbors, logs: list[float]) -> Elimination:
    """Take out variables that have one neighbor, or none, from `near` too."""
    order: list[int] = []
    neighbors: list[list[int]] = []
    done = [False] * len(near)
    todo = [v for v in left if len(near[v]) < 2]
    todo.reverse()
    while todo:
        v = todo.pop()
        if done[v]:
            continue
        done[v] = True
        order.append(v)
        neighbors.append(list(near[v]))
        for u in near[v]:
            near[u].discard(v)
            if len(near[u]) < 2:
                todo.append(u)
        near[v] = set()
    return _elimination(order, neighbors, logs)


def _tried(core: list[int], near: Neighbors, logs: list[float]) -> list[Elimination]:
    """Return what several orders make of a graph without leaves."""

    def by_degree(own: Neighbors) -> Key:
        return lambda v: len(own[v])

    def by_weight(own: Neighbors) -> Key:
        return lambda v: logs[v] + sum(logs[u] for u in own[v])

    found = [_greedy(core, near, logs, by_degree)]
    same = len({logs[v] for v in core}) == 1
    # What has a cycle has cliques of three.
    if found[0].bits > HOPELESS_BITS or (same and found[0].bits < 3.5 * logs[core[0]]):
        return found
    for place in (dict(zip(core, core, strict=True)), _along(core, near)):
        found.append(_greedy(core, near, logs, partial(_in_turn, place)))
    if not same:
        found.append(_greedy(core, near, logs, by_weight))
    if len(core) <= MOST_FILLED:
        found.append(_min_fill(core, near, logs, None))
        if found[-1].bits > LARGE_BITS and len(core) <= MOST_TRIED:
            ties = random.Random(0)
            found += [_min_fill(core, near, logs, ties) for _ in range(TRIES)]
    return found


def _in_turn(place: dict[int, int], own: Neighbors) -> Key:
    return place.__getitem__


def _along(core: list[int], near: Neighbors) -> dict[int, int]:
    """Return places of variables such that neighbors are not far apart (Cuthill and McKee 1969)."""
    place = {v: i for i, v in enumerate(core)}
    ends = [(place[v], place[u]) for v in core for u in near[v]]
    rows, columns = np.array(ends, np.int64).T
    graph = sp.csr_matrix((np.ones(len(ends)), (rows, columns)), shape=(len(core), len(core)))
    order = sp.csgraph.reverse_cuthill_mckee(graph, symmetric_mode=True)
    return {core[v]: i for i, v in enumerate(order.tolist())}


def _greedy(
    core: list[int], near: Neighbors, logs: list[float], key_of: Callable[[Neighbors], Key]
) -> Elimination:
    """Eliminate the variable with the least key first, the lowest of equal ones."""
    own = [set(each) for each in near]
    key = key_of(own)
    heap = [(key(v), v) for v in core]
    heapq.heapify(heap)
    current = {v: least for least, v in heap}
    order: list[int] = []
    neighbors: list[list[int]] = []
    while heap:
        least, v = heapq.heappop(heap)
        if current.get(v) != least:
            continue
        del current[v]
        order.append(v)
        neighbors.append(sorted(own[v]))
        if logs[v] + sum(logs[u] for u in own[v]) > HOPELESS_BITS:
            break
        for u in neighbors[-1]:
            own[u] |= own[v]
            own[u] -= {u, v}
        for u in neighbors[-1]:
            current[u] = key(u)
            heapq.heappush(heap, (current[u], u))
    return _elimination(order, neighbors, logs)


def _min_fill(
    core: list[int], near: Neighbors, logs: list[float], ties: random.Random | None
) -> Elimination:
    """Eliminate the variable that joins the fewest pairs first, of equal ones the lightest."""
    own = [set(each) for each in near]

    def fill(v: int) -> int:
        return sum(len(own[v] - own[u]) - 1 for u in own[v]) // 2

    def entry(v: int) -> tuple[int, float, int]:
        weight = ties.random() if ties else logs[v] + sum(logs[u] for u in own[v])
        return missing[v], weight, v

    missing = {v: fill(v) for v in core}
    heap = [entry(v) for v in core]
    heapq.heapify(heap)
    order: list[int] = []
    neighbors: list[list[int]] = []
    while heap:
        least, _, v = heapq.heappop(heap)
        if missing.get(v) != least:
            continue
        del missing[v]
        order.append(v)
        neighbors.append(sorted(own[v]))
        for w in _join(v, own, missing):
            if w in missing:
                heapq.heappush(heap, entry(w))
        for u in neighbors[-1]:
            missing[u] = fill(u)
            heapq.heappush(heap, entry(u))
    return _elimination(order, neighbors, logs)


def _join(v: int, own: Neighbors, missing: dict[int, int]) -> set[int]:
    """Take a variable out and join its neighbors; returns others that miss fewer pairs now."""
    around = own[v]
    fewer: set[int] = set()
    for u in around:
        own[u].discard(v)
    for u in around:
        for w in around - own[u]:
            if u < w:
                for x in (own[u] & own[w]) - around:
                    missing[x] -= 1
                    fewer.add(x)
                own[u].add(w)
                own[w].add(u)
    return fewer
