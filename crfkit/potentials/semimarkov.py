"""Potentials of segments: blocks of weights beside those of chains, and the model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
import scipy.sparse as sp

import crfkit.structures as structures
from crfkit._parallel import Chunk, chunk_tokens
from crfkit._types import BoolArray, CodeArray, FloatArray, IdArray, Potentials
from crfkit.data import PackedSequences
from crfkit.data.segments import LocalSegments
from crfkit.data.topology import check_no_topology
from crfkit.data.validation import warn_if_lengths_badly_scaled
from crfkit.features.lengths import length_basis
from crfkit.labels.base import LabelSpace, TokenLabels
from crfkit.labels.segmentation import Segmentation, known_segments, single_labels
from crfkit.labels.segments import Limits, SegmentLabels, find_limits
from crfkit.potentials.attributes import AttributeWeights, Part
from crfkit.potentials.base import FeatureChoice, LabeledData
from crfkit.potentials.blocks import (
    LABELS,
    SEGMENTS,
    TOKENS,
    Pattern,
    PotentialParts,
    Reading,
    Residuals,
    Table,
    WeightBlock,
)
from crfkit.potentials.chain_blocks import (
    AttributeBlock,
    EndBlock,
    PreparedTokens,
    StartBlock,
    TransitionAttributeBlock,
    TransitionBlock,
    gather_tokens,
    token_residuals,
    transition_rows,
)
from crfkit.potentials.choice import Choice
from crfkit.potentials.linear import (
    END,
    LinearModel,
    Prepared,
    TokenWeights,
    WeightSpace,
    check_not_negative,
)
from crfkit.structures import SegmentOffset, SegmentPotentials, Spans, Structure
from crfkit.structures.potentials import make_spans, no_spans

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
        return cls(_in_parts(choice.label_pairs(), choice.of_segments[1]))

    def prepare(self, data: PackedSequences, chunks: list[Chunk], reading: Reading) -> Any:
        """Return the tokens of each chunk."""
        return PreparedTokens.of(self.weights, data, chunks, reading)

    def add(self, bound: Any, prepared: Any, index: int, parts: PotentialParts) -> None:
        """Set the potentials of going on, of beginning and of ending."""
        gather_tokens(bound, prepared, index, parts)
        size = self.weights.n_columns // len(TOKEN_PARTS)
        # The token that a segment begins with is one of its tokens.
        parts.unary[:, size : 2 * size] += parts.unary[:, :size]

    def residuals_of(self, residuals: Residuals, prepared: Any) -> list[FloatArray]:
        """Return the gradient with respect to the scores of attributes of each part of the tokens.

        It replaces that with respect to the potentials of going on and beginning.
        """
        size = self.weights.n_columns // len(TOKEN_PARTS)
        residuals.unary[:, :size] += residuals.unary[:, size : 2 * size]
        return token_residuals(residuals, prepared)


class LengthBlock(WeightBlock):
    """``length_d[k] = fixed[d, k] + sum_f basis[d, f] w[f, k]`` for chosen pairs of f and k.

    `fixed`, shape (L, K), is not learned: ``-inf`` forbids the segments of a length and a label.
    `basis`, shape (L, F), are finite functions of the length, read as a sparse array. `chosen`, of
    bool, shape (F, K), tells which function has a weight for which label.
    """

    name = "lengths"
    kind = "length x label"
    is_known = True
    tables: ClassVar = ()  # what is kept are the scores of all lengths

    def __init__(
        self, fixed: FloatArray, basis: sp.csr_array | FloatArray, chosen: BoolArray
    ) -> None:
        self.fixed, self.basis, self.chosen = fixed, sp.csr_array(basis), chosen
        self.n_lengths = len(fixed)
        rows, columns = np.nonzero(chosen)
        self.pattern = Pattern.of_rows(rows, columns, chosen.shape, len(chosen))

    @classmethod
    def of_pattern(cls, pattern: Pattern) -> Self:
        """Raise TypeError: functions of the length are more than their weights."""
        raise TypeError("the functions of the length are not known.")

    @classmethod
    def choose(cls, choice: Choice) -> LengthBlock:
        """Return weights for the lengths that occur, or all."""
        lengths, runs = choice.of_segments[0], choice.segments
        if choice.all_states:
            return lengths
        shape = lengths.fixed.shape
        cells = np.ravel_multi_index((runs.stop - runs.start - 1, runs.label), shape)
        counts = np.bincount(cells, minlength=lengths.fixed.size).reshape(shape)
        seen = (lengths.basis != 0.0).T @ counts
        return cls(lengths.fixed, lengths.basis, lengths.chosen & (seen >= choice.least))

    def bind(self, parameters: FloatArray) -> FloatArray:
        """Return the scores of all lengths, shape (L, K)."""
        table = np.zeros(self.chosen.shape)
        table[self.chosen] = parameters
        scores: FloatArray = self.fixed + self.basis @ table
        return scores

    def prepare(self, data: PackedSequences, chunks: list[Chunk], reading: Reading) -> None:
        """Return nothing: all chunks have the same."""

    def add(self, bound: Any, prepared: Any, index: int, parts: PotentialParts) -> None:
        """Set the potentials of lengths."""
        parts.lengths = bound

    def pullback(self, residuals: Residuals, prepared: Any, out: FloatArray) -> None:
        """Add the gradient with respect to the weights to `out`."""
        for lengths in residuals.lengths:
            out += (self.basis.T @ lengths)[self.chosen]

    def active(self, prepared: Any) -> IdArray:
        """Return all weights."""
        return self.all_weights


class PreparedSegments(NamedTuple):
    """The rows of attributes of each chunk, and the segments that have them."""

    rows: Any
    starts: range  # each chunk is one part
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

    def prepare(self, data: PackedSequences, chunks: list[Chunk], reading: Reading) -> Any:
        """Return the segments of each chunk whose attributes have weights."""
        found = reading.threads(lambda chunk: self.local_segments(data, chunk), chunks)
        spans = [
            make_spans(chunk.tokens.stop - chunk.tokens.start, local.stop, local.length, local.row)
            for local, chunk in zip(found, chunks, strict=True)
        ]
        parts = [Part(local.rows, 0, local.rows.n_tokens) for local in found]
        return PreparedSegments(reading(self.weights, parts), range(len(parts) + 1), spans)

    def local_segments(self, data: PackedSequences, chunk: Chunk) -> LocalSegments:
        """Return the segments of a chunk whose attributes have weights, few of all."""
        if data.segments is None:
            raise ValueError("the model has weights of attributes of segments, the data have none.")
        local = data.segments.within(chunk.tokens.start, chunk.tokens.stop)
        return local.with_rows(_weighted_rows(self.weights, local.rows))

    def add(self, bound: Any, prepared: Any, index: int, parts: PotentialParts) -> None:
        """Set the potentials of segments that have attributes."""
        parts.rows = np.zeros((prepared.rows.parts[index].end, self.weights.n_columns))
        parts.spans = prepared.spans[index]
        if len(parts.rows):
            prepared.rows.gather(bound, index, parts.rows)

    def residuals_of(self, residuals: Residuals, prepared: Any) -> list[FloatArray]:
        """Return the gradient with respect to the potentials of the rows of each chunk."""
        return residuals.rows


def _weighted_rows(weights: AttributeWeights, rows: PackedSequences) -> BoolArray:
    """Return which rows have an attribute with a weight, shape (R,)."""
    ptr, some = weights.ptr, np.zeros(rows.n_tokens, bool)
    weighted = np.flatnonzero(ptr[rows.indices + 1] > ptr[rows.indices])
    some[np.searchsorted(rows.indptr, weighted, side="right") - 1] = True
    if rows.dense is not None:
        of_dense = np.diff(ptr[rows.n_sparse :]) > 0
        some |= np.any(rows.dense[:, of_dense] != 0.0, axis=1)
    return some


def _in_parts(weights: AttributeWeights, parts: BoolArray) -> AttributeWeights:
    """Return (attribute, label) pairs side by side, once for each part, (D, B), that they have."""
    width, count = weights.n_columns, parts.shape[1]
    attributes = np.repeat(np.arange(weights.n_features), np.diff(weights.ptr))
    chosen, which = np.nonzero(parts[attributes])
    rows, columns = attributes[chosen], weights.columns[chosen] + which * width
    order = np.lexsort((columns, rows))
    shape = weights.n_features, width * count
    return AttributeWeights(*Pattern.of_rows(rows[order], columns[order], shape, weights.n_sparse))


class SemiMarkovModel(LinearModel):
    """Potentials of segments (Sarawagi and Cohen 2004, section 2), linear in their features.

    The score of a segment is the sum of the weights of the attributes of all its tokens, of its
    first and its last one, of one that is alone, of its length, and of its own attributes; between
    segments, and at the first and last of them, those of chains count.
    """

    block_types: ClassVar[dict[str, type[WeightBlock]]] = {
        block.name: block
        for block in (
            SegmentStateBlock, TransitionBlock, StartBlock, EndBlock, TransitionAttributeBlock,
            LengthBlock, SegmentAttributeBlock,
        )
    }  # fmt: skip
    other_tables = ("length_scores_",)

    @classmethod
    def of_fitted(cls, blocks: list[WeightBlock], fitted: Mapping[str, Any]) -> Self:
        """Return the model of fitted weights in blocks; scores of lengths are what they are."""
        scores = fitted["length_scores_"]
        none = np.zeros((0, scores.shape[1]), bool)
        lengths = LengthBlock(scores, np.zeros((len(scores), 0)), none)
        return cls([*blocks, lengths])

    def __init__(self, blocks: list[WeightBlock]) -> None:
        super().__init__(blocks)
        self.n_labels = size = self.n_columns // len(TOKEN_PARTS)
        self.n_codes = 2 * size  # a label, and whether its segment begins there
        self.chunk_tokens = chunk_tokens(size, own_transitions=not self.homogeneous)
        self.structure = structures.SemiMarkov()
        self.lengths, segments = self.get(LengthBlock), self.find(SegmentAttributeBlock)
        self.segments = None if segments is None else segments.weights

    @property
    def forbidden(self) -> BoolArray:
        """Transitions that are not allowed, shape (K, K)."""
        given = self.get(TransitionBlock).forbidden
        return np.zeros((self.n_labels, self.n_labels), bool) if given is None else given

    def local_segments(self, data: PackedSequences, chunk: Chunk) -> LocalSegments | None:
        """Return the segments of a chunk whose attributes have weights, if the model has any."""
        block = self.find(SegmentAttributeBlock)
        return None if block is None else block.local_segments(data, chunk)

    def linear(self, structure: Structure) -> tuple[Self, Structure]:
        """Return the model without fixed or forbidden scores, and a structure that adds them."""
        fixed, forbidden = self.lengths.fixed, self.forbidden
        if not (fixed.any() or forbidden.any()):
            return self, structure
        lengths = LengthBlock(np.zeros_like(fixed), self.lengths.basis, self.lengths.chosen)
        transitions = TransitionBlock(self.transition_from, self.transition_to, self.n_labels)
        plain = {"lengths": lengths, "transitions": transitions}
        model = type(self)([plain.get(block.name, block) for block in self.blocks])
        return model, structures.SemiMarkov(SegmentOffset(np.where(forbidden, -np.inf, 0.0), fixed))

    def cells(self, data: PackedSequences, chunk: Chunk) -> int:
        """Return how many potentials a chunk has, at most."""
        tables = 1 if self.homogeneous else transition_rows(data, chunk)[0].n_tokens
        rows = self.lengths.n_lengths + tables * self.n_labels
        if data.segments is not None:
            ptr = data.segments.ptr
            rows += int(ptr[chunk.tokens.stop] - ptr[chunk.tokens.start])
        tokens: int = chunk.tokens.stop - chunk.tokens.start
        return tokens * self.n_columns + rows * self.n_labels

    def check_counts(self, data: PackedSequences) -> None:
        """Raise ValueError unless potentials are sums of weights times what is not negative."""
        rows = None if data.segments is None else data.segments.rows
        check_not_negative([data, data.transitions, rows])
        fixed, basis = self.lengths.fixed, self.lengths.basis
        if fixed[fixed > -np.inf].any() or basis.data.min(initial=0.0) < 0.0:
            raise ValueError(
                "iterative scaling needs features that are not negative and no other scores, but "
                "those of lengths are negative somewhere, or have a fixed part, as with "
                "length='poisson'. Use solver='lbfgs', or other lengths."
            )

    def complete(self, fitted: dict[str, Any], parameters: FloatArray) -> None:
        """Add the scores of lengths, and which transitions are forbidden."""
        fitted["length_scores_"] = self.lengths.bind(self.split(parameters)["lengths"])
        fitted["transitions_"][self.forbidden] = -np.inf

    def finish(self, parts: PotentialParts, chunk: Chunk) -> Potentials:
        """Return the potentials that blocks have added to."""
        check_no_topology(parts.topology, "a model of segments")
        size = self.n_labels
        transitions = parts.pair.reshape(len(parts.pair) * size, size)
        rows, spans = parts.rows, parts.spans
        if rows is None or spans is None:
            rows, spans = np.zeros((0, size)), no_spans(len(parts.unary))
        lengths: FloatArray = parts.lengths  # type: ignore[assignment]
        index = np.zeros(1, np.uint32) if parts.index is None else parts.index
        pair, sizes = np.concatenate([transitions, lengths, rows]), (len(transitions), len(lengths))
        return SegmentPotentials(
            parts.unary, pair, index, parts.offsets, chunk.first, *sizes, spans
        )

    def residuals(
        self, unary: FloatArray, pairs: list[FloatArray], chosen: Sequence[int], prepared: Prepared
    ) -> Residuals:
        """Return the gradient to the potentials of some chunks by what they are made of: views."""
        size, segments = self.n_labels, prepared.blocks.get("segment_attributes")
        tables, lengths, rows = list[FloatArray](), list[FloatArray](), list[FloatArray]()
        for index, pair in zip(chosen, pairs, strict=True):
            last = len(pair) - (0 if segments is None else segments.rows.parts[index].end)
            first = last - self.lengths.n_lengths
            tables.append(pair[:first].reshape(first // size, size, size))
            lengths.append(pair[first:last])
            rows.append(pair[last:])
        chunks = [prepared.chunks[i] for i in chosen]
        topologies = [prepared.topologies[i] for i in chosen]
        return Residuals(unary, chunks, tables, lengths, rows, topologies)


def choose_segment_features(
    data: PackedSequences,
    codes: CodeArray,
    n_labels: int,
    *,
    lengths: LengthBlock,
    parts: BoolArray,
    **options: Any,
) -> SemiMarkovModel:
    """Return a model of segments, as :func:`choose_features`; `parts` are the `token_parts`."""
    check_no_topology(data.topology, "a model of segments")
    choice = Choice(data, codes, n_labels, lengths=lengths, token_parts=parts, **options)
    return SemiMarkovModel(SemiMarkovModel.choose(choice))


class SegmentWeights(WeightSpace):
    """Weights of semi-Markov models; the labels of a model that is fitted name no `Segments`."""

    kind = SemiMarkovModel

    def choose(self, features: FeatureChoice, training: LabeledData) -> LinearModel:
        """Return the model with the weights that are to be fitted."""
        size = len(training.classes)
        targets, offsets = training.targets, training.data.offsets
        runs = known_segments(targets, offsets, size)
        limits = find_limits(self.labels.segments, training.coding, training.classes, runs)
        options = self._options(features, training) | {"forbidden": limits.forbidden}
        if targets.allowed is not None:
            labels = targets.allowed[:, :size] | targets.allowed[:, size:]
            options["allowed"] = labels if size > 1 else None  # one label needs not be known
            options["known_segments"] = single_labels(runs)
        lengths, parts = self._lengths(limits, runs), self._parts(training.data)
        return choose_segment_features(
            training.data, training.codes, size, lengths=lengths, parts=parts, **options
        )

    def _lengths(self, limits: Limits, runs: Segmentation) -> LengthBlock:
        """Return how the scores of lengths are made."""
        most, least = limits.most, limits.least
        longest = int(most.max(initial=1))
        found = length_basis(self.labels.segments.length, longest)
        warn_if_lengths_badly_scaled(found.basis, found.names, runs.stop - runs.start)
        lengths = np.arange(1, longest + 1)[:, None]
        fixed = np.where((lengths <= most) & (lengths >= least), found.fixed[:, None], -np.inf)
        chosen = np.ones((found.basis.shape[1], len(most)), bool)
        return LengthBlock(fixed, found.basis, chosen)

    def _parts(self, data: Any) -> BoolArray:
        """Return which attributes count for all, first, last, and single tokens, shape (D, 4)."""
        wanted = np.array([part in self.labels.segments.token_parts for part in TOKEN_PARTS])
        parts = np.tile(wanted, (data.n_features, 1))
        for attribute, name in enumerate(() if data.names is None else data.feature_names):
            end = END.match(str(name))
            if end:
                parts[attribute] = np.array(TOKEN_PARTS) == end[1]
        return parts


# The weights that models of labels have.
WEIGHTS_OF: dict[type[LabelSpace], type[WeightSpace]] = {
    TokenLabels: TokenWeights,
    SegmentLabels: SegmentWeights,
}
