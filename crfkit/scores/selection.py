"""Which weights a linear model has."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from crfkit._types import CodeArray, FloatArray, IntArray
from crfkit.data import PackedSequences
from crfkit.scores.linear import LinearScores


def choose_features(
    data: PackedSequences,
    codes: CodeArray,
    n_labels: int,
    *,
    min_freq: int = 0,
    all_states: bool = False,
    all_steps: bool = False,
    boundaries: bool = False,
) -> LinearScores:
    """Choose which pairs get a weight: those seen in labeled data, or all.

    Parameters
    ----------
    data : PackedSequences
        N tokens with D attributes.
    codes : ndarray of shape (N,)
        Their labels.
    n_labels : int
        K.
    min_freq : int
        Pairs that occur in fewer tokens get no weight.
    all_states : bool
        Give all D x K (attribute, label) pairs a weight.
    all_steps : bool
        Give all K x K (label, next label) pairs a weight.
    boundaries : bool
        Give the labels of first and last tokens weights.
    """
    if all_states:
        ptr = np.arange(data.n_features + 1, dtype=np.int64) * n_labels
        labels = np.tile(np.arange(n_labels, dtype=np.int32), data.n_features)
    else:
        ptr, labels = _seen_states(data, codes, n_labels, min_freq)
    counts = _step_counts(data.offsets, codes, n_labels)
    source, target = np.nonzero((counts >= max(1, min_freq)) | all_steps)
    return LinearScores(
        ptr, labels, source, target,
        n_labels=n_labels, n_sparse=data.n_sparse, boundaries=boundaries,
    )  # fmt: skip


def _seen_states(
    data: PackedSequences, codes: CodeArray, n_labels: int, min_freq: int
) -> tuple[IntArray, CodeArray]:
    """Return the (attribute, label) pairs that occur often enough."""
    ones, tokens = np.ones(data.n_tokens, np.int32), np.arange(data.n_tokens + 1)
    labels = sp.csr_array((ones, codes, tokens), (data.n_tokens, n_labels))
    shape, used = (data.n_tokens, data.n_sparse), np.ones(len(data.indices), np.int32)
    entries = sp.csr_array((used, data.indices, data.indptr), shape)
    counts = (entries.T.tocsr() @ labels).tocsr()
    if data.dense is not None:
        dense = sp.csr_array(_dense_counts(data.dense, codes, n_labels))
        counts = sp.vstack([counts, dense], format="csr")
    counts.data[counts.data < min_freq] = 0
    counts.eliminate_zeros()
    counts.sort_indices()
    return counts.indptr.astype(np.int64), counts.indices.astype(np.int32)


def _dense_counts(x: FloatArray, codes: CodeArray, n_labels: int) -> NDArray[np.int32]:
    """Count the tokens of each label at which a dense feature is not 0, shape (F, K)."""
    counts = [np.count_nonzero(x[codes == label], axis=0) for label in range(n_labels)]
    return np.stack(counts, axis=1).astype(np.int32)


def _step_counts(offsets: IntArray, codes: CodeArray, n_labels: int) -> NDArray[np.int64]:
    """Count the steps from label to label, shape (K, K)."""
    inside = np.ones(max(len(codes) - 1, 0), dtype=bool)
    inner = offsets[1:-1]
    inside[inner[(inner > 0) & (inner < len(codes))] - 1] = False
    steps = codes[:-1].astype(np.int64) * n_labels + codes[1:]
    return np.bincount(steps[inside], minlength=n_labels**2).reshape(n_labels, n_labels)
