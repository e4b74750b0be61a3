"""Rules that are compiled for the data of a question: potentials that keep them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from crfkit._types import FloatArray, IntArray, Potentials
from crfkit.constraints.base import Automaton, GlobalRule, Limits, LocalRule, Rule, Target
from crfkit.structures import Structure


class Compiled:
    """What rules leave of the labelings of sequences.

    Attributes
    ----------
    rules : tuple of Rule
    target : Target
    limits : Limits
        What the local rules leave.
    automata : list of Automaton
        Of the global rules: all have to accept a sequence.
    """

    def __init__(self, rules: Sequence[Rule], target: Target) -> None:
        self.rules, self.target = tuple(rules), target
        self.limits = Limits(target.data.n_tokens, len(target.classes), target.n_codes)
        self.automata: list[Automaton] = []
        for rule in self.rules:
            if isinstance(rule, LocalRule):
                rule.limit(target, self.limits)
            elif isinstance(rule, GlobalRule):
                self.automata += rule.automata(target)
        self._added = np.where(self.limits.codes.tables, 0.0, -np.inf)
        into = self.limits.steps_into
        self._steps = np.array(into.tables) & self.limits.steps

    def restrict(
        self, structure: Structure, potentials: Potentials
    ) -> tuple[Structure, Potentials]:
        """Return the structure and the potentials of a chunk of the data that keep to the rules.

        What it is given is used up: its unary scores may be written to.
        """
        begin = int(self.target.data.offsets[potentials.first])
        tokens = slice(begin, begin + int(potentials.offsets[-1]))
        if self.limits.codes.hold:
            _add(potentials.unary, self._added, self.limits.codes.which[tokens])
        if not self._steps.all():
            which = self.limits.steps_into.which[tokens] if len(self._steps) > 1 else None
            steps = self._steps if len(self._steps) > 1 else self._steps[0]
            return structure.restricted(potentials, steps, which)
        return structure, potentials


def _add(unary: FloatArray, added: FloatArray, which: IntArray) -> None:
    """Add to the scores of tokens one of some rows of scores of codes; the first is 0."""
    rows = np.flatnonzero(which)
    unary[rows, : added.shape[1]] += added[which[rows]]
