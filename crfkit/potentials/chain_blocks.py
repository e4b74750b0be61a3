"""The blocks of weights of linear chains."""

from __future__ import annotations

from abc import abstractmethod
from functools import partial
from itertools import accumulate
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np

import crfkit.structures as structures
from crfkit._parallel import LONG_TOKENS, Chunk, cut
from crfkit._types import BoolArray, CodeArray, FloatArray, IdArray, IntArray
from crfkit.compiler.jit import frozen
from crfkit.data import PackedSequences
from crfkit.data.topology import Topology
from crfkit.potentials.attributes import AttributeWeights, BoundWeights, Part, distinct_rows
from crfkit.potentials.blocks import (
    LABELS,
    ONE,
    PAIRS,
    TOKENS,
    TRANSITIONS,
    Pattern,
    PotentialParts,
    Reading,
    Residuals,
    Table,
    WeightBlock,
)
from crfkit.potentials.choice import Choice
from crfkit.structures import Chain, Structure

# From so many labels on, and up to this share of the pairs of labels, weights of transitions are
# kept as they are: the recurrences are then faster than on a table of all pairs.
SPARSE_LABELS = 50
SPARSE_SHARE = 0.1
# Scores of a chunk at most, where no table of all pairs is made for it.
SPARSE_CELLS = 1 << 18


class AttributeBlock(WeightBlock):
    """Weights of (attribute, column) pairs."""

    def __init__(self, weights: AttributeWeights) -> None:
        self.weights = weights
        self.pattern = Pattern(weights.ptr, weights.columns, weights.n_columns, weights.n_sparse)

    @classmethod
    def of_pattern(cls, pattern: Pattern) -> Self:
        """Return the block with these weights."""
        return cls(AttributeWeights(*pattern))

    def bind(self, parameters: FloatArray) -> BoundWeights:
        """Return the weights in their places."""
        return BoundWeights(self.weights, parameters)

    @abstractmethod
    def residuals_of(self, residuals: Residuals, prepared: Any) -> list[FloatArray]:
        """Return the gradient with respect to the scores of each part that was prepared."""

    def pullback(self, residuals: Residuals, prepared: Any, out: FloatArray) -> None:
        """Add the gradient with respect to the weights to `out`, shape (P,)."""
        first = prepared.starts[residuals.chosen[0]]
        own = self.residuals_of(residuals, prepared)
        prepared.rows.pullback(own, first, residuals.threads, out)

    def active(self, prepared: Any) -> IdArray:
        """Return the weights that the only chunk depends on, each once, shape (n,)."""
        found: IdArray = prepared.rows.places
        return found


class PreparedTokens(NamedTuple):
    """The tokens of each chunk; of a long one, in parts that threads share."""

    rows: Any
    starts: list[int]  # the first part of each chunk, and how many there are

    @classmethod
    def of(
        cls, weights: AttributeWeights, data: PackedSequences, chunks: list[Chunk], reading: Reading
    ) -> Self:
        """Return the tokens in parts of fixed size, one where a chunk is no long sequence."""
        cuts = [cut(chunk.tokens, LONG_TOKENS) for chunk in chunks]
        parts = [Part(data, part.start, part.stop) for parts in cuts for part in parts]
        return cls(reading(weights, parts), list(accumulate(map(len, cuts), initial=0)))


def gather_tokens(
    bound: BoundWeights, prepared: PreparedTokens, index: int, out: PotentialParts
) -> None:
    """Add the scores of the tokens of a chunk to its unary potentials."""
    parts, chosen = prepared.rows.parts, range(*prepared.starts[index : index + 2])
    begin = parts[chosen[0]].begin

    def gather(i: int) -> None:
        prepared.rows.gather(bound, i, out.unary[parts[i].begin - begin : parts[i].end - begin])

    out.threads(gather, chosen)


def token_residuals(residuals: Residuals, prepared: PreparedTokens) -> list[FloatArray]:
    """Return the gradient with respect to the scores of each part."""
    begin, unary, chosen = residuals.begin, residuals.unary, residuals.chosen
    parts = prepared.rows.parts[prepared.starts[chosen[0]] : prepared.starts[chosen[-1] + 1]]
    return [unary[part.begin - begin : part.end - begin] for part in parts]


