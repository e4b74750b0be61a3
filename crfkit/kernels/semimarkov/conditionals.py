"""Scores of each code of a token, all other codes given, and the adjoint of these.

Shapes as in :mod:`crfkit.kernels.semimarkov.arrays`. A token may begin a segment, or go on with the
label of the token before; where the token after it goes on, that has to be with the same label.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from crfkit._types import CodeArray, FloatArray, IntArray
from crfkit.compiler.jit import kernel, part
from crfkit.kernels.semimarkov.arrays import SegmentScores
from crfkit.kernels.semimarkov.max import _find

NONE = -1


class SegmentBounds(NamedTuple):
    """Where segments begin around each token, the token itself left out."""

    first: IntArray  # (N,) the first token of the segment that reaches up to it
    stop: IntArray  # (N,) the first token behind it at which one begins, or the end


class Around(NamedTuple):
    """What stands around a token; `NONE` for a label where there is no such segment."""

    first: int  # the first token of the segment that reaches up to it
    before: int  # and the label of that
    into: int  # the row of transitions from it
    stop: int  # the token after those that go on behind it
    inside: int  # and the label that these go on with
    after: int  # the label of the segment that begins there
    ahead: int  # the first row of transitions into it


@kernel
def segment_bounds(
    codes: CodeArray,  # (N,)
    size: int,  # K
    offsets: IntArray,  # (S + 1,)
    bounds: SegmentBounds,  # out
) -> None:
    """Find where segments begin around each token."""
    first, stop = bounds
    for s in range(offsets.shape[0] - 1):
        begin, end = offsets[s], offsets[s + 1]
        for t in range(begin, end):
            begun = t == begin or codes[t - 1] >= size
            first[t] = max(t - 1, begin) if begun else first[t - 1]
        for t in range(end - 1, begin - 1, -1):
            stop[t] = t + 1 if t + 1 == end or codes[t + 1] >= size else stop[t + 1]


@part
def _table(scores: SegmentScores, t: int) -> int:
    """Return the first row of the transitions into a token."""
    index = scores.transition_index
    row: int = index[t if index.shape[0] > 1 else 0] * scores.pair.shape[1]
    return row


@part
def _around(
    scores: SegmentScores, codes: CodeArray, bounds: SegmentBounds, t: int, begin: int, end: int
) -> Around:
    """Return what stands around a token of a sequence."""
    first, stop, size = bounds.first[t], bounds.stop[t], scores.pair.shape[1]
    before = codes[first] - size if t > begin else NONE
    into = _table(scores, t) + before if t > begin else 0
    inside = codes[t + 1] if stop > t + 1 else NONE
    after = codes[stop] - size if stop < end else NONE
    return Around(
        first, before, into, stop, inside, after, _table(scores, stop) if stop < end else 0
    )


@part
def _own_row(scores: SegmentScores, last: int, length: int) -> int:
    """Return the row of scores that a segment has, given its last token, or `NONE`."""
    ends = scores.ends
    place = _find(ends.length, ends.ptr[last], ends.ptr[last + 1], length)
    row: int = NONE
    if place >= 0:
        row = scores.n_transitions + scores.n_lengths + ends.row[place]
    return row


@part
def _end_score(scores: SegmentScores, last: int, length: int, row: int, label: int) -> float:
    """Return what a segment scores at its end, given its own row."""
    unary, pair, size = scores.unary, scores.pair, scores.pair.shape[1]
    if length > scores.n_lengths:
        return -math.inf
    total: float = unary[last, 2 * size + label] + pair[scores.n_transitions + length - 1, label]
    if length == 1:
        total += unary[last, 3 * size + label]
    if row >= 0:
        total += pair[row, label]
    return total


@part
def _add_end(scores: SegmentScores, last: int, length: int, row: int, label: int, amount: float,
             unary: FloatArray, pair: FloatArray) -> None:  # fmt: skip
    """Add to the parts of `_end_score`."""
    size = pair.shape[1]
    if length > scores.n_lengths:
        return
    unary[last, 2 * size + label] += amount
    pair[scores.n_transitions + length - 1, label] += amount
    if length == 1:
        unary[last, 3 * size + label] += amount
    if row >= 0:
        pair[row, label] += amount


@kernel
def semimarkov_conditionals(
    scores: SegmentScores,
    codes: CodeArray,  # (N,) of segmentations
    bounds: SegmentBounds,
    out: FloatArray,  # (N, 2 K)
) -> None:
    """Add up the parts of a segmentation that the code of a token decides on, for each code."""
    unary, pair, size = scores.unary, scores.pair, scores.pair.shape[1]
    for s in range(scores.offsets.shape[0] - 1):
        begin, end = scores.offsets[s], scores.offsets[s + 1]
        for t in range(begin, end):
            near = _around(scores, codes, bounds, t, begin, end)
            last, size_before, ended = near.stop - 1, t - near.first, 0.0
            row = _own_row(scores, last, near.stop - t)
            if near.before >= 0:
                own = _own_row(scores, t - 1, size_before)
                ended = _end_score(scores, t - 1, size_before, own, near.before)
            for k in range(size):
                out[t, k] = -math.inf
                total = unary[t, size + k] + ended + _end_score(scores, last, near.stop - t, row, k)
                if near.before >= 0:
                    total += pair[near.into, k]
                if near.after >= 0:
                    total += pair[near.ahead + k, near.after]
                fits = near.inside < 0 or k == near.inside
                out[t, size + k] = total if fits else -math.inf
            if near.before >= 0 and (near.inside < 0 or near.before == near.inside):
                length = near.stop - near.first
                row = _own_row(scores, last, length)
                total = unary[t, near.before] + _end_score(scores, last, length, row, near.before)
                if near.after >= 0:
                    total += pair[near.ahead + near.before, near.after]
                out[t, near.before] = total


@kernel
def semimarkov_add_conditionals(
    scores: SegmentScores,
    codes: CodeArray,  # (N,) of segmentations
    bounds: SegmentBounds,
    weight: FloatArray,  # (N, 2 K) 0 for codes that cannot be
    unary: FloatArray,  # (N, 4 K) out, added to
    pair: FloatArray,  # (M K + L + R, K) out, added to
) -> None:
    """Add the weight of each code to the parts that `semimarkov_conditionals` adds up."""
    size = pair.shape[1]
    for s in range(scores.offsets.shape[0] - 1):
        begin, end = scores.offsets[s], scores.offsets[s + 1]
        for t in range(begin, end):
            near = _around(scores, codes, bounds, t, begin, end)
            last, begun = near.stop - 1, 0.0
            row = _own_row(scores, last, near.stop - t)
            for k in range(size):
                amount = weight[t, size + k]
                if amount != 0.0:
                    begun += amount
                    unary[t, size + k] += amount
                    _add_end(scores, last, near.stop - t, row, k, amount, unary, pair)
                    if near.before >= 0:
                        pair[near.into, k] += amount
                    if near.after >= 0:
                        pair[near.ahead + k, near.after] += amount
            if near.before < 0:
                continue
            row = _own_row(scores, t - 1, t - near.first)
            _add_end(scores, t - 1, t - near.first, row, near.before, begun, unary, pair)
            amount = weight[t, near.before]
            if amount != 0.0:
                unary[t, near.before] += amount
                length = near.stop - near.first
                row = _own_row(scores, last, length)
                _add_end(scores, last, length, row, near.before, amount, unary, pair)
                if near.after >= 0:
                    pair[near.ahead + near.before, near.after] += amount
