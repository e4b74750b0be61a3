"""How long a fit still takes, for those who look on."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from crfkit._types import IterationRecord

LAST = 20  # iterations by which the rate is told
USUAL_TOL, USUAL_PERIOD = 1e-5, 10


class IterationsLeft:
    """Expects the end of a search from how fast it came closer to its stopping rule.

    How far it is, is the gap as a share of the value, or, of solvers without one, by which share
    the value fell in a period. Both fall about exponentially near the end.
    """

    def __init__(self, solver: Any) -> None:
        self.tol = USUAL_TOL if solver.tol is None else float(solver.tol)
        self.period = USUAL_PERIOD if solver.period is None else int(solver.period)
        self._values: list[float] = []
        self._distances: list[float] = []  # logarithms

    def after(self, record: IterationRecord) -> float | None:
        """Return the number of iterations that are left after one; None where none is expected."""
        self._values.append(record.value)
        distance = self._distance(record)
        if not (distance > 0.0 and math.isfinite(distance) and self.tol > 0.0):
            return None
        self._distances.append(math.log(distance))
        last = self._distances[-LAST:]
        if len(last) < LAST // 2:
            return None
        slope = float(np.polyfit(np.arange(len(last)), last, 1)[0])
        ahead = last[-1] - math.log(self.tol)
        return max(ahead, 0.0) / -slope if slope < 0.0 else None

    def _distance(self, record: IterationRecord) -> float:
        value = abs(record.value)
        if math.isfinite(record.gap):
            return record.gap / value if value else 0.0
        if len(self._values) <= self.period or not value:
            return math.nan
        return (self._values[-1 - self.period] - record.value) / value
