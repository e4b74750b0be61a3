"""Attributes of segments, packed."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from crfkit._types import IntArray

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
        Their lengths, rising for each token, and rows.

    Raises
    ------
    ValueError
        If a run is empty, listed twice or not within one sequence, or there is no such row.
    """

    def __init__(
        self,
        rows: PackedSequences,
        offsets: IntArray,
        start: IntArray,
        stop: IntArray,
        row: IntArray,
    ) -> None:
        start, stop, row = (np.asarray(a).astype(np.int64) for a in (start, stop, row))
        offsets = np.asarray(offsets, np.int64)
        order = np.lexsort((stop - start, stop))
        _check_runs(start[order], stop[order], row[order], offsets, rows.n_tokens)
        self.rows = rows
        counts = np.bincount(stop - 1, minlength=int(offsets[-1]))
        self.ptr: IntArray = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        self.length: IntArray = (stop - start)[order]
        self.row: IntArray = row[order]

    @classmethod
    def _from_arrays(
        cls, rows: PackedSequences, ptr: IntArray, length: IntArray, row: IntArray
    ) -> PackedSegments:
        new = cls.__new__(cls)
        new.rows, new.ptr, new.length, new.row = rows, ptr, length, row
        return new

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
        counts = np.diff(self.ptr)[tokens]
        ptr = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        entries = np.arange(ptr[-1]) + np.repeat(self.ptr[:-1][tokens] - ptr[:-1], counts)
        return self._from_arrays(self.rows, ptr, self.length[entries], self.row[entries])

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

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, PackedSegments):
            return NotImplemented
        same = np.array_equal(self.ptr, other.ptr) and np.array_equal(self.length, other.length)
        return bool(same and self.rows.take_tokens(self.row) == other.rows.take_tokens(other.row))

    __hash__ = None  # type: ignore[assignment]


class LocalSegments(NamedTuple):
    """The runs of some tokens, numbered from the first of these.

    Attributes
    ----------
    rows : PackedSequences
        The R rows of attributes that occur.
    stop, length, row : ndarray of shape (n,)
        The token after the last one of each run, its length and its row.
    """

    rows: PackedSequences
    stop: IntArray
    length: IntArray
    row: IntArray


def check_segments(segments: PackedSegments | None, offsets: IntArray) -> PackedSegments | None:
    """Return attributes of segments that fit sequences with these offsets.

    Raises
    ------
    TypeError
        If they are no PackedSegments.
    ValueError
        If they belong to another number of tokens, or a run crosses the end of a sequence.
    """
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
    inside = (
        (start >= 0)
        & (start < stop)
        & (stop <= offsets[np.minimum(sequence, len(offsets) - 2) + 1])
    )
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
            s = int(np.clip(sequence[i], 0, len(offsets) - 2))
            raise ValueError(
                f"sequence {s}: the segment of the tokens {start[i] - offsets[s]} to "
                f"{stop[i] - offsets[s] - 1} {why}."
            )
