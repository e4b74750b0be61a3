"""Factor graphs in which no factor has the variables of another one."""

from __future__ import annotations

import numpy as np

from crfkit._types import FloatArray, IntArray
from crfkit.compiler.jit import frozen
from crfkit.graphs.tables import starts
from crfkit.kernels.graph.arrays import FactorTables


class Merging:
    """Adds factors of two variables or more to others that have all of their variables.

    Parameters
    ----------
    graph : FactorTables
        Its scores are not looked at.
    """

    def __init__(self, graph: FactorTables) -> None:
        self.merged = not _is_simple(graph)
        if not self.merged:
            return
        scopes = np.split(graph.scope, graph.scope_ptr[1:-1])
        home = _homes([scope.tolist() for scope in scopes])
        left = home == np.arange(len(home))
        number = np.cumsum(left) - 1
        self.score_ptr = starts(np.diff(graph.score_ptr)[left])
        self.scope_ptr = starts(np.diff(graph.scope_ptr)[left])
        self.scope = frozen(graph.scope[np.repeat(left, np.diff(graph.scope_ptr))])
        self.factor_ptr = frozen(starts(left)[graph.factor_ptr])
        source, target = [], []  # entries that are added up
        for f, h in enumerate(home.tolist()):
            own = _entries_of(scopes[f], scopes[h], graph.sizes)
            source.append(graph.score_ptr[f] + own)
            target.append(np.arange(len(own)) + self.score_ptr[number[h]])
        self._source, self._target = np.concatenate(source), np.concatenate(target)

    def merge(self, graph: FactorTables) -> FactorTables:
        """Return the graph of the factors that are left, with all scores."""
        if not self.merged:
            return graph
        scores = np.zeros(self.score_ptr[-1])
        np.add.at(scores, self._target, graph.scores[self._source])
        return graph._replace(
            scope=self.scope, scope_ptr=self.scope_ptr, scores=frozen(scores),
            score_ptr=self.score_ptr, factor_ptr=self.factor_ptr,
        )  # fmt: skip

    def split(self, beliefs: FloatArray, size: int) -> FloatArray:
        """Return the beliefs of all factors, of `size` entries, given those of factors left."""
        if not self.merged:
            return beliefs
        found = np.zeros(size)
        np.add.at(found, self._source, beliefs[self._target])
        return found


def _is_simple(graph: FactorTables) -> bool:
    """Whether factors have two variables at most, and no two factors the same two."""
    arity = np.diff(graph.scope_ptr)
    first = graph.scope_ptr[:-1][arity == 2]
    pairs = np.sort(graph.scope[first[:, None] + np.arange(2)], axis=1)
    return bool(arity.max(initial=0) <= 2) and len(np.unique(pairs, axis=0)) == len(pairs)


def _homes(scopes: list[list[int]]) -> IntArray:
    """Return to which factor each is added; itself, if it is left."""
    home = np.arange(len(scopes))
    most = max(map(len, scopes), default=0)
    first: dict[frozenset[int], int] = {}
    having: dict[int, list[int]] = {}  # factors of three variables or more
    for f, scope in enumerate(scopes):
        if len(scope) > 1:
            home[f] = first.setdefault(frozenset(scope), f)
        for v in scope if len(scope) > 2 else ():
            having.setdefault(v, []).append(f)
    for f in [f for f in range(len(scopes) if most > 2 else 0) if home[f] == f]:
        own = set(scopes[f])
        around = having.get(scopes[f][0], ()) if len(own) > 1 else ()
        larger = [g for g in around if len(scopes[g]) > len(own) and own < set(scopes[g])]
        home[f] = min(larger, key=lambda g: (-len(scopes[g]), g), default=f)
    return home[home]


def _entries_of(scope: IntArray, larger: IntArray, sizes: IntArray) -> IntArray:
    """Return the entry of a table that each entry of a larger one agrees with."""
    own = np.arange(np.prod(sizes[scope], dtype=np.int64)).reshape(sizes[scope])
    place = {int(v): i for i, v in enumerate(scope)}
    shape = [int(sizes[v]) if int(v) in place else 1 for v in larger]
    order = [place[int(v)] for v in larger if int(v) in place]
    return np.broadcast_to(own.transpose(order).reshape(shape), sizes[larger]).ravel()
