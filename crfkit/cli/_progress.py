"""The progress of a fit on a terminal."""

from __future__ import annotations

import shutil
import sys
from typing import Any, ClassVar

from crfkit._types import FloatArray, IterationRecord, SolverResult

BAR = 24


class ShownSolver:
    """A solver that shows its iterations in one line of standard error, if that is a terminal.

    Parameters
    ----------
    solver : Solver
        Does the work.
    max_iter : int or None
        Iterations at most, which makes the line a bar.
    quiet : bool
        Show nothing.
    """

    requires: ClassVar[tuple[str, ...]] = ("value_and_grad",)
    handles_l1: ClassVar[bool] = True

    def __init__(self, solver: Any, max_iter: int | None, quiet: bool) -> None:
        self.solver = solver
        self.max_iter = max_iter
        self.shown = sys.stderr.isatty() and not quiet
        self.interrupted = False

    def solve(self, objective: Any, start: FloatArray, callback: Any = None) -> SolverResult:
        """Minimize an objective, as the solver does."""

        def report(record: IterationRecord, parameters: FloatArray) -> bool:
            if self.shown:
                self._show(record)
            return bool(callback is not None and callback(record, parameters))

        result: SolverResult = self.solver.solve(objective, start, report)
        if self.shown:
            print(file=sys.stderr)
        self.interrupted = result.interrupted
        return result

    def _show(self, record: IterationRecord) -> None:
        done = f"iteration {record.iteration}"
        if self.max_iter:
            filled = BAR * record.iteration // self.max_iter
            done = f"[{'#' * filled}{'-' * (BAR - filled)}] {record.iteration}/{self.max_iter}"
        line = f"{done}  objective {record.value:,.2f}  {record.seconds:.1f} s"
        width = shutil.get_terminal_size().columns - 1
        print(f"\r{line[:width]:<{width}}", end="", file=sys.stderr, flush=True)
