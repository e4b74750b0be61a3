"""Blocks of weights: the parts that a linear model of potentials is made of.

A block says where its weights stand, what they are called when they are fitted, and how they add to
the potentials. From the blocks that a model lists follow its fitted attributes in both directions,
the counts of its parameters, warm starts and the state of `partial_fit`, the checks of model files,
views by name, and votes: a new kind of weight is one class, and its place in a list.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self

import numpy as np
import scipy.sparse as sp

from crfkit._parallel import SERIAL, Chunk, ThreadMap
from crfkit._types import BoolArray, CodeArray, FloatArray, IdArray, IntArray
from crfkit.compiler.jit import frozen
from crfkit.data import PackedSequences
from crfkit.data.labels import UNKNOWN
from crfkit.data.names import Names
from crfkit.data.topology import Topology
from crfkit.kernels.design.gather import seen_list
from crfkit.labels.segmentation import Segmentation, segmentation_of
from crfkit.potentials.attributes import AttributeWeights, Part
from crfkit.structures import Spans

if TYPE_CHECKING:
    from crfkit.potentials.semimarkov import LengthBlock

AnyInts = IntArray | CodeArray

# So many pairs of labels that tokens may have are looked at together.
CELLS = 1 << 22

# The names of rows and columns of weights: one of nothing, of labels, of pairs of labels (label i,
# then j, is number i K + j), or of attributes of tokens, of transitions and of segments.
ONE, LABELS, PAIRS = "one", "labels", "pairs of labels"
TOKENS, TRANSITIONS, SEGMENTS = "tokens", "transitions", "segments"

# The fitted attributes that hold the names of attributes.
NAMES_OF = {TOKENS: "_feature_names", TRANSITIONS: "_transition_names", SEGMENTS: "_segment_names"}


class Table(NamedTuple):
    """A fitted attribute: weights with named rows and columns.

    Those of attributes are sparse, shape (R, C), or None where a model has none; others are dense,
    shape (R, C), or (C,) where there is one row.
    """

    attribute: str  # its name
    rows: str  # what rows and columns are named by
    columns: str
    title: str = ""  # what the command line calls them
    view: str = ""  # the name of the mapping view; "" for none

    @property
    def is_sparse(self) -> bool:
        """Whether rows are attributes."""
        return self.rows in NAMES_OF

    def width(self, n_labels: int) -> int:
        """Return the number of columns."""
        return {LABELS: n_labels, PAIRS: n_labels**2}[self.columns]

    def shape(self, n_labels: int) -> tuple[int, ...]:
        """Return the shape of a dense table."""
        columns = self.width(n_labels)
        return (columns,) if self.rows == ONE else (n_labels, columns)


@dataclass
class Choice:
    """Labeled data, and which of their features are to have weights."""

    data: PackedSequences  # N tokens with D attributes, and attributes of transitions into them
    codes: CodeArray  # (N,) of segments, k where one of label k goes on, K + k where one begins
    n_labels: int
    known: BoolArray | None = None  # (N,) whether a token has its label indeed; None: all have
    # (N, K) which labels each token may have, of which all count as seen, but where it may have any
    allowed: BoolArray | None = None
    min_freq: float = 0  # what occurs fewer times has no weight
    all_states: bool = False  # give all D x K (attribute, label) pairs a weight
    all_transitions: bool = False  # and all K x K transitions, for each of their attributes too
    boundaries: bool = False  # give the labels of first and last tokens weights
    forbidden: BoolArray | None = None  # (K, K) transitions that are not allowed
    # Of segments: how the scores of lengths are made (those that occur keep their weights), and
    # which attributes count for all tokens of one, for its first, its last, and one alone, (D, 4).
    lengths: LengthBlock | None = None
    token_parts: BoolArray | None = None

    @cached_property
    def labels(self) -> CodeArray:
        """The label of each token, -1 where it is not known, (N,)."""
        labels = self.codes % self.n_labels
        return labels if self.known is None else np.where(self.known, labels, UNKNOWN)

    @cached_property
    def segments(self) -> Segmentation:
        """The segments that the codes stand for, all of whose tokens have a known label."""
        runs = segmentation_of(self.codes, self.data.offsets, self.n_labels)
        if self.known is None:
            return runs
        whole = np.logical_and.reduceat(self.known, runs.start)
        return Segmentation(*(part[whole] for part in runs))

    @cached_property
    def transitions(self) -> IntArray:
        """``i * K + j`` of the transition from label i to j into each token, -1 for none, (N,)."""
        if self.lengths is not None:
            return self._transitions_of_segments()
        labels = self.labels
        if self.data.topology is None:
            found = transition_columns(self.codes, self.data.offsets, self.n_labels)
            before = np.arange(-1, len(labels) - 1)
        else:
            before = self.data.topology.before
            found = self.codes[before].astype(np.int64) * self.n_labels + self.codes
        return np.where((before < 0) | (np.minimum(labels, labels[before]) < 0), -1, found)

    def _transitions_of_segments(self) -> IntArray:
        found, runs = np.full(len(self.codes), -1, np.int64), self.segments
        begins = np.isin(runs.start[1:], self.data.offsets)
        follows = np.flatnonzero((runs.start[1:] == runs.stop[:-1]) & ~begins) + 1
        found[runs.start[follows]] = runs.label[follows - 1] * self.n_labels + runs.label[follows]
        return found

    @cached_property
    def counted(self) -> BoolArray:
        """Which labels each token counts for, (N, K), where it may have some of several."""
        if self.allowed is None:
            raise ValueError("each token has one label.")
        counted = self.allowed.copy()
        counted[self.allowed.all(axis=1)] = False
        if self.known is not None:
            counted[~self.known] = False
        return counted

    def label_pairs(self) -> AttributeWeights:
        """Return the (attribute of tokens, label) pairs that have a weight."""
        tokens, labels = None, self.labels
        if self.allowed is not None:
            tokens, found = np.nonzero(self.counted)
            labels = found.astype(np.int32)
        return self.pairs(
            self.data, labels, self.n_labels, everything=self.all_states, tokens=tokens
        )

    def transition_pairs(self, data: PackedSequences) -> AttributeWeights:
        """Return the (attribute of transitions, transition) pairs that have a weight."""
        tokens, found, size = None, self.transitions, self.n_labels
        if self.allowed is not None:
            parts = np.array_split(np.arange(len(found)), 1 + len(found) * size**2 // CELLS)
            listed = [_products(part, *self._steps(part)) for part in parts]
            tokens, found = map(np.concatenate, zip(*listed, strict=True))
        return self.pairs(data, found, size**2, everything=self.all_transitions, tokens=tokens)

    def _steps(self, tokens: IntArray) -> tuple[BoolArray, BoolArray]:
        """Return the labels that tokens before some tokens count for, and these, both (n, K)."""
        data, every = self.data, np.arange(-1, len(self.codes) - 1)
        before = (every if data.topology is None else data.topology.before)[tokens]
        first = before < 0
        if data.topology is None:
            first |= np.isin(tokens, data.offsets)
        return self.counted[before] & ~first[:, None], self.counted[tokens]

    def weighted_transitions(self) -> tuple[IntArray, IntArray]:
        """Return the labels before and after of the transitions that have a weight, (P2,)."""
        size, found = self.n_labels, self.transitions
        if self.allowed is None:
            counts = np.bincount(found[found >= 0], minlength=size**2).reshape(size, size)
        else:
            steps = self._steps(np.arange(len(found)))
            source, target = (sp.csr_array(step.astype(np.int64)) for step in steps)
            counts = (source.T @ target).toarray()
        chosen = (counts >= self.least) | self.all_transitions
        if self.forbidden is not None:
            chosen &= ~self.forbidden
        source, target = np.nonzero(chosen)
        return source, target

    @property
    def of_segments(self) -> tuple[LengthBlock, BoolArray]:
        """The lengths and parts of segments; ValueError where labels are those of tokens."""
        if self.lengths is None or self.token_parts is None:
            raise ValueError("the labels are those of tokens, not of segments.")
        return self.lengths, self.token_parts

    @property
    def least(self) -> float:
        """How often something has to occur."""
        return max(1, self.min_freq)

    def pairs(
        self,
        data: PackedSequences,
        columns: AnyInts,
        n_columns: int,
        *,
        everything: bool,
        tokens: IntArray | None = None,
    ) -> AttributeWeights:
        """Return the (attribute, column) pairs that have a weight; a column of -1 is none.

        Columns are those of some `tokens`, each listed once for each of its columns, or of all.
        """
        if everything:
            ptr = np.arange(data.n_features + 1, dtype=np.int64) * n_columns
            found = np.tile(np.arange(n_columns, dtype=np.int32), data.n_features)
        else:
            least = math.ceil(min(self.least, data.n_tokens + 1))  # no pair occurs more often
            order = np.argsort(columns, kind="stable")[np.count_nonzero(columns < 0) :]
            columns, rows = columns[order].astype(np.int64), order
            if tokens is not None:
                rows = tokens[order]
            ptr, found = _sparse_pairs(data, rows, columns, least)
            if data.dense is not None:
                counts = _dense_counts(data.dense, rows, columns, n_columns, least)
                ptr = np.concatenate([ptr, ptr[-1] + counts.indptr[1:]])
                found = np.concatenate([found, counts.indices])
        return AttributeWeights(ptr, found, n_columns=n_columns, n_sparse=data.n_sparse)


def _products(tokens: IntArray, before: BoolArray, after: BoolArray) -> tuple[IntArray, IntArray]:
    """Return tokens, each once for each of its steps, and these, ``i K + j``."""
    rows, source, target = np.nonzero(before[:, :, None] & after[:, None, :])
    return tokens[rows], source * before.shape[1] + target


def transition_columns(codes: CodeArray, offsets: IntArray, n_labels: int) -> IntArray:
    """Return ``i * K + j`` for the transition from label i to j into each token, -1 for a first."""
    transitions = np.full(len(codes), -1, np.int64)
    transitions[1:] = codes[:-1].astype(np.int64) * n_labels + codes[1:]
    starts = offsets[:-1]
    transitions[starts[starts < len(codes)]] = -1
    return transitions


def _sparse_pairs(
    data: PackedSequences, tokens: IntArray, columns: IntArray, least: int
) -> tuple[IntArray, CodeArray]:
    """Return where the pairs of each sparse attribute start, and their columns, rising.

    Given tokens and their columns, which rise.
    """
    entries = (
        frozen(tokens), frozen(columns), frozen(data.indptr), frozen(data.indices.view(np.uint32)),
        least,
    )  # fmt: skip
    known = np.zeros((data.n_sparse, 2), np.uint32)
    ptr = np.zeros(data.n_sparse + 1, np.int64)
    seen_list(*entries, known, ptr[1:], np.empty(0, np.int32))
    np.cumsum(ptr, out=ptr)
    found = np.empty(ptr[-1], np.int32)
    known[:] = 0
    seen_list(*entries, known, ptr[:-1].copy(), found)
    return ptr, found


def _dense_counts(
    dense: FloatArray, tokens: IntArray, columns: IntArray, n_columns: int, least: int
) -> sp.csr_array:
    """Return how many tokens of each column, of which few occur, have a dense feature, (F, C)."""
    present, starts = np.unique(columns, return_index=True)
    uses = (dense[tokens] != 0.0).astype(np.float64)
    sums = np.add.reduceat(uses, starts, axis=0) if len(present) else uses[:0]
    counts = sp.csr_array(np.where(sums < least, 0.0, sums).T)
    places = present[counts.indices]
    return sp.csr_array((counts.data, places, counts.indptr), (dense.shape[1], n_columns))


class Pattern(NamedTuple):
    """Which places of a matrix of shape (R, C) have a weight, row by row."""

    ptr: IntArray  # (R + 1,) the weights of row r are ptr[r]:ptr[r + 1]
    columns: CodeArray  # (P,) their columns, rising within a row
    n_columns: int  # C
    n_sparse: int  # how many rows are sparse attributes; R for labels

    @property
    def rows(self) -> IntArray:
        """The row of each weight, shape (P,)."""
        return np.repeat(np.arange(len(self.ptr) - 1), np.diff(self.ptr))

    @property
    def shape(self) -> tuple[int, int]:
        """``(R, C)``."""
        return len(self.ptr) - 1, self.n_columns

    @property
    def numbers(self) -> IntArray:
        """``row C + column`` of each weight, shape (P,)."""
        return self.rows * self.n_columns + self.columns.astype(np.int64)

    @classmethod
    def of_numbers(cls, numbers: IntArray, shape: tuple[int, int], n_sparse: int) -> Pattern:
        """Return the pattern of weights that are given by rising numbers."""
        return cls.of_rows(*np.divmod(numbers, shape[1]), shape, n_sparse)

    @classmethod
    def of_rows(
        cls, rows: AnyInts, columns: AnyInts, shape: tuple[int, ...], n_sparse: int
    ) -> Pattern:
        """Return the pattern of weights in rising rows, and rising columns in each."""
        ptr = np.searchsorted(rows, np.arange(shape[0] + 1)).astype(np.int64)
        return cls(ptr, columns.astype(np.int32), shape[1], n_sparse)

    def matrix(self, values: FloatArray) -> sp.csr_array:
        """Return a new matrix with these weights, shape (R, C)."""
        return sp.csr_array((values, self.columns, self.ptr), self.shape, copy=True)

    def joined(self, others: list[sp.csr_array]) -> Pattern:
        """Return the pattern with the entries of matrices that may have fewer rows."""
        union = self.matrix(np.ones(len(self.columns)))
        for matrix in others:
            grown = sp.csr_array(matrix, copy=True)
            grown.data = np.ones(len(grown.data))  # zeros that are stored count too
            grown.resize(self.shape)
            union = union + grown
        union.sort_indices()
        return self._replace(ptr=union.indptr, columns=union.indices)


@dataclass
class PotentialParts:
    """Potentials of a chunk while blocks add to them."""

    unary: FloatArray  # (n, C) of labels at tokens; of segments, C is 4 K
    offsets: IntArray  # (S + 1,) where sequences start in `unary`, and the end
    threads: ThreadMap  # share the work on a long sequence
    pair: FloatArray  # (M, K, K) tables of transitions, or a list of those with a weight, (1, P2)
    index: IdArray | None = None  # (n,) the table of the transition into each token, if several
    lengths: FloatArray | None = None  # (L, K) of lengths of segments
    rows: FloatArray | None = None  # (R, K) of segments that have attributes
    spans: Spans | None = None  # which segments these are
    topology: Topology | None = None  # the order of the tokens, where it is not that of sequences


class Residuals(NamedTuple):
    """The gradient with respect to the potentials of consecutive chunks."""

    unary: FloatArray  # (n, C) of all chunks in turn; a block that comes first may change it
    chunks: list[Chunk]
    pairs: list[FloatArray]  # of each chunk, as in `PotentialParts`; so are the next two
    lengths: list[FloatArray]  # of segments alone
    rows: list[FloatArray]  # of segments alone
    topologies: list[Topology | None]  # the order of the tokens of each chunk
    threads: ThreadMap = SERIAL

    @property
    def begin(self) -> int:
        """The first token."""
        return int(self.chunks[0].offsets[0])


class Reading(NamedTuple):
    """How rows of attributes are read, and the threads that share the work."""

    rows: Callable[[Any, Any, ThreadMap], Any]  # (weights, parts, threads) -> has a method `gather`
    threads: ThreadMap

    def __call__(self, weights: AttributeWeights, parts: list[Part]) -> Any:
        """Return rows of some parts."""
        return self.rows(weights, parts, self.threads)


class WeightBlock(ABC):
    """Some of the weights of a linear model: entries of a matrix with named rows and columns."""

    name: ClassVar[str]  # what a model finds them by
    kind: ClassVar[str]  # what they are, for people, and what they are counted by
    # The fitted attributes that they become; of several, the columns stand side by side. Empty
    # where the model makes something else of them.
    tables: ClassVar[tuple[Table, ...]]
    is_full: ClassVar[bool] = False  # each place of the matrix has a weight
    # Compiled oracles have such weights, and each model its fitted attributes, empty ones where it
    # lacks the block.
    is_known: ClassVar[bool] = False
    pattern: Pattern  # where the weights stand; made by `__init__`

    @classmethod
    @abstractmethod
    def of_pattern(cls, pattern: Pattern) -> Self:
        """Return the block with these weights."""

    @classmethod
    @abstractmethod
    def choose(cls, choice: Choice) -> Self | None:
        """Return the block with the weights that are to be learned; None for none at all."""

    @abstractmethod
    def bind(self, parameters: FloatArray) -> Any:
        """Return weights, shape (P,), as `add` needs them; made once for all chunks."""

    @abstractmethod
    def prepare(self, data: PackedSequences, chunks: list[Chunk], reading: Reading) -> Any:
        """Return what `add` and `pullback` need of some chunks; one that is long is alone."""

    @abstractmethod
    def add(self, bound: Any, prepared: Any, index: int, parts: PotentialParts) -> None:
        """Add to the potentials of chunk `index` of those that were prepared."""

    @abstractmethod
    def pullback(self, residuals: Residuals, prepared: Any, out: FloatArray) -> None:
        """Add the gradient with respect to the weights to `out`, shape (P,).

        It must be the same to the last bit for any number of threads.
        """

    @abstractmethod
    def active(self, prepared: Any) -> IdArray:
        """Return the weights that a chunk depends on, each once, shape (n,).

        It was prepared alone, for a solver that moves after a few chunks: `pullback` then adds to
        a gradient with respect to these weights.
        """

    @property
    def n_parameters(self) -> int:
        """Number of weights P."""
        return len(self.pattern.columns)

    @property
    def all_weights(self) -> IdArray:
        """The numbers of all weights, shape (P,): what `active` is where each chunk has all."""
        return np.arange(self.n_parameters, dtype=np.uint32)

    def fitted(self, parameters: FloatArray) -> dict[str, Any]:
        """Return weights, shape (P,), as fitted attributes; sparse ones do not keep zeros."""
        matrix, names = self.pattern.matrix(parameters), [t.attribute for t in self.tables]
        if not names:
            return {}
        if not self.tables[0].is_sparse:
            dense = matrix.toarray()
            return {names[0]: dense[0] if self.tables[0].rows == ONE else dense}
        matrix.eliminate_zeros()
        if len(names) == 1:
            return {names[0]: matrix}
        width = self.pattern.n_columns // len(names)
        return {
            name: sp.csr_array(matrix[:, place * width : (place + 1) * width])
            for place, name in enumerate(names)
        }

    @classmethod
    def of_fitted(
        cls, fitted: Mapping[str, Any], sizes: Mapping[str, int]
    ) -> tuple[Self, FloatArray] | None:
        """Return the block of fitted attributes and its weights, None where there are none.

        `sizes` are the numbers of attributes that are sparse, from `sparse_counts`.
        """
        matrix = cls.stacked(fitted)
        if matrix is None:
            return None
        table = cls.tables[0]
        rows = sizes[table.rows] if table.rows in sizes else matrix.shape[0]
        pattern = Pattern(matrix.indptr, matrix.indices, matrix.shape[1], rows)
        if not cls.is_full:
            return cls.of_pattern(pattern), matrix.data
        if not matrix.nnz:  # weights of first and last labels that were not learned
            return None
        full = Pattern.of_numbers(np.arange(math.prod(pattern.shape)), pattern.shape, rows)
        return cls.of_pattern(full), matrix.toarray().reshape(-1)

    @classmethod
    def stacked(cls, fitted: Mapping[str, Any]) -> sp.csr_array | None:
        """Return the fitted attributes side by side: columns rise in rows, others are 0."""
        arrays = list[Any]()
        for table in cls.tables:
            arrays.append(fitted.get(table.attribute))
            if arrays[-1] is None:
                return None
        if not arrays:
            return None
        if not cls.tables[0].is_sparse:
            return sp.csr_array(np.atleast_2d(arrays[0]))
        stack = arrays[0] if len(arrays) == 1 else sp.csr_array(sp.hstack(arrays))
        # A matrix remembers the answer to what is asked next: a view is asked.
        view = sp.csr_array((stack.data, stack.indices, stack.indptr), stack.shape)
        if view.has_canonical_format:
            return view
        ordered = view.copy()  # weights that were set by hand
        ordered.sum_duplicates()
        return ordered

    @property
    def rows(self) -> str:
        """What the rows of the matrix are named by."""
        return self.tables[0].rows if self.tables else ""

    def carried(self, old: sp.csr_array | None, places: Mapping[str, IntArray]) -> FloatArray:
        """Return the weights of an older block, stacked, 0 where there are none.

        `places` are those of new rows and columns among the old ones, -1 for none, by what they
        are named by. A label or transition that was forbidden by hand (``-inf``) is learned from 0
        again.
        """
        values = np.zeros(self.n_parameters)
        if old is None:
            return values
        pattern, count = self.pattern, len(self.tables)
        table, column = np.divmod(pattern.columns, pattern.n_columns // count)
        rows, columns = places[self.rows][pattern.rows], places[self.tables[0].columns][column]
        found = (rows >= 0) & (columns >= 0)
        if found.any():
            columns = columns + table * (old.shape[1] // count)
            picked = old[rows[found], columns[found]]
            values[found] = np.ravel(picked.toarray() if sp.issparse(picked) else picked)
        return np.where(np.isfinite(values), values, 0.0)

    def extended(self, others: list[Mapping[str, Any]]) -> Self:
        """Return the block with the weights that are not 0 in fitted attributes of others."""
        found = [matrix for matrix in map(self.stacked, others) if matrix is not None]
        return self if self.is_full else self.of_pattern(self.pattern.joined(found))


def features_of(data: PackedSequences) -> dict[str, PackedSequences | None]:
    """Return the features of tokens, transitions and segments, where there are any."""
    rows = None if data.segments is None else data.segments.rows
    return {TOKENS: data, TRANSITIONS: data.transitions, SEGMENTS: rows}


def sparse_counts(data: PackedSequences) -> dict[str, int]:
    """Return how many attributes of tokens, transitions and segments are sparse."""
    return {of: 0 if x is None else x.n_sparse for of, x in features_of(data).items()}


def names_of(data: PackedSequences) -> dict[str, Names | None]:
    """Return the names of the attributes of tokens, transitions and segments."""
    return {of: None if x is None else x.names for of, x in features_of(data).items()}
