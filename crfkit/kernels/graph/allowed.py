"""Values of all variables that no factor forbids, by search with arc consistency.

A state is alive while each factor of its variable has an entry above -inf with it and with states
of the other variables that are alive (Mackworth 1977, on tables). Variables get their values in
turn; what a value kills is undone where it leads nowhere.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from crfkit._types import BoolArray, FloatArray, IntArray
from crfkit.compiler.jit import kernel, part
from crfkit.kernels.graph.arrays import FactorTables
from crfkit.kernels.graph.links import Links

FOUND, NONE_ALLOWED, GIVEN_UP = 0, 1, 2


class Search(NamedTuple):
    """What a search writes."""

    alive: BoolArray  # (state_ptr[-1],)
    killed: IntArray  # (state_ptr[-1],) states in the order in which they were killed
    level: IntArray  # (V,) how many states were dead before each variable got its value
    tried: IntArray  # (V,) the state that each variable has got
    queue: IntArray  # (F,) factors to be checked, a ring for each graph
    waits: BoolArray  # (F,) whether a factor is in the queue
    supported: BoolArray  # (largest sum of states of a factor,)
    marks: IntArray  # (3,) states that are dead; first place of the queue, and its length


@part
def _kill(graph: FactorTables, links: Links, work: Search, s: int, v: int, x: int) -> None:
    """Kill a state, and let the factors of its variable wait."""
    begin, count = graph.factor_ptr[s], graph.factor_ptr[s + 1] - graph.factor_ptr[s]
    work.alive[x] = False
    work.killed[work.marks[0]] = x
    work.marks[0] += 1
    for i in range(links.places_ptr[v], links.places_ptr[v + 1]):
        f = links.factor[links.places[i]]
        if not work.waits[f]:
            work.waits[f] = True
            work.queue[begin + (work.marks[1] + work.marks[2]) % count] = f
            work.marks[2] += 1


@part
def _find_supported(graph: FactorTables, links: Links, work: Search, f: int) -> None:
    """Mark the states of the variables of a factor that an entry allows."""
    first, last, start = graph.scope_ptr[f], graph.scope_ptr[f + 1], 0
    for a in range(first, last):
        start += graph.sizes[graph.scope[a]]
    for i in range(start):
        work.supported[i] = False
    for e in range(graph.score_ptr[f + 1] - graph.score_ptr[f]):
        good = graph.scores[graph.score_ptr[f] + e] > -math.inf
        for a in range(first, last if good else first):
            v = graph.scope[a]
            x = (e // links.stride[a]) % graph.sizes[v]
            good = good and work.alive[graph.state_ptr[v] + x]
        start = 0
        for a in range(first, last if good else first):
            size = graph.sizes[graph.scope[a]]
            work.supported[start + (e // links.stride[a]) % size] = True
            start += size


@kernel
def _prune(graph: FactorTables, links: Links, hard: BoolArray, work: Search, s: int) -> bool:
    """Kill what has no support; return whether each variable has a state that is alive."""
    begin, count = graph.factor_ptr[s], graph.factor_ptr[s + 1] - graph.factor_ptr[s]
    some = True
    while work.marks[2] > 0:
        f = work.queue[begin + work.marks[1]]
        work.marks[1], work.marks[2] = (work.marks[1] + 1) % count, work.marks[2] - 1
        work.waits[f] = False
        if not hard[f] or not some:
            continue
        _find_supported(graph, links, work, f)
        start = 0
        for a in range(graph.scope_ptr[f], graph.scope_ptr[f + 1]):
            v, lives = graph.scope[a], False
            for x in range(graph.sizes[v]):
                place = graph.state_ptr[v] + x
                if work.alive[place] and not work.supported[start + x]:
                    _kill(graph, links, work, s, v, place)
                lives = lives or work.alive[place]
            start += graph.sizes[v]
            some = some and lives
    return some


@part
def _best_state(graph: FactorTables, prefer: FloatArray, work: Search, v: int) -> int:
    """Return the state of a variable that is alive and preferred, -1 if none is alive."""
    best = -1
    for x in range(graph.state_ptr[v], graph.state_ptr[v + 1]):
        if work.alive[x] and (best < 0 or prefer[x] > prefer[best]):
            best = x
    return best


@part
def _search(
    graph: FactorTables, links: Links, hard: BoolArray, prefer: FloatArray, work: Search, s: int,
    most: int,
) -> int:  # fmt: skip
    """Let the variables of a graph have values that go together; return how it went."""
    begin, end, failures, n = graph.variable_ptr[s], graph.variable_ptr[s + 1], 0, 0
    fits = _prune(graph, links, hard, work, s)
    while True:
        while not fits:  # the last value that was chosen is none
            if n == 0:
                return NONE_ALLOWED
            if failures == most:
                return GIVEN_UP
            failures, n = failures + 1, n - 1
            v = links.order[begin + n]
            while work.marks[0] > work.level[begin + n]:
                work.marks[0] -= 1
                work.alive[work.killed[work.marks[0]]] = True
            _kill(graph, links, work, s, v, work.tried[v])
            fits = _best_state(graph, prefer, work, v) >= 0
            fits = _prune(graph, links, hard, work, s) and fits
        if n == end - begin:
            return FOUND
        v = links.order[begin + n]
        work.level[begin + n], work.tried[v] = work.marks[0], _best_state(graph, prefer, work, v)
        for x in range(graph.state_ptr[v], graph.state_ptr[v + 1]):
            if x != work.tried[v] and work.alive[x]:
                _kill(graph, links, work, s, v, x)
        fits = _prune(graph, links, hard, work, s)
        n += 1


@kernel
def find_allowed(
    graph: FactorTables,
    links: Links,
    hard: BoolArray,  # (F,) whether a factor forbids anything
    prefer: FloatArray,  # (state_ptr[-1],) states with larger numbers are tried first
    most: int,  # of values that lead nowhere
    work: Search,
    values: IntArray,  # out (V,)
    status: IntArray,  # out (S,)
) -> None:
    """Find values of all variables that no factor forbids, for each graph."""
    for s in range(status.shape[0]):
        work.marks[0], work.marks[1], work.marks[2] = 0, 0, 0
        for f in range(graph.factor_ptr[s], graph.factor_ptr[s + 1]):
            work.queue[f], work.waits[f] = f, True
            work.marks[2] += 1
        for x in range(
            graph.state_ptr[graph.variable_ptr[s]], graph.state_ptr[graph.variable_ptr[s + 1]]
        ):
            work.alive[x] = True
        status[s] = _search(graph, links, hard, prefer, work, s, most)
        for f in range(graph.factor_ptr[s], graph.factor_ptr[s + 1]):
            if graph.scope_ptr[f] == graph.scope_ptr[f + 1]:  # a constant
                if graph.scores[graph.score_ptr[f]] == -math.inf:
                    status[s] = NONE_ALLOWED
        for v in range(graph.variable_ptr[s], graph.variable_ptr[s + 1]):
            values[v] = work.tried[v] - graph.state_ptr[v] if status[s] == FOUND else 0
