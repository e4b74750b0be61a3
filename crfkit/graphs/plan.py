"""Plans of junction trees: made once for all graphs of the same variables and scopes."""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from itertools import chain
from threading import Lock
from typing import Generic, NamedTuple, TypeVar

import numpy as np

from crfkit._types import IntArray
from crfkit.compiler.jit import frozen
from crfkit.graphs.elimination import HOPELESS_BITS, Elimination, eliminate
from crfkit.graphs.methods import BudgetError
from crfkit.graphs.tables import starts
from crfkit.kernels.graph.arrays import FactorTables
from crfkit.kernels.graph.junction_terms import JunctionTrees, JunctionWorkspace

# Runs of entries whose places are listed; those of more are sums of two lists.
LISTED = 256
# Terms of tables with more entries are multiplied in groups of at most so many.
GROUPED = 1 << 12
# Plans are kept while they have no more bytes than this.
KEPT_BYTES = 1 << 28

Loops = tuple[tuple[int, int], ...]
T = TypeVar("T")


class _Kept(Generic[T]):
    """What was made last, up to a number of bytes."""

    def __init__(self) -> None:
        self._found: OrderedDict[tuple[bytes | int, ...], tuple[T, int]] = OrderedDict()
        self._bytes, self._lock = 0, Lock()

    def get(self, key: tuple[bytes | int, ...], make: Callable[[], tuple[T, int]]) -> T:
        with self._lock:
            if key in self._found:
                self._found.move_to_end(key)
                return self._found[key][0]
        made, size = make()
        size += sum(len(part) for part in key if isinstance(part, bytes))
        with self._lock:
            if key not in self._found:
                self._found[key] = made, size
                self._bytes += size
            while self._bytes > KEPT_BYTES and len(self._found) > 1:
                self._bytes -= self._found.popitem(last=False)[1][1]
        return made


class Plan(NamedTuple):
    """The junction tree of one topology; fields of the same name are those of `JunctionTrees`."""

    bits: float  # log2 of the entries of the largest table
    rows: IntArray
    columns: IntArray
    member_counts: IntArray
    separator_counts: IntArray
    members: IntArray
    term_counts: IntArray
    source: IntArray
    nest: IntArray  # places in `loops`
    home: IntArray
    home_nest: IntArray
    loops: list[Loops]


class Plans(NamedTuple):
    """The junction trees of a batch of graphs."""

    trees: JunctionTrees
    which: IntArray  # (S,) the plan of each graph
    entries: int  # of the tables of the largest plan
    messages: int
    factors: int  # entries of the factors of the largest graph

    def workspace(self, slopes: bool = False) -> JunctionWorkspace:
        """Return room for the tables of any one graph."""
        sizes = [self.entries, self.messages, self.factors]
        sizes += [self.entries, self.messages, 0] if slopes else [0, 0, 0]
        return JunctionWorkspace(*map(np.empty, sizes))


def plans_of(graph: FactorTables, budget: int, choices: str) -> Plans:
    """Return the junction trees of graphs, those that were planned before from a cache.

    Parameters
    ----------
    graph : FactorTables
        The graphs; their scores are not looked at.
    budget : int
        Largest number of entries of a table.
    choices : str
        Names of approximations, for the message.

    Raises
    ------
    BudgetError
        If a table would be larger.
    """
    parts = graph.sizes, graph.scope, graph.scope_ptr, graph.variable_ptr, graph.factor_ptr
    found = _batches.get(
        (budget, *(each.tobytes() for each in parts)), lambda: _batch(graph, budget)
    )
    if isinstance(found, _TooLarge):
        more = " or more" if found.bits > HOPELESS_BITS else ""
        raise BudgetError(
            found.graph,
            "the largest table of its junction tree has "
            f"2^{found.bits:.1f}{more} entries, and the budget is 2^{math.log2(budget):.1f}. "
            f"Raise the budget, or choose a method that approximates: {choices}.",
        )
    return found


class _TooLarge(NamedTuple):
    graph: int
    bits: float


_topologies: _Kept[Plan] = _Kept()
_batches: _Kept[Plans | _TooLarge] = _Kept()


