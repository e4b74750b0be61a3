"""Lagrangian relaxation: groups of rules are searched for apart, and made to agree."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from crfkit._types import CodeArray, Potentials
from crfkit.constraints.automata import copied_codes
from crfkit.constraints.incumbent import Incumbent
from crfkit.constraints.joint import JointAutomata
from crfkit.kernels.chain.copies import LabelCopies
from crfkit.structures import Structure

# Steps along subgradients, and such that may pass without a better bound before they get shorter.
ITERATIONS, PATIENCE = 500, 8


class Part(NamedTuple):
    """Copies of labels for the product of a group of automata, and the codes that theirs are."""

    copies: LabelCopies
    codes: CodeArray


class Share(NamedTuple):
    """Scores of a group, which add up to those of the sequence over all groups."""

    scores: Potentials
    copies: LabelCopies  # for its automata
    value: float  # the largest score of the labelings that these accept


class Relaxation:
    """Groups of automata, each with an equal share of the scores of the only sequence.

    Labelings of the groups may differ. The largest scores, one a group, add up to a bound of the
    scores of all labelings that keep the rules, for any multipliers: scores of codes of tokens that
    add up to 0 over the groups. They are moved along subgradients, towards what groups agree on, to
    make the bound low (Komodakis, Paragios and Tziritas 2007; Rush, Sontag, Collins and Jaakkola
    2010). Where all groups agree, the labeling is a best one.

    Attributes
    ----------
    shares : list of Share
        What each group knew when the bound was lowest.
    """

    def __init__(
        self,
        structure: Structure[Any],
        one: Potentials,
        automata: JointAutomata,
        groups: list[tuple[int, ...]],
    ) -> None:
        self._structure, share = structure, len(groups)
        self._shared = one.with_arrays(*(each / share for each in one.arrays()))
        self._multipliers = np.zeros((share, len(one.unary), one.n_codes))
        chosen = [automata.copies(which, one, best=True) for which in groups]
        self._parts = [Part(copies, copied_codes(copies, one)) for copies in chosen]
        self.shares: list[Share] = []

    def tighten(self, best: Incumbent) -> set[int]:
        """Lower the bound; returns the automata that reject what all groups agree on, if any."""
        lowest, length, since = math.inf, 1.0, 0
        for _ in range(ITERATIONS):
            found = [self._argmax(g) for g in range(len(self._parts))]
            bound = sum(value for _, value in found)
            if bound < lowest:
                lowest, since = bound, 0
                self.shares = [
                    Share(self._shared.plus_unary(added), part.copies, value)
                    for added, part, (_, value) in zip(
                        self._multipliers, self._parts, found, strict=True
                    )
                ]
            else:
                since += 1
            best.limit(bound)
            rejected = [best.offer(codes) for codes, _ in found]
            if best.is_optimal:
                break
            picked = np.zeros(self._multipliers.shape)
            for each, (codes, _) in zip(picked, found, strict=True):
                each[np.arange(len(codes)), codes] = 1.0
            picked -= picked.mean(axis=0)
            norm = float((picked**2).sum())
            if norm == 0.0:
                return set(np.flatnonzero(rejected[0]).tolist())
            if since == PATIENCE:
                length, since = length / 2.0, 0
            ahead = bound - best.value if best.codes is not None else 1.0
            self._multipliers -= (length * ahead / norm) * picked
        return set()

    def _argmax(self, group: int) -> tuple[CodeArray, float]:
        """Return the best labeling of a group, and its score."""
        copies, codes = self._parts[group]
        scores = self._shared.plus_unary(self._multipliers[group])
        labels, value = self._structure.argmax_of_copies(scores, copies)
        return codes[labels], float(value[0])
