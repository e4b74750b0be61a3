"""The best labeling of a sequence that is known to keep all rules, and a bound of all others."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from crfkit._types import BoolArray, CodeArray, Potentials
from crfkit.constraints.joint import JointAutomata
from crfkit.structures import Structure

# A labeling is optimal if no other is better by more than this part of its score, for rounding.
TOLERANCE = 1e-9


class Incumbent:
    """What a search for the best labeling of the only sequence has found so far.

    Attributes
    ----------
    codes : ndarray of shape (T,) or None
        The best labeling that was found, which all automata accept.
    value : float
        Its score.
    bound : float
        No labeling that all automata accept has a larger score.
    """

    def __init__(self, structure: Structure[Any], one: Potentials, automata: JointAutomata) -> None:
        self._structure, self._one, self._automata = structure, one, automata
        self.codes: CodeArray | None = None
        self.value, self.bound = -math.inf, math.inf

    @property
    def is_optimal(self) -> bool:
        """Whether no labeling is better."""
        return bool(self.bound - self.value <= tolerance(self.value))

    def offer(self, codes: CodeArray) -> BoolArray:
        """Keep a labeling if it is the best one so far; returns which automata reject it, (A,)."""
        rejected: BoolArray = self._automata.rejecting(codes, self._one.offsets)[0]
        if not rejected.any():
            value = float(self._structure.score(self._one, codes)[0])
            if value > self.value:
                self.codes, self.value = codes, value
        return rejected

    def limit(self, bound: float) -> None:
        """Take a bound, if it is the lowest so far; rounding may not take it below the value."""
        self.bound = max(min(self.bound, bound), self.value)


def tolerance(value: Any) -> Any:
    """Return by how much sums of scores may differ for their rounding."""
    return TOLERANCE * np.maximum(1.0, np.abs(value))
