"""Scores of segments that are linear in the features."""

from __future__ import annotations

import copy
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from crfkit._parallel import SERIAL, ThreadMap
from crfkit._types import (
    Chunk,
    Counts,
    FloatArray,
    IdArray,
    Potentials,
)
from crfkit.data import PackedSequences
from crfkit.data.segments import LocalSegments
from crfkit.kernels.semimarkov.tables import semimarkov_add_inside, semimarkov_collect_inside
from crfkit.potentials.attributes import AttributeWeights, BoundWeights, Part
from crfkit.potentials.linear_chain import Gradients, LinearChainModel, PreparedBlock
from crfkit.potentials.transitions import HomogeneousTransitions, InputDependentTransitions
from crfkit.structures import SegmentOffset, SegmentPotentials, SemiMarkov, Spans, Structure
from crfkit.structures.segment_tables import make_spans, no_spans

# Which tokens of a segment the attributes of a block of weights are counted for.
TOKEN_PARTS = ("inside", "first", "last", "single")


class LengthModel:
    """``length_d[k] = fixed[d, k] + sum_f basis[d, f] w[f, k]`` for chosen pairs of f and k.

    Parameters
    ----------
    fixed : ndarray of shape (L, K)
        What is not learned; ``-inf`` forbids the segments of a length and a label.
    basis : sparse array or array of shape (L, F)
        Functions of the length, finite. Read as a sparse array, in time for what is not 0.
    chosen : ndarray of shape (F, K), dtype bool
        Which function has a weight for which label.
    """

    def __init__(
        self, fixed: FloatArray, basis: sp.csr_array | FloatArray, chosen: NDArray[np.bool_]
    ) -> None:
        self.fixed, self.basis, self.chosen = fixed, sp.csr_array(basis), chosen

    @property
    def n_lengths(self) -> int:
        """The longest length L."""
        return len(self.fixed)

    @property
    def n_parameters(self) -> int:
        """Number of weights."""
        return int(self.chosen.sum())

    def weights(self, parameters: FloatArray) -> FloatArray:
        """Return the weights as a table of shape (F, K), zeros between."""
        table = np.zeros(self.chosen.shape)
        table[self.chosen] = parameters
        return table

    def bind(self, parameters: FloatArray) -> FloatArray:
        """Return the scores of all lengths, shape (L, K)."""
        scores: FloatArray = self.fixed + self.basis @ self.weights(parameters)
        return scores

    def pullback(self, gradient: FloatArray) -> FloatArray:
        """Return the gradient to the weights, given the one to the scores, shape (L, K)."""
        pulled: FloatArray = (self.basis.T @ gradient)[self.chosen]
        return pulled


class SegmentWeights(NamedTuple):
    """Parameters in their places.

    The first five as :class:`crfkit.potentials.linear_chain.LinearWeights`.

    Attributes
    ----------
    lengths : ndarray of shape (L, K)
        Potentials of the lengths.
    segments : BoundWeights or None
        Weights of the (attribute of segments, label) pairs, where there are any.
    """

    state: BoundWeights
    pair: FloatArray
    start: FloatArray
    end: FloatArray
    transitions: Any
    lengths: FloatArray
    segments: BoundWeights | None


class PreparedSegments(NamedTuple):
    """The rows of attributes of each chunk, and the segments that have them."""

    rows: Any
    spans: list[Spans]


