"""Sums of chains of one token each.

Shapes as in :mod:`crfkit.kernels.chain.arrays`.
"""

from __future__ import annotations

from crfkit._types import FloatArray
from crfkit.compiler.jit import kernel


@kernel
def single_sum(
    node: FloatArray,  # (N, K) exponentials of the scores, the largest of each token is 1
    weight: FloatArray,  # (N,)
    marginals: FloatArray,  # (N, K) out: weighted
    total: FloatArray,  # (N,) out: the sums
) -> None:
    """``total[t] = sum_k node[t, k]``, and the shares of it."""
    for t in range(node.shape[0]):
        mass = 0.0
        for k in range(node.shape[1]):
            mass += node[t, k]
        total[t] = mass
        scale = weight[t] / mass
        for k in range(node.shape[1]):
            marginals[t, k] = node[t, k] * scale
