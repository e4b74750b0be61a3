"""What chains know of the labels of single tokens."""

from __future__ import annotations

import numpy as np

from crfkit._parallel import LONG_TOKENS, ThreadMap
from crfkit._types import FloatArray, IntArray
from crfkit.compiler.jit import frozen
from crfkit.compiler.simd import WIDTH
from crfkit.kernels.chain.arrays import ChainScores
from crfkit.kernels.chain.interleaved import FILLED, LACKING, TILE
from crfkit.kernels.chain.interleaved_posterior import DONE, SlopeLanes, lanes_pull_back
from crfkit.kernels.chain.posterior import ChainSlopes, SlopeRooms, SlopeSums, chain_pull_back
from crfkit.kernels.chain.sum import OK
from crfkit.structures.base import Structure
from crfkit.structures.chain import are_interleaved, lane_tables
from crfkit.structures.posterior import Posterior
from crfkit.structures.potentials import ChainPotentials, chain_arrays, exp_pair, transposed
from crfkit.structures.summed_posterior import SummedPosterior
from crfkit.structures.tree import TreePotentials
from crfkit.structures.tree_posterior import LogTreePosterior

# Tokens whose transitions are added up together: they stay in the nearest cache.
WINDOW = 64


class ChainPosterior(SummedPosterior):
    """What is known of the labels of chains, by the sums of :class:`Chain`.

    Both directions of a long sequence are carried at the same time; logarithms are those of
    forests.
    """

    _potentials: ChainPotentials

    def __init__(self, chain: Structure[ChainPotentials], potentials: ChainPotentials) -> None:
        super().__init__(chain, potentials)
        self._threads = chain.threads

    def _carry(self, slopes: FloatArray, status: IntArray, unary: FloatArray) -> FloatArray:
        """Write the gradient to the unary scores; return that to the scores of transitions."""
        unary[...] = slopes
        scores = chain_arrays(self._potentials)
        factor, pair_shift = exp_pair(scores)
        given = ChainSlopes(
            scores.unary, factor, scores.transition_index, self.marginals, frozen(slopes)
        )
        sums = SlopeSums(unary, np.zeros_like(factor), status)
        forward = _Direction(given, sums, 1)
        backward = _Direction(
            given._replace(tables=transposed(factor)), sums._replace(flow=np.zeros_like(factor)), -1
        )
        if self._threads and len(status) == 1 and len(unary) > LONG_TOKENS:
            _carry_halves(forward, backward, len(unary), self._threads)
        else:
            if self._threads and len(status) and are_interleaved(scores.transition_index, factor):
                tables = lane_tables(factor, pair_shift)
                lanes_pull_back(given, tables, scores.offsets, _slope_lanes(scores), sums)
            forward.carry(scores.offsets)
            backward.carry(scores.offsets)
            status[status == DONE] = OK
        flow = forward.flow
        flow += backward.flow.transpose(0, 2, 1)
        flow *= factor
        return flow

    def _in_logs(self, chosen: IntArray) -> Posterior:
        """Return what is known of some sequences by sums of logarithms, as forests."""
        paths = self._potentials.take(chosen)
        order = np.concatenate([np.arange(n) for n in np.diff(paths.offsets)])
        return LogTreePosterior(TreePotentials(*paths, order - 1, order))


class _Direction:
    """One of the two directions in which slopes move."""

    def __init__(self, given: ChainSlopes, sums: SlopeSums, step: int) -> None:
        size = given.marginals.shape[1]
        self._given, self._sums, self._step, self._goes_on = given, sums, step, False
        self._rooms = SlopeRooms(
            np.empty((WINDOW + 2, size)), np.empty((WINDOW, size)), np.empty((1, size))
        )
        self.flow = sums.flow

    def carry(self, offsets: IntArray) -> None:
        """Carry the slopes of sequences, or of the next part of one."""
        goes_on, self._goes_on = self._goes_on, True
        if not goes_on or self._sums.status[0] == OK:
            chain_pull_back(self._given, offsets, self._step, goes_on, self._rooms, self._sums)


def _carry_halves(
    forward: _Direction, backward: _Direction, length: int, threads: ThreadMap
) -> None:
    """Carry the slopes of a long sequence: each direction in one half, then in the other one."""
    halves = [frozen(np.array(half)) for half in ((0, length // 2), (length // 2, length))]
    for first, second in (halves, halves[::-1]):
        turns = [(forward, first), (backward, second)]
        threads(lambda turn: turn[0].carry(turn[1]), turns)


def _slope_lanes(scores: ChainScores) -> SlopeLanes:
    """Return the workspace of the kernel ``lanes_pull_back``."""
    tokens, size = scores.unary.shape
    longest = int(np.diff(scores.offsets).max())
    places = -(-size // TILE) * TILE
    width = WIDTH * places
    cells = width * min(longest, (tokens + LACKING) // FILLED)
    order, lanes = np.empty(len(scores.offsets) - 1, np.int64), np.empty((2, WIDTH), np.int64)
    sizes = [cells] * 6 + [2 * width, *[WIDTH] * 3, width * places]
    return SlopeLanes(order, np.zeros(longest + 2, np.int64), *lanes, *map(np.empty, sizes))
