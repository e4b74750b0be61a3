"""Recurrences on linear chains whose transitions have a score for few pairs of labels.

Shapes: ``N`` tokens of ``S`` sequences, ``K`` labels, ``E`` pairs of labels that have a score, the
entries; all other transitions have the score 0. Entries lie source by source, ``targets`` rising
within ``out_ptr[i]:out_ptr[i + 1]``; where they are read target by target, ``sources`` rise within
``in_ptr[j]:in_ptr[j + 1]``.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from crfkit._types import CodeArray, FloatArray, IdArray, IntArray
from crfkit.compiler.jit import kernel
from crfkit.kernels.chain.sum import OK, TINY, UNDERFLOW, log_total

# A sum over unscored steps as a difference of sums has lost digits where the result is this much
# smaller than what it was taken from: it is added up term by term instead.
TRUST = 0.01


class SparsePattern(NamedTuple):
    """Which transitions have a score. Read-only."""

    out_ptr: IdArray  # (K + 1,) where the entries from each label start
    targets: IdArray  # (E,)
    in_ptr: IdArray  # (K + 1,) where those into each label start, target by target
    sources: IdArray  # (E,)


class SparseScores(NamedTuple):
    """Scores of the parts of chains; ``-inf`` forbids a part. Read-only."""

    unary: FloatArray  # (N, K)
    pair: FloatArray  # (E,) source by source
    pair_in: FloatArray  # (E,) the same, target by target
    offsets: IntArray  # (S + 1,)


class SparseExponentials(NamedTuple):
    """Exponentials of the scores of transitions, relative to the largest one. Read-only."""

    shift: FloatArray  # (N,) the largest unary score of each token
    factor: FloatArray  # (E,) exp(pair - pair_shift), source by source
    factor_in: FloatArray  # (E,) the same, target by target
    pair_shift: float  # the largest score of a transition
    ground: float  # exp(0 - pair_shift)


class SparseWorkspace(NamedTuple):
    """Rooms of the forward-backward recurrences."""

    node: FloatArray  # (N, K) in: exp(unary - shift), out: backward messages
    norm: FloatArray  # (N,) scales of the forward vectors
    beta: FloatArray  # (K,)


class SparseSums(NamedTuple):
    """Log partition functions and expected counts, which the kernels write."""

    marginals: FloatArray  # (N, K) weighted marginals of labels
    flow: FloatArray  # (E,) added to: weighted expected transitions divided by factor
    log_z: FloatArray  # (S,)
    status: IntArray  # (S,) the other outputs of a sequence are only valid where it is OK


@kernel
def _sum_exactly(values: FloatArray, row: int, ids: IdArray, factor: FloatArray, begin: int,
                 end: int, ground: float) -> float:  # fmt: skip
    """``sum_k values[row, k] f_k``, all terms positive: `factor` for the `ids`, else `ground`."""
    rest, scored = 0.0, 0.0
    e = begin + 0  # adding a signed number makes it one
    for k in range(values.shape[1]):
        if e < end and ids[e] == k:
            scored += values[row, k] * factor[e]
            e += 1
        else:
            rest += values[row, k]
    return ground * rest + scored


@kernel
def _reached(alpha: FloatArray, t: int, sources: IdArray, pair_in: FloatArray, begin: int,
             end: int) -> bool:  # fmt: skip
    """Whether an allowed transition, not ``-inf``, leads from a reachable label at ``t - 1``."""
    e = begin + 0
    for i in range(alpha.shape[1]):
        allowed = True
        if e < end and sources[e] == i:
            allowed = pair_in[e] > -math.inf
            e += 1
        if allowed and alpha[t - 1, i] > 0.0:
            return True
    return False


@kernel
def _forward_status(alpha: FloatArray, scores: SparseScores, pattern: SparsePattern, t: int,
                    begin: int) -> int:  # fmt: skip
    """Tell an underflow from a label that no path reaches, and that from the end of all paths."""
    alive = False
    for j in range(alpha.shape[1]):
        if alpha[t, j] >= TINY:
            alive = True
        elif scores.unary[t, j] > -math.inf:
            first, last = pattern.in_ptr[j], pattern.in_ptr[j + 1]
            if t == begin or _reached(alpha, t, pattern.sources, scores.pair_in, first, last):
                return UNDERFLOW
    return OK if alive else t


@kernel
def _forward(
    scores: SparseScores,
    exponentials: SparseExponentials,
    pattern: SparsePattern,
    begin: int,
    end: int,
    workspace: SparseWorkspace,
    alpha: FloatArray,  # (N, K) out: forward vectors
) -> int:
    """Scaled forward recurrence of one sequence; returns its status.

    ``alpha_t(j) = node_t(j) (g sum_i alpha_{t-1}(i) + sum_e alpha_{t-1}(i_e) (factor_e - g)) /
    norm_t`` with the entries ``e`` into ``j`` and ``g`` the factor of all other transitions (Jeong,
    Lin and Lee 2009: one constant for the transitions never seen).
    """
    node, norm, ground = workspace.node, workspace.norm, exponentials.ground
    factor, in_ptr, sources = exponentials.factor_in, pattern.in_ptr, pattern.sources
    size = node.shape[1]
    for t in range(begin, end):
        if t == begin:
            for j in range(size):
                alpha[t, j] = node[t, j]
        else:
            everything = 0.0
            for i in range(size):
                everything += alpha[t - 1, i]
            everything *= ground
            for j in range(size):
                scored = 0.0
                for e in range(in_ptr[j], in_ptr[j + 1]):
                    scored += alpha[t - 1, sources[e]] * (factor[e] - ground)
                total = everything + scored
                if total < TRUST * everything:
                    total = _sum_exactly(
                        alpha, t - 1, sources, factor, in_ptr[j], in_ptr[j + 1], ground
                    )
                alpha[t, j] = total
            for j in range(size):
                alpha[t, j] *= node[t, j]
        total = 0.0
        least = 1.0
        for j in range(size):
            total += alpha[t, j]
            least = min(least, alpha[t, j])
        if least < TINY:
            status = _forward_status(alpha, scores, pattern, t, begin)
            if status != OK:
                return status
        norm[t] = total
        for j in range(size):
            alpha[t, j] /= total
    return OK


@kernel
def _backward(
    exponentials: SparseExponentials,
    pattern: SparsePattern,
    begin: int,
    end: int,
    weight: float,
    workspace: SparseWorkspace,  # after the forward recurrence
    out: SparseSums,  # in: forward vectors, as the marginals
) -> None:
    """Scaled backward recurrence of one sequence, and the marginals.

    ``beta_{t-1}(i) = g sum_j b_t(j) + sum_e b_t(j_e) (factor_e - g)`` over the entries ``e`` out of
    ``i``, with ``b_t(j) = node_t(j) beta_t(j) / norm_t``; the rest is that of a dense chain. The
    weight, which may be negative, is left out of the sums, whose terms must not cancel.
    """
    node, norm, beta = workspace.node, workspace.norm, workspace.beta
    factor, ground, alpha = exponentials.factor, exponentials.ground, out.marginals
    out_ptr, targets, flow = pattern.out_ptr, pattern.targets, out.flow
    size = node.shape[1]
    for j in range(size):
        beta[j] = 1.0
    for t in range(end - 1, begin, -1):
        everything = 0.0
        for j in range(size):
            # A label that no path reaches may have an unbounded beta: it must not count.
            reached = alpha[t, j] > 0.0
            node[t, j] = node[t, j] / norm[t] * beta[j] if reached else 0.0
            alpha[t, j] *= weight * beta[j] if reached else 0.0
            everything += node[t, j]
        everything *= ground
        for i in range(size):
            before = weight * alpha[t - 1, i]
            scored = 0.0
            for e in range(out_ptr[i], out_ptr[i + 1]):
                after = node[t, targets[e]]
                flow[e] += before * after
                scored += after * (factor[e] - ground)
            total = everything + scored
            if total < TRUST * everything:
                total = _sum_exactly(node, t, targets, factor, out_ptr[i], out_ptr[i + 1], ground)
            beta[i] = total
    for j in range(size):
        alpha[begin, j] *= weight * beta[j] if alpha[begin, j] > 0.0 else 0.0


@kernel
def sparse_sum(
    scores: SparseScores,
    exponentials: SparseExponentials,
    pattern: SparsePattern,
    weight: FloatArray,  # (S,) factor of the expected counts of each sequence
    workspace: SparseWorkspace,
    out: SparseSums,
) -> None:
    """``log Z`` and expected counts by scaled forward-backward, in ``O(T (K + E))``."""
    for s in range(scores.offsets.shape[0] - 1):
        begin, end = scores.offsets[s], scores.offsets[s + 1]
        out.log_z[s] = 0.0
        out.status[s] = OK
        if begin == end:
            continue
        out.status[s] = _forward(
            scores, exponentials, pattern, begin, end, workspace, out.marginals
        )
        if out.status[s] == OK:
            out.log_z[s] = log_total(workspace.norm, exponentials.shift, begin, end)
            out.log_z[s] += (end - begin - 1) * exponentials.pair_shift
            _backward(exponentials, pattern, begin, end, weight[s], workspace, out)


@kernel
def _top(best: FloatArray, t: int, other: int) -> int:
    """Return the label of the largest score but for `other`; K if there is none above ``-inf``."""
    top = -math.inf
    label: int = best.shape[1]
    for i in range(best.shape[1]):
        if best[t, i] > top and i != other:
            top = best[t, i]
            label = i
    return label


@kernel
def _best_into(best: FloatArray, t: int, pair_in: FloatArray, sources: IdArray, begin: int,
               end: int, second: int) -> float:  # fmt: skip
    """Largest score of a step into a label from ``t``, where the step from the top is scored.

    Unscored steps can give no more than the second best label: it is looked for beyond that only
    where the step from it is scored too.
    """
    size = best.shape[1]
    score: float = -math.inf
    free = True
    for e in range(begin, end):
        score = max(score, best[t, sources[e]] + pair_in[e])
        free = free and sources[e] != second
    if second == size or score >= best[t, second]:
        return score
    if free:
        score = best[t, second]
        return score
    e = begin + 0
    for i in range(size):
        if e < end and sources[e] == i:
            e += 1
        else:
            score = max(score, best[t, i])
    return score


@kernel
def _max_step(
    best: FloatArray,  # (N, K) in: row t - 1, out: row t, without the unary scores
    t: int,
    scores: SparseScores,
    row_top: FloatArray,  # (K,) largest score of the transitions from each label
    pattern: SparsePattern,
) -> None:
    """``best_t(j) = max_i (best_{t-1}(i) + pair(i, j))``, that of unscored ones being 0.

    The best label gives all others its own score. A label counts beside it only if its largest
    score may lift it above that (the bound by which CarpeDiem prunes; Esposito and Radicioni 2009).
    Where the transition from the best label is scored below 0, all are looked at.
    """
    pair, out_ptr, targets = scores.pair, pattern.out_ptr, pattern.targets
    pair_in, in_ptr, sources = scores.pair_in, pattern.in_ptr, pattern.sources
    size = best.shape[1]
    top = _top(best, t - 1, size)
    ground = best[t - 1, top] if top < size else -math.inf
    for j in range(size):
        best[t, j] = ground
    if top == size:
        return
    for i in range(size):
        before = best[t - 1, i]
        if before + row_top[i] > ground:
            for e in range(out_ptr[i], out_ptr[i + 1]):
                j = targets[e]
                best[t, j] = max(best[t, j], before + pair[e])
    second = -1
    for e in range(out_ptr[top], out_ptr[top + 1]):
        if pair[e] < 0.0:
            if second < 0:
                second = _top(best, t - 1, top)
            j = targets[e]
            best[t, j] = _best_into(best, t - 1, pair_in, sources, in_ptr[j], in_ptr[j + 1], second)


@kernel
def _best_before(best: FloatArray, t: int, pair_in: FloatArray, sources: IdArray, begin: int,
                 end: int) -> int:  # fmt: skip
    """Return the lowest label at ``t`` from which the best step into a label comes; -1 if none."""
    label = -1
    top = -math.inf
    e = begin + 0
    for i in range(best.shape[1]):
        score = best[t, i]
        if e < end and sources[e] == i:
            score += pair_in[e]
            e += 1
        if score > top:
            top = score
            label = i
    return label


@kernel
def _dead_end(best: FloatArray, begin: int, end: int) -> int:
    """Return the first position at which no path is left."""
    for t in range(begin, end):
        if _top(best, t, best.shape[1]) == best.shape[1]:
            return t
    return OK


@kernel
def sparse_max(
    scores: SparseScores,
    row_top: FloatArray,  # (K,) largest score of the transitions from each label
    pattern: SparsePattern,
    best: FloatArray,  # (N, K) workspace
    labels: CodeArray,  # (N,) out
    value: FloatArray,  # (S,) out
    status: IntArray,  # (S,) out
) -> None:
    """Find the path of the largest score (Viterbi 1967); of equal ones, the lowest labels.

    ``best_t(j) = unary_t(j) + max_i (best_{t-1}(i) + pair(i, j))``, the same numbers as those of a
    dense chain.
    """
    unary, offsets, size = scores.unary, scores.offsets, scores.unary.shape[1]
    pair_in, in_ptr, sources = scores.pair_in, pattern.in_ptr, pattern.sources
    for s in range(offsets.shape[0] - 1):
        begin = offsets[s]
        end = offsets[s + 1]
        value[s] = 0.0
        status[s] = OK
        if begin == end:
            continue
        for j in range(size):
            best[begin, j] = unary[begin, j]
        for t in range(begin + 1, end):
            _max_step(best, t, scores, row_top, pattern)
            for j in range(size):
                best[t, j] += unary[t, j]
        last = _top(best, end - 1, size)
        if last == size:
            status[s] = _dead_end(best, begin, end)
            continue
        value[s] = best[end - 1, last]
        labels[end - 1] = last
        for t in range(end - 2, begin - 1, -1):
            after = labels[t + 1]
            labels[t] = _best_before(best, t, pair_in, sources, in_ptr[after], in_ptr[after + 1])


@kernel
def _entry(pattern: SparsePattern, source: int, target: int) -> int:
    """Return the entry of a transition by bisection, -1 if it has none."""
    targets = pattern.targets
    low = pattern.out_ptr[source] + 0
    high = pattern.out_ptr[source + 1] + 0
    end = high
    while low < high:
        middle = (low + high) // 2
        if targets[middle] < target:
            low = middle + 1
        else:
            high = middle
    return low if low < end and targets[low] == target else -1


@kernel
def sparse_score(
    scores: SparseScores,
    pattern: SparsePattern,
    labels: CodeArray,  # (N,)
    value: FloatArray,  # (S,) out
) -> None:
    """``value = sum_t unary_t(y_t) + sum_{t > 1} pair(y_{t-1}, y_t)``."""
    offsets = scores.offsets
    for s in range(offsets.shape[0] - 1):
        value[s] = 0.0
        for t in range(offsets[s], offsets[s + 1]):
            value[s] += scores.unary[t, labels[t]]
            if t > offsets[s]:
                entry = _entry(pattern, labels[t - 1], labels[t])
                if entry >= 0:
                    value[s] += scores.pair[entry]


@kernel
def sparse_add_path(
    pattern: SparsePattern,
    offsets: IntArray,  # (S + 1,)
    labels: CodeArray,  # (N,)
    weight: FloatArray,  # (S,)
    unary: FloatArray,  # (N, K) out, added to
    pair: FloatArray,  # (E,) out, added to
) -> None:
    """Add the weight of each sequence to the parts on its path (the adjoint of the score)."""
    for s in range(offsets.shape[0] - 1):
        for t in range(offsets[s], offsets[s + 1]):
            unary[t, labels[t]] += weight[s]
            if t > offsets[s]:
                entry = _entry(pattern, labels[t - 1], labels[t])
                if entry >= 0:
                    pair[entry] += weight[s]
