"""Scores and counts that are expected where the labels of tokens are independent of each other.

Each token has a share of every label, ``q_t(k)``. Of chains, forests and graphs. Shapes: ``N``
tokens, ``S`` sequences, ``K`` labels, ``M`` tables of pair scores, ``E`` pairs of labels that have
a score.
"""

from __future__ import annotations

from crfkit._types import FloatArray, IntArray
from crfkit.compiler.jit import kernel, part
from crfkit.kernels.chain.arrays import TransitionRows
from crfkit.kernels.sparse_chain import SparsePattern


@part
def _pair_score(
    rows: TransitionRows, e: int, stride: int, shares: FloatArray, pair: FloatArray
) -> float:
    """Return ``q_source(e)' pair_e q_target(e)``; 0 where no token is before."""
    total, before, t, m = 0.0, rows.source[e], rows.target[e], rows.table[e * stride]
    if before >= 0:
        for j in range(shares.shape[1]):
            share = shares[before, j]
            if share != 0.0:
                row = 0.0
                for k in range(shares.shape[1]):
                    row += shares[t, k] * pair[m, j, k]
                total += share * row
    return total


@kernel
def score_shares(
    rows: TransitionRows,
    offsets: IntArray,  # (S + 1,)
    shares: FloatArray,  # (N, K)
    unary: FloatArray,  # (N, K) finite
    pair: FloatArray,  # (M, K, K) finite
    out: FloatArray,  # (S,)
) -> None:
    """``out = sum_t <q_t, unary_t> + sum_e q_source(e)' pair_e q_target(e)`` of each sequence."""
    size, stride = shares.shape[1], 0 if rows.table.shape[0] == 1 else 1
    for s in range(out.shape[0]):
        total, e, stop = 0.0, rows.offsets[s], rows.offsets[s + 1]
        for t in range(offsets[s], offsets[s + 1]):
            for k in range(size):
                total += shares[t, k] * unary[t, k]
            while e < stop and rows.target[e] <= t:  # of chains in the order of `chain_score`
                total += _pair_score(rows, e, stride, shares, pair)
                e += 1
        while e < stop:
            total += _pair_score(rows, e, stride, shares, pair)
            e += 1
        out[s] = total


@kernel
def add_shares(
    rows: TransitionRows,
    shares: FloatArray,  # (N, K)
    weight: FloatArray,  # (S,)
    pair: FloatArray,  # (M, K, K) out, added to
) -> None:
    """``pair_e(j, k) += weight q_source(e)(j) q_target(e)(k)``: the adjoint in the pair scores."""
    size, stride = shares.shape[1], 0 if rows.table.shape[0] == 1 else 1
    for s in range(weight.shape[0]):
        for e in range(rows.offsets[s], rows.offsets[s + 1]):
            before, t, m = rows.source[e], rows.target[e], rows.table[e * stride]
            if before >= 0:
                for j in range(size):
                    share = weight[s] * shares[before, j]
                    if share != 0.0:
                        for k in range(size):
                            pair[m, j, k] += share * shares[t, k]


@kernel
def score_scored_shares(
    offsets: IntArray,  # (S + 1,)
    shares: FloatArray,  # (N, K)
    unary: FloatArray,  # (N, K) finite
    pair: FloatArray,  # (E,) finite, source by source
    pattern: SparsePattern,
    out: FloatArray,  # (S,)
) -> None:
    """Score as `score_shares` does, where few pairs of labels have a score."""
    for s in range(out.shape[0]):
        total = 0.0
        for t in range(offsets[s], offsets[s + 1]):
            for k in range(shares.shape[1]):
                total += shares[t, k] * unary[t, k]
            for j in range(shares.shape[1]) if t > offsets[s] else range(0):
                share = shares[t - 1, j]
                if share != 0.0:
                    for e in range(pattern.out_ptr[j], pattern.out_ptr[j + 1]):
                        total += share * shares[t, pattern.targets[e]] * pair[e]
        out[s] = total


@kernel
def add_scored_shares(
    offsets: IntArray,  # (S + 1,)
    shares: FloatArray,  # (N, K)
    weight: FloatArray,  # (S,)
    pattern: SparsePattern,
    pair: FloatArray,  # (E,) out, added to
) -> None:
    """Add as `add_shares` does, where few pairs of labels have a score."""
    for s in range(weight.shape[0]):
        for t in range(offsets[s] + 1, offsets[s + 1]):
            for j in range(shares.shape[1]):
                share = weight[s] * shares[t - 1, j]
                if share != 0.0:
                    for e in range(pattern.out_ptr[j], pattern.out_ptr[j + 1]):
                        pair[e] += share * shares[t, pattern.targets[e]]
