"""Best paths of linear chains over copies of labels, of which few may follow one another.

Shapes as in :mod:`crfkit.kernels.chain.arrays`; ``P`` copies.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from crfkit._types import BoolArray, CodeArray, FloatArray, IntArray
from crfkit.compiler.jit import kernel
from crfkit.kernels.chain.arrays import ChainScores
from crfkit.kernels.chain.sum import OK


class LabelCopies(NamedTuple):
    """Copies of labels, of which only some may follow one another.

    Each has the scores of its label, where it is allowed. Read-only.
    """

    label: IntArray  # (P,) which of the K labels each is a copy of, rising
    begins: IntArray  # (P + 1,) where the copies are listed that each may follow, and the end
    source: IntArray  # (n,) these, rising for each
    first: BoolArray  # (P,) whether it may be the first of a sequence
    last: BoolArray  # (P,)


@kernel
def chain_copies_max(
    scores: ChainScores,  # of labels
    arcs: LabelCopies,
    best: FloatArray,  # (T, P) workspace, a row for each token of the longest sequence
    copies: CodeArray,  # (N,) out
    value: FloatArray,  # (S,) out
    status: IntArray,  # (S,) out
) -> None:
    """Find the path of the largest score; of equal ones, the lowest copies."""
    for s in range(value.shape[0]):
        begin, end = scores.offsets[s], scores.offsets[s + 1]
        value[s] = 0.0
        status[s] = OK
        for t in range(begin, end):
            alive = _extend(scores, arcs, t, t - begin, best)
            if not alive:
                status[s] = t
                break
        if begin < end and status[s] == OK:
            value[s] = _trace(scores, arcs, begin, end, best, copies)
            if value[s] == -math.inf:
                status[s] = end - 1


@kernel
def _extend(scores: ChainScores, arcs: LabelCopies, t: int, row: int, best: FloatArray) -> bool:
    """``best_t(p) = unary_t(label_p) + max_q (best_{t-1}(q) + pair(label_q, label_p))``.

    Returns whether there is a path up to here.
    """
    unary, pair, index = scores.unary, scores.pair, scores.transition_index
    m = index[t if index.shape[0] > 1 else 0]
    alive = False
    for p in range(best.shape[1]):
        label = arcs.label[p]
        top = 0.0 if arcs.first[p] else -math.inf
        if row > 0:
            top = -math.inf
            for place in range(arcs.begins[p], arcs.begins[p + 1]):
                q = arcs.source[place]
                score = best[row - 1, q] + pair[m, arcs.label[q], label]
                top = score if score > top else top
        best[row, p] = top + unary[t, label]
        if best[row, p] > -math.inf:
            alive = True
    return alive


@kernel
def _trace(scores: ChainScores, arcs: LabelCopies, begin: int, end: int, best: FloatArray,
           copies: CodeArray) -> float:  # fmt: skip
    """Follow the best path from its end; returns its score, ``-inf`` if it may not end there."""
    pair, index = scores.pair, scores.transition_index
    value, at = -math.inf, 0
    for p in range(best.shape[1]):
        if arcs.last[p] and best[end - begin - 1, p] > value:
            value = best[end - begin - 1, p]
            at = p
    for t in range(end - 1, begin, -1):
        copies[t] = at
        m = index[t if index.shape[0] > 1 else 0]
        label, top, came = arcs.label[at], -math.inf, 0
        for place in range(arcs.begins[at], arcs.begins[at + 1]):
            q = arcs.source[place]
            score = best[t - begin - 1, q] + pair[m, arcs.label[q], label]
            if score > top:
                top, came = score, q
        at = came
    copies[begin] = at
    return value
