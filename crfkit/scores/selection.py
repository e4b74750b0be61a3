"""Which weights a linear model has."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from crfkit._types import CodeArray, FloatArray, IntArray
from crfkit.data import PackedSequences
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
    told = columns >= 0
    ones = np.ones(np.count_nonzero(told), np.int32)
    tokens = np.concatenate([[0], np.cumsum(told)])
    labels = sp.csr_array((ones, columns[told], tokens), (data.n_tokens, n_columns))
    used = np.ones(len(data.indices), np.int32)
    entries = sp.csr_array((used, data.indices, data.indptr), (data.n_tokens, data.n_sparse))
    counts = (entries.T.tocsr() @ labels).tocsr()
    if data.dense is not None:
        used = (data.dense[told] != 0.0).astype(np.float64)
        dense = _dense_counts(used, columns[told], n_columns)
        counts = sp.vstack([counts, dense], format="csr")
    counts.data[counts.data < min_freq] = 0
    counts.eliminate_zeros()
    counts.sort_indices()
    return AttributeWeights(
        counts.indptr, counts.indices, n_columns=n_columns, n_sparse=data.n_sparse
    )


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
