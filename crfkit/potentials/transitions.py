"""Scores of transitions: the same for all, or by the attributes of each."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from crfkit._parallel import ThreadMap
from crfkit._types import Chunk, CodeArray, FloatArray, IdArray
from crfkit.data import PackedSequences
from crfkit.data.chunks import chunk_tokens
from crfkit.potentials.attributes import AttributeWeights, BoundWeights, Part
from crfkit.potentials.distinct import distinct_rows
from crfkit.structures import Chain, SparseChain, Structure

Tables = tuple[
    FloatArray, IdArray | None
]  # pair scores (M, K, K) or (1, P2), and which of them each token has

# From so many labels on, and up to this share of the pairs of labels, weights of transitions are
# kept as they are: the recurrences are then faster than on a table of all pairs.
SPARSE_LABELS = 50
SPARSE_SHARE = 0.1
# Scores of a chunk at most, where no table of all pairs is made for it.
SPARSE_CELLS = 1 << 18


class _DenseTables:
    """Step weights as a table of all pairs of labels."""

    def structure(self, source: CodeArray, target: CodeArray, n_labels: int) -> Structure:
        """Return the structure that reads such scores."""
        return Chain()

    def place(
        self, weights: FloatArray, source: CodeArray, target: CodeArray, n_labels: int
    ) -> FloatArray:
        """Return the weights of transitions, shape (P2,), as a table of shape (1, K, K)."""
        pair = np.zeros((1, n_labels, n_labels))
        pair[0, source, target] = weights
        return pair

    def add_taken(
        self, pairs: list[FloatArray], source: CodeArray, target: CodeArray, out: FloatArray
    ) -> None:
        """Add what stands in the tables of all chunks in the places of the transitions."""
        for pair in pairs:
            out += pair.sum(axis=0)[source, target]

    def table_cells(self, n_transitions: int, n_labels: int) -> int:
        """Return how many scores a table has."""
        return n_labels**2


class HomogeneousTransitions(_DenseTables):
    """All transitions have the same scores: no attributes, no weights of their own."""

    n_parameters = 0

    def chunk_tokens(self, n_labels: int) -> int:
        """Return the number of tokens that a chunk should have."""
        return chunk_tokens(n_labels, own_transitions=False)

    def n_tables(self, data: PackedSequences, chunk: Chunk) -> int:
        """Return how many tables of pair scores a chunk has."""
        return 1

    def bind(self, weights: FloatArray) -> None:
        """Return nothing: there are no weights to place."""

    def tables(self, bound: None, pair: FloatArray, data: PackedSequences, chunk: Chunk) -> Tables:
        """Return the shared table, shape (1, K, K)."""
        return pair, None

    def prepare(self, data: PackedSequences, chunks: list[Chunk], threads: ThreadMap) -> None:
        """Return nothing: there is nothing to prepare."""

    prepare_columns = prepare

    def prepared_tables(self, bound: None, pair: FloatArray, prepared: None, index: int) -> Tables:
        """Return the shared table, shape (1, K, K)."""
        return pair, None

    def pullback(
        self, pairs: list[FloatArray], prepared: None, threads: ThreadMap, out: FloatArray
    ) -> None:
        """Do nothing: there are no weights."""


class SparseTransitions(HomogeneousTransitions):
    """Shared scores of few transitions, kept as a list of shape (1, P2): the others score 0."""

    def structure(self, source: CodeArray, target: CodeArray, n_labels: int) -> Structure:
        """Return the structure that reads such scores."""
        return SparseChain(source, target, n_labels)

    def chunk_tokens(self, n_labels: int) -> int:
        """Return the number of tokens that a chunk should have."""
        return max(1, SPARSE_CELLS // n_labels)

    def place(
        self, weights: FloatArray, source: CodeArray, target: CodeArray, n_labels: int
    ) -> FloatArray:
        """Return a copy of the weights of transitions as they are, shape (1, P2)."""
        return weights[None].copy()

    def add_taken(
        self, pairs: list[FloatArray], source: CodeArray, target: CodeArray, out: FloatArray
    ) -> None:
        """Add the gradients of all chunks."""
        for pair in pairs:
            out += pair[0]

    def table_cells(self, n_transitions: int, n_labels: int) -> int:
        """Return how many scores the list has."""
        return n_transitions


def homogeneous_transitions(n_labels: int, n_transitions: int) -> HomogeneousTransitions:
    """Return how the weights of transitions without attributes are best kept."""
    few = n_labels >= SPARSE_LABELS and n_transitions <= SPARSE_SHARE * n_labels**2
    return SparseTransitions() if few else HomogeneousTransitions()


class PreparedTransitions(NamedTuple):
    """The distinct rows of attributes of each chunk, and which of them each token has."""

    rows: Any
    tables: list[IdArray]


class InputDependentTransitions(_DenseTables):
    """``pair_t[i, j] = v[i, j] + sum_b z[t, b] u[b, i, j]`` for attributes ``z``.

    Parameters
    ----------
    weights : AttributeWeights
        Which attributes have a weight for which step; column ``i * K + j`` is the step from label
        ``i`` to label ``j``.
    """

    def __init__(self, weights: AttributeWeights) -> None:
        self.weights = weights

    @property
    def n_parameters(self) -> int:
        """Number of (attribute, label, next label) weights."""
        return self.weights.n_parameters

    def chunk_tokens(self, n_labels: int) -> int:
        """Return the number of tokens that a chunk should have."""
        return chunk_tokens(n_labels, own_transitions=True)

    def n_tables(self, data: PackedSequences, chunk: Chunk) -> int:
        """Return how many tables of pair scores a chunk has."""
        return _transition_rows(data, chunk)[0].n_tokens

    def bind(self, weights: FloatArray) -> BoundWeights:
        """Return the weights in their places."""
        return self.weights.bind(weights)

    def tables(
        self, bound: BoundWeights, pair: FloatArray, data: PackedSequences, chunk: Chunk
    ) -> Tables:
        """Return the pair scores of new data: one table for each distinct row of attributes."""
        rows, table = _transition_rows(data, chunk)
        pairs = np.repeat(pair, rows.n_tokens, axis=0)
        self.weights.gather(bound, Part(rows, 0, rows.n_tokens), _flat(pairs))
        return pairs, table

    def prepare(
        self, data: PackedSequences, chunks: list[Chunk], threads: ThreadMap
    ) -> PreparedTransitions:
        """Return the distinct rows of each chunk as training reads them."""
        parts, tables = _distinct_parts(data, chunks, threads)
        return PreparedTransitions(self.weights.prepare(parts, threads), tables)

    def prepare_columns(
        self, data: PackedSequences, chunks: list[Chunk], threads: ThreadMap
    ) -> PreparedTransitions:
        """Return them as solvers read them which move after a few chunks."""
        parts, tables = _distinct_parts(data, chunks, threads)
        return PreparedTransitions(self.weights.prepare_columns(parts, threads), tables)

    def prepared_tables(
        self, bound: BoundWeights, pair: FloatArray, prepared: PreparedTransitions, index: int
    ) -> Tables:
        """Return the same as `tables` for chunk `index` of a prepared block."""
        pairs = np.repeat(pair, prepared.rows.parts[index].end, axis=0)
        prepared.rows.gather(bound, index, _flat(pairs))
        return pairs, prepared.tables[index]

    def pullback(
        self,
        pairs: list[FloatArray],
        prepared: PreparedTransitions,
        threads: ThreadMap,
        out: FloatArray,
    ) -> None:
        """Add the gradient to the weights, given the one to the tables of each chunk."""
        self.weights.pullback([_flat(pair) for pair in pairs], prepared.rows, threads, out)


def _flat(pair: FloatArray) -> FloatArray:
    """Return tables of pair scores as rows, shape (M, K * K): a view."""
    return pair.reshape(len(pair), pair.shape[1] * pair.shape[2])


def _distinct_parts(
    data: PackedSequences, chunks: list[Chunk], threads: ThreadMap
) -> tuple[list[Part], list[IdArray]]:
    """Return the distinct rows of each chunk as parts, and which of them its tokens have."""
    found = threads(lambda chunk: _transition_rows(data, chunk), chunks)
    return [Part(rows, 0, rows.n_tokens) for rows, _ in found], [table for _, table in found]


def _transition_rows(data: PackedSequences, chunk: Chunk) -> tuple[PackedSequences, IdArray]:
    """Return the distinct rows of transition attributes of a chunk, and those of its tokens."""
    if data.transitions is None:
        raise ValueError(
            "the model has weights of attributes of transitions, but the data have none."
        )
    return distinct_rows(data.transitions, chunk.tokens.start, chunk.tokens.stop)
