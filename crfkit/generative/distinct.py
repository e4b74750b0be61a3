"""Sums over sequences in which few different tokens come again and again, as symbols do.

Equal tokens have equal scores, and what an emission counts of them is what it counts of one token
with all their shares. So both are done once for each different token, and the kernel of sums reads
exponentials from a table (:mod:`crfkit.kernels.chain.symbols`).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from crfkit._parallel import Chunk
from crfkit._types import FloatArray, IdArray, IntArray
from crfkit.compiler.jit import frozen
from crfkit.data import PackedSequences
from crfkit.data.packed import ranges
from crfkit.data.targets import Targets
from crfkit.generative.base import StepCounts
from crfkit.generative.counting import added_steps, expected_steps
from crfkit.generative.model import BoundTables, HiddenMarkovModel
from crfkit.kernels.chain.arrays import ChainScores, ChainSums
from crfkit.kernels.chain.interleaved import FILLED, LACKING
from crfkit.kernels.chain.sum import OK, UNDERFLOW
from crfkit.kernels.chain.symbols import EndCounts, SymbolScores, lanes_sum_symbols
from crfkit.potentials.attributes import distinct_tokens
from crfkit.structures import Structure
from crfkit.structures.base import NoPathError
from crfkit.structures.chain import are_interleaved, lane_rooms, lane_tables
from crfkit.structures.potentials import exp_pair

# Tokens that are looked at first: where most of these differ, the others are not compared.
LOOKED_AT, MOST_DIFFERENT = 1 << 12, 0.25
# Chunks have so many times the tokens that differ: their counts are added up for each chunk.
REPEATED = 4


class SymbolCounts(NamedTuple):
    """What is expected of some sequences."""

    steps: StepCounts
    shares: FloatArray  # (U, K) expected labels of each distinct token
    log_likelihood: float


class DistinctTokens(NamedTuple):
    """The different tokens of sequences, with what is known of their labels."""

    data: PackedSequences  # U tokens
    which: IdArray  # (N,) which of these each token is
    evidence: FloatArray | None  # (U, K) logarithms of what is known of the labels; None: nothing

    @classmethod
    def of(
        cls, data: PackedSequences, targets: Targets | None, n_labels: int, most: int
    ) -> DistinctTokens | None:
        """Return those of sequences; None where there are more than `most`."""
        if (targets is not None and targets.soft is not None) or not data.n_tokens:
            return None
        found = _few_tokens(data, most)
        if found is None:
            return None
        tokens, which = found
        evidence = None
        if targets is not None:
            sets, of_tokens = targets.sets(n_labels)
            pairs, first, which = np.unique(
                which.astype(np.int64) * len(sets) + of_tokens, return_index=True,
                return_inverse=True,
            )  # fmt: skip
            tokens = first
            with np.errstate(divide="ignore"):
                evidence = np.log(sets[pairs % len(sets)] * 1.0)
        if len(tokens) > most:
            return None
        return cls(data.take_tokens(tokens), frozen(which.astype(np.uint32)), evidence)

    def scores(self, model: HiddenMarkovModel, bound: BoundTables) -> FloatArray:
        """Return the scores of all of them, and what is known of their labels, (U, K)."""
        found = np.zeros((self.data.n_tokens, model.n_labels))
        model.emission.scores(bound.emission, self.data, slice(0, len(found)), found)
        return found if self.evidence is None else found + self.evidence


def _few_tokens(data: PackedSequences, most: int) -> tuple[IntArray, IntArray] | None:
    """Return the first of equal tokens, (U,), and which of these all are, (N,); None if too many.

    Indicators of which each token has one are told apart by their numbers.
    """
    size = min(data.n_tokens, LOOKED_AT)
    if len(distinct_tokens(data, 0, size)[0]) > min(max(size * MOST_DIFFERENT, 1), most):
        return None
    plain = data.dense is None and data.values is None and len(data.indices) == data.n_tokens
    if not (plain and np.all(np.diff(data.indptr) == 1)):
        tokens, rows = distinct_tokens(data, 0, data.n_tokens)
        return tokens, rows.astype(np.int64)
    first = np.full(data.n_sparse, -1)
    first[data.indices[::-1]] = np.arange(data.n_tokens)[::-1]
    used = np.flatnonzero(first >= 0)
    number = np.zeros(data.n_sparse, np.int64)
    number[used] = np.arange(len(used))
    return first[used], number[data.indices]


class SymbolSum:
    """Sums of chunks, given the scores of distinct tokens."""

    def __init__(
        self,
        model: HiddenMarkovModel,
        structure: Structure,
        bound: BoundTables,
        scores: FloatArray,
        which: IdArray,
    ) -> None:
        self.model, self.structure, self.bound = model, structure, bound
        self.scores, self.which = scores, which
        shift = scores.max(axis=1)
        shift[shift == -np.inf] = 0.0
        size = model.n_labels
        end = np.ones(size) if bound.end is None else np.exp(bound.end)
        self._raised = [np.exp(scores - shift[:, None]), shift, np.exp(bound.start), end]
        self._factor, self._pair_shift = np.zeros((1, size, size)), np.zeros(1)
        self._is_fast = False
        if model.order == 1:
            index, none = np.zeros(1, np.uint32), np.zeros(1, np.int64)
            pair = ChainScores(scores, frozen(bound.pair), index, none)
            self._factor, self._pair_shift = exp_pair(pair)
            self._is_fast = are_interleaved(index, self._factor)

    def expect(self, chunk: Chunk, weight: FloatArray) -> SymbolCounts:
        """Return what is expected of the sequences of a chunk, with weights, (S,)."""
        size, offsets = self.model.n_labels, chunk.offsets - chunk.offsets[0]
        which, count = self.which[chunk.tokens], len(weight)
        shares, flow = np.zeros(self.scores.shape), np.zeros((1, size, size))
        ends = EndCounts(np.zeros(size), np.zeros(size))
        sums = ChainSums(shares, flow, np.zeros(count), np.full(count, UNDERFLOW))
        if self._is_fast and FILLED * np.diff(offsets).max() <= offsets[-1] + LACKING:
            scores = SymbolScores(frozen(offsets), which, *map(frozen, self._raised))
            tables = lane_tables(self._factor, self._pair_shift)
            rooms = lane_rooms(offsets, size)
            lanes_sum_symbols(scores, tables, frozen(weight), rooms, sums, ends)
        steps = StepCounts(ends.start, (flow * self._factor)[0], ends.end)
        left = np.flatnonzero(sums.status != OK)
        if len(left):
            others = self._expect_of(offsets, which, chunk.first, left, weight, sums)
            steps = others if len(left) == count else added_steps(steps, others)
        return SymbolCounts(steps, shares, float(weight @ sums.log_z))

    def _expect_of(
        self, offsets: IntArray, which: IdArray, first: int, left: IntArray, weight: FloatArray,
        sums: ChainSums,
    ) -> StepCounts:  # fmt: skip
        """Sum some sequences as any others; returns their expected transitions."""
        potentials: Any = self.model.label_scores(self.bound, offsets, first)
        potentials.unary[...] += self.scores[which]
        if len(left) < len(weight):
            potentials = potentials.take(left)
            which = which[ranges(offsets[left], np.diff(offsets)[left])]
        counts = self.structure.zeros(potentials)
        try:
            sums.log_z[left] = self.structure.log_partition(potentials, weight[left], counts)
        except NoPathError as error:
            s = first + int(left[error.sequence - potentials.first])
            raise NoPathError(s, error.position) from None
        entries = np.ones(len(which)), which.astype(np.int64), np.arange(len(which) + 1)
        places = sp.csr_array(entries, shape=(len(which), len(self.scores)))
        sums.marginals[...] += places.T @ counts.unary
        return expected_steps(self.model, potentials, counts)


def add_symbol_counts(one: SymbolCounts, other: SymbolCounts) -> SymbolCounts:
    """Return what is expected of both."""
    shares, value = one.shares + other.shares, one.log_likelihood + other.log_likelihood
    return SymbolCounts(added_steps(one.steps, other.steps), shares, value)
