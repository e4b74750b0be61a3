"""Entropies of segmentations.

Shapes as in :mod:`crfkit.kernels.semimarkov.arrays`. In the linear domain they are carried beside
the forward recurrence, as those of chains are: a moment is a forward share times its entropy less
its logarithm, so that it takes no logarithms but those of the scores and norms.
"""

from __future__ import annotations

import math
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
    subtract,
    total,
)
from crfkit.kernels._strips import strips_product
from crfkit.kernels.chain.sum import NOTHING, OK
from crfkit.kernels.semimarkov.arrays import (
    SegmentExponentials,
    SegmentPrefixes,
    SegmentScores,
    SegmentTables,
    reached,
)
from crfkit.kernels.semimarkov.log_posterior import LogSegmentMessages
from crfkit.kernels.semimarkov.sample import log_lengths
from crfkit.kernels.semimarkov.sum import forward
from crfkit.kernels.tree.sample import SLIGHT, entropy_of


class SegmentMoments(NamedTuple):
    """Rooms of the recurrence; what is of a token, by its row."""

    ended: FloatArray  # (T + 1, W) moments of what ends before a token
    begun: FloatArray  # (T, W) of what begins at it
    losses: FloatArray  # (T, W) minus logarithms of the scaled factors of going on
    entering: FloatArray  # (2, W)


@part
def _ending(
    scores: SegmentScores,
    exponentials: SegmentExponentials,
    known: SegmentTables,
    prefixes: SegmentPrefixes,
    moments: SegmentMoments,
    t: int,
    row: int,
    p: int,
) -> FloatArray:
    """``sum_d w_d (moment of begins - begins log w_d)`` with all factors ``w_d`` of a length."""
    tables, ends, begins, begun = exponentials.tables, scores.ends, prefixes.begins, moments.begun
    q, high = ends.ptr[t], ends.ptr[t + 1]
    weight = multiply(load(tables.alone, t, p), load(tables.lengths, 0, p))
    gain, sums = add(load(known.alone, t, p), load(known.lengths, 0, p)), fill(0.0)
    run, lost = load(prefixes.going, row, p), load(moments.losses, row, p)
    for d in range(1, min(row + 1, tables.longest[p // WIDTH]) + 1):
        if d > 1:
            weight = multiply(run, load(tables.lengths, d - 1, p))
            gain = subtract(load(known.lengths, d - 1, p), lost)
            run = multiply(run, load(prefixes.going, row - d + 1, p))
            lost = add(lost, load(moments.losses, row - d + 1, p))
        if q < high and ends.length[q] == d:
            weight = multiply(weight, load(tables.spans, ends.row[q], p))
            gain = add(gain, load(known.spans, ends.row[q], p))
            q += 1
        share = multiply(load(begins, row - d + 1, p), gain)
        sums = multiply_add(weight, subtract(load(begun, row - d + 1, p), share), sums)
    return sums


@part
def _carry(
    scores: SegmentScores,
    exponentials: SegmentExponentials,
    known: SegmentTables,
    prefixes: SegmentPrefixes,
    moments: SegmentMoments,
    begin: int,
    t: int,
) -> float:
    """Write the moments of a token; returns the sum of those of what ends at it."""
    tables, row, mass = exponentials.tables, t - begin, fill(0.0)
    factor = 1.0 / prefixes.norm[t]
    lost = exponentials.shift[t] - math.log(factor)
    for p in range(0, prefixes.alpha.shape[1], WIDTH):
        going = subtract(fill(lost), load(known.stay, t, p))
        store(going, moments.losses, row, p)
        start = multiply(fill(factor), load(tables.start, t, p))
        entering = add(load(moments.entering, 0, p), load(moments.entering, 1, p))
        own = subtract(fill(lost), load(known.start, t, p))
        own = multiply(load(prefixes.begins, row, p), own)
        store(multiply_add(start, entering, own), moments.begun, row, p)
        ended = _ending(scores, exponentials, known, prefixes, moments, t, row, p)
        own = multiply(load(prefixes.alpha, row + 1, p), load(known.finish, t, p))
        ended = subtract(multiply(load(tables.finish, t, p), ended), own)
        store(ended, moments.ended, row + 1, p)
        mass = add(mass, ended)
    return total(mass)


@kernel
def semimarkov_entropy(
    scores: SegmentScores,
    exponentials: SegmentExponentials,
    known: SegmentTables,  # scores, 0 where they are -inf; transitions: - factor log factor
    sequences: IntArray,  # (n,)
    prefixes: SegmentPrefixes,
    moments: SegmentMoments,
    entropy: FloatArray,  # (2, S) out; and the size of the numbers whose differences they are
    status: IntArray,  # (S,) out: the entropy of a sequence is only valid where it is OK
) -> None:
    """Entropies of the segmentations of some sequences, in time ``O(T (L K + K**2))``."""
    tables, index, entering = exponentials.tables, scores.transition_index, moments.entering
    alpha, size, stride = prefixes.alpha, scores.pair.shape[1], min(index.shape[0] - 1, 1)
    for place in range(sequences.shape[0]):
        s = sequences[place]
        begin, end = scores.offsets[s], scores.offsets[s + 1]
        entropy[0, s], entropy[1, s] = 0.0, 0.0
        status[s] = forward(scores, tables, begin, end, begin, prefixes)
        if status[s] != OK:
            continue
        position = reached(alpha, 0.0, begin, end, begin, size)
        if position < end:
            status[s] = position
            continue
        for p in range(0, alpha.shape[1], WIDTH):
            store(fill(0.0), entering, 0, p)
            store(fill(0.0), entering, 1, p)
        for t in range(begin, end):
            m = index[t * stride]
            if t > begin:
                strips_product(moments.ended, t - begin, tables.transitions, m, entering, 0)
                strips_product(alpha, t - begin, known.transitions, m, entering, 1)
            entropy[0, s] = _carry(scores, exponentials, known, prefixes, moments, begin, t)
            entropy[1, s] += 1.0 + abs(math.log(prefixes.norm[t]))


@kernel
def semimarkov_entropy_log(
    scores: SegmentScores,
    s: int,
    messages: LogSegmentMessages,  # of the sequence, which is not empty
    labels: FloatArray,  # (1, K) workspace
    lengths: FloatArray,  # (2, L) workspace
) -> float:
    """Return the entropy of the segmentations of one sequence, exact where it is tiny.

    By the chain rule: of the last label, and, given a label, those of the length of the segment and
    of the label before it.
    """
    begin, end, index = scores.offsets[s], scores.offsets[s + 1], scores.transition_index
    sums, size, stride = messages.sums, scores.pair.shape[1], min(index.shape[0] - 1, 1)
    whole = entropy_of(sums.alpha, end - begin, size)
    for t in range(end - 1, begin - 1, -1):
        row, table = t - begin, index[t * stride] * size
        for k in range(size):
            share = sums.alpha[row + 1, k] + messages.behind[row, k]
            ended = math.exp(share) if share > NOTHING else 0.0
            if ended * (row + 1) > SLIGHT * whole:
                longest = log_lengths(scores, sums, begin, t, k, lengths)
                whole += ended * entropy_of(lengths, 0, longest)
            share = messages.marginals[row, size + k]
            begun = math.exp(share) if share > NOTHING and row > 0 else 0.0
            if begun * size > SLIGHT * whole:
                for i in range(size):
                    labels[0, i] = sums.alpha[row, i] + scores.pair[table + i, k]
                whole += begun * entropy_of(labels, 0, size)
    return whole
