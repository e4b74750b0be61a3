"""The only module that imports joblib: map work over threads, results in order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from types import TracebackType
from typing import Self, TypeVar

import joblib

from crfkit._params import check_whole

Item = TypeVar("Item")
Result = TypeVar("Result")

# Work is handed to a thread in runs of items, so that the price of a hand-over is paid a few times
# an evaluation and not once an item.
RUNS_PER_WORKER = 4


class ThreadMap:
    """Map functions over items with a pool of threads that lives as long as the context.

    The results come in the order of the items, so that a sum over them is the same to the last
    bit for any number of threads. Joblib says how many threads `n_jobs` means, which depends on
    ``joblib.parallel_config`` and on whether this is a worker process already; the threads
    themselves are the standard library's, because joblib looks for results only every 10 ms, a
    tenth of what an evaluation may take.

    Parameters
    ----------
    n_jobs : int or None
        Number of threads as in scikit-learn: None is 1 (or what ``joblib.parallel_config`` says),
        -1 all cores, -2 all but one.

    Raises
    ------
    TypeError
        If `n_jobs` is not a whole number.
    ValueError
        If `n_jobs` is 0.
    """

    def __init__(self, n_jobs: int | None) -> None:
        if n_jobs is not None:
            check_whole("n_jobs", n_jobs, None)
        if n_jobs == 0:
            raise ValueError("n_jobs=0 has no meaning; use 1, a number of threads, or -1 for all.")
        self.n_workers: int = 1 if n_jobs == 1 else joblib.effective_n_jobs(n_jobs)
        self._pool: ThreadPoolExecutor | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)
            self._pool = None

    def __call__(self, function: Callable[[Item], Result], items: Sequence[Item]) -> list[Result]:
        """Return ``[function(item) for item in items]``."""
        if self.n_workers == 1 or len(items) <= 1:
            return [function(item) for item in items]
        if self._pool is None:  # made when the first work for it comes
            self._pool = ThreadPoolExecutor(self.n_workers)
        size = -(-len(items) // (self.n_workers * RUNS_PER_WORKER))
        runs = [items[i : i + size] for i in range(0, len(items), size)]
        mapped = self._pool.map(lambda run: [function(item) for item in run], runs)
        return [result for run in mapped for result in run]
