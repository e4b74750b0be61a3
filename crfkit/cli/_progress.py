"""A solver that shows its iterations on a terminal."""

from __future__ import annotations

import copy
import shutil
import sys
from typing import Any, ClassVar

from crfkit._types import FloatArray, IterationRecord, SolverResult
from crfkit.solvers.base import Callback, Solver

BAR = 24  # characters


class Progress:
    """What all stages of a search have shown: a line each, with a bar if there is a limit."""

    def __init__(self, limit: int | None, shown: bool) -> None:
        self.limit, self.shown = limit, shown and sys.stderr.isatty()
        self.interrupted = False
        self._iterations, self._seconds = 0, 0.0  # of the stages before

    def show(self, record: IterationRecord) -> None:
        """Show an iteration in place of the one before."""
        if not self.shown:
            return
        iteration = self._iterations + record.iteration
        done = f"iteration {iteration}"
        if self.limit:
            filled = BAR * iteration // self.limit
            done = f"[{'#' * filled}{'-' * (BAR - filled)}] {iteration}/{self.limit}"
        seconds = self._seconds + record.seconds
        line = f"{done}  objective {record.value:,.2f}  {seconds:.1f} s"
        width = shutil.get_terminal_size().columns - 1
        print(f"\r{line[:width]:<{width}}", end="", file=sys.stderr, flush=True)

    def finish(self, result: SolverResult) -> None:
        """End the line of a stage."""
        self.interrupted |= result.interrupted
        self._iterations += result.n_iter
        self._seconds += result.history[-1].seconds
        if self.shown:
            print(file=sys.stderr)


class ShownSolver(Solver):
    """Another solver, whose iterations are shown; copies of it show theirs as one search."""

    handles_l1: ClassVar[bool] = True

    def __init__(self, solver: Any, progress: Progress) -> None:
        self.solver, self.progress = solver, progress
        self.max_iter = solver.max_iter

    def solve(
        self, objective: Any, start: FloatArray, callback: Callback | None = None
    ) -> SolverResult:
        """Minimize an objective, as the solver does."""

        def report(record: IterationRecord, parameters: FloatArray) -> bool:
            self.progress.show(record)
            return bool(callback is not None and callback(record, parameters))

        solver = copy.copy(self.solver)
        solver.max_iter = self.max_iter
        result: SolverResult = solver.solve(objective, start, report)
        self.progress.finish(result)
        return result
