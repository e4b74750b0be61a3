"""Undirected graphs, and the independences that they state."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from itertools import chain, combinations
from typing import NamedTuple

Nodes = tuple[Hashable, ...]


class Independence(NamedTuple):
    """The statement that two sets of variables are independent, given a third."""

    left: Nodes
    right: Nodes
    given: Nodes


class Graph:
    """An undirected graph without loops.

    Parameters
    ----------
    edges : iterable of pairs of nodes
        What is hashable can be a node.
    nodes : iterable, optional
        Nodes that come first in the order, also such that have no edge.

    Attributes
    ----------
    nodes : tuple
        All nodes; answers come in this order.

    Examples
    --------
    >>> from crfkit.graphs import Graph
    >>> square = Graph([("a", "b"), ("b", "c"), ("c", "d"), ("d", "a")])
    >>> square.neighbors("a")
    ('b', 'd')
    >>> square.separates(["b", "d"], ["a"], ["c"])
    True
    >>> square.cliques()
    [('a', 'b'), ('a', 'd'), ('b', 'c'), ('c', 'd')]
    """

    def __init__(
        self, edges: Iterable[tuple[Hashable, Hashable]], nodes: Iterable[Hashable] = ()
    ) -> None:
        pairs = [(u, v) for u, v in edges]
        self.nodes: Nodes = tuple(dict.fromkeys(chain(nodes, chain.from_iterable(pairs))))
        self._near: dict[Hashable, set[Hashable]] = {node: set() for node in self.nodes}
        for u, v in pairs:
            if u == v:
                raise ValueError(f"an edge leads from {u!r} to itself.")
            self._near[u].add(v)
            self._near[v].add(u)

    @classmethod
    def of_cliques(
        cls, cliques: Iterable[Iterable[Hashable]], nodes: Iterable[Hashable] = ()
    ) -> Graph:
        """Return the graph in which the nodes of each set are neighbors."""
        sets = [tuple(clique) for clique in cliques]
        edges = chain.from_iterable(combinations(clique, 2) for clique in sets)
        return cls(edges, [*nodes, *chain.from_iterable(sets)])

    @property
    def edges(self) -> list[tuple[Hashable, Hashable]]:
        """All pairs of neighbors."""
        return [(u, v) for u, v in combinations(self.nodes, 2) if v in self._near[u]]

    def neighbors(self, *nodes: Hashable) -> Nodes:
        """Return the neighbors of a node, its Markov blanket; of several, those outside."""
        found = set().union(*(self._near[node] for node in nodes)) - set(nodes)
        return self._in_order(found)

    def is_clique(self, nodes: Iterable[Hashable]) -> bool:
        """Whether each two of the nodes are neighbors."""
        return all(v in self._near[u] for u, v in combinations(nodes, 2))

    def cliques(self) -> list[Nodes]:
        """Return the largest cliques, those that are part of no other (Bron and Kerbosch 1973)."""
        found: list[Nodes] = []
        todo: list[tuple[set[Hashable], set[Hashable], set[Hashable]]]
        todo = [(set(), set(self.nodes), set())] if self.nodes else []
        while todo:
            clique, more, done = todo.pop()
            if not more | done:
                found.append(self._in_order(clique))
                continue
            pivot = max(more | done, key=lambda node: len(self._near[node] & more))
            for node in more - self._near[pivot]:
                near = self._near[node]
                todo.append((clique | {node}, more & near, done & near))
                more, done = more - {node}, done | {node}
        place = {node: i for i, node in enumerate(self.nodes)}
        return sorted(found, key=lambda clique: [place[node] for node in clique])

    def components(self, without: Iterable[Hashable] = ()) -> list[Nodes]:
        """Return the connected parts that are left when some nodes are taken out."""
        left, found = [node for node in self.nodes if node not in set(without)], []
        while left:
            part: set[Hashable] = set()
            todo = {left[0]}
            while todo:
                part |= todo
                todo = set().union(*(self._near[node] for node in todo)) & set(left) - part
            found.append(self._in_order(part))
            left = [node for node in left if node not in part]
        return found

    def separates(
        self, given: Iterable[Hashable], left: Iterable[Hashable], right: Iterable[Hashable]
    ) -> bool:
        """Whether each path between two sets of nodes leads through a third."""
        first, second = set(left), set(right)
        return not any(first & set(p) and second & set(p) for p in self.components(given))

    def pairwise_independences(self) -> Iterator[Independence]:
        """Yield the pairwise Markov property: two nodes without an edge, given all others."""
        for u, v in combinations(self.nodes, 2):
            if v not in self._near[u]:
                yield Independence((u,), (v,), self._in_order(set(self.nodes) - {u, v}))

    def local_independences(self) -> Iterator[Independence]:
        """Yield the local Markov property: each node and all others, given its neighbors."""
        for node in self.nodes:
            others = self._in_order(set(self.nodes) - self._near[node] - {node})
            if others:
                yield Independence((node,), others, self.neighbors(node))

    def global_independences(self) -> Iterator[Independence]:
        """Yield the global Markov property: what a set of nodes separates, given this set.

        Each part that is left by a set, and all other parts: this implies the independence of any
        two sets of nodes that are separated.
        """
        for size in range(len(self.nodes) - 1):
            for given in combinations(self.nodes, size):
                parts = self.components(given)
                for part in parts[: len(parts) if len(parts) > 2 else len(parts) - 1]:
                    yield Independence(
                        part, self._in_order(set(self.nodes) - {*part, *given}), given
                    )

    def _in_order(self, nodes: set[Hashable]) -> Nodes:
        return tuple(node for node in self.nodes if node in nodes)
