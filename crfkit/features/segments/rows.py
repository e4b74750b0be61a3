"""Rows of attributes that runs of tokens share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from crfkit._types import CodeArray, IntArray
from crfkit.data import PackedSegments, PackedSequences
from crfkit.features.attributes import SKIP, AttributeRows
from crfkit.features.segments.cells import FoundRuns
from crfkit.features.segments.words import TokenRuns, number_entries
from crfkit.features.templates.pairs import PairTable


class RunRows(NamedTuple):
    """Runs, the row of each, shape (n,), and the rows of attributes."""

    runs: TokenRuns
    row: IntArray
    rows: AttributeRows


def run_rows(found: Sequence[FoundRuns], index: Mapping[str, int]) -> RunRows:
    """Return the rows of the runs that templates have found; those of equal codes share one."""
    width = 1 + max(int((f.runs.stop - f.runs.start).max(initial=0)) for f in found)
    keys = [f.runs.start * width + f.runs.stop - f.runs.start for f in found]
    every, codes, place = _joined(keys, [f.codes for f in found])
    tables = [_table(f.attributes, index) for f in found]
    whole = sp.csr_array((codes.shape[1], len(index)))
    for table, row in zip(tables, codes, strict=True):
        table.resize((table.shape[0], len(index)))
        whole = whole + table[row]
    start = every // width
    rows = AttributeRows(
        whole.indices.astype(np.int32), whole.data, whole.indptr.astype(np.int64),
        np.array([0, codes.shape[1]]),
    )  # fmt: skip
    return RunRows(TokenRuns(start, start + every % width), place, rows)


def _joined(
    keys: Sequence[IntArray], codes: Sequence[CodeArray | IntArray]
) -> tuple[IntArray, NDArray[np.int32], IntArray]:
    """Return all keys of several lists, rising, and which of them have the same codes in all.

    No key is in a list twice. Of m keys of n lists there are r different columns of codes, shape
    (n, r), -1 where a list lacks the key, and which column is that of each key, shape (m,).
    """
    every = np.unique(np.concatenate(keys))
    table = np.full((len(keys), len(every)), -1, np.int32)
    state = np.zeros(len(every), np.int32)
    for row, key, own in zip(table, keys, codes, strict=True):
        row[np.searchsorted(every, key)] = own
        state = PairTable().number(state, row + np.int32(1))
    _, first, place = np.unique(state, return_index=True, return_inverse=True)
    return every, table[:, first], place.astype(np.int64)


def _table(attributes: list[list[tuple[str, float]]], index: Mapping[str, int]) -> sp.csr_array:
    """Return the attributes of each code as rows; a last, empty one is that of -1."""
    pairs = [(index[name], value) for row in attributes for name, value in row]
    columns = np.array([column for column, _ in pairs], np.int32)
    values = np.array([value for _, value in pairs], np.float64)
    kept = (columns != SKIP) & (values != 0.0)
    owners = np.repeat(np.arange(len(attributes)), list(map(len, attributes)))[kept]
    counts = np.bincount(owners, minlength=len(attributes) + 1)
    ptr = np.concatenate([[0], np.cumsum(counts)])
    shape = (len(attributes) + 1, int(columns.max(initial=-1)) + 1)
    table = sp.csr_array((values[kept], columns[kept], ptr), shape=shape)
    table.sum_duplicates()
    return table


def joined(parts: Sequence[RunRows]) -> RunRows:
    """Return several lists of runs as one."""
    before = np.cumsum([0, *(len(part.rows.indptr) - 1 for part in parts)])
    runs = (np.concatenate(ends) for ends in zip(*(part.runs for part in parts), strict=True))
    row = np.concatenate([part.row + n for part, n in zip(parts, before, strict=False)])
    return RunRows(TokenRuns(*runs), row, AttributeRows.joined([part.rows for part in parts]))


def frequencies(found: RunRows, size: int) -> IntArray:
    """Return in how many runs each attribute has a value that is not 0, shape (D,)."""
    runs = np.bincount(found.row, minlength=len(found.rows.indptr) - 1)
    weights = np.repeat(runs, np.diff(found.rows.indptr))
    return np.bincount(found.rows.indices, weights, size).astype(np.int64)


def packed_segments(
    found: RunRows, offsets: IntArray, names: NDArray[np.object_]
) -> PackedSegments:
    """Return runs as they are packed: equal rows are one, runs without attributes not listed."""
    rows = found.rows.in_order(len(names))
    some = np.diff(rows.indptr)[found.row] > 0
    equal = number_entries(rows.indices, rows.values, rows.indptr)
    _, first, place = np.unique(equal, return_index=True, return_inverse=True)
    used, row = np.unique(place[found.row[some]], return_inverse=True)
    runs, every = found.runs.take(some), rows.packed(names)
    return PackedSegments(every.take_tokens(first[used]), offsets, runs.start, runs.stop, row)


def aligned(
    segments: Sequence[PackedSegments],
) -> tuple[tuple[IntArray, IntArray, IntArray], list[PackedSequences]]:
    """Return the runs that any of several lists has, listed, and the rows of each list for them.

    These are as many in each list, and empty where it does not have a run.
    """
    width = 1 + max(int(part.length.max(initial=0)) for part in segments)
    keys = [part.stop * width + part.length for part in segments]
    every, which, place = _joined(keys, [part.row for part in segments])
    counts = np.bincount(every // width - 1, minlength=segments[0].n_tokens)
    ptr = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    pairs = zip(which.astype(np.int64), segments, strict=True)
    rows = [_and_none(part.rows).take_tokens(row) for row, part in pairs]
    return (ptr, every % width, place), rows


def _and_none(rows: PackedSequences) -> PackedSequences:
    """Return rows and an empty one, which is that of -1."""
    dense = rows.dense
    return PackedSequences._from_arrays(
        offsets=np.array([0, rows.n_tokens + 1]),
        indptr=np.append(rows.indptr, rows.indptr[-1]),
        indices=rows.indices,
        values=rows.values,
        n_sparse=rows.n_sparse,
        dense=None if dense is None else np.vstack([dense, np.zeros((1, dense.shape[1]))]),
        names=rows.names,
    )
