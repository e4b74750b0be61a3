"""Samples and entropies of segmentations."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from crfkit._types import CodeArray, FloatArray, IntArray
from crfkit.compiler.jit import frozen
from crfkit.kernels.chain.sum import OK, UNDERFLOW
from crfkit.kernels.semimarkov.arrays import SegmentExponentials, SegmentTables
from crfkit.kernels.semimarkov.entropy import (
    SegmentMoments,
    semimarkov_entropy,
    semimarkov_entropy_log,
)
from crfkit.kernels.semimarkov.log_posterior import LogSegmentMessages, semimarkov_posterior_log
from crfkit.kernels.semimarkov.sample import SegmentDraws, semimarkov_sample, semimarkov_sample_log
from crfkit.structures.base import longest
from crfkit.structures.potentials import (
    SegmentPotentials,
    are_moderate,
    exponentials,
    filled_up,
    segment_arrays,
    tilted,
)
from crfkit.structures.samples import are_small, as_uniforms
from crfkit.structures.semimarkov import log_workspace, raise_if_dead, segment_prefixes


def sample_segmentations(scores: SegmentPotentials, uniforms: FloatArray) -> CodeArray:
    """Return codes of segmentations, shape (n, N), given the numbers that choose them."""
    numbers = as_uniforms(scores, uniforms)
    codes: CodeArray = np.empty(numbers.shape, np.int32)
    draws = SegmentDraws(numbers, np.empty((2, scores.n_lengths)), codes)

    def sample(same: SegmentPotentials, todo: IntArray, status: IntArray) -> None:
        tables = exponentials(same).tables
        prefixes = segment_prefixes(longest(same), *tables.stay.shape)
        semimarkov_sample(segment_arrays(same), tables, todo, prefixes, draws, status)

    status, arrays = _in_scaled_form(scores, sample), segment_arrays(scores)
    for s in np.flatnonzero(status == UNDERFLOW).tolist():
        work = log_workspace(_length(scores, s), len(scores.unary), scores.n_labels)
        status[s] = semimarkov_sample_log(arrays, s, work, draws)
    raise_if_dead(scores, status)
    return codes


def segment_entropies(scores: SegmentPotentials) -> FloatArray:
    """Return the entropies of the segmentations of sequences, shape (S,)."""
    entropy = np.zeros((2, len(scores.offsets) - 1))

    def sum_up(same: SegmentPotentials, todo: IntArray, status: IntArray) -> None:
        raised, arrays, rows = exponentials(same), segment_arrays(same), longest(same)
        shape = raised.tables.stay.shape
        prefixes, width = segment_prefixes(rows, *shape), shape[1]
        rooms = (np.empty((n, width)) for n in (rows + 1, rows, rows, 2))
        known = _known(same, raised)
        semimarkov_entropy(
            arrays, raised, known, todo, prefixes, SegmentMoments(*rooms), entropy, status
        )

    status = _in_scaled_form(scores, sum_up)
    raise_if_dead(scores, status)
    for s in np.flatnonzero(are_small(scores, entropy, status == OK)).tolist():
        entropy[0, s] = _entropy_by_logarithms(scores, s)
    found: FloatArray = entropy[0]
    return found


def _in_scaled_form(
    scores: SegmentPotentials, ask: Callable[[SegmentPotentials, IntArray, IntArray], None]
) -> IntArray:
    """Ask about all sequences for which the linear domain is wide enough; returns the status.

    That of others is `UNDERFLOW`. What is asked is the same for scores that are closer to 0.
    """
    status = np.where(np.diff(scores.offsets) > 0, UNDERFLOW, OK)
    closer = tilted(scores)
    for same in (closer,) if closer is scores else (closer, scores):
        todo = np.flatnonzero((status == UNDERFLOW) & are_moderate(same))
        if len(todo):
            ask(same, frozen(todo), status)
    return status


def _known(scores: SegmentPotentials, raised: SegmentExponentials) -> SegmentTables:
    """Return the scores, 0 where they are ``-inf``; for transitions, what `table_losses` does."""
    *scored, lengths = filled_up(scores)
    finite = [frozen(np.where(np.isneginf(each), 0.0, each)) for each in scored]
    known = SegmentTables._make([*finite, lengths])
    return known._replace(transitions=frozen(-known.transitions * raised.tables.transitions))


def _length(scores: SegmentPotentials, s: int) -> int:
    return int(scores.offsets[s + 1] - scores.offsets[s])


def _entropy_by_logarithms(scores: SegmentPotentials, s: int) -> float:
    """Return the entropy of a sequence that is not empty."""
    length, size, arrays = _length(scores, s), scores.n_labels, segment_arrays(scores)
    behind, follow = np.empty((2, length, size))
    sums = log_workspace(length, len(scores.unary), size)
    messages = LogSegmentMessages(sums, behind, follow, np.empty((length, 2 * size)))
    status, log_z = np.full(len(scores.offsets) - 1, OK), np.empty(len(scores.offsets) - 1)
    values = np.empty(scores.n_lengths)
    status[s] = semimarkov_posterior_log(arrays, s, values, messages, log_z)
    raise_if_dead(scores, status)
    room = np.empty((2, scores.n_lengths))
    return float(semimarkov_entropy_log(arrays, s, messages, np.empty((1, size)), room))
