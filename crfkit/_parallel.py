"""Work in units that do not depend on the number of threads, and threads that share it.

The only module that imports joblib.
"""

from __future__ import annotations

import copy
import ctypes
import gc
import multiprocessing
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import cached_property
from itertools import pairwise
from types import TracebackType
from typing import Any, ClassVar, NamedTuple, Protocol, Self, TypeVar

import joblib
import numpy as np

from crfkit._params import check_whole
from crfkit._types import IntArray

Item = TypeVar("Item")
Result = TypeVar("Result")

# Scores of a chunk (tokens x labels) at most: what is done once a chunk, by the interpreter, then
# takes a few percent of the time, and arrays of chunks are not far from the second-level cache.
CHUNK_CELLS = 200_000
# Data of more than this part of a chunk are cut in two, for two threads; chunks are made even where
# so many times the longest sequence fits into one.
WORTH_CUTTING, EVEN = 4, 4
# Pair scores of a chunk at most, where each token may have a table of its own: 32 MiB.
PAIR_CELLS = 1 << 22
# A kernel that updates weights takes the tokens of so many chunks before Ctrl-C is heard again.
CHUNKS_AT_ONCE = 4
# A sequence of more tokens has all threads to itself.
LONG_TOKENS = 1 << 17
# Chunks of a block for each of several threads, that few wait for others at its end. Scores of a
# block at most, the largest array that is kept: 64 MiB.
CHUNKS_EACH = 2
BLOCK_CELLS = 1 << 23
# It takes a millisecond to give memory back.
WORTHWHILE = 1 << 22
FEW_LISTS = 500  # that the garbage collector may look at


class Chunk(NamedTuple):
    """A run of consecutive sequences, the unit of work of one thread."""

    first: int  # index of the first sequence in the whole data set
    offsets: IntArray  # (S + 1,) tokens of it at which the sequences start, and the end

    @property
    def tokens(self) -> slice:
        """The tokens of the chunk within the whole data set."""
        return slice(int(self.offsets[0]), int(self.offsets[-1]))

    @property
    def sequences(self) -> slice:
        """The sequences of the chunk within the whole data set."""
        return slice(self.first, self.first + len(self.offsets) - 1)


class ThreadMap:
    """Map functions over items with a pool of threads that lives as long as the context.

    The results come in the order of the items, so that a sum over them is the same to the last
    bit for any number of threads. Joblib says how many threads `n_jobs` means, which depends on
    ``joblib.parallel_config`` and on whether this is a worker process already; the threads
    themselves are the standard library's, because joblib looks for results only every 10 ms, a
    tenth of what an evaluation may take. The calling thread is one of them. ValueError or TypeError
    if `n_jobs` is 0 or no whole number.
    """

    def __init__(self, n_jobs: int | None) -> None:
        if n_jobs is not None:
            check_whole("n_jobs", n_jobs, None)
        if n_jobs == 0:
            raise ValueError("n_jobs=0 has no meaning; use 1, a number of threads, or -1 for all.")
        self._n_jobs = n_jobs
        self._pool: ThreadPoolExecutor | None = None

    @cached_property
    def n_workers(self) -> int:
        """The number of threads; joblib takes its time to tell."""
        return 1 if self._n_jobs == 1 else int(joblib.effective_n_jobs(self._n_jobs))

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
        """Return ``[function(item) for item in items]``, or raise the first item's error."""
        if len(items) < 2 or self.n_workers == 1:
            return list(map(function, items))
        helpers = min(self.n_workers, len(items)) - 1
        if self._pool is None:  # made when the first work for it comes
            self._pool = ThreadPoolExecutor(self.n_workers - 1)
        work = _Work(function, items)
        futures = [self._pool.submit(work.run) for _ in range(helpers)]
        try:
            work.run()
        finally:
            work.stop()
            for future in futures:
                if not future.cancel():
                    future.exception()  # waits; nobody may still write when the caller goes on
        for future in futures:
            if not future.cancelled():
                future.result()
        if work.errors:
            raise work.errors.pop(min(work.errors))
        return work.results


class _Work:
    """Items that several threads take one after the other."""

    def __init__(self, function: Callable[[Any], Any], items: Sequence[Any]) -> None:
        self.function, self.items = function, items
        self.results: list[Any] = [None] * len(items)
        self.errors: dict[int, Exception] = {}
        self._next = 0
        self._lock = threading.Lock()

    def run(self) -> None:
        """Work until no item is left."""
        try:
            while (index := self._take()) is not None:
                self._do(index)
        except BaseException:
            self.stop()
            raise

    def _do(self, index: int) -> None:
        try:
            self.results[index] = self.function(self.items[index])
        except Exception as error:
            # All items before this one have been begun: the first error of all is among those kept.
            self.errors[index] = error
            self.stop()

    def stop(self) -> None:
        """Leave what nobody has begun."""
        with self._lock:
            self._next = len(self.items)

    def _take(self) -> int | None:
        with self._lock:
            index = self._next
            self._next += 1
        return index if index < len(self.items) else None


# Does all work in the thread of the caller.
SERIAL = ThreadMap(1)


