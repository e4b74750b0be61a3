"""Recurrences on many short chains at once, for steps that share one table of pair scores.

The sequences are laid end to end into ``W`` lanes of ``T`` steps, a multiple of eight, so that the
inner loops run over lanes: they are long, and independent of each other, for any number of labels
``K``. ``token[t, b]`` is the token at step ``t`` of lane ``b``, -1 where there is none; ``fresh[t,
b]`` is 1 where no step leads into it, because a sequence begins or there is none.
"""

from __future__ import annotations

import math

from crfkit._types import CodeArray, FloatArray, IntArray
from crfkit.compiler.jit import kernel, loop
from crfkit.compiler.simd import WIDTH, fill, load_of, multiply_add, store_of, total


@kernel
def lanes_deal(
    offsets: IntArray,  # (S + 1,)
    order: IntArray,  # (n,) sequences, the longest first
    filled: IntArray,  # (W,) out: steps of each lane
    lane: IntArray,  # (n,) out
    start: IntArray,  # (n,) out: step at which the sequence begins
) -> None:
    """Put each sequence behind those of the lane that has fewest steps (Graham 1969)."""
    for b in range(filled.shape[0]):
        filled[b] = 0
    for n in range(order.shape[0]):
        best = 0
        for b in range(1, filled.shape[0]):
            if filled[b] < filled[best]:
                best = b
        lane[n] = best
        start[n] = filled[best]
        filled[best] += offsets[order[n] + 1] - offsets[order[n]]


@kernel
def lanes_lay(
    offsets: IntArray,  # (S + 1,)
    order: IntArray,  # (n,)
    lane: IntArray,  # (n,)
    start: IntArray,  # (n,)
    token: IntArray,  # (T, W) out
    fresh: FloatArray,  # (T, W) out
) -> None:
    """Write which token each lane has at each step."""
    for t in range(token.shape[0]):
        for b in range(token.shape[1]):
            token[t, b] = -1
            fresh[t, b] = 1.0
    for n in range(order.shape[0]):
        begin, end = offsets[order[n]], offsets[order[n] + 1]
        for t in range(begin, end):
            token[start[n] + t - begin, lane[n]] = t
            fresh[start[n] + t - begin, lane[n]] = 1.0 if t == begin else 0.0


@kernel
def lanes_load(
    unary: FloatArray,  # (N, K)
    token: IntArray,  # (T, W)
    scores: FloatArray,  # (T, K, W) out; 0 where there is no token
    shift: FloatArray,  # (T, W) out: the largest score of each token
) -> None:
    """``scores[t, k, b] = unary[token[t, b], k] - shift[t, b]``; only ``-inf`` stays as it is."""
    for t in range(token.shape[0]):
        for b in range(token.shape[1]):
            shift[t, b] = -math.inf
        for k in range(unary.shape[1]):
            for b in range(token.shape[1]):
                there = token[t, b] >= 0
                score = unary[token[t, b] if there else 0, k] if there else 0.0
                scores[t, k, b] = score
                shift[t, b] = score if score > shift[t, b] else shift[t, b]
        for k in range(unary.shape[1]):
            for b in range(token.shape[1]):
                top = shift[t, b]
                scores[t, k, b] -= top if top > -math.inf else 0.0


@loop
def _product(source: FloatArray, s: int, factor: FloatArray, out: FloatArray, o: int) -> None:
    """``out[o, j, b] = sum_i source[s, i, b] factor[i, j]``, two ``j`` at a time."""
    size = factor.shape[0]
    for b in range(0, source.shape[2], WIDTH):
        for j in range(0, size, 2):
            k = min(j + 1, size - 1)
            x, y = fill(0.0), fill(0.0)
            for i in range(size):
                z = load_of(source, s, i, b)
                x = multiply_add(fill(factor[i, j]), z, x)
                y = multiply_add(fill(factor[i, k]), z, y)
            store_of(x, out, o, j, b)
            store_of(y, out, o, k, b)


@kernel
def lanes_forward(
    node: FloatArray,  # (T, K, W) exp(unary - its largest)
    fresh: FloatArray,  # (T, W)
    factor: FloatArray,  # (K, K) exp(pair - its largest)
    alpha: FloatArray,  # (T, K, W) out: forward probabilities
    norm: FloatArray,  # (T, W) out
    inverse: FloatArray,  # (T, W) out: 1 / norm
    least: FloatArray,  # (T, W) out: the smallest one before the division by the norm
) -> None:
    """Scaled forward recurrence: see `chain._forward`, whose ``alpha_t`` this is."""
    size, width = factor.shape[0], fresh.shape[1]
    for t in range(fresh.shape[0]):
        if t > 0:
            _product(alpha, t - 1, factor, alpha, t)
        for b in range(width):
            norm[t, b] = 0.0
            least[t, b] = 1.0
        for j in range(size):
            for b in range(width):
                value = node[t, j, b] if fresh[t, b] > 0.0 else alpha[t, j, b] * node[t, j, b]
                alpha[t, j, b] = value
                norm[t, b] += value
                least[t, b] = value if value < least[t, b] else least[t, b]
        for b in range(width):
            inverse[t, b] = 1.0 / norm[t, b] if norm[t, b] > 0.0 else 0.0
        for j in range(size):
            for b in range(width):
                alpha[t, j, b] *= inverse[t, b]


