"""The part that the best paths of a run of tokens of a long chain share: their survivor path.

Shapes: ``n`` tokens of the run, ``K`` labels, ``M`` tables of pair scores, as in
:mod:`crfkit.kernels.chain.arrays`. Of a chain of few labels whose transitions share one table,
``WIDTH`` runs of ``T`` tokens are computed side by side: each starts `distance` tokens behind the
one before.
"""

from __future__ import annotations

import math

from crfkit._types import CodeArray, FloatArray, IdArray
from crfkit.compiler.jit import kernel
from crfkit.compiler.simd import (
    WIDTH,
    add,
    fill,
    larger,
    load_of,
    multiply_add,
    store,
    store_of,
    subtract,
    where_positive,
)
from crfkit.kernels.chain.max import trace_back, viterbi_step

# No path is left.
DEAD = -1
# The labels before all labels of a token, on the best paths to these, are the digits of a number:
# the bits of a digit, and as many labels as that has room for.
BITS = 4
MAX_LABELS = 13


@kernel
def survivors_best(
    unary: FloatArray,  # (n, K) scores
    pair: FloatArray,  # (M, K, K) scores
    index: IdArray,  # (n,) or (1,)
    best: FloatArray,  # (n, K) in: the first row, out: the others
) -> None:
    """``best_t(j) = unary_t(j) + max_i (best_{t-1}(i) + pair(i, j))`` (Viterbi 1967)."""
    stride = 0 if index.shape[0] == 1 else 1
    for t in range(1, unary.shape[0]):
        viterbi_step(best, t - 1, pair, index[t * stride], unary, t, best, t)


@kernel
def survivors_meet(
    pair: FloatArray,  # (M, K, K) scores
    index: IdArray,  # (n,) or (1,)
    ends: bool,  # whether the sequence ends here, so that only its best label counts
    alive: CodeArray,  # (2, K) workspace
    best: FloatArray,  # (n, K) in and out: where paths meet, the other labels are taken away
    labels: CodeArray,  # (n,) out: the first labels of these paths, as far as they are known
) -> int:
    """Follow all best paths back to where they meet; returns how many tokens they share or DEAD."""
    size = best.shape[1]
    t: int = best.shape[0] - 1
    stride = 0 if index.shape[0] == 1 else 1
    top, only = -math.inf, 0
    for j in range(size):
        alive[1, j] = best[t, j] > -math.inf
        if best[t, j] > top:
            top, only = best[t, j], j
    count = _handed_on(alive)
    if count == 0:
        return DEAD
    if ends:
        count = 1
    while count > 1 and t > 0:
        count, only = _step_back(best, pair, index[t * stride], t - 1, alive)
        t -= 1
    if count > 1:
        return 0
    for j in range(size):
        if j != only:
            best[t, j] = -math.inf
    trace_back(best, pair, index, 0, t + 1, labels)
    return t + 1


@kernel
def _step_back(best: FloatArray, pair: FloatArray, m: int, t: int,
               alive: CodeArray) -> tuple[int, int]:  # fmt: skip
    """Mark the (lowest best) labels before the marked ones; returns how many, and one of them."""
    size, only = best.shape[1], 0
    for j in range(size):
        if alive[0, j] == 0:
            continue
        top = -math.inf
        for i in range(size):
            score = best[t, i] + pair[m, i, j]
            if score > top:
                top, only = score, i
        alive[1, only] = 1
    return _handed_on(alive), only


@kernel
def _handed_on(alive: CodeArray) -> int:
    """Put the second row of marks in place of the first; returns how many there are."""
    count = 0
    for i in range(alive.shape[1]):
        if alive[1, i]:
            count += 1
        alive[0, i] = alive[1, i]
        alive[1, i] = 0
    return count


@kernel
def lanes_best(
    unary: FloatArray,  # (n, K) scores, n >= T + (WIDTH - 1) distance
    pair: FloatArray,  # (M, K, K) scores
    m: int,  # the table of all transitions
    distance: int,
    best: FloatArray,  # (2, K, WIDTH) out: those of the last token in row (T - 1) % 2
    back: FloatArray,  # (T, WIDTH) out: the labels before, of equal ones the lowest
) -> None:
    """Compute the same recurrence for each run, and where its best transitions come from.

    ``back_t = sum_j 2^{BITS j} argmax_i (best_{t-1}(i) + pair(i, j))``
    """
    size = pair.shape[1]
    for t in range(back.shape[0]):
        now = t % 2
        for j in range(size):
            for b in range(WIDTH):
                best[now, j, b] = unary[b * distance + t, j]
        if t == 0:
            continue
        code, place = fill(0.0), 1.0
        for j in range(size):
            top, source = add(load_of(best, 1 - now, 0, 0), fill(pair[m, 0, j])), fill(0.0)
            for i in range(1, size):
                score = add(load_of(best, 1 - now, i, 0), fill(pair[m, i, j]))
                # Where both are -inf, their difference is nan, which is not positive.
                change = subtract(fill(float(i)), source)
                source = add(source, where_positive(subtract(score, top), change))
                top = larger(top, score)
            store_of(add(top, load_of(best, now, j, 0)), best, now, j, 0)
            code = multiply_add(fill(place), source, code)
            place *= 2.0**BITS
        store(code, back, t, 0)


@kernel
def lanes_meet(
    best: FloatArray,  # (2, K, WIDTH) from `lanes_best`
    back: FloatArray,  # (T, WIDTH) from `lanes_best`
    alive: CodeArray,  # (2, K) workspace
    label: CodeArray,  # (WIDTH,) workspace
    labels: CodeArray,  # (WIDTH, T) out: as of `survivors_meet`
    known: CodeArray,  # (WIDTH,) out: what `survivors_meet` returns
) -> None:
    """Follow the best paths of each run back to where they meet, and on."""
    for b in range(WIDTH):
        known[b], label[b] = _met(best, back, b, alive)
    for t in range(back.shape[0] - 1, -1, -1):
        for b in range(WIDTH):
            if t < known[b]:
                if t + 1 < known[b]:
                    label[b] = _source(back, t + 1, b, label[b])
                labels[b, t] = label[b]


@kernel
def _source(back: FloatArray, t: int, b: int, label: int) -> int:
    """Return the label before a label of token `t` on a best path."""
    return (int(back[t, b]) >> (BITS * int(label))) & ((1 << BITS) - 1)


@kernel
def _met(best: FloatArray, back: FloatArray, b: int, alive: CodeArray) -> tuple[int, int]:
    """Return of how many tokens of a run the labels are known, and the last of these labels."""
    size, t = best.shape[1], back.shape[0] - 1
    only = 0
    for j in range(size):
        alive[1, j] = best[t % 2, j, b] > -math.inf
        if alive[1, j]:
            only = j
    count = _handed_on(alive)
    if count == 0:
        return DEAD, 0
    while count > 1 and t > 0:
        for j in range(size):
            if alive[0, j]:
                only = _source(back, t, b, j)
                alive[1, only] = 1
        count = _handed_on(alive)
        t -= 1
    return (t + 1, only) if count == 1 else (0, 0)
