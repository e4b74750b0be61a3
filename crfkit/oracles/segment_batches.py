"""Small batches of segments in compiled form."""

from __future__ import annotations

import itertools
from typing import Any, NamedTuple, cast

import numpy as np

from crfkit._types import FloatArray, IntArray, SingleArray
from crfkit.compiler.jit import frozen
from crfkit.data import PackedSequences
from crfkit.data.packed import ranges
from crfkit.kernels.semimarkov.arrays import (
    SegmentExponentials,
    SegmentScores,
    SegmentSums,
    SegmentTables,
)
from crfkit.kernels.semimarkov.batches import SegmentBatches, SegmentRoom
from crfkit.kernels.semimarkov.oracle import FIRST, INSIDE, LAST, SINGLE
from crfkit.kernels.solvers.batches import BlockIndex
from crfkit.oracles.batches import (
    BATCH_ORACLES,
    BatchData,
    BatchMaker,
    CompiledBatchOracle,
    no_features,
)
from crfkit.oracles.design import frozen_arrays, make_design
from crfkit.oracles.label_order import LabelOrder
from crfkit.oracles.semimarkov import SegmentRows
from crfkit.oracles.weights import aligned
from crfkit.potentials.semimarkov import TOKEN_PARTS, SemiMarkovModel
from crfkit.structures import SemiMarkov, Structure
from crfkit.structures.semimarkov import log_workspace, segment_workspace