class StateBlock(AttributeBlock):
    """``unary_t[k] += sum_a x[t, a] w[a, k]``."""

    name = "state"
    kind = "attribute x label"
    is_known = True
    tables: ClassVar = (Table("coef_", TOKENS, LABELS, "attributes", "state_features_"),)

    @classmethod
    def choose(cls, choice: Choice) -> Self:
        """Return the (attribute, label) pairs that occur, or all."""
        return cls(choice.label_pairs())

    def prepare(self, data: PackedSequences, chunks: list[Chunk], reading: Reading) -> Any:
        """Return the tokens of each chunk."""
        return PreparedTokens.of(self.weights, data, chunks, reading)

    def add(self, bound: Any, prepared: Any, index: int, parts: PotentialParts) -> None:
        """Add to the potentials of the labels."""
        gather_tokens(bound, prepared, index, parts)

    def residuals_of(self, residuals: Residuals, prepared: Any) -> list[FloatArray]:
        """Return the gradient with respect to the potentials of each part of the tokens."""
        return token_residuals(residuals, prepared)


class TransitionBlock(WeightBlock):
    """``pair[i, j] = v[i, j]``: the same for all transitions.

    Those from `source` to `target`, shape (P2,), have a weight; all others are allowed too, with
    the score 0, but for the `forbidden` ones, bool of shape (K, K). With `keep_list`, weights that
    are few are kept as a list (`is_list`), not as a table of all pairs. With `is_mirrored`, those
    from `source` to `target`, which is no smaller, are those of the other direction too.
    """

    name = "transitions"
    kind = "label x label"
    is_known = True
    tables: ClassVar = (
        Table("transitions_", LABELS, LABELS, "transitions", "transition_features_"),
    )

    def __init__(
        self,
        source: CodeArray | IntArray,
        target: CodeArray | IntArray,
        n_labels: int,
        *,
        keep_list: bool = False,
        forbidden: BoolArray | None = None,
        is_mirrored: bool = False,
    ) -> None:
        self.is_mirrored = is_mirrored
        self.source: CodeArray = np.asarray(source, np.int32)
        self.target: CodeArray = np.asarray(target, np.int32)
        self.n_labels, self.forbidden = n_labels, forbidden
        few = n_labels >= SPARSE_LABELS and len(self.source) <= SPARSE_SHARE * n_labels**2
        self.is_list = keep_list and few
        self.table_cells = len(self.source) if self.is_list else n_labels**2
        shape = n_labels, n_labels
        self.pattern = Pattern.of_rows(self.source, self.target, shape, n_labels)

    @classmethod
    def of_pattern(cls, pattern: Pattern) -> Self:
        """Return the block with these weights."""
        return cls(pattern.rows, pattern.columns, pattern.n_columns)

    @classmethod
    def choose(cls, choice: Choice) -> Self:
        """Return the transitions that occur, or all."""
        return cls(*choice.weighted_transitions(), choice.n_labels, forbidden=choice.forbidden)

    @classmethod
    def without_weights(cls, n_labels: int) -> Self:
        """Return the block of models that learn no transitions."""
        return cls(np.zeros(0, np.int64), np.zeros(0, np.int64), n_labels)

    def in_short(self) -> TransitionBlock:
        """Return the block that keeps few weights among many labels as a list."""
        return TransitionBlock(self.source, self.target, self.n_labels, keep_list=True)

    @property
    def structure(self) -> Structure:
        """The chain that reads such potentials."""
        if self.is_list:
            return structures.SparseChain(self.source, self.target, self.n_labels)
        return Chain()

    def bind(self, parameters: FloatArray) -> FloatArray:
        """Return the weights as a table of shape (1, K, K), or as a list of shape (1, P2)."""
        if self.is_list:
            return frozen(parameters[None].copy())
        pair = np.zeros((1, self.n_labels, self.n_labels))
        pair[0, self.source, self.target] = parameters
        if self.is_mirrored:
            pair[0, self.target, self.source] = parameters
        if self.forbidden is not None:
            pair[:, self.forbidden] = -np.inf
        return frozen(pair)

    def prepare(self, data: PackedSequences, chunks: list[Chunk], reading: Reading) -> None:
        """Return nothing: all chunks have the same."""

    def add(self, bound: Any, prepared: Any, index: int, parts: PotentialParts) -> None:
        """Set the potentials of transitions."""
        parts.pair = bound

    def pullback(self, residuals: Residuals, prepared: Any, out: FloatArray) -> None:
        """Add the gradient with respect to the weights to `out`, shape (P2,)."""
        for pair in residuals.pairs:
            if self.is_list:
                out += pair[0]
            else:
                total = pair.sum(axis=0)
                folded = _folded(total[None])[0] if self.is_mirrored else total
                out += folded[self.source, self.target]

    def active(self, prepared: Any) -> IdArray:
        """Return all weights."""
        return self.all_weights


