"""Which features are to have weights, given labeled data."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import scipy.sparse as sp

from crfkit._types import BoolArray, CodeArray, FloatArray, IntArray
from crfkit.compiler.jit import frozen
from crfkit.data import PackedSequences
from crfkit.data.labels import UNKNOWN
from crfkit.kernels.design.gather import seen_list
from crfkit.labels.segmentation import Segmentation, segmentation_of
from crfkit.potentials.attributes import AttributeWeights

if TYPE_CHECKING:
    from crfkit.potentials.semimarkov import LengthBlock

AnyInts = IntArray | CodeArray

# So many pairs of labels that tokens may have are looked at together.
CELLS = 1 << 22


@dataclass
class Choice:
    """Labeled data, and which of their features are to have weights."""

    data: PackedSequences  # N tokens with D attributes, and attributes of transitions into them
    codes: CodeArray  # (N,) of segments, k where one of label k goes on, K + k where one begins
    n_labels: int
    known: BoolArray | None = None  # (N,) whether a token has its label indeed; None: all have
    # (N, K) which labels each token may have, of which all count as seen, but where it may have any
    allowed: BoolArray | None = None
    soft: FloatArray | None = None  # (N, K) probabilities of labels: what is expected occurs
    min_freq: float = 0  # what occurs fewer times has no weight
    all_states: bool = False  # give all D x K (attribute, label) pairs a weight
    all_transitions: bool = False  # and all K x K transitions, for each of their attributes too
    boundaries: bool = False  # give the labels of first and last tokens weights
    forbidden: BoolArray | None = None  # (K, K) transitions that are not allowed
    # Of segments: how the scores of lengths are made (those that occur keep their weights), and
    # which attributes count for all tokens of one, for its first, its last, and one alone, (D, 4).
    lengths: LengthBlock | None = None
    token_parts: BoolArray | None = None
    known_segments: Segmentation | None = None  # those that are known, where not all are

    @cached_property
    def labels(self) -> CodeArray:
        """The label of each token, -1 where it is not known, (N,)."""
        labels = self.codes % self.n_labels
        return labels if self.known is None else np.where(self.known, labels, UNKNOWN)

    @cached_property
    def segments(self) -> Segmentation:
        """The known segments, all of whose tokens have a known label."""
        runs = self.known_segments
        if runs is None:
            runs = segmentation_of(self.codes, self.data.offsets, self.n_labels)
        if self.known is None:
            return runs
        unknown = np.append(0, np.cumsum(~self.known))
        whole = unknown[runs.stop] == unknown[runs.start]
        return Segmentation(*(part[whole] for part in runs))

    @cached_property
    def _ends(self) -> tuple[IntArray, IntArray]:
        """The token that each transition comes from, -1 for none, and its target, (E,) each."""
        return self.data.ends

    @cached_property
    def transitions(self) -> IntArray:
        """``i * K + j`` of each transition, from label i to label j, -1 for none, (E,)."""
        if self.lengths is not None:
            return self._transitions_of_segments()
        labels, (source, target) = self.labels, self._ends
        found = self.codes[source].astype(np.int64) * self.n_labels + self.codes[target]
        return np.where((source < 0) | (np.minimum(labels[target], labels[source]) < 0), -1, found)

    def _transitions_of_segments(self) -> IntArray:
        found, runs = np.full(len(self.codes), -1, np.int64), self.segments
        begins = np.isin(runs.start[1:], self.data.offsets)
        follows = np.flatnonzero((runs.start[1:] == runs.stop[:-1]) & ~begins) + 1
        found[runs.start[follows]] = runs.label[follows - 1] * self.n_labels + runs.label[follows]
        return found

    @cached_property
    def counted(self) -> BoolArray:
        """Which labels each token counts for, (N, K), where it may have some of several."""
        if self.allowed is None:
            raise ValueError("each token has one label.")
        counted = self.allowed.copy()
        counted[self.allowed.all(axis=1)] = False
        if self.known is not None:
            counted[~self.known] = False
        return counted

    def label_pairs(self) -> AttributeWeights:
        """Return the (attribute of tokens, label) pairs that have a weight."""
        if self.soft is not None and not self.all_states:
            return self._expected_pairs(self.data, [self._shares], self.n_labels)
        tokens, labels = None, self.labels
        if self.allowed is not None:
            tokens, found = np.nonzero(self.counted)
            labels = found.astype(np.int32)
        return self.pairs(
            self.data, labels, self.n_labels, everything=self.all_states, tokens=tokens
        )

    def transition_pairs(self, data: PackedSequences) -> AttributeWeights:
        """Return the (attribute of transitions, transition) pairs that have a weight."""
        if self.soft is not None and not self.all_transitions:
            before = self._shares_before.toarray()
            own = self._shares[self._ends[1]]
            steps = (sp.csr_array(own.multiply(source[:, None])) for source in before.T)
            return self._expected_pairs(data, steps, self.n_labels**2)
        tokens, found, size = None, self.transitions, self.n_labels
        if self.allowed is not None and self.lengths is None:
            parts = np.array_split(np.arange(len(found)), 1 + len(found) * size**2 // CELLS)
            listed = [_products(part, *self._steps(part)) for part in parts]
            tokens, found = map(np.concatenate, zip(*listed, strict=True))
        return self.pairs(data, found, size**2, everything=self.all_transitions, tokens=tokens)

    @cached_property
    def _shares(self) -> sp.csr_array:
        """The probabilities of labels of known tokens, (N, K)."""
        known = np.ones(1, bool) if self.known is None else self.known
        return sp.csr_array(known[:, None] * np.asarray(self.soft))

    @cached_property
    def _shares_before(self) -> sp.csr_array:
        """Those of the tokens that transitions come from, 0 where there are none, (E, K)."""
        source, _ = self._ends
        return sp.csr_array(self._shares[source] * (source >= 0)[:, None])

    def _is_enough(self, expected: FloatArray) -> BoolArray:
        """Whether what is expected so often gets a weight."""
        enough: BoolArray = (expected > 0.0) & (expected >= self.min_freq)
        return enough

    def _expected_pairs(
        self, data: PackedSequences, shares: Iterable[sp.csr_array], n_columns: int
    ) -> AttributeWeights:
        """Return the (attribute, column) pairs that are expected; `shares` are side by side."""
        uses = data.to_csr()
        used = (uses.data != 0.0).astype(float)
        uses = sp.csr_array((used, uses.indices, uses.indptr), uses.shape)
        counts = sp.csr_array(sp.hstack([uses.T @ each for each in shares]))
        counts.data[~self._is_enough(counts.data)] = 0.0
        counts.eliminate_zeros()
        counts.sort_indices()
        ptr, columns = counts.indptr.astype(np.int64), counts.indices.astype(np.int32)
        return AttributeWeights(ptr, columns, n_columns=n_columns, n_sparse=data.n_sparse)

    def _steps(self, rows: IntArray) -> tuple[BoolArray, BoolArray]:
        """Return the labels that both ends of some transitions count for, (n, K) each."""
        source, target = (ends[rows] for ends in self._ends)
        return self.counted[source] & (source >= 0)[:, None], self.counted[target]

    def weighted_transitions(self) -> tuple[IntArray, IntArray]:
        """Return the labels before and after of the transitions that have a weight, (P2,)."""
        size, found = self.n_labels, self.transitions
        if self.soft is not None:
            expected = (self._shares_before.T @ self._shares[self._ends[1]]).toarray()
            counts = np.where(self._is_enough(expected), self.least, 0)
        elif self.allowed is None or self.lengths is not None:
            counts = np.bincount(found[found >= 0], minlength=size**2).reshape(size, size)
        else:
            steps = self._steps(np.arange(len(found)))
            source, target = (sp.csr_array(step.astype(np.int64)) for step in steps)
            counts = (source.T @ target).toarray()
        chosen = (counts >= self.least) | self.all_transitions
        if self.forbidden is not None:
            chosen &= ~self.forbidden
        source, target = np.nonzero(chosen)
        return source, target

    @property
    def of_segments(self) -> tuple[LengthBlock, BoolArray]:
        """The lengths and parts of segments; ValueError where labels are those of tokens."""
        if self.lengths is None or self.token_parts is None:
            raise ValueError("the labels are those of tokens, not of segments.")
        return self.lengths, self.token_parts

    @property
    def least(self) -> float:
        """How often something has to occur."""
        return max(1, self.min_freq)

    def pairs(
        self,
        data: PackedSequences,
        columns: AnyInts,
        n_columns: int,
        *,
        everything: bool,
        tokens: IntArray | None = None,
    ) -> AttributeWeights:
        """Return the (attribute, column) pairs that have a weight; a column of -1 is none.

        Columns are those of some `tokens`, each listed once for each of its columns, or of all.
        """
        if everything:
            ptr = np.arange(data.n_features + 1, dtype=np.int64) * n_columns
            found = np.tile(np.arange(n_columns, dtype=np.int32), data.n_features)
        else:
            least = math.ceil(min(self.least, data.n_tokens + 1))  # no pair occurs more often
            # NumPy counts numbers of 16 bits, and sorts others.
            keys = columns.astype(np.int16) if n_columns < 1 << 15 else columns
            order = np.argsort(keys, kind="stable")[np.count_nonzero(columns < 0) :]
            columns, rows = columns[order].astype(np.int64), order
            if tokens is not None:
                rows = tokens[order]
            ptr, found = _sparse_pairs(data, rows, columns, least)
            if data.dense is not None:
                counts = _dense_counts(data.dense, rows, columns, n_columns, least)
                ptr = np.concatenate([ptr, ptr[-1] + counts.indptr[1:]])
                found = np.concatenate([found, counts.indices])
        return AttributeWeights(ptr, found, n_columns=n_columns, n_sparse=data.n_sparse)


def _products(tokens: IntArray, before: BoolArray, after: BoolArray) -> tuple[IntArray, IntArray]:
    """Return tokens, each once for each of its steps, and these, ``i K + j``."""
    rows, source, target = np.nonzero(before[:, :, None] & after[:, None, :])
    return tokens[rows], source * before.shape[1] + target


def transition_columns(codes: CodeArray, offsets: IntArray, n_labels: int) -> IntArray:
    """Return ``i * K + j`` for the transition from label i to j into each token, -1 for a first."""
    transitions = np.full(len(codes), -1, np.int64)
    transitions[1:] = codes[:-1].astype(np.int64) * n_labels + codes[1:]
    starts = offsets[:-1]
    transitions[starts[starts < len(codes)]] = -1
    return transitions


def _sparse_pairs(
    data: PackedSequences, tokens: IntArray, columns: IntArray, least: int
) -> tuple[IntArray, CodeArray]:
    """Return where the pairs of each sparse attribute start, and their columns, rising.

    Given tokens and their columns, which rise.
    """
    entries = (
        frozen(tokens), frozen(columns), frozen(data.indptr), frozen(data.indices.view(np.uint32)),
        least,
    )  # fmt: skip
    known = np.zeros((data.n_sparse, 2), np.uint32)
    ptr = np.zeros(data.n_sparse + 1, np.int64)
    seen_list(*entries, known, ptr[1:], np.empty(0, np.int32))
    np.cumsum(ptr, out=ptr)
    found = np.empty(ptr[-1], np.int32)
    known[:] = 0
    seen_list(*entries, known, ptr[:-1].copy(), found)
    return ptr, found


def _dense_counts(
    dense: FloatArray, tokens: IntArray, columns: IntArray, n_columns: int, least: int
) -> sp.csr_array:
    """Return how many tokens of each column, of which few occur, have a dense feature, (F, C)."""
    present, starts = np.unique(columns, return_index=True)
    uses = (dense[tokens] != 0.0).astype(np.float64)
    sums = np.add.reduceat(uses, starts, axis=0) if len(present) else uses[:0]
    counts = sp.csr_array(np.where(sums < least, 0.0, sums).T)
    places = present[counts.indices]
    return sp.csr_array((counts.data, places, counts.indptr), (dense.shape[1], n_columns))
