"""Probabilities of the codes of tokens of segments by logarithms, and the way back from slopes.

A slope ``a`` of a code of probability ``mu`` gives ``a P(segment) / mu`` to each segment that has
it there: a part of ``a``, whose logarithm is a difference, however small both probabilities are.
Such amounts are measures over segments. They move on to what comes after and before by the
probabilities of a part given its neighbor. What has come together at a part, from before, from
within and from after, is the gradient with respect to its score.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from crfkit._types import Counts, FloatArray
from crfkit.compiler.jit import kernel, part
from crfkit.kernels.chain.sum import OK
from crfkit.kernels.semimarkov.arrays import LogSegmentWorkspace, SegmentScores, reached
from crfkit.kernels.semimarkov.sum import forward_log, log_add, log_of


class LogSegmentMessages(NamedTuple):
    """Logarithms of what the recurrences tell of the tokens of one sequence."""

    sums: LogSegmentWorkspace
    behind: FloatArray  # (T, K) what follows the end of a segment
    follow: FloatArray  # (T, K) what follows a beginning
    marginals: FloatArray  # (T, 2 K) probabilities of codes


class LogPartTangents(NamedTuple):
    """What parts other than codes collect, times the weight; without rows where none does."""

    weight: float
    unary: FloatArray  # (N or 0, 4 K) of which ends of segments and those of one token are read
    pair: FloatArray  # (M K + L + R or 0, K)


class Measures(NamedTuple):
    """Amounts that come to a part from one side."""

    ended: FloatArray  # (T + 1, K) to a segment that ends before a token: from there and before
    begun: FloatArray  # (T, K) to one that begins at it: from before
    behind: FloatArray  # (T, K) to one that ends at it: from behind
    follow: FloatArray  # (T, K) to one that begins at it: from there and behind


@part
def _own(
    scores: SegmentScores, t: int, d: int, q: int, high: int, k: int
) -> tuple[float, int, int]:
    """Return the score of a length, and of its row, its place, and the next segment with a row.

    Of the segment of label `k` and length `d` that begins at the token `t`.
    """
    pair, lengths = scores.pair, scores.n_transitions
    score, place = pair[lengths + d - 1, k], -1
    if d == 1:
        score += scores.unary[t, 3 * pair.shape[1] + k]
    if q < high and scores.starts.length[q] == d:
        place = lengths + scores.n_lengths + scores.starts.row[q]
        score += pair[place, k]
        q += 1
    return score, place, q


@kernel
def _follow(
    scores: SegmentScores, t: int, k: int, begin: int, end: int,
    values: FloatArray, messages: LogSegmentMessages,
) -> None:  # fmt: skip
    """Add up the segments of label `k` that begin at the token `t`, and tell their tokens."""
    sums, marginals, size = messages.sums, messages.marginals, scores.pair.shape[1]
    norm, row, share = sums.norm, t - begin, sums.begins[t - begin, k]
    run, q, longest = -norm[t], scores.starts.ptr[t], min(end - t, scores.n_lengths)
    most, rest = -math.inf, 0.0
    for d in range(1, longest + 1):
        own, _, q = _own(scores, t, d, q, scores.starts.ptr[t + 1], k)
        values[d - 1] = run + own + sums.ends[row + d - 1, k]
        most, rest = log_add(most, rest, values[d - 1])
        if d < end - t:
            run += scores.unary[t + d, k] - norm[t + d]
    messages.follow[row, k] = log_of(most, rest)
    marginals[row, size + k] = share + messages.follow[row, k] if share > -math.inf else -math.inf
    most, rest = -math.inf, 0.0
    for d in range(longest, 1, -1):
        most, rest = log_add(most, rest, values[d - 1])
        if share > -math.inf and most > -math.inf:
            place = row + d - 1
            top, more = log_add(marginals[place, k], 1.0, share + log_of(most, rest))
            marginals[place, k] = top + math.log(more)


@kernel
def semimarkov_posterior_log(
    scores: SegmentScores,
    s: int,
    values: FloatArray,  # (L,) workspace
    messages: LogSegmentMessages,  # out
    log_z: FloatArray,  # (S,) out
) -> int:
    """Sum one sequence that is not empty; returns `OK`, or the position that no segment leads to.

    The logarithms of the probabilities are exact where these underflow.
    """
    begin: int = scores.offsets[s]
    end, size, index = scores.offsets[s + 1], scores.pair.shape[1], scores.transition_index
    sums, unary, stride = messages.sums, scores.unary, min(index.shape[0] - 1, 1)
    forward_log(scores, begin, end, sums)
    position = reached(sums.alpha, -math.inf, begin, end, begin, size)
    if position < end:
        return position
    log_z[s] = 0.0
    for t in range(begin, end):
        log_z[s] += sums.norm[t]
        for k in range(size):
            messages.marginals[t - begin, k] = -math.inf
    for t in range(end - 1, begin - 1, -1):
        row = t - begin
        for k in range(size):
            most, rest = (0.0, 1.0) if t == end - 1 else (-math.inf, 0.0)
            for j in range(size if t < end - 1 else 0):
                score = scores.pair[index[(t + 1) * stride] * size + k, j] + unary[t + 1, size + j]
                most, rest = log_add(most, rest, score + messages.follow[row + 1, j])
            messages.behind[row, k] = log_of(most, rest)
            sums.ends[row, k] = unary[t, 2 * size + k] + messages.behind[row, k]
        for k in range(size):
            _follow(scores, t, k, begin, end, values, messages)
    return OK


@part
def _collect(most: float, rest: float, slope: float, log: float) -> tuple[float, float]:
    """Add ``slope exp(-log)`` to a sum ``exp(most) rest``."""
    if slope == 0.0 or log == -math.inf:
        return most, rest
    if -log > most:
        return -log, rest * math.exp(most + log) + slope
    return most, rest + slope * math.exp(-log - most)


@part
def _given(joint: float, known: float) -> float:
    """Return a probability given what is known, both by their logarithms: 0 if it has none."""
    return math.exp(joint - known) if joint > -math.inf else 0.0


@part
def _own_tangent(
    scores: SegmentScores, tangents: LogPartTangents, t: int, d: int, place: int, k: int
) -> float:
    """Return what a segment of length `d` that ends at `t` collects by itself; `place` of a row."""
    if tangents.pair.shape[0] == 0:
        return 0.0
    size = scores.pair.shape[1]
    whole: float = tangents.unary[t, 2 * size + k] + tangents.pair[scores.n_transitions + d - 1, k]
    if d == 1:
        whole += tangents.unary[t, 3 * size + k]
    if place >= 0:
        whole += tangents.pair[place, k]
    return tangents.weight * whole


@part
def _step_tangent(tangents: LogPartTangents, place: int, k: int, log: float) -> float:
    """Return what a transition collects, times its probability, given by its logarithm."""
    if tangents.pair.shape[0] == 0 or log == -math.inf:
        return 0.0
    tangent: float = tangents.pair[place, k]
    return tangents.weight * tangent * math.exp(log)


@kernel
def _ended(
    scores: SegmentScores, t: int, k: int, begin: int, messages: LogSegmentMessages,
    slopes: FloatArray,
    tangents: LogPartTangents, measures: Measures,
) -> float:  # fmt: skip
    """Return what comes, from before and within, to the segments of label `k` that end at `t`."""
    sums, marginals, size = messages.sums, messages.marginals, scores.pair.shape[1]
    norm, row, pair, ends = sums.norm, t - begin, scores.pair, scores.ends
    run, q, amount, most, rest = sums.ends[row, k] - norm[t], ends.ptr[t], 0.0, -math.inf, 0.0
    lengths = scores.n_transitions
    for d in range(1, min(row + 1, scores.n_lengths) + 1):
        at = row - d + 1
        score = run + pair[lengths + d - 1, k]
        if d == 1:
            score += scores.unary[t, 3 * size + k]
        place = -1
        if q < ends.ptr[t + 1] and ends.length[q] == d:
            place = lengths + scores.n_lengths + ends.row[q]
            score += pair[place, k]
            q += 1
        if score > -math.inf and sums.begins[at, k] > -math.inf:
            amount += measures.begun[at, k] * math.exp(score - messages.follow[at, k])
            begins = slopes[begin + at, size + k]
            top, within = _collect(most, rest, begins, marginals[at, size + k])
            if top > -math.inf:
                amount += within * math.exp(sums.begins[at, k] + score + top)
            own = _own_tangent(scores, tangents, t, d, place, k)
            amount += own * math.exp(sums.begins[at, k] + score)
        if d <= row:
            run += scores.unary[t - d + 1, k] - norm[t - d]
        most, rest = _collect(most, rest, slopes[begin + at, k], marginals[at, k])
    return amount


@kernel
def _begun(
    scores: SegmentScores, t: int, k: int, begin: int, end: int, messages: LogSegmentMessages,
    slopes: FloatArray,
    tangents: LogPartTangents, measures: Measures, out: Counts,
) -> float:  # fmt: skip
    """Return what comes, from within and behind, to the segments of label `k` that begin at `t`.

    What comes to each from both sides is added to its length and row.
    """
    sums, marginals, size = messages.sums, messages.marginals, scores.pair.shape[1]
    norm, row, follow = sums.norm, t - begin, messages.follow[t - begin, k]
    share, run, q, amount = sums.begins[row, k], -norm[t], scores.starts.ptr[t], 0.0
    most, rest = _collect(-math.inf, 0.0, slopes[t, size + k], marginals[row, size + k])
    out.unary[t, 3 * size + k] = 0.0
    for d in range(1, min(end - t, scores.n_lengths) + 1):
        at = row + d - 1
        if d > 1:
            run += scores.unary[t + d - 1, k] - norm[t + d - 1]
            most, rest = _collect(most, rest, slopes[begin + at, k], marginals[at, k])
        own, place, q = _own(scores, t, d, q, scores.starts.ptr[t + 1], k)
        score = run + own + sums.ends[at, k]
        if score == -math.inf or share == -math.inf:
            continue
        known = sums.alpha[at + 1, k] + messages.behind[at, k]
        value = measures.behind[at, k] * math.exp(share + score - known)
        if most > -math.inf:
            value += rest * math.exp(share + score + most)
        within = _own_tangent(scores, tangents, t + d - 1, d, place, k)
        value += within * math.exp(share + score)
        amount += value
        value += measures.begun[row, k] * math.exp(score - follow)
        if d == 1:
            out.unary[t, 3 * size + k] = value
        out.pair[scores.n_transitions + d - 1, k] += value
        if place >= 0:
            out.pair[place, k] += value
    return amount


@kernel
def _forward_measures(
    scores: SegmentScores, begin: int, end: int, messages: LogSegmentMessages,
    slopes: FloatArray,
    tangents: LogPartTangents, measures: Measures, out: Counts,
) -> None:  # fmt: skip
    """Move what comes from before: from label to label, and from the beginnings to the ends."""
    index, size, begins = scores.transition_index, scores.pair.shape[1], messages.sums.begins
    stride = min(index.shape[0] - 1, 1)
    for t in range(begin, end):
        row, first = t - begin, index[t * stride] * size
        for k in range(size):
            measures.begun[row, k] = 0.0
            ahead = scores.unary[t, size + k] + messages.follow[row, k]
            for j in range(size if row > 0 and begins[row, k] > -math.inf else 0):
                joint = scores.pair[first + j, k] + ahead
                moved = measures.ended[row, j] * _given(joint, messages.behind[row - 1, j])
                log = messages.sums.alpha[row, j] + joint
                moved += _step_tangent(tangents, first + j, k, log)
                measures.begun[row, k] += moved
                out.pair[first + j, k] += moved
        for k in range(size):
            amount = _ended(scores, t, k, begin, messages, slopes, tangents, measures)
            measures.ended[row + 1, k] = out.unary[t, 2 * size + k] = amount


@kernel
def _backward_measures(
    scores: SegmentScores, begin: int, end: int, messages: LogSegmentMessages,
    slopes: FloatArray,
    tangents: LogPartTangents, measures: Measures, out: Counts,
) -> None:  # fmt: skip
    """Move what comes from behind, and give each part what has come to it."""
    index, size, sums = scores.transition_index, scores.pair.shape[1], messages.sums
    stride = min(index.shape[0] - 1, 1)
    for t in range(end - 1, begin - 1, -1):
        row = t - begin
        for k in range(size):
            measures.behind[row, k] = 0.0
            for j in range(size if t < end - 1 else 0):
                place = index[(t + 1) * stride] * size + k
                joint = sums.alpha[row + 1, k] + scores.pair[place, j]
                joint += scores.unary[t + 1, size + j]
                moved = measures.follow[row + 1, j] * _given(joint, sums.begins[row + 1, j])
                out.pair[place, j] += moved
                moved += _step_tangent(tangents, place, j, joint + messages.follow[row + 1, j])
                measures.behind[row, k] += moved
            out.unary[t, 2 * size + k] += measures.behind[row, k]
        for k in range(size):
            measures.follow[row, k] = _begun(
                scores, t, k, begin, end, messages, slopes, tangents, measures, out
            )
            out.unary[t, size + k] = measures.begun[row, k] + measures.follow[row, k]


@kernel
def semimarkov_pull_back_log(
    scores: SegmentScores,
    s: int,
    messages: LogSegmentMessages,  # of the sequence
    slopes: FloatArray,  # (N, 2 K)
    tangents: LogPartTangents,
    measures: Measures,
    out: Counts,  # of which the second is added to
) -> None:
    """Write the gradient of one sequence with respect to the scores."""
    begin, end, size = scores.offsets[s], scores.offsets[s + 1], scores.pair.shape[1]
    _forward_measures(scores, begin, end, messages, slopes, tangents, measures, out)
    _backward_measures(scores, begin, end, messages, slopes, tangents, measures, out)
    for t in range(begin, end):
        for k in range(size):
            out.unary[t, k] = 0.0
            if t > begin and messages.marginals[t - begin, k] > -math.inf:
                before = out.unary[t - 1, k] + out.unary[t - 1, size + k]
                out.unary[t, k] = before - out.unary[t - 1, 2 * size + k]
