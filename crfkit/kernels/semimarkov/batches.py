"""Small batches of segments, for kernels that update weights after each of them.

The potentials of labels are those of rows, as in :mod:`crfkit.kernels.semimarkov.oracle`: in each
batch of T tokens, T rows of each part, rows of lengths, and rows of segments with attributes.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from crfkit._types import ByteArray, FloatArray, IdArray, IntArray
from crfkit.compiler.dispatch import implements
from crfkit.compiler.jit import kernel, part
from crfkit.compiler.simd import WIDTH, exponential, load, store
from crfkit.kernels.chain import batches as chains
from crfkit.kernels.chain.batches import ChainBatchWorkspace
from crfkit.kernels.chain.sum import OK, UNDERFLOW
from crfkit.kernels.design.batch import clear_rows
from crfkit.kernels.design.tokens import Design
from crfkit.kernels.semimarkov.arrays import (
    LogSegmentWorkspace,
    SegmentExponentials,
    SegmentScores,
    SegmentSums,
    SegmentTables,
    SegmentWorkspace,
    SpanIndex,
)
from crfkit.kernels.semimarkov.sum import BROKEN, semimarkov_sum_log, sum_segmentations
from crfkit.kernels.solvers import batches as parts
from crfkit.kernels.solvers.batches import loss

# Scores further from 0 are summed by logarithms, as in `crfkit.structures.segment_tables`.
LARGE = 200.0


class SegmentBatches(NamedTuple):
    """Batches of segments that share one table of transitions; first fields as `ChainBatches`."""

    first: IntArray  # (B + 1,) the first sequence of each batch
    offsets: IntArray  # (S + 1,)
    weight: FloatArray  # (S,)
    transition_index: IdArray  # (1,) a 0
    design: Design  # of rows
    bits: ByteArray  # (H, V)
    transitions: Design  # without entries
    wide_bits: ByteArray  # (0, V2)
    base: int  # the first row of the K rows of transitions
    parts: IntArray  # (n,) the parts of tokens that have rows
    n_lengths: IntArray  # (B,) rows of lengths
    ends: SpanIndex  # segments with rows, by the token they end at: their numbers in the batch
    starts: SpanIndex  # and by the one they begin at
    true_ptr: IntArray  # (B + 1,) where the counts of the true segments of each batch start
    true_places: IntArray  # (c,) places in the vector of potentials
    true_counts: FloatArray  # (c,) weighted
    fixed_transitions: FloatArray  # (K, K) what is not learned of the scores of transitions
    fixed_lengths: FloatArray  # (L, K) and of lengths
    fixed_scores: FloatArray  # (B,) and of the true segments, weighted


class SegmentRoom(NamedTuple):
    """Room for the sums of a batch. What is read stands there twice, once read-only."""

    unary: FloatArray  # (Q, 4 K)
    pair: FloatArray  # (K + L + R, K)
    tables: SegmentTables  # of (Q, W), (1, W, W), (L, W) and (R, W)
    factors: FloatArray  # (W, W) its transitions
    transposed: FloatArray  # (1, W, W)
    shift: FloatArray  # (Q,)
    offsets: IntArray  # (s + 1,)
    end_ptr: IntArray  # (Q + 1,)
    start_ptr: IntArray  # (Q + 1,)
    scores_read: SegmentScores
    exponentials: SegmentExponentials
    work: SegmentWorkspace
    log_work: LogSegmentWorkspace
    sums: SegmentSums
    flow_rows: FloatArray  # (W, W) the same as its flow
    of_pair: FloatArray  # (K + L + R, K) counts of sums by logarithms


# What other structures, whose problems have the same fields, do with weights as chains do.
for _declaration, _body in (
    (parts.gather, chains.gather_chains),
    (parts.step_dual, chains.step_dual_of_chains),
    (parts.descend, chains.descend_on_chains),
    (parts.pay, chains.pay_on_chains),
    (parts.catch_up, chains.catch_up_chains),
    (parts.add_gradient, chains.add_gradient_of_chains),
    (parts.aim, chains.aim_at_chains),
    (parts.clear, chains.clear_chains),
    (parts.step_always, chains.step_always_of_chains),
    (parts.settle, chains.settle_chains),
):
    implements(_declaration, SegmentBatches)(_body)


@kernel
def expected_of_segments(
    problem: SegmentBatches, batch: int, workspace: ChainBatchWorkspace
) -> float:
    """Return the weighted sum of log Z less what is fixed, and write the expected counts."""
    room: SegmentRoom = workspace.sums
    first, count = problem.first[batch], problem.first[batch + 1] - problem.first[batch]
    fill_segments(problem, batch, workspace)
    longest = exponentiate_segments(problem, batch, room)
    status, log_z, whole = room.sums.status, room.sums.log_z, 0.0
    for s in range(count):
        short = room.offsets[s + 1] - room.offsets[s] <= longest
        status[s] = OK if short else UNDERFLOW
    sum_segments(problem, batch, room)
    for s in range(count):
        if status[s] == UNDERFLOW:
            weight = problem.weight[first + s]
            status[s] = semimarkov_sum_log(
                room.scores_read, s, weight, room.log_work, room.sums.counts, room.of_pair, log_z
            )
        if status[s] != OK:
            log_z[s] = math.nan
        whole += problem.weight[first + s] * log_z[s]
    write_counts(problem, batch, workspace)
    value: float = whole - problem.fixed_scores[batch]
    return value


@part
def _n_tokens(problem: SegmentBatches, batch: int) -> int:
    """Return how many tokens a batch has."""
    count: int = problem.offsets[problem.first[batch + 1]] - problem.offsets[problem.first[batch]]
    return count


@part
def _n_spans(problem: SegmentBatches, batch: int) -> int:
    """Return how many rows of segments a batch has."""
    heads, tokens = problem.design.batches.heads, _n_tokens(problem, batch)
    others = problem.parts.shape[0] * tokens + problem.n_lengths[batch]
    count: int = heads[batch + 1] - heads[batch] - others
    return count


@kernel
def fill_segments(problem: SegmentBatches, batch: int, workspace: ChainBatchWorkspace) -> None:
    """Lay the potentials out as the sums read them, with what is not learned."""
    room: SegmentRoom = workspace.sums
    unary, pair, rows = room.unary, room.pair, workspace.unary
    size, n_tokens, first = rows.shape[1], _n_tokens(problem, batch), problem.first[batch]
    begin, n_lengths = problem.offsets[first], problem.fixed_lengths.shape[0]
    for i in range(problem.parts.shape[0]):
        column = problem.parts[i] * size
        for t in range(n_tokens):
            for k in range(size):
                unary[t, column + k] = rows[i * n_tokens + t, k]
    for t in range(n_tokens):
        for k in range(size):
            unary[t, size + k] += unary[t, k]
    for i in range(size):
        for j in range(size):
            pair[i, j] = workspace.pair[0, i, j] + problem.fixed_transitions[i, j]
            room.of_pair[i, j] = 0.0
    at = problem.parts.shape[0] * n_tokens
    for d in range(problem.n_lengths[batch]):
        for k in range(size):
            pair[size + d, k] = rows[at + d, k] + problem.fixed_lengths[d, k]
            room.of_pair[size + d, k] = 0.0
    at += problem.n_lengths[batch]
    for n in range(_n_spans(problem, batch)):
        for k in range(size):
            pair[size + n_lengths + n, k] = rows[at + n, k]
            room.of_pair[size + n_lengths + n, k] = 0.0
    for t in range(n_tokens + 1):
        room.end_ptr[t] = problem.ends.ptr[begin + t]
        room.start_ptr[t] = problem.starts.ptr[begin + t]
    for s in range(problem.first[batch + 1] - first + 1):
        room.offsets[s] = problem.offsets[first + s] - begin


@kernel
def exponentiate_segments(problem: SegmentBatches, batch: int, room: SegmentRoom) -> int:
    """Write the exponentials; returns the longest sequence all of whose scores are moderate."""
    unary, pair, tables, longest = room.unary, room.pair, room.tables, _n_tokens(problem, batch)
    size, n_lengths = pair.shape[1], problem.fixed_lengths.shape[0]
    far = False
    for t in range(longest):
        top = -math.inf
        for c in range(2 * size):
            top = max(top, unary[t, c])
        shift = top if top > -math.inf else 0.0
        room.shift[t] = shift
        _exponentials(unary, t, 0, size, shift, tables.stay, t)
        _exponentials(unary, t, size, size, shift, tables.start, t)
        far = _exponentials(unary, t, 2 * size, size, 0.0, tables.finish, t) or far
        far = _exponentials(unary, t, 3 * size, size, 0.0, tables.alone, t) or far
    for n in range(_n_spans(problem, batch)):
        row = size + n_lengths + n
        far = _exponentials(pair, row, 0, size, 0.0, tables.spans, n) or far
    for i in range(size):
        far = _exponentials(pair, i, 0, size, 0.0, room.factors, i) or far
        for j in range(size):
            room.transposed[0, j, i] = room.factors[i, j]
    for d in range(problem.n_lengths[batch] - 1, -1, -1):
        if _exponentials(pair, size + d, 0, size, 0.0, tables.lengths, d):
            longest = d
    return 0 if far else longest


@part
def _exponentials(
    scores: FloatArray, row: int, first: int, size: int, shift: float, out: FloatArray, to: int
) -> bool:
    """``out[to, k] = exp(scores[row, first + k] - shift)``, 0 beyond; whether one is far."""
    far = False
    for k in range(out.shape[1]):
        score = scores[row, first + k] if k < size else -math.inf
        far = far or (abs(score) > LARGE and score > -math.inf)
        out[to, k] = min(score - shift, LARGE)
    for p in range(0, out.shape[1], WIDTH):
        store(exponential(load(out, to, p)), out, to, p)
    return far


@kernel
def sum_segments(problem: SegmentBatches, batch: int, room: SegmentRoom) -> None:
    """Sum the sequences whose status is OK; all again where the counts of one do not fit."""
    sums, first, again = room.sums, problem.first[batch], True
    while again:
        again = False
        for table in (room.flow_rows, sums.lengths, sums.spans):
            clear_rows(0, table.shape[0], table)
        for s in range(problem.first[batch + 1] - first):
            if sums.status[s] == OK and room.offsets[s] < room.offsets[s + 1]:
                weight = problem.weight[first + s]
                status = sum_segmentations(
                    room.scores_read, room.exponentials, s, weight, room.work, sums
                )
                sums.status[s] = UNDERFLOW if status == BROKEN else status
                again = again or status == BROKEN


@kernel
def write_counts(problem: SegmentBatches, batch: int, workspace: ChainBatchWorkspace) -> None:
    """Write what is expected of each row and of transitions."""
    room: SegmentRoom = workspace.sums
    rows, sums, of_pair, size = workspace.unary_counts, room.sums, room.of_pair, room.pair.shape[1]
    n_tokens, n_lengths = _n_tokens(problem, batch), problem.fixed_lengths.shape[0]
    for i in range(problem.parts.shape[0]):
        column = problem.parts[i] * size
        for t in range(n_tokens):
            for k in range(size):
                more = sums.counts[t, size + k] if column == 0 else 0.0
                rows[i * n_tokens + t, k] = sums.counts[t, column + k] + more
    at = problem.parts.shape[0] * n_tokens
    for d in range(problem.n_lengths[batch]):
        for k in range(size):
            rows[at + d, k] = sums.lengths[d, k] + of_pair[size + d, k]
    at += problem.n_lengths[batch]
    for n in range(_n_spans(problem, batch)):
        for k in range(size):
            rows[at + n, k] = sums.spans[n, k] + of_pair[size + n_lengths + n, k]
    for i in range(size):
        for j in range(size):
            flow = sums.flow[0, i, j] * room.factors[i, j]
            workspace.pair_counts[0, i, j] = flow + of_pair[i, j]


@implements(loss, SegmentBatches)
def loss_of_segments(problem: SegmentBatches, batch: int, workspace: ChainBatchWorkspace) -> float:
    """Return ``sum_s weight_s (log Z_s - score_s)``; its gradient replaces the counts."""
    value = expected_of_segments(problem, batch, workspace)
    for n in range(problem.true_ptr[batch], problem.true_ptr[batch + 1]):
        place, count = problem.true_places[n], problem.true_counts[n]
        value -= count * workspace.potentials[place]
        workspace.counts[place] -= count
    return value
