"""Attributes of segments, packed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from crfkit._types import BoolArray, IntArray, listed_for
from crfkit.compiler.jit import protect

if TYPE_CHECKING:
    from crfkit.data.packed import PackedSequences


class PackedSegments:
    """Which runs of tokens have attributes as segments, and which.

    Attributes depend on the run alone, not on the label it may get; runs that have none are not
    listed. Runs with the same attributes (the same words, mostly) share a row.

    Parameters
    ----------
    rows : PackedSequences
        The rows of attributes, as one sequence of R tokens.
    offsets : array of shape (S + 1,)
        Sequence ``s`` is tokens ``offsets[s]:offsets[s + 1]``.
    start, stop : array of shape (n,)
        First token of each run, and the one after its last, numbered through all sequences.
    row : array of shape (n,)
        Its row.

    Attributes
    ----------
    rows : PackedSequences
        The rows.
    ptr : ndarray of shape (N + 1,)
        Where the runs that end at each token are listed, and the end.
    length, row : ndarray of shape (n,)
        Their lengths, rising for each token, and rows; all arrays are read-only.

    Raises
    ------
    TypeError
        If the rows are no PackedSequences.
    ValueError
        If a run is empty, listed twice or not within one sequence, or there is no such row; if the
        rows are not one sequence, offsets fall, or a number is not whole or missing.
    """

    def __init__(
        self,
        rows: PackedSequences,
        offsets: ArrayLike,
        start: ArrayLike,
        stop: ArrayLike,
        row: ArrayLike,
    ) -> None:
        _check_rows(rows)
        offsets = check_offsets(offsets)
        start, stop, row = _whole_numbers(start=start, stop=stop, row=row)
        order = np.lexsort((stop - start, stop))
        _check_runs(start[order], stop[order], row[order], offsets, rows.n_tokens)
        self.rows = rows
        counts = np.bincount(stop - 1, minlength=int(offsets[-1]))
        self.ptr: IntArray = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        self.length: IntArray = (stop - start)[order]
        self.row: IntArray = row[order]
        protect(self.__dict__)

    @classmethod
    def _from_arrays(
        cls, rows: PackedSequences, ptr: IntArray, length: IntArray, row: IntArray
    ) -> PackedSegments:
        new = cls.__new__(cls)
        new.__setstate__({"rows": rows, "ptr": ptr, "length": length, "row": row})
        return new

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Take a state; its arrays are read-only, as kernels do not check them again."""
        self.__dict__.update(state)
        protect(state)

    @property
    def n_features(self) -> int:
        """Number of attributes of segments D3."""
        return self.rows.n_features

    @property
    def n_tokens(self) -> int:
        """Number of tokens N."""
        return len(self.ptr) - 1

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays, without the names of the attributes."""
        return sum(a.nbytes for a in (self.rows, self.ptr, self.length, self.row))

    @property
    def stop(self) -> IntArray:
        """The token after the last one of each run, shape (n,)."""
        return np.repeat(np.arange(1, self.n_tokens + 1), np.diff(self.ptr))

    def take(self, tokens: IntArray) -> PackedSegments:
        """Return the runs of the chosen tokens, shape (n,), which are those of whole sequences."""
        return self._from_arrays(self.rows, *listed_for(tokens, self.ptr, self.length, self.row))

    def within(self, begin: int, end: int) -> LocalSegments:
        """Return the runs of the tokens ``begin:end``, whole sequences, with their rows alone."""
        low, high = self.ptr[begin], self.ptr[end]
        used, row = np.unique(self.row[low:high], return_inverse=True)
        stop = np.repeat(np.arange(1, end - begin + 1), np.diff(self.ptr[begin : end + 1]))
        return LocalSegments(
            self.rows.take_tokens(used), stop, self.length[low:high], row.astype(np.int64)
        )

    def find(self, start: IntArray, stop: IntArray) -> IntArray:
        """Return where runs are listed, shape (n,), -1 for one that is not."""
        width = int(self.length.max(initial=0)) + 1
        keys = (self.stop - 1) * width + self.length
        length = stop - start
        wanted = np.where(length < width, (stop - 1) * width + length, -1)
        place = np.minimum(np.searchsorted(keys, wanted), max(len(keys) - 1, 0))
        return np.where(keys[place] == wanted, place, -1) if len(keys) else np.full(len(start), -1)

    def __repr__(self) -> str:
        return (
            f"<PackedSegments: {len(self.row):,} runs, {self.n_tokens:,} tokens, "
            f"{self.rows.n_tokens:,} rows, {self.n_features:,} attributes, {self.nbytes:,} bytes>"
        )

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, PackedSegments):
            return NotImplemented
        same = np.array_equal(self.ptr, other.ptr) and np.array_equal(self.length, other.length)
        return bool(same and self.rows.take_tokens(self.row) == other.rows.take_tokens(other.row))

    __hash__ = None  # type: ignore[assignment]


class LocalSegments(NamedTuple):
    """The runs of some tokens, numbered from the first of these."""

    rows: PackedSequences  # the R rows of attributes that occur
    stop: IntArray  # (n,) the token after the last one of each run
    length: IntArray  # (n,)
    row: IntArray  # (n,)

    def with_rows(self, chosen: BoolArray) -> LocalSegments:
        """Return the runs that have one of the chosen rows, (R,), and these alone."""
        if chosen.all():
            return self
        kept, number = chosen[self.row], np.cumsum(chosen) - 1
        return LocalSegments(
            self.rows.take_tokens(np.flatnonzero(chosen)), self.stop[kept], self.length[kept],
            number[self.row[kept]],
        )  # fmt: skip


def check_offsets(offsets: ArrayLike) -> IntArray:
    """Return where sequences start, and the end, (S + 1,); ValueError if they cannot be these."""
    checked = np.asarray(offsets)
    whole = checked.ndim == 1 and len(checked) > 0 and checked.dtype.kind in "iu"
    if not whole or checked[0] != 0 or np.any(np.diff(checked.astype(np.int64)) < 0):
        raise ValueError(
            "offsets must be a list of token positions (whole numbers) that starts with 0 and "
            "never falls."
        )
    return checked.astype(np.int64)


def _whole_numbers(**given: ArrayLike) -> list[IntArray]:
    """Return lists of whole numbers, of one length, all (n,)."""
    arrays = {name: np.asarray(values) for name, values in given.items()}
    for name, array in arrays.items():
        if array.ndim != 1 or (array.size and array.dtype.kind not in "iu"):
            raise ValueError(
                f"{name} must be a list of whole numbers, one for each run, not an array of shape "
                f"{array.shape} of {array.dtype}."
            )
    sizes = [len(array) for array in arrays.values()]
    if len(set(sizes)) > 1:
        named = ", ".join(f"{name} {size}" for name, size in zip(arrays, sizes, strict=True))
        raise ValueError(f"each run needs one number in each list, but they have: {named}.")
    return [array.astype(np.int64) for array in arrays.values()]


def _check_rows(rows: PackedSequences) -> None:
    """Raise TypeError or ValueError unless these can be rows of attributes."""
    from crfkit.data.packed import PackedSequences

    if not isinstance(rows, PackedSequences):
        raise TypeError(f"rows must be PackedSequences, not {type(rows).__name__}.")
    if len(rows) != 1 or rows.transitions is not None or rows.segments is not None:
        raise ValueError(
            f"rows must be one sequence, without attributes of transitions or segments, not "
            f"{rows!r}: make it with offsets=[0, R]."
        )


def check_segments(segments: PackedSegments | None, offsets: IntArray) -> PackedSegments | None:
    """Return attributes of segments; TypeError or ValueError unless they fit these sequences."""
    if segments is None:
        return None
    if not isinstance(segments, PackedSegments):
        raise TypeError(f"segments must be PackedSegments or None, not {type(segments).__name__}.")
    if segments.n_tokens != offsets[-1]:
        raise ValueError(
            f"segments belong to {segments.n_tokens} tokens, the features to {offsets[-1]}: both "
            "must be of the same sequences."
        )
    stop = segments.stop
    _check_runs(stop - segments.length, stop, segments.row, offsets, segments.rows.n_tokens)
    return segments


def _check_runs(
    start: IntArray, stop: IntArray, row: IntArray, offsets: IntArray, n_rows: int
) -> None:
    """Check runs that are sorted by their ends, then lengths."""
    sequence = np.searchsorted(offsets, start, side="right") - 1
    ends = offsets[np.minimum(sequence, len(offsets) - 2) + 1]
    inside = (start >= 0) & (start < stop) & (stop <= ends)
    known = (row >= 0) & (row < n_rows)
    repeated = np.zeros(len(start), bool)
    repeated[1:] = (start[1:] == start[:-1]) & (stop[1:] == stop[:-1])
    for wrong, why in (
        (~inside, "is empty or not within one sequence"),
        (repeated, "is listed twice"),
        (~known, "has a row that does not exist"),
    ):
        if wrong.any():
            i = int(np.argmax(wrong))
            s = int(np.clip(sequence[i], 0, max(len(offsets) - 2, 0)))
            raise ValueError(
                f"sequence {s}: the segment of the tokens {start[i] - offsets[s]} to "
                f"{stop[i] - offsets[s] - 1} {why}."
            )
