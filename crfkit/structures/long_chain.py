"""One long sequence, cut into blocks that threads share.

For sums, each block of 65,536 tokens is first reduced to its transfer matrix, the sums over its
paths from each label before it to each label at its end (the matrices of Lafferty, McCallum and
Pereira 2001, section 3, multiplied associatively as in the parallel scans of Hassan, Sarkka and
Garcia-Fernandez 2021). Their products tell what enters each block from the left and from the right;
with these added to its first and last scores, a block is a sequence of its own, which the chain
sums in the workspace of one block. So is the entropy: that of the labels of a block, and of the one
before it, given the first of the next one, adds up to that of all.

For best paths, each block, or each eighth of one, and some tokens behind it, is a sequence of its
own, whose best paths soon meet when they are followed back. Where the path up to here and the paths
of the next run have a label in common, both go on in the same way: whatever came before adds the
same to all of them (the rank convergence of Maleki, Musuvathi and Mytkowicz 2014). Where they have
none, the path up to here goes on by itself.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import chain as chained
from typing import NamedTuple

import numpy as np

from crfkit._parallel import ThreadMap, cut
from crfkit._types import CodeArray, Counts, FloatArray
from crfkit.compiler.jit import frozen
from crfkit.compiler.simd import WIDTH
from crfkit.kernels.chain import parallel_viterbi as survivors
from crfkit.kernels.chain.blocks import block_transfer
from crfkit.kernels.chain.sum import UNDERFLOW
from crfkit.structures.base import NoPathError, Structure
from crfkit.structures.potentials import ChainPotentials, chain_arrays, exp_pair, exp_unary

# Tokens of a block. Never derived from the number of threads: sums would depend on it.
BLOCK_TOKENS = 1 << 16
# How many tokens the run of an eighth of a block goes on beyond its own, so that its best paths
# meet there; that of a block, and runs whose paths do not meet, go on so many times as far.
REACH, FURTHER = 1 << 9, 8
# So many blocks are tried, and at least that share of their runs must know more than their own.
PROBES, MOST = 8, 0.75
# Blocks whose runs are held at a time.
BATCH = 64


def sum_in_blocks(
    chain: Structure, scores: ChainPotentials, weight: FloatArray, out: Counts, threads: ThreadMap
) -> FloatArray:
    """Return log Z and the expected counts of one long sequence, in blocks over threads."""
    blocks, ends = _cut_and_sum(chain, scores, threads)
    if ends is None:
        return chain.log_partition(scores, weight, out)
    flows = threads(
        lambda block: _sum_block(chain, block, ends, weight, out.unary[block.tokens]), blocks
    )
    for flow in flows:
        out.pair[...] += flow
    return np.array([ends.log_z])


def entropy_in_blocks(chain: Structure, scores: ChainPotentials, threads: ThreadMap) -> FloatArray:
    """Return the entropy of the labels of one long sequence, shape (1,), in blocks over threads."""
    blocks, ends = _cut_and_sum(chain, scores, threads)
    if ends is None:
        return chain.entropy(scores)
    return np.array([sum(threads(lambda block: _entropy_of_block(chain, block, ends), blocks))])


def _cut_and_sum(
    chain: Structure, scores: ChainPotentials, threads: ThreadMap
) -> tuple[list[Block], Ends | None]:
    """Return the blocks of a sequence, and what enters them; None where blocks are of no use."""
    if scores.pair.size > BLOCK_TOKENS * scores.unary.shape[1]:  # many tables
        return [], None
    blocks = _cut(scores)
    factor, pair_shift = exp_pair(chain_arrays(scores))
    transfers = threads(lambda block: _transfer(block, factor, pair_shift), blocks)
    known = [transfer for transfer in transfers if transfer is not None]
    if len(known) < len(blocks):  # logarithms of transfer matrices take K times as long
        return [], None
    ends = _combine(known)
    if ends.dead >= 0:
        _raise_dead_end(chain, blocks[ends.dead], ends)
    return blocks, ends


def best_in_blocks(
    chain: Structure, scores: ChainPotentials, threads: ThreadMap
) -> tuple[CodeArray, FloatArray]:
    """Return the best path of one long sequence and its score, of paths of runs of tokens.

    It is that of the whole sequence, the lowest labels of equal paths too, where sums of scores are
    exact; where they are rounded, its score is the largest but for rounding.
    """
    labels = viterbi_in_blocks(scores, BLOCK_TOKENS, threads)
    if labels is None:
        return chain.argmax(scores)
    return labels, score_in_blocks(chain, scores, labels, threads)


def score_in_blocks(
    chain: Structure, scores: ChainPotentials, labels: CodeArray, threads: ThreadMap
) -> FloatArray:
    """Return the score of a path of one long sequence, shape (1,)."""
    blocks = _cut(scores)
    within = threads(
        lambda block: float(chain.score(block.scores, labels[block.tokens])[0]), blocks
    )
    starts = [block.tokens.start for block in blocks[1:]]
    tables = [block.first_table for block in blocks[1:]]
    between = scores.pair[tables, labels[np.subtract(starts, 1)], labels[starts]]
    return np.array([sum(within) + between.sum()])


class Block(NamedTuple):
    """A run of tokens of a long sequence."""

    number: int
    tokens: slice
    scores: ChainPotentials

    @property
    def first_table(self) -> int:
        """The table of the transition into the first token."""
        return int(self.scores.transition_index[0])

    def into(self, enter: FloatArray) -> FloatArray:
        """Return the scores of transitions into it, (K, K), plus logarithms of what enters."""
        return enter[:, None] + self.scores.pair[self.first_table]  # type: ignore[no-any-return]

    def entered_by(self, enter: FloatArray) -> ChainPotentials:
        """Return the block as a sequence of its own, given the logarithms of what enters it."""
        unary = self.scores.unary.copy()
        if self.number:
            unary[0] += _log_sums(self.into(enter), 0)
        return self.scores._replace(unary=unary)

    def between(self, enter: FloatArray, leave: FloatArray) -> ChainPotentials:
        """Return the label before the block and its own as a sequence, given what is around."""
        unary, table = self.scores.unary, self.scores.transition_index
        first = 1 if self.number else 0
        unary = np.concatenate([enter[None][:first], unary])
        unary[-1] += leave
        if len(table) > 1:
            table = np.concatenate([table[:first], table])
        return self.scores._replace(
            unary=unary, transition_index=table, offsets=np.array([0, len(unary)])
        )


class Ends(NamedTuple):
    """What enters the blocks of a sequence from both sides."""

    enter: list[FloatArray]  # (K,) log-probability of each label before a block, given the past
    leave: list[FloatArray]  # (K,) log of all that follows each last label, the largest one 0
    log_z: float
    dead: int  # the block in which all paths end, -1 if one is left


def _sum_block(
    chain: Structure, block: Block, ends: Ends, weight: FloatArray, unary: FloatArray
) -> FloatArray:
    """Write the marginals of a block; return its expected transitions, with that into it."""
    enter = ends.enter[block.number]
    entered = block.entered_by(enter)
    entered.unary[-1] += ends.leave[block.number]
    flow = np.zeros_like(entered.pair)
    chain.log_partition(entered, weight, Counts(unary, flow))
    if block.number:
        into = block.into(enter)
        share = _log_sums(into, 0)
        share[share == -np.inf] = 0.0  # nothing to share: the marginal is 0
        flow[block.first_table] += np.exp(into - share) * unary[0]
    return flow


def _entropy_of_block(chain: Structure, block: Block, ends: Ends) -> float:
    """Return the entropy of the labels of a block but the last, and of that before it.

    Given the label that comes next. Of the last block, with that of the last label.
    """
    leave = ends.leave[block.number]
    whole = float(chain.entropy(block.between(ends.enter[block.number], leave))[0])
    if block.number == len(ends.leave) - 1:
        return whole
    below = ends.enter[block.number + 1] + leave
    below -= below.max()
    shares = np.exp(below)
    lost = shares[shares > 0.0] @ below[shares > 0.0] / shares.sum()
    return max(whole - float(np.log(shares.sum()) - lost), 0.0)


def _raise_dead_end(chain: Structure, block: Block, ends: Ends) -> None:
    """Raise the error that names the position at which a block has no path left."""
    try:
        chain.argmax(block.entered_by(ends.enter[block.number]))
    except NoPathError as error:
        raise NoPathError(error.sequence, block.tokens.start + error.position) from None


def _cut(scores: ChainPotentials) -> list[Block]:
    """Cut a sequence into blocks."""
    table, blocks = scores.transition_index, []
    for number, tokens in enumerate(cut(slice(0, len(scores.unary)), BLOCK_TOKENS)):
        part = scores._replace(
            unary=scores.unary[tokens], offsets=np.array([0, tokens.stop - tokens.start]),
            transition_index=table[tokens] if len(table) > 1 else table,
        )  # fmt: skip
        blocks.append(Block(number, tokens, part))
    return blocks


def _transfer(block: Block, factor: FloatArray, pair_shift: FloatArray) -> FloatArray | None:
    """Return the logarithms of the transfer matrix of a block, (K, K); None if spread too far."""
    unary, table = block.scores.unary, block.scores.transition_index
    begins, n_labels, scores = block.number == 0, unary.shape[1], chain_arrays(block.scores)
    node, shift = exp_unary(scores)
    work = np.empty((2, n_labels))
    rows, log_scale = np.empty((n_labels, n_labels)), np.empty(n_labels)
    status = block_transfer(scores, node, factor, begins, work[0], work[1], rows, log_scale)
    if status == UNDERFLOW:
        return None
    steps = pair_shift[table] if len(table) > 1 else np.full(len(unary), pair_shift[table[0]])
    with np.errstate(divide="ignore"):
        moved: FloatArray = np.log(rows)
    moved += log_scale[:, None] + (shift.sum() + steps[int(begins) :].sum())
    return moved


def _combine(transfers: list[FloatArray]) -> Ends:
    """Multiply transfer matrices from both sides."""
    n_labels = len(transfers[0])
    enter, leave = [np.full(n_labels, -np.log(n_labels))], [np.zeros(n_labels)]
    total = 0.0
    for index, transfer in enumerate(transfers):
        after = _log_sums(enter[-1][:, None] + transfer, 0)
        norm = float(_log_sums(after, 0))
        if norm == -np.inf:
            return Ends(enter, leave, -np.inf, index)
        total += norm
        enter.append(after - norm)
    for transfer in transfers[:0:-1]:
        before = _log_sums(transfer + leave[-1], 1)
        leave.append(before - before.max())
    return Ends(enter, leave[::-1], total, -1)


def _log_sums(values: FloatArray, axis: int) -> FloatArray:
    """Return logarithms of sums of exponentials; ``-inf`` for no mass at all."""
    top = values.max(axis=axis, keepdims=True)
    top[top == -np.inf] = 0.0
    with np.errstate(divide="ignore"):
        sums: FloatArray = np.log(np.exp(values - top).sum(axis=axis)) + top.squeeze(axis)
    return sums


class NoPathLeft(Exception):
    """All paths of a run have ended."""


class Run(NamedTuple):
    """A run of tokens of a long sequence, taken as a sequence of its own."""

    own: slice  # the tokens for which it was made
    labels: CodeArray  # what all its best paths share, from its first token on
    goes_on: bool  # whether these are more than its own


# Makes the runs of a block that reach so many tokens beyond it.
Way = Callable[[ChainPotentials, int, slice], list[Run]]


def viterbi_in_blocks(scores: ChainPotentials, size: int, threads: ThreadMap) -> CodeArray | None:
    """Return the labels of the best path, (N,), in blocks; None where one piece is better."""
    blocks = cut(slice(0, len(scores.unary)), size)
    few = len(scores.transition_index) == 1 and scores.unary.shape[1] <= survivors.MAX_LABELS
    ways: list[tuple[Way, int]] = [(_side_by_side, REACH)] * few + [(_one_by_one, FURTHER * REACH)]
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
        runs = list(chained(*threads(partial(way, scores, reach), blocks[batch])))
        if batch.start is None and sum(run.goes_on for run in runs) < MOST * len(runs):
            return None
        for run in threads(partial(_further, scores, reach), runs):
            path.join(run)
    return path.labels


def _one_by_one(scores: ChainPotentials, reach: int, block: slice) -> list[Run]:
    """Return the run of a block."""
    return [_run(scores, block, block.stop + reach)]


def _side_by_side(scores: ChainPotentials, reach: int, block: slice) -> list[Run]:
    """Return the runs of the eighths of a block, whose transitions share one."""
    apart, rest = divmod(block.stop - block.start, WIDTH)
    if rest or block.stop + reach > len(scores.unary):
        return _one_by_one(scores, reach, block)
    n_labels, length = scores.unary.shape[1], apart + reach
    best, back = np.empty((2, n_labels, WIDTH)), np.empty((length, WIDTH))
    unary, table = scores.unary[block.start : block.stop + reach], int(scores.transition_index[0])
    survivors.lanes_best(frozen(unary), frozen(scores.pair), table, apart, best, back)
    alive = np.zeros((2, n_labels), np.int32)
    label, known = np.empty((2, WIDTH), np.int32)
    labels: CodeArray = np.empty((WIDTH, length), np.int32)
    survivors.lanes_meet(frozen(best), frozen(back), alive, label, labels, known)
    if (known == survivors.DEAD).any():
        raise NoPathLeft
    parts = zip(cut(block, apart), labels, known.tolist(), strict=True)
    return [Run(own, row[:count], count > apart) for own, row, count in parts]


def _further(scores: ChainPotentials, reach: int, run: Run) -> Run:
    """Return the run, again and further if it does not go on."""
    return run if run.goes_on else _run(scores, run.own, run.own.stop + FURTHER * reach)


def _run(scores: ChainPotentials, own: slice, stop: int, label: int | None = None) -> Run:
    """Return the run that looks at the tokens up to `stop`; its first may only have that label."""
    table, tokens = frozen(scores.transition_index), slice(own.start, stop)
    unary, table = frozen(scores.unary[tokens]), table[tokens] if len(table) > 1 else table
    pair, ends = frozen(scores.pair), stop >= len(scores.unary)
    best = np.empty_like(unary)
    best[0] = unary[0]
    if label is not None:
        best[0] = -np.inf
        best[0, label] = 0.0
    survivors.survivors_best(unary, pair, table, best)
    labels: CodeArray = np.empty(len(unary), np.int32)
    alive = np.zeros((2, unary.shape[1]), np.int32)
    known = survivors.survivors_meet(pair, table, ends, alive, best, labels)
    if known == survivors.DEAD:
        raise NoPathLeft
    return Run(own, labels[:known], ends or known > own.stop - own.start)


class _Path:
    """The best path of a sequence, as far as it is known."""

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
