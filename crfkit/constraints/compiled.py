"""Rules that are compiled for the data of a question: potentials that keep them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from crfkit._parallel import make_chunks
from crfkit._types import Potentials
from crfkit._warnings import warn_user
from crfkit.constraints.base import GlobalRule, Limits, LocalRule, Rule, Target
from crfkit.constraints.joint import USUAL, Budget, JointAutomata, joint_of
from crfkit.constraints.product import Product
from crfkit.structures import Structure
from crfkit.structures.copies import TABLE_CELLS


class Compiled:
    """What rules leave of the labelings of sequences.

    Attributes
    ----------
    rules : tuple of Rule
    target : Target
    limits : Limits
        What the local rules leave.
    automata : JointAutomata or None
        Of the global rules: all have to accept a sequence.
    gaps : list of float
        How much better than those that were found other labelings may be, where some may.
    """

    def __init__(self, rules: Sequence[Rule], target: Target, budget: Budget = USUAL) -> None:
        self.rules, self.target = tuple(rules), target
        self.limits = Limits(target.data.n_tokens, len(target.classes), target.n_codes)
        for rule in self.rules:
            if isinstance(rule, LocalRule):
                rule.limit(target, self.limits)
        of_sequences = [rule for rule in self.rules if isinstance(rule, GlobalRule)]
        self.automata: JointAutomata | None = None
        if of_sequences:
            self.automata = joint_of(of_sequences, target, budget)
        self.gaps: list[float] = []
        self._added = np.where(self.limits.codes.tables, 0.0, -np.inf)
        self._limited = np.flatnonzero(self.limits.codes.which)
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
        few = slice(*np.searchsorted(self._limited, [tokens.start, tokens.stop]))
        limited = self._limited[few]
        codes, rows = self.limits.codes.which[limited], limited - tokens.start
        potentials.unary[rows, : self._added.shape[1]] += self._added[codes]
        if not self._steps.all():
            which = self.limits.steps_into.which[tokens] if len(self._steps) > 1 else None
            steps = self._steps if len(self._steps) > 1 else self._steps[0]
            structure, potentials = structure.restricted(potentials, steps, which)
        if self.automata is not None:
            structure = Product(structure, self.automata, self.gaps)
        return structure, potentials

    def pieces(self, potentials: Potentials) -> list[Potentials]:
        """Return the potentials in pieces whose tables over states of automata are not too large.

        Tables are large where tokens have their own.
        """
        count = 0 if self.automata is None else self.automata.n_copies(potentials)
        if len(potentials.transition_index) * count**2 <= TABLE_CELLS or count == 0:
            return [potentials]
        chunks = make_chunks(potentials.offsets, max(TABLE_CELLS // count**2, 1))
        return [potentials.run(chunk.sequences) for chunk in chunks]

    def warn_of_gaps(self) -> None:
        """Warn, once, if labelings that were found since the last time may not be the best ones."""
        if self.gaps:
            warn_user(
                f"labelings of {len(self.gaps)} sequences are not proved to be the best ones that "
                f"keep the rules: scores may be better by {max(self.gaps):.3g} at most. "
                "predict_with_bounds tells which; raise max_states or time_limit of Constraints."
            )
            self.gaps.clear()
