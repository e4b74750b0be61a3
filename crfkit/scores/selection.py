"""Which weights a linear model has."""

from __future__ import annotations

import math

import numpy as np
import scipy.sparse as sp

from crfkit._jit import frozen
from crfkit._types import CodeArray, FloatArray, IntArray
from crfkit.data import PackedSequences
from crfkit.kernels.selection import seen_count, seen_list
from crfkit.scores.attributes import AttributeWeights
from crfkit.scores.linear import LinearScores
from crfkit.scores.steps import ObservedSteps

Codes = IntArray | CodeArray


def choose_features(
    data: PackedSequences,
    codes: CodeArray,
    n_labels: int,
    *,
    min_freq: float = 0,
    all_states: bool = False,
    all_steps: bool = False,
    boundaries: bool = False,
) -> LinearScores:
    """Choose which pairs get a weight: those seen in labeled data, or all.

    Parameters
    ----------
    data : PackedSequences
        N tokens with D attributes, and the attributes of the steps into them.
    codes : ndarray of shape (N,)
        Their labels.
    n_labels : int
        K.
    min_freq : float
        Pairs that occur in fewer tokens get no weight.
    all_states : bool
        Give all D x K (attribute, label) pairs a weight.
    all_steps : bool
        Give all K x K (label, next label) pairs a weight, for each attribute of steps as well.
    boundaries : bool
        Give the labels of first and last tokens weights.
    """
    choose = _all_pairs if all_states else _seen_pairs
    state = choose(data, codes, n_labels, min_freq)
    moves = step_columns(codes, data.offsets, n_labels)
    counts = np.bincount(moves[moves >= 0], minlength=n_labels**2).reshape(n_labels, n_labels)
    source, target = np.nonzero((counts >= max(1, min_freq)) | all_steps)
    steps = None
    if data.steps is not None:
        choose = _all_pairs if all_steps else _seen_pairs
        steps = ObservedSteps(choose(data.steps, moves, n_labels**2, min_freq))
    return LinearScores(state, source, target, boundaries=boundaries, steps=steps)


def step_columns(codes: CodeArray, offsets: IntArray, n_labels: int) -> IntArray:
    """Return ``i * K + j`` for the step from label i to label j into each token, -1 for a first."""
    steps = np.full(len(codes), -1, np.int64)
    steps[1:] = codes[:-1].astype(np.int64) * n_labels + codes[1:]
    starts = offsets[:-1]
    steps[starts[starts < len(codes)]] = -1
    return steps


def _all_pairs(
    data: PackedSequences, columns: Codes, n_columns: int, min_freq: float
) -> AttributeWeights:
    """Return all (attribute, column) pairs."""
    ptr = np.arange(data.n_features + 1, dtype=np.int64) * n_columns
    every = np.tile(np.arange(n_columns, dtype=np.int32), data.n_features)
    return AttributeWeights(ptr, every, n_columns=n_columns, n_sparse=data.n_sparse)


def _seen_pairs(
    data: PackedSequences, columns: Codes, n_columns: int, min_freq: float
) -> AttributeWeights:
    """Return the (attribute, column) pairs that occur often enough; a column of -1 is none."""
    least = max(1, math.ceil(min(min_freq, data.n_tokens + 1)))  # no pair occurs so often
    ptr, found = _sparse_pairs(data, columns, least)
    if data.dense is not None:
        told = columns >= 0
        used = (data.dense[told] != 0.0).astype(np.float64)
        counts = _dense_counts(used, columns[told], n_columns)
        counts.data[counts.data < least] = 0
        counts.eliminate_zeros()
        ptr = np.concatenate([ptr, ptr[-1] + counts.indptr[1:]])
        found = np.concatenate([found, counts.indices])
    return AttributeWeights(ptr, found, n_columns=n_columns, n_sparse=data.n_sparse)


def _sparse_pairs(data: PackedSequences, columns: Codes, least: int) -> tuple[IntArray, CodeArray]:
    """Return where the pairs of each sparse attribute start, and their columns, rising."""
    order = np.argsort(columns, kind="stable")
    tokens = order[np.count_nonzero(columns < 0) :]
    entries = (
        frozen(tokens), frozen(columns[tokens].astype(np.int64)), frozen(data.indptr),
        frozen(data.indices.view(np.uint32)), least,
    )  # fmt: skip
    known = np.zeros((data.n_sparse, 2), np.uint32)
    ptr = np.zeros(data.n_sparse + 1, np.int64)
    seen_count(*entries, known, ptr[1:])
    np.cumsum(ptr, out=ptr)
    found = np.empty(ptr[-1], np.int32)
    known[:] = 0
    seen_list(*entries, known, ptr[:-1].copy(), found)
    return ptr, found


def _dense_counts(uses: FloatArray, columns: Codes, n_columns: int) -> sp.csr_array:
    """Add up the rows of each column's tokens, shape (F, C).

    Steps have K x K columns, of which few occur.
    """
    order = np.argsort(columns, kind="stable")
    present, starts = np.unique(columns[order], return_index=True)
    sums = np.add.reduceat(uses[order], starts, axis=0) if len(present) else uses[:0]
    counts = sp.csr_array(sums.T)
    places = present[counts.indices]
    return sp.csr_array((counts.data, places, counts.indptr), (uses.shape[1], n_columns))