class BoundaryBlock(WeightBlock):
    """Weights of the labels of the first, or last, tokens of sequences, shape (K,).

    `role` is 1 for first, 2 for last tokens. Of segments, their potentials stand behind so many K
    others.
    """

    kind = "boundary"
    is_full = True
    is_known = True
    role: ClassVar[int]

    def __init__(self, n_labels: int) -> None:
        self.n_labels = n_labels
        self.pattern = Pattern.of_numbers(np.arange(n_labels), (1, n_labels), 1)

    def cells(
        self, unary: FloatArray, offsets: IntArray, topology: Topology | None
    ) -> tuple[IntArray, slice]:
        """Return the rows and columns of the potentials that the weights are added to."""
        column = self.role * self.n_labels if unary.shape[1] > self.n_labels else 0
        first, last = (
            boundary_rows(offsets)
            if topology is None
            else (topology.first_tokens, topology.last_tokens)
        )
        return first if self.role == 1 else last, slice(column, column + self.n_labels)

    @classmethod
    def of_pattern(cls, pattern: Pattern) -> Self:
        """Return the block with these weights."""
        return cls(pattern.n_columns)

    @classmethod
    def choose(cls, choice: Choice) -> Self | None:
        """Return weights of all labels, if asked for."""
        return cls(choice.n_labels) if choice.boundaries else None

    def bind(self, parameters: FloatArray) -> FloatArray:
        """Return the weights as they are."""
        return parameters

    def prepare(self, data: PackedSequences, chunks: list[Chunk], reading: Reading) -> None:
        """Return nothing: chunks say where sequences begin and end."""

    def add(self, bound: Any, prepared: Any, index: int, parts: PotentialParts) -> None:
        """Add to the potentials of these tokens."""
        parts.unary[self.cells(parts.unary, parts.offsets, parts.topology)] += bound

    def pullback(self, residuals: Residuals, prepared: Any, out: FloatArray) -> None:
        """Add the gradient with respect to the weights to `out`, shape (K,)."""
        for chunk, topology in zip(residuals.chunks, residuals.topologies, strict=True):
            first = int(chunk.offsets[0])
            unary = residuals.unary[first - residuals.begin : chunk.tokens.stop - residuals.begin]
            out += unary[self.cells(unary, chunk.offsets - first, topology)].sum(axis=0)

    def active(self, prepared: Any) -> IdArray:
        """Return all weights."""
        return self.all_weights


class StartBlock(BoundaryBlock):
    """Weights of the labels of first tokens."""

    name = "start"
    role = 1
    tables: ClassVar = (Table("start_weights_", ONE, LABELS),)


class EndBlock(BoundaryBlock):
    """Weights of the labels of last tokens."""

    name = "end"
    role = 2
    tables: ClassVar = (Table("end_weights_", ONE, LABELS),)


def boundary_rows(offsets: IntArray) -> tuple[IntArray, IntArray]:
    """Return the first and last tokens of the sequences that are not empty."""
    filled = offsets[1:] > offsets[:-1]
    return offsets[:-1][filled], offsets[1:][filled] - 1


class PreparedTransitions(NamedTuple):
    """The distinct rows of attributes of each chunk, and which of them each token has."""

    rows: Any
    starts: range  # each chunk is one part
    tables: list[IdArray]


