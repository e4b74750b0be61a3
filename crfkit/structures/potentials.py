"""Potentials of the structures: one record each."""

from __future__ import annotations

from typing import NamedTuple, Self, TypeVar

import numpy as np

from crfkit._types import FloatArray, IdArray, IntArray, Potentials, listed_for
from crfkit.compiler.jit import frozen
from crfkit.kernels.chain.arrays import ChainScores
from crfkit.kernels.chain.sum import chain_shift
from crfkit.kernels.semimarkov.arrays import SpanIndex

P = TypeVar("P", bound=Potentials)


class _ChainArrays(NamedTuple):
    unary: FloatArray
    pair: FloatArray
    transition_index: IdArray
    offsets: IntArray
    first: int = 0


class ChainPotentials(_ChainArrays, Potentials):
    """Potentials of chains (:class:`Chain`, :class:`SparseChain`).

    Attributes
    ----------
    unary : ndarray of shape (N, K)
        Score of each label at each token.
    pair : ndarray of shape (M, K, K)
        Tables of the scores of each transition from a label (axis 1) to the next (axis 2); of a
        sparse chain, the scores of some transitions, shape (1, E).
    transition_index : ndarray of shape (N,) or (1,)
        The table of the transition into each token, or one for all.
    offsets : ndarray of shape (S + 1,)
        Where the sequences start, and the end.
    first : int, default=0
        Index of the first sequence in the whole data set.
    """

    __slots__ = ()

    @classmethod
    def of(
        cls, unary: FloatArray, pair: FloatArray, offsets: IntArray, first: int = 0
    ) -> ChainPotentials:
        """Return potentials of which all transitions share one table, or each token has its own."""
        return cls(unary, pair, np.arange(len(pair), dtype=np.uint32), offsets, first)

    def take_tokens(self, tokens: IntArray, offsets: IntArray) -> Self:
        """Return the potentials of the chosen tokens, shape (n,), which are those of sequences."""
        index = self.transition_index
        return self._replace(
            unary=self.unary[tokens], offsets=offsets, first=0,
            transition_index=index[tokens] if len(index) > 1 else index,
        )  # fmt: skip

    @property
    def n_labels(self: Potentials) -> int:
        """How many labels K a token may have."""
        return int(self.unary.shape[1])

    @property
    def n_codes(self: Potentials) -> int:
        """How many codes a token may have: K."""
        return int(self.unary.shape[1])

    @property
    def is_dense(self: Potentials) -> bool:
        """Whether each pair of labels has a score."""
        return self.pair.shape[1:] == (self.n_labels, self.n_labels)

    def in_order(self: P, order: IntArray) -> P:
        """Return the potentials with the labels in another order, shape (K,)."""
        return self._with(unary=self.unary[:, order], pair=self.pair[:, order][:, :, order])


class Spans(NamedTuple):
    """Segments that have scores of their own: which row of scores each of them has.

    Listed twice: by the token they end at, and by the one they begin at.

    Attributes
    ----------
    end_ptr, start_ptr : ndarray of shape (N + 1,)
        Where the segments that end (begin) at a token are listed, and the end.
    end_length, start_length : ndarray of shape (n,)
        Their lengths, rising for each token.
    end_row, start_row : ndarray of shape (n,)
        Their rows.
    """

    end_ptr: IntArray
    end_length: IntArray
    end_row: IntArray
    start_ptr: IntArray
    start_length: IntArray
    start_row: IntArray

    @property
    def ends(self) -> SpanIndex:
        """The segments by the token they end at, as kernels read them."""
        return SpanIndex(*map(frozen, self[:3]))

    @property
    def starts(self) -> SpanIndex:
        """The segments by the token they begin at, as kernels read them."""
        return SpanIndex(*map(frozen, self[3:]))

    def taken(self, tokens: IntArray) -> Spans:
        """Return the segments of the chosen tokens, shape (n,), which are those of sequences."""
        ends = listed_for(tokens, self.end_ptr, self.end_length, self.end_row)
        starts = listed_for(tokens, self.start_ptr, self.start_length, self.start_row)
        return Spans(*ends, *starts)


class _SegmentArrays(NamedTuple):
    unary: FloatArray
    pair: FloatArray
    transition_index: IdArray
    offsets: IntArray
    first: int
    n_transitions: int
    n_lengths: int
    spans: Spans


