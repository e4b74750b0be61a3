"""Directional derivatives of the expected counts of linear chains: products with the Hessian.

Shapes as in :mod:`crfkit.kernels.chain.arrays`. What takes logarithms is left to the kernels of
forests. With tangents ``u`` of the unary and ``v`` of the pair scores, the derivative of a count is
its covariance with the tangent of the whole path, ``D(y) = sum_t u_t(y_t) + v_t(y_{t-1},
y_t)``. A constant that is added to all ``u_t(j)`` of a token changes no covariance: the forward
recurrence chooses it so that the mean of ``D`` over all beginnings of paths stays 0, because
otherwise the covariance would be a small difference of sums that grow with the length.
"""

from __future__ import annotations

from typing import NamedTuple

from crfkit._types import FloatArray, IdArray, IntArray
from crfkit.compiler.jit import kernel
from crfkit.kernels.chain.sum import OK, TINY, UNDERFLOW


class TangentFactors(NamedTuple):
    """Exponentials of the scores, and their derivatives. Read-only."""

    node: FloatArray  # (N, K) exp(unary - its largest)
    factor: FloatArray  # (M, K, K) exp(pair - its largest)
    slope: FloatArray  # (M, K, K) factor * v


class TangentWorkspace(NamedTuple):
    """Rooms of the recurrences in the linear domain."""

    tangent: FloatArray  # (N, K) in: u, out: u - its constant
    alpha: FloatArray  # (N, K) forward vectors
    norm: FloatArray  # (N,) their scales
    work: FloatArray  # (4, K)


class CountDerivatives(NamedTuple):
    """Derivatives of the expected counts, which the kernels write."""

    marginals: FloatArray  # (N, K) of the weighted marginals of labels
    flow: FloatArray  # (M, K, K) added to: expected transitions divided by factor
    flow_slope: FloatArray  # (M, K, K) added to: their derivatives without that of factor
    status: IntArray  # (S,) the other outputs of a sequence are only valid where it is OK


@kernel
def _forward_tangent(
    factors: TangentFactors,
    index: IdArray,  # (N,) or (1,)
    begin: int,
    end: int,
    workspace: TangentWorkspace,
    slopes: FloatArray,  # (N, K) out: derivatives of the forward vectors
) -> int:
    """Scaled forward recurrence and its derivative; returns whether to trust it.

    ``alpha'_t(j) = node_t(j) / norm_t sum_i (alpha'_{t-1}(i) factor(i, j) + alpha_{t-1}(i)
    slope(i, j)) + alpha_t(j) (u_t(j) - c_t)``, where ``c_t`` makes the sum over ``j`` 0
    """
    node, factor, slope = factors.node, factors.factor, factors.slope
    tangent, alpha, norm = workspace.tangent, workspace.alpha, workspace.norm
    size = node.shape[1]
    stride = 0 if index.shape[0] == 1 else 1
    for t in range(begin, end):
        for j in range(size):
            alpha[t, j] = 1.0 if t == begin else 0.0
            slopes[t, j] = 0.0
        if t > begin:
            m = index[t * stride]
            for i in range(size):
                a = alpha[t - 1, i]
                b = slopes[t - 1, i]
                for j in range(size):
                    alpha[t, j] += a * factor[m, i, j]
                    slopes[t, j] += b * factor[m, i, j] + a * slope[m, i, j]
        total = 0.0
        least = 1.0
        for j in range(size):
            alpha[t, j] *= node[t, j]
            slopes[t, j] *= node[t, j]
            total += alpha[t, j]
            least = min(least, alpha[t, j])
        # Also where labels are forbidden: such sequences are rare, and the other way is right too.
        if least < TINY:
            return UNDERFLOW
        norm[t] = total
        center = 0.0
        for j in range(size):
            alpha[t, j] /= total
            slopes[t, j] = slopes[t, j] / total + alpha[t, j] * tangent[t, j]
            center += slopes[t, j]
        for j in range(size):
            tangent[t, j] -= center
            slopes[t, j] -= alpha[t, j] * center
    return OK


@kernel
def _backward_tangent(
    factors: TangentFactors,
    index: IdArray,  # (N,) or (1,)
    begin: int,
    end: int,
    weight: float,
    workspace: TangentWorkspace,  # after the forward recurrence
    out: CountDerivatives,  # in: derivatives of the forward vectors, as the marginals
) -> None:
    """Scaled backward recurrence, its derivative, and the derivatives of the expected counts.

    ``b_t(j) = node_t(j) / norm_t beta_t(j)``, ``b'_t(j) = node_t(j) / norm_t beta'_t(j) + b_t(j)
    u_t(j)``, ``beta'_{t-1}(i) = sum_j factor(i, j) b'_t(j) + slope(i, j) b_t(j)``,
    ``P'(y_t = j) = alpha'_t(j) beta_t(j) + alpha_t(j) beta'_t(j)``,
    ``P'(y_{t-1} = i, y_t = j) = factor(i, j) (alpha'_{t-1}(i) b_t(j) + alpha_{t-1}(i) b'_t(j)) +
    slope(i, j) alpha_{t-1}(i) b_t(j)``
    """
    node, factor, slope = factors.node, factors.factor, factors.slope
    tangent, alpha, norm = workspace.tangent, workspace.alpha, workspace.norm
    work, slopes, flow, flow_slope = workspace.work, out.marginals, out.flow, out.flow_slope
    size = node.shape[1]
    stride = 0 if index.shape[0] == 1 else 1
    for j in range(size):
        work[0, j] = weight  # beta
        work[1, j] = 0.0  # beta'
    for t in range(end - 1, begin - 1, -1):
        for j in range(size):
            scaled = node[t, j] / norm[t]
            work[2, j] = scaled * work[0, j]  # b
            work[3, j] = scaled * work[1, j] + work[2, j] * tangent[t, j]  # b'
            slopes[t, j] = slopes[t, j] * work[0, j] + alpha[t, j] * work[1, j]
        if t == begin:
            break
        m = index[t * stride]
        for i in range(size):
            a = alpha[t - 1, i]
            b = slopes[t - 1, i]
            beta = 0.0
            beta_slope = 0.0
            for j in range(size):
                flow[m, i, j] += a * work[2, j]
                flow_slope[m, i, j] += b * work[2, j] + a * work[3, j]
                beta += factor[m, i, j] * work[2, j]
                beta_slope += factor[m, i, j] * work[3, j] + slope[m, i, j] * work[2, j]
            work[0, i] = beta
            work[1, i] = beta_slope


@kernel
def chain_hessian(
    factors: TangentFactors,
    index: IdArray,  # (N,) or (1,)
    offsets: IntArray,  # (S + 1,)
    weight: FloatArray,  # (S,)
    workspace: TangentWorkspace,
    out: CountDerivatives,
) -> None:
    """``d/de`` of the expected counts at the scores ``unary + e u`` and ``pair + e v``, ``e = 0``.

    Forward-backward on pairs of a value and its derivative (Tsuboi, Unno, Kashima and Okazaki
    2011): the product of the Hessian of ``log Z`` with a direction, at two to three times its
    price. The derivatives of the expected transitions are ``factor flow_slope + slope flow``.
    """
    for s in range(offsets.shape[0] - 1):
        begin, end = offsets[s], offsets[s + 1]
        out.status[s] = _forward_tangent(factors, index, begin, end, workspace, out.marginals)
        if out.status[s] == OK and begin < end:
            _backward_tangent(factors, index, begin, end, weight[s], workspace, out)
