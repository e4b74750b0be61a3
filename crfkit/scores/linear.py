"""Scores that are linear in the features."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from crfkit._parallel import ThreadMap
from crfkit._types import Chunk, FloatArray, IntArray, Scores
from crfkit.data import PackedSequences
from crfkit.scores.attributes import AttributeWeights, BoundWeights, Part, PreparedParts
from crfkit.scores.steps import ObservedSteps, SharedSteps, Tables


class LinearWeights(NamedTuple):
    """Parameters in their places: views of the vector, and tables made from it.

    Attributes
    ----------
    state : BoundWeights
        Weights of the (attribute, label) pairs.
    pair : ndarray of shape (1, K, K)
        The step weights as a table.
    start, end : ndarray of shape (K,) or (0,)
        Weights of the label of the first and of the last token.
    steps : BoundWeights or None
        Weights of the (attribute, label, next label) triples, where there are any.
    """

    state: BoundWeights
    pair: FloatArray
    start: FloatArray
    end: FloatArray
    steps: Any


class PreparedBlock(NamedTuple):
    """A block of chunks, ready for the adjoint."""

    chunks: list[Chunk]
    state: PreparedParts
    steps: Any


class LinearScores:
    """``unary_t[k] = sum_a x[t, a] w[a, k]`` and ``pair_t[i, j] = v[i, j] + steps_t[i, j]``.

    With attributes of the steps (Lafferty, McCallum and Pereira 2001, equation 1: features of an
    edge may look at the observations) steps_t depends on what is observed; without it is 0.

    Parameters
    ----------
    state : AttributeWeights
        Which (attribute, label) pairs have a weight; its columns are the K labels.
    step_from, step_to : array of shape (P2,)
        Steps that have a weight. All others are allowed too, with the score 0.
    boundaries : bool
        Whether the labels of the first and last token of a sequence have weights of their own.
    steps : SharedSteps or ObservedSteps
        Which attributes of steps have a weight for which step.

    Notes
    -----
    The parameters are, in this order: state weights, step weights, with `boundaries` K weights of
    first and K of last labels, and the weights of attributes of steps.
    """

    def __init__(
        self,
        state: AttributeWeights,
        step_from: ArrayLike,
        step_to: ArrayLike,
        *,
        boundaries: bool = False,
        steps: SharedSteps | ObservedSteps | None = None,
    ) -> None:
        self.state = state
        self.step_from = np.asarray(step_from, np.int32)
        self.step_to = np.asarray(step_to, np.int32)
        self.boundaries = boundaries
        self.steps: Any = steps or SharedSteps()

    @property
    def n_labels(self) -> int:
        """Number of labels K."""
        return self.state.n_columns

    @property
    def n_features(self) -> int:
        """Number of attributes D."""
        return self.state.n_features

    @property
    def n_parameters(self) -> int:
        """Number of weights P."""
        return sum(self._sizes)

    @property
    def chunk_tokens(self) -> int:
        """Number of tokens that a chunk should have."""
        tokens: int = self.steps.chunk_tokens(self.n_labels)
        return tokens

    @property
    def _sizes(self) -> tuple[int, int, int, int, int]:
        boundary = self.n_labels if self.boundaries else 0
        steps = self.steps.n_parameters
        return self.state.n_parameters, len(self.step_from), boundary, boundary, steps

    def split(self, parameters: FloatArray) -> list[FloatArray]:
        """Return views of the state, step, start and end weights, and those of step attributes."""
        return np.split(parameters, np.cumsum(self._sizes[:-1]))

    def bind(self, parameters: FloatArray) -> LinearWeights:
        """Return the parameters in their places."""
        state, steps, start, end, triples = self.split(parameters)
        pair = np.zeros((self.n_labels, self.n_labels))
        pair[self.step_from, self.step_to] = steps
        return self.place(state, pair, start, end, triples)

    def place(
        self,
        state: FloatArray,
        pair: FloatArray,
        start: FloatArray,
        end: FloatArray,
        triples: FloatArray,
    ) -> LinearWeights:
        """Return weights in their places.

        State weights (P1,), steps (K, K), boundaries (K,), attributes of steps (P5,).
        """
        steps = self.steps.bind(triples)
        return LinearWeights(self.state.bind(state), pair[None], start, end, steps)

    def scores(self, bound: LinearWeights, data: PackedSequences, chunk: Chunk) -> Scores:
        """Return the scores of the sequences of a chunk of new data, token by token."""
        begin, end = chunk.tokens.start, chunk.tokens.stop
        unary = np.zeros((end - begin, self.n_labels))
        self.state.gather(bound.state, Part(data, begin, end), unary)
        tables = self.steps.tables(bound.steps, bound.pair, data, chunk)
        return self._complete(unary, tables, bound, chunk)

    def prepared_scores(self, bound: LinearWeights, prepared: PreparedBlock, index: int) -> Scores:
        """Return the scores of chunk `index` of a prepared block, attribute by attribute."""
        chunk = prepared.chunks[index]
        unary = np.zeros((chunk.tokens.stop - chunk.tokens.start, self.n_labels))
        self.state.gather_prepared(bound.state, prepared.state, index, unary)
        tables = self.steps.prepared_tables(bound.steps, bound.pair, prepared.steps, index)
        return self._complete(unary, tables, bound, chunk)

    def _complete(
        self, unary: FloatArray, tables: Tables, bound: LinearWeights, chunk: Chunk
    ) -> Scores:
        """Add what boundaries contribute."""
        offsets = chunk.offsets - chunk.tokens.start
        if self.boundaries:
            first, last = _boundary_rows(offsets)
            unary[first] += bound.start
            unary[last] += bound.end
        pair, table = tables
        return Scores(unary, pair, offsets, chunk.first, table)

    def cells(self, data: PackedSequences, chunk: Chunk) -> int:
        """Return how many scores a chunk has, unary and in tables."""
        tables: int = self.steps.n_tables(data, chunk)
        tokens: int = chunk.tokens.stop - chunk.tokens.start
        return (tokens + tables * self.n_labels) * self.n_labels

    def prepare(
        self, data: PackedSequences, chunks: list[Chunk], threads: ThreadMap
    ) -> PreparedBlock:
        """Return the block attribute by attribute, with a share of the attributes a thread."""
        parts = [Part(data, chunk.tokens.start, chunk.tokens.stop) for chunk in chunks]
        state = self.state.prepare(parts, threads)
        return PreparedBlock(chunks, state, self.steps.prepare(data, chunks, threads))

    def pullback(
        self,
        unary: FloatArray,
        pairs: list[FloatArray],
        prepared: PreparedBlock,
        threads: ThreadMap,
        out: FloatArray,
    ) -> None:
        """Add the gradient with respect to the parameters, given the one to a block's scores."""
        state, steps, start, end, triples = self.split(out)
        begin = prepared.chunks[0].tokens.start
        residuals = [
            unary[chunk.tokens.start - begin : chunk.tokens.stop - begin]
            for chunk in prepared.chunks
        ]
        self.state.pullback(residuals, prepared.state, threads, state)
        for pair in pairs:
            steps += pair.sum(axis=0)[self.step_from, self.step_to]
        if self.boundaries:
            for chunk in prepared.chunks:
                first_rows, last_rows = _boundary_rows(chunk.offsets - begin)
                start += unary[first_rows].sum(axis=0)
                end += unary[last_rows].sum(axis=0)
        self.steps.pullback(pairs, prepared.steps, threads, triples)


def _boundary_rows(offsets: IntArray) -> tuple[IntArray, IntArray]:
    """Return the first and last tokens of the sequences that are not empty."""
    filled = offsets[1:] > offsets[:-1]
    return offsets[:-1][filled], offsets[1:][filled] - 1
