"""One long sequence, cut into blocks that threads share."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from crfkit._parallel import ThreadMap
from crfkit._types import CodeArray, Counts, FloatArray, IdArray
from crfkit.data.chunks import cut
from crfkit.kernels.chain import blocks as kernels
from crfkit.kernels.chain.sum import UNDERFLOW
from crfkit.structures.base import NoPathError, Structure
from crfkit.structures.parallel_viterbi import viterbi_in_blocks
from crfkit.structures.potentials import ChainPotentials, chain_arrays, exp_pair, exp_unary

# Tokens of a block. Never derived from the number of threads: sums would depend on it.
BLOCK_TOKENS = 1 << 16


def sum_in_blocks(
    chain: Structure, scores: ChainPotentials, weight: FloatArray, out: Counts, threads: ThreadMap
) -> FloatArray:
    """Return log Z and the expected counts of one long sequence, exactly, in blocks over threads.

    Each block of 65,536 tokens is first reduced to its transfer matrix, the sums over its paths
    from each label before it to each label at its end (the matrices of Lafferty, McCallum and
    Pereira 2001, section 3, multiplied associatively as in the parallel scans of Hassan, Sarkka and
    Garcia-Fernandez 2021). Their products tell what enters each block from the left and from the
    right; with these added to its first and last scores, a block is a sequence of its own, which
    the chain sums in the workspace of one block. The result is the same to the last bit for any
    number of threads, and that of the whole sequence but for rounding.

    Raises
    ------
    NoPathError
        If the sequence has no path of finite score.
    """
    if scores.pair.size > BLOCK_TOKENS * scores.unary.shape[1]:  # many tables
        return chain.log_partition(scores, weight, out)
    blocks = _cut(scores)
    factor, pair_shift = exp_pair(chain_arrays(scores))
    transfers = threads(lambda block: _transfer(block, factor, pair_shift), blocks)
    ends = _combine(transfers)
    if ends.dead >= 0:
        _raise_dead_end(chain, blocks[ends.dead], ends)
    flows = threads(
        lambda block: _sum_block(chain, block, ends, weight, out.unary[block.tokens]), blocks
    )
    for flow in flows:
        out.pair[...] += flow
    return np.array([ends.log_z])


def best_in_blocks(
    chain: Structure, scores: ChainPotentials, threads: ThreadMap
) -> tuple[CodeArray, FloatArray]:
    """Return the best path of one long sequence and its score, of paths of runs of tokens.

    It is that of the whole sequence, the lowest labels of equal paths too, where sums of scores are
    exact; where they are rounded, its score is the largest but for rounding
    (:func:`viterbi_in_blocks`).

    Raises
    ------
    NoPathError
        If the sequence has no path of finite score.
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
    tables = [block.first_step for block in blocks[1:]]
    between = scores.pair[tables, labels[np.subtract(starts, 1)], labels[starts]]
    return np.array([sum(within) + between.sum()])


class Block(NamedTuple):
    """A run of tokens of a long sequence."""

    number: int
    tokens: slice
    scores: ChainPotentials

    @property
    def first_step(self) -> int:
        """The table of the transition into the first token."""
        return int(self.scores.transition_index[0])

    @property
    def first_table(self) -> FloatArray:
        """The scores of the transition into the first token, shape (K, K)."""
        table: FloatArray = self.scores.pair[self.first_step]
        return table

    def entered_by(self, enter: FloatArray) -> ChainPotentials:
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


def _sum_block(
    chain: Structure, block: Block, ends: Ends, weight: FloatArray, unary: FloatArray
) -> FloatArray:
    """Write the marginals of a block; return its expected transitions, with that into it."""
    enter, last = ends.enter[block.number], ends.leave[block.number]
    entered = block.entered_by(enter)
    entered.unary[-1] += last
    flow = np.zeros_like(entered.pair)
    chain.log_partition(entered, weight, Counts(unary, flow))
    if block.number:
        into = enter[:, None] + block.first_table
        share = _log_sums(into, 0)
        share[share == -np.inf] = 0.0  # nothing to share: the marginal is 0
        flow[block.first_step] += np.exp(into - share) * unary[0]
    return flow


def _raise_dead_end(chain: Structure, block: Block, ends: Ends) -> None:
    """Raise the error that names the position at which a block has no path left."""
    entered = block.entered_by(ends.enter[block.number])
    try:
        chain.log_partition(entered, np.ones(1), chain.zeros(entered))
    except NoPathError as error:
        raise NoPathError(error.sequence, block.tokens.start + error.position) from None


def _cut(scores: ChainPotentials) -> list[Block]:
    """Cut a sequence into blocks."""
    table, blocks = scores.transition_index, []
    for number, tokens in enumerate(cut(slice(0, len(scores.unary)), BLOCK_TOKENS)):
        offsets = np.array([0, tokens.stop - tokens.start])
        steps: IdArray = table[tokens] if len(table) > 1 else table
        part = ChainPotentials(scores.unary[tokens], scores.pair, steps, offsets, scores.first)
        blocks.append(Block(number, tokens, part))
    return blocks


def _transfer(block: Block, factor: FloatArray, pair_shift: FloatArray) -> FloatArray:
    """Return the logarithms of the transfer matrix of a block, shape (K, K)."""
    unary, table = block.scores.unary, block.scores.transition_index
    begins, n_labels, scores = block.number == 0, unary.shape[1], chain_arrays(block.scores)
    node, shift = exp_unary(block.scores)
    fresh, product = np.empty((2, n_labels))
    rows, log_scale = np.empty((n_labels, n_labels)), np.empty(n_labels)
    status = kernels.block_transfer(scores, node, factor, begins, fresh, product, rows, log_scale)
    if status == UNDERFLOW:
        kernels.block_transfer_log(scores, begins, fresh, rows, log_scale)
        return rows + log_scale[:, None]
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
