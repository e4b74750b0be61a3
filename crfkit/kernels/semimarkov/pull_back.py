"""From slopes of the codes of tokens to the gradient with respect to the scores of segments.

A code whose slope is ``a`` and whose probability is ``mu`` adds ``a / mu`` to each segmentation
that has it. Forward and backward vectors get derivatives along these sums, which are what prefixes
and suffixes have collected; the derivative of the probability of a part is the gradient with
respect to its score. Within a segment the quotients are added up while lengths are tried: none is
larger than the inverse of the probability of the segment, so that no digits are lost.
"""

from __future__ import annotations

from typing import NamedTuple

from crfkit._types import FloatArray, IdArray, IntArray
from crfkit.compiler.jit import kernel, part
from crfkit.compiler.simd import (
    WIDTH,
    add,
    fill,
    load,
    multiply,
    multiply_add,
    store,
    where_positive,
)
from crfkit.kernels._strips import strips_add_product, strips_outer, strips_product
from crfkit.kernels.chain.sum import OK, UNDERFLOW
from crfkit.kernels.semimarkov.arrays import (
    SegmentExponentials,
    SegmentScores,
    SegmentTables,
    SpanIndex,
)
from crfkit.kernels.semimarkov.posterior import SegmentMessages

# Slopes are not divided by a smaller probability: sequences that have one that matters are left to
# sums of logarithms. Slopes that are a smaller part of the largest of their token do not matter.
LEAST, NEGLIGIBLE = 1e-60, 1e-30


class SlopeRooms(NamedTuple):
    """Derivatives of what the recurrences tell, by the token of the sequence."""

    stay: FloatArray  # (T, W) what a segment that goes on there collects
    start: FloatArray  # (T, W) one that begins there
    alpha: FloatArray  # (T + 1, W) of the forward vectors
    vector: FloatArray  # (1, W)
    weighed: FloatArray  # (1, W)
    begins: FloatArray  # (T, W) of what begins
    ends: FloatArray  # (T, W) of what follows a segment that ends there
    entered: FloatArray  # (T, W) what follows a transition to it, not its derivative
    message: FloatArray  # (T, W) the derivative
    started: FloatArray  # (T, W) of the probability that a segment begins
    ended: FloatArray  # (T, W) that one ends
    single: FloatArray  # (T, W) that both do


class PartTangents(NamedTuple):
    """What parts other than the codes of tokens collect; without rows where none does. Read-only.

    Times the weight of the sequence. Transitions collect what stands for them times exponentials.
    """

    weight: FloatArray  # (S,)
    finish: FloatArray  # (N or 0, W) the ends of segments
    alone: FloatArray  # (N or 0, W) segments of one token
    lengths: FloatArray  # (L or 0, W)
    spans: FloatArray  # (R or 0, W)
    transitions: FloatArray  # (M or 0, W, W)
    transposed: FloatArray  # (M or 0, W, W)


class SegmentGradient(NamedTuple):
    """Gradient with respect to the scores, which the kernels write."""

    unary: FloatArray  # (N, 4 K)
    flow: FloatArray  # (M, W, W) added to: that of transitions divided by their exponentials
    passing: FloatArray  # (M or 0, W, W) added to: of what these collect, transitions likewise
    lengths: FloatArray  # (L, W) added to
    spans: FloatArray  # (R, W) added to
    status: IntArray  # (S,) the other outputs of a sequence are only valid where it is OK


@part
def _divide(
    slopes: FloatArray, marginals: FloatArray, begin: int, end: int, rooms: SlopeRooms
) -> bool:
    """Divide slopes by the probabilities of codes; returns whether none of these is too small."""
    size, moderate = slopes.shape[1] // 2, True
    for t in range(begin, end):
        largest = 0.0
        for c in range(2 * size):
            largest = max(largest, abs(slopes[t, c]))
        for k in range(rooms.stay.shape[1]):
            rooms.stay[t - begin, k] = rooms.start[t - begin, k] = 0.0
        for c in range(2 * size):
            if abs(slopes[t, c]) > NEGLIGIBLE * largest:
                moderate = moderate and marginals[t, c] >= LEAST
                share = slopes[t, c] / max(marginals[t, c], LEAST)
                if c < size:
                    rooms.stay[t - begin, c] = share
                else:
                    rooms.start[t - begin, c - size] = share
    return moderate


