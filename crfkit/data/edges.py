"""Graphs over the tokens of sequences, and one graph as users give it."""

from __future__ import annotations

import copy
from collections.abc import Hashable, Iterable, Sequence
from typing import Any, ClassVar, NamedTuple, NoReturn, Self

import numpy as np
from numpy.typing import ArrayLike

from crfkit._params import refuse_mask
from crfkit._types import IntArray, ObjectArray, taken_rows
from crfkit.compiler.jit import protect
from crfkit.data.segments import check_offsets
from crfkit.data.topology import Topology
from crfkit.data.validation import token_place


class FeatureGraph(NamedTuple):
    """One graph: nodes with features, and edges between them, which may have features too.

    Attributes
    ----------
    nodes : array, sparse matrix, data frame of shape (T, D), or list of T dicts
        Features of the nodes.
    edges : array of int, shape (E, 2)
        The positions of the source and the target of each edge, counted from 0.
    edge_features : array, sparse matrix, data frame of shape (E, F), list of E dicts, or None
        Features of the edges.
    types : sequence of T hashable values, or None
        The type of each node: each has its own set of labels.

    Examples
    --------
    >>> import numpy as np
    >>> from crfkit.data import FeatureGraph
    >>> triangle = FeatureGraph(np.eye(3), [(0, 1), (1, 2), (2, 0)])
    >>> triangle.edge_features is None
    True
    """

    nodes: Any
    edges: Any
    edge_features: Any = None
    types: Any = None


