"""The k best paths of a linear chain, and beam search.

Shapes as in :mod:`crfkit.kernels.chain.arrays`. Each looks at one sequence.
"""

from __future__ import annotations

import math

from crfkit._types import CodeArray, FloatArray, IntArray
from crfkit.compiler.jit import kernel, part
from crfkit.kernels.chain.arrays import ChainScores

# Numbers of a search with a beam: the score of the best prefix and of the true one at each token,
# and 1 where the true prefix is still in the beam.
TOP, GOLD, ALIVE = 0, 1, 2
N_TRACES = 3


@kernel
def chain_n_best(
    scores: ChainScores,  # of one sequence of T tokens
    best: FloatArray,  # (T + 1, K, n) workspace: the best scores of prefixes that end with a label
    source: IntArray,  # (T + 1, K, n) workspace: where each comes from
    value: FloatArray,  # (n,) out: -inf where there are no more paths
    labels: CodeArray,  # (n, T) out
) -> None:
    """Find the n paths of the largest scores (list Viterbi: Seshadri and Sundberg 1994).

    ``best_t(j)`` are the n largest of ``unary_t(j) + best_{t-1}(i) + pair(i, j)`` over all ``i``
    and all n prefixes that end with it; of equal ones those of the lowest labels come first.
    """
    unary, pair, index = scores.unary, scores.pair, scores.transition_index
    (length, size), count = unary.shape, value.shape[0]
    stride = 0 if index.shape[0] == 1 else 1
    for t in range(length):
        for j in range(size):
            for r in range(count):
                best[t, j, r] = -math.inf
            if t == 0:
                best[t, j, 0] = unary[t, j]
                continue
            for i in range(size):
                added = pair[index[t * stride], i, j] + unary[t, j]
                for r in range(count):
                    score = best[t - 1, i, r] + added
                    if not score > best[t, j, count - 1]:
                        break  # those that follow are no better
                    insert(score, i * count + r, best, t, source, t, j)
    # One more token, of one label, after transitions of score 0, lists all paths.
    for r in range(count):
        best[length, 0, r] = -math.inf
    for j in range(size):
        for r in range(count):
            if not best[length - 1, j, r] > best[length, 0, count - 1]:
                break
            insert(best[length - 1, j, r], j * count + r, best, length, source, length, 0)
    for k in range(count):
        value[k] = best[length, 0, k]
        if value[k] > -math.inf:
            at = source[length, 0, k]
            for t in range(length - 1, -1, -1):
                labels[k, t] = at // count
                at = source[t, at // count, at % count] if t > 0 else 0


@part
def insert(score: float, came: int, best: FloatArray, t: int, source: IntArray, u: int,
           j: int) -> None:  # fmt: skip
    """Put a score behind equal ones among those of label `j` in row `t`, its source beside it."""
    place = best.shape[2] - 1
    while place > 0 and score > best[t, j, place - 1]:
        best[t, j, place] = best[t, j, place - 1]
        source[u, j, place] = source[u, j, place - 1]
        place -= 1
    best[t, j, place] = score
    source[u, j, place] = came


@kernel
def chain_beam(
    scores: ChainScores,
    s: int,  # the sequence
    width: int,  # so many prefixes are kept
    gold: CodeArray,  # (N,) true labels
    best: FloatArray,  # (N, K) workspace: scores of prefixes in the beam, by their last label
    source: CodeArray,  # (N, K) workspace: the label before
    rank: IntArray,  # (K,) workspace
    trace: FloatArray,  # (N, N_TRACES) out
    labels: CodeArray,  # (N,) out: the best labels at the last token
) -> None:
    """Find a path of a large score, of the `width` best prefixes at each token.

    Prefixes that end with the same label have the same future: only the best of them is kept. Of
    equal ones, those of the lowest labels are.
    """
    unary, pair, index = scores.unary, scores.pair, scores.transition_index
    begin, end, size = scores.offsets[s], scores.offsets[s + 1], unary.shape[1]
    stride = 0 if index.shape[0] == 1 else 1
    for t in range(begin, end):
        m = index[t * stride]
        for j in range(size):
            top, came = 0.0, 0
            if t > begin:
                top = -math.inf
                for i in range(size):
                    score = best[t - 1, i] + pair[m, i, j]
                    if score > top:
                        top, came = score, i
            best[t, j] = top + unary[t, j]
            source[t, j] = came
        trace[t, GOLD] = unary[t, gold[t]]
        alive = True
        if t > begin:
            trace[t, GOLD] += trace[t - 1, GOLD] + pair[m, gold[t - 1], gold[t]]
            alive = trace[t - 1, ALIVE] > 0.0 and source[t, gold[t]] == gold[t - 1]
        trace[t, TOP] = _prune(t, width, best, rank)
        trace[t, ALIVE] = 1.0 if alive and best[t, gold[t]] > -math.inf else 0.0
    beam_path(begin, end, best, source, labels)


@kernel
def _prune(t: int, width: int, best: FloatArray, rank: IntArray) -> float:
    """Keep the best scores of a row, ``-inf`` for all others; returns the best of all."""
    size, top = best.shape[1], -math.inf
    for j in range(size):
        top = max(top, best[t, j])
        rank[j] = 0
        for i in range(size):
            rank[j] += best[t, i] > best[t, j] or (best[t, i] == best[t, j] and i < j)
    for j in range(size):
        if rank[j] >= width:
            best[t, j] = -math.inf
    return top


@kernel
def beam_path(
    begin: int,  # the tokens begin:end of a sequence
    end: int,
    best: FloatArray,  # (N, K) of `chain_beam`
    source: CodeArray,  # (N, K)
    labels: CodeArray,  # (N,) out, from `begin` to `end`
) -> None:
    """Write the best prefix that ends there: ``argmax_j best(j)``, and back."""
    if begin == end:
        return
    label = 0
    for j in range(best.shape[1]):
        if best[end - 1, j] > best[end - 1, label]:
            label = j
    for t in range(end - 1, begin - 1, -1):
        labels[t] = label
        label = source[t, label]
