"""What chains know of the labels of single tokens."""

from __future__ import annotations

import numpy as np

from crfkit._parallel import LONG_TOKENS, ThreadMap
from crfkit._types import Counts, FloatArray, IntArray
from crfkit.compiler.jit import frozen
from crfkit.compiler.simd import WIDTH
from crfkit.kernels.chain.arrays import ChainScores
from crfkit.kernels.chain.interleaved import FILLED, LACKING, TILE
from crfkit.kernels.chain.interleaved_posterior import DONE, SlopeLanes, lanes_pull_back
from crfkit.kernels.chain.posterior import (
    LEAST_SHARE,
    ChainSlopes,
    SlopeRooms,
    SlopeSums,
    chain_pull_back,
)
from crfkit.kernels.chain.sum import OK
from crfkit.structures.base import Structure
from crfkit.structures.chain import are_interleaved, lane_tables
from crfkit.structures.posterior import Posterior
from crfkit.structures.potentials import ChainPotentials, chain_arrays, exp_pair, transposed
from crfkit.structures.tree import Tree, TreePotentials

# Tokens whose transitions are added up together: they stay in the nearest cache.
WINDOW = 64


class ChainPosterior(Posterior):
    """What is known of the labels of chains, by the sums of :class:`Chain`.

    Slopes move in the linear domain as long as no number that they are scaled by vanishes; a
    sequence in which one does is taken as a forest, by sums of logarithms. Both directions
    of a long sequence are moved at the same time.
    """

    def __init__(self, chain: Structure[ChainPotentials], potentials: ChainPotentials) -> None:
        self._potentials, self._threads = potentials, chain.threads
        expected = Counts(np.empty_like(potentials.unary), np.zeros_like(potentials.pair))
        self.log_z = chain.log_partition(potentials, np.ones(len(potentials.offsets) - 1), expected)
        self.marginals = frozen(expected.unary)

    def log_probability(self, tokens: IntArray, codes: IntArray) -> FloatArray:
        """Return the logarithms of probabilities of labels at tokens."""
        found = self.marginals[tokens, codes]
        tiny, offsets = np.flatnonzero(found < LEAST_SHARE), self._potentials.offsets
        found[tiny] = 1.0
        found = np.log(found)
        if len(tiny):
            sequences = np.searchsorted(offsets, tokens[tiny], side="right") - 1
            chosen, place = np.unique(sequences, return_inverse=True)
            starts = np.concatenate([[0], np.cumsum(np.diff(offsets)[chosen])])
            rows = starts[place] + tokens[tiny] - offsets[sequences]
            found[tiny] = self._in_logs(chosen).log_probability(rows, codes[tiny])
        return found

    def pull_back(self, slopes: FloatArray, out: Counts) -> None:
        """Write the gradient of a function of the marginals."""
        sizes = np.diff(self._potentials.offsets)
        status = np.full(len(sizes), OK)
        moved = self._carry(slopes, status, out.unary)
        failed = status != OK
        if failed.any():  # what they added to transitions is of no use
            moved = self._carry(slopes, status, out.unary)
            rows, chosen = np.repeat(failed, sizes), np.flatnonzero(failed)
            counts = Counts(np.empty_like(slopes[rows]), out.pair)
            self._in_logs(chosen).pull_back(slopes[rows], counts)
            out.unary[rows] = counts.unary
        out.pair[...] += moved

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
            if self._threads and len(status) and are_interleaved(scores, factor):
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
        return _as_forests(self._potentials.take(chosen))


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


def _as_forests(potentials: ChainPotentials) -> Posterior:
    """Return what is known of chains, taken as forests."""
    order = np.concatenate([np.arange(0), *map(np.arange, np.diff(potentials.offsets))])
    return Tree().posterior(TreePotentials(*potentials, order - 1, order))
