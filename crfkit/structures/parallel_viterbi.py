"""The best path of one long sequence, found in runs of tokens that threads share."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import chain
from typing import NamedTuple

import numpy as np

from crfkit._parallel import ThreadMap
from crfkit._types import CodeArray
from crfkit.compiler.jit import frozen
from crfkit.compiler.simd import WIDTH
from crfkit.data.chunks import cut
from crfkit.kernels.chain import parallel_viterbi as kernels
from crfkit.structures.potentials import ChainPotentials

# How many tokens the run of an eighth of a block goes on beyond its own, so that its best paths
# meet there; that of a block, and runs whose paths do not meet, go on so many times as far.
REACH, FURTHER = 1 << 9, 8
# So many blocks are tried, and at least that share of their runs must know more than their own.
PROBES, MOST = 8, 0.75
# Blocks whose runs are held at a time.
BATCH = 64


class NoPathLeft(Exception):
    """All paths of a run have ended."""


class Run(NamedTuple):
    """A run of tokens of a long sequence, taken as a sequence of its own.

    Attributes
    ----------
    own : slice
        The tokens for which it was made.
    labels : ndarray
        What all its best paths share, from its first token on.
    goes_on : bool
        Whether these are more than its own.
    """

    own: slice
    labels: CodeArray
    goes_on: bool


Way = Callable[[ChainPotentials, int, slice], list[Run]]


def viterbi_in_blocks(scores: ChainPotentials, size: int, threads: ThreadMap) -> CodeArray | None:
    """Return the labels of the best path of a sequence, shape (N,), in blocks over threads.

    Each block, or each eighth of one, and some tokens behind it, is a sequence of its own, whose
    best paths soon meet when they are followed back. Where the path up to here and the paths of the
    next run have a label in common, both go on in the same way: whatever came before adds the same
    to all of them (the rank convergence of Maleki, Musuvathi and Mytkowicz 2014). Where they have
    none, the path up to here goes on by itself. The number of threads changes nothing.

    Parameters
    ----------
    scores : ChainPotentials
        Of one sequence.
    size : int
        Tokens of a block.
    threads : ThreadMap
        An open pool.

    Returns
    -------
    ndarray of shape (N,), or None
        None where it had better be found in one piece: no path is left, or best paths do not meet.
    """
    blocks = cut(slice(0, len(scores.unary)), size)
    few = len(scores.transition_index) == 1 and scores.unary.shape[1] <= kernels.MAX_LABELS
    ways: list[tuple[Way, int]] = [(side_by_side, REACH)] * few + [(one_by_one, FURTHER * REACH)]
    try:
        for way, reach in ways:
            labels = _labels_by(way, scores, reach, blocks, threads)
            if labels is not None:
                return labels
    except NoPathLeft:
        pass
    return None


def _labels_by(
    way: Way, scores: ChainPotentials, reach: int, blocks: list[slice], threads: ThreadMap
) -> CodeArray | None:
    """Return the labels of the best path by runs of one kind; None if few of them go on."""
    path = _Path(scores)
    for batch in (slice(PROBES), *cut(slice(PROBES, len(blocks)), BATCH)):
        parts = threads(partial(way, scores, reach), blocks[batch])
        runs = list(chain.from_iterable(parts))
        if batch.start is None and sum(run.goes_on for run in runs) < MOST * len(runs):
            return None
        for run in threads(partial(_further, scores, reach), runs):
            path.join(run)
    return path.labels


def one_by_one(scores: ChainPotentials, reach: int, block: slice) -> list[Run]:
    """Return the run of a block."""
    return [_run(scores, block, block.stop + reach)]


def side_by_side(scores: ChainPotentials, reach: int, block: slice) -> list[Run]:
    """Return the runs of the eighths of a block, whose transitions share one."""
    apart, rest = divmod(block.stop - block.start, WIDTH)
    if rest or block.stop + reach > len(scores.unary):
        return one_by_one(scores, reach, block)
    n_labels, length = scores.unary.shape[1], apart + reach
    best, back = np.empty((2, n_labels, WIDTH)), np.empty((length, WIDTH))
    unary, table = scores.unary[block.start : block.stop + reach], int(scores.transition_index[0])
    kernels.lanes_best(unary, scores.pair, table, apart, best, back)
    alive = np.zeros((2, n_labels), np.int32)
    label, known = np.empty((2, WIDTH), np.int32)
    labels: CodeArray = np.empty((WIDTH, length), np.int32)
    kernels.lanes_meet(frozen(best), frozen(back), alive, label, labels, known)
    if (known == kernels.DEAD).any():
        raise NoPathLeft
    parts = zip(cut(block, apart), labels, known.tolist(), strict=True)
    return [Run(own, row[:count], count > apart) for own, row, count in parts]


def _further(scores: ChainPotentials, reach: int, run: Run) -> Run:
    """Return the run, again and further if it does not go on."""
    return run if run.goes_on else _run(scores, run.own, run.own.stop + FURTHER * reach)


def _run(scores: ChainPotentials, own: slice, stop: int, label: int | None = None) -> Run:
    """Return the run that looks at the tokens up to `stop`; its first may only have that label.

    Raises
    ------
    NoPathLeft
        If it has no path of finite score.
    """
    table, tokens = scores.transition_index, slice(own.start, stop)
    unary, table = scores.unary[tokens], table[tokens] if len(table) > 1 else table
    ends = stop >= len(scores.unary)
    best = np.empty_like(unary)
    best[0] = unary[0]
    if label is not None:
        best[0] = -np.inf
        best[0, label] = 0.0
    kernels.survivors_best(unary, scores.pair, table, best)
    labels: CodeArray = np.empty(len(unary), np.int32)
    alive = np.zeros((2, unary.shape[1]), np.int32)
    known = kernels.survivors_meet(scores.pair, table, ends, alive, best, labels)
    if known == kernels.DEAD:
        raise NoPathLeft
    return Run(own, labels[:known], ends or known > own.stop - own.start)


class _Path:
    """The best path of a sequence, as far as it is known.

    Parameters
    ----------
    scores : ChainPotentials
        Of the sequence.
    """

    def __init__(self, scores: ChainPotentials) -> None:
        self.scores = scores
        self.labels: CodeArray = np.empty(len(scores.unary), np.int32)
        self.known, self.reach = 0, FURTHER * REACH

    def join(self, run: Run) -> None:
        """Go over to a run where it meets the path, else pass its own tokens."""
        own, labels = run.own, run.labels
        while self.known < own.stop:
            meeting = _meeting(self.labels[own.start : self.known], labels) if own.start else 0
            if meeting is not None:
                end, self.reach = own.start + len(labels), FURTHER * REACH
                # Where the path goes on further, it does so from its own labels, not from others.
                if end > self.known:
                    self.labels[own.start + meeting : end] = labels[meeting:]
                    self.known = end
                return
            self._go_on(self.known + self.reach)
            self.reach *= FURTHER

    def _go_on(self, stop: int) -> None:
        """Look at the tokens up to `stop`, given the last label that is known."""
        begin = max(self.known - 1, 0)
        label = int(self.labels[begin]) if self.known else None
        more = _run(self.scores, slice(begin, stop), stop, label).labels
        self.known = begin + len(more)
        self.labels[begin : self.known] = more


def _meeting(path: CodeArray, labels: CodeArray) -> int | None:
    """Return the first place where two paths have the same label, if there is one."""
    size = min(len(path), len(labels))
    same = path[:size] == labels[:size]
    return int(same.argmax()) if same.any() else None
