"""Which labels may be first and last."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from crfkit.constraints.base import Limits, LocalRule, Target


@dataclass(eq=False, repr=False)
class Ends(LocalRule):
    """Only some labels may be the first, or the last, of a sequence; of a forest, of roots, leaves.

    Parameters
    ----------
    first, last : list of labels or None, default=None
        Those of which the first, the last label is one; None for any. Where labels are tags, the
        type of spans (``"PER"``) stands for all its tags.

    Examples
    --------
    >>> from crfkit.constraints import Ends
    >>> Ends(last=["PERIOD"])
    Ends(last=['PERIOD'])
    """

    first: Any = None
    last: Any = None

    def limit(self, target: Target, limits: Limits) -> None:
        """Leave out what may not be first, or last."""
        if self.first is not None:
            limits.allow(target.first_tokens, target.codes_named(self.first, "Ends"))
        if self.last is not None:
            limits.allow(target.last_tokens, target.codes_named(self.last, "Ends"))
