"""Potentials of the structures: one record each."""

from __future__ import annotations

from typing import NamedTuple, Self

import numpy as np

from crfkit._types import FloatArray, IdArray, IntArray, Potentials, listed_for
from crfkit.compiler.jit import frozen
from crfkit.kernels.semimarkov.arrays import SpanIndex


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

    @property
    def n_labels(self) -> int:
        """How many labels K a token may have."""
        return int(self.unary.shape[1])

    @property
    def n_codes(self) -> int:
        """How many codes a token may have: K."""
        return int(self.unary.shape[1])

    @property
    def is_dense(self) -> bool:
        """Whether each pair of labels has a score."""
        return self.pair.shape[1:] == (self.n_labels, self.n_labels)

    def take_tokens(self, tokens: IntArray, offsets: IntArray) -> Self:
        """Return the potentials of the chosen tokens, shape (n,), which are those of sequences."""
        index = self.transition_index
        return self._replace(
            unary=self.unary[tokens], offsets=offsets, first=0,
            transition_index=index[tokens] if len(index) > 1 else index,
        )  # fmt: skip

    def in_order(self, order: IntArray) -> Self:
        """Return the potentials with the labels in another order, shape (K,)."""
        return self._replace(unary=self.unary[:, order], pair=self.pair[:, order][:, :, order])


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
        return SpanIndex(frozen(self.end_ptr), frozen(self.end_length), frozen(self.end_row))

    @property
    def starts(self) -> SpanIndex:
        """The segments by the token they begin at, as kernels read them."""
        return SpanIndex(frozen(self.start_ptr), frozen(self.start_length), frozen(self.start_row))

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
