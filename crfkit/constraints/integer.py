"""The best labeling that rules allow, by integer linear programming."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.optimize import Bounds, LinearConstraint, OptimizeResult, milp

from crfkit._types import FloatArray, IntArray, Potentials
from crfkit.constraints.automata import copied_codes
from crfkit.constraints.base import Automaton
from crfkit.constraints.incumbent import Incumbent, tolerance
from crfkit.constraints.joint import JointAutomata
from crfkit.constraints.relaxation import Share
from crfkit.structures import Structure
from crfkit.structures.lattice import Lattice

# What HiGHS leaves of the difference between the best value and its bound where it is done.
PRECISION = 2e-6
# Arcs of a graph over copies of labels at most, and more codes than there are.
MOST_ARCS, KEYS = 3_000_000, 1 << 20
# Variables of a program at most, which take some 200 bytes each, and more to solve it.
MOST_COLUMNS = 3_000_000
# Its status where the time was up, or no labeling keeps the rules.
TIME_IS_UP, INFEASIBLE = 1, 2


def solve(
    structure: Structure[Any],
    one: Potentials,
    automata: JointAutomata,
    best: Incumbent,
    shares: list[Share],
) -> None:
    """Find the best labeling of the only sequence, or one and a bound (Roth and Yih 2005).

    Labelings are flows of 1 from the first to the last node of a graph. Each automaton is a flow
    through its states, which at each token takes the symbol that the labeling has there: only the
    former need be integers. Arcs are left out where no labeling that has them is better than the
    one that is known: by the scores of all, and by those of `shares`.
    """
    if len(one.unary) * sum(map(_n_ways, automata.automata)) > MOST_COLUMNS:
        return
    lattice = structure.lattice(one)
    bound = _through(lattice)
    if shares:
        each = [_bound_of_share(structure, share, lattice) for share in shares]
        bound = np.minimum(bound, sum(each, np.zeros(len(bound))))
    # Of the known labeling, arcs are left out as well, but not those of a better one.
    lattice = lattice.taken(np.flatnonzero(bound >= best.value - tolerance(best.value)))
    program = _Program(lattice, automata.automata, len(one.unary))
    result = program.solve(automata.budget.time_limit)
    if result.x is not None:
        best.offer(lattice.codes(program.path(result.x), len(one.unary)))
    if result.status == INFEASIBLE:
        best.bound = best.value
    elif result.mip_dual_bound is not None:
        dual = -float(result.mip_dual_bound) * program.unit
        if result.status == 0 and dual - best.value <= PRECISION * max(1.0, program.unit):
            dual = best.value
        best.limit(dual)


def _n_ways(automaton: Automaton) -> int:
    """Return how many variables of a program an automaton takes for each token at most."""
    return len(automaton.step) + int(np.count_nonzero(automaton.step >= 0))


def _bound_of_share(structure: Structure[Any], share: Share, lattice: Lattice) -> FloatArray:
    """Return bounds of a share of the scores of labelings that have an arc, for all arcs.

    The largest score that automata accept with it, where the graph over copies is not too large.
    """
    length, count = len(share.scores.unary), len(share.copies.label)
    if max(len(share.copies.source) * length, count**2) > MOST_ARCS:
        return np.minimum(_through(structure.lattice(share.scores)), share.value)
    copied, wide = structure.with_copies(share.scores, share.copies)
    codes: IntArray = copied_codes(share.copies, share.scores).astype(np.int64)
    of_copies = copied.lattice(wide)
    reading = np.flatnonzero(of_copies.token >= 0)
    before = np.append(codes, share.scores.n_codes)[of_copies.before[reading]]
    keys = _keys(of_copies.token[reading], before, codes[of_copies.code[reading]])
    best = np.full(len(lattice.token), share.value)
    own = np.flatnonzero(lattice.token >= 0)
    known = _keys(lattice.token[own], lattice.before[own], lattice.code[own])
    order = np.argsort(known)
    top = np.full(len(own), -np.inf)
    places = order[np.searchsorted(known[order], keys)]
    np.maximum.at(top, places, _through(of_copies)[reading])
    best[own] = top
    return best


def _keys(token: IntArray, before: IntArray, code: IntArray) -> IntArray:
    """Return a number for each code at a token, after a code."""
    return (token * KEYS + before) * KEYS + code


def _through(lattice: Lattice) -> FloatArray:
    """Return the largest score of a path through each arc: its max-marginal."""
    ahead, behind = np.full((2, lattice.n_nodes), -np.inf)
    behind[0] = ahead[-1] = 0.0
    ends = np.searchsorted(lattice.target, np.arange(lattice.n_nodes + 1)).tolist()
    source, score = lattice.source, lattice.score
    for node in range(1, lattice.n_nodes):
        arcs = slice(ends[node], ends[node + 1])
        behind[node] = np.max(behind[source[arcs]] + score[arcs], initial=-np.inf)
    for node in range(lattice.n_nodes - 1, 0, -1):
        arcs = slice(ends[node], ends[node + 1])
        np.maximum.at(ahead, source[arcs], score[arcs] + ahead[node])
    found: FloatArray = behind[source] + score + ahead[lattice.target]
    return found


class _Program:
    """The integer program of a lattice and automata."""

    def __init__(self, lattice: Lattice, automata: tuple[Automaton, ...], length: int) -> None:
        self.lattice, self._length = lattice, length
        self.unit = max(float(np.abs(lattice.score).max(initial=0.0)), 1e-300)
        self._entries: list[tuple[IntArray, IntArray, FloatArray]] = []
        self._right = np.zeros(0)
        self._upper = np.ones(len(lattice.score))
        arcs = np.arange(len(lattice.score))
        nodes = np.zeros(lattice.n_nodes)
        nodes[0], nodes[-1] = -1.0, 1.0
        self._flow(arcs, lattice.source, lattice.target, nodes)
        for automaton in automata:
            self._add(automaton)

    def solve(self, time_limit: float) -> OptimizeResult:
        """Return what HiGHS finds of the smallest cost: minus the score, over the largest score."""
        size = len(self._upper)
        n_arcs = len(self.lattice.score)
        cost = np.zeros(size)
        cost[:n_arcs] = -self.lattice.score / self.unit
        row, column, value = map(np.concatenate, zip(*self._entries, strict=True))
        matrix = sp.csr_array((value, (row, column)), shape=(len(self._right), size))
        return milp(
            cost,
            integrality=np.arange(size) < n_arcs,
            bounds=Bounds(0.0, self._upper),
            constraints=LinearConstraint(matrix, self._right, self._right),
            options={"time_limit": float(time_limit), "mip_rel_gap": 0.0},
        )

    def path(self, x: FloatArray) -> IntArray:
        """Return the arcs of the path that a solution is."""
        return np.flatnonzero(x[: len(self.lattice.score)] > 0.5)

    def _flow(
        self, columns: IntArray, source: IntArray, target: IntArray, supply: FloatArray
    ) -> None:
        """Add that what flows into a node, less what flows out of it, is its supply."""
        first, ones = len(self._right), np.ones(len(columns))
        self._put(first + target, columns, ones)
        self._put(first + source, columns, -ones)
        self._right = np.append(self._right, supply)

    def _put(self, row: IntArray, column: IntArray, value: FloatArray) -> None:
        self._entries.append((row, column, value))

    def _add(self, automaton: Automaton) -> None:
        """Add the flow through the states of an automaton, a node for each before each token.

        Symbols that leave all states as they are need not be told from no symbol at all.
        """
        n_states, length, lattice = len(automaton.step), self._length, self.lattice
        states, tokens = np.arange(n_states), np.arange(length)
        shifts = np.flatnonzero((automaton.step != states[:, None]).any(axis=0))
        state, symbol = np.nonzero(automaton.step[:, shifts] >= 0)
        after = automaton.step[state, shifts[symbol]]
        state, after = np.append(state, states), np.append(after, states)
        symbol = np.append(symbol, np.full(n_states, -1))  # nothing happens
        n_ways = len(state)
        columns = len(self._upper) + np.arange(length * n_ways)
        source = tokens[:, None] * n_states + state
        target = (tokens[:, None] + 1) * n_states + after
        # All ends are one node behind those of the last token.
        final, supply = (length + 1) * n_states, np.zeros((length + 1) * n_states + 1)
        supply[0], supply[-1] = -1.0, 1.0
        ends = np.flatnonzero(automaton.accepts)
        leaving = columns[-1] + 1 + np.arange(len(ends))
        self._upper = np.append(self._upper, np.ones(length * n_ways + len(ends)))
        self._flow(
            np.append(columns, leaving),
            np.append(source.ravel(), length * n_states + ends),
            np.append(target.ravel(), np.full(len(ends), final)),
            supply,
        )
        # The flow that reads a symbol at a token is that of the arcs which have it there.
        first, width = len(self._right), len(shifts)
        reading = np.flatnonzero(symbol >= 0)
        rows = first + tokens[:, None] * width + symbol[reading]
        chosen = columns.reshape(length, n_ways)[:, reading]
        self._put(rows.ravel(), chosen.ravel(), np.ones(chosen.size))
        places = np.full(automaton.step.shape[1], -1)
        places[shifts] = np.arange(width)
        arcs = np.flatnonzero(lattice.token >= 0)
        read = places[automaton.symbols[lattice.before[arcs], lattice.code[arcs]]]
        arcs, read = arcs[read >= 0], read[read >= 0]
        self._put(first + lattice.token[arcs] * width + read, arcs, -np.ones(len(arcs)))
        self._right = np.append(self._right, np.zeros(length * width))
