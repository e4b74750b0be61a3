"""The oracle of segments whose transitions share their scores."""

from __future__ import annotations

import numpy as np

from crfkit._parallel import ThreadMap
from crfkit._types import Chunk, FloatArray, IdArray, IntArray
from crfkit.compiler.jit import frozen
from crfkit.compiler.simd import padded
from crfkit.data import PackedSequences
from crfkit.data.packed import UNIT
from crfkit.kernels.semimarkov.arrays import SegmentTables
from crfkit.kernels.semimarkov.oracle import SegmentAttributes, SegmentProblem, SegmentWorkspace
from crfkit.oracles.base import Oracle, register_oracle
from crfkit.oracles.label_order import LabelOrder
from crfkit.oracles.linear_chain import numbered
from crfkit.potentials.attributes import AttributeWeights
from crfkit.potentials.semimarkov import TOKEN_PARTS, SemiMarkovModel
from crfkit.structures import SegmentPotentials, SemiMarkov, Structure
from crfkit.structures.segment_tables import filled_up, make_spans, no_spans


class SegmentOracle(Oracle):
    """Segments in compiled form. Kernels read the parameters as they are.

    Parameters
    ----------
    model : SemiMarkovModel
        Without attributes of transitions and without scores that are not learned.
    structure : SemiMarkov
        Adds these.
    data : PackedSequences
        N tokens.
    order : LabelOrder
        How codes of labels are numbered in kernels.
    """

    def __init__(
        self, model: SemiMarkovModel, structure: Structure, data: PackedSequences, order: LabelOrder
    ) -> None:
        self.order, self.size = order, model.n_parameters
        size, longest = model.n_labels, int(data.lengths.max(initial=0))
        boundary = size if model.boundaries else 0
        first = np.cumsum([
            0, model.state.n_parameters, len(model.transition_from), boundary, boundary,
            model.lengths.n_parameters,
        ]).tolist()  # fmt: skip
        tokens = _attributes(model.state, data, 0, order.rank)
        rows, listed = _segments(model, data, first[-1], order.rank)
        transitions = _transitions(model, order.rank, first[1])
        fixed = _fixed(model, structure, order)
        labels = order.order[:boundary]
        self.problem = SegmentProblem(
            frozen(data.offsets), size, tokens, rows, *transitions,
            *_lengths(model, order, first[4], longest), frozen(first[2] + labels),
            frozen(first[3] + labels), *listed, frozen(fixed.transitions),
            frozen(fixed.lengths[:longest]), fixed.longest,
        )  # fmt: skip

    def pack(self, parameters: FloatArray) -> FloatArray:
        """Return the parameters: a new array."""
        return parameters + 0.0

    def unpack(self, flat: FloatArray) -> FloatArray:
        """Return the parameters: a new array."""
        return flat.copy()

    def zeros(self) -> FloatArray:
        """Return a vector of zeros, shape (P,)."""
        return np.zeros(self.size)

    def parameter_numbers(self, positions: IdArray) -> IntArray:
        """Return which parameters stand at some positions: these."""
        return positions.astype(np.int64)

    def cost_table(self, table: FloatArray) -> FloatArray:
        """Return a table of costs, shape (2 K, 2 K), for codes in their order in kernels."""
        return table[self.order.order][:, self.order.order] if len(table) else table

    def workspace(self, flat: FloatArray) -> SegmentWorkspace:
        """Return weights, shape (P,), and room for a sequence, for one thread."""
        problem, longest = self.problem, int(np.diff(self.problem.offsets).max(initial=0))
        columns, width = len(TOKEN_PARTS) * problem.n_labels, padded(problem.n_labels)
        n_rows = int(problem.end_number.max(initial=-1)) + 1
        path, most = np.zeros(longest, np.int32), self._most_changes(longest)
        stay, start, finish, alone = (np.full((longest, width), -np.inf) for _ in TOKEN_PARTS)
        return SegmentWorkspace(
            flat, np.zeros((longest, columns)), stay, start, finish, alone,
            problem.fixed_transitions.copy(), problem.fixed_lengths.copy(),
            np.full((n_rows, width), -np.inf), np.empty((longest + 1, width)),
            np.empty((longest, width)),
            np.zeros(1, np.uint32), path, path[None], np.zeros(columns), np.empty(most, np.uint32),
            np.empty(most), np.zeros(self.size),
        )  # fmt: skip

    def _most_changes(self, longest: int) -> int:
        """Return how many changes of weights two segmentations of a sequence list at most."""
        problem = self.problem
        of_tokens = np.diff(problem.tokens.indptr[problem.offsets]).max(initial=0)
        of_rows = np.diff(problem.rows.indptr).max(initial=0) + problem.rows.dense.shape[1]
        of_segment = np.diff(problem.length_ptr).max(initial=0) + of_rows
        # A segmentation counts a token's attributes for the four parts at most.
        of_token = 2 * (len(TOKEN_PARTS) * problem.tokens.dense.shape[1] + 1 + of_segment)
        return int(2 * len(TOKEN_PARTS) * of_tokens + longest * of_token + 4)


