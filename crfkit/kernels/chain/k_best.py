"""The k best paths of linear chains, and beam search.

Shapes as in :mod:`crfkit.kernels.chain.arrays`.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from crfkit._types import CodeArray, FloatArray, IntArray
from crfkit.compiler.dispatch import implements
from crfkit.compiler.exact import exact_sum
from crfkit.compiler.jit import kernel
from crfkit.compiler.simd import WIDTH, add, load, load_of, store_at
from crfkit.kernels.chain.arrays import ChainScores
from crfkit.kernels.chain.max import viterbi_step
from crfkit.kernels.k_best import (
    BestPaths,
    PathLists,
    list_paths,
    node_before,
    score_choices,
    write,
)

# Numbers of a search with a beam: the score of the best prefix and of the true one at each token,
# and 1 where the true prefix is still in the beam.
TOP, GOLD, ALIVE = 0, 1, 2
N_TRACES = 3


class ChainPaths(NamedTuple):
    """One sequence of a chain: a node is a token and its label, or what follows the last token."""

    scores: ChainScores
    back: (
        FloatArray  # (M, K, W) the tables, each transposed, filled up to whole vectors; or (0, ..)
    )
    best: FloatArray  # (R, W) the best scores of prefixes that end with a label, then ``-inf``
    begin: int
    length: int


@implements(score_choices, ChainPaths)
def _score_labels(problem: ChainPaths, row: int, column: int, sums: FloatArray) -> int:
    """``best_{t-1}(i) + pair(i, j)`` for all labels before."""
    best, pair, index = problem.best, problem.scores.pair, problem.scores.transition_index
    size: int = pair.shape[1]
    if row == 0:
        sums[0] = 0.0
        return 1
    m = index[problem.begin + row if index.shape[0] > 1 and row < problem.length else 0]
    if row < problem.length and problem.back.shape[0] == 0:
        for i in range(size):
            sums[i] = exact_sum(best[row - 1, i], pair[m, i, column])
        return size
    for p in range(0, size, WIDTH):
        score = load(best, row - 1, p)
        if row < problem.length:
            score = add(score, load_of(problem.back, m, column, p))
        store_at(score, sums, p)
    return size


@implements(node_before, ChainPaths)
def _label_before(problem: ChainPaths, row: int, column: int, choice: int) -> tuple[int, int]:
    """Return the token before, and its label: the choice."""
    return row - 1, choice


@implements(write, ChainPaths)
def _write_labels(
    problem: ChainPaths, n: int, lists: PathLists, codes: CodeArray, place: int
) -> None:
    """Write the labels of a path."""
    for t in range(problem.length):
        codes[place + t] = lists.column[n, t]


@kernel
def chain_k_best(
    scores: ChainScores,
    back: FloatArray,  # as of `ChainPaths`
    most: IntArray,  # (S,) how many paths of each sequence
    best: FloatArray,  # (R, W) workspace: R at least the length of the longest sequence
    lists: PathLists,  # of R + 1 rows at least, of K choices
    found: BestPaths,  # out
) -> None:
    """Find the paths of the largest scores; of equal ones, the lowest last labels come first.

    The best scores of all prefixes are those of `chain_max`, and so is the best path.
    """
    unary, pair, index, offsets = scores.unary, scores.pair, scores.transition_index, scores.offsets
    stride, size = 0 if index.shape[0] == 1 else 1, unary.shape[1]
    first, place = 0, 0
    for t in range(best.shape[0]):
        for j in range(size, best.shape[1]):
            best[t, j] = -math.inf
    for s in range(offsets.shape[0] - 1):
        begin, length = offsets[s], offsets[s + 1] - offsets[s]
        for t in range(length):
            if t == 0:
                for j in range(size):
                    best[0, j] = unary[begin, j]
            else:
                m = index[(begin + t) * stride]
                viterbi_step(best, t - 1, pair, m, unary, begin + t, best, t)
        paths = ChainPaths(scores, back, best, begin, length)
        count = list_paths(paths, length, length, most[s], lists, first, place, found)
        found.counts[s] = count
        first += count
        place += count * length


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