class TransitionAttributeBlock(AttributeBlock):
    """``pair_t[i, j] += sum_b z[t, b] u[b, i, j]`` for attributes ``z`` of the transitions.

    Lafferty, McCallum and Pereira (2001), equation 1: features of an edge may look at the
    observations. Column ``i * K + j`` is the transition from label ``i`` to label ``j``. With
    `is_mirrored`, there are weights where ``i <= j``, which are those of ``j`` and ``i`` too. With
    `is_positive`, attributes that are negative somewhere are an error.
    """

    name = "transition_attributes"
    kind = "attribute x label x label"
    is_known = True
    tables: ClassVar = (
        Table(
            "transition_coef_",
            TRANSITIONS,
            PAIRS,
            "attributes of transitions",
            "transition_attributes_",
        ),
    )

    def __init__(
        self, weights: AttributeWeights, *, is_mirrored: bool = False, is_positive: bool = False
    ) -> None:
        super().__init__(weights)
        self.is_mirrored, self.is_positive = is_mirrored, is_positive

    @classmethod
    def choose(cls, choice: Choice) -> Self | None:
        """Return the (attribute, label, next label) triples that occur, or all."""
        if choice.data.transitions is None:
            return None
        return cls(choice.transition_pairs(choice.data.transitions))

    def prepare(self, data: PackedSequences, chunks: list[Chunk], reading: Reading) -> Any:
        """Return the distinct rows of each chunk: equal rows share a table."""
        if self.is_positive:
            for chunk in chunks:
                check_positive_edges(data, chunk.sequences)
        found = reading.threads(partial(transition_rows, data), chunks)
        rows = reading(self.weights, [Part(own, 0, own.n_tokens) for own, _ in found])
        return PreparedTransitions(rows, range(len(found) + 1), [tables for _, tables in found])

    def add(self, bound: Any, prepared: Any, index: int, parts: PotentialParts) -> None:
        """Make a table of each distinct row."""
        count = prepared.rows.parts[index].end
        if self.is_mirrored:
            own = np.zeros((count, *parts.pair.shape[1:]))
            prepared.rows.gather(bound, index, _flat(own))
            own += np.triu(own, 1).transpose(0, 2, 1)
            pair = own + parts.pair
        else:
            pair = np.repeat(parts.pair, count, axis=0)
            prepared.rows.gather(bound, index, _flat(pair))
        parts.pair, parts.index = pair, prepared.tables[index]

    def residuals_of(self, residuals: Residuals, prepared: Any) -> list[FloatArray]:
        """Return the gradient with respect to the tables of each chunk, shape (M, K * K)."""
        if self.is_mirrored:
            return [_flat(_folded(pair)) for pair in residuals.pairs]
        return [_flat(pair) for pair in residuals.pairs]


def _folded(pair: FloatArray) -> FloatArray:
    """Return tables, (M, K, K), with the entries at j and i added to those at i < j, which stay."""
    below: FloatArray = np.tril(pair, -1)
    return np.ascontiguousarray(pair - below + below.transpose(0, 2, 1))


def check_positive_edges(data: PackedSequences, graphs: slice) -> None:
    """Raise ValueError if an attribute of an edge of some graphs is negative."""
    rows = data.transitions
    if rows is None:
        return
    begin, end = rows.offsets[[graphs.start, graphs.stop]].tolist()
    entries = rows.take_tokens(np.arange(begin, end)).to_csr().tocoo()
    bad = np.flatnonzero(entries.data < 0.0)
    if len(bad):
        place = begin + int(entries.row[bad[0]])
        s = int(np.searchsorted(rows.offsets, place, side="right")) - 1
        column = int(entries.col[bad[0]])
        name = column if rows.feature_names is None else repr(rows.feature_names[column])
        raise ValueError(
            f"graph {s}, edge {place - rows.offsets[s]}, attribute {name}: the value is "
            f"{entries.data[bad[0]]:g}; with associative=True, attributes of edges must not be "
            "negative: shift them, or give their parts above and below 0 as two attributes."
        )


def _flat(pair: FloatArray) -> FloatArray:
    """Return tables of pair scores as rows, shape (M, K * K): a view."""
    return pair.reshape(len(pair), pair.shape[1] * pair.shape[2])


def transition_rows(data: PackedSequences, chunk: Chunk) -> tuple[PackedSequences, IdArray]:
    """Return the distinct rows of attributes of the transitions of a chunk, and which each has."""
    if data.transitions is None:
        raise ValueError(
            "the model has weights of attributes of transitions, but the data have none."
        )
    begin, end = data.transitions.offsets[[chunk.sequences.start, chunk.sequences.stop]].tolist()
    return distinct_rows(data.transitions, begin, end)