def _batch(graph: FactorTables, budget: int) -> tuple[Plans | _TooLarge, int]:
    places: dict[int, int] = {}
    plans: list[Plan] = []
    which = np.empty(len(graph.factor_ptr) - 1, np.int64)
    for s in range(len(which)):
        plan = _plan_of(graph, s, budget)
        if plan.bits > math.log2(budget) + 1e-9:
            return _TooLarge(s, plan.bits), 0
        if id(plan) not in places:
            places[id(plan)] = len(plans)
            plans.append(plan)
        which[s] = places[id(plan)]
    trees = _joined(plans)
    tables = [int((plan.rows * plan.columns).sum()) for plan in plans]
    messages = [int(plan.rows.sum()) for plan in plans]
    factors = np.diff(graph.score_ptr[graph.factor_ptr])
    most = max(tables, default=0), max(messages, default=0), int(factors.max(initial=0))
    return Plans(trees, frozen(which), *most), sum(part.nbytes for part in trees)


def _plan_of(graph: FactorTables, s: int, budget: int) -> Plan:
    begin, end = (int(v) for v in graph.variable_ptr[s : s + 2])
    first, last = (int(f) for f in graph.factor_ptr[s : s + 2])
    ptr = graph.scope_ptr[first : last + 1]
    sizes, scope = graph.sizes[begin:end], graph.scope[ptr[0] : ptr[-1]] - begin
    ptr = ptr - ptr[0]

    def make() -> tuple[Plan, int]:
        flat, bounds = scope.tolist(), ptr.tolist()
        scopes = [flat[i:j] for i, j in zip(bounds[:-1], bounds[1:], strict=True)]
        plan = make_plan(sizes.tolist(), scopes, math.log2(budget) + 1e-9)
        arrays = sum(part.nbytes for part in plan if isinstance(part, np.ndarray))
        return plan, arrays + 200 * len(plan.loops)

    return _topologies.get((budget, sizes.tobytes(), scope.tobytes(), ptr.tobytes()), make)


def make_plan(sizes: Sequence[int], scopes: Sequence[Sequence[int]], most_bits: float) -> Plan:
    """Return the junction tree of one graph; of one that is too large, only how large it is.

    Parameters
    ----------
    sizes : sequence of V ints
        How many states each variable has.
    scopes : sequence of F sequences of ints
        The variables of each factor.
    most_bits : float
        log2 of the largest number of entries of a table.
    """
    found = eliminate(sizes, scopes, most_bits)
    if found.bits > most_bits:
        none = np.empty(0, np.int64)
        return Plan(found.bits, none, none, none, none, none, none, none, none, none, none, [])
    tree = _Tree(sizes, found)
    for f, scope in enumerate(scopes):
        tree.add_factor(f, scope)
    tree.group_terms()
    return tree.plan(found.bits)


class Term(NamedTuple):
    """A factor, or ~number of a clique that sends a message, and the variables of its table."""

    source: int
    variables: list[int]


