"""Which weights a linear model has: those of what is seen in labeled data, or all."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from crfkit._types import CodeArray, FloatArray, IntArray
from crfkit.compiler.jit import frozen
from crfkit.data import PackedSequences
from crfkit.kernels.design.selection import seen_count, seen_list
from crfkit.labels.segmentation import Segmentation, segmentation_of
from crfkit.potentials.attributes import AttributeWeights
from crfkit.potentials.lengths import LengthModel

Codes = IntArray | CodeArray


@dataclass
class Choice:
    """Labeled data, and which of their features are to have weights.

    Attributes
    ----------
    data : PackedSequences
        N tokens with D attributes, and the attributes of the transitions into them.
    codes : ndarray of shape (N,)
        Their labels; of segments, ``k`` where one of label ``k`` goes on, ``K + k`` where one
        begins.
    n_labels : int
        K.
    min_freq : float
        What occurs fewer times has no weight.
    all_states : bool
        Give all D x K (attribute, label) pairs a weight.
    all_transitions : bool
        Give all K x K (label, next label) pairs a weight, for each attribute of transitions too.
    boundaries : bool
        Give the labels of first and last tokens weights.
    forbidden : ndarray of shape (K, K), dtype bool, optional
        Transitions that are not allowed.
    lengths : LengthModel, optional
        Of segments: how the scores of lengths are made; those that occur keep their weights.
    token_parts : ndarray of shape (D, 4), dtype bool, optional
        Of segments: which attributes count for all tokens of one, for its first, its last, and for
        one alone.
    """

    data: PackedSequences
    codes: CodeArray
    n_labels: int
    min_freq: float = 0
    all_states: bool = False
    all_transitions: bool = False
    boundaries: bool = False
    forbidden: NDArray[np.bool_] | None = None
    lengths: LengthModel | None = None
    token_parts: NDArray[np.bool_] | None = None

    @cached_property
    def segments(self) -> Segmentation:
        """The segments that the codes stand for."""
        return segmentation_of(self.codes, self.data.offsets, self.n_labels)

    @cached_property
    def transitions(self) -> IntArray:
        """``i * K + j`` of the transition from label i to j into each token, -1 for none, (N,)."""
        if self.data.topology is not None:
            before = self.data.topology.before
            pairs = self.codes[before].astype(np.int64) * self.n_labels + self.codes
            return np.where(before < 0, -1, pairs)
        if self.lengths is None:
            return transition_columns(self.codes, self.data.offsets, self.n_labels)
        found, runs = np.full(len(self.codes), -1, np.int64), self.segments
        follows = np.flatnonzero(~np.isin(runs.start, self.data.offsets[:-1]))
        found[runs.start[follows]] = runs.label[follows - 1] * self.n_labels + runs.label[follows]
        return found

    def weighted_transitions(self) -> tuple[IntArray, IntArray]:
        """Return the labels before and after of the transitions that have a weight, (P2,)."""
        size, found = self.n_labels, self.transitions
        counts = np.bincount(found[found >= 0], minlength=size**2).reshape(size, size)
        chosen = (counts >= self.least) | self.all_transitions
        if self.forbidden is not None:
            chosen &= ~self.forbidden
        source, target = np.nonzero(chosen)
        return source, target

    @property
    def of_segments(self) -> tuple[LengthModel, NDArray[np.bool_]]:
        """The lengths and parts of segments; ValueError where labels are those of tokens."""
        if self.lengths is None or self.token_parts is None:
            raise ValueError("the labels are those of tokens, not of segments.")
        return self.lengths, self.token_parts

    @property
    def least(self) -> float:
        """How often something has to occur."""
        return max(1, self.min_freq)

    def pairs(
        self, data: PackedSequences, columns: Codes, n_columns: int, *, everything: bool
    ) -> AttributeWeights:
        """Return the (attribute, column) pairs that have a weight; a column of -1 is none."""
        if everything:
            return _all_pairs(data, n_columns)
        return _seen_pairs(data, columns, n_columns, self.min_freq)


def transition_columns(codes: CodeArray, offsets: IntArray, n_labels: int) -> IntArray:
    """Return ``i * K + j`` for the transition from label i to j into each token, -1 for a first."""
    transitions = np.full(len(codes), -1, np.int64)
    transitions[1:] = codes[:-1].astype(np.int64) * n_labels + codes[1:]
    starts = offsets[:-1]
    transitions[starts[starts < len(codes)]] = -1
    return transitions


def _all_pairs(data: PackedSequences, n_columns: int) -> AttributeWeights:
    """Return all (attribute, column) pairs."""
    ptr = np.arange(data.n_features + 1, dtype=np.int64) * n_columns
    every = np.tile(np.arange(n_columns, dtype=np.int32), data.n_features)
    return AttributeWeights(ptr, every, n_columns=n_columns, n_sparse=data.n_sparse)


def _seen_pairs(
    data: PackedSequences, columns: Codes, n_columns: int, min_freq: float
) -> AttributeWeights:
    """Return the (attribute, column) pairs that occur often enough; a column of -1 is none."""
    least = max(1, math.ceil(min(min_freq, data.n_tokens + 1)))  # no pair occurs so often
    ptr, found = _sparse_pairs(data, columns, least)
    if data.dense is not None:
        told = columns >= 0
        used = (data.dense[told] != 0.0).astype(np.float64)
        counts = _dense_counts(used, columns[told], n_columns)
        counts.data[counts.data < least] = 0
        counts.eliminate_zeros()
        ptr = np.concatenate([ptr, ptr[-1] + counts.indptr[1:]])
        found = np.concatenate([found, counts.indices])
    return AttributeWeights(ptr, found, n_columns=n_columns, n_sparse=data.n_sparse)


def _sparse_pairs(data: PackedSequences, columns: Codes, least: int) -> tuple[IntArray, CodeArray]:
    """Return where the pairs of each sparse attribute start, and their columns, rising."""
    order = np.argsort(columns, kind="stable")
    tokens = order[np.count_nonzero(columns < 0) :]
    entries = (
        frozen(tokens), frozen(columns[tokens].astype(np.int64)), frozen(data.indptr),
        frozen(data.indices.view(np.uint32)), least,
    )  # fmt: skip
    known = np.zeros((data.n_sparse, 2), np.uint32)
    ptr = np.zeros(data.n_sparse + 1, np.int64)
    seen_count(*entries, known, ptr[1:])
    np.cumsum(ptr, out=ptr)
    found = np.empty(ptr[-1], np.int32)
    known[:] = 0
    seen_list(*entries, known, ptr[:-1].copy(), found)
    return ptr, found


def _dense_counts(uses: FloatArray, columns: Codes, n_columns: int) -> sp.csr_array:
    """Add up the rows of each column's tokens, shape (F, C).

    Steps have K x K columns, of which few occur.
    """
    order = np.argsort(columns, kind="stable")
    present, starts = np.unique(columns[order], return_index=True)
    sums = np.add.reduceat(uses[order], starts, axis=0) if len(present) else uses[:0]
    counts = sp.csr_array(sums.T)
    places = present[counts.indices]
    return sp.csr_array((counts.data, places, counts.indptr), (uses.shape[1], n_columns))
