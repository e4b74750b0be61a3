"""Automata that all have to accept a sequence."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from crfkit._types import BoolArray, CodeArray, IntArray, Potentials
from crfkit.compiler.jit import frozen
from crfkit.constraints.automata import TooManyStatesError, copies_of, product_of_all
from crfkit.constraints.base import Automaton
from crfkit.kernels.chain.automata import AutomatonTables, automata_reject
from crfkit.structures.copies import LabelCopies

# Pairs of a label and a state of a product, at most: a table of steps between them has 32 MB.
MAX_STATES = 2000
# Best labelings of tokens need no such table, and may have so many times as many.
WITHOUT_TABLE = 10
# Seconds that integer programming may take for a sequence.
TIME_LIMIT = 10.0


class JointAutomata:
    """Automata of the same codes that all have to accept a sequence.

    Parameters
    ----------
    automata : sequence of A Automaton
        At least one.
    names : sequence of A str
        The rules that they are of, for messages.
    max_states : int
        The most copies of labels, one for each state of a product of automata that it may be in;
        searches for the best labels of tokens may have `WITHOUT_TABLE` times as many.
    time_limit : float
        Seconds that integer programming may take for a sequence.
    """

    def __init__(
        self,
        automata: Sequence[Automaton],
        names: Sequence[str],
        max_states: int = MAX_STATES,
        time_limit: float = TIME_LIMIT,
    ) -> None:
        self.automata, self.max_states, self.time_limit = tuple(automata), max_states, time_limit
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
        read = [each.symbols[before, code] for each in self.automata]
        ahead = [
            np.where(now >= 0, each.step[now, symbol], -1)
            for each, now, symbol in zip(self.automata, states.T, read, strict=True)
        ]
        return np.column_stack(ahead)

    def accepting(self, states: IntArray) -> BoolArray:
        """Return whether all automata accept what leads to their states, (n, A)."""
        each = [a.accepts[now] for a, now in zip(self.automata, states.T, strict=True)]
        found: BoolArray = np.all(each, axis=0)
        return found

    def copies(
        self, which: tuple[int, ...], potentials: Potentials, best: bool = False
    ) -> LabelCopies:
        """Return copies of labels for the product of some automata; TooManyStatesError.

        `best` is whether only best labelings are asked for. The potentials tell the labels.
        """
        without_table = best and potentials.n_codes == potentials.n_labels
        most = self.max_states * WITHOUT_TABLE if without_table else self.max_states
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

    def too_large_for_sums(self, states: int) -> str:
        """Return what to tell where sums are asked for, which need the product of all."""
        size = sum(math.log2(len(each.step)) for each in self.automata)
        rules = list(dict.fromkeys(self.names))
        return (
            f"probabilities, samples and lists of labelings need the product of the automata of "
            f"all rules, which has up to 2**{size:.0f} states; with labels, more than "
            f"max_states={self.max_states} can be reached. The rules are {', '.join(rules[:8])}"
            f"{', ...' if len(rules) > 8 else ''}. Leave some of them out, ask predict for the "
            "best labels only, or raise max_states of Constraints."
        )


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
