"""Online learning of chains: a look at one sequence after the other, and a step after a mistake.

A step moves the weights along the difference ``delta`` of the features of the true and of the
predicted labels. Its length is that of the rule (N_RULE numbers, see `RATE`): a fixed rate, or what
the loss asks for,

    ``min(cap, loss / (extra + sum_p cov_p delta_p^2))``.

Beside the weights ``w`` stands ``later``, to which each change is added as many times as there were
weights before it: the mean of the weights at the start and after each of n sequences is
``w - later / (n + 1)``. With a variance, each weight has its own, ``cov_p = 1 / (1 / variance +
gained_p)``, and what is gained is ``sum delta_p^2 / extra`` (Crammer, Kulesza and Dredze 2009).

Vectors stand side by side in `vectors`: weights, later, gained and a scratch of zeros, each (L,).
"""

from __future__ import annotations

import math
from typing import Any

from crfkit._types import CodeArray, FloatArray, IdArray, IntArray
from crfkit.compiler.jit import kernel, part
from crfkit.compiler.simd import WIDTH, prefetch_at
from crfkit.kernels.chain.oracle import add_cost, best_path, gather_sequence, path_score

# Numbers of a rule: the length of all steps, or 0; the longest, what is added to the square, the
# variance at the start, or 0; and which cost the loss adds to the rise of the score.
RATE, CAP, EXTRA, VARIANCE, PAYS = 0, 1, 2, 3, 4
N_RULE = 5
# Such costs: none, for rules that have a rate: then the loss is the share of wrong labels; 1; the
# root of the cost of the labels; all of it.
SHARE, ONE, ROOT, WHOLE = 0, 1, 2, 3

# Numbers of a pass: the loss, sequences with a mistake, and how many weights the mean is over.
LOSS, MISTAKES, COUNT = 0, 1, 2
N_SUMS = 3

# Below this share of a score, a loss is rounding: a step ends where the loss is 0.
ROUNDING = 1e-13


@kernel
def online_loss(pays: int, rise: float, cost: float, wrong: int, length: int, top: float) -> float:
    """Return the loss of predicted labels, given by how much they score above the true ones.

    It is 0 where it is but rounding of `top`, the size of their score: 0 for none.
    """
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
    places: IdArray,  # (n,) places of weights, some perhaps many times
    changes: FloatArray,  # (n,) parts of delta
    loss: float,
    rule: FloatArray,  # (N_RULE,)
    vectors: Any,
) -> float:
    """Return the length of a step, ``min(cap, loss / (extra + sum cov delta^2))``.

    NaN where that sum is infinite, so that the weights tell of it. The scratch holds delta then.
    """
    _, _, gained, scratch = vectors
    start, square = rule[VARIANCE], rule[EXTRA]
    for n in range(size):
        prefetch_at(scratch, places[n])
    for n in range(size):
        p, change = places[n], changes[n]
        square += _variance(start, gained, p) * change * (change + 2.0 * scratch[p])
        scratch[p] += change
    if not square < math.inf:
        return math.nan
    return min(rule[CAP], loss / square) if square > 0.0 else 0.0


@part
def _move(
    size: int,
    places: IdArray,  # (n,) places of weights, some perhaps many times
    changes: FloatArray,  # (n,) in: parts of delta, out: of the changes of the weights
    loss: float,
    weight: float,
    count: float,
    rule: FloatArray,  # (N_RULE,)
    vectors: Any,
) -> None:
    """``w += length weight cov delta``, ``later += count (...)``."""
    (flat, later, gained, scratch), length, start = vectors, rule[RATE], rule[VARIANCE]
    fixed = length > 0.0
    for n in range(size):
        prefetch_at(later, places[n])
    if not fixed:
        length = _length(size, places, changes, loss, rule, vectors)
    for n in range(size):
        p, delta = places[n], changes[n]
        if not fixed:
            delta = scratch[p]
            scratch[p] = 0.0
        change = weight * (length * _variance(start, gained, p) * delta)
        changes[n] = change
        flat[p] += change
        later[p] += count * change
        if start > 0.0:
            gained[p] += delta * delta / rule[EXTRA]


@kernel
def online_move(
    places: IdArray,  # (n,)
    changes: FloatArray,  # (n,) in: delta, out: the changes of the weights
    loss: float,
    weight: float,
    count: float,
    rule: FloatArray,  # (N_RULE,)
    vectors: Any,  # each (P,)
) -> None:
    """Make a step: ``w += length weight cov delta``."""
    _move(places.shape[0], places, changes, loss, weight, count, rule, vectors)


