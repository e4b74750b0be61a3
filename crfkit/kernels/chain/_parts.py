"""Sums over the sequences of a part of the data, within kernels that visit part after part.

For `entries` and `own` see the kernels that call these: `chain_dual` and `chain_average`.
"""

from __future__ import annotations

import math
from typing import Any

from crfkit._types import CodeArray, FloatArray
from crfkit.compiler.jit import inlined
from crfkit.kernels.chain.arrays import (
    ChainExponentials,
    ChainScores,
    ChainSums,
    ChainWorkspace,
)
from crfkit.kernels.chain.sum import OK, chain_sum, chain_sum_log
from crfkit.kernels.solvers._eg_rows import rows_exp, rows_top


@inlined
def loss_of_part(
    part: int,
    labels: CodeArray,  # (N,)
    entries: Any,
    scores: FloatArray,  # (n, K) from the first token of the part on
    scores_read: FloatArray,  # (n, K) the same
    counts: FloatArray,  # (n, K) out: expected counts of labels
    own: Any,
) -> float:
    """Return ``sum_s weight_s (log Z_s - score_s)``, given scores of steps in the workspace."""
    parts, offsets, weight = entries[0]
    pair, begin = own[1][1], offsets[parts[part]]
    loss = sum_part(part, 0, entries, scores, scores_read, counts, own)
    for s in range(parts[part], parts[part + 1]):
        score = 0.0
        for t in range(offsets[s], offsets[s + 1]):
            score += scores[t - begin, labels[t]]
            if t > offsets[s]:
                score += pair[labels[t - 1], labels[t]]
        loss -= weight[s] * score
    return loss


@inlined
def sum_part(
    part: int,
    base: int,  # row of the first token of the part in the scores
    entries: Any,
    scores: FloatArray,  # (n, K)
    scores_read: FloatArray,  # (n, K) the same
    counts: FloatArray,  # (n, K) out: expected counts of labels
    own: Any,
) -> float:
    """Return the weighted sum of log Z of a part, given scores of steps in the workspace.

    The expected steps are the sum of two tables: `flow` times `factor`, and `steps`.
    """
    parts, offsets, weight = entries[0]
    pair_read, factor_read, turned_read, pair_shift_read = own[2]
    flow, steps = own[3]
    (node, node_read, shift, shift_read, starts, starts_read, level, level_read, norm, work, alpha,
     message, log_work, log_z, status, every, zero) = own[4]  # fmt: skip
    first, last = parts[part], parts[part + 1]
    for row in range(base, base + offsets[last] - offsets[first]):
        shift[row] = rows_top(scores, row)
        rows_exp(scores, row, shift[row], node)
    _raise_steps(own)
    for s in range(every.shape[0]):  # sequences beyond the part are empty
        starts[s + 1] = base + offsets[min(first + s + 1, last)] - offsets[first]
        level[s] = weight[first + s] if first + s < last else 0.0
    starts[0] = base
    chain = ChainScores(scores_read, pair_read, zero, starts_read)
    exponentials = ChainExponentials(
        node_read, shift_read, factor_read, turned_read, pair_shift_read
    )
    workspace = ChainWorkspace(norm, work, alpha, message)
    sums = ChainSums(counts, flow, log_z, status)
    chain_sum(chain, exponentials, every, level_read, workspace, sums)
    whole, log_sums = 0.0, ChainSums(counts, steps, log_z, status)
    for s in range(last - first):
        if status[s] != OK:
            status[s] = chain_sum_log(chain, s, level_read, norm, log_work, log_sums)
            log_z[s] = log_z[s] if status[s] == OK else math.nan
        whole += level[s] * log_z[s]
    return whole


@inlined
def _raise_steps(own: Any) -> None:
    """Exponentiate the scores of steps, and turn them around; nothing is counted yet."""
    _, pair, factor, turned, pair_shift = own[1]
    flow, steps = own[3]
    size = pair.shape[0]
    top = -math.inf
    for i in range(size):
        top = max(top, rows_top(pair, i))
    pair_shift[0] = top
    for i in range(size):
        rows_exp(pair, i, top, factor)
        for j in range(size):
            turned[j, i] = factor[i, j]
            flow[0, i, j] = 0.0
            steps[0, i, j] = 0.0


@inlined
def count_steps(item: int, flows: FloatArray, own: Any) -> None:
    """Write the expected steps of a part."""
    factor, (flow, steps) = own[1][2], own[3]
    size = factor.shape[0]
    for i in range(size):
        for j in range(size):
            flows[item * size + i, j] = flow[0, i, j] * factor[i, j] + steps[0, i, j]