class SegmentBatchOracle(CompiledBatchOracle):
    """Batches of segments with the log loss."""

    def __init__(self, batches: BatchData) -> None:
        model, data = cast(SemiMarkovModel, batches.model), batches.data()
        threads = batches.threads
        size, order = model.n_labels, LabelOrder.by_code(model.n_codes)
        first = np.array([chunk.first for chunk in batches.chunks] + [len(data)], np.int64)
        heads = data.offsets[first]
        rows = SegmentRows(model, batches.structure, data, order, heads, {INSIDE, FIRST})
        weights = self.aligned_weights = rows.weights
        self.size, self.n_labels = weights.size, size
        self.transitions = model.transition_from, model.transition_to
        self._place = place = _Places(rows, data, first)
        design = make_design(
            weights, rows.with_dense(place.order, place.of_dense), threads, heads=place.row_heads,
            dense_heads=rows.n_dense * heads,
        )  # fmt: skip
        count = np.arange(len(first))
        transitions = make_design(weights, no_features(len(heads) - 1), threads, True, count)
        weights.release_layout()
        unary, most = size * place.row_heads, size * int(np.diff(place.row_heads).max(initial=0))
        self.index = BlockIndex(frozen(unary), frozen(unary[-1] + count * size**2), most)
        fixed = rows.fixed.transitions[0, :size, :size], rows.fixed.lengths[: rows.n_lengths, :size]
        true = _true_counts(batches, place, most, fixed)
        self.problem = SegmentBatches(
            frozen(first), frozen(data.offsets), frozen(batches.weight),
            frozen(np.zeros(1, np.uint32)), design, weights.bits, transitions, weights.wide_bits,
            weights.base, frozen(rows.parts), frozen(place.n_lengths), rows.spans.ends,
            rows.spans.starts, frozen(true.ptr), frozen(true.places), frozen(true.counts),
            frozen(fixed[0]), frozen(fixed[1]), frozen(true.fixed),
        )  # fmt: skip
        self._labels = batches.labels

    @property
    def is_feasible(self) -> bool:
        """Whether all true segments are allowed."""
        return bool(np.isfinite(self.problem.fixed_scores).all())

    def true_potentials(self, batch: int, gold: float) -> SingleArray:
        """Return potentials of the labels of a batch, (n,): `gold` for true ones and 0 else."""
        size, place, unary = self.n_labels, self._place, self.index.unary
        potentials = np.zeros(unary[batch + 1] - unary[batch], np.float32)
        tokens = np.arange(*np.searchsorted(place.batch, [batch, batch + 1]))
        labels, begins = self._labels[tokens] % size, self._labels[tokens] >= size
        # A segment that begins at a token is inside, too.
        for part, amount in ((INSIDE, ~begins), (FIRST, 2.0 * begins - 1.0)):
            potentials[place.of_part(part, tokens) * size + labels] = gold * amount
        return potentials

    def room(self, unary: FloatArray, pair: FloatArray, counts: FloatArray) -> SegmentRoom:
        """Return room for the sums of a batch, whose potentials are (Q, K) and (M, K, K)."""
        problem, size, width = self.problem, self.n_labels, self.aligned_weights.width
        lengths, first = np.diff(problem.offsets), problem.first
        tokens = int(np.diff(problem.offsets[first]).max(initial=0))
        sequences, longest = int(np.diff(first).max(initial=0)), int(lengths.max(initial=0))
        n_lengths, n_spans = len(problem.fixed_lengths), self._place.most_spans
        of_tokens = np.zeros((tokens, 4 * size))
        pairs = np.zeros((size + n_lengths + n_spans, size))
        stay, start, finish, alone = (aligned(tokens, width) for _ in TOKEN_PARTS)
        longest_of = np.full(width // 8, n_lengths, np.int64)
        tables = SegmentTables(
            stay, start, finish, alone, aligned(1, width, width), aligned(n_lengths, width),
            aligned(n_spans, width), longest_of,
        )  # fmt: skip
        transposed, shift = aligned(1, width, width), np.zeros(tokens)
        offsets = np.zeros(sequences + 1, np.int64)
        end_ptr, start_ptr = np.zeros((2, tokens + 1), np.int64)
        scores = SegmentScores(
            frozen(of_tokens), frozen(pairs), frozen(np.zeros(1, np.uint32)), frozen(offsets), size,
            n_lengths, problem.ends._replace(ptr=frozen(end_ptr)),
            problem.starts._replace(ptr=frozen(start_ptr)),
        )  # fmt: skip
        raised = SegmentExponentials(
            SegmentTables(*frozen_arrays(tables)), frozen(transposed), frozen(shift)
        )
        flow = aligned(1, width, width)
        sums = SegmentSums(
            np.zeros((tokens, 4 * size)), flow, aligned(n_lengths, width), aligned(n_spans, width),
            np.zeros(sequences), np.zeros(sequences, np.int64),
        )  # fmt: skip
        return SegmentRoom(
            of_tokens, pairs, tables, tables.transitions[0], transposed, shift, offsets, end_ptr,
            start_ptr, scores, raised, segment_workspace(longest, tokens, width),
            log_workspace(longest, tokens, size), sums, flow[0], np.zeros(pairs.shape),
        )  # fmt: skip


class _Places:
    """Where the rows of each batch are: those of parts, of lengths and of segments."""

    def __init__(self, rows: SegmentRows, data: PackedSequences, first: IntArray) -> None:
        heads, n_parts, limits = data.offsets[first], len(rows.parts), rows.n_lengths
        self.parts, self.spans, self.tokens = rows.parts, rows.spans, np.diff(heads)
        longest = [data.lengths[a:b].max(initial=0) for a, b in itertools.pairwise(first.tolist())]
        self.n_lengths = np.minimum(np.array(longest, np.int64), limits)
        starts = rows.of_parts[:n_parts] + heads[:-1, None]
        starts = np.column_stack(
            [starts, np.full(len(starts), rows.of_parts[-1]), rows.of_groups[:-1]]
        )
        n_spans = np.diff(rows.of_groups)
        counts = np.column_stack([*n_parts * [self.tokens], self.n_lengths, n_spans])
        self.order = ranges(starts.ravel(), counts.ravel())
        self.of_dense = ranges(starts[:, : rows.n_dense].ravel(), counts[:, : rows.n_dense].ravel())
        self.row_heads = np.concatenate([[0], np.cumsum(counts.sum(axis=1))])
        self.most_spans = int(n_spans.max(initial=0))
        self.batch = np.repeat(np.arange(len(self.tokens)), self.tokens)
        self._row = np.arange(data.n_tokens) - heads[self.batch]

    def of_part(self, part: int, tokens: IntArray) -> IntArray:
        """Return the rows of a part of some tokens in their batches."""
        number = int(np.flatnonzero(self.parts == part)[0])
        rows: IntArray = number * self.tokens[self.batch[tokens]] + self._row[tokens]
        return rows

    def of_segments(self, last: IntArray, length: IntArray) -> tuple[IntArray, IntArray]:
        """Return the rows of the length and of the attributes of segments, -1 for none."""
        batch = self.batch[last]
        first, limit = len(self.parts) * self.tokens[batch], self.n_lengths[batch]
        by_length = np.where(length <= limit, first + length - 1, -1)
        ends, many = self.spans.ends, len(self.batch) + 1
        listed = np.repeat(np.arange(len(ends.ptr) - 1), np.diff(ends.ptr)) * many + ends.length
        place = np.searchsorted(listed, last * many + length)
        found = np.append(listed, -1)[place] == last * many + length
        number = np.append(ends.row, 0)[np.where(found, place, len(ends.row))]
        return by_length, np.where(found, first + limit + number, -1)


class _TrueCounts(NamedTuple):
    """What is counted of the true segments of each batch."""

    ptr: IntArray  # (B + 1,)
    places: IntArray  # (c,) in the vector of potentials of the batch
    counts: FloatArray  # (c,) weighted
    fixed: FloatArray  # (B,) what is not learned of their scores, weighted


def _true_counts(
    batches: BatchData, places: _Places, first_pair: int, fixed: tuple[FloatArray, FloatArray]
) -> _TrueCounts:
    """Return what is counted of the true segments."""
    size, offsets = batches.model.n_labels, batches.offsets
    labels, begins = batches.labels.astype(np.int64) % size, batches.labels >= size
    ends = np.append(begins[1:], True)
    ends[offsets[1:][np.diff(offsets) > 0] - 1] = True
    first, last = np.flatnonzero(begins), np.flatnonzero(ends)
    inner = np.isin(first, offsets[:-1], invert=True)
    follow, length, label = first[inner], last - first + 1, labels[last]
    chosen = {INSIDE: ends | True, FIRST: begins, LAST: ends, SINGLE: begins & ends}
    listed = []
    for part in places.parts.tolist():
        tokens = np.flatnonzero(chosen[part])
        listed.append((tokens, places.of_part(part, tokens) * size + labels[tokens]))
    for rows in places.of_segments(last, length):
        listed.append((last[rows >= 0], (rows * size + label)[rows >= 0]))
    pairs = labels[follow - 1], labels[follow]
    listed.append((follow, first_pair + pairs[0] * size + pairs[1]))
    tokens, where = (np.concatenate(each) for each in zip(*listed, strict=True))
    weight = np.repeat(batches.weight, np.diff(offsets))
    batch, count = places.batch[tokens], len(places.tokens)
    order = np.argsort(batch, kind="stable")
    ptr = np.concatenate([[0], np.cumsum(np.bincount(batch, minlength=count))])
    scores = np.zeros(len(weight))
    scores[follow] += fixed[0][pairs]
    known = np.minimum(length, len(fixed[1])) - 1
    scores[last] += np.where(length == known + 1, fixed[1][known, label], -np.inf)
    weighted = np.where(weight > 0.0, weight * scores, 0.0)
    sums = np.bincount(places.batch, weighted, minlength=count).astype(np.float64)
    return _TrueCounts(ptr.astype(np.int64), where[order], weight[tokens[order]], sums)


def _make(batches: BatchData) -> SegmentBatchOracle | None:
    oracle = SegmentBatchOracle(batches)
    return oracle if oracle.is_feasible else None


def _shares_transitions(model: Any, structure: Structure) -> bool:
    return bool(model.homogeneous)


BATCH_ORACLES[SemiMarkovModel, SemiMarkov] = BatchMaker(_make, _shares_transitions)
