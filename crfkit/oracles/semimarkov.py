"""The oracle of segments whose transitions share their scores, and the rows of their design."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from crfkit._parallel import Chunk, ThreadMap
from crfkit._types import FloatArray, IntArray
from crfkit.compiler.jit import frozen
from crfkit.data import PackedSequences
from crfkit.kernels.semimarkov.arrays import SegmentTables
from crfkit.kernels.semimarkov.oracle import INSIDE, SegmentProblem, SegmentWorkspace
from crfkit.oracles.base import Oracle, register_oracle
from crfkit.oracles.design import make_design
from crfkit.oracles.label_order import LabelOrder
from crfkit.oracles.weights import (
    AlignedWeights,
    Weighted,
    aligned,
    boundary_weights,
    join,
    with_boundaries,
)
from crfkit.potentials.semimarkov import TOKEN_PARTS, SemiMarkovModel
from crfkit.structures import SegmentPotentials, SemiMarkov, Spans, Structure
from crfkit.structures.potentials import filled_up, make_spans, no_spans


class SegmentRows:
    """Rows of the first part of N tokens, of the second, and so on; of L lengths; of segments.

    First and last labels are attributes of these tokens, functions of lengths and dense attributes
    of segments are sparse attributes.

    Each group of tokens, of which `groups`, shape (G + 1,), tells the first, has its own rows of
    segments. Tokens have rows for some parts, and for those that have weights.
    """

    weights: AlignedWeights
    data: PackedSequences  # the sparse attributes of the rows
    dense: FloatArray | None  # (n_dense N, n_dense F) the dense features of the first rows
    n_dense: int  # for how many parts these have weights
    parts: IntArray  # (n,) the parts that tokens have rows for
    of_parts: IntArray  # (n + 1,) the first row of each, and that of lengths
    n_lengths: int  # lengths L that sequences have
    spans: Spans  # the number of each segment in its group
    of_groups: IntArray  # (G + 1,) the first row of segments of each group, and the end
    fixed: SegmentTables  # what is not learned, and the longest length allowed of eight labels

    def __init__(
        self, model: SemiMarkovModel, structure: Structure, data: PackedSequences,
        order: LabelOrder, groups: IntArray, parts: set[int],
    ) -> None:  # fmt: skip
        size, state = model.n_labels, model.state
        what, first_dense = state.columns // size, int(state.ptr[state.n_sparse])
        of_dense = np.unique(what[first_dense:]).tolist()
        found = list(dict.fromkeys([*of_dense, INSIDE, *sorted(parts), *np.unique(what).tolist()]))
        self.parts, self.n_dense = np.array(found, np.int64), len(of_dense)
        self.of_parts = data.n_tokens * np.arange(len(found) + 1)
        self.n_lengths = min(model.lengths.n_lengths, int(data.lengths.max(initial=0)))
        self.fixed = _fixed(model, structure, order)
        tokens = with_boundaries(data, model.boundaries)
        self.weights = self._weights(model, order, tokens.n_sparse)
        segments = self._number_segments(model, data, groups)
        self.data = self._join_rows(model, tokens, segments)
        self.dense = None if data.dense is None else _diagonal(data.dense, self.n_dense)

    def with_dense(
        self, order: IntArray | None = None, of_dense: IntArray | None = None
    ) -> PackedSequences:
        """Return the attributes of all rows, or in an order, with the dense features of the first.

        These are in an order of their own.
        """
        data = self.data if order is None else self.data.take_tokens(order)
        dense = self.dense
        if dense is not None and of_dense is not None and self.n_dense > 1:
            dense = dense[of_dense]
        return data._from_arrays(**data.__dict__ | {"dense": dense})

    def place(self) -> IntArray:
        """Return the place of each part, shape (4,)."""
        place = np.zeros(len(TOKEN_PARTS), np.int64)
        place[self.parts] = np.arange(len(self.parts))
        return place

    def _weights(self, model: SemiMarkovModel, order: LabelOrder, n_sparse: int) -> AlignedWeights:
        """Return the weights of attributes of parts, then of segments, lengths, dense features."""
        size, state, place = model.n_labels, model.state, self.place()
        n_dense = state.n_features - state.n_sparse
        attributes, what = np.repeat(np.arange(state.n_features), np.diff(state.ptr)), state.columns
        part = place[what // size]
        of_segments = len(self.parts) * n_sparse
        own = model.segments
        of_lengths = of_segments + (0 if own is None else own.n_features)
        n_all = of_lengths + len(model.lengths.chosen)
        shift = np.where(
            attributes < state.n_sparse, part * n_sparse, n_all - state.n_sparse + part * n_dense
        )
        n_steps, first = len(model.transition_from), state.n_parameters
        steps, first = np.arange(first, first + n_steps), first + n_steps
        weights = [Weighted(attributes + shift, what % size, np.arange(state.n_parameters))]
        if model.boundaries:
            at = int(place[INSIDE]) * n_sparse + state.n_sparse
            weights.append(boundary_weights(at, size, first))
            first += 2 * size
        functions, labels = np.nonzero(model.lengths.chosen)
        numbers = np.arange(first, model.n_parameters)
        weights.append(Weighted(of_lengths + functions, labels, numbers[: len(labels)]))
        if own is not None:
            of_own = of_segments + np.repeat(np.arange(own.n_features), np.diff(own.ptr))
            weights.append(Weighted(of_own, own.columns, numbers[len(labels) :]))
        joined, numbers = join(weights, size, n_all + self.n_dense * n_dense, n_all)
        return AlignedWeights(
            joined, (model.transition_from, model.transition_to), order.rank[:size],
            np.concatenate([numbers, steps]),
        )  # fmt: skip

    def _number_segments(
        self, model: SemiMarkovModel, data: PackedSequences, groups: IntArray
    ) -> sp.csr_array:
        """Set the numbers of segments in their groups; returns the rows of all groups."""
        local = model.local_segments(data, Chunk(0, data.offsets))
        first = int(self.of_parts[-1]) + self.n_lengths
        if local is None:
            self.spans = no_spans(data.n_tokens)
            self.of_groups = np.full(len(groups), first)
            return sp.csr_array((0, 0))
        n_rows = max(local.rows.n_tokens, 1)
        group = np.searchsorted(groups, local.stop - 1, side="right") - 1
        pairs, number = np.unique(group * n_rows + local.row, return_inverse=True)
        starts = np.searchsorted(pairs, np.arange(len(groups)) * n_rows)
        self.spans = make_spans(data.n_tokens, local.stop, local.length, number - starts[group])
        self.of_groups = first + starts
        return local.rows.to_csr()[pairs % n_rows]

    def _join_rows(
        self, model: SemiMarkovModel, tokens: PackedSequences, segments: sp.csr_array
    ) -> PackedSequences:
        """Return the attributes of all rows."""
        n_sparse = tokens.n_sparse
        first = len(self.parts) * n_sparse
        lengths = sp.csr_array(model.lengths.basis)[: self.n_lengths]
        of_lengths = first + (0 if model.segments is None else model.segments.n_features)
        blocks = [self._of_part(model, tokens, int(part)) for part in self.parts]
        blocks += [
            (np.diff(rows.indptr), rows.indices.astype(np.int64) + at, rows.data)
            for rows, at in ((lengths, of_lengths), (segments, first))
        ]
        counts, indices, values = zip(*blocks, strict=True)
        n_rows = int(self.of_groups[-1])
        return PackedSequences._from_arrays(
            offsets=np.array([0, n_rows]),
            indptr=np.concatenate([[0], np.cumsum(np.concatenate(counts))]).astype(np.int64),
            indices=np.concatenate(indices).astype(np.int32),
            values=None if all((own == 1.0).all() for own in values) else np.concatenate(values),
            n_sparse=of_lengths + len(model.lengths.chosen),
            dense=None,
        )

    def _of_part(
        self, model: SemiMarkovModel, tokens: PackedSequences, part: int
    ) -> tuple[IntArray, IntArray, FloatArray]:
        """Return how many attributes of each token have weights for a part, these, and values."""
        state, n_sparse = model.state, tokens.n_sparse
        attributes = np.repeat(np.arange(state.n_features), np.diff(state.ptr))
        has: NDArray[np.bool_] = np.zeros(max(n_sparse, state.n_features), bool)
        has[attributes[state.columns // model.n_labels == part]] = True
        has[state.n_sparse : n_sparse] = part == INSIDE  # first and last labels
        kept = has[tokens.indices]
        before = np.concatenate([[0], np.cumsum(kept)])
        indices = tokens.indices[kept].astype(np.int64) + int(self.place()[part]) * n_sparse
        counts = np.diff(before[tokens.indptr])
        if tokens.values is None:
            return counts, indices, np.ones(len(indices))
        return counts, indices, tokens.values[kept]


def _diagonal(dense: FloatArray, count: int) -> FloatArray:
    """Return as many copies of a matrix as the blocks of a larger one; it itself, for one."""
    if count == 1:
        return dense
    return np.kron(np.eye(count), dense).astype(np.float64) if count else np.empty((0, 0))


def _fixed(model: SemiMarkovModel, structure: Structure, order: LabelOrder) -> SegmentTables:
    """Return what a structure adds to transitions and lengths, and the longest it allows."""
    size, n_lengths = model.n_labels, model.lengths.n_lengths
    unary, pair = np.zeros((0, len(TOKEN_PARTS) * size)), np.zeros((size + n_lengths, size))
    scores = SegmentPotentials(
        unary, pair, np.zeros(1, np.uint32), np.zeros(1, np.int64), 0, size, n_lengths, no_spans(0)
    )
    return filled_up(structure.with_offset(scores).in_order(order.order[:size]))


class SegmentOracle(Oracle):
    """Segments without attributes of transitions; the structure adds what is not learned."""

    def __init__(
        self, model: SemiMarkovModel, structure: Structure, data: PackedSequences,
        order: LabelOrder, threads: ThreadMap,
    ) -> None:  # fmt: skip
        rows = SegmentRows(model, structure, data, order, data.offsets, set())
        self.order, self.weights = order, rows.weights
        of_spans = np.zeros(data.n_tokens + 1, np.int64)
        of_spans[data.offsets] = rows.of_groups
        self._n_spans = int(np.diff(rows.of_groups).max(initial=0))
        design = make_design(rows.weights, rows.with_dense(), threads)
        rows.weights.release_layout()
        self.problem = SegmentProblem(
            frozen(data.offsets), model.n_labels, design, rows.weights.base, frozen(rows.parts),
            frozen(rows.of_parts), frozen(of_spans), rows.spans.ends,
            frozen(rows.fixed.transitions[:, : model.n_labels]),
            frozen(rows.fixed.lengths[: rows.n_lengths]), rows.fixed.longest,
        )  # fmt: skip

    def workspace(self, flat: FloatArray) -> SegmentWorkspace:
        """Return weights, shape (L,), and room for a sequence, for one thread."""
        problem, width = self.problem, self.weights.width
        longest = int(np.diff(problem.offsets).max(initial=0))
        n_lengths = len(problem.fixed_lengths)
        n_spans, path = self._n_spans, np.zeros(longest, np.int32)
        weights = self.weights.for_tokens(flat, problem.design.dense.shape[1], self._most_changes())
        scores = aligned(len(TOKEN_PARTS) * longest, width)
        stay, start, finish, alone = scores.reshape(len(TOKEN_PARTS), longest, width)
        return SegmentWorkspace(
            weights, scores, stay, start, finish, alone, problem.fixed_transitions.copy(),
            problem.fixed_lengths.copy(), aligned(n_spans, width), aligned(longest + 1, width),
            aligned(longest, width), np.zeros(1, np.uint32), path, path[None], weights.positions,
            weights.changes, aligned(len(problem.parts) * longest + n_lengths + n_spans, width),
            aligned(problem.n_labels, width),
        )  # fmt: skip

    def _most_changes(self) -> int:
        """Return how many changes of weights two segmentations of a sequence list at most."""
        problem, design = self.problem, self.problem.design
        rows, cells = np.diff(design.row_ptr), np.diff(design.cell_ptr)
        of_rows, n_dense = rows + cells + 1, int(design.dense.shape[1])
        first = problem.of_parts[-1]
        of_tokens = of_rows[:first].reshape(len(problem.parts), -1).sum(axis=0)
        before = np.concatenate([[0], np.cumsum(of_tokens)])
        of_parts = np.diff(before[problem.offsets]).max(initial=0)
        longest = int(np.diff(problem.offsets).max(initial=0))
        of_token = len(problem.parts) * n_dense + 2 * int(of_rows[first:].max(initial=0)) + 1
        return int(2 * (of_parts + longest * of_token)) + 1


def _make(
    model: SemiMarkovModel, structure: Structure, data: PackedSequences, order: LabelOrder,
    threads: ThreadMap,
) -> SegmentOracle | None:  # fmt: skip
    if not model.homogeneous or model.extra_blocks:
        return None
    return SegmentOracle(model, structure, data, order, threads)


register_oracle(SemiMarkovModel, SemiMarkov, _make)