@part
def _within(
    collected: FloatArray, tangents: PartTangents, weight: float, t: int, d: int, own: int, p: int
) -> FloatArray:
    """Return what a segment collects that ends at `t`: its tokens have `collected`; `own` a row."""
    if tangents.lengths.shape[0] == 0:
        return collected
    more = add(load(tangents.finish, t, p), load(tangents.lengths, d - 1, p))
    if d == 1:
        more = add(more, load(tangents.alone, t, p))
    if own >= 0:
        more = add(more, load(tangents.spans, own, p))
    return multiply_add(fill(weight), more, collected)


@part
def _ending(
    tables: SegmentTables,
    ends: SpanIndex,
    messages: SegmentMessages,
    tangents: PartTangents,
    weight: float,
    rooms: SlopeRooms,
    t: int,
    i: int,
    row: int,
    p: int,
    most: int,
) -> FloatArray:
    """``sum_d prod_u going_u length_d span (begins'_s + begins_s sum_u stay'_u)``, at token `t`."""
    begins, going, lengths = messages.prefixes.begins, messages.prefixes.going, tables.lengths
    q, high, run, collected, sums = ends.ptr[t], ends.ptr[t + 1], fill(1.0), fill(0.0), fill(0.0)
    for d in range(1, max(most, 1) + 1):
        factor, own = multiply(run, load(lengths, d - 1, p)), -1
        if d == 1:
            factor = multiply(factor, load(tables.alone, t, p))
        if q < high and ends.length[q] == d:
            own = ends.row[q]
            factor = multiply(factor, load(tables.spans, own, p))
            q += 1
        within = _within(collected, tangents, weight, t, d, own, p)
        slope = multiply_add(load(begins, row - d + 1, p), within,
                             load(rooms.begins, i - d + 1, p))  # fmt: skip
        sums = add(sums, multiply(slope, factor))
        run = multiply(run, load(going, row - d + 1, p))
        collected = add(collected, load(rooms.stay, i - d + 1, p))
    return sums


