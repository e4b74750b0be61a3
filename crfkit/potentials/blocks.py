"""Blocks of weights: the parts that a linear model of potentials is made of.

A block says where its weights stand, what they are called when they are fitted, and how they add to
the potentials. From the blocks that a model lists follow its fitted attributes in both directions,
the counts of its parameters, warm starts and the state of `partial_fit`, the checks of model files,
views by name, and votes: a new kind of weight is one class, and its place in a list.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from crfkit._parallel import ThreadMap
from crfkit._types import Chunk, CodeArray, FloatArray, IdArray, IntArray
from crfkit.data import PackedSequences
from crfkit.data.names import Names
from crfkit.data.topology import Topology
from crfkit.potentials.choice import Choice
from crfkit.structures import Spans

# The names of rows and columns of weights: one of nothing, of labels, of pairs of labels (label i,
# then j, is number i K + j), or of attributes of tokens, of transitions and of segments.
ONE, LABELS, PAIRS = "one", "labels", "pairs of labels"
TOKENS, TRANSITIONS, SEGMENTS = "tokens", "transitions", "segments"

# The fitted attributes that hold the names of attributes.
NAMES_OF = {
    TOKENS: "_feature_names",
    TRANSITIONS: "_transition_names",
    SEGMENTS: "_segment_names",
}


class Table(NamedTuple):
    """A fitted attribute: weights with named rows and columns.

    Those of attributes are sparse, shape (R, C), or None where a model has none; others are dense,
    shape (R, C), or (C,) where there is one row.

    Attributes
    ----------
    attribute : str
        Its name.
    rows, columns : str
        What rows and columns are named by.
    title : str
        What the command line calls them.
    view : str
        The name of the mapping view; "" for none.
    """

    attribute: str
    rows: str
    columns: str
    title: str = ""
    view: str = ""

    @property
    def is_sparse(self) -> bool:
        """Whether rows are attributes."""
        return self.rows in NAMES_OF

    def width(self, n_labels: int) -> int:
        """Return the number of columns."""
        return size_of(self.columns, n_labels)

    def shape(self, n_labels: int) -> tuple[int, ...]:
        """Return the shape of a dense table."""
        columns = self.width(n_labels)
        return (columns,) if self.rows == ONE else (size_of(self.rows, n_labels), columns)

    def matrix(self, array: Any) -> sp.csr_array:
        """Return the weights as a sparse matrix; entries that are not stored are 0."""
        return array if self.is_sparse else sp.csr_array(np.atleast_2d(array))


def size_of(axis: str, n_labels: int) -> int:
    """Return how many rows or columns of labels there are."""
    return {ONE: 1, LABELS: n_labels, PAIRS: n_labels**2}[axis]


class Pattern(NamedTuple):
    """Which places of a matrix have a weight, row by row.

    Attributes
    ----------
    ptr : ndarray of shape (R + 1,)
        The weights of row ``r`` are ``ptr[r]:ptr[r + 1]``.
    columns : ndarray of shape (P,)
        Their columns, rising within a row.
    n_columns : int
        C.
    n_sparse : int
        Number of rows that are sparse attributes; R for labels.
    """

    ptr: IntArray
    columns: CodeArray
    n_columns: int
    n_sparse: int

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
        rows, columns = np.divmod(numbers, shape[1])
        ptr = np.searchsorted(rows, np.arange(shape[0] + 1)).astype(np.int64)
        return cls(ptr, columns.astype(np.int32), shape[1], n_sparse)

    def matrix(self, values: FloatArray) -> sp.csr_array:
        """Return a new matrix with these weights, shape (R, C)."""
        return sp.csr_array((values, self.columns, self.ptr), self.shape, copy=True)

    def joined(self, others: list[sp.csr_array]) -> Pattern:
        """Return the pattern with the entries of matrices that may have fewer rows."""
        union = _ones(self.columns, self.ptr, self.shape)
        for matrix in others:
            missing = self.shape[0] - matrix.shape[0]
            ptr = np.append(matrix.indptr, np.repeat(matrix.indptr[-1:], missing))
            union = union + _ones(matrix.indices, ptr, self.shape)
        union.sort_indices()
        return self._replace(ptr=union.indptr, columns=union.indices)


def _ones(columns: CodeArray, ptr: IntArray, shape: tuple[int, int]) -> sp.csr_array:
    return sp.csr_array((np.ones(len(columns)), columns, ptr), shape)


@dataclass
class PotentialParts:
    """Potentials of a chunk while blocks add to them.

    Attributes
    ----------
    unary : ndarray of shape (n, C)
        Of labels at tokens; of segments, C is 4 K.
    offsets : ndarray of shape (S + 1,)
        Where sequences start in `unary`, and the end.
    pair : ndarray of shape (M, K, K) or (1, P2)
        Tables of transitions, or those that have a weight as a list.
    index : ndarray of shape (n,) or None
        The table of the transition into each token; None where all share one.
    lengths : ndarray of shape (L, K), optional
        Of lengths of segments.
    rows : ndarray of shape (R, K), optional
        Of segments that have attributes.
    spans : Spans, optional
        Which segments these are.
    topology : Topology, optional
        The order of the tokens, where it is not that of sequences.
    """

    unary: FloatArray
    offsets: IntArray
    pair: FloatArray
    index: IdArray | None = None
    lengths: FloatArray | None = None
    rows: FloatArray | None = None
    spans: Spans | None = None
    topology: Topology | None = None


class Residuals(NamedTuple):
    """The gradient with respect to the potentials of consecutive chunks.

    Attributes
    ----------
    unary : ndarray of shape (n, C)
        Of all chunks, one after the other. A block that comes first may change it.
    chunks : list of Chunk
        The chunks.
    pairs, lengths, rows : list of ndarrays
        Of each chunk, as in `PotentialParts`; `lengths` and `rows` of segments alone.
    topologies : list of Topology or None
        The order of the tokens of each chunk.
    """

    unary: FloatArray
    chunks: list[Chunk]
    pairs: list[FloatArray]
    lengths: list[FloatArray]
    rows: list[FloatArray]
    topologies: list[Topology | None]

    @property
    def begin(self) -> int:
        """The first token."""
        return int(self.chunks[0].offsets[0])


# How rows of attributes are read: (weights, parts, threads) -> rows with a method `gather`.
Reading = Callable[[Any, Any, ThreadMap], Any]


class WeightBlock(ABC):
    """Some of the weights of a linear model: entries of a matrix with named rows and columns.

    Attributes
    ----------
    name : str
        What they are counted by in :class:`crfkit.potentials.size.ParameterCounts`.
    kind : str
        What they are, for people.
    tables : tuple of Table
        The fitted attributes that they become; of several, the columns stand side by side. Empty
        where the model makes something else of them.
    is_full : bool
        Whether each place of the matrix has a weight.
    is_known : bool
        Whether compiled oracles have such weights, and each model its fitted attributes, empty ones
        where it lacks the block.
    """

    name: ClassVar[str]
    kind: ClassVar[str]
    tables: ClassVar[tuple[Table, ...]]
    is_full: ClassVar[bool] = False
    is_known: ClassVar[bool] = False

    @property
    @abstractmethod
    def pattern(self) -> Pattern:
        """Where the weights stand."""

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
    def prepare(
        self, data: PackedSequences, chunks: list[Chunk], threads: ThreadMap, reading: Reading
    ) -> Any:
        """Return what `add` and `pullback` need of some chunks; one that is long is alone."""

    @abstractmethod
    def add(
        self, bound: Any, prepared: Any, index: int, parts: PotentialParts, threads: ThreadMap
    ) -> None:
        """Add to the potentials of chunk `index` of those that were prepared."""

    @abstractmethod
    def pullback(
        self, residuals: Residuals, prepared: Any, threads: ThreadMap, out: FloatArray
    ) -> None:
        """Add the gradient with respect to the weights to `out`, shape (P,).

        It must be the same to the last bit for any number of threads.
        """

    @abstractmethod
    def active(self, prepared: Any, index: int) -> IdArray:
        """Return the weights that chunk `index` depends on, each once, shape (n,)."""

    @abstractmethod
    def active_gradient(self, residuals: Residuals, prepared: Any, index: int) -> FloatArray:
        """Return the gradient with respect to the `active` weights of chunk `index`, (n,)."""

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
    def of_fitted(cls, fitted: Mapping[str, Any], n_sparse: int) -> tuple[Self, FloatArray] | None:
        """Return the block of fitted attributes and its weights, None where there are none.

        `n_sparse` is the number of attributes that are sparse.
        """
        matrix = cls.stacked(fitted)
        if matrix is None:
            return None
        if cls.is_full:
            matrix = _full(matrix)
        rows = n_sparse if cls.tables[0].is_sparse else matrix.shape[0]
        pattern = Pattern(matrix.indptr, matrix.indices, matrix.shape[1], rows)
        return cls.of_pattern(pattern), matrix.data

    @classmethod
    def stacked(cls, fitted: Mapping[str, Any]) -> sp.csr_array | None:
        """Return the fitted attributes side by side, columns rising in each row and none twice."""
        arrays = [fitted.get(table.attribute) for table in cls.tables]
        if not arrays or any(array is None for array in arrays):
            return None
        if len(arrays) > 1:
            return in_order(sp.csr_array(sp.hstack(arrays)))
        return in_order(cls.tables[0].matrix(arrays[0]))

    @property
    def rows(self) -> str:
        """What the rows of the matrix are named by."""
        return self.tables[0].rows if self.tables else ""

    def carried(self, old: sp.csr_array | None, places: Mapping[str, IntArray]) -> FloatArray:
        """Return the weights of an older block, stacked, 0 where there are none.

        `places` are those of new rows and columns among the old ones, -1 for none, by what they
        are named by.
        """
        if old is None:
            return np.zeros(self.n_parameters)
        pattern, count = self.pattern, len(self.tables)
        table, column = np.divmod(pattern.columns, pattern.n_columns // count)
        columns = places[self.tables[0].columns][column]
        columns = np.where(columns < 0, -1, columns + table * (old.shape[1] // count))
        return _pick(old, places[self.rows][pattern.rows], columns)

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
    kinds = features_of(data).items()
    return {name: 0 if kind is None else kind.n_sparse for name, kind in kinds}


def names_of(data: PackedSequences) -> dict[str, Names | None]:
    """Return the names of the attributes of tokens, transitions and segments."""
    kinds = features_of(data).items()
    return {name: None if kind is None else kind.names for name, kind in kinds}


def _full(matrix: sp.csr_array) -> sp.csr_array:
    """Return a matrix that stores its zeros."""
    rows, columns = matrix.shape
    everywhere = np.tile(np.arange(columns, dtype=np.int32), rows)
    return sp.csr_array(
        (matrix.toarray().reshape(-1), everywhere, np.arange(rows + 1) * columns), matrix.shape
    )


def in_order(matrix: sp.csr_array) -> sp.csr_array:
    """Return weights with rising columns in each row and none twice: by hand, they may be."""
    view = sp.csr_array((matrix.data, matrix.indices, matrix.indptr), matrix.shape)
    if view.has_canonical_format:  # asked of a view, because a matrix remembers the answer
        return view
    ordered = view.copy()
    ordered.sum_duplicates()
    return ordered


def _pick(matrix: sp.csr_array, rows: NDArray[np.int64], columns: NDArray[np.int64]) -> FloatArray:
    """Return entries of a sparse matrix, 0 where a row or column is -1 or the entry not finite.

    A label or transition that was forbidden by hand (``-inf``) is learned from 0 again.
    """
    found = (rows >= 0) & (columns >= 0)
    values = np.zeros(len(rows))
    if found.any():
        picked = matrix[rows[found], columns[found]]
        values[found] = np.ravel(picked.toarray() if sp.issparse(picked) else picked)
    return np.where(np.isfinite(values), values, 0.0)
