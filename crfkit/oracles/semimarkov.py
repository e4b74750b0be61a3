"""What compiled visits of segments read of a model and of data, and the room they need."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from crfkit._types import Chunk, FloatArray, IntArray
from crfkit.compiler.jit import frozen
from crfkit.compiler.simd import padded
from crfkit.data import PackedSequences
from crfkit.data.packed import UNIT
from crfkit.oracles.label_order import LabelOrder
from crfkit.potentials.attributes import AttributeWeights
from crfkit.potentials.linear import LinearModel
from crfkit.potentials.semimarkov import TOKEN_PARTS, SemiMarkovModel
from crfkit.structures import SegmentPotentials, SemiMarkov, Structure
from crfkit.structures.segment_tables import filled_up, make_spans, no_spans


def is_plain_segments(model: LinearModel, structure: Structure) -> bool:
    """Whether all steps between segments share their scores, and there is nothing unusual."""
    plain = model.homogeneous and not model.extra_blocks
    return plain and isinstance(structure, SemiMarkov)


class SegmentVisits:
    """The arrays of a model of segments, and of data, for kernels that visit single sequences.

    The groups of arrays are those of the kernels in ``_segment_visits``.

    Parameters
    ----------
    model : SemiMarkovModel
        Without attributes of transitions and without scores that are not learned.
    structure : SemiMarkov
        Adds these.
    data : PackedSequences
        N tokens.
    ties : LabelOrder
        In which order labels are numbered.

    Attributes
    ----------
    model : tuple
        What kernels read.
    """

    def __init__(
        self, model: SemiMarkovModel, structure: Structure, data: PackedSequences, ties: LabelOrder
    ) -> None:
        self._size, self._lengths = model.n_labels, data.lengths
        first = np.cumsum([
            0, model.state.n_parameters, len(model.transition_from), *2 * [_boundary(model)],
            model.lengths.n_parameters,
        ]).tolist()  # fmt: skip
        tokens = _attributes(model.state, data, 0, ties.rank)
        rows, self._listed = _segments(model, data, first[-1], ties.rank)
        self._tokens, self._rows = tokens, rows
        longest = int(self._lengths.max(initial=0))
        self.model = (
            tuple(tokens), tuple(rows), _steps(model, ties.rank, first[1]),
            _sizes(model, ties, first[4], longest), _bounds(model, ties, first[2], first[3]),
            self._listed, _added(model, structure, ties, longest),
        )  # fmt: skip

    def own(self) -> tuple[Any, ...]:
        """Return room for looks at one sequence after the other."""
        size, longest = self._size, int(self._lengths.max(initial=0))
        columns, width = len(TOKEN_PARTS) * size, padded(size)
        of_steps, of_lengths, _ = self.model[-1]
        n_rows = int(self._listed[3].max(initial=-1)) + 1
        parts = tuple(np.full((longest, width), -np.inf) for _ in TOKEN_PARTS)
        return (
            np.zeros((longest, columns)), parts,
            (of_steps.copy(), of_lengths.copy(), np.full((n_rows, width), -np.inf)),
            (np.empty((longest + 1, width)), np.empty((longest, width)), np.empty((1, width))),
            np.empty(longest, np.int32), np.zeros(1, np.uint32),
        )  # fmt: skip

    def noted(self) -> tuple[Any, ...]:
        """Return room for what two segmentations of a sequence differ in."""
        most = self._most_changes()
        columns = np.zeros(len(TOKEN_PARTS) * self._size)
        return columns, np.empty(most, np.uint32), np.empty(most)

    def _most_changes(self) -> int:
        """Return how many changes of weights two segmentations of a sequence list at most."""
        longest = int(self._lengths.max(initial=0))
        offsets = np.concatenate([[0], np.cumsum(self._lengths)])
        of_tokens = np.diff(self._tokens.indptr[offsets]).max(initial=0)
        dense, of_rows = self._tokens.dense.shape[1], np.diff(self._rows.indptr).max(initial=0)
        of_segment = np.diff(self.model[3][0]).max(initial=0) + of_rows + self._rows.dense.shape[1]
        # A segmentation counts a token's attributes for the four parts at most.
        of_token = 2 * (len(TOKEN_PARTS) * dense + 1 + of_segment)
        return int(2 * len(TOKEN_PARTS) * of_tokens + longest * of_token + 4)


class _Attributes(NamedTuple):
    """Attributes of tokens or of segments, and their weights."""

    indptr: IntArray
    indices: Any
    values: FloatArray
    step: int
    dense: FloatArray
    n_sparse: int
    ptr: IntArray
    columns: Any
    first: int


def _attributes(
    weights: AttributeWeights, data: PackedSequences, first: int, rank: IntArray
) -> _Attributes:
    """Return attributes, and weights in columns whose labels are renumbered."""
    values, step = data.value_array()
    dense = np.empty((data.n_tokens, 0)) if data.dense is None else data.dense
    size = len(rank) // 2
    columns = rank[weights.columns % size] + weights.columns // size * size
    return _Attributes(
        frozen(data.indptr), frozen(data.indices.view(np.uint32)), frozen(values), step,
        frozen(dense), data.n_sparse, frozen(weights.ptr), frozen(columns.astype(np.uint32)),
        int(first),
    )  # fmt: skip


def _segments(
    model: SemiMarkovModel, data: PackedSequences, first: int, rank: IntArray
) -> tuple[_Attributes, tuple[IntArray, ...]]:
    """Return the attributes of segments that have weights, and which segments have them."""
    local = model.local_segments(data, Chunk(0, data.offsets))
    if local is None or model.segments is None:
        rows, spans = _no_attributes(first), no_spans(data.n_tokens)
    else:
        rows = _attributes(model.segments, local.rows, first, rank)
        spans = make_spans(data.n_tokens, local.stop, local.length, local.row)
    return rows, (*spans[:3], frozen(_numbered(spans.end_row, spans.end_ptr[data.offsets])))


def _numbered(rows: IntArray, starts: IntArray) -> IntArray:
    """Return the number of each row in its sequence: 0, 1, ... where they come first."""
    counts = np.diff(starts)
    pairs = np.repeat(np.arange(len(counts)), counts) * (rows.max(initial=0) + 1) + rows
    _, first, which = np.unique(pairs, return_index=True, return_inverse=True)
    rank = np.empty(len(first), np.int64)
    rank[np.argsort(first)] = np.arange(len(first))
    number = rank[which]
    return number - np.repeat(number[starts[:-1][counts > 0]], counts[counts > 0])


def _no_attributes(first: int) -> _Attributes:
    none, start = np.zeros(0, np.uint32), frozen(np.zeros(1, np.int64))
    return _Attributes(
        start, frozen(none), frozen(UNIT), 0, frozen(np.zeros((0, 0))), 0, start, frozen(none),
        first,
    )  # fmt: skip


def _boundary(model: SemiMarkovModel) -> int:
    return model.n_labels if model.boundaries else 0


def _steps(model: SemiMarkovModel, rank: IntArray, first: int) -> tuple[Any, ...]:
    """Return the steps that have a weight, and where that of each step is."""
    before, after = (
        rank[of].astype(np.int64) for of in (model.transition_from, model.transition_to)
    )
    places = np.full((model.n_labels, model.n_labels), -1)
    places[before, after] = first + np.arange(len(before))
    return frozen(before), frozen(after), first, frozen(places)


def _sizes(model: SemiMarkovModel, ties: LabelOrder, first: int, longest: int) -> tuple[Any, ...]:
    """Return functions of the lengths that sequences have, and where their weights are."""
    lengths = model.lengths
    places = np.full(lengths.chosen.shape, -1)
    places[lengths.chosen] = first + np.arange(lengths.n_parameters)
    ptr = lengths.basis.indptr[: longest + 1].astype(np.int64)
    return (
        frozen(ptr), frozen(lengths.basis.indices.astype(np.int64)),
        frozen(lengths.basis.data.astype(np.float64)),
        frozen(places[:, ties.order[: model.n_labels]]),
    )  # fmt: skip


def _bounds(
    model: SemiMarkovModel, ties: LabelOrder, start: int, end: int
) -> tuple[IntArray, IntArray]:
    """Return where the weights of first and last labels are."""
    labels = ties.order[: _boundary(model)]
    return frozen(start + labels), frozen(end + labels)


def _added(
    model: SemiMarkovModel, structure: Structure, ties: LabelOrder, longest: int
) -> tuple[FloatArray, FloatArray, IntArray]:
    """Return what a structure adds to steps and lengths, and the longest lengths it allows."""
    size, n_lengths = model.n_labels, model.lengths.n_lengths
    unary, pair = np.zeros((0, len(TOKEN_PARTS) * size)), np.zeros((size + n_lengths, size))
    scores = SegmentPotentials(
        unary, pair, np.zeros(1, np.uint32), np.zeros(1, np.int64), 0, size, n_lengths, no_spans(0)
    )
    tables = filled_up(structure.with_offset(scores).in_order(ties.order[:size]))
    return tables.steps, frozen(tables.lengths[:longest]), tables.most