@kernel
def lanes_drop(
    token: IntArray,  # (T, W)
    dropped: CodeArray,  # (N,) 1 for tokens of sequences to leave out
    node: FloatArray,  # (T, K, W) out: 0 there
    alpha: FloatArray,  # (T, K, W) out: 0 there
    norm: FloatArray,  # (T, W) out: 1 there
    inverse: FloatArray,  # (T, W) out: 1 there
) -> None:
    """Make sequences that another recurrence takes over contribute nothing."""
    for t in range(token.shape[0]):
        for b in range(token.shape[1]):
            if token[t, b] >= 0 and dropped[token[t, b]] == 1:
                norm[t, b] = 1.0
                inverse[t, b] = 1.0
                for k in range(node.shape[1]):
                    node[t, k, b] = 0.0
                    alpha[t, k, b] = 0.0


@loop
def _add_flow(alpha: FloatArray, node: FloatArray, t: int, flow: FloatArray) -> None:
    """``flow[i, j] += sum_b alpha[t, i, b] node[t + 1, j, b]``, in tiles of two times two."""
    size = flow.shape[0]
    for i in range(0, size, 2):
        k = min(i + 1, size - 1)
        for j in range(0, size, 2):
            m = min(j + 1, size - 1)
            p, q, u, v = fill(0.0), fill(0.0), fill(0.0), fill(0.0)
            for b in range(0, alpha.shape[2], WIDTH):
                w, x = load_of(alpha, t, i, b), load_of(alpha, t, k, b)
                y, z = load_of(node, t + 1, j, b), load_of(node, t + 1, m, b)
                p, q = multiply_add(w, y, p), multiply_add(w, z, q)
                u, v = multiply_add(x, y, u), multiply_add(x, z, v)
            flow[i, j] += total(p)
            if m > j:
                flow[i, m] += total(q)
            if k > i:
                flow[k, j] += total(u)
            if k > i and m > j:
                flow[k, m] += total(v)


@kernel
def lanes_backward(
    fresh: FloatArray,  # (T, W)
    ending: FloatArray,  # (T, W) weight of the sequence that ends there, else 0
    turned: FloatArray,  # (K, K) exp(pair - its largest), transposed
    inverse: FloatArray,  # (T, W) 1 / norm, from the forward recurrence
    node: FloatArray,  # (T, K, W) in: exp(unary - its largest), out: overwritten
    alpha: FloatArray,  # (T, K, W) in: forward probabilities, out: weighted marginals
    beta: FloatArray,  # (1, K, W) workspace
    flow: FloatArray,  # (K, K) out, added to: expected steps, before the product with factor
) -> None:
    """Scaled backward recurrence, and the marginals: see `chain._backward`.

    ``node_t`` turns into ``b_t``, which is 0 where no step leads into ``t``.
    """
    steps, width = fresh.shape
    for t in range(steps - 1, -1, -1):
        if t < steps - 1:
            _product(node, t + 1, turned, beta, 0)
            _add_flow(alpha, node, t, flow)
        for j in range(turned.shape[0]):
            for b in range(width):
                value = ending[t, b] + (beta[0, j, b] if t < steps - 1 else 0.0)
                alpha[t, j, b] *= value
                value *= node[t, j, b] * inverse[t, b]
                node[t, j, b] = 0.0 if fresh[t, b] > 0.0 else value


@kernel
def lanes_store(
    token: IntArray,  # (T, W)
    alpha: FloatArray,  # (T, K, W)
    marginals: FloatArray,  # (N, K) out
) -> None:
    """``marginals[token[t, b], k] = alpha[t, k, b]``."""
    for t in range(token.shape[0]):
        for k in range(alpha.shape[1]):
            for b in range(token.shape[1]):
                if token[t, b] >= 0:
                    marginals[token[t, b], k] = alpha[t, k, b]


@kernel
def lanes_log_total(
    offsets: IntArray,  # (S + 1,)
    order: IntArray,  # (n,)
    lane: IntArray,  # (n,)
    start: IntArray,  # (n,)
    log_norm: FloatArray,  # (T, W) log norm_t + shift_t
    pair_shift: float,
    log_z: FloatArray,  # (S,) out, for the sequences in `order`
) -> None:
    """``log Z = sum_t log norm_t + shift_t + pair_shift`` of each sequence.

    In runs: the rounding of a long sum grows with the number of terms added to one total.
    """
    for n in range(order.shape[0]):
        size, whole = offsets[order[n] + 1] - offsets[order[n]], 0.0
        for run in range(0, size, 128):
            partial = 0.0
            for t in range(run, min(run + 128, size)):
                partial += log_norm[start[n] + t, lane[n]] + (pair_shift if t > 0 else 0.0)
            whole += partial
        log_z[order[n]] = whole