@kernel
def _forward(
    scores: SegmentScores,
    tables: SegmentTables,
    s: int,
    messages: SegmentMessages,
    tangents: PartTangents,
    rooms: SlopeRooms,
) -> None:
    """Differentiate the forward vectors: what the tokens before have collected."""
    begin, end, vector = scores.offsets[s], scores.offsets[s + 1], rooms.vector
    begins, norm, index = messages.prefixes.begins, messages.prefixes.norm, scores.transition_index
    width, stride, weight = vector.shape[1], min(index.shape[0] - 1, 1), tangents.weight[s]
    for p in range(0, width, WIDTH):
        store(fill(0.0), vector, 0, p)
        store(fill(0.0), rooms.alpha, 0, p)
    for t in range(begin, end):
        i, row = t - begin, t + s
        if i > 0:
            m = index[t * stride]
            strips_product(rooms.alpha, i, tables.transitions, m, vector, 0)
            if tangents.transitions.shape[0] > 0:
                for p in range(0, width, WIDTH):
                    share = multiply(fill(weight), load(messages.prefixes.alpha, row, p))
                    store(share, rooms.weighed, 0, p)
                strips_add_product(rooms.weighed, 0, tangents.transitions, m, vector, 0)
        for p in range(0, width, WIDTH):
            begun = multiply(load(vector, 0, p), load(tables.start, t, p))
            begun = multiply(fill(1.0 / norm[t]), begun)
            begun = multiply_add(load(begins, row, p), load(rooms.start, i, p), begun)
            store(begun, rooms.begins, i, p)
            most = min(i + 1, tables.longest[p // WIDTH])
            ended = _ending(tables, scores.ends, messages, tangents, weight, rooms, t, i, row, p,
                            most)  # fmt: skip
            store(multiply(ended, load(tables.finish, t, p)), rooms.alpha, i + 1, p)


@part
def _center(messages: SegmentMessages, begin: int, end: int, s: int, rooms: SlopeRooms) -> None:
    """Let each code collect so much less that all segmentations collect 0 in the mean."""
    alpha, begins, whole, width = rooms.alpha, rooms.begins, 0.0, rooms.alpha.shape[1]
    for k in range(width):
        whole += alpha[end - begin, k]
    mean = whole / (end - begin)
    for t in range(begin, end):
        i, row, less = t - begin, t + s, mean * (t - begin + 1)
        for k in range(width):
            alpha[i + 1, k] -= less * messages.prefixes.alpha[row + 1, k]
            begins[i, k] -= less * messages.prefixes.begins[row, k]
            rooms.stay[i, k] -= mean
            rooms.start[i, k] -= mean


@part
def _starting(
    tables: SegmentTables,
    starts: SpanIndex,
    messages: SegmentMessages,
    tangents: PartTangents,
    weight: float,
    rooms: SlopeRooms,
    t: int,
    i: int,
    row: int,
    p: int,
    most: int,
    out: SegmentGradient,
) -> FloatArray:
    """``sum_d prod_u going_u length_d span (ends'_e + ends_e sum_u stay'_u)``, from token `t`.

    The derivative of the probability of each segment is added to its length and row.
    """
    ends, going, lengths = messages.ends, messages.prefixes.going, tables.lengths
    share, q, high = load(messages.prefixes.begins, row, p), starts.ptr[t], starts.ptr[t + 1]
    before, collected = load(rooms.begins, i, p), fill(0.0)
    run, slopes = where_positive(share, fill(1.0)), fill(0.0)
    for d in range(1, max(most, 1) + 1):
        if d > 1:
            run = multiply(run, load(going, row + d - 1, p))
            collected = add(collected, load(rooms.stay, i + d - 1, p))
        factor = multiply(run, load(lengths, d - 1, p))
        if d == 1:
            factor = multiply(factor, load(tables.alone, t, p))
        here = q < high and starts.length[q] == d
        own = starts.row[q] if here else -1
        if here:
            factor = multiply(factor, load(tables.spans, own, p))
            q += 1
        value = multiply(load(ends, row + d - 1, p), factor)
        within = _within(collected, tangents, weight, t + d - 1, d, own, p)
        slope = multiply_add(value, within,
                             multiply(load(rooms.ends, i + d - 1, p), factor))  # fmt: skip
        slopes = add(slopes, slope)
        amount = multiply_add(before, value, multiply(share, slope))
        store(add(amount, load(out.lengths, d - 1, p)), out.lengths, d - 1, p)
        if d == 1:
            store(amount, rooms.single, i, p)
        if here:
            store(add(amount, load(out.spans, own, p)), out.spans, own, p)
    return slopes


@kernel
def _backward(
    scores: SegmentScores,
    exponentials: SegmentExponentials,
    s: int,
    messages: SegmentMessages,
    tangents: PartTangents,
    rooms: SlopeRooms,
    out: SegmentGradient,
) -> None:
    """Differentiate the backward vectors and the probabilities of all parts but transitions.

    ``P'(part) = alpha'(part) beta(part) + alpha(part) beta'(part)``
    """
    begin, end, tables = scores.offsets[s], scores.offsets[s + 1], exponentials.tables
    prefixes, vector, index = messages.prefixes, rooms.vector, scores.transition_index
    width, stride, weight = vector.shape[1], min(index.shape[0] - 1, 1), tangents.weight[s]
    for p in range(0, width, WIDTH):
        store(fill(0.0), vector, 0, p)
    for t in range(end - 1, begin - 1, -1):
        i, row, scale = t - begin, t + s, fill(1.0 / prefixes.norm[t])
        if t < end - 1:
            m = index[(t + 1) * stride]
            strips_product(rooms.message, i + 1, exponentials.transposed, m, vector, 0)
            if tangents.transposed.shape[0] > 0:
                for p in range(0, width, WIDTH):
                    share = multiply(fill(weight), load(rooms.entered, i + 1, p))
                    store(share, rooms.weighed, 0, p)
                strips_add_product(rooms.weighed, 0, tangents.transposed, m, vector, 0)
        for p in range(0, width, WIDTH):
            share = load(prefixes.alpha, row + 1, p)
            behind = where_positive(share, load(vector, 0, p))
            ended = multiply(load(rooms.alpha, i + 1, p), load(messages.behind, row, p))
            store(multiply_add(share, behind, ended), rooms.ended, i, p)
            store(multiply(load(tables.finish, t, p), behind), rooms.ends, i, p)
            most = min(end - t, tables.longest[p // WIDTH])
            slope = _starting(tables, scores.starts, messages, tangents, weight, rooms, t, i, row,
                              p, most, out)  # fmt: skip
            follow = load(messages.follow, row, p)
            begun = multiply(load(rooms.begins, i, p), follow)
            begun = multiply_add(load(prefixes.begins, row, p), slope, begun)
            store(begun, rooms.started, i, p)
            slope = multiply_add(load(rooms.start, i, p), follow, slope)
            factor = multiply(scale, load(tables.start, t, p))
            store(multiply(factor, follow), rooms.entered, i, p)
            store(multiply(factor, slope), rooms.message, i, p)


@part
def _add_transitions(
    messages: SegmentMessages,
    rooms: SlopeRooms,
    index: IdArray,
    begin: int,
    end: int,
    s: int,
    weight: float,
    out: SegmentGradient,
) -> None:
    """``flow(i, j) += alpha'_t(i) message_t(j) + alpha_t(i) message'_t(j)`` but for the first."""
    alpha, flow, first, n = messages.prefixes.alpha, out.flow, begin + s, end - begin
    width, step = flow.shape[1], n - 1 if index.shape[0] == 1 else 1
    for i in range(1, n, max(step, 1)):
        m = index[0] if index.shape[0] == 1 else index[begin + i]
        strips_outer(rooms.alpha, 0, rooms.entered, i, i + step, flow, m, 0, width)
        strips_outer(alpha, first, rooms.message, i, i + step, flow, m, 0, width)
    if out.passing.shape[0] == 0:
        return
    for i in range(1, n):
        for p in range(0, width, WIDTH):
            store(multiply(fill(weight), load(rooms.entered, i, p)), rooms.entered, i, p)
    for i in range(1, n, max(step, 1)):
        m = index[0] if index.shape[0] == 1 else index[begin + i]
        strips_outer(alpha, first, rooms.entered, i, i + step, out.passing, m, 0, width)


@part
def _write(rooms: SlopeRooms, marginals: FloatArray, begin: int, end: int, out: FloatArray) -> None:
    """Write the gradient with respect to the scores of tokens.

    ``P'(goes on at t) = P'(goes on at t - 1) + P'(begins at t - 1) - P'(ends at t - 1)``
    """
    size = out.shape[1] // 4
    for t in range(begin, end):
        i = t - begin
        for k in range(size):
            out[t, k] = 0.0
            if i > 0 and marginals[t, k] > 0.0:
                out[t, k] = out[t - 1, k] + rooms.started[i - 1, k] - rooms.ended[i - 1, k]
            out[t, size + k] = rooms.started[i, k]
            out[t, 2 * size + k] = rooms.ended[i, k]
            out[t, 3 * size + k] = rooms.single[i, k]


@kernel
def semimarkov_pull_back(
    scores: SegmentScores,
    exponentials: SegmentExponentials,
    sequences: IntArray,  # (n,)
    messages: SegmentMessages,
    marginals: FloatArray,  # (N, 2 K)
    slopes: FloatArray,  # (N, 2 K)
    tangents: PartTangents,
    rooms: SlopeRooms,
    out: SegmentGradient,
) -> None:
    """Covariances of all parts with the sums of slopes, in time ``O(T (L K + K**2))``.

    For sequences of which `semimarkov_posterior` has made the messages.
    """
    index = scores.transition_index
    for n in range(sequences.shape[0]):
        s = sequences[n]
        begin, end = scores.offsets[s], scores.offsets[s + 1]
        out.status[s] = OK if _divide(slopes, marginals, begin, end, rooms) else UNDERFLOW
        if out.status[s] == OK and begin < end:
            _forward(scores, exponentials.tables, s, messages, tangents, rooms)
            if tangents.lengths.shape[0] > 0:
                _center(messages, begin, end, s, rooms)
            _backward(scores, exponentials, s, messages, tangents, rooms, out)
            _add_transitions(messages, rooms, index, begin, end, s, tangents.weight[s], out)
            _write(rooms, marginals, begin, end, out.unary)
