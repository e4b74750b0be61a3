"""Features of many sequences in a few arrays."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike

from crfkit._params import refuse_mask
from crfkit._tables import GUIDE, refuse_tables
from crfkit._types import FloatArray, Frame, IntArray, ObjectArray, taken_rows
from crfkit.compiler.jit import frozen, protect
from crfkit.data.frames import Keys, frame_columns, frame_offsets, group_offsets, shared_columns
from crfkit.data.labels import check_lengths
from crfkit.data.names import Names, check_feature_names, name_array
from crfkit.data.segments import PackedSegments, check_offsets, check_segments
from crfkit.data.topology import Topology, tokens_before
from crfkit.data.validation import check_dense, sparse_arrays, stack_matrices, token_place

UNIT = frozen(np.ones(1))
TAKEN = 1 << 14  # tokens whose entries are copied at a time: their places take twice the room


class PackedSequences:
    """Sequences of feature vectors, packed into one block of rows and the offsets of the sequences.

    The container behaves as a sequence of sequences: ``len`` is the number of sequences, an integer
    index gives one sequence as a matrix, and slices, index arrays and boolean masks give another
    container, so that scikit-learn's splitters and searches work on it unchanged. With attributes
    of transitions or of segments, which no matrix has, an integer index is an error.

    Parameters
    ----------
    sparse : sparse matrix of shape (N, D1) or None
        Features of the N tokens of all sequences, one row a token. Values that are all 1 are not
        stored: such a block takes 4 bytes an entry and 8 bytes a token.
    dense : array of shape (N, D2) or None
        Further features as a dense block; they follow the sparse ones in the numbering. Not
        copied where they are float64 in C order: do not change them afterwards.
    offsets : array of shape (S + 1,)
        Sequence ``s`` is rows ``offsets[s]:offsets[s + 1]``.
    feature_names : sequence of str or None
        Names of the D = D1 + D2 features.
    transitions : PackedSequences or None
        Attributes of the transition from the previous token into each, of sequences of the same
        lengths: with them a model has weights for (attribute, label, next label). Those of first
        tokens, into which no transition leads, are not used. With `Edges`, those of each edge.
    segments : PackedSegments or None
        Attributes of runs of tokens, for models of segments.
    topology : Topology or None
        Which token stands before which (`Forest`), or the edges between them (`Edges`); None where
        each follows the one before in the sequence.

    Attributes
    ----------
    sparse : scipy.sparse.csr_array of shape (N, D1) or None
        A new view of the sparse block (ones are filled in).
    dense, offsets, feature_names, transitions, segments, topology
        As given, as arrays. Those of numbers are read-only.

    Raises
    ------
    ValueError
        If shapes or offsets do not fit, or a value is NaN or infinite: the message names the
        sequence, the position and the feature.

    Examples
    --------
    >>> import numpy as np
    >>> from crfkit.data import PackedSequences
    >>> packed = PackedSequences.from_flat(np.eye(5), lengths=[2, 3])
    >>> len(packed), packed[1].shape, len(packed[[True, False]])
    (2, (3, 5), 1)
    """

    names: Names | None = None
    transitions: PackedSequences | None = None
    segments: PackedSegments | None = None
    topology: Topology | None = None

    def __init__(
        self,
        sparse: Any = None,
        dense: ArrayLike | None = None,
        *,
        offsets: ArrayLike,
        feature_names: Sequence[str] | ObjectArray | None = None,
        transitions: PackedSequences | None = None,
        segments: PackedSegments | None = None,
        topology: Topology | None = None,
    ) -> None:
        if sparse is None and dense is None:
            raise ValueError("PackedSequences needs a sparse block, a dense block, or both.")
        self.offsets = check_offsets(offsets)
        self.indptr, self.indices, self.values, self.n_sparse = sparse_arrays(sparse, self.n_tokens)
        self.dense = None if dense is None else check_dense(dense)
        self._check_rows()
        self.names: Names | None = check_feature_names(feature_names, self.n_features)
        self._check_finite()
        self.topology = topology
        if topology is not None:
            topology.check(self.offsets)
        self.transitions = _check_transitions(transitions, self)
        self.segments = check_segments(segments, self.offsets)
        self.__setstate__(self.__dict__)

    @classmethod
    def _from_arrays(cls, **arrays: Any) -> Self:
        """Build without checks, from arrays that have passed them (names and so on too)."""
        new = cls.__new__(cls)
        new.__setstate__(arrays)
        return new

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Take a state; its arrays are read-only, as kernels do not check them again."""
        self.__dict__.update(state)
        protect(state)

    @classmethod
    def from_matrices(cls, sequences: Iterable[Any], n_features: int | None = None) -> Self:
        """Pack one matrix for each sequence.

        Parameters
        ----------
        sequences : iterable of arrays, sparse matrices or data frames of shape (T, D)
            All with the same number of columns; one sparse one makes the block sparse. The columns
            of data frames must be the same, in the same order, and name the features. An empty list
            is a sequence of no tokens.
        n_features : int, optional
            D, where no sequence may tell it.

        Raises
        ------
        TypeError
            If an item is not a matrix of numbers; of a frame, the message names the column.
        ValueError
            If an item does not have 2 dimensions, or other columns than the first, or is a sparse
            matrix with an entry outside its shape, or has masked values.
        """
        packed: Self = stack_matrices(cls, sequences, n_features)
        return packed

    @classmethod
    def from_flat(
        cls, X: Any, lengths: ArrayLike, feature_names: Sequence[str] | None = None
    ) -> Self:
        """Pack one matrix of all tokens.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (N, D)
            One row a token, sequence after sequence.
        lengths : array of shape (S,)
            Number of tokens of each sequence.
        feature_names : sequence of str, optional
            Names of the columns; of a data frame, its own if not given.

        Raises
        ------
        ValueError
            If the lengths are negative or do not add up to N.
        """
        refuse_mask(lengths, "lengths", "Leave out the sequences that are not there.")
        sizes = np.asarray(lengths)
        if sizes.ndim != 1 or (sizes.size and sizes.dtype.kind not in "iu"):
            raise ValueError("lengths must be a list of whole numbers, one for each sequence.")
        if np.any(sizes < 0):
            raise ValueError(f"lengths[{int(np.argmax(sizes < 0))}] is negative.")
        rows = X.shape[0] if hasattr(X, "shape") else len(X)
        if sizes.sum() != rows:
            raise ValueError(f"lengths add up to {sizes.sum()}, but X has {rows} rows (tokens).")
        offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        blocks = {"sparse": X} if sp.issparse(X) else {"dense": X}
        names = shared_columns([X]) if feature_names is None else feature_names
        return cls(**blocks, offsets=offsets, feature_names=names)

    @classmethod
    def from_groups(
        cls, X: Any, groups: ArrayLike, feature_names: Sequence[str] | None = None
    ) -> Self:
        """Pack one matrix of all tokens whose sequences are runs of an equal group value.

        Parameters
        ----------
        X, feature_names
            As for :meth:`from_flat`.
        groups : array of shape (N,)
            Which sequence a token belongs to.

        Raises
        ------
        ValueError
            If a group comes back after another one: sort the rows first.
        """
        return cls.from_flat(X, np.diff(group_offsets(groups)), feature_names)

    @classmethod
    def from_frame(cls, df: Frame, by: Keys, columns: Sequence[str] | None = None) -> Self:
        """Pack the numeric and boolean columns of a data frame, one row a token.

        Parameters
        ----------
        df : DataFrame
            A frame of pandas or polars.
        by : str or list of str
            The column that tells the sequences apart, as in :meth:`from_groups`, or several.
        columns : sequence of str, optional
            The feature columns; all but `by` if not given.

        Raises
        ------
        ValueError
            If a column is missing or a group comes back after another one.
        TypeError
            If a column is not numeric. Text needs a vocabulary: use
            ``SequenceVectorizer().fit_transform(sequences_from_frame(df, by))``.
        """
        names, lengths = frame_columns(df, by, columns), np.diff(frame_offsets(df, by))
        return cls.from_flat(df[names], lengths, [str(name) for name in names])

    def with_transitions(self, transitions: PackedSequences | None) -> PackedSequences:
        """Return the same features with other attributes of the transitions; nothing is copied.

        ValueError if those sequences have other lengths, or transitions themselves.
        """
        checked = _check_transitions(transitions, self)
        return self._from_arrays(**self.__dict__ | {"transitions": checked})

    def with_segments(self, segments: PackedSegments | None) -> PackedSequences:
        """Return the same features with other attributes of segments; nothing is copied.

        ValueError if the segments are those of other sequences.
        """
        checked = check_segments(segments, self.offsets)
        return self._from_arrays(**self.__dict__ | {"segments": checked})

    def with_topology(self, topology: Topology | None) -> PackedSequences:
        """Return the same features of sequences whose tokens are joined in another way.

        ValueError if the topology, or attributes of transitions, are those of others.
        """
        if topology is not None:
            topology.check(self.offsets)
        new = self._from_arrays(**self.__dict__ | {"topology": topology})
        _check_transitions(new.transitions, new)
        return new

    @property
    def feature_names(self) -> ObjectArray | None:
        """Names of the features, shape (D,), or None."""
        return None if self.names is None else name_array(self.names)

    @property
    def n_tokens(self) -> int:
        """Number of tokens N."""
        return int(self.offsets[-1])

    @property
    def n_features(self) -> int:
        """Number of features D."""
        return self.n_sparse + (0 if self.dense is None else self.dense.shape[1])

    @property
    def lengths(self) -> IntArray:
        """Number of tokens of each sequence, shape (S,)."""
        return np.diff(self.offsets)

    @property
    def before(self) -> IntArray:
        """The token that the transition into each one comes from, shape (N,); -1 for none."""
        return tokens_before(self.offsets) if self.topology is None else self.topology.before

    @property
    def transition_offsets(self) -> IntArray:
        """Where the transitions of each sequence start, and the end, shape (S + 1,)."""
        return self.offsets if self.topology is None else self.topology.transition_offsets

    @property
    def ends(self) -> tuple[IntArray, IntArray]:
        """The token that each transition comes from, -1 for none, and the one it leads to."""
        if self.topology is None:
            return tokens_before(self.offsets), np.arange(self.n_tokens)
        return self.topology.ends

    @property
    def shape(self) -> tuple[int]:
        """``(S,)``: as an array of S sequences."""
        refuse_tables()
        return (len(self),)

    @property
    def ndim(self) -> int:
        """The length of `shape`."""
        return len(self.shape)

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays, without the names of the features."""
        arrays = (
            self.indptr, self.indices, self.values, self.dense, self.offsets, self.transitions,
            self.segments, self.topology,
        )  # fmt: skip
        return sum(array.nbytes for array in arrays if array is not None)

    @property
    def sparse(self) -> sp.csr_array | None:
        """The sparse block as a matrix of shape (N, D1), or None."""
        return self._sparse_rows(0, self.n_tokens) if self.n_sparse else None

    def value_array(self) -> tuple[FloatArray, int]:
        """Return the values of the sparse entries and 1, or a single 1 and 0 where all are 1."""
        return (UNIT, 0) if self.values is None else (self.values, 1)

    def to_csr(self) -> sp.csr_array:
        """Return all features as one sparse matrix of shape (N, D)."""
        return self._rows(0, self.n_tokens, as_sparse=True)

    def to_dicts(self, names: ObjectArray | None = None) -> list[list[dict[str, float]]]:
        """Return the sequences as lists of dicts ``{feature: value}``.

        `names`, shape (D,), are those of the features, by default their own; ValueError without.
        """
        names = self.feature_names if names is None else names
        if names is None:
            raise ValueError("the features have no names: give some.")
        rows = self.to_csr()
        keys, values = names[rows.indices].tolist(), rows.data.tolist()
        pairs = itertools.pairwise(rows.indptr.tolist())
        tokens = [dict(zip(keys[b:e], values[b:e], strict=True)) for b, e in pairs]
        return [tokens[b:e] for b, e in itertools.pairwise(self.offsets.tolist())]

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, key: Any) -> Any:
        """Return one sequence as a matrix of shape (T, D), or a container of the chosen ones.

        TypeError if one is asked for and there are attributes of transitions or of segments, which
        no matrix has: ``packed[[i]]`` is a container of this sequence.
        """
        if isinstance(key, tuple) and len(key) == 2 and key[1] is Ellipsis:
            key = key[0]  # scikit-learn indexes what has a shape with [key, ...]
        if isinstance(key, (int, np.integer)):
            index = range(len(self))[key]
            self._check_plain(index)
            return self._rows(int(self.offsets[index]), int(self.offsets[index + 1]))
        if isinstance(key, slice):
            return self._take(np.arange(len(self))[key])
        chosen = np.asarray(key)
        if chosen.dtype == bool and chosen.shape != self.shape:
            raise IndexError(f"a mask of shape {chosen.shape} for {len(self)} sequences")
        return self._take(np.arange(len(self))[chosen if chosen.size else chosen.astype(np.int64)])

    def __iter__(self) -> Iterator[Any]:
        return (self[i] for i in range(len(self)))

    def __repr__(self) -> str:
        others = {"transitions": self.transitions, "segments": self.segments}
        more = [f" and {x.n_features:,} of {name}" for name, x in others.items() if x is not None]
        sizes = f"{len(self):,} sequences, {self.n_tokens:,} tokens, {self.n_features:,} attributes"
        return f"<PackedSequences: {sizes}{''.join(more)}, {self.nbytes:,} bytes>"

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> ObjectArray:
        refuse_tables(failed=True)
        raise TypeError(f"PackedSequences are sequences of different lengths, no table. {GUIDE}")

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, PackedSequences):
            return NotImplemented
        same = np.array_equal(self.offsets, other.offsets) and self.n_features == other.n_features
        return bool(same and (self.to_csr() != other.to_csr()).nnz == 0) and (
            self.transitions == other.transitions
            and self.segments == other.segments
            and self.topology == other.topology
        )

    __hash__ = None  # type: ignore[assignment]

    def _check_plain(self, index: int) -> None:
        """Raise TypeError if a matrix is not all that there is of a sequence."""
        kinds = ("transitions", "segments", "topology")
        others = [name for name in kinds if getattr(self, name) is not None]
        if others:
            raise TypeError(
                f"one sequence as a matrix would lose the attributes of {' and '.join(others)}. "
                f"X[[{index}]] is a container of sequence {index} with all of them, and X itself "
                "goes where a list of sequences does; "
                f"X.{'.'.join(f'with_{name}(None)' for name in others)} leaves them out."
            )

    def _take(self, chosen: IntArray) -> PackedSequences:
        """Return a container of the chosen sequences."""
        offsets, tokens = taken_rows(self.offsets, chosen)
        transitions = None if self.transitions is None else self.transitions._take(chosen)
        others = {
            "offsets": offsets, "transitions": transitions,
            "segments": None if self.segments is None else self.segments.take(tokens),
            "topology": None if self.topology is None else self.topology.take(chosen),
        }  # fmt: skip
        return self._from_arrays(**(self.take_tokens(tokens).__dict__ | others))

    def take_tokens(self, rows: IntArray) -> PackedSequences:
        """Return one sequence of the chosen tokens, by their place in all sequences together.

        Attributes of transitions and segments are left out.
        """
        starts = self.indptr[:-1][rows]
        counts = self.indptr[1:][rows] - starts  # of few rows, in time for these
        indptr = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        indices = np.empty(indptr[-1], np.int32)
        values = None if self.values is None else np.empty(indptr[-1])
        for first in range(0, len(rows), TAKEN):
            some = slice(first, first + TAKEN)
            entries = ranges(starts[some], counts[some])
            place = slice(indptr[first], indptr[first] + len(entries))
            indices[place] = self.indices[entries]
            if values is not None and self.values is not None:
                values[place] = self.values[entries]
        return self._from_arrays(
            offsets=np.array([0, len(rows)]),
            indptr=indptr,
            indices=indices,
            values=values,
            n_sparse=self.n_sparse,
            dense=None if self.dense is None else self.dense[rows],
            names=self.names,
        )

    def _sparse_rows(self, begin: int, end: int) -> sp.csr_array:
        first, last = self.indptr[begin], self.indptr[end]
        values = np.ones(last - first) if self.values is None else self.values[first:last]
        rows = (values, self.indices[first:last], self.indptr[begin : end + 1] - first)
        return sp.csr_array(rows, shape=(end - begin, self.n_sparse))

    def _rows(self, begin: int, end: int, as_sparse: bool = False) -> Any:
        """Return rows of all features, sparse if a part of them is."""
        if self.dense is None:
            return self._sparse_rows(begin, end)
        block = self.dense[begin:end]
        if not self.n_sparse and not as_sparse:
            return block
        return sp.hstack([self._sparse_rows(begin, end), sp.csr_array(block)], format="csr")

    def _check_rows(self) -> None:
        blocks = {"sparse": self.indptr[:-1], "dense": self.dense}
        for name, block in blocks.items():
            if block is not None and len(block) != self.n_tokens:
                raise ValueError(
                    f"the {name} block has {len(block)} rows, "
                    f"but the offsets end at token {self.n_tokens}."
                )

    def _check_finite(self) -> None:
        if self.values is not None and not np.isfinite(self.values).all():
            entry = int(np.argmin(np.isfinite(self.values)))
            row = int(np.searchsorted(self.indptr, entry, side="right")) - 1
            self._raise_not_finite(row, int(self.indices[entry]), self.values[entry])
        if self.dense is not None and not np.isfinite(self.dense).all():
            row, column = np.argwhere(~np.isfinite(self.dense))[0]
            self._raise_not_finite(int(row), self.n_sparse + int(column), self.dense[row, column])

    def _raise_not_finite(self, row: int, feature: int, value: float) -> None:
        name = feature if self.feature_names is None else repr(self.feature_names[feature])
        raise ValueError(
            f"{token_place(self.offsets, row)}, feature {name}: "
            f"the value is {value}; values must be finite. Impute or leave out the feature."
        )


def ranges(starts: IntArray, lengths: IntArray) -> IntArray:
    """Return ``concatenate([arange(s, s + n) for s, n in zip(starts, lengths)])``."""
    ends = np.cumsum(lengths)
    total = int(ends[-1]) if len(ends) else 0
    places = np.arange(total)
    places += np.repeat(starts - ends + lengths, lengths)
    return places


def _check_transitions(
    transitions: PackedSequences | None, data: PackedSequences
) -> PackedSequences | None:
    """Return attributes of transitions that fit sequences with these offsets."""
    if transitions is None:
        return None
    if not isinstance(transitions, PackedSequences):
        raise TypeError(
            f"transitions must be PackedSequences or None, not {type(transitions).__name__}."
        )
    if transitions.transitions is not None:
        raise ValueError(
            "the attributes of the transitions have transitions themselves: leave those out."
        )
    row = "token" if data.topology is None else data.topology.row
    check_lengths(data.transition_offsets, transitions.offsets, "transitions", row)
    return transitions
