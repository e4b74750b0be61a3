"""Which label may follow which."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from crfkit._types import BoolArray
from crfkit.constraints.base import Limits, LocalRule, Target


@dataclass(eq=False, repr=False)
class Steps(LocalRule):
    """Some labels may not follow others.

    The label of a segment follows that of the segment before; in a forest, the label of a token
    follows that of its parent. Where labels are tags, the type of spans (``"PER"``) may stand for
    all its tags: a span of it then follows another directly.

    Parameters
    ----------
    forbidden : list of (label, label), default=()
        The second label of a pair may not follow the first.
    allowed : list of (label, label) or None, default=None
        If given, no other pairs are allowed, but for the tags of one span of a type that is named.

    Examples
    --------
    >>> from crfkit.constraints import Steps
    >>> Steps(forbidden=[("ZIP", "STREET")])
    Steps(forbidden=[('ZIP', 'STREET')])
    """

    forbidden: Iterable[tuple[Any, Any]] = ()
    allowed: Iterable[tuple[Any, Any]] | None = None

    def limit(self, target: Target, limits: Limits) -> None:
        """Leave out the forbidden steps."""
        for pair in self.forbidden:
            limits.allow_steps(~target.pairs_named(pair, "Steps"))
        if self.allowed is not None:
            limits.allow_steps(self._allowed(target, list(self.allowed)))

    @staticmethod
    def _allowed(target: Target, pairs: list[Any]) -> BoolArray:
        size = len(target.classes)
        found = np.zeros((size, size), bool)
        for pair in pairs:
            found |= target.pairs_named(pair, "Steps")
            for labels, typed in (target.labels_named(name, "Steps") for name in pair):
                if typed:
                    found |= target.reading.continues & labels
        return found
