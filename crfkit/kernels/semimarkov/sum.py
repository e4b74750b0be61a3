"""Sums over the segmentations of sequences, in the linear domain.

A segmentation cuts a sequence into segments of one label each. The score of the segment of label
``k`` from token ``s`` to ``e``, of length ``d = e - s + 1``, is::

    begin_s(k) + stay_{s+1}(k) + ... + stay_e(k) + finish_e(k) + length_d(k) + span_{s, e}(k)

and ``alone_s(k)`` besides where the segment is that token alone. Few segments have a `span` score
of their own. The step from a segment to the next has a score
in the table of the token that the next one begins with.

Shapes: ``N`` tokens of ``S`` sequences, ``K`` labels, ``W`` the same filled up with zeros to whole
vectors of eight, ``M`` tables of steps, ``L`` lengths, ``R`` rows of scores of segments, of which
``n`` segments have one. Exponentials are called as the scores are. Lengths are tried from 1 on and
the scores of tokens are multiplied up on the way, so nothing of size ``T L K`` is ever stored.
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
from crfkit.kernels.chain.sum import OK, TINY, UNDERFLOW

# The expected counts of a sequence do not fit together: sum it by logarithms, and all others again.
BROKEN = -3

# Sums of probabilities outside of this range are not trusted, nor are labels of a token whose
# probabilities add up to something that is further from 1.
LEAST, MOST, CLOSE = 1e-200, 1e200, 1e-7


@part
def _ending(
    begins: FloatArray,
    going: FloatArray,
    stay: FloatArray,
    alone: FloatArray,
    t: int,
    row: int,
    p: int,
    most: int,
    lengths: FloatArray,
    length: IntArray,
    which: IntArray,
    low: int,
    high: int,
    spans: FloatArray,
) -> FloatArray:
    """``sum_d begins_{e-d+1} prod_u going_u stay_e length_d span``: segments that end at ``e``.

    Eight labels from `p` on; `row` is that of the token in the workspace, `t` that in the data.
    """
    value = multiply(multiply(load(begins, row, p), load(alone, t, p)), load(lengths, 0, p))
    q = low
    if q < high and length[q] == 1:
        value = multiply(value, load(spans, which[q], p))
        q += 1
    found = value
    run = load(stay, t, p)
    for d in range(2, most + 1):
        value = multiply(multiply(load(begins, row - d + 1, p), run), load(lengths, d - 1, p))
        if q < high and length[q] == d:
            value = multiply(value, load(spans, which[q], p))
            q += 1
        found = add(found, value)
        run = multiply(run, load(going, row - d + 1, p))
    return found


@part
def _scale(array: FloatArray, row: int, factor: float) -> None:
    """``array[row] *= factor``."""
    for p in range(0, array.shape[1], WIDTH):
        store(multiply(fill(factor), load(array, row, p)), array, row, p)


@kernel
def _can_end(
    unary: FloatArray,
    pair: FloatArray,
    m: int,
    first_length: int,
    n_lengths: int,
    length: IntArray,
    which: IntArray,
    low: int,
    high: int,
    table: IdArray,
    begin: int,
    e: int,
    alpha: FloatArray,
    k: int,
) -> bool:
    """Whether some segment of label `k` that is allowed, and can be reached, ends at token `e`."""
    size = pair.shape[1]
    stride = 0 if table.shape[0] == 1 else 1
    if unary[e, 2 * size + k] == -math.inf:
        return False
    q, first = low, first_length + n_lengths
    for d in range(1, min(e - begin + 1, n_lengths) + 1):
        s = e - d + 1
        if d > 1 and unary[s + 1, k] == -math.inf:
            return False
        allowed = pair[first_length + d - 1, k] > -math.inf and unary[s, size + k] > -math.inf
        if d == 1:
            allowed = allowed and unary[s, 3 * size + k] > -math.inf
        if q < high and length[q] == d:
            allowed = allowed and pair[first + which[q], k] > -math.inf
            q += 1
        if allowed and s == begin:
            return True
        if allowed:
            for i in range(size):
                step = pair[table[s * stride] * size + i, k]
                if alpha[s - begin, i] > 0.0 and step > -math.inf:
                    return True
    return False


@kernel
def _forward(
    stay: FloatArray,  # the arguments of `semimarkov_sum`
    start: FloatArray,
    finish: FloatArray,
    alone: FloatArray,
    steps: FloatArray,
    lengths: FloatArray,
    most: IntArray,
    spans: FloatArray,
    ptr: IntArray,
    length: IntArray,
    which: IntArray,
    unary: FloatArray,
    pair: FloatArray,
    table: IdArray,
    begin: int,
    end: int,
    alpha: FloatArray,
    begins: FloatArray,
    going: FloatArray,
    work: FloatArray,
    norm: FloatArray,
) -> int:
    """Scaled forward recurrence (Sarawagi and Cohen 2004, section 3); returns the status.

    ``alpha_{e+1}(k)`` is the share of label ``k`` in what ends at token ``e``; all that goes on is
    relative to the sum of what ends, ``norm``, which need not be 1 with what goes on.
    """
    size, width, n_lengths = pair.shape[1], alpha.shape[1], lengths.shape[0]
    stride = 0 if table.shape[0] == 1 else 1
    for p in range(0, width, WIDTH):
        store(fill(1.0), work, 0, p)
        store(fill(0.0), alpha, 0, p)
    for t in range(begin, end):
        row = t - begin
        if row > 0:
            strips_product(alpha, row, steps, table[t * stride], work, 0)
        mass = fill(0.0)
        for p in range(0, width, WIDTH):
            store(multiply(load(work, 0, p), load(start, t, p)), begins, row, p)
            found = _ending(
                begins, going, stay, alone, t, row, p, min(row + 1, most[p // WIDTH]), lengths,
                length, which, ptr[t], ptr[t + 1], spans,
            )  # fmt: skip
            found = multiply(found, load(finish, t, p))
            store(found, alpha, row + 1, p)
            mass = add(mass, found)
        whole = total(mass)
        norm[t] = 1.0 if whole == 0.0 else whole
        if not (LEAST <= norm[t] <= MOST):  # or no number
            return UNDERFLOW
        factor = 1.0 / norm[t]
        _scale(alpha, row + 1, factor)
        _scale(begins, row, factor)
        for p in range(0, width, WIDTH):
            store(multiply(fill(factor), load(stay, t, p)), going, row, p)
        for k in range(size):
            if stay[t, k] < TINY and unary[t, k] > -math.inf:
                return UNDERFLOW
            if begins[row, k] < TINY and work[0, k] > 0.0 and unary[t, size + k] > -math.inf:
                return UNDERFLOW
            if alpha[row + 1, k] < TINY and _can_end(
                unary, pair, table[t * stride], steps.shape[0] * size, n_lengths, length, which,
                ptr[t], ptr[t + 1], table, begin, t, alpha, k,
            ):  # fmt: skip
                return UNDERFLOW
    return OK


@part
def _starting(
    ends: FloatArray,
    going: FloatArray,
    begins: FloatArray,
    alone: FloatArray,
    t: int,
    row: int,
    p: int,
    most: int,
    lengths: FloatArray,
    length: IntArray,
    which: IntArray,
    low: int,
    high: int,
    spans: FloatArray,
    single: FloatArray,
    of_lengths: FloatArray,
    of_spans: FloatArray,
) -> FloatArray:
    """``sum_d prod_u going_u length_d span ends_{s+d-1}``: segments that begin at ``s``.

    Eight labels from `p` on. Adds the probability of each to what is expected of its length and
    row; `single` becomes that of the segment of one token.
    """
    share, q = load(begins, row, p), low
    run = where_positive(share, fill(1.0))  # where none begins, no product grows beyond bounds
    found = multiply(multiply(load(ends, row, p), run), load(lengths, 0, p))
    found = multiply(found, load(alone, t, p))
    if q < high and length[q] == 1:
        found = multiply(found, load(spans, which[q], p))
        store(multiply_add(share, found, load(of_spans, which[q], p)), of_spans, which[q], p)
        q += 1
    store(multiply(share, found), single, row, p)
    store(multiply_add(share, found, load(of_lengths, 0, p)), of_lengths, 0, p)
    for d in range(2, most + 1):
        run = multiply(run, load(going, row + d - 1, p))
        value = multiply(multiply(load(ends, row + d - 1, p), run), load(lengths, d - 1, p))
        if q < high and length[q] == d:
            value = multiply(value, load(spans, which[q], p))
            expected = multiply_add(share, value, load(of_spans, which[q], p))
            store(expected, of_spans, which[q], p)
            q += 1
        store(multiply_add(share, value, load(of_lengths, d - 1, p)), of_lengths, d - 1, p)
        found = add(found, value)
    return found


@kernel
def _backward(
    start: FloatArray,  # the arguments of `semimarkov_sum`
    finish: FloatArray,
    alone: FloatArray,
    turned: FloatArray,
    lengths: FloatArray,
    most: IntArray,
    spans: FloatArray,
    ptr: IntArray,
    length: IntArray,
    which: IntArray,
    table: IdArray,
    begin: int,
    end: int,
    weight: float,
    alpha: FloatArray,
    begins: FloatArray,
    going: FloatArray,
    ends: FloatArray,
    message: FloatArray,
    started: FloatArray,
    ended: FloatArray,
    single: FloatArray,
    work: FloatArray,
    norm: FloatArray,
    of_lengths: FloatArray,
    of_spans: FloatArray,
) -> None:
    """Scaled backward recurrence and expectations.

    ``ends`` becomes what follows a segment that ends at a token, ``message`` what follows a step
    into a segment that begins there; ``started`` and ``ended`` are the probabilities that one does,
    ``single`` that both do.
    """
    width = alpha.shape[1]
    stride = 0 if table.shape[0] == 1 else 1
    for p in range(0, width, WIDTH):
        store(fill(weight), work, 0, p)
    for t in range(end - 1, begin - 1, -1):
        row = t - begin
        if t < end - 1:
            strips_product(message, row + 1, turned, table[(t + 1) * stride], work, 0)
        for p in range(0, width, WIDTH):
            behind = where_positive(load(alpha, row + 1, p), load(work, 0, p))
            store(multiply(load(finish, t, p), behind), ends, row, p)
            store(multiply(load(alpha, row + 1, p), behind), ended, row, p)
            found = _starting(
                ends, going, begins, alone, t, row, p, min(end - t, most[p // WIDTH]), lengths,
                length, which, ptr[t], ptr[t + 1], spans, single, of_lengths, of_spans,
            )  # fmt: skip
            store(multiply(load(begins, row, p), found), started, row, p)
            entered = multiply(load(start, t, p), found)
            store(multiply(fill(1.0 / norm[t]), entered), message, row, p)


@kernel
def _add_steps(alpha: FloatArray, message: FloatArray, table: IdArray, begin: int, end: int,
               flow: FloatArray) -> None:  # fmt: skip
    """``flow(i, j) += alpha_s(i) message_s(j)`` for all tokens but the first."""
    width = alpha.shape[1]
    if table.shape[0] == 1:
        if end - begin > 1:
            strips_outer(alpha, 0, message, 1, end - begin, flow, table[0], 0, width)
        return
    for t in range(begin + 1, end):
        row = t - begin
        strips_outer(alpha, 0, message, row, row + 1, flow, table[t], 0, width)


@kernel
def _write(
    started: FloatArray,
    ended: FloatArray,
    single: FloatArray,
    begin: int,
    end: int,
    size: int,
    weight: float,
    work: FloatArray,
    out: FloatArray,
) -> bool:
    """Write the probabilities that a segment goes on, begins, ends, and is of one token.

    Returns whether those of the labels of each token add up to 1, as they do where nothing was
    lost on the way.
    """
    sound = True
    for k in range(size):
        work[0, k] = 0.0
    for t in range(begin, end):
        row, whole = t - begin, 0.0
        for k in range(size):
            first, last = started[row, k], ended[row, k]
            out[t, k] = work[0, k]
            out[t, size + k] = first
            out[t, 2 * size + k] = last
            out[t, 3 * size + k] = single[row, k]
            whole += work[0, k] + first
            inside = work[0, k] + first - last
            work[0, k] = inside if inside * weight > 0.0 else 0.0
        sound = sound and abs(whole - weight) <= CLOSE * abs(weight)
    return sound


@kernel
def _log_total(norm: FloatArray, shift: FloatArray, begin: int, end: int) -> float:
    """Add up ``log norm_t + shift_t``, in runs: long sums lose digits."""
    whole = 0.0
    for run in range(begin, end, 128):
        partial = 0.0
        for t in range(run, min(run + 128, end)):
            partial += math.log(norm[t]) + shift[t]
        whole += partial
    return whole


@kernel
def semimarkov_sum(
    stay: FloatArray,  # (N, W) exp(score of going on - shift)
    start: FloatArray,  # (N, W) exp(score of beginning - shift)
    finish: FloatArray,  # (N, W) exp(score of ending)
    alone: FloatArray,  # (N, W) exp(score of being a segment of one token)
    shift: FloatArray,  # (N,) the largest score of going on and beginning
    steps: FloatArray,  # (M, W, W)
    turned: FloatArray,  # (M, W, W) each transposed
    lengths: FloatArray,  # (L, W)
    most: IntArray,  # (W / 8,) the longest length of eight labels that is allowed
    spans: FloatArray,  # (R, W)
    end_ptr: IntArray,  # (N + 1,) which segments with a row end at a token
    end_length: IntArray,  # (n,) their lengths, rising
    end_row: IntArray,  # (n,) and rows
    start_ptr: IntArray,  # (N + 1,) which of them begin at a token
    start_length: IntArray,  # (n,)
    start_row: IntArray,  # (n,)
    unary: FloatArray,  # (N, 4 K) scores of going on, beginning, ending, being alone
    pair: FloatArray,  # (M K + L + R, K) scores of steps, lengths and rows
    table: IdArray,  # (N,) or (1,)
    offsets: IntArray,  # (S + 1,)
    todo: IntArray,  # (n,) the sequences to sum
    weight: FloatArray,  # (S,) factor of the expected counts
    alpha: FloatArray,  # (T + 1, W) workspace, as the next nine
    begins: FloatArray,  # (T, W)
    going: FloatArray,  # (T, W)
    ends: FloatArray,  # (T, W)
    message: FloatArray,  # (T, W)
    started: FloatArray,  # (T, W)
    ended: FloatArray,  # (T, W)
    single: FloatArray,  # (T, W)
    work: FloatArray,  # (1, W)
    norm: FloatArray,  # (N,)
    out: FloatArray,  # (N, 4 K) out: expected counts
    flow: FloatArray,  # (M, W, W) out, added to: expected steps divided by their exponentials
    of_lengths: FloatArray,  # (L, W) out, added to: expected lengths
    of_spans: FloatArray,  # (R, W) out, added to: expected rows
    log_z: FloatArray,  # (S,) out
    status: IntArray,  # (S,) out; the outputs of a sequence are only valid where it is OK
) -> None:
    """``log Z``, the logarithm of the sum over all segmentations, and the expected counts.

    In time ``O(T (L K + K**2))`` and memory ``O(T K)``.
    """
    size = pair.shape[1]
    for n in range(todo.shape[0]):
        s = todo[n]
        begin, end = offsets[s], offsets[s + 1]
        log_z[s], status[s] = 0.0, OK
        if begin == end:
            continue
        status[s] = _forward(
            stay, start, finish, alone, steps, lengths, most, spans, end_ptr, end_length, end_row,
            unary, pair, table, begin, end, alpha, begins, going, work, norm,
        )  # fmt: skip
        if status[s] != OK:
            continue
        last, reached = 0.0, 0
        for t in range(begin, end):
            last = 0.0
            for k in range(size):
                last += alpha[t - begin + 1, k]
            if last > 0.0:
                reached = t - begin + 1
        if last == 0.0:
            status[s] = begin + reached
            continue
        log_z[s] = _log_total(norm, shift, begin, end)
        _backward(
            start, finish, alone, turned, lengths, most, spans, start_ptr, start_length, start_row,
            table, begin, end, weight[s], alpha, begins, going, ends, message, started, ended,
            single, work, norm, of_lengths, of_spans,
        )  # fmt: skip
        if not _write(started, ended, single, begin, end, size, weight[s], work, out):
            status[s] = BROKEN
            continue
        _add_steps(alpha, message, table, begin, end, flow)
