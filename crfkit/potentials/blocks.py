"""Blocks of weights: the parts that a linear model of potentials is made of.

A block says where its weights stand, what they are called when they are fitted, and how they add to
the potentials. From the blocks that a model lists follow its fitted attributes in both directions,
the counts of its parameters, warm starts and the state of `partial_fit`, the checks of model files,
views by name, and votes: a new kind of weight is one class, and its place in a list.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
import scipy.sparse as sp

from crfkit._parallel import SERIAL, Chunk, ThreadMap
from crfkit._types import CodeArray, FloatArray, IdArray, IntArray
from crfkit.data import PackedSequences
from crfkit.data.names import Names
from crfkit.data.topology import Topology
from crfkit.potentials.attributes import AttributeWeights, Part
from crfkit.potentials.choice import AnyInts, Choice
from crfkit.structures import Spans

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
    """The gradient with respect to the potentials of consecutive chunks.

    Of those that were prepared together, the first ones come first, and each once.
    """

    unary: FloatArray  # (n, C) of all chunks in turn; a block that comes first may change it
    chunks: list[Chunk]
    pairs: list[FloatArray]  # of each chunk, as in `PotentialParts`; so are the next two
    lengths: list[FloatArray]  # of segments alone
    rows: list[FloatArray]  # of segments alone
    topologies: list[Topology | None]  # the order of the tokens of each chunk
    threads: ThreadMap = SERIAL
    chosen: Sequence[int] = (0,)  # the numbers of the chunks among those that were prepared

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
    # Whether a weight of labels i <= j is that of j and i too; fitted attributes have both.
    is_mirrored: bool = False

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
        """Return what `add` and `pullback` need of some chunks."""

    @abstractmethod
    def add(self, bound: Any, prepared: Any, index: int, parts: PotentialParts) -> None:
        """Add to the potentials of chunk `index` of those that were prepared."""

    @abstractmethod
    def pullback(self, residuals: Residuals, prepared: Any, out: FloatArray) -> None:
        """Add the gradient with respect to the weights to `out`, shape (P,).

        It must be the same to the last bit for any number of threads, and be complete after the
        last of the chunks that were prepared.
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
        if self.is_mirrored:
            matrix = mirrored(matrix, of_pairs=self.tables[0].columns == PAIRS)
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


def mirrored(matrix: sp.csr_array, of_pairs: bool) -> sp.csr_array:
    """Return weights of labels i and j with each of them also at j and i.

    Columns are labels, as rows are, or pairs of labels.
    """
    entries, width = matrix.tocoo(), matrix.shape[1]
    size = math.isqrt(width) if of_pairs else width
    numbers = entries.row.astype(np.int64) * width + entries.col
    table, pair = np.divmod(numbers, size * size)
    first, second = np.divmod(pair, size)
    apart = first != second
    turned = ((table * size + second) * size + first)[apart]
    data = np.concatenate([entries.data, entries.data[apart]])
    places = np.divmod(np.concatenate([numbers, turned]), width)
    both = sp.csr_array((data, places), matrix.shape)
    both.sort_indices()
    return both


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
