"""Scores of segments, in the tables that kernels read."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from crfkit._types import FloatArray, IntArray
from crfkit.compiler.jit import frozen
from crfkit.compiler.simd import WIDTH, padded
from crfkit.kernels.semimarkov.arrays import SegmentScores, SegmentTables
from crfkit.kernels.semimarkov.tables import semimarkov_part, semimarkov_shift
from crfkit.structures.potentials import SegmentPotentials, Spans

# Sequences are summed by logarithms where a score that they read of a step, a length, a row, an end
# or a single token is further from 0. A share that is not lost in the recurrence, times the
# exponential of one that is not, is neither 0 nor infinite.
LARGE = 200.0


def make_spans(n_tokens: int, stop: IntArray, length: IntArray, row: IntArray) -> Spans:
    """Return segments with rows, (n,) each, in the form that structures read; none twice.

    `stop` is the token after the last one of each segment, of `n_tokens` in all.
    """
    sides: list[NDArray[np.int64]] = []
    for token in (stop - 1, stop - length):
        order = np.lexsort((length, token))
        counts = np.bincount(token, minlength=n_tokens)
        ptr = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        sides += [ptr, length[order].astype(np.int64), row[order].astype(np.int64)]
    return Spans(*(frozen(side) for side in sides))


def no_spans(n_tokens: int) -> Spans:
    """Return that no segment has a row."""
    none = np.zeros(0, np.int64)
    return make_spans(n_tokens, none, none, none)


def segment_arrays(scores: SegmentPotentials) -> SegmentScores:
    """Return the arrays of the potentials, as kernels read them."""
    return SegmentScores(
        frozen(scores.unary), frozen(scores.pair), frozen(scores.transition_index),
        frozen(scores.offsets), scores.n_transitions, scores.n_lengths,
    )  # fmt: skip


def are_moderate(scores: SegmentPotentials) -> NDArray[np.bool_]:
    """Whether no score that a sequence reads may make a product overflow, shape (S,).

    Potentials of others do not count, so that what is computed for one does not depend on them.
    """
    size, sizes = scores.n_labels, np.diff(scores.offsets)
    blocks = np.split(scores.pair, [scores.n_transitions, scores.n_transitions + scores.n_lengths])
    blocks[1] = blocks[1][: int(sizes.max(initial=0))]
    steps, lengths, rows = map(_are_far, blocks)
    shortest = np.flatnonzero(lengths)[:1]
    moderate: NDArray[np.bool_] = np.all(sizes[:, None] <= shortest, axis=1)
    ends = _are_far(scores.unary[:, 2 * size :])
    if not (steps.any() or rows.any() or ends.any()):
        return moderate
    far = ends | np.any(steps.reshape(-1, size), axis=1)[scores.transition_index]
    tokens = np.repeat(np.arange(len(far)), np.diff(scores.spans.end_ptr))
    far[tokens[rows[scores.spans.end_row]]] = True
    count: IntArray = np.concatenate([[0], np.cumsum(far)])[scores.offsets]
    moderate &= np.diff(count) == 0
    return moderate


def _are_far(block: FloatArray) -> NDArray[np.bool_]:
    """Whether a score of each row is too far from 0, and not forbidden, shape (n,)."""
    far: NDArray[np.bool_] = np.any((np.abs(block) > LARGE) & (block > -np.inf), axis=1)
    return far


def tilted(scores: SegmentPotentials) -> SegmentPotentials:
    """Return scores of the same segmentations in which those of lengths are closer to 0.

    A segment of length ``d`` goes on at ``d - 1`` tokens, so that ``c_k (d - 1)`` may move from the
    score of its length to those of its tokens: no segmentation changes its score, no part its
    expected count. Of labels with a score far from 0, ``c_k`` is the slope of the line through
    ``(1, 0)`` that fits the scores of lengths best, where all of these come closer to 0.
    """
    size = scores.n_labels
    rows = slice(scores.n_transitions, scores.n_transitions + scores.n_lengths)
    slope = _slopes(scores.pair[rows])
    if not slope.any():
        return scores
    unary, pair = scores.unary.copy(), scores.pair.copy()
    unary[:, :size] += slope
    pair[rows] -= slope * np.arange(scores.n_lengths)[:, None]
    return scores._replace(unary=unary, pair=pair)


def _slopes(lengths: FloatArray) -> FloatArray:
    """Return ``c_k``, shape (K,), 0 for labels whose scores are left as they are."""
    slopes, far = np.zeros(lengths.shape[1]), np.flatnonzero(_are_far(lengths.T))
    if not len(far):
        return slopes
    allowed = np.isfinite(lengths[:, far])
    known = np.where(allowed, lengths[:, far], 0.0)
    more = np.arange(float(len(lengths)))[:, None] * allowed
    with np.errstate(all="ignore"):  # what is no number comes no closer
        best = (more * known).sum(axis=0) / (more**2).sum(axis=0)
        rest, before = (np.abs(each).max(axis=0) for each in (known - best * more, known))
        closer = rest < before
    slopes[far[closer]] = best[closer]
    return slopes


def _wide(block: FloatArray) -> FloatArray:
    """Return rows in columns for whole vectors, of ``-inf`` where added."""
    added = padded(block.shape[1]) - block.shape[1]
    return np.pad(block, ((0, 0), (0, added)), constant_values=-np.inf)


def filled_up(scores: SegmentPotentials) -> SegmentTables:
    """Return the scores of each kind in columns for whole vectors, of ``-inf`` where added."""
    of_tokens = _parted(scores.unary, scores.pair.shape[1], -np.inf)
    return SegmentTables(*of_tokens, *_filled_pairs(scores))


def _parted(
    unary: FloatArray, size: int, added: float
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Return the scores of each kind that tokens have in columns for whole vectors."""
    width = padded(size)
    stay, start, finish, alone = (np.full((len(unary), width), added) for _ in range(4))
    semimarkov_part(frozen(unary), size, stay, start, finish, alone)
    return frozen(stay), frozen(start), frozen(finish), frozen(alone)


