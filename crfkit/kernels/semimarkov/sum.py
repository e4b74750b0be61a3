"""Sums over the segmentations of sequences, in the linear domain, and by logarithms.

A segmentation cuts a sequence into segments of one label each. The score of the segment of label
``k`` from token ``s`` to ``e``, of length ``d = e - s + 1``, is::

    begin_s(k) + stay_{s+1}(k) + ... + stay_e(k) + finish_e(k) + length_d(k) + span_{s, e}(k)

and ``alone_s(k)`` besides where the segment is that token alone. Few segments have a `span` score
of their own. The transition from a segment to the next has a score in the table of the token that
the next one begins with.

Exponentials are called as the scores are. Lengths are tried from 1 on and the scores of tokens are
multiplied up on the way, so nothing of size ``T L K`` is ever stored.
"""

from __future__ import annotations

import math

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
    total,
    where_positive,
)
from crfkit.kernels._strips import strips_outer, strips_product
from crfkit.kernels.chain.sum import OK, TINY, UNDERFLOW, log_total
from crfkit.kernels.semimarkov.arrays import (
    LogSegmentWorkspace,
    SegmentExponentials,
    SegmentPrefixes,
    SegmentScores,
    SegmentSums,
    SegmentTables,
    SegmentWorkspace,
    SpanIndex,
    reached,
)

# The expected counts of a sequence do not fit together: sum it by logarithms, and all others again.
BROKEN = -3

# Sums of probabilities outside of this range are not trusted, nor are labels of a token whose
# probabilities add up to something that is further from 1.
LEAST, MOST, CLOSE = 1e-200, 1e200, 1e-7


@part
def _ending(
    tables: SegmentTables,
    ends: SpanIndex,
    prefixes: SegmentPrefixes,
    t: int,
    row: int,
    p: int,
    most: int,
) -> FloatArray:
    """``sum_d begins_{e-d+1} prod_u going_u stay_e length_d span``: what ends at the token `t`."""
    begins, going, lengths = prefixes.begins, prefixes.going, tables.lengths
    q, high = ends.ptr[t], ends.ptr[t + 1]
    value = multiply(multiply(load(begins, row, p), load(tables.alone, t, p)), load(lengths, 0, p))
    if q < high and ends.length[q] == 1:
        value = multiply(value, load(tables.spans, ends.row[q], p))
        q += 1
    sums = value
    run = load(tables.stay, t, p)
    for d in range(2, most + 1):
        value = multiply(multiply(load(begins, row - d + 1, p), run), load(lengths, d - 1, p))
        if q < high and ends.length[q] == d:
            value = multiply(value, load(tables.spans, ends.row[q], p))
            q += 1
        sums = add(sums, value)
        run = multiply(run, load(going, row - d + 1, p))
    return sums


@part
def _scale(array: FloatArray, row: int, factor: float) -> None:
    """``array[row] *= factor``."""
    for p in range(0, array.shape[1], WIDTH):
        store(multiply(fill(factor), load(array, row, p)), array, row, p)


@kernel
def _can_end(
    scores: SegmentScores, begin: int, e: int, origin: int, alpha: FloatArray, k: int
) -> bool:
    """Whether some segment of label `k` that is allowed, and can be reached, ends at token `e`."""
    unary, pair, index, ends = scores.unary, scores.pair, scores.transition_index, scores.ends
    size, lengths = pair.shape[1], scores.n_transitions
    stride = 0 if index.shape[0] == 1 else 1
    if unary[e, 2 * size + k] == -math.inf:
        return False
    q, high = ends.ptr[e], ends.ptr[e + 1]
    for d in range(1, min(e - begin + 1, scores.n_lengths) + 1):
        s = e - d + 1
        if d > 1 and unary[s + 1, k] == -math.inf:
            return False
        allowed = pair[lengths + d - 1, k] > -math.inf and unary[s, size + k] > -math.inf
        if d == 1:
            allowed = allowed and unary[s, 3 * size + k] > -math.inf
        if q < high and ends.length[q] == d:
            allowed = allowed and pair[lengths + scores.n_lengths + ends.row[q], k] > -math.inf
            q += 1
        if allowed and s == begin:
            return True
        if allowed:
            for i in range(size):
                score = pair[index[s * stride] * size + i, k]
                if alpha[s - origin, i] > 0.0 and score > -math.inf:
                    return True
    return False


