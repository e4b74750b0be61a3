"""Which weights a linear model has."""

from __future__ import annotations

import math

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from crfkit._types import CodeArray, FloatArray, IntArray
from crfkit.compiler.jit import frozen
from crfkit.data import PackedSegments, PackedSequences
from crfkit.kernels.design.selection import seen_count, seen_list
from crfkit.labels.segmentation import Segmentation, segmentation_of
from crfkit.potentials.attributes import AttributeWeights
from crfkit.potentials.linear_chain import LinearChainModel
from crfkit.potentials.semimarkov import LengthModel, SemiMarkovModel
from crfkit.potentials.transitions import InputDependentTransitions

Codes = IntArray | CodeArray


def choose_features(
    data: PackedSequences,
    codes: CodeArray,
    n_labels: int,
    *,
    min_freq: float = 0,
    all_states: bool = False,
    all_transitions: bool = False,
    boundaries: bool = False,
) -> LinearChainModel:
    """Choose which pairs get a weight: those seen in labeled data, or all.

    Parameters
    ----------
    data : PackedSequences
        N tokens with D attributes, and the attributes of the transitions into them.
    codes : ndarray of shape (N,)
        Their labels.
    n_labels : int
        K.
    min_freq : float
        Pairs that occur in fewer tokens get no weight.
    all_states : bool
        Give all D x K (attribute, label) pairs a weight.
    all_transitions : bool
        Give all K x K (label, next label) pairs a weight, for each attribute of transitions as
        well.
    boundaries : bool
        Give the labels of first and last tokens weights.
    """
    choose = _all_pairs if all_states else _seen_pairs
    state = choose(data, codes, n_labels, min_freq)
    moves = transition_columns(codes, data.offsets, n_labels)
    counts = np.bincount(moves[moves >= 0], minlength=n_labels**2).reshape(n_labels, n_labels)
    source, target = np.nonzero((counts >= max(1, min_freq)) | all_transitions)
    transitions = None
    if data.transitions is not None:
        choose = _all_pairs if all_transitions else _seen_pairs
        transitions = InputDependentTransitions(
            choose(data.transitions, moves, n_labels**2, min_freq)
        )
    return LinearChainModel(state, source, target, boundaries=boundaries, transitions=transitions)


def choose_segment_features(
    data: PackedSequences,
    codes: CodeArray,
    n_labels: int,
    *,
    lengths: LengthModel,
    parts: NDArray[np.bool_],
    forbidden: NDArray[np.bool_] | None = None,
    min_freq: float = 0,
    all_states: bool = False,
    all_transitions: bool = False,
    boundaries: bool = False,
) -> SemiMarkovModel:
    """Choose which weights a model of segments has: those seen in labeled data, or all.

    Parameters
    ----------
    data, n_labels, min_freq, all_states, all_transitions, boundaries
        As for :func:`choose_features`, and the attributes of segments.
    codes : ndarray of shape (N,)
        Codes of the segmentation: ``k`` where a segment of label ``k`` goes on, ``K + k`` where one
        begins.
    lengths : LengthModel
        How the scores of lengths are made; of its weights, those of lengths that occur are kept.
    parts : ndarray of shape (D, 4), dtype bool
        Which attributes count for all tokens of a segment, for its first, its last, and one alone.
    forbidden : ndarray of shape (K, K), dtype bool, optional
        Steps that are not allowed.
    """
    runs = segmentation_of(codes, data.offsets, n_labels)
    choose = _all_pairs if all_states else _seen_pairs
    # What a label never has at first tokens tells that it does not begin there, so that pairs seen
    # anywhere in segments have weights for first, last and single tokens, too.
    seen = choose(data, (codes % n_labels).astype(np.int32), n_labels, min_freq)
    moves = np.full(len(codes), -1, np.int64)
    follows = np.flatnonzero(~np.isin(runs.start, data.offsets[:-1]))
    moves[runs.start[follows]] = runs.label[follows - 1] * n_labels + runs.label[follows]
    counts = np.bincount(moves[moves >= 0], minlength=n_labels**2).reshape(n_labels, n_labels)
    allowed = (counts >= max(1, min_freq)) | all_transitions
    if forbidden is not None:
        allowed &= ~forbidden
    source, target = np.nonzero(allowed)
    transitions = None
    if data.transitions is not None:
        choose_transitions = _all_pairs if all_transitions else _seen_pairs
        transitions = InputDependentTransitions(
            choose_transitions(data.transitions, moves, n_labels**2, min_freq)
        )
    segments = None
    if data.segments is not None:
        segments = _segment_pairs(data.segments, runs, n_labels, min_freq, all_states)
    return SemiMarkovModel(
        _side_by_side([seen] * parts.shape[1], parts), source, target,
        boundaries=boundaries, transitions=transitions,
        lengths=_seen_lengths(lengths, runs, min_freq, all_states), segments=segments,
        forbidden=forbidden,
    )  # fmt: skip


def _seen_lengths(
    lengths: LengthModel, runs: Segmentation, min_freq: float, all_states: bool
) -> LengthModel:
    """Return the scores of lengths with weights for what occurs, but where all are asked for."""
    if all_states:
        return lengths
    shape = lengths.fixed.shape
    cells = np.ravel_multi_index((runs.stop - runs.start - 1, runs.label), shape)
    counts = np.bincount(cells, minlength=lengths.fixed.size).reshape(shape)
    seen = (lengths.basis != 0.0).T @ counts
    chosen = lengths.chosen & (seen >= max(1, min_freq))
    return LengthModel(lengths.fixed, lengths.basis, chosen)


def _segment_pairs(
    segments: PackedSegments, runs: Segmentation, n_labels: int, min_freq: float, all_states: bool
) -> AttributeWeights:
    """Return the (attribute of segments, label) pairs that have a weight."""
    found = segments.find(runs.start, runs.stop)
    rows, labels = segments.row[found[found >= 0]], runs.label[found >= 0]
    seen = segments.rows.take_tokens(rows)
    choose = _all_pairs if all_states else _seen_pairs
    return choose(seen, labels.astype(np.int32), n_labels, min_freq)


def _side_by_side(blocks: list[AttributeWeights], parts: NDArray[np.bool_]) -> AttributeWeights:
    """Return the pairs of several blocks of columns as those of one.

    `parts` tells which attributes, shape (D, B), have any in each block.
    """
    width, n_sparse = blocks[0].n_columns, blocks[0].n_sparse
    kept = []
    for number, block in enumerate(blocks):
        attributes = np.repeat(np.arange(block.n_features), np.diff(block.ptr))
        chosen = parts[attributes, number]
        kept.append((attributes[chosen], block.columns[chosen] + number * width))
    attributes = np.concatenate([a for a, _ in kept])
    columns = np.concatenate([c for _, c in kept])
    order = np.argsort(attributes, kind="stable")  # columns of later blocks are larger
    counts = np.bincount(attributes, minlength=blocks[0].n_features)
    ptr = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    return AttributeWeights(ptr, columns[order], n_columns=width * len(blocks), n_sparse=n_sparse)


def transition_columns(codes: CodeArray, offsets: IntArray, n_labels: int) -> IntArray:
    """Return ``i * K + j`` for the step from label i to label j into each token, -1 for a first."""
    transitions = np.full(len(codes), -1, np.int64)
    transitions[1:] = codes[:-1].astype(np.int64) * n_labels + codes[1:]
    starts = offsets[:-1]
    transitions[starts[starts < len(codes)]] = -1
    return transitions


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