class SemiMarkovModel(LinearChainModel):
    """Scores of segments (Sarawagi and Cohen 2004, section 2), linear in their features.

    The score of a segment is the sum of the weights of the attributes of all its tokens, of its
    first and its last one, of one that is alone, of its length, and of its own attributes.

    Parameters
    ----------
    state : AttributeWeights
        Which (attribute, column) pairs have a weight; columns are K labels for tokens anywhere in a
        segment, K for first and K for last ones, and K for those that are a segment alone.
    transition_from, transition_to, boundaries, transitions
        As for :class:`crfkit.potentials.LinearChainModel`: of a step from a segment to the next,
        of the labels of the first and last segments, of attributes of the transitions into first
        tokens.
    lengths : LengthModel
        How the scores of lengths are made.
    segments : AttributeWeights, optional
        Which (attribute of segments, label) pairs have a weight; none if not given.
    forbidden : ndarray of shape (K, K), dtype bool, optional
        Steps that are not allowed.

    Notes
    -----
    The parameters are those of `LinearChainModel`, then the weights of lengths and of attributes of
    segments.
    """

    def __init__(
        self,
        state: AttributeWeights,
        transition_from: ArrayLike,
        transition_to: ArrayLike,
        *,
        lengths: LengthModel,
        boundaries: bool = False,
        transitions: InputDependentTransitions | None = None,
        segments: AttributeWeights | None = None,
        forbidden: NDArray[np.bool_] | None = None,
    ) -> None:
        super().__init__(
            state,
            transition_from,
            transition_to,
            boundaries=boundaries,
            transitions=transitions or HomogeneousTransitions(),
        )
        self.lengths, self.segments = lengths, segments
        none = np.zeros((self.n_labels, self.n_labels), bool)
        self.forbidden = none if forbidden is None else forbidden

    @property
    def n_labels(self) -> int:
        """Number of labels K."""
        return self.state.n_columns // len(TOKEN_PARTS)

    @property
    def n_codes(self) -> int:
        """How many codes a token may have: a label, and whether its segment begins there."""
        return 2 * self.n_labels

    @property
    def n_parameters(self) -> int:
        """Number of weights P."""
        own = 0 if self.segments is None else self.segments.n_parameters
        return super().n_parameters + self.lengths.n_parameters + own

    @property
    def structure(self) -> Structure:
        """The structure that reads the scores."""
        return SemiMarkov()

    def linear(self, structure: Structure) -> tuple[LinearChainModel, Structure]:
        """Return the model without scores that are not learned, and the structure that adds them.

        These are the fixed scores of lengths, and transitions and lengths that are forbidden.
        """
        fixed = self.lengths.fixed
        if not (fixed.any() or self.forbidden.any()):
            return self, structure
        plain = copy.copy(self)
        plain.lengths = LengthModel(np.zeros_like(fixed), self.lengths.basis, self.lengths.chosen)
        plain.forbidden = np.zeros_like(self.forbidden)
        return plain, SemiMarkov(SegmentOffset(np.where(self.forbidden, -np.inf, 0.0), fixed))

    def check_counts(self, data: PackedSequences) -> None:
        """Raise ValueError unless scores are sums of weights times what is not negative."""
        super().check_counts(data)
        fixed, basis = self.lengths.fixed, self.lengths.basis
        if fixed[fixed > -np.inf].any() or basis.data.min(initial=0.0) < 0.0:
            raise ValueError(
                "iterative scaling needs features that are not negative and no other scores, but "
                "those of lengths are negative somewhere, or have a fixed part, as with "
                "length='poisson'. Use solver='lbfgs', or other lengths."
            )

    def _feature_values(self, data: PackedSequences) -> list[FloatArray | None]:
        """Return the values that weights are multiplied with, but for ones."""
        rows = None if data.segments is None else data.segments.rows
        own = [] if rows is None else [rows.values, rows.dense]
        return [*super()._feature_values(data), *own]

    def split_segments(self, parameters: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return views of the weights of lengths and of attributes of segments."""
        first = super().n_parameters
        last = first + self.lengths.n_parameters
        return parameters[first:last], parameters[last:]

    def bind(self, parameters: FloatArray) -> Any:
        """Return the parameters in their places."""
        of_lengths, of_segments = self.split_segments(parameters)
        plain = super().bind(parameters)
        plain.pair[:, self.forbidden] = -np.inf
        segments = None if self.segments is None else self.segments.bind(of_segments)
        return SegmentWeights(*plain, self.lengths.bind(of_lengths), segments)

    def scores(
        self,
        bound: Any,
        data: PackedSequences,
        chunk: Chunk,
        threads: ThreadMap = SERIAL,
    ) -> Potentials:
        """Return the scores of the sequences of a chunk of new data."""
        scores = super().scores(bound, data, chunk, threads)
        local = self.local_segments(data, chunk)
        rows = np.zeros((0 if local is None else local.rows.n_tokens, self.n_labels))
        if local is not None and self.segments is not None:
            self.segments.gather(bound.segments, Part(local.rows, 0, len(rows)), rows)
        return self._with_segments(scores, bound, rows, _spans_of(local, chunk))

    def complete_prepared(
        self, unary: FloatArray, bound: Any, prepared: PreparedBlock, index: int
    ) -> Potentials:
        """Return the scores of chunk `index`, given what its attributes of tokens contribute."""
        scores = super().complete_prepared(unary, bound, prepared, index)
        own: PreparedSegments = prepared.segments
        count = 0 if own.rows is None else own.rows.parts[index].end
        rows = np.zeros((count, self.n_labels))
        if count:
            own.rows.gather(bound.segments, index, rows)
        return self._with_segments(scores, bound, rows, own.spans[index])

    def _complete(self, unary: FloatArray, tables: Any, bound: Any, chunk: Chunk) -> Potentials:
        """Make scores of going on, of beginning and of ending of those of attributes."""
        semimarkov_add_inside(unary, self.n_labels)
        return super()._complete(unary, tables, bound, chunk)

    @property
    def _boundary_columns(self) -> tuple[slice, slice]:
        size = self.n_labels
        return slice(size, 2 * size), slice(2 * size, 3 * size)

    def _with_segments(
        self, scores: Potentials, bound: Any, rows: FloatArray, spans: Spans
    ) -> Potentials:
        """Return scores with those of lengths and of rows of attributes."""
        size = self.n_labels
        transitions = scores.pair.reshape(len(scores.pair) * size, size)
        return SegmentPotentials(
            scores.unary, np.concatenate([transitions, bound.lengths, rows]),
            scores.transition_index, scores.offsets, scores.first, len(transitions),
            len(bound.lengths), spans,
        )  # fmt: skip

    def local_segments(self, data: PackedSequences, chunk: Chunk) -> LocalSegments | None:
        """Return the segments of a chunk whose attributes have weights, None if the model has none.

        Most attributes of all segments that might be are never seen in a segment that is.
        """
        if self.segments is None:
            return None
        if data.segments is None:
            raise ValueError("the model has weights of attributes of segments, the data have none.")
        local = data.segments.within(chunk.tokens.start, chunk.tokens.stop)
        return local.with_rows(_weighted_rows(self.segments, local.rows))

    def cells(self, data: PackedSequences, chunk: Chunk) -> int:
        """Return how many scores a chunk has."""
        rows = self.lengths.n_lengths
        if data.segments is not None:
            ptr = data.segments.ptr
            rows += int(ptr[chunk.tokens.stop] - ptr[chunk.tokens.start])  # at most
        return super().cells(data, chunk) + rows * self.n_labels

    def prepare(
        self, data: PackedSequences, chunks: list[Chunk], threads: ThreadMap
    ) -> PreparedBlock:
        """Return the block as training on all of it reads it."""
        return self._prepared("prepare", super().prepare(data, chunks, threads), data, threads)

    def prepare_columns(
        self, data: PackedSequences, chunks: list[Chunk], threads: ThreadMap
    ) -> PreparedBlock:
        """Return the block as solvers read it which move after a few chunks."""
        plain = super().prepare_columns(data, chunks, threads)
        return self._prepared("prepare_columns", plain, data, threads)

    def prepare_long(
        self, data: PackedSequences, chunk: Chunk, threads: ThreadMap
    ) -> PreparedBlock:
        """Return a chunk of one long sequence in the same form, in parts that threads share."""
        return self._prepared("prepare", super().prepare_long(data, chunk, threads), data, threads)

    def _prepared(
        self, how: str, plain: PreparedBlock, data: PackedSequences, threads: ThreadMap
    ) -> PreparedBlock:
        """Return a block with the segments of its chunks."""
        found = threads(lambda chunk: self.local_segments(data, chunk), plain.chunks)
        spans = [_spans_of(*pair) for pair in zip(found, plain.chunks, strict=True)]
        rows = None
        if self.segments is not None:
            own = [local.rows for local in found if local is not None]
            parts = [Part(block, 0, block.n_tokens) for block in own]
            rows = getattr(self.segments, how)(parts, threads)
        return plain._replace(segments=PreparedSegments(rows, spans))

    def pullback(
        self,
        unary: FloatArray,
        pairs: list[FloatArray],
        prepared: PreparedBlock,
        threads: ThreadMap,
        out: FloatArray,
    ) -> None:
        """Add the gradient to the parameters; `unary` becomes the one to scores of attributes."""
        self._of_attributes(unary)
        parts = [self._pair_parts(pair, prepared, index) for index, pair in enumerate(pairs)]
        super().pullback(
            unary, [transitions for transitions, _, _ in parts], prepared, threads, out
        )
        of_lengths, of_segments = self.split_segments(out)
        of_lengths += self.lengths.pullback(np.sum([lengths for _, lengths, _ in parts], axis=0))
        if self.segments is not None:
            rows = [rows for _, _, rows in parts]
            self.segments.pullback(rows, prepared.segments.rows, threads, of_segments)

    def _of_attributes(self, unary: FloatArray) -> None:
        """Make the gradient to scores of going on and beginning the one to those of attributes."""
        semimarkov_collect_inside(unary, self.n_labels)

    def _pair_parts(
        self, pair: FloatArray, prepared: PreparedBlock, index: int
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return what is of transitions, shape (M, K, K), of lengths and of rows: views."""
        size, own = self.n_labels, prepared.segments.rows
        last = len(pair) - (0 if own is None else own.parts[index].end)
        first = last - self.lengths.n_lengths
        return pair[:first].reshape(first // size, size, size), pair[first:last], pair[last:]

    def shared_places(self) -> IdArray:
        """Return the parameters that all chunks touch: of transitions, boundaries and lengths."""
        first = super().n_parameters
        lengths = np.arange(first, first + self.lengths.n_parameters, dtype=np.uint32)
        return np.concatenate([super().shared_places(), lengths])

    def other_blocks(self, prepared: PreparedBlock) -> list[tuple[int, Any]]:
        """Return further weights of attributes: the first parameter and the prepared block."""
        blocks = super().other_blocks(prepared)
        if self.segments is None:
            return blocks
        first = self.n_parameters - self.segments.n_parameters
        return [*blocks, (first, prepared.segments.rows)]

    def gradients(self, residual: Counts, prepared: PreparedBlock, index: int) -> Gradients:
        """Return the gradient to the scores of chunk `index` by the weights they are made of."""
        unary = residual.unary.copy()
        self._of_attributes(unary)
        transitions, lengths, rows = self._pair_parts(residual.pair, prepared, index)
        plain = super().gradients(Counts(unary, transitions), prepared, index)
        shared = [*plain.shared, self.lengths.pullback(lengths)]
        return Gradients(
            unary, shared, plain.rows if self.segments is None else [*plain.rows, rows]
        )


def _weighted_rows(weights: AttributeWeights, rows: PackedSequences) -> NDArray[np.bool_]:
    """Return which rows have an attribute with a weight, shape (R,)."""
    ptr, some = weights.ptr, np.zeros(rows.n_tokens, bool)
    weighted = np.flatnonzero(ptr[rows.indices + 1] > ptr[rows.indices])
    some[np.searchsorted(rows.indptr, weighted, side="right") - 1] = True
    if rows.dense is not None:
        of_dense = np.diff(ptr[rows.n_sparse :]) > 0
        some |= np.any(rows.dense[:, of_dense] != 0.0, axis=1)
    return some


def _spans_of(local: LocalSegments | None, chunk: Chunk) -> Spans:
    n_tokens = chunk.tokens.stop - chunk.tokens.start
    if local is None:
        return no_spans(n_tokens)
    return make_spans(n_tokens, local.stop, local.length, local.row)