class Edges(Topology):
    """The edges of a graph for each sequence, whose tokens are its nodes.

    A row of transitions is an edge, from its source to its target. There may be several edges
    between two nodes: their scores add up.

    Parameters
    ----------
    source, target : array of int, shape (E,)
        The positions of the ends of each edge within its graph; no edge leads to where it begins.
    offsets : array of int, shape (S + 1,)
        Where the nodes of each graph start, and the end.
    edge_offsets : array of int, shape (S + 1,)
        Where the edges of each graph start, and the end.
    types : array of int, shape (N,), optional
        The type of each node, by its place among `type_names`.
    type_names : sequence, optional
        The names of types, all different; 0, 1, 2 and so on if not given.

    Attributes
    ----------
    source, target, edge_offsets, types
        As given; `types` is None where nodes have none. Read-only.
    type_names : ndarray of objects, shape (n_types,)
        The names of types.

    Raises
    ------
    ValueError
        If an end of an edge is no node of its graph, or both are the same, or the numbers of
        edges or types do not fit: the message names the graph and the edge, or the node.

    Examples
    --------
    >>> from crfkit.data import Edges
    >>> edges = Edges([0, 1, 2], [1, 2, 0], offsets=[0, 3, 4], edge_offsets=[0, 3, 3])
    >>> edges.take([0]).ends[1].tolist()
    [1, 2, 0]
    """

    article: ClassVar[str] = ""
    row: ClassVar[str] = "edge"
    read_by: ClassVar[str] = "fit a GraphCRF, or "

    def __init__(
        self,
        source: ArrayLike,
        target: ArrayLike,
        offsets: ArrayLike,
        edge_offsets: ArrayLike,
        types: ArrayLike | None = None,
        type_names: Iterable[Hashable] | None = None,
    ) -> None:
        self.source, self.target = (_positions(ends) for ends in (source, target))
        self.offsets, self.edge_offsets = check_offsets(offsets), check_offsets(edge_offsets)
        self._check_edges()
        self.types: IntArray | None = None if types is None else _positions(types)
        self.type_names: ObjectArray = self._names(type_names)
        protect(self.__dict__)

    @classmethod
    def of_graphs(
        cls,
        edges: Iterable[Any],
        lengths: Sequence[int],
        types: Iterable[Sequence[Hashable] | None] | None = None,
    ) -> Self:
        """Return the edges of S graphs, given those of each one.

        Parameters
        ----------
        edges : iterable of arrays of shape (E_s, 2)
            The source and the target of each edge.
        lengths : sequence of int
            How many nodes each graph has.
        types : iterable of sequences, optional
            The type of each node, any hashable value; None for graphs whose nodes have none.

        Raises
        ------
        ValueError
            As for the class, or if edges are no pairs of whole numbers, or nodes of some graphs
            have types and those of others have none.
        """
        pairs = [_pairs(s, each) for s, each in enumerate(edges)]
        if len(pairs) != len(lengths):
            raise ValueError(f"edges of {len(pairs)} graphs, nodes of {len(lengths)}.")
        ends = np.concatenate([np.zeros((0, 2), np.int64), *pairs])
        starts = [np.cumsum([0, *sizes]) for sizes in (lengths, map(len, pairs))]
        given = [] if types is None else [_types(s, each) for s, each in enumerate(types)]
        if all(each is None for each in given):
            return cls(ends[:, 0], ends[:, 1], *starts)
        for s, (each, length) in enumerate(zip(given, lengths, strict=True)):
            if each is None or len(each) != length:
                count = "no" if each is None else len(each)
                raise ValueError(
                    f"graph {s}: {count} types for {length} nodes: give each node one, or none."
                )
        every = [one for each in given if each is not None for one in each]
        place = {name: i for i, name in enumerate(_sorted(set(every)))}
        codes = [place[one] for one in every]
        return cls(ends[:, 0], ends[:, 1], starts[0], starts[1], codes, place)

    def _check_edges(self) -> None:
        """Raise ValueError unless edges join two nodes of their graph."""
        count = len(self.source)
        if len(self.target) != count or self.edge_offsets[-1] != count:
            raise ValueError(
                f"{count} sources, {len(self.target)} targets, and edge_offsets that end at "
                f"{self.edge_offsets[-1]}: an edge has one of each."
            )
        if len(self.offsets) != len(self.edge_offsets):
            raise ValueError(
                f"nodes of {len(self.offsets) - 1} graphs, edges of {len(self.edge_offsets) - 1}."
            )
        size = np.repeat(np.diff(self.offsets), np.diff(self.edge_offsets))
        outside = [(ends < 0) | (ends >= size) for ends in (self.source, self.target)]
        bad = outside[0] | outside[1] | (self.source == self.target)
        if bad.any():
            e = int(np.argmax(bad))
            s = int(np.searchsorted(self.edge_offsets, e, side="right")) - 1
            raise ValueError(
                f"graph {s}, edge {e - self.edge_offsets[s]}: it leads from {self.source[e]} to "
                f"{self.target[e]}; both must be positions of the {size[e]} nodes, counted from 0, "
                "and not the same."
            )

    def _names(self, given: Iterable[Hashable] | None) -> ObjectArray:
        """Return the names of types; ValueError unless there is a type for each node, and name."""
        types, found = self.types, [] if given is None else list(given)
        if types is not None:
            if len(types) != self.offsets[-1]:
                raise ValueError(f"{len(types)} types for {self.offsets[-1]} nodes.")
            found = found or [*range(int(types.max(initial=-1)) + 1)]
            bad = (types < 0) | (types >= len(found))
            if bad.any():
                t = int(np.argmax(bad))
                raise ValueError(
                    f"{token_place(self.offsets, t)}: the type is {types[t]}; there are "
                    f"{len(found)} names of types."
                )
        if len(set(found)) != len(found) or (types is None and found):
            raise ValueError(f"{len(found)} names of types: give each type one of its own.")
        names = np.empty(len(found), object)
        names[:] = found
        return names

    @property
    def transition_offsets(self) -> IntArray:
        """Where the edges of each graph start."""
        return self.edge_offsets

    @property
    def ends(self) -> tuple[IntArray, IntArray]:
        """The source and the target of each edge, by their places in all graphs."""
        return ends_of(self.source, self.target, self.offsets, self.edge_offsets)

    @property
    def arrays(self) -> tuple[IntArray, IntArray, IntArray]:
        """The source and the target of each edge in its graph, and where those of a graph start."""
        return self.source, self.target, self.edge_offsets

    @property
    def parts(self) -> tuple[Any, ...]:
        """All arrays that it is made of."""
        types = () if self.types is None else (self.types, self.type_names)
        return (*self.arrays, self.offsets, *types)

    @property
    def before(self) -> NoReturn:
        """ValueError: nodes of graphs have no order."""
        raise ValueError(
            "X has graphs, in which no node stands before another, but the model, or init='counts',"
            " reads what stands before: fit a GraphCRF, start it from init='zeros', or give "
            "X.with_topology(None)."
        )

    @property
    def first_tokens(self) -> NoReturn:
        """ValueError: no node of a graph is the first."""
        raise ValueError(
            "X has graphs, in which no node is the first or the last: leave out what is said of "
            "the labels of first and last tokens."
        )

    last_tokens = first_tokens

    def take(self, sequences: IntArray) -> Self:
        """Return the edges of chosen graphs."""
        new = copy.copy(self)
        new.offsets, nodes = taken_rows(self.offsets, sequences)
        new.edge_offsets, rows = taken_rows(self.edge_offsets, sequences)
        new.source, new.target = self.source[rows], self.target[rows]
        new.types = None if self.types is None else self.types[nodes]
        protect(new.__dict__)
        return new

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Take a state; its arrays are read-only, as kernels do not check them again."""
        self.__dict__.update(state)
        protect(state)

    def _check_state(self) -> None:
        """Raise ValueError unless the restored arrays are those of graphs."""
        for name in ("source", "target", "offsets", "edge_offsets", "types"):
            array = self.__dict__.get(name)
            plain = isinstance(array, np.ndarray) and array.dtype == np.int64 and array.ndim == 1
            if not plain and not (name == "types" and array is None):
                raise ValueError(f"the {name} of edges is no array of int64")
        names = self.__dict__.get("type_names")
        if not isinstance(names, np.ndarray) or names.dtype != object or names.ndim != 1:
            raise ValueError("the names of types are no array of objects")
        Edges(*self.arrays[:2], self.offsets, self.edge_offsets, self.types, names)


_LEAVE_OUT = "Leave out the edges that are not there."


def ends_of(
    source: IntArray, target: IntArray, offsets: IntArray, edge_offsets: IntArray
) -> tuple[IntArray, IntArray]:
    """Return the ends of edges by their places in all graphs, given those in their own, (E,)."""
    begin = np.repeat(offsets[:-1], np.diff(edge_offsets))
    return source + begin, target + begin


def _positions(given: ArrayLike) -> IntArray:
    """Return positions, (n,); ValueError if they are no list of whole numbers."""
    refuse_mask(given, "a list of ends of edges or types of nodes", _LEAVE_OUT)
    array = np.asarray(given)
    if array.ndim != 1 or (array.size and array.dtype.kind not in "iu"):
        raise ValueError(
            f"ends of edges and types of nodes are lists of whole numbers, not an array of shape "
            f"{array.shape} of {array.dtype}."
        )
    return array.astype(np.int64)


def _pairs(s: int, edges: Any) -> IntArray:
    """Return the edges of a graph, (E, 2); ValueError if they are no pairs of whole numbers."""
    refuse_mask(edges, f"graph {s}: its array of edges", _LEAVE_OUT)
    array = np.asarray(edges)
    if not array.size:
        return np.zeros((0, 2), np.int64)
    if array.ndim != 2 or array.shape[1] != 2 or array.dtype.kind not in "iu":
        raise ValueError(
            f"graph {s}: its edges are an array of shape {array.shape} of {array.dtype}; give "
            "pairs of positions of nodes, shape (E, 2)."
        )
    return array.astype(np.int64)


def _types(s: int, types: Any) -> list[Hashable] | None:
    """Return the types of the nodes of a graph; TypeError if they are no values that compare."""
    if types is None:
        return None
    found = types.tolist() if isinstance(types, np.ndarray) else list(types)
    for t, one in enumerate(found):
        if not isinstance(one, Hashable):
            raise TypeError(
                f"graph {s}, node {t}: the type {one!r:.80} is not hashable; give a text or a "
                "number."
            )
    return found


def _sorted(names: set[Hashable]) -> list[Hashable]:
    """Return names in an order that does not depend on that in which they came."""
    try:
        return sorted(names)  # type: ignore[type-var]
    except TypeError:  # of several types
        return sorted(names, key=lambda name: (type(name).__name__, repr(name)))