def _attributes(
    weights: AttributeWeights, data: PackedSequences, first: int, rank: IntArray
) -> SegmentAttributes:
    """Return attributes, and weights in columns whose labels are renumbered."""
    values, stride = data.value_array()
    dense = np.empty((data.n_tokens, 0)) if data.dense is None else data.dense
    size = len(rank) // 2
    columns = rank[weights.columns % size] + weights.columns // size * size
    return SegmentAttributes(
        frozen(data.indptr), frozen(data.indices.view(np.uint32)), frozen(values), int(stride),
        frozen(dense), data.n_sparse, frozen(weights.ptr), frozen(columns.astype(np.uint32)),
        int(first),
    )  # fmt: skip


def _segments(
    model: SemiMarkovModel, data: PackedSequences, first: int, rank: IntArray
) -> tuple[SegmentAttributes, tuple[IntArray, IntArray, IntArray, IntArray]]:
    """Return the attributes of segments that have weights, and which segments have them."""
    local = model.local_segments(data, Chunk(0, data.offsets))
    if local is None or model.segments is None:
        rows, spans = _no_attributes(first), no_spans(data.n_tokens)
    else:
        rows = _attributes(model.segments, local.rows, first, rank)
        spans = make_spans(data.n_tokens, local.stop, local.length, local.row)
    number = numbered(spans.end_row, spans.end_ptr[data.offsets])
    ptr, length, row = spans[:3]
    return rows, (frozen(ptr), frozen(length), frozen(row), frozen(number))


def _no_attributes(first: int) -> SegmentAttributes:
    none, start = np.zeros(0, np.uint32), frozen(np.zeros(1, np.int64))
    return SegmentAttributes(
        start, frozen(none), frozen(UNIT), 0, frozen(np.zeros((0, 0))), 0, start, frozen(none),
        first,
    )  # fmt: skip


def _transitions(
    model: SemiMarkovModel, rank: IntArray, first: int
) -> tuple[IntArray, IntArray, int, IntArray]:
    """Return the transitions that have a weight, and where that of each transition is."""
    before, after = (
        rank[of].astype(np.int64) for of in (model.transition_from, model.transition_to)
    )
    positions = np.full((model.n_labels, model.n_labels), -1)
    positions[before, after] = first + np.arange(len(before))
    return frozen(before), frozen(after), first, frozen(positions)


def _lengths(
    model: SemiMarkovModel, order: LabelOrder, first: int, longest: int
) -> tuple[IntArray, IntArray, FloatArray, IntArray]:
    """Return functions of the lengths that sequences have, and where their weights are."""
    lengths = model.lengths
    positions = np.full(lengths.chosen.shape, -1)
    positions[lengths.chosen] = first + np.arange(lengths.n_parameters)
    ptr = lengths.basis.indptr[: longest + 1].astype(np.int64)
    return (
        frozen(ptr), frozen(lengths.basis.indices.astype(np.int64)),
        frozen(lengths.basis.data.astype(np.float64)),
        frozen(positions[:, order.order[: model.n_labels]]),
    )  # fmt: skip


def _fixed(model: SemiMarkovModel, structure: Structure, order: LabelOrder) -> SegmentTables:
    """Return what a structure adds to transitions and lengths, and the longest it allows."""
    size, n_lengths = model.n_labels, model.lengths.n_lengths
    unary, pair = np.zeros((0, len(TOKEN_PARTS) * size)), np.zeros((size + n_lengths, size))
    scores = SegmentPotentials(
        unary, pair, np.zeros(1, np.uint32), np.zeros(1, np.int64), 0, size, n_lengths, no_spans(0)
    )
    return filled_up(structure.with_offset(scores).in_order(order.order[:size]))


def _make(
    model: SemiMarkovModel, structure: Structure, data: PackedSequences, order: LabelOrder,
    threads: ThreadMap,
) -> SegmentOracle | None:  # fmt: skip
    if not model.homogeneous or model.extra_blocks:
        return None
    return SegmentOracle(model, structure, data, order)


register_oracle(SemiMarkovModel, SemiMarkov, _make)
