"""Potentials of segments."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from crfkit._types import Chunk, FloatArray, Potentials
from crfkit.data import PackedSequences
from crfkit.data.chunks import chunk_tokens
from crfkit.data.segments import LocalSegments
from crfkit.data.topology import check_no_topology
from crfkit.potentials.attributes import AttributeWeights
from crfkit.potentials.blocks import PotentialParts, Residuals, WeightBlock
from crfkit.potentials.chain_blocks import (
    EndBlock,
    StartBlock,
    TransitionAttributeBlock,
    TransitionBlock,
    transition_rows,
)
from crfkit.potentials.lengths import LengthModel
from crfkit.potentials.linear import LinearModel, Prepared, check_not_negative
from crfkit.potentials.segment_blocks import (
    TOKEN_PARTS,
    LengthBlock,
    SegmentAttributeBlock,
    SegmentStateBlock,
    without_segments,
)
from crfkit.structures import SegmentOffset, SegmentPotentials, SemiMarkov, Structure

__all__ = ["TOKEN_PARTS", "LengthModel", "SemiMarkovModel"]


class SemiMarkovModel(LinearModel):
    """Potentials of segments (Sarawagi and Cohen 2004, section 2), linear in their features.

    The score of a segment is the sum of the weights of the attributes of all its tokens, of its
    first and its last one, of one that is alone, of its length, and of its own attributes; between
    segments, and at the first and last of them, those of chains count.

    Parameters
    ----------
    blocks : list of WeightBlock
        First weights of attributes of tokens and of transitions, then others.
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
        lengths = LengthBlock(LengthModel(scores, np.zeros((len(scores), 0)), none))
        return cls([*blocks, lengths])

    @property
    def forbidden(self) -> NDArray[np.bool_]:
        """Transitions that are not allowed, shape (K, K)."""
        given = self.get(TransitionBlock).forbidden
        return np.zeros((self.n_labels, self.n_labels), bool) if given is None else given

    @property
    def lengths(self) -> LengthModel:
        """How the scores of lengths are made."""
        return self.get(LengthBlock).model

    @property
    def segments(self) -> AttributeWeights | None:
        """Which attributes of segments have weights, where there are any."""
        block = self.find(SegmentAttributeBlock)
        return None if block is None else block.weights

    @property
    def n_labels(self) -> int:
        """Number of labels K."""
        return self.state.n_columns // len(TOKEN_PARTS)

    @property
    def n_codes(self) -> int:
        """How many codes a token may have: a label, and whether its segment begins there."""
        return 2 * self.n_labels

    @property
    def chunk_tokens(self) -> int:
        """Number of tokens that a chunk should have."""
        return chunk_tokens(self.n_labels, own_transitions=not self.homogeneous)

    @property
    def structure(self) -> Structure:
        """The structure that reads the potentials."""
        return SemiMarkov()

    def local_segments(self, data: PackedSequences, chunk: Chunk) -> LocalSegments | None:
        """Return the segments of a chunk whose attributes have weights, if the model has any."""
        block = self.find(SegmentAttributeBlock)
        return None if block is None else block.local_segments(data, chunk)

    def linear(self, structure: Structure) -> tuple[Self, Structure]:
        """Return the model without potentials that are not learned, and a structure that adds them.

        These are the fixed scores of lengths, and transitions and lengths that are forbidden.
        """
        fixed, forbidden = self.lengths.fixed, self.forbidden
        if not (fixed.any() or forbidden.any()):
            return self, structure
        lengths = LengthModel(np.zeros_like(fixed), self.lengths.basis, self.lengths.chosen)
        transitions = TransitionBlock(self.transition_from, self.transition_to, self.n_labels)
        plain = {"lengths": LengthBlock(lengths), "transitions": transitions}
        model = type(self)([plain.get(block.name, block) for block in self.blocks])
        return model, SemiMarkov(SegmentOffset(np.where(forbidden, -np.inf, 0.0), fixed))

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
            rows, spans = without_segments(parts, size)
        lengths: FloatArray = parts.lengths  # type: ignore[assignment]
        return SegmentPotentials(
            parts.unary,
            np.concatenate([transitions, lengths, rows]),
            np.zeros(1, np.uint32) if parts.index is None else parts.index,
            parts.offsets,
            chunk.first,
            len(transitions),
            len(lengths),
            spans,
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