@kernel
def chain_online_visits(
    order: IntArray,  # (n,) sequences
    first: int,
    pause: bool,  # return after each step
    n_labels: int,
    rule: FloatArray,  # (N_RULE,)
    cost: FloatArray,  # (K, W) added to the scores of labels, or (0, W)
    sequences: Any,  # offsets (S + 1,) and weights (S,) of sequences, labels (N,)
    entries: Any,
    vectors: Any,
    table: FloatArray,  # (H, W) the rows of the weights
    bits: Any,  # (H, V)
    sums: FloatArray,  # (N_SUMS,) added to
    own: Any,  # room for dense features; scores (Q, W), best ones, labels (Q,); places, changes
) -> tuple[int, int]:
    """Look at the sequences ``order[first:]``, and make a step after each mistake.

    Those of weight 0 are passed over; of empty ones no weight is known.

    Returns where to go on and the size of the last step; -1, where scores are no longer finite.
    """
    offsets, weights, labels = sequences
    listed, scores, best, path, places, changes = own
    steps = table.shape[0] - n_labels
    for n in range(first, order.shape[0]):
        s = order[n]
        begin, end, size = offsets[s], offsets[s + 1], 0
        if end > begin:
            if not weights[s] > 0.0:
                continue
            gather_sequence(begin, end, vectors[0], table, n_labels, entries, listed, scores)
            if cost.shape[0] > 0:
                for t in range(begin, end):
                    add_cost(t - begin, labels[t], cost, scores)
            top = best_path(end - begin, scores, table, steps, n_labels, best, path)
            if not abs(top) < math.inf:
                return n, -1
            wrong, paid = _mistakes(begin, end, labels, path, cost)
            if wrong > 0:
                rise, near = top - path_score(end - begin, scores, table, steps, labels, begin), 0.0
                if cost.shape[0] > 0:
                    rise, near = rise - paid, abs(top) + paid
                loss = online_loss(int(rule[PAYS]), rise, paid, wrong, end - begin, near)
                if loss > 0.0:
                    sums[LOSS] += weights[s] * loss
                    sums[MISTAKES] += 1.0
                    size = _difference(begin, end, steps, labels, path, entries, table, bits,
                                       places, changes)  # fmt: skip
                    _move(size, places, changes, loss, weights[s], sums[COUNT], rule, vectors)
        sums[COUNT] += 1.0
        if pause and size > 0:
            return n + 1, size
    return order.shape[0], 0


@part
def _mistakes(begin: int, end: int, labels: CodeArray, path: CodeArray,
              cost: FloatArray) -> tuple[int, float]:  # fmt: skip
    """Return the number of wrong labels, and their cost: that number, if there is no other."""
    wrong, paid = 0, 0.0
    for t in range(begin, end):
        if path[t - begin] != labels[t]:
            wrong += 1
            paid += cost[labels[t], path[t - begin]] if cost.shape[0] > 0 else 1.0
    return wrong, paid


@part
def _note(size: int, h: int, label: int, value: float, width: int, bits: Any, places: IdArray,
          changes: FloatArray) -> int:  # fmt: skip
    """List a number of a row, if it is a weight; returns how many are listed."""
    places[size] = h * width + label
    changes[size] = value
    weight: int = (bits[h, label // WIDTH] >> (label % WIDTH)) & 1
    return size + weight


@part
def _difference(
    begin: int,  # tokens begin:end
    end: int,
    steps: int,  # the first row of steps
    labels: CodeArray,  # (N,)
    path: CodeArray,  # (Q,)
    entries: Any,
    table: FloatArray,  # (H, W)
    bits: Any,  # (H, V)
    places: IdArray,  # (n,) out
    changes: FloatArray,  # (n,) out
) -> int:
    """List the features of the true labels minus those of others; returns how many there are."""
    (row_ptr, found, factor), (cell_ptr, columns, spots, values), step, dense = entries
    size, width, n_dense = 0, table.shape[1], dense.shape[1]
    for t in range(begin, end):
        gold, other = labels[t], path[t - begin]
        if gold != other:
            for n in range(row_ptr[t], row_ptr[t + 1]):
                x, h = factor[n * step], found[n]
                size = _note(size, h, gold, x, width, bits, places, changes)
                size = _note(size, h, other, -x, width, bits, places, changes)
            for n in range(cell_ptr[t], cell_ptr[t + 1]):
                if columns[n] == gold or columns[n] == other:
                    places[size] = spots[n]
                    changes[size] = values[n * step] if columns[n] == gold else -values[n * step]
                    size += 1
            for f in range(n_dense):
                x, h = dense[t, f], steps - n_dense + f
                if x != 0.0:
                    size = _note(size, h, gold, x, width, bits, places, changes)
                    size = _note(size, h, other, -x, width, bits, places, changes)
        if t > begin and (gold != other or labels[t - 1] != path[t - 1 - begin]):
            h = steps + labels[t - 1]
            size = _note(size, h, gold, 1.0, width, bits, places, changes)
            h = steps + path[t - 1 - begin]
            size = _note(size, h, other, -1.0, width, bits, places, changes)
    return size
