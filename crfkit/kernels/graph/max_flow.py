"""Maximum flow, by two trees that grow until they meet (Boykov and Kolmogorov 2004).

One tree grows from the source along arcs with capacity left, one from the sink against them. Where
they touch there is a path, which takes as much flow as it can; nodes whose arc to their parent is
then full, or that have no capacity at their terminal any more, are orphans, which look for other
parents in their tree or are free again. The trees are kept, so that short paths are found soon, and
on grids of images this is faster than methods with better bounds.

Capacities are floating-point numbers, and may be infinite: an arc that fills up has exactly 0 left.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from crfkit._types import ByteArray, CodeArray, FloatArray, IntArray
from crfkit.compiler.jit import kernel, part

NO_PARENT, TERMINAL, ORPHAN = -1, -2, -3
FREE, SOURCE, SINK = 0, 1, 2


class Network(NamedTuple):
    """Nodes with a capacity from the source or to the sink, arcs in both directions of pairs."""

    start: CodeArray  # (N + 1,) where the arcs that leave each node start, and the end
    head: CodeArray  # (A,) the node that an arc leads to
    reverse: CodeArray  # (A,) the arc in the other direction
    capacity: FloatArray  # (A,) what is left of it, not negative, inf possible
    excess: FloatArray  # (N,) what is left from the source; less than 0 to the sink


class Trees(NamedTuple):
    """The search trees and what waits."""

    side: ByteArray  # (N,) the tree of a node, or free
    parent: CodeArray  # (N,) the arc from a node to its parent
    stamp: CodeArray  # (N,) when its distance was found
    distance: CodeArray  # (N,) to its terminal
    queue: CodeArray  # (N,) a ring of nodes that may grow
    queued: ByteArray  # (N,) which are in it
    orphans: CodeArray  # (N,)
    state: IntArray  # (4,) first and number of the queue, number of orphans, time


@kernel
def link_nodes(sources: IntArray, targets: IntArray, net: Network, arcs: CodeArray) -> None:
    """Lay out two arcs for each pair of nodes; `arcs` gets the place of that from its source."""
    for i in range(len(net.start)):
        net.start[i] = 0
    for e in range(len(sources)):
        net.start[sources[e]] += 1
        net.start[targets[e]] += 1
    total = 0
    for i in range(len(net.start)):
        total += net.start[i]
        net.start[i] = total
    for e in range(len(sources) - 1, -1, -1):
        i, j = sources[e], targets[e]
        net.start[i] -= 1
        net.start[j] -= 1
        a, b = net.start[i], net.start[j]
        net.head[a], net.head[b] = j, i
        net.reverse[a], net.reverse[b] = b, a
        arcs[e] = a


@part
def _await(trees: Trees, i: int) -> None:
    """Put a node into the queue of those that may grow."""
    if trees.queued[i] == 0:
        trees.queued[i] = 1
        place = trees.state[0] + trees.state[1]
        if place >= len(trees.queue):
            place -= len(trees.queue)
        trees.queue[place] = i
        trees.state[1] += 1


@part
def _next(trees: Trees) -> int:
    """Take a node out of the queue; -1 where it is empty."""
    while trees.state[1] > 0:
        i = int(trees.queue[trees.state[0]])
        trees.state[0] += 1
        if trees.state[0] == len(trees.queue):
            trees.state[0] = 0
        trees.state[1] -= 1
        trees.queued[i] = 0
        if trees.side[i] != FREE:
            return i
    return -1


@part
def _plant(net: Network, trees: Trees, first: int, last: int) -> None:
    """Start the trees with the nodes that have capacity at a terminal."""
    trees.state[0] = trees.state[1] = trees.state[2] = trees.state[3] = 0
    for i in range(first, last):
        trees.queued[i] = 0
        trees.stamp[i] = 0
        trees.distance[i] = 1
        trees.side[i] = FREE
        trees.parent[i] = NO_PARENT
        if net.excess[i] != 0.0:
            trees.side[i] = SOURCE if net.excess[i] > 0.0 else SINK
            trees.parent[i] = TERMINAL
            _await(trees, i)


@part
def _left(net: Network, a: int, side: int) -> float:
    """Return what is left of the capacity in the direction that a tree grows along an arc."""
    return float(net.capacity[a] if side == SOURCE else net.capacity[net.reverse[a]])


@part
def _grow(net: Network, trees: Trees, i: int, a: int) -> int:
    """Add free neighbors of a node from an arc on; returns the arc to the other tree, or the end.

    A neighbor that is farther from its terminal than by this node becomes its child.
    """
    side = int(trees.side[i])
    end = int(net.start[i + 1])
    while a < end:
        if _left(net, a, side) > 0.0:
            j = net.head[a]
            if trees.side[j] == FREE:
                trees.side[j] = side
                trees.parent[j] = net.reverse[a]
                trees.stamp[j] = trees.stamp[i]
                trees.distance[j] = trees.distance[i] + 1
                _await(trees, j)
            elif trees.side[j] != side:
                return a
            elif trees.stamp[j] <= trees.stamp[i] and trees.distance[j] > trees.distance[i]:
                trees.parent[j] = net.reverse[a]
                trees.stamp[j] = trees.stamp[i]
                trees.distance[j] = trees.distance[i] + 1
        a += 1
    return a


@part
def _narrowest(net: Network, trees: Trees, i: int, least: float) -> float:
    """Return the least capacity on the way from a node to its terminal, and `least`."""
    side = int(trees.side[i])
    while trees.parent[i] != TERMINAL:
        a = trees.parent[i]
        least = min(least, net.capacity[net.reverse[a]] if side == SOURCE else net.capacity[a])
        i = net.head[a]
    return float(min(least, abs(net.excess[i])))


@part
def _fill(net: Network, trees: Trees, i: int, flow: float) -> None:
    """Send flow between a node and its terminal; what is full has its nodes become orphans."""
    side = int(trees.side[i])
    while trees.parent[i] != TERMINAL:
        back = int(trees.parent[i])
        forth = int(net.reverse[back])
        if side == SINK:
            back, forth = forth, back
        net.capacity[back] += flow
        net.capacity[forth] -= flow
        a = trees.parent[i]
        if net.capacity[forth] == 0.0:
            _leave(trees, i)
        i = net.head[a]
    net.excess[i] += flow if side == SINK else -flow
    if net.excess[i] == 0.0:
        _leave(trees, i)


@part
def _leave(trees: Trees, i: int) -> None:
    """Make a node an orphan."""
    trees.parent[i] = ORPHAN
    trees.orphans[trees.state[2]] = i
    trees.state[2] += 1


@part
def _distance(net: Network, trees: Trees, i: int) -> int:
    """Return how far a node is from its terminal, -1 where there is an orphan on the way."""
    now = trees.state[3]
    j, steps = i, 0
    while trees.stamp[j] != now:
        above = trees.parent[j]
        steps += 1
        if above == TERMINAL:
            trees.stamp[j] = now
            trees.distance[j] = 1
            break
        if above < 0:
            return -1
        j = int(net.head[above])
    else:
        steps += trees.distance[j]
    return steps


@part
def _mark(net: Network, trees: Trees, i: int, distance: int) -> None:
    """Keep the distances of the nodes on the way from a node to its terminal."""
    now = trees.state[3]
    while trees.stamp[i] != now:
        trees.stamp[i] = now
        trees.distance[i] = distance
        distance -= 1
        i = net.head[trees.parent[i]]


@part
def _adopt(net: Network, trees: Trees, i: int) -> None:
    """Find the parent of an orphan that is nearest to its terminal, or free it and its children."""
    side = int(trees.side[i])
    nearest, found = 0, -1
    for a in range(net.start[i], net.start[i + 1]):
        j = net.head[a]
        if trees.side[j] == side and _left(net, net.reverse[a], side) > 0.0:
            distance = _distance(net, trees, j)
            if distance > 0:
                _mark(net, trees, j, distance)
                if found < 0 or distance < nearest:
                    nearest, found = distance, a
                    if nearest == 1:
                        break
    if found >= 0:
        trees.parent[i] = found
        trees.stamp[i] = trees.state[3]
        trees.distance[i] = nearest + 1
        return
    for a in range(net.start[i], net.start[i + 1]):
        j = net.head[a]
        if trees.side[j] == side:
            if _left(net, net.reverse[a], side) > 0.0:
                _await(trees, j)
            if trees.parent[j] == net.reverse[a]:
                _leave(trees, j)
    trees.side[i] = FREE
    trees.parent[i] = NO_PARENT


@part
def _augment(net: Network, trees: Trees, a: int) -> float:
    """Send flow along an arc between the trees, and mend these; returns how much."""
    if trees.side[net.head[a]] == SOURCE:
        a = int(net.reverse[a])
    i, j = int(net.head[net.reverse[a]]), int(net.head[a])
    flow = _narrowest(net, trees, i, net.capacity[a])
    flow = _narrowest(net, trees, j, flow)
    if flow == math.inf:
        return flow
    net.capacity[a] -= flow
    net.capacity[net.reverse[a]] += flow
    _fill(net, trees, i, flow)
    _fill(net, trees, j, flow)
    trees.state[3] += 1
    n = 0
    while n < trees.state[2]:
        _adopt(net, trees, int(trees.orphans[n]))
        n += 1
    trees.state[2] = 0
    return flow


@part
def flow_through(net: Network, trees: Trees, first: int, last: int) -> float:
    """Find the maximum flow through a range of nodes; inf where no cut is finite.

    The tree of the sink is then one side of a minimum cut.
    """
    _plant(net, trees, first, last)
    total = 0.0
    i = _next(trees)
    while i >= 0:
        side = trees.side[i]
        a = int(net.start[i])
        while trees.side[i] == side:
            a = _grow(net, trees, i, a)
            if a == net.start[i + 1]:
                break
            total += _augment(net, trees, a)
            if total == math.inf:
                return total
        i = _next(trees)
    return total
