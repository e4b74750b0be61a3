"""Probabilities of the codes of tokens of segments, and what is kept of them to go back from there.

The recurrences are those of :mod:`crfkit.kernels.semimarkov.sum`. A probability that a segment goes
on is a sum over segments, in place of a difference of what began and what ended: so that it has
all its digits where it is small, since slopes are divided by it.
"""

from __future__ import annotations

from typing import NamedTuple

from crfkit._types import FloatArray, IntArray
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
from crfkit.kernels._strips import strips_product
from crfkit.kernels.chain.sum import OK, log_total
from crfkit.kernels.semimarkov.arrays import (
    SegmentExponentials,
    SegmentPrefixes,
    SegmentScores,
    SegmentTables,
    SpanIndex,
    reached,
)
from crfkit.kernels.semimarkov.sum import BROKEN, CLOSE, forward


class SegmentMessages(NamedTuple):
    """What the recurrences tell of all tokens; token ``t`` of sequence ``s`` has the row ``t + s``.

    So there is a row after the last token of each sequence.
    """

    prefixes: SegmentPrefixes
    ends: FloatArray  # (N + S, W) what follows a segment that ends at a token, with its last score
    behind: FloatArray  # (N + S, W) the same without that score
    follow: FloatArray  # (N + S, W) what a segment that begins at a token goes on with


class InsideRooms(NamedTuple):
    """Rooms for the probabilities that segments go on."""

    inside: FloatArray  # (T, W) these, by the token of the sequence
    values: FloatArray  # (L, W) segments that begin at a token, by their length
    message: FloatArray  # (1, W)


@part
def _following(
    tables: SegmentTables,
    starts: SpanIndex,
    messages: SegmentMessages,
    rooms: InsideRooms,
    t: int,
    i: int,
    row: int,
    p: int,
    most: int,
) -> FloatArray:
    """``sum_d prod_u going_u length_d span ends_{t+d-1}``: what begins at the token `t`.

    The probability of each segment is added to that of going on at all its tokens but the first.
    """
    ends, going, lengths = messages.ends, messages.prefixes.going, tables.lengths
    share, q, high = load(messages.prefixes.begins, row, p), starts.ptr[t], starts.ptr[t + 1]
    run = where_positive(share, fill(1.0))
    sums = multiply(multiply(load(ends, row, p), run), load(lengths, 0, p))
    sums = multiply(sums, load(tables.alone, t, p))
    if q < high and starts.length[q] == 1:
        sums = multiply(sums, load(tables.spans, starts.row[q], p))
        q += 1
    for d in range(2, most + 1):
        run = multiply(run, load(going, row + d - 1, p))
        value = multiply(multiply(load(ends, row + d - 1, p), run), load(lengths, d - 1, p))
        if q < high and starts.length[q] == d:
            value = multiply(value, load(tables.spans, starts.row[q], p))
            q += 1
        store(value, rooms.values, d - 1, p)
        sums = add(sums, value)
    longer = fill(0.0)
    for d in range(most, 1, -1):
        longer = add(longer, load(rooms.values, d - 1, p))
        before = load(rooms.inside, i + d - 1, p)
        store(multiply_add(share, longer, before), rooms.inside, i + d - 1, p)
    return sums


@kernel
def _suffixes(
    scores: SegmentScores,
    exponentials: SegmentExponentials,
    s: int,
    messages: SegmentMessages,
    rooms: InsideRooms,
) -> None:
    """Scaled backward recurrence of one sequence."""
    begin, end, tables = scores.offsets[s], scores.offsets[s + 1], exponentials.tables
    prefixes, message, index = messages.prefixes, rooms.message, scores.transition_index
    vector, width, stride = prefixes.vector, prefixes.alpha.shape[1], min(index.shape[0] - 1, 1)
    for p in range(0, width, WIDTH):
        store(fill(1.0), vector, 0, p)
        for i in range(end - begin):
            store(fill(0.0), rooms.inside, i, p)
    for t in range(end - 1, begin - 1, -1):
        row = t + s
        if t < end - 1:
            strips_product(message, 0, exponentials.transposed, index[(t + 1) * stride], vector, 0)
        for p in range(0, width, WIDTH):
            behind = where_positive(load(prefixes.alpha, row + 1, p), load(vector, 0, p))
            store(behind, messages.behind, row, p)
            store(multiply(load(tables.finish, t, p), behind), messages.ends, row, p)
            most = min(end - t, tables.longest[p // WIDTH])
            follow = _following(tables, scores.starts, messages, rooms, t, t - begin, row, p, most)
            store(follow, messages.follow, row, p)
            entered = multiply(load(tables.start, t, p), follow)
            store(multiply(fill(1.0 / prefixes.norm[t]), entered), message, 0, p)


@part
def _write(
    messages: SegmentMessages, rooms: InsideRooms, begin: int, end: int, s: int, out: FloatArray
) -> bool:
    """Write the probabilities of codes; returns whether those of each token add up to 1."""
    size, sound = out.shape[1] // 2, True
    begins, follow = messages.prefixes.begins, messages.follow
    for t in range(begin, end):
        whole = 0.0
        for k in range(size):
            out[t, k] = rooms.inside[t - begin, k]
            out[t, size + k] = begins[t + s, k] * follow[t + s, k]
            whole += out[t, k] + out[t, size + k]
        sound = sound and abs(whole - 1.0) <= CLOSE
    return sound


@kernel
def semimarkov_posterior(
    scores: SegmentScores,
    exponentials: SegmentExponentials,
    sequences: IntArray,  # (n,) the sequences to sum
    messages: SegmentMessages,
    rooms: InsideRooms,
    marginals: FloatArray,  # (N, 2 K) out
    log_z: FloatArray,  # (S,) out
    status: IntArray,  # (S,) out: what others say of a sequence is only valid where it is OK
) -> None:
    """``log Z`` over all segmentations, and the probabilities of the codes of tokens."""
    alpha, norm, size = messages.prefixes.alpha, messages.prefixes.norm, scores.pair.shape[1]
    for n in range(sequences.shape[0]):
        s = sequences[n]
        begin, end = scores.offsets[s], scores.offsets[s + 1]
        log_z[s], status[s] = 0.0, OK
        if begin == end:
            continue
        status[s] = forward(scores, exponentials.tables, begin, end, -s, messages.prefixes)
        if status[s] != OK:
            continue
        position = reached(alpha, 0.0, begin, end, -s, size)
        if position < end:
            status[s] = position
            continue
        log_z[s] = log_total(norm, exponentials.shift, begin, end)
        _suffixes(scores, exponentials, s, messages, rooms)
        if not _write(messages, rooms, begin, end, s, marginals):
            status[s] = BROKEN
