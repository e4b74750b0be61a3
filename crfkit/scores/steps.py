"""Scores of steps: the same for all, or by the attributes of each."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from crfkit._parallel import ThreadMap
from crfkit._types import Chunk, FloatArray, IdArray
from crfkit.data import PackedSequences
from crfkit.data.chunks import chunk_tokens
from crfkit.scores.attributes import AttributeWeights, BoundWeights, Part, PreparedParts
from crfkit.scores.distinct import distinct_rows

Tables = tuple[
    FloatArray, IdArray | None
]  # pair scores (M, K, K), and which of them each token has


class SharedSteps:
    """All steps have the same scores: no attributes, no weights of their own."""

    n_parameters = 0

    def chunk_tokens(self, n_labels: int) -> int:
        """Return the number of tokens that a chunk should have."""
        return chunk_tokens(n_labels, own_steps=False)

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

    def prepared_tables(self, bound: None, pair: FloatArray, prepared: None, index: int) -> Tables:
        """Return the shared table, shape (1, K, K)."""
        return pair, None

    def pullback(
        self, pairs: list[FloatArray], prepared: None, threads: ThreadMap, out: FloatArray
    ) -> None:
        """Do nothing: there are no weights."""


class PreparedSteps(NamedTuple):
    """The distinct rows of attributes of each chunk, and which of them each token has."""

    rows: PreparedParts
    tables: list[IdArray]


class ObservedSteps:
    """``pair_t[i, j] = v[i, j] + sum_b z[t, b] u[b, i, j]`` for attributes ``z`` of the steps.

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
        return chunk_tokens(n_labels, own_steps=True)

    def n_tables(self, data: PackedSequences, chunk: Chunk) -> int:
        """Return how many tables of pair scores a chunk has."""
        return _step_rows(data, chunk)[0].n_tokens

    def bind(self, weights: FloatArray) -> BoundWeights:
        """Return the weights in their places."""
        return self.weights.bind(weights)

    def tables(
        self, bound: BoundWeights, pair: FloatArray, data: PackedSequences, chunk: Chunk
    ) -> Tables:
        """Return the pair scores of new data: one table for each distinct row of attributes."""
        rows, table = _step_rows(data, chunk)
        pairs = np.repeat(pair, rows.n_tokens, axis=0)
        self.weights.gather(bound, Part(rows, 0, rows.n_tokens), _flat(pairs))
        return pairs, table

    def prepare(
        self, data: PackedSequences, chunks: list[Chunk], threads: ThreadMap
    ) -> PreparedSteps:
        """Return the distinct rows of each chunk, attribute by attribute."""
        found = threads(lambda chunk: _step_rows(data, chunk), chunks)
        parts = [Part(rows, 0, rows.n_tokens) for rows, _ in found]
        return PreparedSteps(self.weights.prepare(parts, threads), [table for _, table in found])

    def prepared_tables(
        self, bound: BoundWeights, pair: FloatArray, prepared: PreparedSteps, index: int
    ) -> Tables:
        """Return the same as `tables` for chunk `index` of a prepared block."""
        pairs = np.repeat(pair, prepared.rows.parts[index].end, axis=0)
        self.weights.gather_prepared(bound, prepared.rows, index, _flat(pairs))
        return pairs, prepared.tables[index]

    def pullback(
        self,
        pairs: list[FloatArray],
        prepared: PreparedSteps,
        threads: ThreadMap,
        out: FloatArray,
    ) -> None:
        """Add the gradient to the weights, given the one to the tables of each chunk."""
        self.weights.pullback([_flat(pair) for pair in pairs], prepared.rows, threads, out)


def _flat(pair: FloatArray) -> FloatArray:
    """Return tables of pair scores as rows, shape (M, K * K): a view."""
    return pair.reshape(len(pair), pair.shape[1] * pair.shape[2])


def _step_rows(data: PackedSequences, chunk: Chunk) -> tuple[PackedSequences, IdArray]:
    """Return the distinct rows of attributes of the steps of a chunk, and those of its tokens."""
    if data.steps is None:
        raise ValueError("the model has weights of attributes of steps, but the data have none.")
    return distinct_rows(data.steps, chunk.tokens.start, chunk.tokens.stop)
