"""Directional derivatives of the expected counts of linear chains: products with the Hessian.

Shapes and the table of each step are those of :mod:`crfkit.kernels.chain.sum`. With tangents ``u``
of the unary and ``v`` of the pair scores, the derivative of an expected count is its covariance
with the tangent of the whole path, ``D(y) = sum_t u_t(y_t) + v_t(y_{t-1}, y_t)``. A constant that
is added to all ``u_t(j)`` of a token changes no covariance: the forward recurrences choose it so
that the mean of ``D`` over all beginnings of paths stays 0, because otherwise the covariance would
be a small difference of sums that grow with the length.
"""

from __future__ import annotations

import math

from crfkit._types import FloatArray, IdArray, IntArray
from crfkit.compiler.jit import kernel
from crfkit.kernels.chain.sum import NOTHING, OK, TINY, UNDERFLOW


@kernel
def _forward_tangent(
    node: FloatArray,  # (N, K) exp(unary - its largest)
    factor: FloatArray,  # (M, K, K) exp(pair - its largest)
    slope: FloatArray,  # (M, K, K) factor * v
    table: IdArray,  # (N,) or (1,)
    begin: int,
    end: int,
    tangent: FloatArray,  # (N, K) in: u, out: u - its constant
    alpha: FloatArray,  # (N, K) out: forward probabilities
    moved: FloatArray,  # (N, K) out: their derivatives
    norm: FloatArray,  # (N,) out
) -> int:
    """Scaled forward recurrence and its derivative; returns whether to trust it.

    ``alpha'_t(j) = node_t(j) / norm_t sum_i (alpha'_{t-1}(i) factor(i, j) + alpha_{t-1}(i)
    slope(i, j)) + alpha_t(j) (u_t(j) - c_t)``, where ``c_t`` makes the sum over ``j`` 0
    """
    size = node.shape[1]
    stride = 0 if table.shape[0] == 1 else 1
    for t in range(begin, end):
        for j in range(size):
            alpha[t, j] = 1.0 if t == begin else 0.0
            moved[t, j] = 0.0
        if t > begin:
            m = table[t * stride]
            for i in range(size):
                a = alpha[t - 1, i]
                b = moved[t - 1, i]
                for j in range(size):
                    alpha[t, j] += a * factor[m, i, j]
                    moved[t, j] += b * factor[m, i, j] + a * slope[m, i, j]
        total = 0.0
        least = 1.0
        for j in range(size):
            alpha[t, j] *= node[t, j]
            moved[t, j] *= node[t, j]
            total += alpha[t, j]
            least = min(least, alpha[t, j])
        # Also where labels are forbidden: such sequences are rare, and the other way is right too.
        if least < TINY:
            return UNDERFLOW
        norm[t] = total
        center = 0.0
        for j in range(size):
            alpha[t, j] /= total
            moved[t, j] = moved[t, j] / total + alpha[t, j] * tangent[t, j]
            center += moved[t, j]
        for j in range(size):
            tangent[t, j] -= center
            moved[t, j] -= alpha[t, j] * center
    return OK


@kernel
def _backward_tangent(
    node: FloatArray,  # (N, K)
    factor: FloatArray,  # (M, K, K)
    slope: FloatArray,  # (M, K, K) factor * v
    table: IdArray,  # (N,) or (1,)
    begin: int,
    end: int,
    norm: FloatArray,  # (N,)
    weight: float,
    tangent: FloatArray,  # (N, K) u - its constant
    alpha: FloatArray,  # (N, K)
    work: FloatArray,  # (4, K) workspace
    moved: FloatArray,  # (N, K) in: alpha', out: weighted derivatives of the marginals
    flow: FloatArray,  # (M, K, K) out, added to: expected steps divided by factor
    flow_moved: FloatArray,  # (M, K, K) out, added to: derivatives without that of factor
) -> None:
    """Scaled backward recurrence, its derivative, and the derivatives of the expected counts.

    ``b_t(j) = node_t(j) / norm_t beta_t(j)``, ``b'_t(j) = node_t(j) / norm_t beta'_t(j) + b_t(j)
    u_t(j)``, ``beta'_{t-1}(i) = sum_j factor(i, j) b'_t(j) + slope(i, j) b_t(j)``,
    ``P'(y_t = j) = alpha'_t(j) beta_t(j) + alpha_t(j) beta'_t(j)``,
    ``P'(y_{t-1} = i, y_t = j) = factor(i, j) (alpha'_{t-1}(i) b_t(j) + alpha_{t-1}(i) b'_t(j)) +
    slope(i, j) alpha_{t-1}(i) b_t(j)``
    """
    size = node.shape[1]
    stride = 0 if table.shape[0] == 1 else 1
    for j in range(size):
        work[0, j] = weight  # beta
        work[1, j] = 0.0  # beta'
    for t in range(end - 1, begin - 1, -1):
        for j in range(size):
            scaled = node[t, j] / norm[t]
            work[2, j] = scaled * work[0, j]  # b
            work[3, j] = scaled * work[1, j] + work[2, j] * tangent[t, j]  # b'
            moved[t, j] = moved[t, j] * work[0, j] + alpha[t, j] * work[1, j]
        if t == begin:
            break
        m = table[t * stride]
        for i in range(size):
            a = alpha[t - 1, i]
            b = moved[t - 1, i]
            beta = 0.0
            beta_moved = 0.0
            for j in range(size):
                flow[m, i, j] += a * work[2, j]
                flow_moved[m, i, j] += b * work[2, j] + a * work[3, j]
                beta += factor[m, i, j] * work[2, j]
                beta_moved += factor[m, i, j] * work[3, j] + slope[m, i, j] * work[2, j]
            work[0, i] = beta
            work[1, i] = beta_moved


