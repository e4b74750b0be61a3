"""Pairwise Frank-Wolfe steps of one sequence whose scores of labels are sums of kernel values.

Shapes: ``W`` is the number of labels K, rounded up to whole vectors of eight; ``M`` labellings that
there is room for; ``Q`` tokens of the longest sequence.
"""

from __future__ import annotations

import math
from typing import Any

from crfkit._types import CodeArray, FloatArray, IntArray
from crfkit.compiler.jit import inlined, kernel
from crfkit.kernels.chain.oracle import best_path

# A share of a labelling below this is none.
NO_SHARE = 1e-14
# A squared norm that is further below 0, as a share of what it is the sum of, is no rounding.
NEGATIVE = -1e-8


@kernel
def chain_kernel_steps(
    begin: int,  # the first token of the sequence
    rows: FloatArray,  # (T, N) kernel values of its tokens with all
    added: FloatArray,  # (N, K) costs of labels
    factor: float,  # its weight, divided by 2 c2
    most: int,  # steps at most
    enough: float,  # share of the first gap that ends the visit
    corners: Any,  # labels (M, T), shares (M,) and number (1,) of its labellings: all in and out
    unary: FloatArray,  # (K, N) out: scores of all tokens
    pair: FloatArray,  # (K, W) out: weights of steps
    learned: FloatArray,  # (K, W) 1 for steps that have a weight
    dual: FloatArray,  # (N, K) out: coefficients of tokens
    room: Any,  # scores, best, moved, change (Q, W); steps (K, W) of 0; values (M,); path (Q,)
) -> float:
    """Move shares from the least to the worst labelling; returns the gap of the sequence before.

    NaN is returned where a squared norm is negative: the kernel is not positive semidefinite.

    For ``D = f(least) - f(worst)``, with ``|D|^2`` from kernel values, the dual rises most for the
    share ``(a(worst) - a(least)) / (factor |D|^2)``, where ``a`` are scores with costs; weights
    move by ``factor share D``.
    """
    labels, shares, count = corners
    scores, best, moved, change, steps, values, path = room
    length, size = rows.shape[0], unary.shape[0]
    for t in range(length):
        for k in range(scores.shape[1]):
            scores[t, k] = unary[k, begin + t] + added[begin + t, k] if k < size else 0.0
            change[t, k] = 0.0
    first = 0.0
    for step in range(most):
        top = best_path(length, scores, pair, 0, size, best, path)
        source, mean = _least(length, labels, shares, count[0], scores, pair, values)
        gap = top - mean
        if step == 0:
            first = gap
        if not top - values[source] > 0.0 or (step > 0 and gap <= enough * first):
            break
        square, size_of_terms = _difference(
            begin, length, rows, labels, source, path, learned, moved, steps
        )
        if square < NEGATIVE * size_of_terms:
            return math.nan
        share = shares[source]
        if factor * square > 0.0:
            share = min(share, (top - values[source]) / (factor * square))
        amount = factor * share
        for t in range(length):
            for k in range(size):
                scores[t, k] += amount * moved[t, k]
            change[t, labels[source, t]] += amount
            change[t, path[t]] -= amount
            if t > 0:
                before, after = labels[source, t - 1], labels[source, t]
                pair[before, after] += amount * learned[before, after]
                before, after = path[t - 1], path[t]
                pair[before, after] -= amount * learned[before, after]
        _move_share(length, labels, shares, count, source, path, share)
    for t in range(length):
        for k in range(size):
            amount = change[t, k]
            if amount != 0.0:
                dual[begin + t, k] += amount
                for n in range(rows.shape[1]):
                    unary[k, n] += amount * rows[t, n]
    return first


@inlined
def _least(
    length: int,
    labels: CodeArray,
    shares: FloatArray,
    count: int,
    scores: FloatArray,
    pair: FloatArray,
    values: FloatArray,
) -> tuple[int, float]:
    """Write the score of each labelling; returns the least one and the mean of all."""
    source = 0
    mean = 0.0
    for c in range(count):
        value = 0.0
        for t in range(length):
            value += scores[t, labels[c, t]]
            if t > 0:
                value += pair[labels[c, t - 1], labels[c, t]]
        values[c] = value
        mean += shares[c] * value
        if value < values[source]:
            source = c
    return source, mean


@inlined
def _difference(
    begin: int,
    length: int,
    rows: FloatArray,
    labels: CodeArray,
    source: int,
    path: CodeArray,
    learned: FloatArray,
    moved: FloatArray,
    steps: FloatArray,
) -> tuple[float, float]:
    """Write the scores that ``D = f(source) - f(path)`` gives the tokens.

    Returns ``|D|^2``, and the sum of the sizes of the kernel values in it.
    """
    terms = 0.0
    for t in range(length):
        for k in range(moved.shape[1]):
            moved[t, k] = 0.0
    for s in range(length):
        if labels[source, s] != path[s]:
            for t in range(length):
                value = rows[s, begin + t]
                terms += abs(value)
                moved[t, labels[source, s]] += value
                moved[t, path[s]] -= value
    square = 0.0
    for t in range(length):
        square += moved[t, labels[source, t]] - moved[t, path[t]]
        if t > 0:
            steps[labels[source, t - 1], labels[source, t]] += 1.0
            steps[path[t - 1], path[t]] -= 1.0
    for t in range(1, length):
        before, after = labels[source, t - 1], labels[source, t]
        square += steps[before, after] * learned[before, after]
        before, after = path[t - 1], path[t]
        square -= steps[before, after] * learned[before, after]
    for t in range(1, length):
        steps[labels[source, t - 1], labels[source, t]] = 0.0
        steps[path[t - 1], path[t]] = 0.0
    return square, terms


@inlined
def _move_share(
    length: int,
    labels: CodeArray,
    shares: FloatArray,
    count: IntArray,
    source: int,
    path: CodeArray,
    share: float,
) -> None:
    """Move a share from one labelling to another, which may be new; forget one that has none."""
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
        shares[place] = 0.0
        count[0] += 1
    shares[place] += share
    shares[source] -= share
    if shares[source] <= NO_SHARE:
        last = count[0] - 1
        for t in range(length):
            labels[source, t] = labels[last, t]
        shares[source] = shares[last]
        count[0] = last
