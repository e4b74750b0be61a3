"""Which factors a variable has, and an order in which a forest needs two sweeps."""

from __future__ import annotations

from typing import NamedTuple

from crfkit._types import BoolArray, FloatArray, IntArray
from crfkit.compiler.jit import kernel
from crfkit.kernels.graph.arrays import FactorTables


class Links(NamedTuple):
    """The A places of variables in factors, seen from both ends. Read-only.

    The place ``a`` is that of the variable ``scope[a]`` in the factor ``factor[a]``.
    """

    factor: IntArray  # (A,)
    stride: IntArray  # (A,) entries of the table between two states of the variable
    places: IntArray  # (A,) those of each variable in turn
    places_ptr: IntArray  # (V + 1,) where those of each variable start, and the end
    message_ptr: IntArray  # (A + 1,) where the states of the variable of each place start
    order: IntArray  # (V,) the variables of each graph, breadth first
    is_forest: BoolArray  # (S,) whether its factors and variables make no cycle
    weight: FloatArray  # (F,) of the entropy of each factor


@kernel
def breadth_first(
    graph: FactorTables,
    factor: IntArray,
    places: IntArray,
    places_ptr: IntArray,
    order: IntArray,  # out (V,)
    seen_variable: BoolArray,  # (V,) all False
    seen_factor: BoolArray,  # (F,) all False
    is_forest: BoolArray,  # out (S,)
) -> None:
    """Order the variables of each graph breadth first, and find out whether it has cycles."""
    for s in range(is_forest.shape[0]):
        begin, end = graph.variable_ptr[s], graph.variable_ptr[s + 1]
        last, trees, factors, links = begin, 0, 0, 0
        for root in range(begin, end):
            if seen_variable[root]:
                continue
            seen_variable[root] = True
            first, trees = last, trees + 1
            order[last] = root
            last += 1
            while first < last:
                v = order[first]
                first += 1
                for i in range(places_ptr[v], places_ptr[v + 1]):
                    f = factor[places[i]]
                    if seen_factor[f]:
                        continue
                    seen_factor[f] = True
                    factors += 1
                    links += graph.scope_ptr[f + 1] - graph.scope_ptr[f]
                    for a in range(graph.scope_ptr[f], graph.scope_ptr[f + 1]):
                        w = graph.scope[a]
                        if not seen_variable[w]:
                            seen_variable[w] = True
                            order[last] = w
                            last += 1
        is_forest[s] = links == end - begin + factors - trees


@kernel
def grow_forests(
    graph: FactorTables,
    chosen: IntArray,  # (n,) factors, those that come first are taken first
    parent: IntArray,  # (V,) workspace
    taken: BoolArray,  # out (F,) whether a factor is part of the forest
) -> None:
    """Take each factor that makes no cycle with those before it (Kruskal 1956)."""
    for v in range(parent.shape[0]):
        parent[v] = v
    for f in range(taken.shape[0]):
        taken[f] = False
    for i in range(chosen.shape[0]):
        f = chosen[i]
        begin, end = graph.scope_ptr[f], graph.scope_ptr[f + 1]
        joins = True
        for a in range(begin, end):
            root = _root(parent, graph.scope[a])
            for b in range(begin, a):
                joins = joins and _root(parent, graph.scope[b]) != root
        taken[f] = joins
        for a in range(begin + 1, end if joins else begin):
            parent[_root(parent, graph.scope[a])] = _root(parent, graph.scope[begin])


@kernel
def _root(parent: IntArray, v: int) -> int:
    """Return what stands for the part that a variable is in; paths are halved on the way."""
    while parent[v] != v:
        parent[v] = parent[parent[v]]
        v = parent[v]
    return v