class _Tree:
    """Cliques of an elimination, joined where one has all the variables of another.

    The variables of a clique are in the order of elimination, the last first: so those of the
    separator lead, and are in the same order in the parent. A term is a factor or a message and its
    variables, the last fastest.
    """

    def __init__(self, sizes: Sequence[int], found: Elimination) -> None:
        self.sizes = sizes
        self.place = {v: i for i, v in enumerate(found.order)}
        members, separators, children = _cliques(found, self.place)
        numbers = {i: c for c, i in enumerate(members)}
        self.members = list(members.values()) or [[]]
        self.separators = [separators[i] for i in members] or [0]
        self.tables = [self._entries(own) for own in self.members]
        self.loops: dict[Loops, int] = {}
        self.terms: list[list[Term]] = [[] for _ in self.members]
        for c, i in enumerate(members):
            for child in children[i]:
                u = numbers[child]
                self.terms[c].append(Term(~u, self.members[u][: self.separators[u]]))
        self.having: list[list[int]] = [[] for _ in sizes]
        for c in sorted(range(len(self.members)), key=self.tables.__getitem__):
            for v in self.members[c]:
                self.having[v].append(c)
        self.least = min(range(len(self.tables)), key=self.tables.__getitem__)
        self.factor_of: dict[int, tuple[int, int]] = {}
        self.scopes: list[list[int]] = []

    def _entries(self, variables: Iterable[int]) -> int:
        return math.prod(self.sizes[v] for v in variables)

    def _nest(self, variables: Sequence[int], term: Sequence[int]) -> int:
        """Return the number of the loops over a table and one of some of its variables."""
        strides, size = {}, 1
        for v in reversed(term):
            strides[v] = size
            size *= self.sizes[v]
        loops: list[tuple[int, int]] = []
        for v in variables:
            size, stride = self.sizes[v], strides.get(v, 0)
            if loops and loops[-1][1] == stride * size:
                loops[-1] = loops[-1][0] * size, stride
            else:
                loops.append((size, stride))
        return self.loops.setdefault(tuple(loops), len(self.loops))

    def add_factor(self, f: int, scope: Sequence[int]) -> None:
        """Add a factor to the smallest clique that has all its variables."""
        kept = [v for v in scope if self.sizes[v] > 1]
        self.scopes.append(kept)
        home = self.least
        if kept:
            rare = min(kept, key=lambda v: len(self.having[v]))
            home = next(c for c in self.having[rare] if set(kept) <= set(self.members[c]))
        self.terms[home].append(Term(f, kept))
        size = self._entries(kept)
        for v in kept:
            if v not in self.factor_of or size < self.factor_of[v][0]:
                self.factor_of[v] = size, f

    def group_terms(self) -> None:
        """Multiply small terms of large cliques with one another first.

        Each group is a clique of its own, all of whose variables are shared with the large one.
        """
        if max(self.tables) <= GROUPED:
            return
        numbers: list[int] = []
        cliques: list[tuple[list[int], int, list[Term]]] = []
        for own, count, table, terms in zip(
            self.members, self.separators, self.tables, self.terms, strict=True
        ):
            terms = [
                Term(~numbers[~term.source], term.variables) if term.source < 0 else term
                for term in terms
            ]
            if table > GROUPED:
                groups, terms = self._groups(terms)
                for union, parts in groups:
                    shared = sorted(union, key=self.place.__getitem__, reverse=True)
                    terms.append(Term(~len(cliques), shared))
                    cliques.append((shared, len(shared), parts))
            numbers.append(len(cliques))
            cliques.append((own, count, terms))
        self.having = [[numbers[c] for c in cliques] for cliques in self.having]
        self.members = [own for own, _, _ in cliques]
        self.separators = [count for _, count, _ in cliques]
        self.terms = [terms for _, _, terms in cliques]

    def _groups(self, terms: list[Term]) -> tuple[list[tuple[set[int], list[Term]]], list[Term]]:
        """Return groups of small terms, each with its variables, and the other terms."""
        groups: list[tuple[set[int], list[Term]]] = []
        single: list[Term] = []
        for term in sorted(terms, key=lambda term: -self._entries(term.variables)):
            if self._entries(term.variables) > GROUPED // 4:
                single.append(term)
                continue
            sizes = [self._entries(union.union(term.variables)) for union, _ in groups]
            best = min(range(len(groups)), key=sizes.__getitem__, default=-1)
            if best >= 0 and sizes[best] <= GROUPED:
                groups[best][0].update(term.variables)
                groups[best][1].append(term)
            else:
                groups.append((set(term.variables), [term]))
        single += [parts[0] for _, parts in groups if len(parts) == 1]
        return [group for group in groups if len(group[1]) > 1], single

    def _homes(self) -> tuple[list[int], list[int]]:
        """Return where the marginal of each variable is added up from, and the loops."""
        home, nests = [], []
        for v, size in enumerate(self.sizes):
            if size == 1:
                home.append(0)
                nests.append(-1)
            elif v in self.factor_of:
                f = self.factor_of[v][1]
                home.append(f)
                nests.append(self._nest(self.scopes[f], [v]))
            else:
                c = self.having[v][0]
                home.append(~c)
                nests.append(self._nest(self.members[c], [v]))
        return home, nests

    def plan(self, bits: float) -> Plan:
        """Return all of it in flat arrays."""
        home, home_nest = self._homes()
        nests = [
            self._nest(own, term.variables)
            for own, terms in zip(self.members, self.terms, strict=True)
            for term in terms
        ]
        shared = list(zip(self.members, self.separators, strict=True))
        return Plan(
            bits=bits,
            rows=_integers([self._entries(own[:count]) for own, count in shared]),
            columns=_integers([self._entries(own[count:]) for own, count in shared]),
            member_counts=_integers([len(own) for own in self.members]),
            separator_counts=_integers(self.separators),
            members=_integers(list(chain.from_iterable(self.members))),
            term_counts=_integers([len(own) for own in self.terms]),
            source=_integers([term.source for own in self.terms for term in own]),
            nest=_integers(nests),
            home=_integers(home),
            home_nest=_integers(home_nest),
            loops=list(self.loops),
        )


