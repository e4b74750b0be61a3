"""A step of the dual for a batch on a chain, in two calls with the exponentials between them.

Threads that work on small batches spend their time handing the interpreter to each other unless
they stay in compiled code. These kernels only put others in a row.

Shapes: ``N`` tokens of ``S`` sequences, ``K`` labels; vectors of ``Q = N K + K K`` numbers hold the
unary scores (or counts), then those of steps.
"""

from __future__ import annotations

import math

from crfkit._jit import kernel
from crfkit._types import FloatArray, IdArray, IntArray, PtrArray
from crfkit.kernels.chain import chain_shift, chain_sum
from crfkit.kernels.touched import dual_change, dual_mix, touched_gather, touched_scatter


@kernel
def chain_dual_scores(
    places: IdArray,  # (n,) and the following: see touched_gather
    touched: IdArray,  # (n,)
    local: PtrArray,  # (C + 1,)
    col_ptr: PtrArray,  # (C + 1,)
    rows: IdArray,  # (nnz,)
    values: FloatArray,  # (nnz,) or (1,)
    step: int,
    weights: FloatArray,  # (P,)
    taken: FloatArray,  # (n,) workspace
    pair: FloatArray,  # (1, K, K) scores of steps
    before: FloatArray,  # (Q,) scores of the distributions
    rate: float,
    target: FloatArray,  # (Q,) out: scores of the weights
    target_unary: FloatArray,  # (N, K) the first part of target
    target_read: FloatArray,  # (Q,) target
    moved: FloatArray,  # (Q,) out: the mixture of both
    moved_unary: FloatArray,  # (N, K) the first part of moved
    exponent: FloatArray,  # (Q,) out: moved, each row minus its largest, the steps minus theirs
    exponent_unary: FloatArray,  # (N, K) the first part of exponent
    shift: FloatArray,  # (N,) out
    pair_shift: FloatArray,  # (1,) out
) -> None:
    """Compute ``(1 - rate) before + rate scores(w)``, and what is to be exponentiated."""
    unary_size = target_unary.shape[0] * target_unary.shape[1]
    for i in range(unary_size):
        target[i] = 0.0
    touched_gather(
        places, touched, local, col_ptr, rows, values, step, weights, taken, target_unary
    )
    size = pair.shape[1]
    for i in range(size):
        for j in range(size):
            target[unary_size + i * size + j] = pair[0, i, j]
    dual_mix(before, target_read, rate, moved)
    chain_shift(moved_unary, exponent_unary, shift)
    top = -math.inf
    for i in range(unary_size, moved.shape[0]):
        top = max(top, moved[i])
    pair_shift[0] = top
    for i in range(unary_size, moved.shape[0]):
        exponent[i] = moved[i] - top


@kernel
def chain_dual_change(
    target: FloatArray,  # (Q,) from chain_dual_scores, and the following
    moved: FloatArray,  # (Q,)
    moved_unary: FloatArray,  # (N, K) the first part of moved
    moved_pair: FloatArray,  # (1, K, K) the rest of it
    node: FloatArray,  # (N, K) exponentials of the first part of the exponents
    factor: FloatArray,  # (1, K, K) and of the rest
    turned: FloatArray,  # (1, K, K) the same, transposed
    shift: FloatArray,  # (N,)
    pair_shift: FloatArray,  # (1,)
    table: IdArray,  # (1,) and the following: see chain_sum
    offsets: IntArray,  # (S + 1,)
    which: IntArray,  # (S,)
    weight: FloatArray,  # (S,)
    norm: FloatArray,  # (N,) workspace
    work: FloatArray,  # (1, K) workspace
    alpha: FloatArray,  # (T, K) workspace
    message: FloatArray,  # (T, K) workspace
    flow: FloatArray,  # (1, K, K) workspace
    log_z: FloatArray,  # (S,) out
    status: IntArray,  # (S,) out
    before: FloatArray,  # (Q,) scores of the distributions
    expected_before: FloatArray,  # (Q,) their expected counts
    expected: FloatArray,  # (Q,) out: those of the mixture
    expected_unary: FloatArray,  # (N, K) the first part of expected
    expected_read: FloatArray,  # (Q,) expected
    residual: FloatArray,  # (Q,) out: the change of the counts
    residual_unary: FloatArray,  # (N, K) the first part of residual
    touched: IdArray,  # (n,) and the following: see touched_scatter
    local: PtrArray,  # (C + 1,)
    col_ptr: PtrArray,  # (C + 1,)
    rows: IdArray,  # (nnz,)
    values: FloatArray,  # (nnz,) or (1,)
    step: int,
    gradient: FloatArray,  # (n,) out, added to
) -> tuple[float, float]:
    """Compute the expected counts of the mixture, their change, and that of the features' counts.

    Returns ``moved . expected`` and ``residual . (target - before)``; where a status is not OK,
    nothing of it is valid.
    """
    size = factor.shape[1]
    unary_size = node.shape[0] * size
    for i in range(size):
        for j in range(size):
            flow[0, i, j] = 0.0
    chain_sum(
        moved_unary, node, shift, moved_pair, factor, turned, pair_shift, table, offsets, which,
        weight, norm, work, alpha, message, expected_unary, flow, log_z, status,
    )  # fmt: skip
    for i in range(size):
        for j in range(size):
            expected[unary_size + i * size + j] = flow[0, i, j] * factor[0, i, j]
    sums = dual_change(before, target, moved, expected_before, expected_read, residual)
    touched_scatter(touched, local, col_ptr, rows, values, step, residual_unary, gradient)
    return sums
