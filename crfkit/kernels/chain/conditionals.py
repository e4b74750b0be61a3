"""Scores of each label of a token, all other labels given, and the adjoint of these.

Of chains, forests and graphs. Shapes: ``N`` tokens, ``K`` labels, ``M`` tables of pair scores,
``E`` pairs of labels that have a score.
"""

from __future__ import annotations

from crfkit._types import CodeArray, FloatArray, IntArray
from crfkit.compiler.jit import kernel
from crfkit.kernels.chain.arrays import TransitionRows
from crfkit.kernels.sparse_chain import SparsePattern


@kernel
def add_neighbors(
    rows: TransitionRows,
    labels: CodeArray,  # (N,)
    pair: FloatArray,  # (M, K, K)
    transposed: FloatArray,  # (M, K, K) the same, each table transposed
    out: FloatArray,  # (N, K) added to
) -> None:
    """``out_t(k) += pair(y_s, k)`` and ``out_s(k) += pair(k, y_t)`` for each source s, target t."""
    stride = 0 if rows.table.shape[0] == 1 else 1
    for e in range(rows.source.shape[0]):
        s, t = rows.source[e], rows.target[e]
        if s >= 0:
            m, before, after = rows.table[e * stride], labels[s], labels[t]
            for k in range(out.shape[1]):
                out[t, k] += pair[m, before, k]
            for k in range(out.shape[1]):
                out[s, k] += transposed[m, after, k]


@kernel
def add_to_neighbors(
    rows: TransitionRows,
    labels: CodeArray,  # (N,)
    weight: FloatArray,  # (N, K)
    pair: FloatArray,  # (M, K, K) out, added to
    transposed: FloatArray,  # (M, K, K) out, added to: what is to be added, transposed
) -> None:
    """``pair(y_s, k) += weight_t(k)``, ``pair(k, y_t) += weight_s(k)``: the adjoint."""
    stride = 0 if rows.table.shape[0] == 1 else 1
    for e in range(rows.source.shape[0]):
        s, t = rows.source[e], rows.target[e]
        if s >= 0:
            m, before, after = rows.table[e * stride], labels[s], labels[t]
            for k in range(weight.shape[1]):
                pair[m, before, k] += weight[t, k]
            for k in range(weight.shape[1]):
                transposed[m, after, k] += weight[s, k]


@kernel
def add_scored_neighbors(
    offsets: IntArray,  # (S + 1,)
    labels: CodeArray,  # (N,)
    pair: FloatArray,  # (E,) source by source
    pair_in: FloatArray,  # (E,) the same, target by target
    pattern: SparsePattern,
    out: FloatArray,  # (N, K) added to
) -> None:
    """Add as `add_neighbors` does, where few pairs of labels have a score."""
    for s in range(offsets.shape[0] - 1):
        for t in range(offsets[s] + 1, offsets[s + 1]):
            before, after = labels[t - 1], labels[t]
            for e in range(pattern.out_ptr[before], pattern.out_ptr[before + 1]):
                out[t, pattern.targets[e]] += pair[e]
            for e in range(pattern.in_ptr[after], pattern.in_ptr[after + 1]):
                out[t - 1, pattern.sources[e]] += pair_in[e]


@kernel
def add_to_scored_neighbors(
    offsets: IntArray,  # (S + 1,)
    labels: CodeArray,  # (N,)
    weight: FloatArray,  # (N, K)
    pattern: SparsePattern,
    pair: FloatArray,  # (E,) out, added to
    pair_in: FloatArray,  # (E,) out, added to: target by target
) -> None:
    """Add as `add_to_neighbors` does, where few pairs of labels have a score."""
    for s in range(offsets.shape[0] - 1):
        for t in range(offsets[s] + 1, offsets[s + 1]):
            before, after = labels[t - 1], labels[t]
            for e in range(pattern.out_ptr[before], pattern.out_ptr[before + 1]):
                pair[e] += weight[t, pattern.targets[e]]
            for e in range(pattern.in_ptr[after], pattern.in_ptr[after + 1]):
                pair_in[e] += weight[t - 1, pattern.sources[e]]
