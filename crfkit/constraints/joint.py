"""Automata that all have to accept a sequence."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property
from typing import NamedTuple

import numpy as np

from crfkit._types import BoolArray, CodeArray, IntArray, Potentials
from crfkit.compiler.jit import frozen
from crfkit.constraints import global_rules
from crfkit.constraints.automata import TooManyStatesError, copies_of, product_of_all
from crfkit.constraints.base import Automaton, GlobalRule, Target
from crfkit.constraints.plain import plain
from crfkit.kernels.chain.automata import AutomatonTables, automata_reject
from crfkit.kernels.chain.copies import LabelCopies
from crfkit.structures.copies import FEW_COPIES

# Best labelings of tokens need no table of pairs of states, and may have so many times as many.
WITHOUT_TABLE = 10
# Scores of pairs of states and tokens of a sequence, then: 1 GB.
MOST_CELLS = 1 << 27
# Automata of so many different rules are kept: making them takes longer than a short answer.
KEPT = 64


class Budget(NamedTuple):
    """What answers under rules may take.

    `max_states` are the most copies of labels, one for each state of a product of automata that it
    may be in: with 2,000, a table of steps between them has 32 MB. Searches for the best labels of
    tokens may have `WITHOUT_TABLE` times as many. `time_limit` are the seconds that integer
    programming may take for a sequence.
    """

    max_states: int = 2000
    time_limit: float = 10.0


USUAL = Budget()


class JointAutomata:
    """Automata of the same codes that all have to accept a sequence.

    Parameters
    ----------
    automata : sequence of A Automaton
        At least one.
    names : sequence of A str
        The rules that they are of, for messages.
    budget : Budget, optional
        What answers may take.
    """

    def __init__(
        self, automata: Sequence[Automaton], names: Sequence[str], budget: Budget = USUAL
    ) -> None:
        self.automata, self.budget = tuple(automata), budget
        self.names = tuple(names)
        self._tables = _side_by_side(self.automata)
        self._n_codes = self.automata[0].symbols.shape[1]
        self._copies: dict[tuple[int, ...], LabelCopies] = {}
        self._too_many: dict[tuple[int, ...], TooManyStatesError] = {}

    @property
    def accept_empty(self) -> bool:
        """Whether all accept a sequence without tokens."""
        return all(each.accepts[0] for each in self.automata)

    def __len__(self) -> int:
        return len(self.automata)

    @property
    def all(self) -> tuple[int, ...]:
        """The numbers of all automata."""
        return tuple(range(len(self)))

    def rejecting(self, codes: CodeArray, offsets: IntArray) -> BoolArray:
        """Return which automata do not accept the codes of sequences, shape (S, A)."""
        found = np.empty((len(offsets) - 1, len(self)), bool)
        state = np.empty(len(self), np.int64)
        automata_reject(self._tables, self._n_codes, frozen(offsets), frozen(codes), state, found)
        return found

    def after(self, states: IntArray, before: IntArray, code: IntArray) -> IntArray:
        """Return the states of all automata, (n, A), after codes that follow codes, (n,)."""
        each = np.arange(len(self))
        read = self._symbols[each, before[:, None], code[:, None]]
        found: IntArray = np.where(states >= 0, self._tables.step[each, states, read], -1)
        return found

    def accepting(self, states: IntArray) -> BoolArray:
        """Return whether all automata accept what leads to their states, (n, A)."""
        accepts = self._tables.accepts[np.arange(len(self)), states]
        found: BoolArray = np.logical_and.reduce(accepts, axis=1)
        return found

    @cached_property
    def _symbols(self) -> IntArray:
        """The symbols of all automata, (A, C + 1, C)."""
        return np.stack([each.symbols for each in self.automata])

    def copies(
        self, which: tuple[int, ...], potentials: Potentials, best: bool = False
    ) -> LabelCopies:
        """Return copies of labels for the product of some automata; TooManyStatesError.

        `best` is whether only best labelings are asked for. The potentials tell the labels.
        """
        most = self.budget.max_states
        if best and potentials.n_codes == potentials.n_labels:
            cells = MOST_CELLS // max(int(np.diff(potentials.offsets).max(initial=0)), 1)
            most = max(most, min(most * WITHOUT_TABLE, cells))
        found, known = self._copies.get(which), self._too_many.get(which)
        if found is None and known is not None and known.states > most:
            raise known.with_traceback(None)
        if found is None:
            try:
                whole = product_of_all([self.automata[a] for a in which], most)
                found = self._copies[which] = copies_of(whole, potentials.n_labels, most)
            except TooManyStatesError as error:
                self._too_many[which] = error
                raise
        if len(found.label) > most:
            raise TooManyStatesError(len(found.label))
        return found

    def fits(self, which: tuple[int, ...], potentials: Potentials) -> bool:
        """Whether the best labelings that some automata accept can be searched for."""
        try:
            self.copies(which, potentials, best=True)
        except TooManyStatesError:
            return False
        return True

    def n_copies(self, potentials: Potentials) -> int:
        """Return how many copies of labels a table has, where tokens have their own; else 0."""
        if len(potentials.transition_index) == 1:
            return 0
        try:
            return len(self.copies(self.all, potentials).label)
        except TooManyStatesError:
            return FEW_COPIES

    def too_large_for_sums(self, states: int) -> str:
        """Return what to tell where sums are asked for, which need the product of all."""
        size = sum(math.log2(len(each.step)) for each in self.automata)
        rules, most = list(dict.fromkeys(self.names)), self.budget.max_states
        return (
            f"probabilities, samples and lists of labelings need the product of the automata of "
            f"all rules, which has up to 2**{size:.0f} states; with labels, more than "
            f"max_states={most} can be reached. The rules are {', '.join(rules[:8])}"
            f"{', ...' if len(rules) > 8 else ''}. Leave some of them out, ask predict for the "
            "best labels only (decoding='viterbi'), or raise max_states of Constraints."
        )


_KEPT: dict[str, JointAutomata] = {}


def joint_of(rules: Sequence[GlobalRule], target: Target, budget: Budget) -> JointAutomata | None:
    """Return the automata of rules, which the labels of the target tell; known ones are kept.

    None where there are none, as of labels none of which is that of a span.
    """
    if any(type(rule).__module__ != global_rules.__name__ for rule in rules):
        return _made(rules, target, budget)  # what a class from outside looks at is not known
    try:
        params = [(type(rule), plain(rule.get_params(deep=False))) for rule in rules]
    except TypeError:  # a label that has no value to compare
        return _made(rules, target, budget)
    key = repr((params, target.of_segments, target.is_forest, target.classes.tolist(), budget))
    found = _KEPT.get(key)
    if found is None:
        found = _made(rules, target, budget)
        if found is None:
            return None
        for oldest in list(_KEPT)[: max(len(_KEPT) + 1 - KEPT, 0)]:
            _KEPT.pop(oldest, None)
        _KEPT[key] = found
    return found


def _made(rules: Sequence[GlobalRule], target: Target, budget: Budget) -> JointAutomata | None:
    automata, names = [], []
    for rule in rules:
        found = rule.automata(target)
        automata += found
        names += [" ".join(repr(rule).split())] * len(found)
    return JointAutomata(automata, names, budget) if automata else None


def _side_by_side(automata: tuple[Automaton, ...]) -> AutomatonTables:
    """Return automata as a kernel reads them: what leaves all states as they are is left out."""
    shape = [max(sizes) for sizes in zip(*(each.step.shape for each in automata), strict=True)]
    step = np.full((len(automata), *shape), -1, np.int64)
    accepts = np.zeros((len(automata), shape[0]), bool)
    pairs, which, symbol = [], [], []
    for a, each in enumerate(automata):
        n_states, n_symbols = each.step.shape
        step[a, :n_states, :n_symbols], accepts[a, :n_states] = each.step, each.accepts
        shifts = np.any(each.step != np.arange(n_states)[:, None], axis=0)
        read = each.symbols.reshape(-1)
        moving = np.flatnonzero(shifts[read])
        pairs.append(moving)
        which.append(np.full(len(moving), a))
        symbol.append(read[moving])
    every = np.concatenate(pairs)
    order = np.argsort(every, kind="stable")
    ends = np.cumsum(np.bincount(every, minlength=automata[0].symbols.size))
    begins = np.concatenate([[0], ends]).astype(np.int64)
    listed, read = (np.concatenate(each)[order].astype(np.int64) for each in (which, symbol))
    return AutomatonTables(
        frozen(begins), frozen(listed), frozen(read), frozen(step), frozen(accepts)
    )
