"""Transfer matrices of blocks of a long linear chain.

Shapes: ``n`` tokens of the block, ``K`` labels, ``M`` tables of pair scores, as in
:mod:`crfkit.kernels.chain.arrays`. Row ``i`` of a transfer matrix belongs to the label ``i`` of the
token before the block.
"""

from __future__ import annotations

import math

from crfkit._types import FloatArray
from crfkit.compiler.jit import kernel
from crfkit.kernels.chain.arrays import ChainScores
from crfkit.kernels.chain.sum import OK, TINY, UNDERFLOW

# Rows that agree this well, relatively, are the same but for rounding.
SAME = 1e-15
# How many tokens are between two comparisons of the rows.
COMPARE_EVERY = 32


@kernel
def _lost(rows: FloatArray, r: int, scores: ChainScores, m: int, t: int, fresh: FloatArray,
          entered: bool) -> bool:  # fmt: skip
    """Whether a label that can be reached has lost its probability to rounding."""
    for j in range(fresh.shape[0]):
        if fresh[j] < TINY and scores.unary[t, j] > -math.inf:
            if not entered:
                return True
            for i in range(fresh.shape[0]):
                if rows[r, i] > 0.0 and scores.pair[m, i, j] > -math.inf:
                    return True
    return False


@kernel
def _agree(rows: FloatArray, log_scale: FloatArray, lead: int) -> bool:
    """Whether all rows that are not dead are the same as the row `lead`."""
    for r in range(rows.shape[0]):
        if log_scale[r] > -math.inf:
            for j in range(rows.shape[0]):
                if abs(rows[r, j] - rows[lead, j]) > SAME * rows[lead, j]:
                    return False
    return True


@kernel
def block_transfer(
    scores: ChainScores,  # of the block
    node: FloatArray,  # (n, K) exp(unary - its largest)
    factor: FloatArray,  # (M, K, K) exp(pair - its largest)
    begins: bool,  # whether no transition leads into the first token
    fresh: FloatArray,  # (K,) workspace
    product: FloatArray,  # (K,) workspace
    rows: FloatArray,  # (K, K) out: each row sums to 1, or to 0 where no path is left
    log_scale: FloatArray,  # (K,) out
) -> int:
    """``exp(log_scale_i) rows(i, j) = sum over paths from i to j of the product of the factors``.

    The scaled forward recurrence from each label before the block. The chain forgets it: where all
    rows have become the same (their scales differ), one of them is carried on for all.
    """
    size, index = node.shape[1], scores.transition_index
    stride = 0 if index.shape[0] == 1 else 1
    for i in range(size):
        log_scale[i] = 0.0
        product[i] = 1.0
        for j in range(size):
            rows[i, j] = 1.0 if i == j else 0.0
    lead, last = 0, 1 if begins else size
    for t in range(node.shape[0]):
        m = index[t * stride]
        entered = t > 0 or not begins
        for r in range(lead, last):
            if log_scale[r] == -math.inf:
                continue
            total, least = 0.0, 1.0
            for j in range(size):
                mass = 0.0 if entered else 1.0
                if entered:
                    for i in range(size):
                        mass += rows[r, i] * factor[m, i, j]
                fresh[j] = mass * node[t, j]
                total += fresh[j]
                least = min(least, fresh[j])
            if least < TINY and _lost(rows, r, scores, m, t, fresh, entered):
                return UNDERFLOW
            product[r] *= total
            if product[r] < TINY or product[r] > 1.0 / TINY:
                log_scale[r] += math.log(product[r]) if total > 0.0 else -math.inf
                product[r] = 1.0
            inverse = 1.0 / total if total > 0.0 else 0.0
            for j in range(size):
                rows[r, j] = fresh[j] * inverse
        if t % COMPARE_EVERY == 0 and last - lead > 1:
            lead, last = _merge(rows, log_scale, product, lead, last)
    _spread(rows, log_scale, product, lead, last, begins)
    return OK


@kernel
def _merge(rows: FloatArray, log_scale: FloatArray, product: FloatArray, lead: int,
           last: int) -> tuple[int, int]:  # fmt: skip
    """Return the rows to go on with: one where all agree; the others keep how they differ."""
    while lead < last - 1 and log_scale[lead] == -math.inf:
        lead += 1
    if log_scale[lead] == -math.inf or not _agree(rows, log_scale, lead):
        return lead, last
    for r in range(last):
        if r != lead:
            log_scale[r] += math.log(product[r]) - log_scale[lead] - math.log(product[lead])
    return lead, lead + 1


@kernel
def _spread(rows: FloatArray, log_scale: FloatArray, product: FloatArray, lead: int, last: int,
            begins: bool) -> None:  # fmt: skip
    """Give the rows that were not carried on what became of the one that was."""
    size = rows.shape[0]
    for r in range(lead, last):
        log_scale[r] += math.log(product[r])
    if begins or last - lead == 1:
        for r in range(size):
            if r != lead:
                log_scale[r] = log_scale[lead] + (0.0 if begins else log_scale[r])
                for j in range(size):
                    rows[r, j] = rows[lead, j]
