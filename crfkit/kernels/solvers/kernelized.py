"""Pairwise Frank-Wolfe of one sequence whose potentials of labels are sums of kernel values.

Shapes: ``W`` is the number of labels K, rounded up to whole vectors of eight; ``M`` labelings that
there is room for; ``Q`` tokens of the longest sequence.
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

    offsets: IntArray  # (S + 1,)
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


class KernelWorkspace(NamedTuple):
    """Room for one sequence."""

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
    s: int,
    rows: FloatArray,  # (T, N) kernel values of the tokens of the sequence with all
    factor: float,  # its weight, divided by 2 c2
    most: int,  # updates at most
    enough: float,  # share of the first gap that ends them
    problem: KernelProblem,
    state: KernelState,
    vertices: KernelVertices,
    workspace: KernelWorkspace,
    values: FloatArray,  # (M,) workspace
) -> float:
    """Move shares from the least to the worst labeling; returns the gap of the sequence before.

    NaN is returned where a squared norm is negative: the kernel is not positive semidefinite.

    For ``D = f(least) - f(worst)``, with ``|D|^2`` from kernel values, the dual rises most for the
    share ``(a(worst) - a(least)) / (factor |D|^2)``, where ``a`` are scores with costs; weights
    move by ``factor share D``.
    """
    begin, length, first = problem.offsets[s], rows.shape[0], 0.0
    _begin(begin, length, problem, state, workspace)
    for step in range(most):
        viterbi_path(workspace.scores, workspace.pair, workspace.slots, 0, length,
                     workspace.best, workspace.path)  # fmt: skip
        top = workspace.best[length - 1, workspace.path[length - 1]]
        source, mean = _least(length, vertices, state, workspace, values)
        gap = top - mean
        if step == 0:
            first = gap
        if not top - values[source] > 0.0 or (step > 0 and gap <= enough * first):
            break
        square, terms = _difference(begin, rows, source, vertices, problem, workspace)
        if square < NEGATIVE * terms:
            return math.nan
        share = vertices.alphas[source]
        if factor * square > 0.0:
            share = min(share, (top - values[source]) / (factor * square))
        _shift(length, factor * share, source, vertices, problem, state, workspace)
        _pass_share(length, vertices, source, workspace, share)
    for t in range(length):
        for k in range(problem.n_labels):
            amount = workspace.change[t, k]
            if amount != 0.0:
                state.dual[begin + t, k] += amount
                for n in range(rows.shape[1]):
                    state.unary[k, n] += amount * rows[t, n]
    return first


@part
def _begin(begin: int, length: int, problem: KernelProblem, state: KernelState,
           workspace: KernelWorkspace) -> None:  # fmt: skip
    """Write the potentials of a sequence, costs added; nothing has changed yet."""
    for t in range(length):
        for k in range(workspace.scores.shape[1]):
            score = 0.0
            if k < problem.n_labels:
                score = state.unary[k, begin + t] + problem.costs[begin + t, k]
            workspace.scores[t, k] = score
            workspace.change[t, k] = 0.0


@part
def _least(
    length: int,
    vertices: KernelVertices,
    state: KernelState,
    workspace: KernelWorkspace,
    values: FloatArray,
) -> tuple[int, float]:
    """Write the score of each labeling; returns the least one and the mean of all."""
    source, mean, labels = 0, 0.0, vertices.labels
    for c in range(vertices.number[0]):
        value = 0.0
        for t in range(length):
            value += workspace.scores[t, labels[c, t]]
            if t > 0:
                value += state.pair[labels[c, t - 1], labels[c, t]]
        values[c] = value
        mean += vertices.alphas[c] * value
        if value < values[source]:
            source = c
    return source, mean


@part
def _difference(
    begin: int,
    rows: FloatArray,
    source: int,
    vertices: KernelVertices,
    problem: KernelProblem,
    workspace: KernelWorkspace,
) -> tuple[float, float]:
    """Write the scores that ``D = f(source) - f(path)`` gives the tokens.

    Returns ``|D|^2``, and the sum of the sizes of the kernel values in it.
    """
    terms, square, length = 0.0, 0.0, rows.shape[0]
    labels, path, moved = vertices.labels, workspace.path, workspace.moved
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
    length: int,
    amount: float,
    source: int,
    vertices: KernelVertices,
    problem: KernelProblem,
    state: KernelState,
    workspace: KernelWorkspace,
) -> None:
    """Move the potentials of a sequence and the weights of transitions."""
    labels, path, learned, change = (
        vertices.labels, workspace.path, problem.learned, workspace.change,
    )  # fmt: skip
    for t in range(length):
        for k in range(problem.n_labels):
            workspace.scores[t, k] += amount * workspace.moved[t, k]
        change[t, labels[source, t]] += amount
        change[t, path[t]] -= amount
        if t > 0:
            before, after = labels[source, t - 1], labels[source, t]
            state.pair[before, after] += amount * learned[before, after]
            before, after = path[t - 1], path[t]
            state.pair[before, after] -= amount * learned[before, after]


@part
def _pass_share(length: int, vertices: KernelVertices, source: int, workspace: KernelWorkspace,
                share: float) -> None:  # fmt: skip
    """Move a share from one labeling to another, which may be new; forget one that has none."""
    labels, alphas, count, path = (
        vertices.labels, vertices.alphas, vertices.number, workspace.path,
    )  # fmt: skip
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
