"""Potentials of linear chains."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np

from crfkit._types import Chunk, CodeArray, FloatArray, IntArray, Potentials
from crfkit.data import PackedSequences
from crfkit.data.chunks import chunk_tokens
from crfkit.potentials.attributes import AttributeWeights
from crfkit.potentials.blocks import PotentialParts, Residuals, WeightBlock
from crfkit.potentials.chain_blocks import (
    SPARSE_CELLS,
    EndBlock,
    StartBlock,
    StateBlock,
    TransitionAttributeBlock,
    TransitionBlock,
    transition_rows,
)
from crfkit.potentials.linear import LinearModel, Prepared, check_not_negative
from crfkit.structures import Structure


class LinearChainModel(LinearModel):
    """``unary_t[k] = sum_a x[t, a] w[a, k]`` and ``pair_t[i, j] = v[i, j] + u_t[i, j]``.

    Without attributes of transitions u_t is 0. See :func:`chain_model`.

    Parameters
    ----------
    blocks : list of WeightBlock
        First weights of attributes of tokens and of transitions, then others.
    structure : Structure, optional
        Reads the potentials of data with a topology, if it is no chain: transitions lead into each
        token from the one that the topology says.
    """

    block_types: ClassVar[dict[str, type[WeightBlock]]] = {
        block.name: block
        for block in (StateBlock, TransitionBlock, StartBlock, EndBlock, TransitionAttributeBlock)
    }

    def __init__(self, blocks: list[WeightBlock], structure: Structure | None = None) -> None:
        self._given = structure
        plain = structure is None and all(
            block.name != TransitionAttributeBlock.name for block in blocks
        )
        super().__init__(
            [b.in_short() if plain and isinstance(b, TransitionBlock) else b for b in blocks]
        )

    @classmethod
    def of_fitted(cls, blocks: list[WeightBlock], fitted: Mapping[str, Any]) -> Self:
        """Return the model of fitted weights in blocks."""
        return cls(blocks, fitted.get("structure_"))

    @property
    def n_labels(self) -> int:
        """Number of labels K."""
        return self.state.n_columns

    @property
    def n_codes(self) -> int:
        """How many codes a token may have."""
        return self.n_labels

    @property
    def chunk_tokens(self) -> int:
        """Number of tokens that a chunk should have."""
        if self.get(TransitionBlock).is_list:
            return max(1, SPARSE_CELLS // self.n_labels)
        own = self.transition_attributes is not None
        return chunk_tokens(self.n_labels, own_transitions=own)

    @cached_property
    def structure(self) -> Structure:
        """The structure that reads the potentials."""
        return self._given or self.get(TransitionBlock).structure

    def linear(self, structure: Structure) -> tuple[Self, Structure]:
        """Return the model and the structure: all potentials are learned."""
        return self, structure

    def cells(self, data: PackedSequences, chunk: Chunk) -> int:
        """Return how many potentials a chunk has."""
        one = self.transition_attributes is None
        tables = 1 if one else transition_rows(data, chunk)[0].n_tokens
        tokens: int = chunk.tokens.stop - chunk.tokens.start
        return tokens * self.n_columns + tables * self.table_cells

    def check_counts(self, data: PackedSequences) -> None:
        """Raise ValueError unless potentials are sums of weights times what is not negative."""
        check_not_negative([data, data.transitions])

    def complete(self, fitted: dict[str, Any], parameters: FloatArray) -> None:
        """Add the structure, where it is no chain."""
        if self._given is not None:
            fitted["structure_"] = self._given

    def finish(self, parts: PotentialParts, chunk: Chunk) -> Potentials:
        """Return the potentials that blocks have added to."""
        topology = parts.topology
        if (topology is None) != (self._given is None):
            raise ValueError(
                "X does not say which token each transition comes from, but the model was fitted "
                "to data that do: transform X with the transformer the model was fitted with."
                if topology is None
                else f"X has a {type(topology).__name__}, but the model was fitted to chains: "
                "X.with_topology(None) leaves it out."
            )
        more = () if topology is None else topology.arrays
        index = np.zeros(1, np.uint32) if parts.index is None else parts.index
        structure: Any = self.structure
        found: Potentials = structure.potentials(
            parts.unary, parts.pair, index, parts.offsets, chunk.first, *more
        )
        return found

    def residuals(
        self, unary: FloatArray, pairs: list[FloatArray], chosen: Sequence[int], prepared: Prepared
    ) -> Residuals:
        """Return the gradient to the potentials of some chunks by what they are made of: views."""
        chunks = [prepared.chunks[i] for i in chosen]
        return Residuals(unary, chunks, pairs, [], [], [prepared.topologies[i] for i in chosen])


def chain_model(
    state: AttributeWeights,
    transition_from: CodeArray | IntArray,
    transition_to: CodeArray | IntArray,
    *,
    boundaries: bool = False,
    transition_attributes: AttributeWeights | None = None,
) -> LinearChainModel:
    """Return a model of linear chains with these weights.

    Parameters
    ----------
    state : AttributeWeights
        Which (attribute, label) pairs have a weight; its columns are the K labels.
    transition_from, transition_to : array of shape (P2,)
        Transitions that have a weight, ordered by the label before. All others are allowed too,
        with the potential 0.
    boundaries : bool
        Whether the labels of the first and last token of a sequence have weights of their own.
    transition_attributes : AttributeWeights, optional
        Which attributes of transitions have a weight for which transition; column ``i * K + j`` is
        that from label ``i`` to label ``j``.
    """
    size = state.n_columns
    blocks = [StateBlock(state), TransitionBlock(transition_from, transition_to, size)]
    if boundaries:
        blocks += [StartBlock(size), EndBlock(size)]
    if transition_attributes is not None:
        blocks.append(TransitionAttributeBlock(transition_attributes))
    return LinearChainModel(blocks)