@kernel
def chain_curvature(
    node: FloatArray,  # (N, K) exp(unary - its largest)
    factor: FloatArray,  # (M, K, K) exp(pair - its largest)
    slope: FloatArray,  # (M, K, K) factor * v
    table: IdArray,  # (N,) or (1,)
    offsets: IntArray,  # (S + 1,)
    weight: FloatArray,  # (S,)
    tangent: FloatArray,  # (N, K) u; overwritten
    alpha: FloatArray,  # (N, K) workspace
    norm: FloatArray,  # (N,) workspace
    work: FloatArray,  # (4, K) workspace
    moved: FloatArray,  # (N, K) out: weighted derivatives of the marginals
    flow: FloatArray,  # (M, K, K) out, added to
    flow_moved: FloatArray,  # (M, K, K) out, added to: with `flow` those of the expected steps
    status: IntArray,  # (S,) out; outputs of a sequence are only valid where it is OK
) -> None:
    """``d/de`` of the expected counts at the scores ``unary + e u`` and ``pair + e v``, ``e = 0``.

    Forward-backward on pairs of a value and its derivative (Tsuboi, Unno, Kashima and Okazaki
    2011): the product of the Hessian of ``log Z`` with a direction, at two to three times its
    price.
    """
    for s in range(offsets.shape[0] - 1):
        begin = offsets[s]
        end = offsets[s + 1]
        status[s] = _forward_tangent(
            node, factor, slope, table, begin, end, tangent, alpha, moved, norm
        )
        if status[s] == OK and begin < end:
            _backward_tangent(node, factor, slope, table, begin, end, norm, weight[s], tangent,
                              alpha, work, moved, flow, flow_moved)  # fmt: skip


@kernel
def _share(values: FloatArray, tangents: FloatArray, out: FloatArray, j: int) -> None:
    """``out[0, j] = log sum_k exp(values[k])`` and ``out[1, j]``, the mean of the tangents."""
    top = -math.inf
    for k in range(values.shape[1]):
        if values[0, k] > top:
            top = values[0, k]
    out[0, j] = top
    out[1, j] = 0.0
    if top == -math.inf:
        return
    total = 0.0
    mean = 0.0
    for k in range(values.shape[1]):
        below = values[0, k] - top
        if below > NOTHING:
            part = math.exp(below)
            total += part
            mean += part * tangents[0, k]
    out[0, j] = top + math.log(total)
    out[1, j] = mean / total


@kernel
def chain_curvature_log(
    unary: FloatArray,  # (N, K) scores
    pair: FloatArray,  # (M, K, K) scores
    slope: FloatArray,  # (M, K, K) v
    table: IdArray,  # (N,) or (1,)
    begin: int,
    end: int,
    weight: float,
    tangent: FloatArray,  # (N, K) u; overwritten
    alpha: FloatArray,  # (N, K) workspace: logarithms of forward probabilities
    mean: FloatArray,  # (N, K) workspace: mean of D over the beginnings of paths to each label
    norm: FloatArray,  # (N,) workspace
    values: FloatArray,  # (1, K) workspace
    tangents: FloatArray,  # (1, K) workspace
    back: FloatArray,  # (2, K) workspace: log beta and the mean of D over the rest of the path
    work: FloatArray,  # (2, K) workspace
    moved: FloatArray,  # (N, K) out
    steps: FloatArray,  # (M, K, K) out, added to: derivatives of the expected steps
) -> int:
    """Compute the same for one sequence by sums of logarithms; returns its status.

    The covariance of a count with ``D`` is its probability times the mean of ``D`` over the paths
    that have it, as the mean over all paths is 0 by the choice of constants.
    """
    size = unary.shape[1]
    stride = 0 if table.shape[0] == 1 else 1
    for t in range(begin, end):
        for j in range(size):
            work[0, j] = unary[t, j]
            work[1, j] = tangent[t, j]
            if t > begin:
                m = table[t * stride]
                for i in range(size):
                    values[0, i] = alpha[t - 1, i] + pair[m, i, j]
                    tangents[0, i] = mean[t - 1, i] + slope[m, i, j]
                _share(values, tangents, back, j)
                work[0, j] += back[0, j]
                work[1, j] += back[1, j]
        _share(work, values, back, 0)
        norm[t] = back[0, 0]
        if norm[t] == -math.inf:
            return t
        center = 0.0
        for j in range(size):
            alpha[t, j] = work[0, j] - norm[t]
            if alpha[t, j] > NOTHING:
                center += math.exp(alpha[t, j]) * work[1, j]
        for j in range(size):
            mean[t, j] = work[1, j] - center
            tangent[t, j] -= center
    for j in range(size):
        back[0, j] = 0.0
        back[1, j] = 0.0
    for t in range(end - 1, begin - 1, -1):
        for j in range(size):
            log_share = alpha[t, j] + back[0, j]
            share = math.exp(log_share) if log_share > NOTHING else 0.0
            moved[t, j] = weight * share * (mean[t, j] + back[1, j])
            work[0, j] = unary[t, j] + back[0, j] - norm[t]
            work[1, j] = tangent[t, j] + back[1, j]
        if t == begin:
            break
        m = table[t * stride]
        for i in range(size):
            for j in range(size):
                values[0, j] = pair[m, i, j] + work[0, j]
                tangents[0, j] = slope[m, i, j] + work[1, j]
                log_share = alpha[t - 1, i] + values[0, j]
                if log_share > NOTHING:
                    share = math.exp(log_share)
                    steps[m, i, j] += weight * share * (mean[t - 1, i] + tangents[0, j])
            _share(values, tangents, back, i)
    return OK