class SegmentPotentials(_SegmentArrays, Potentials):
    """Potentials of segments (:class:`SemiMarkov`).

    Attributes
    ----------
    unary : ndarray of shape (N, 4 K)
        Four scores for each label at a token: that its segment goes on, begins, ends, is alone.
    pair : ndarray of shape (R, K)
        Rows of scores of transitions, of lengths, and of those that segments share.
    transition_index : ndarray of shape (N,) or (1,)
        The table of the transition into each token, or one for all.
    offsets : ndarray of shape (S + 1,)
        Where the sequences start, and the end.
    first : int
        Index of the first sequence in the whole data set.
    n_transitions : int
        The first rows of `pair`: ``M`` tables of transitions from label to label, K rows each.
    n_lengths : int
        Then, a row for each length of a segment: 1, 2, ..., L.
    spans : Spans
        Which segments have the rows after these.
    """

    __slots__ = ()

    @property
    def n_labels(self) -> int:
        """How many labels K a token may have."""
        return int(self.pair.shape[1])

    @property
    def n_codes(self) -> int:
        """How many codes a token may have: going on with each label, beginning with it."""
        return 2 * int(self.pair.shape[1])

    @property
    def is_dense(self) -> bool:
        """Whether each pair of labels has a score: always."""
        return True

    def take_tokens(self, tokens: IntArray, offsets: IntArray) -> Self:
        """Return the potentials of the chosen tokens, shape (n,), which are those of sequences."""
        index = self.transition_index
        return self._replace(
            unary=self.unary[tokens], offsets=offsets, first=0,
            transition_index=index[tokens] if len(index) > 1 else index,
            spans=self.spans.taken(tokens),
        )  # fmt: skip

    def in_order(self, order: IntArray) -> Self:
        """Return the potentials with the labels in another order, shape (K,)."""
        size, rows = self.n_labels, self.n_transitions
        pair = self.pair[:, order]
        pair[:rows] = pair[:rows].reshape(-1, size, size)[:, order].reshape(-1, size)
        columns = np.concatenate([order + role * size for role in range(4)])
        return self._replace(unary=self.unary[:, columns], pair=pair)


class SegmentOffset(NamedTuple):
    """Scores that :class:`SemiMarkov` adds to the transitions and lengths of all sequences.

    The potentials that a solver sees are then linear in the weights, and finite: products and
    differences of them are those of what is learned.

    Attributes
    ----------
    transitions : ndarray of shape (K, K)
        Added to the scores of transitions from a label to the next; ``-inf`` forbids.
    lengths : ndarray of shape (L, K)
        Added to the scores of lengths.
    """

    transitions: FloatArray
    lengths: FloatArray

    @property
    def is_hard(self) -> bool:
        """Whether all of them are 0 or ``-inf``."""
        return not any(each[each > -np.inf].any() for each in self)

    def added_to(self, potentials: SegmentPotentials) -> SegmentPotentials:
        """Return the sum of the potentials and the offset."""
        pair, n_steps = potentials.pair.copy(), potentials.n_transitions
        pair[:n_steps] += np.tile(self.transitions, (n_steps // len(self.transitions), 1))
        pair[n_steps : n_steps + len(self.lengths)] += self.lengths
        return potentials._replace(pair=pair)


def chain_arrays(scores: Potentials) -> ChainScores:
    """Return the arrays of the potentials, as kernels read them."""
    return ChainScores(
        frozen(scores.unary), frozen(scores.pair), frozen(scores.transition_index),
        frozen(scores.offsets),
    )  # fmt: skip


def exp_unary(scores: Potentials | ChainScores) -> tuple[FloatArray, FloatArray]:
    """Return ``exp(unary - shift)`` and the shift: the largest score of each token."""
    node, shift = np.empty_like(scores.unary), np.empty(len(scores.unary))
    chain_shift(frozen(scores.unary), node, shift)
    return frozen(np.exp(node, out=node)), frozen(shift)


def exp_pair(scores: ChainScores) -> tuple[FloatArray, FloatArray]:
    """Return ``exp(pair - shift)`` and the shift that makes the largest entry of each table 1."""
    starts = scores.offsets[:-1]
    starts = starts[starts < len(scores.unary)]
    return exp_tables(scores.pair, scores.transition_index, starts)


def exp_tables(
    pair: FloatArray, index: IdArray, without: IntArray
) -> tuple[FloatArray, FloatArray]:
    """Return ``exp(pair - shift)`` and the shift that makes the largest entry of each table 1.

    No transition leads into the tokens `without`, whatever their table says.
    """
    factor = pair.copy()
    if len(index) > 1:
        used = np.zeros(len(factor), bool)
        used[np.delete(index, without)] = True
        factor[~used] = 0.0
    shift = factor.max(axis=(1, 2), initial=-np.inf)
    shift[shift == -np.inf] = 0.0
    factor -= shift[:, None, None]
    return frozen(np.exp(factor, out=factor)), frozen(shift)


def transposed(tables: FloatArray) -> FloatArray:
    """Return tables of transitions with the labels that these lead to first."""
    return frozen(np.ascontiguousarray(tables.transpose(0, 2, 1)))
