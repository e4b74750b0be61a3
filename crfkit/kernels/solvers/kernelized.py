"""Pairwise Frank-Wolfe of one sequence whose potentials of labels are sums of kernel values.

Shapes: ``W`` labels in whole vectors of eight, ``M`` labelings, ``Q`` tokens of the longest one.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from crfkit._types import CodeArray, FloatArray, IdArray, IntArray
from crfkit.compiler.jit import kernel, part
from crfkit.kernels.chain.max import viterbi_path

# A share of a labeling below this is none.
NO_SHARE = 1e-14
# A squared norm that is further below 0, as a share of what it is the sum of, is no rounding.
NEGATIVE = -1e-8


class KernelProblem(NamedTuple):
    """What is known of all sequences."""

    n_labels: int
    costs: FloatArray  # (N, K) of labels
    learned: FloatArray  # (K, W) 1 for transitions that have a weight


class KernelState(NamedTuple):
    """The dual variables of all sequences, and the potentials they amount to."""

    unary: FloatArray  # (K, N) potentials of all tokens
    pair: FloatArray  # (K, W) weights of transitions
    dual: FloatArray  # (N, K) coefficients of tokens


class KernelVertices(NamedTuple):
    """The labelings of a sequence that have a share, and room for more."""

    labels: CodeArray  # (M, T)
    alphas: FloatArray  # (M,) the share of each
    number: IntArray  # (1,) how many there are


class KernelBlock(NamedTuple):
    """A sequence."""

    begin: int  # its first token
    rows: FloatArray  # (T, N) kernel values of its tokens with all
    vertices: KernelVertices
    values: FloatArray  # (M,) workspace


class KernelWorkspace(NamedTuple):
    """The state, and room for one sequence."""

    state: KernelState
    pair: FloatArray  # (1, K, W) that of the state
    slots: IdArray  # (1,) which of these tables transitions have: 0
    scores: FloatArray  # (Q, W)
    best: FloatArray  # (Q, W)
    moved: FloatArray  # (Q, W)
    change: FloatArray  # (Q, W)
    flows: FloatArray  # (K, W) zeros
    path: CodeArray  # (Q,)


@kernel
def kernelized_updates(
    block: KernelBlock,
    factor: float,  # the weight of the sequence, divided by 2 c2
    most: int,  # updates at most
    enough: float,  # share of the first gap that ends them
    problem: KernelProblem,
    workspace: KernelWorkspace,
) -> float:
    """Move shares from the least to the worst labeling; returns the gap of the sequence before.

    NaN where a squared norm is negative. For ``D = f(least) - f(worst)`` the dual rises most for
    the share ``(a(worst) - a(least)) / (factor |D|^2)``, where ``a`` are scores with costs.
    """
    begin, rows, vertices, values = block
    length, first, state = rows.shape[0], 0.0, workspace.state
    _begin(block, problem, workspace)
    for step in range(most):
        viterbi_path(workspace.scores, workspace.pair, workspace.slots, 0, length,
                     workspace.best, workspace.path)  # fmt: skip
        top = workspace.best[length - 1, workspace.path[length - 1]]
        source, mean = _least(block, workspace)
        gap = top - mean
        if step == 0:
            first = gap
        if not top - values[source] > 0.0 or (step > 0 and gap <= enough * first):
            break
        square, terms = _difference(block, source, problem, workspace)
        if square < NEGATIVE * terms:
            return math.nan
        share = vertices.alphas[source]
        if factor * square > 0.0:
            share = min(share, (top - values[source]) / (factor * square))
        _shift(block, factor * share, source, problem.learned, workspace)
        _pass_share(block, source, share, workspace)
    for t in range(length):
        for k in range(problem.n_labels):
            amount = workspace.change[t, k]
            if amount != 0.0:
                state.dual[begin + t, k] += amount
                for n in range(rows.shape[1]):
                    state.unary[k, n] += amount * rows[t, n]
    return first


@part
def _begin(block: KernelBlock, problem: KernelProblem, workspace: KernelWorkspace) -> None:
    """Write the potentials of a sequence, costs added; nothing has changed yet."""
    for t in range(block.rows.shape[0]):
        for k in range(workspace.scores.shape[1]):
            score, n = 0.0, block.begin + t
            if k < problem.n_labels:
                score = workspace.state.unary[k, n] + problem.costs[n, k]
            workspace.scores[t, k] = score
            workspace.change[t, k] = 0.0


@part
def _least(block: KernelBlock, workspace: KernelWorkspace) -> tuple[int, float]:
    """Write the score of each labeling; returns the least one and the mean of all."""
    source, mean, values, (labels, alphas, number) = 0, 0.0, block.values, block.vertices
    for c in range(number[0]):
        value = 0.0
        for t in range(block.rows.shape[0]):
            value += workspace.scores[t, labels[c, t]]
            if t > 0:
                value += workspace.state.pair[labels[c, t - 1], labels[c, t]]
        values[c] = value
        mean += alphas[c] * value
        if value < values[source]:
            source = c
    return source, mean


@part
def _difference(
    block: KernelBlock, source: int, problem: KernelProblem, workspace: KernelWorkspace
) -> tuple[float, float]:
    """Write the scores that ``D = f(source) - f(path)`` gives tokens; ``|D|^2``, and its size."""
    begin, rows, (labels, _, _), terms, square = block.begin, block.rows, block.vertices, 0.0, 0.0
    path, moved, length = workspace.path, workspace.moved, rows.shape[0]
    flows, learned = workspace.flows, problem.learned
    for t in range(length):
        for k in range(moved.shape[1]):
            moved[t, k] = 0.0
    for r in range(length):
        if labels[source, r] != path[r]:
            for t in range(length):
                value = rows[r, begin + t]
                terms += abs(value)
                moved[t, labels[source, r]] += value
                moved[t, path[r]] -= value
    for t in range(length):
        square += moved[t, labels[source, t]] - moved[t, path[t]]
        if t > 0:
            flows[labels[source, t - 1], labels[source, t]] += 1.0
            flows[path[t - 1], path[t]] -= 1.0
    for t in range(1, length):
        before, after = labels[source, t - 1], labels[source, t]
        square += flows[before, after] * learned[before, after]
        before, after = path[t - 1], path[t]
        square -= flows[before, after] * learned[before, after]
    for t in range(1, length):
        flows[labels[source, t - 1], labels[source, t]] = 0.0
        flows[path[t - 1], path[t]] = 0.0
    return square, terms


@part
def _shift(
    block: KernelBlock, amount: float, source: int, learned: FloatArray, workspace: KernelWorkspace
) -> None:
    """Move the potentials of a sequence and the weights of transitions."""
    labels, path, pair = block.vertices.labels, workspace.path, workspace.state.pair
    for t in range(block.rows.shape[0]):
        for k in range(learned.shape[0]):
            workspace.scores[t, k] += amount * workspace.moved[t, k]
        workspace.change[t, labels[source, t]] += amount
        workspace.change[t, path[t]] -= amount
        if t > 0:
            before, after = labels[source, t - 1], labels[source, t]
            pair[before, after] += amount * learned[before, after]
            before, after = path[t - 1], path[t]
            pair[before, after] -= amount * learned[before, after]


@part
def _pass_share(block: KernelBlock, source: int, share: float, workspace: KernelWorkspace) -> None:
    """Move a share from one labeling to another, which may be new; forget one that has none."""
    (labels, alphas, count), path, length = block.vertices, workspace.path, block.rows.shape[0]
    place = count[0]
    for c in range(count[0]):
        same = True
        for t in range(length):
            same = same and labels[c, t] == path[t]
        if same:
            place = c
    if place == count[0]:
        for t in range(length):
            labels[place, t] = path[t]
        alphas[place] = 0.0
        count[0] += 1
    alphas[place] += share
    alphas[source] -= share
    if alphas[source] <= NO_SHARE:
        last = count[0] - 1
        for t in range(length):
            labels[source, t] = labels[last, t]
        alphas[source] = alphas[last]
        count[0] = last