def free_cores() -> int | None:
    """Return the `n_jobs` that takes all cores, at most ``OMP_NUM_THREADS``.

    None, which lets joblib tell, where it is in use: in its workers that is one thread, as there
    are others beside it.
    """
    backend, told = joblib.parallel.get_active_backend()
    if told is not None or backend.nesting_level or multiprocessing.current_process().daemon:
        return None
    cores, limit = int(joblib.cpu_count()), os.environ.get("OMP_NUM_THREADS", "")
    return min(cores, int(limit)) if limit.isdigit() and int(limit) else cores


class Worker(Protocol):
    """What may share its work, if it `uses_threads`, over the open pool `threads`."""

    uses_threads: ClassVar[bool]
    threads: ThreadMap | None


SomeWorker = TypeVar("SomeWorker", bound=Worker)


def with_threads(worker: SomeWorker, threads: ThreadMap) -> SomeWorker:
    """Return a worker that has all threads of an open pool to itself, if it has a use for them."""
    if not worker.uses_threads:
        return worker
    threaded = copy.copy(worker)
    threaded.threads = threads
    return threaded


def return_memory(n_bytes: int) -> None:
    """Give the system back what the C library keeps of about so many bytes that were freed."""
    if n_bytes >= WORTHWHILE:
        with suppress(OSError, AttributeError, TypeError):  # other libraries keep less, or none
            ctypes.CDLL(None).malloc_trim(0)


def chunk_tokens(n_labels: int, *, own_transitions: bool) -> int:
    """Return the number of tokens of a chunk.

    At least K: what a chunk does once for all K x K pairs then does not dominate. Fewer, where
    transitions have pair scores of their own and their tables would grow large.
    """
    tokens = max(n_labels, CHUNK_CELLS // n_labels)
    return max(1, min(tokens, PAIR_CELLS // n_labels**2)) if own_transitions else tokens


def make_chunks(offsets: IntArray, tokens: int) -> list[Chunk]:
    """Cut sequences into chunks of about that many tokens; a sequence is never cut."""
    chunks, first = [], 0
    count = len(offsets) - 1
    if count > 0 and offsets[-1] - offsets[0] <= tokens:
        return [Chunk(0, offsets)]
    while first < count:
        last = int(np.searchsorted(offsets, offsets[first] + tokens, side="right")) - 1
        last = min(max(last, first + 1), count)
        chunks.append(Chunk(first, offsets[first : last + 1]))
        first = last
    return chunks


def even_chunks(offsets: IntArray, tokens: int) -> list[Chunk]:
    """Cut sequences into an even number of chunks of about equal size, no more than that.

    So that two threads end together. Little data, and such with a long sequence, are cut by
    `make_chunks`.
    """
    total, longest = int(offsets[-1] - offsets[0]), int(np.diff(offsets).max(initial=0))
    count = 2 * -(-total // (2 * max(tokens - longest, 1)))
    size = -(-total // max(count, 1)) + longest
    if WORTH_CUTTING * total <= tokens or EVEN * longest > size:
        return make_chunks(offsets, tokens)
    aims = int(offsets[0]) + total * np.arange(1, count) // count
    edges = [0, *np.searchsorted(offsets, aims).tolist(), len(offsets) - 1]
    return [Chunk(a, offsets[a : b + 1]) for a, b in pairwise(edges)]


def cut_order(order: IntArray, lengths: IntArray, tokens: int) -> list[IntArray]:
    """Cut a list of sequences, of given lengths (S,), into runs of about that many tokens."""
    offsets = np.concatenate([[0], np.cumsum(lengths[order])])
    return [order[chunk.sequences] for chunk in make_chunks(offsets, tokens)]


def is_long(chunk: Chunk) -> bool:
    """Whether a chunk is one sequence that is long enough to be split over threads."""
    return int(chunk.offsets[-1] - chunk.offsets[0]) > LONG_TOKENS


def cut(tokens: slice, size: int) -> list[slice]:
    """Cut a run of tokens into pieces of `size` tokens; no tokens are one piece."""
    starts = range(tokens.start, max(tokens.stop, tokens.start + 1), size)
    return [slice(begin, min(begin + size, tokens.stop)) for begin in starts]


def make_blocks(chunks: list[Chunk], cells: list[int], n_threads: int) -> list[list[Chunk]]:
    """Group consecutive chunks of so many scores into blocks for threads to share.

    A block has `CHUNKS_EACH` for each thread, or one where there is one thread; fewer, if they have
    more than `BLOCK_CELLS` scores. A sequence that threads share stands alone.
    """
    blocks: list[list[Chunk]] = []
    most, total = CHUNKS_EACH * n_threads if n_threads > 1 else 1, 0
    for chunk, size in zip(chunks, cells, strict=True):
        is_alone = is_long(chunk)
        if not blocks or len(blocks[-1]) == most or total + size > BLOCK_CELLS or is_alone:
            blocks.append([])
            total = 0
        blocks[-1].append(chunk)
        total = BLOCK_CELLS if is_alone else total + size
    return blocks


@contextmanager
def without_collection(n_lists: int) -> Iterator[None]:
    """Pause the garbage collector while many lists are made: it would look at all again and again.

    It looks at the new ones once, at the end, and not at all that there is as soon as it may.
    """
    pauses = n_lists > FEW_LISTS and gc.isenabled()
    if pauses:
        gc.disable()
    try:
        yield
    finally:
        if pauses:
            gc.collect(0)
            gc.enable()