def _integers(numbers: Sequence[int]) -> IntArray:
    return np.array(numbers, np.int64)


def _cliques(
    found: Elimination, place: dict[int, int]
) -> tuple[dict[int, list[int]], dict[int, int], dict[int, list[int]]]:
    """Return the variables of each clique, how many its separator has, and its children."""
    members: dict[int, list[int]] = {}
    separators: dict[int, int] = {}
    children: dict[int, list[int]] = {v: [] for v in found.order}
    for v, near in zip(found.order, found.neighbors, strict=True):
        own = children[v]
        larger = next((u for u in own if separators[u] == len(near) + 1), None)
        if larger is None:
            members[v] = sorted([v, *near], key=place.__getitem__, reverse=True)
        else:  # it has all of them
            members[v] = members.pop(larger)
            own.remove(larger)
            own += children[larger]
        separators[v] = len(near)
        if near:
            children[min(near, key=place.__getitem__)].append(v)
    return members, separators, children


def _joined(plans: Sequence[Plan]) -> JunctionTrees:
    """Return plans side by side, each different nest of loops once."""
    numbers: dict[Loops, int] = {}
    of_plan = [
        np.array([numbers.setdefault(loops, len(numbers)) for loops in plan.loops], np.int64)
        for plan in plans
    ]

    def flat(name: str) -> IntArray:
        return np.concatenate([np.empty(0, np.int64), *(getattr(plan, name) for plan in plans)])

    def within(sizes: list[IntArray]) -> IntArray:
        each = [np.cumsum(own) - own for own in sizes]
        return frozen(np.concatenate([np.empty(0, np.int64), *each]))

    def numbered(nests: Sequence[IntArray]) -> IntArray:
        each = [
            np.where(nest < 0, -1, own[nest]) if len(own) else nest
            for own, nest in zip(of_plan, nests, strict=True)
        ]
        return frozen(np.concatenate([np.empty(0, np.int64), *each]))

    member_ptr = starts(flat("member_counts"))
    listed = [_lists(loops) for loops in numbers]
    low, high = [each.low for each in listed], [each.high for each in listed]
    return JunctionTrees(
        clique_ptr=starts([len(plan.rows) for plan in plans]),
        rows=frozen(flat("rows")),
        columns=frozen(flat("columns")),
        table_at=within([plan.rows * plan.columns for plan in plans]),
        message_at=within([plan.rows for plan in plans]),
        member_ptr=member_ptr,
        separator_end=frozen(member_ptr[:-1] + flat("separator_counts")),
        members=frozen(flat("members")),
        term_ptr=starts(flat("term_counts")),
        source=frozen(flat("source")),
        nest=numbered([plan.nest for plan in plans]),
        variable_ptr=starts([len(plan.home) for plan in plans]),
        home=frozen(flat("home")),
        home_nest=numbered([plan.home_nest for plan in plans]),
        run=frozen(np.array([each.run for each in listed], np.int64)),
        step=frozen(np.array([each.step for each in listed], np.int64)),
        low=frozen(np.concatenate([np.empty(0, np.int64), *low])),
        low_ptr=starts([*map(len, low)]),
        high=frozen(np.concatenate([np.empty(0, np.int64), *high])),
        high_ptr=starts([*map(len, high)]),
    )


class _Lists(NamedTuple):
    run: int
    step: int
    low: IntArray
    high: IntArray


@lru_cache(maxsize=4096)
def _lists(loops: Loops) -> _Lists:
    """Return loops as lists of places: those of the runs are sums of one of each list."""
    run, step, outer = 1, 0, list(loops)
    if outer and outer[-1][1] in (0, 1):
        run, step = outer.pop()
    low = high = np.zeros(1, np.int64)
    while outer and len(low) * outer[-1][0] <= LISTED:
        size, stride = outer.pop()
        low = np.add.outer(stride * np.arange(size), low).ravel()
    while outer:
        size, stride = outer.pop()
        high = np.add.outer(stride * np.arange(size), high).ravel()
    return _Lists(run, step, low, high)