@part
def _is_lost(
    scores: SegmentScores,
    tables: SegmentTables,
    begin: int,
    t: int,
    origin: int,
    prefixes: SegmentPrefixes,
) -> bool:
    """Whether rounding may have lost a probability at a token that is not 0."""
    size, row, unary, alpha = scores.pair.shape[1], t - origin, scores.unary, prefixes.alpha
    for k in range(size):
        if tables.stay[t, k] < TINY and unary[t, k] > -math.inf:
            return True
        reached = prefixes.vector[0, k] > 0.0 and unary[t, size + k] > -math.inf
        if prefixes.begins[row, k] < TINY and reached:
            return True
        if alpha[row + 1, k] < TINY and _can_end(scores, begin, t, origin, alpha, k):
            return True
    return False


@kernel
def forward(
    scores: SegmentScores,
    tables: SegmentTables,
    begin: int,
    end: int,
    origin: int,  # the token of row 0
    prefixes: SegmentPrefixes,
) -> int:
    """Scaled forward recurrence (Sarawagi and Cohen 2004, section 3); returns the status.

    ``alpha_{e+1}(k)`` is the share of label ``k`` in what ends at token ``e``, whose sum is `norm`.
    """
    alpha, begins, vector = prefixes.alpha, prefixes.begins, prefixes.vector
    norm, index, width = prefixes.norm, scores.transition_index, prefixes.alpha.shape[1]
    stride = 0 if index.shape[0] == 1 else 1
    for p in range(0, width, WIDTH):
        store(fill(1.0), vector, 0, p)
        store(fill(0.0), alpha, begin - origin, p)
    for t in range(begin, end):
        row = t - origin
        if t > begin:
            strips_product(alpha, row, tables.transitions, index[t * stride], vector, 0)
        mass = fill(0.0)
        for p in range(0, width, WIDTH):
            store(multiply(load(vector, 0, p), load(tables.start, t, p)), begins, row, p)
            most = min(t - begin + 1, tables.longest[p // WIDTH])
            ended = _ending(tables, scores.ends, prefixes, t, row, p, most)
            ended = multiply(ended, load(tables.finish, t, p))
            store(ended, alpha, row + 1, p)
            mass = add(mass, ended)
        whole = total(mass)
        norm[t] = 1.0 if whole == 0.0 else whole
        if not (LEAST <= norm[t] <= MOST):  # or no number
            return UNDERFLOW
        factor = 1.0 / norm[t]
        _scale(alpha, row + 1, factor)
        _scale(begins, row, factor)
        for p in range(0, width, WIDTH):
            store(multiply(fill(factor), load(tables.stay, t, p)), prefixes.going, row, p)
        if _is_lost(scores, tables, begin, t, origin, prefixes):
            return UNDERFLOW
    return OK


@part
def _starting(
    tables: SegmentTables,
    starts: SpanIndex,
    workspace: SegmentWorkspace,
    t: int,
    row: int,
    p: int,
    most: int,
    out: SegmentSums,
) -> FloatArray:
    """``sum_d prod_u going_u length_d span ends_{s+d-1}``: what begins at the token `t`.

    The probability of each is added to its length and row; `single` is that of the shortest one.
    """
    ends, going, lengths = workspace.ends, workspace.prefixes.going, tables.lengths
    share, q, high = load(workspace.prefixes.begins, row, p), starts.ptr[t], starts.ptr[t + 1]
    run = where_positive(share, fill(1.0))  # where none begins, no product grows beyond bounds
    sums = multiply(multiply(load(ends, row, p), run), load(lengths, 0, p))
    sums = multiply(sums, load(tables.alone, t, p))
    if q < high and starts.length[q] == 1:
        own = starts.row[q]
        sums = multiply(sums, load(tables.spans, own, p))
        store(multiply_add(share, sums, load(out.spans, own, p)), out.spans, own, p)
        q += 1
    store(multiply(share, sums), workspace.single, row, p)
    store(multiply_add(share, sums, load(out.lengths, 0, p)), out.lengths, 0, p)
    for d in range(2, most + 1):
        run = multiply(run, load(going, row + d - 1, p))
        value = multiply(multiply(load(ends, row + d - 1, p), run), load(lengths, d - 1, p))
        if q < high and starts.length[q] == d:
            own = starts.row[q]
            value = multiply(value, load(tables.spans, own, p))
            store(multiply_add(share, value, load(out.spans, own, p)), out.spans, own, p)
            q += 1
        store(multiply_add(share, value, load(out.lengths, d - 1, p)), out.lengths, d - 1, p)
        sums = add(sums, value)
    return sums


@kernel
def _backward(
    scores: SegmentScores,
    exponentials: SegmentExponentials,
    begin: int,
    end: int,
    weight: float,
    workspace: SegmentWorkspace,
    out: SegmentSums,
) -> None:
    """Scaled backward recurrence and expectations."""
    prefixes, message = workspace.prefixes, workspace.message
    alpha, vector = prefixes.alpha, prefixes.vector
    tables, transposed, starts = exponentials.tables, exponentials.transposed, scores.starts
    index, width = scores.transition_index, alpha.shape[1]
    stride = 0 if index.shape[0] == 1 else 1
    for p in range(0, width, WIDTH):
        store(fill(weight), vector, 0, p)
    for t in range(end - 1, begin - 1, -1):
        row = t - begin
        if t < end - 1:
            strips_product(message, row + 1, transposed, index[(t + 1) * stride], vector, 0)
        for p in range(0, width, WIDTH):
            behind = where_positive(load(alpha, row + 1, p), load(vector, 0, p))
            store(multiply(load(tables.finish, t, p), behind), workspace.ends, row, p)
            store(multiply(load(alpha, row + 1, p), behind), workspace.ended, row, p)
            most = min(end - t, tables.longest[p // WIDTH])
            follow = _starting(tables, starts, workspace, t, row, p, most, out)
            store(multiply(load(prefixes.begins, row, p), follow), workspace.started, row, p)
            entered = multiply(load(tables.start, t, p), follow)
            store(multiply(fill(1.0 / prefixes.norm[t]), entered), message, row, p)


@part
def _add_transitions(workspace: SegmentWorkspace, index: IdArray, begin: int, end: int,
                     flow: FloatArray) -> None:  # fmt: skip
    """``flow(i, j) += alpha_s(i) message_s(j)`` for all tokens but the first."""
    alpha, message = workspace.prefixes.alpha, workspace.message
    width = alpha.shape[1]
    if index.shape[0] == 1:
        if end - begin > 1:
            strips_outer(alpha, 0, message, 1, end - begin, flow, index[0], 0, width)
        return
    for t in range(begin + 1, end):
        row = t - begin
        strips_outer(alpha, 0, message, row, row + 1, flow, index[t], 0, width)


@part
def _write(
    workspace: SegmentWorkspace,
    begin: int,
    end: int,
    size: int,
    weight: float,
    out: FloatArray,  # (N, 4 K)
) -> bool:
    """Write the probabilities that a segment goes on, begins, ends, and is of one token.

    Returns whether those of each token add up to 1, as they do where nothing was lost on the way.
    """
    inside, sound = workspace.prefixes.vector, True
    for k in range(size):
        inside[0, k] = 0.0
    for t in range(begin, end):
        row, whole = t - begin, 0.0
        for k in range(size):
            first, last = workspace.started[row, k], workspace.ended[row, k]
            out[t, k] = inside[0, k]
            out[t, size + k] = first
            out[t, 2 * size + k] = last
            out[t, 3 * size + k] = workspace.single[row, k]
            whole += inside[0, k] + first
            rest = inside[0, k] + first - last
            inside[0, k] = rest if rest * weight > 0.0 else 0.0
        sound = sound and abs(whole - weight) <= CLOSE * abs(weight)
    return sound


@kernel
def semimarkov_sum(
    scores: SegmentScores,
    exponentials: SegmentExponentials,
    sequences: IntArray,  # (n,) the sequences to sum
    weight: FloatArray,  # (S,) factor of the expected counts
    workspace: SegmentWorkspace,
    out: SegmentSums,
) -> None:
    """``log Z`` over all segmentations, and expected counts, in time ``O(T (L K + K**2))``."""
    for n in range(sequences.shape[0]):
        s = sequences[n]
        out.log_z[s], out.status[s] = 0.0, OK
        if scores.offsets[s] < scores.offsets[s + 1]:
            out.status[s] = sum_segmentations(scores, exponentials, s, weight[s], workspace, out)


@kernel
def sum_segmentations(
    scores: SegmentScores,
    exponentials: SegmentExponentials,
    s: int,
    weight: float,
    workspace: SegmentWorkspace,
    out: SegmentSums,
) -> int:
    """Sum one sequence that is not empty as `semimarkov_sum` does; returns its status."""
    begin: int = scores.offsets[s]
    end, size = scores.offsets[s + 1], scores.pair.shape[1]
    prefixes = workspace.prefixes
    status: int = forward(scores, exponentials.tables, begin, end, begin, prefixes)
    if status != OK:
        return status
    position = reached(prefixes.alpha, 0.0, begin, end, begin, size)
    if position < end:
        return position
    out.log_z[s] = log_total(prefixes.norm, exponentials.shift, begin, end)
    _backward(scores, exponentials, begin, end, weight, workspace, out)
    if not _write(workspace, begin, end, size, weight, out.counts):
        return BROKEN
    _add_transitions(workspace, scores.transition_index, begin, end, out.flow)
    return OK


@kernel
def log_add(most: float, rest: float, score: float) -> tuple[float, float]:
    """Add ``exp(score)`` to a sum ``exp(most) rest``."""
    if score == -math.inf:
        return most, rest
    if score > most:
        return score, rest * math.exp(most - score) + 1.0
    return most, rest + math.exp(score - most)


@kernel
def log_of(most: float, rest: float) -> float:
    """Return the logarithm of ``exp(most) rest``."""
    return most + math.log(rest) if most > -math.inf else -math.inf


@kernel
def forward_log(
    scores: SegmentScores, begin: int, end: int, workspace: LogSegmentWorkspace
) -> None:
    """``alpha_{e+1}(k)``: log of the share of ``k`` in what ends at ``e``, whose sum is `norm`."""
    unary, pair, index, spans = scores.unary, scores.pair, scores.transition_index, scores.ends
    alpha, begins, norm = workspace.alpha, workspace.begins, workspace.norm
    size, lengths = pair.shape[1], scores.n_transitions
    rows = lengths + scores.n_lengths
    stride = 0 if index.shape[0] == 1 else 1
    for t in range(begin, end):
        row, first = t - begin, index[t * stride] * size
        whole, rest = -math.inf, 0.0
        for k in range(size):
            most, sums = (0.0, 1.0) if row == 0 else (-math.inf, 0.0)
            if row > 0:
                for i in range(size):
                    most, sums = log_add(most, sums, alpha[row, i] + pair[first + i, k])
            begins[row, k] = unary[t, size + k] + log_of(most, sums)
            run, q = 0.0, spans.ptr[t]
            most, sums = -math.inf, 0.0
            for d in range(1, min(row + 1, scores.n_lengths) + 1):
                score = begins[row - d + 1, k] + run + pair[lengths + d - 1, k]
                if d == 1:
                    score += unary[t, 3 * size + k]
                if q < spans.ptr[t + 1] and spans.length[q] == d:
                    score += pair[rows + spans.row[q], k]
                    q += 1
                most, sums = log_add(most, sums, score)
                run += unary[t - d + 1, k] - (norm[t - d] if d <= row else 0.0)
            alpha[row + 1, k] = unary[t, 2 * size + k] + log_of(most, sums)
            whole, rest = log_add(whole, rest, alpha[row + 1, k])
        norm[t] = log_of(whole, rest) if whole > -math.inf else 0.0
        for k in range(size):
            alpha[row + 1, k] -= norm[t]


@kernel
def semimarkov_sum_log(
    scores: SegmentScores,
    s: int,
    weight: float,
    workspace: LogSegmentWorkspace,
    out: FloatArray,  # (N, 4 K) out: expected counts
    of_pair: FloatArray,  # (M K + L + R, K) out, added to
    log_z: FloatArray,  # (S,) out
) -> int:
    """Sum one sequence that is not empty; returns `OK`, or the position that no segment leads to.

    What goes on is relative to the sum of what ends: logarithms do not grow with the length.
    """
    unary, pair, index, starts = scores.unary, scores.pair, scores.transition_index, scores.starts
    begin: int = scores.offsets[s]
    end, lengths = scores.offsets[s + 1], scores.n_transitions
    alpha, begins, norm = workspace.alpha, workspace.begins, workspace.norm
    ends, beta, size = workspace.ends, workspace.beta, pair.shape[1]
    stride = 0 if index.shape[0] == 1 else 1
    forward_log(scores, begin, end, workspace)
    position = reached(alpha, -math.inf, begin, end, begin, size)
    if position < end:
        return position
    log_z[s] = 0.0
    for t in range(begin, end):
        log_z[s] += norm[t]
    for k in range(size):
        beta[0, k] = 0.0
    for t in range(end - 1, begin - 1, -1):
        row, first = t - begin, index[t * stride] * size
        for k in range(size):
            ends[row, k] = unary[t, 2 * size + k] + beta[0, k]
            out[t, 2 * size + k] = weight * math.exp(alpha[row + 1, k] + beta[0, k])
            run, q, share = -norm[t], starts.ptr[t], begins[row, k]
            most, sums = -math.inf, 0.0
            for d in range(1, min(end - t, scores.n_lengths) + 1):
                score = run + pair[lengths + d - 1, k] + ends[row + d - 1, k]
                if d == 1:
                    score += unary[t, 3 * size + k]
                place = -1
                if q < starts.ptr[t + 1] and starts.length[q] == d:
                    place = lengths + scores.n_lengths + starts.row[q]
                    score += pair[place, k]
                    q += 1
                amount = weight * math.exp(share + score) if share > -math.inf else 0.0
                if d == 1:
                    out[t, 3 * size + k] = amount
                of_pair[lengths + d - 1, k] += amount
                if place >= 0:
                    of_pair[place, k] += amount
                most, sums = log_add(most, sums, score)
                if d < end - t:
                    run += unary[t + d, k] - norm[t + d]
            beta[1, k] = log_of(most, sums)  # what follows a beginning here
            begun = share + beta[1, k] if share > -math.inf else -math.inf
            out[t, size + k] = weight * math.exp(begun)
        for i in range(size):
            most, sums = -math.inf, 0.0
            for j in range(size):
                score = pair[first + i, j] + unary[t, size + j] + beta[1, j]
                most, sums = log_add(most, sums, score)
                if row > 0 and alpha[row, i] > -math.inf:
                    of_pair[first + i, j] += weight * math.exp(alpha[row, i] + score)
            beta[0, i] = log_of(most, sums)
    _inside(out, begin, end, size, weight)
    return OK


@kernel
def _inside(out: FloatArray, begin: int, end: int, size: int, weight: float) -> None:
    """``P(goes on at t) = P(goes on at t - 1) + P(begins at t - 1) - P(ends at t - 1)``."""
    for k in range(size):
        out[begin, k] = 0.0
    for t in range(begin + 1, end):
        for k in range(size):
            inside = out[t - 1, k] + out[t - 1, size + k] - out[t - 1, 2 * size + k]
            out[t, k] = inside if inside * weight > 0.0 else 0.0
