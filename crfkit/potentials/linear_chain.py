"""Scores that are linear in the features."""

from __future__ import annotations

import itertools
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from crfkit._parallel import SERIAL, ThreadMap
from crfkit._types import Chunk, Counts, FloatArray, IdArray, IntArray, Potentials
from crfkit.data import PackedSequences
from crfkit.data.chunks import LONG_TOKENS, cut
from crfkit.potentials.attributes import AttributeWeights, BoundWeights, Part
from crfkit.potentials.transitions import (
    HomogeneousTransitions,
    InputDependentTransitions,
    Tables,
    homogeneous_transitions,
)
from crfkit.structures import ChainPotentials, Structure


class LinearWeights(NamedTuple):
    """Parameters in their places: views of the vector, and tables made from it.

    Attributes
    ----------
    state : BoundWeights
        Weights of the (attribute, label) pairs.
    pair : ndarray of shape (1, K, K) or (1, P2)
        The step weights as a table, or as a list where few transitions have one.
    start, end : ndarray of shape (K,) or (0,)
        Weights of the label of the first and of the last token.
    transitions : BoundWeights or None
        Weights of the (attribute, label, next label) triples, where there are any.
    """

    state: BoundWeights
    pair: FloatArray
    start: FloatArray
    end: FloatArray
    transitions: Any


class PreparedBlock(NamedTuple):
    """A block of chunks, ready for the adjoint: a part for each, or one chunk in several parts."""

    chunks: list[Chunk]
    state: Any
    transitions: Any
    segments: Any = None


class Gradients(NamedTuple):
    """The gradient to the scores of a chunk, by the weights that they are made of.

    Attributes
    ----------
    unary : ndarray of shape (n, C)
        That to the scores of the attributes of tokens.
    shared : list of ndarrays
        Those to the weights that all chunks touch, in their order.
    rows : list of ndarrays
        Those to the scores of other blocks of attributes.
    """

    unary: FloatArray
    shared: list[FloatArray]
    rows: list[FloatArray]


