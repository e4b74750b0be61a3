"""The blocks of weights of semi-Markov models, beside those that they share with chains."""

from __future__ import annotations

from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from crfkit._parallel import ThreadMap
from crfkit._types import Chunk, FloatArray, IdArray
from crfkit.data import PackedSequences
from crfkit.data.segments import LocalSegments
from crfkit.kernels.semimarkov.tables import semimarkov_add_inside, semimarkov_collect_inside
from crfkit.potentials.attributes import AttributeWeights, Part
from crfkit.potentials.blocks import (
    LABELS,
    SEGMENTS,
    TOKENS,
    Choice,
    Pattern,
    PotentialParts,
    Reading,
    Residuals,
    Table,
    WeightBlock,
)
from crfkit.potentials.chain_blocks import (
    AttributeBlock,
    PreparedTokens,
    gather_tokens,
    token_parts,
    token_residuals,
)
from crfkit.potentials.lengths import LengthModel
from crfkit.structures import Spans
from crfkit.structures.segment_tables import make_spans, no_spans

# Which tokens of a segment the attributes of a block of weights are counted for.
TOKEN_PARTS = ("inside", "first", "last", "single")


class SegmentStateBlock(AttributeBlock):
    """Weights of attributes of tokens, by their part in a segment.

    Columns are K labels for tokens anywhere in a segment, K for first and K for last ones, and K
    for those that are a segment alone.
    """

    name = "state"
    kind = "attribute x label"
    is_known = True
    tables: ClassVar = (
        Table("coef_", TOKENS, LABELS, "attributes", "state_features_"),
        Table("first_coef_", TOKENS, LABELS, "attributes of first tokens", "first_features_"),
        Table("last_coef_", TOKENS, LABELS, "attributes of last tokens", "last_features_"),
        Table("single_coef_", TOKENS, LABELS, "attributes of single tokens", "single_features_"),
    )

    @classmethod
    def choose(cls, choice: Choice) -> Self:
        """Return the (attribute, label) pairs that occur, or all, for the parts that they have.

        What a label never has at first tokens tells that it does not begin there, so that pairs
        seen anywhere in segments have weights for first, last and single tokens, too.
        """
        labels = (choice.codes % choice.n_labels).astype(np.int32)
        seen = choice.pairs(choice.data, labels, choice.n_labels, everything=choice.all_states)
        parts = choice.of_segments[1]
        return cls(_side_by_side([seen] * parts.shape[1], parts))

    def prepare(
        self, data: PackedSequences, chunks: list[Chunk], threads: ThreadMap, reading: Reading
    ) -> PreparedTokens:
        """Return the tokens of each chunk."""
        return PreparedTokens(chunks, reading(self.weights, token_parts(data, chunks), threads))

    def add(
        self, bound: Any, prepared: Any, index: int, parts: PotentialParts, threads: ThreadMap
    ) -> None:
        """Set the potentials of going on, of beginning and of ending."""
        gather_tokens(bound, prepared, index, parts.unary, threads)
        semimarkov_add_inside(parts.unary, self.weights.n_columns // len(TOKEN_PARTS))

    def residuals_of(self, residuals: Residuals, prepared: Any) -> list[FloatArray]:
        """Return the gradient with respect to the scores of attributes of each part of the tokens.

        It replaces that with respect to the potentials of going on and beginning.
        """
        semimarkov_collect_inside(residuals.unary, self.weights.n_columns // len(TOKEN_PARTS))
        return token_residuals(residuals, prepared)


class LengthBlock(WeightBlock):
    """Weights of functions of the length of a segment.

    Parameters
    ----------
    model : LengthModel
        How the scores of lengths are made of them.
    """

    name = "lengths"
    kind = "length x label"
    is_known = True
    tables: ClassVar = ()  # what is kept are the scores of all lengths

    def __init__(self, model: LengthModel) -> None:
        self.model = model

    @property
    def pattern(self) -> Pattern:
        """Where the weights stand, in a matrix of functions and labels."""
        rows, columns = np.nonzero(self.model.chosen)
        n_rows, n_columns = self.model.chosen.shape
        ptr = np.searchsorted(rows, np.arange(n_rows + 1)).astype(np.int64)
        return Pattern(ptr, columns.astype(np.int32), n_columns, n_rows)

    @classmethod
    def of_pattern(cls, pattern: Pattern) -> Self:
        """Raise TypeError: functions of the length are more than their weights."""
        raise TypeError("the functions of the length are not known.")

    @classmethod
    def choose(cls, choice: Choice) -> Self:
        """Return weights for the lengths that occur, or all."""
        lengths, runs = choice.of_segments[0], choice.segments
        if choice.all_states:
            return cls(lengths)
        shape = lengths.fixed.shape
        cells = np.ravel_multi_index((runs.stop - runs.start - 1, runs.label), shape)
        counts = np.bincount(cells, minlength=lengths.fixed.size).reshape(shape)
        seen = (lengths.basis != 0.0).T @ counts
        return cls(
            LengthModel(lengths.fixed, lengths.basis, lengths.chosen & (seen >= choice.least))
        )

    def bind(self, parameters: FloatArray) -> FloatArray:
        """Return the scores of all lengths, shape (L, K)."""
        return self.model.bind(parameters)

    def prepare(
        self, data: PackedSequences, chunks: list[Chunk], threads: ThreadMap, reading: Reading
    ) -> None:
        """Return nothing: all chunks have the same."""

    def add(
        self, bound: Any, prepared: Any, index: int, parts: PotentialParts, threads: ThreadMap
    ) -> None:
        """Set the potentials of lengths."""
        parts.lengths = bound

    def pullback(
        self, residuals: Residuals, prepared: Any, threads: ThreadMap, out: FloatArray
    ) -> None:
        """Add the gradient with respect to the weights to `out`."""
        out += self.model.pullback(np.sum(residuals.lengths, axis=0))

    def active(self, prepared: Any) -> IdArray:
        """Return all weights."""
        return self.all_weights


class PreparedSegments(NamedTuple):
    """The rows of attributes of each chunk, and the segments that have them."""

    rows: Any
    spans: list[Spans]


class SegmentAttributeBlock(AttributeBlock):
    """Weights of attributes of whole segments."""

    name = "segment_attributes"
    kind = "attribute of segments x label"
    is_known = True
    tables: ClassVar = (
        Table("segment_coef_", SEGMENTS, LABELS, "attributes of segments", "segment_features_"),
    )

    @classmethod
    def choose(cls, choice: Choice) -> Self | None:
        """Return the (attribute of segments, label) pairs that occur, or all."""
        segments, runs = choice.data.segments, choice.segments
        if segments is None:
            return None
        found = segments.find(runs.start, runs.stop)
        rows, labels = segments.row[found[found >= 0]], runs.label[found >= 0]
        seen = segments.rows.take_tokens(rows)
        labels = labels.astype(np.int32)
        return cls(choice.pairs(seen, labels, choice.n_labels, everything=choice.all_states))

    def prepare(
        self, data: PackedSequences, chunks: list[Chunk], threads: ThreadMap, reading: Reading
    ) -> PreparedSegments:
        """Return the segments of each chunk whose attributes have weights."""
        found = threads(lambda chunk: self.local_segments(data, chunk), chunks)
        spans = [
            make_spans(chunk.tokens.stop - chunk.tokens.start, local.stop, local.length, local.row)
            for local, chunk in zip(found, chunks, strict=True)
        ]
        parts = [Part(local.rows, 0, local.rows.n_tokens) for local in found]
        return PreparedSegments(reading(self.weights, parts, threads), spans)

    def local_segments(self, data: PackedSequences, chunk: Chunk) -> LocalSegments:
        """Return the segments of a chunk whose attributes have weights.

        Most attributes of all segments that might be are never seen in a segment that is.
        """
        if data.segments is None:
            raise ValueError("the model has weights of attributes of segments, the data have none.")
        local = data.segments.within(chunk.tokens.start, chunk.tokens.stop)
        return local.with_rows(_weighted_rows(self.weights, local.rows))

    def add(
        self, bound: Any, prepared: Any, index: int, parts: PotentialParts, threads: ThreadMap
    ) -> None:
        """Set the potentials of segments that have attributes."""
        parts.rows = np.zeros((prepared.rows.parts[index].end, self.weights.n_columns))
        parts.spans = prepared.spans[index]
        if len(parts.rows):
            prepared.rows.gather(bound, index, parts.rows)

    def residuals_of(self, residuals: Residuals, prepared: Any) -> list[FloatArray]:
        """Return the gradient with respect to the potentials of the rows of each chunk."""
        return residuals.rows


def without_segments(parts: PotentialParts, n_labels: int) -> tuple[FloatArray, Spans]:
    """Return potentials of segments that have attributes, where there are none."""
    return np.zeros((0, n_labels)), no_spans(len(parts.unary))


def _weighted_rows(weights: AttributeWeights, rows: PackedSequences) -> NDArray[np.bool_]:
    """Return which rows have an attribute with a weight, shape (R,)."""
    ptr, some = weights.ptr, np.zeros(rows.n_tokens, bool)
    weighted = np.flatnonzero(ptr[rows.indices + 1] > ptr[rows.indices])
    some[np.searchsorted(rows.indptr, weighted, side="right") - 1] = True
    if rows.dense is not None:
        of_dense = np.diff(ptr[rows.n_sparse :]) > 0
        some |= np.any(rows.dense[:, of_dense] != 0.0, axis=1)
    return some


def _side_by_side(blocks: list[AttributeWeights], parts: NDArray[np.bool_]) -> AttributeWeights:
    """Return the pairs of several blocks of columns as those of one.

    `parts` tells which attributes, shape (D, B), have any in each block.
    """
    width, n_sparse = blocks[0].n_columns, blocks[0].n_sparse
    kept = []
    for number, block in enumerate(blocks):
        attributes = np.repeat(np.arange(block.n_features), np.diff(block.ptr))
        chosen = parts[attributes, number]
        kept.append((attributes[chosen], block.columns[chosen] + number * width))
    attributes = np.concatenate([a for a, _ in kept])
    columns = np.concatenate([c for _, c in kept])
    order = np.argsort(attributes, kind="stable")  # columns of later blocks are larger
    counts = np.bincount(attributes, minlength=blocks[0].n_features)
    ptr = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    return AttributeWeights(ptr, columns[order], n_columns=width * len(blocks), n_sparse=n_sparse)
