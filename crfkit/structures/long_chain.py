"""One long sequence, cut into blocks that threads share."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from crfkit._parallel import ThreadMap
from crfkit._types import CodeArray, Counts, FloatArray, IdArray, Potentials
from crfkit.compiler.jit import frozen
from crfkit.data.chunks import LONG_TOKENS, cut
from crfkit.kernels.chain import blocks as kernels
from crfkit.kernels.chain import sum as chain_kernels
from crfkit.structures.base import NoPathError, Structure
from crfkit.structures.chain import Chain, _exp_pair, _frozen_scores
from crfkit.structures.interleaved import InterleavedChain
from crfkit.structures.parallel_viterbi import viterbi_in_blocks

# Tokens of a block. Never derived from the number of threads: sums would depend on it.
BLOCK_TOKENS = 1 << 16


def split_over(structure: Structure, threads: ThreadMap) -> Structure:
    """Return the structure for data that have all threads to themselves.

    Parameters
    ----------
    structure : Structure
        What one thread would use.
    threads : ThreadMap
        An open pool.
    """
    return LongChain(threads) if type(structure) is Chain else structure


class LongChain(InterleavedChain):
    """A :class:`Chain` that works on one long sequence in blocks, over threads, exactly.

    For sums, each block of 65,536 tokens is first reduced to its transfer matrix, the sums over its
    paths from each label before it to each label at its end (the matrices of Lafferty, McCallum and
    Pereira 2001, section 3, multiplied associatively as in the parallel scans of Hassan, Sarkka and
    Garcia-Fernandez 2021). Their products tell what enters each block from the left and from the
    right; with these added to its first and last scores, a block is a sequence of its own, which
    :meth:`Chain.sum` sums in the workspace of one block. The result is the same to the last bit for
    any number of threads, and that of :class:`Chain` but for rounding.

    The best path is put together from those of runs of tokens (:func:`viterbi_in_blocks`). It is
    that of :class:`Chain`, the lowest labels of equal paths too, where sums of scores are exact;
    where they are rounded, its score is the largest but for rounding.

    Parameters
    ----------
    threads : ThreadMap
        An open pool.
    """

    def __init__(self, threads: ThreadMap) -> None:
        self.threads = threads

    def sum(self, scores: Potentials, weight: FloatArray, out: Counts) -> FloatArray:
        """Return log Z and the expected counts as :meth:`Chain.sum`.

        Raises
        ------
        NoPathError
            If a sequence has no path of finite score.
        """
        many_tables = scores.pair.size > BLOCK_TOKENS * scores.unary.shape[1]
        if not _is_long(scores) or many_tables:
            return super().sum(scores, weight, out)
        blocks = _cut(_frozen_scores(scores))
        factor, pair_shift = (frozen(array) for array in _exp_pair(scores))
        moves = self.threads(lambda block: _transfer(block, factor, pair_shift), blocks)
        ends = _combine(moves)
        if ends.dead >= 0:
            self._raise_dead_end(blocks[ends.dead], ends)
        flows = self.threads(
            lambda block: self._sum_block(block, ends, weight, out.unary[block.tokens]), blocks
        )
        for flow in flows:
            out.pair[...] += flow
        return np.array([ends.log_z])

    def max(self, scores: Potentials) -> tuple[CodeArray, FloatArray]:
        """Return the labels of the best path and its score as :meth:`Chain.max`.

        Raises
        ------
        NoPathError
            If a sequence has no path of finite score.
        """
        if not _is_long(scores):
            return super().max(scores)
        labels = viterbi_in_blocks(_frozen_scores(scores), BLOCK_TOKENS, self.threads)
        return super().max(scores) if labels is None else (labels, self.score(scores, labels))

    def score(self, scores: Potentials, labels: CodeArray) -> FloatArray:
        """Return the score of the path of each sequence as :meth:`Chain.score`."""
        if not _is_long(scores):
            return super().score(scores, labels)
        blocks = _cut(_frozen_scores(scores))
        within = self.threads(lambda block: self._score_block(block, labels[block.tokens]), blocks)
        starts = [block.tokens.start for block in blocks[1:]]
        tables = [block.first_step for block in blocks[1:]]
        between = scores.pair[tables, labels[np.subtract(starts, 1)], labels[starts]]
        return np.array([sum(within) + between.sum()])

    def _score_block(self, block: Block, labels: CodeArray) -> float:
        """Return the score of the path within a block."""
        return float(super().score(block.scores, labels)[0])

    def _sum_block(
        self, block: Block, ends: Ends, weight: FloatArray, unary: FloatArray
    ) -> FloatArray:
        """Write the marginals of a block; return its expected steps, with that into it."""
        enter, last = ends.enter[block.number], ends.leave[block.number]
        entered = block.entered_by(enter)
        entered.unary[-1] += last
        flow = np.zeros_like(entered.pair)
        super().sum(entered, weight, Counts(unary, flow))
        if block.number:
            into = enter[:, None] + block.first_table
            share = _log_sums(into, 0)
            share[share == -np.inf] = 0.0  # nothing to share: the marginal is 0
            flow[block.first_step] += np.exp(into - share) * unary[0]
        return flow

    def _raise_dead_end(self, block: Block, ends: Ends) -> None:
        """Raise the error that names the position at which a block has no path left."""
        entered = block.entered_by(ends.enter[block.number])
        try:
            super().sum(entered, np.ones(1), self.empty(entered))
        except NoPathError as error:
            raise NoPathError(error.sequence, block.tokens.start + error.position) from None


class Block(NamedTuple):
    """A run of tokens of a long sequence."""

    number: int
    tokens: slice
    scores: Potentials

    @property
    def first_step(self) -> int:
        """The table of the step into the first token."""
        return int(self.scores.transition_index[0])

    @property
    def first_table(self) -> FloatArray:
        """The scores of the step into the first token, shape (K, K)."""
        table: FloatArray = self.scores.pair[self.first_step]
        return table

    def entered_by(self, enter: FloatArray) -> Potentials:
        """Return the block as a sequence of its own, given the logarithms of what enters it."""
        unary = self.scores.unary.copy()
        if self.number:
            unary[0] += _log_sums(enter[:, None] + self.first_table, 0)
        return self.scores._replace(unary=unary)


class Ends(NamedTuple):
    """What enters the blocks of a sequence from both sides.

    Attributes
    ----------
    enter : list of ndarrays of shape (K,)
        Log-probability of each label of the token before a block, given the past.
    leave : list of ndarrays of shape (K,)
        Logarithm of the sum over all that follows each label of the last token of a block, the
        largest one 0.
    log_z : float
        Log Z of the sequence.
    dead : int
        The block in which all paths end, -1 if one is left.
    """

    enter: list[FloatArray]
    leave: list[FloatArray]
    log_z: float
    dead: int


def _is_long(scores: Potentials) -> bool:
    """Whether this is one sequence that is worth being cut."""
    return len(scores.offsets) == 2 and len(scores.unary) > LONG_TOKENS


def _cut(scores: Potentials) -> list[Block]:
    """Cut a sequence into blocks."""
    table, blocks = scores.transition_index, []
    for number, tokens in enumerate(cut(slice(0, len(scores.unary)), BLOCK_TOKENS)):
        offsets = np.array([0, tokens.stop - tokens.start])
        steps: IdArray = table[tokens] if len(table) > 1 else table
        part = Potentials(scores.unary[tokens], scores.pair, offsets, scores.first, steps)
        blocks.append(Block(number, tokens, part))
    return blocks


def _transfer(block: Block, factor: FloatArray, pair_shift: FloatArray) -> FloatArray:
    """Return the logarithms of the transfer matrix of a block, shape (K, K)."""
    unary, pair, table = (
        block.scores.unary,
        block.scores.pair,
        frozen(block.scores.transition_index),
    )
    begins, n_labels = block.number == 0, unary.shape[1]
    node, shift = np.empty_like(unary), np.empty(len(unary))
    chain_kernels.chain_shift(unary, node, shift)
    np.exp(node, out=node)
    fresh, product = np.empty((2, n_labels))
    rows, log_scale = np.empty((n_labels, n_labels)), np.empty(n_labels)
    status = kernels.block_transfer(
        unary, frozen(node), pair, factor, table, begins, fresh, product, rows, log_scale
    )
    if status == chain_kernels.UNDERFLOW:
        kernels.block_transfer_log(unary, pair, table, begins, fresh, rows, log_scale)
        return rows + log_scale[:, None]
    steps = pair_shift[table] if len(table) > 1 else np.full(len(unary), pair_shift[table[0]])
    with np.errstate(divide="ignore"):
        moved: FloatArray = np.log(rows)
    moved += log_scale[:, None] + (shift.sum() + steps[int(begins) :].sum())
    return moved


def _combine(moves: list[FloatArray]) -> Ends:
    """Multiply transfer matrices from both sides."""
    n_labels = len(moves[0])
    enter, leave = [np.full(n_labels, -np.log(n_labels))], [np.zeros(n_labels)]
    total = 0.0
    for index, move in enumerate(moves):
        after = _log_sums(enter[-1][:, None] + move, 0)
        norm = float(_log_sums(after, 0))
        if norm == -np.inf:
            return Ends(enter, leave, -np.inf, index)
        total += norm
        enter.append(after - norm)
    for move in moves[:0:-1]:
        before = _log_sums(move + leave[-1], 1)
        leave.append(before - before.max())
    return Ends(enter, leave[::-1], total, -1)


def _log_sums(values: FloatArray, axis: int) -> FloatArray:
    """Return logarithms of sums of exponentials; ``-inf`` for no mass at all."""
    top = values.max(axis=axis, keepdims=True)
    top[top == -np.inf] = 0.0
    with np.errstate(divide="ignore"):
        sums: FloatArray = np.log(np.exp(values - top).sum(axis=axis)) + top.squeeze(axis)
    return sums