class LinearChainModel:
    """``unary_t[k] = sum_a x[t, a] w[a, k]`` and ``pair_t[i, j] = v[i, j] + u_t[i, j]``.

    With attributes of the transitions (Lafferty, McCallum and Pereira 2001, equation 1: features of
    an edge may look at the observations) u_t depends on what is observed; without it is 0.

    Parameters
    ----------
    state : AttributeWeights
        Which (attribute, label) pairs have a weight; its columns are the K labels.
    transition_from, transition_to : array of shape (P2,)
        Steps that have a weight. All others are allowed too, with the score 0.
    boundaries : bool
        Whether the labels of the first and last token of a sequence have weights of their own.
    transitions : HomogeneousTransitions or InputDependentTransitions, optional
        Which attributes of transitions have a weight for which step; none if not given.

    Notes
    -----
    The parameters are, in this order: state weights, step weights, with `boundaries` K weights of
    first and K of last labels, and the weights of attributes of transitions.
    """

    def __init__(
        self,
        state: AttributeWeights,
        transition_from: ArrayLike,
        transition_to: ArrayLike,
        *,
        boundaries: bool = False,
        transitions: HomogeneousTransitions | InputDependentTransitions | None = None,
    ) -> None:
        self.state = state
        self.transition_from = np.asarray(transition_from, np.int32)
        self.transition_to = np.asarray(transition_to, np.int32)
        self.boundaries = boundaries
        self.transitions: Any = transitions or homogeneous_transitions(
            self.n_labels, len(self.transition_from)
        )

    @property
    def n_labels(self) -> int:
        """Number of labels K."""
        return self.state.n_columns

    @property
    def n_codes(self) -> int:
        """How many codes a token may have."""
        return self.n_labels

    @property
    def n_columns(self) -> int:
        """Number of unary scores of a token."""
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
        tokens: int = self.transitions.chunk_tokens(self.n_labels)
        return tokens

    @cached_property
    def structure(self) -> Structure:
        """The structure that reads the scores."""
        structure: Structure = self.transitions.structure(
            self.transition_from, self.transition_to, self.n_labels
        )
        return structure

    def linear(self, structure: Structure) -> tuple[LinearChainModel, Structure]:
        """Return the model without scores that are not learned, and the structure that adds them.

        For solvers that work with products and differences of scores.
        """
        return self, structure

    def check_counts(self, data: PackedSequences) -> None:
        """Raise ValueError unless scores are sums of weights times what is not negative."""
        for values in self._feature_values(data):
            if values is not None and values.min(initial=0.0) < 0.0:
                raise ValueError(
                    "iterative scaling needs features that are not negative, but X has a value of "
                    f"{values.min():g}: shift or bin it, or use solver='lbfgs'."
                )

    def _feature_values(self, data: PackedSequences) -> list[FloatArray | None]:
        """Return the values that weights are multiplied with, but for ones."""
        transitions = (
            [] if data.transitions is None else [data.transitions.values, data.transitions.dense]
        )
        return [data.values, data.dense, *transitions]

    @property
    def _sizes(self) -> tuple[int, int, int, int, int]:
        boundary = self.n_labels if self.boundaries else 0
        transitions = self.transitions.n_parameters
        return self.state.n_parameters, len(self.transition_from), boundary, boundary, transitions

    def split(self, parameters: FloatArray) -> list[FloatArray]:
        """Return views of the state, transition, start, end and transition-attribute weights."""
        ends = list(itertools.accumulate(self._sizes))
        return [parameters[end - size : end] for end, size in zip(ends, self._sizes, strict=True)]

    def bind(self, parameters: FloatArray) -> LinearWeights:
        """Return the parameters in their places."""
        return self.place(*self.split(parameters))

    def transition_matrix(self, parameters: FloatArray) -> FloatArray:
        """Return the weights of transitions as a new table of all pairs of labels, shape (K, K)."""
        table = np.zeros((self.n_labels, self.n_labels))
        table[self.transition_from, self.transition_to] = self.split(parameters)[1]
        return table

    def place(
        self,
        state: FloatArray,
        transitions: FloatArray,
        start: FloatArray,
        end: FloatArray,
        triples: FloatArray,
    ) -> LinearWeights:
        """Return weights in their places.

        State weights (P1,), transitions (P2,), boundaries (K,), attributes of transitions (P5,).
        """
        pair = self.transitions.place(
            transitions, self.transition_from, self.transition_to, self.n_labels
        )
        return LinearWeights(
            self.state.bind(state), pair, start, end, self.transitions.bind(triples)
        )

    def scores(
        self,
        bound: LinearWeights,
        data: PackedSequences,
        chunk: Chunk,
        threads: ThreadMap = SERIAL,
    ) -> Potentials:
        """Return the scores of the sequences of a chunk of new data, token by token."""
        begin, end = chunk.tokens.start, chunk.tokens.stop
        unary = np.zeros((end - begin, self.n_columns))

        def gather(part: Part) -> None:
            self.state.gather(bound.state, part, unary[part.begin - begin : part.end - begin])

        threads(gather, _parts(data, chunk))
        tables = self.transitions.tables(bound.transitions, bound.pair, data, chunk)
        return self._complete(unary, tables, bound, chunk)

    def prepared_scores(
        self,
        bound: LinearWeights,
        prepared: PreparedBlock,
        index: int,
        threads: ThreadMap = SERIAL,
    ) -> Potentials:
        """Return the scores of chunk `index` of a prepared block, attribute by attribute."""
        chunk, parts = prepared.chunks[index], prepared.state.parts
        begin, end = chunk.tokens.start, chunk.tokens.stop
        unary = np.zeros((end - begin, self.n_columns))

        def gather(i: int) -> None:
            out = unary[parts[i].begin - begin : parts[i].end - begin]
            prepared.state.gather(bound.state, i, out)

        whole = len(prepared.chunks) == len(parts)
        threads(gather, [index] if whole else range(len(parts)))
        return self.complete_prepared(unary, bound, prepared, index)

    def complete_prepared(
        self, unary: FloatArray, bound: LinearWeights, prepared: PreparedBlock, index: int
    ) -> Potentials:
        """Return the scores of chunk `index`, given what its attributes contribute."""
        tables = self.transitions.prepared_tables(
            bound.transitions, bound.pair, prepared.transitions, index
        )
        return self._complete(unary, tables, bound, prepared.chunks[index])

    def _complete(
        self, unary: FloatArray, tables: Tables, bound: LinearWeights, chunk: Chunk
    ) -> Potentials:
        """Add what boundaries contribute."""
        offsets = chunk.offsets - chunk.tokens.start
        if self.boundaries:
            first, last = boundary_rows(offsets)
            columns = self._boundary_columns
            unary[first, columns[0]] += bound.start
            unary[last, columns[1]] += bound.end
        pair, table = tables
        if table is None:
            return ChainPotentials.of(unary, pair, offsets, chunk.first)
        return ChainPotentials(unary, pair, table, offsets, chunk.first)

    @property
    def _boundary_columns(self) -> tuple[slice, slice]:
        """The unary scores that the weights of first and last labels are added to."""
        return slice(None), slice(None)

    def cells(self, data: PackedSequences, chunk: Chunk) -> int:
        """Return how many scores a chunk has, unary and in tables."""
        tables: int = self.transitions.n_tables(data, chunk)
        tokens: int = chunk.tokens.stop - chunk.tokens.start
        cells: int = self.transitions.table_cells(len(self.transition_from), self.n_labels)
        return tokens * self.n_columns + tables * cells

    def prepare(
        self, data: PackedSequences, chunks: list[Chunk], threads: ThreadMap
    ) -> PreparedBlock:
        """Return the block as training on all of it reads it."""
        parts = [Part(data, chunk.tokens.start, chunk.tokens.stop) for chunk in chunks]
        state = self.state.prepare(parts, threads)
        return PreparedBlock(chunks, state, self.transitions.prepare(data, chunks, threads))

    def prepare_columns(
        self, data: PackedSequences, chunks: list[Chunk], threads: ThreadMap
    ) -> PreparedBlock:
        """Return the block as solvers read it which move after a few chunks."""
        parts = [Part(data, chunk.tokens.start, chunk.tokens.stop) for chunk in chunks]
        state = self.state.prepare_columns(parts, threads)
        return PreparedBlock(chunks, state, self.transitions.prepare_columns(data, chunks, threads))

    def prepare_long(
        self, data: PackedSequences, chunk: Chunk, threads: ThreadMap
    ) -> PreparedBlock:
        """Return a chunk of one long sequence in the same form, in parts that threads share."""
        state = self.state.prepare(_parts(data, chunk), threads)
        return PreparedBlock([chunk], state, self.transitions.prepare(data, [chunk], threads))

    def pullback(
        self,
        unary: FloatArray,
        pairs: list[FloatArray],
        prepared: PreparedBlock,
        threads: ThreadMap,
        out: FloatArray,
    ) -> None:
        """Add the gradient with respect to the parameters, given the one to a block's scores."""
        state, transitions, start, end, triples = self.split(out)
        begin = prepared.chunks[0].tokens.start
        residuals = [unary[part.begin - begin : part.end - begin] for part in prepared.state.parts]
        self.state.pullback(residuals, prepared.state, threads, state)
        self.transitions.add_taken(pairs, self.transition_from, self.transition_to, transitions)
        if self.boundaries:
            for chunk in prepared.chunks:
                first, last = self._boundary_gradients(unary, chunk.offsets - begin)
                start += first
                end += last
        self.transitions.pullback(pairs, prepared.transitions, threads, triples)

    def shared_places(self) -> IdArray:
        """Return the parameters that all chunks touch: those of transitions and of boundaries."""
        first, transitions, start, end, _ = self._sizes
        return np.arange(first, first + transitions + start + end, dtype=np.uint32)

    def other_blocks(self, prepared: PreparedBlock) -> list[tuple[int, Any]]:
        """Return further weights of attributes: the first parameter and the prepared block."""
        last = sum(self._sizes)
        own = isinstance(self.transitions, InputDependentTransitions)
        return [(last - self.transitions.n_parameters, prepared.transitions.rows)] if own else []

    def gradients(self, residual: Counts, prepared: PreparedBlock, index: int) -> Gradients:
        """Return the gradient to the scores of chunk `index` by the weights they are made of."""
        transitions = np.zeros(len(self.transition_from))
        self.transitions.add_taken(
            [residual.pair], self.transition_from, self.transition_to, transitions
        )
        shared = [transitions]
        if self.boundaries:
            chunk = prepared.chunks[index]
            shared += self._boundary_gradients(residual.unary, chunk.offsets - chunk.tokens.start)
        if not isinstance(self.transitions, InputDependentTransitions):
            return Gradients(residual.unary, shared, [])
        flat = residual.pair.reshape(len(residual.pair), self.n_labels**2)
        return Gradients(residual.unary, shared, [flat])

    def _boundary_gradients(
        self, unary: FloatArray, offsets: IntArray
    ) -> tuple[FloatArray, FloatArray]:
        """Return the gradients to the weights of first and last labels, both (K,)."""
        rows, columns = boundary_rows(offsets), self._boundary_columns
        return unary[rows[0], columns[0]].sum(axis=0), unary[rows[1], columns[1]].sum(axis=0)


def _parts(data: PackedSequences, chunk: Chunk) -> list[Part]:
    """Return the tokens of a chunk in parts of fixed size, one where it is no long sequence."""
    return [Part(data, part.start, part.stop) for part in cut(chunk.tokens, LONG_TOKENS)]


def boundary_rows(offsets: IntArray) -> tuple[IntArray, IntArray]:
    """Return the first and last tokens of the sequences that are not empty."""
    filled = offsets[1:] > offsets[:-1]
    return offsets[:-1][filled], offsets[1:][filled] - 1