def _filled_pairs(
    scores: SegmentPotentials,
) -> tuple[FloatArray, FloatArray, FloatArray, IntArray]:
    """Return the last tables of `SegmentTables`: pair scores in columns for whole vectors."""
    size = scores.n_labels
    width = padded(size)
    n_tables, rows = scores.n_transitions // size, scores.n_transitions + scores.n_lengths
    transitions = np.full((n_tables, width, width), -np.inf)
    transitions[:, :size, :size] = scores.pair[: scores.n_transitions].reshape(n_tables, size, size)
    lengths = _wide(scores.pair[scores.n_transitions : rows])
    vectors = lengths.reshape(len(lengths), width // WIDTH, WIDTH)
    allowed = vectors.max(axis=2) > -np.inf
    longest = len(lengths) - np.argmax(allowed[::-1], axis=0)
    longest[~allowed.any(axis=0)] = 0
    spans = _wide(scores.pair[rows:])
    return frozen(transitions), frozen(lengths), frozen(spans), frozen(longest.astype(np.int64))


def exponentials(scores: SegmentPotentials) -> tuple[SegmentTables, FloatArray]:
    """Return the exponentials of the scores, 0 in columns that are added, and shifts of tokens.

    The shifts, shape (N,), have been subtracted from the scores of going on and beginning.
    """
    size, pairs = scores.pair.shape[1], _filled_pairs(scores)
    shifted, shift = np.empty_like(scores.unary), np.empty(len(scores.unary))
    semimarkov_shift(frozen(scores.unary), size, LARGE, shifted, shift)
    of_tokens = _parted(np.exp(shifted, out=shifted), size, 0.0)
    # What is larger is not read: the sequences that have it are summed by logarithms.
    transitions, lengths, spans = (frozen(np.exp(np.minimum(each, LARGE))) for each in pairs[:3])
    return SegmentTables(*of_tokens, transitions, lengths, spans, pairs[3]), frozen(shift)
