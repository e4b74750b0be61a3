"""Online learning: one sequence after the other, and an update after each mistake.

An update moves the weights along the difference ``delta`` of the features of the true and of the
predicted labels. Its length is a fixed rate, or what the loss asks for,

    ``min(cap, loss / (extra + sum_p cov_p delta_p^2))``.

Beside the weights ``w`` stands ``later``, to which each change is added as many times as there were
weights before it: the mean of the weights at the start and after each of n sequences is
``w - later / (n + 1)``. With a variance, each weight has its own, ``cov_p = 1 / (1 / variance +
gained_p)``, and what is gained is ``sum delta_p^2 / extra`` (Crammer, Kulesza and Dredze 2009).
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from crfkit._types import FloatArray, IdArray, IntArray
from crfkit.compiler.jit import kernel, part
from crfkit.compiler.simd import prefetch_at
from crfkit.kernels.oracle import (
    FOUND,
    Examples,
    Labeling,
    best,
    gather,
    list_difference,
    path_score,
    refresh,
)

# Which cost the loss adds to the rise of the score: none, for rules that have a rate: then the loss
# is the share of wrong labels; 1; the root of the cost of the labels; all of it.
SHARE, ONE, ROOT, WHOLE = 0, 1, 2, 3

# Numbers of a pass: the loss, sequences with a mistake, and how many weights the mean is over.
LOSS, MISTAKES, COUNT = 0, 1, 2
N_SUMS = 3

# Below this share of a score, a loss is rounding: an update ends where the loss is 0.
ROUNDING = 1e-13


class UpdateCoefficients(NamedTuple):
    """How long an update is."""

    rate: float = 0.0  # the length of all updates; 0 where the loss decides
    cap: float = math.inf  # the longest one
    extra: float = 0.0  # what is added to the square of the difference of the features
    variance: float = 0.0  # that of each weight at the start; 0 where all weights are alike
    pays: int = SHARE  # which cost the loss adds to the rise of the score
    n_best: int = 1  # of how many labelings the loss is looked at: not by kernels


class OnlineState(NamedTuple):
    """Weights and what is remembered of updates, for L positions."""

    current: FloatArray  # (L,) the weights
    later: FloatArray  # (L,)
    gained: FloatArray  # (L,)
    scratch: FloatArray  # (L,) zeros
    sums: FloatArray  # (N_SUMS,)


@kernel
def online_loss(pays: int, rise: float, cost: float, wrong: int, length: int, top: float) -> float:
    """Return the loss of labels, given how much better they score; 0 for rounding of `top`."""
    if pays == SHARE:
        return wrong / length
    if pays == ONE:
        cost = 1.0
    elif pays == ROOT:
        cost = math.sqrt(cost)
    loss = rise + cost
    return loss if loss > ROUNDING * top else 0.0


@part
def _variance(start: float, gained: FloatArray, p: int) -> float:
    """``1 / (1 / variance + gained)``, or 1 for all weights."""
    return start / (1.0 + start * gained[p]) if start > 0.0 else 1.0


@part
def _length(
    size: int,
    positions: IdArray,  # (n,) positions of weights, some perhaps many times
    changes: FloatArray,  # (n,) parts of delta
    loss: float,
    update: UpdateCoefficients,
    state: OnlineState,
) -> float:
    """Return ``min(cap, loss / (extra + sum cov delta^2))``, NaN where that sum is infinite."""
    square, scratch = update.extra, state.scratch
    for n in range(size):
        prefetch_at(scratch, positions[n])
    for n in range(size):
        p, change = positions[n], changes[n]
        variance = _variance(update.variance, state.gained, p)
        square += variance * change * (change + 2.0 * scratch[p])
        scratch[p] += change
    if not square < math.inf:
        return math.nan
    return min(update.cap, loss / square) if square > 0.0 else 0.0


@kernel
def apply_update(
    size: int,
    positions: IdArray,  # (n,) positions of weights, some perhaps many times
    changes: FloatArray,  # (n,) in: parts of delta, out: of the changes of the weights
    loss: float,
    weight: float,
    update: UpdateCoefficients,
    state: OnlineState,
) -> None:
    """``w += length weight cov delta``, ``later += count (...)``."""
    length, start, count = update.rate, update.variance, state.sums[COUNT]
    fixed, scratch = length > 0.0, state.scratch
    for n in range(size):
        prefetch_at(state.later, positions[n])
    if not fixed:
        length = _length(size, positions, changes, loss, update, state)
    for n in range(size):
        p, delta = positions[n], changes[n]
        if not fixed:
            delta = scratch[p]
            scratch[p] = 0.0
        change = weight * (length * _variance(start, state.gained, p) * delta)
        changes[n] = change
        state.current[p] += change
        state.later[p] += count * change
        if start > 0.0:
            state.gained[p] += delta * delta / update.extra


@kernel
def count_mistakes(
    begin: int,  # tokens begin:end
    end: int,
    one: Labeling,
    other: Labeling,
    cost: FloatArray,  # (C, W), or (0, W)
) -> tuple[int, float]:
    """Return the number of wrong labels, and their cost: that number, if there is no other."""
    wrong, paid = 0, 0.0
    for row in range(end - begin):
        label = one.codes[one.row, one.shift + row]
        predicted = other.codes[other.row, other.shift + row]
        if label != predicted:
            wrong += 1
            paid += cost[label, predicted] if cost.shape[0] > 0 else 1.0
    return wrong, paid


@kernel
def online_updates(
    order: IntArray,  # (n,) sequences
    first: int,
    pause: bool,  # return after each update
    update: UpdateCoefficients,
    problem: Any,
    examples: Examples,
    state: OnlineState,
    workspace: Any,
) -> tuple[int, int, int]:
    """Predict the sequences ``order[first:]``, and make an update after each mistake.

    Those of weight 0 are passed over; of empty ones no weight is known. Returns where to go on, the
    size of the last update, and what came of the last search: `FOUND`, or why there was no update.
    """
    refresh(problem, workspace)
    for n in range(first, order.shape[0]):
        s, size = order[n], 0
        if problem.offsets[s + 1] > problem.offsets[s]:
            if not examples.weight[s] > 0.0:
                continue
            gather(problem, s, workspace)
            _, status = best(problem, s, examples, workspace)
            if status != FOUND:
                return n, 0, status
            size = _learn(s, update, problem, examples, state, workspace)
        state.sums[COUNT] += 1.0
        if pause and size > 0:
            return n + 1, size, FOUND
    return order.shape[0], 0, FOUND


@part
def _learn(
    s: int,
    update: UpdateCoefficients,
    problem: Any,
    examples: Examples,
    state: OnlineState,
    workspace: Any,
) -> int:
    """Make an update if the labels that were found are wrong; returns its size."""
    begin, end = problem.offsets[s], problem.offsets[s + 1]
    gold, found = Labeling(examples.labels, 0, begin), Labeling(workspace.paths, 0, 0)
    wrong, paid = count_mistakes(begin, end, gold, found, examples.cost)
    if wrong == 0:
        return 0
    top = path_score(problem, s, found, examples, workspace)
    rise, near = top - path_score(problem, s, gold, examples, workspace), 0.0
    if examples.cost.shape[0] > 0:
        rise, near = rise - paid, abs(top) + paid
    loss = online_loss(update.pays, rise, paid, wrong, end - begin, near)
    if not loss > 0.0:
        return 0
    state.sums[LOSS] += examples.weight[s] * loss
    state.sums[MISTAKES] += 1.0
    size: int = list_difference(problem, s, gold, found, workspace)
    apply_update(
        size, workspace.positions, workspace.changes, loss, examples.weight[s], update, state
    )
    refresh(problem, workspace)
    return size
