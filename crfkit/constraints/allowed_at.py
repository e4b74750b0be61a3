"""Which labels may stand at a position."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from crfkit._params import check_whole
from crfkit.constraints.base import Limits, LocalRule, Target


@dataclass(eq=False, repr=False)
class AllowedAt(LocalRule):
    """Tokens at some positions may only have some labels.

    Parameters
    ----------
    labels : dict of int to list of labels
        Positions from 0 on, or from -1, the last, backwards, and the labels that are allowed there
        in all sequences that are so long. Where labels are tags, the type of spans (``"PER"``)
        stands for all its tags.

    Examples
    --------
    >>> from crfkit.constraints import AllowedAt
    >>> AllowedAt({0: ["NUMBER"], -1: ["CITY", "ZIP"]})
    AllowedAt(labels={-1: ['CITY', 'ZIP'], 0: ['NUMBER']})
    """

    labels: Mapping[int, Any]

    key: ClassVar[type] = int

    def limit(self, target: Target, limits: Limits) -> None:
        """Leave out all other labels at the positions."""
        if not isinstance(self.labels, Mapping):
            raise TypeError(f"AllowedAt: {self.labels!r:.60} is no dict {{position: labels}}.")
        offsets, lengths = target.data.offsets, target.data.lengths
        for position, names in self.labels.items():
            check_whole("the position of AllowedAt", position, None)
            ends = offsets[:-1] if position >= 0 else offsets[1:]
            there = lengths > position if position >= 0 else lengths >= -position
            limits.allow(ends[there] + position, target.codes_named(names, "AllowedAt"))
