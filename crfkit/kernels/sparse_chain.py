"""Recurrences on linear chains whose steps have a score for few pairs of labels.

Shapes: ``N`` tokens of ``S`` sequences, ``K`` labels, ``E`` pairs of labels that have a score, the
entries; all other steps have the score 0. Entries lie source by source, ``targets`` rising within
``out_ptr[i]:out_ptr[i + 1]``; where they are read target by target, ``sources`` rise within
``in_ptr[j]:in_ptr[j + 1]`` and ``entry`` says which entry each is.
"""

from __future__ import annotations

import math

from crfkit._types import CodeArray, FloatArray, IdArray, IntArray
from crfkit.compiler.jit import kernel
from crfkit.kernels.chain.sum import OK, TINY, UNDERFLOW

# A sum over unscored steps as a difference of sums has lost digits where the result is this much
# smaller than what it was taken from: it is added up term by term instead.
TRUST = 0.01


@kernel
def _sum_exactly(values: FloatArray, row: int, ids: IdArray, factor: FloatArray, begin: int,
                 end: int, ground: float) -> float:  # fmt: skip
    """``sum_k values[row, k] f_k``, all terms positive: `factor` for the `ids`, else `ground`."""
    rest, scored = 0.0, 0.0
    k = 0
    for e in range(begin, end):
        stop = ids[e]
        for m in range(k, stop):
            rest += values[row, m]
        scored += values[row, stop] * factor[e]
        k = stop + 1
    for m in range(k, values.shape[1]):
        rest += values[row, m]
    return ground * rest + scored


@kernel
def _reached(alpha: FloatArray, t: int, sources: IdArray, factor_in: FloatArray, begin: int,
             end: int) -> bool:  # fmt: skip
    """Whether an allowed step leads from a reachable label at ``t - 1``; ``-inf`` forbids one."""
    k = 0
    for e in range(begin, end):
        stop = sources[e]
        for m in range(k, stop):
            if alpha[t - 1, m] > 0.0:
                return True
        if alpha[t - 1, stop] > 0.0 and factor_in[e] > -math.inf:
            return True
        k = stop + 1
    for m in range(k, alpha.shape[1]):
        if alpha[t - 1, m] > 0.0:
            return True
    return False


@kernel
def _forward_status(alpha: FloatArray, unary: FloatArray, pair_in: FloatArray, in_ptr: IdArray,
                    sources: IdArray, t: int, begin: int) -> int:  # fmt: skip
    """Tell an underflow from a label that no path reaches, and that from the end of all paths."""
    alive = False
    for j in range(alpha.shape[1]):
        if alpha[t, j] >= TINY:
            alive = True
        elif unary[t, j] > -math.inf and (
            t == begin or _reached(alpha, t, sources, pair_in, in_ptr[j], in_ptr[j + 1])
        ):
            return UNDERFLOW
    return OK if alive else t


@kernel
def _forward(
    unary: FloatArray,  # (N, K)
    node: FloatArray,  # (N, K) exp(unary - its largest)
    pair_in: FloatArray,  # (E,) scores, target by target
    factor_in: FloatArray,  # (E,) exp(score - shift), target by target
    ground: float,  # exp(0 - shift)
    in_ptr: IdArray,  # (K + 1,)
    sources: IdArray,  # (E,)
    begin: int,
    end: int,
    alpha: FloatArray,  # (N, K) out
    norm: FloatArray,  # (N,) out
) -> int:
    """Scaled forward recurrence of one sequence; returns its status.

    ``alpha_t(j) = node_t(j) (g sum_i alpha_{t-1}(i) + sum_e alpha_{t-1}(i_e) (factor_e - g)) /
    norm_t`` with the entries ``e`` into ``j`` and ``g`` the factor of all other steps (Jeong, Lin
    and Lee 2009: one constant for the steps never seen).
    """
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
                part = 0.0
                for e in range(in_ptr[j], in_ptr[j + 1]):
                    part += alpha[t - 1, sources[e]] * (factor_in[e] - ground)
                total = everything + part
                if total < TRUST * everything:
                    total = _sum_exactly(
                        alpha, t - 1, sources, factor_in, in_ptr[j], in_ptr[j + 1], ground
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
            status = _forward_status(alpha, unary, pair_in, in_ptr, sources, t, begin)
            if status != OK:
                return status
        norm[t] = total
        for j in range(size):
            alpha[t, j] /= total
    return OK


@kernel
def _backward(
    node: FloatArray,  # (N, K) in: exp(unary - its largest), out: b
    factor: FloatArray,  # (E,) exp(score - shift), source by source
    ground: float,  # exp(0 - shift)
    out_ptr: IdArray,  # (K + 1,)
    targets: IdArray,  # (E,)
    begin: int,
    end: int,
    norm: FloatArray,  # (N,) from the forward recurrence
    weight: float,
    beta: FloatArray,  # (K,) workspace
    alpha: FloatArray,  # (N, K) in: forward probabilities, out: weighted marginals
    flow: FloatArray,  # (E,) out, added to: expected steps, before the product with factor
) -> None:
    """Scaled backward recurrence of one sequence, and the marginals.

    ``beta_{t-1}(i) = g sum_j b_t(j) + sum_e b_t(j_e) (factor_e - g)`` over the entries ``e`` out of
    ``i``, with ``b_t(j) = node_t(j) beta_t(j) / norm_t``; the rest is that of a dense chain. The
    weight, which may be negative, is left out of the sums, whose terms must not cancel.
    """
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
            part = 0.0
            for e in range(out_ptr[i], out_ptr[i + 1]):
                after = node[t, targets[e]]
                flow[e] += before * after
                part += after * (factor[e] - ground)
            total = everything + part
            if total < TRUST * everything:
                total = _sum_exactly(node, t, targets, factor, out_ptr[i], out_ptr[i + 1], ground)
            beta[i] = total
    for j in range(size):
        alpha[begin, j] *= weight * beta[j] if alpha[begin, j] > 0.0 else 0.0


@kernel
def _log_total(norm: FloatArray, shift: FloatArray, step_shift: float, begin: int,
               end: int) -> float:  # fmt: skip
    """Add up ``log norm_t + shift_t``, and the shift of each step, in runs as for a dense chain."""
    total = 0.0
    for run in range(begin, end, 128):
        part = 0.0
        for t in range(run, min(run + 128, end)):
            part += math.log(norm[t]) + shift[t]
            if t > begin:
                part += step_shift
        total += part
    return total


@kernel
def sparse_sum(
    unary: FloatArray,  # (N, K) scores
    node: FloatArray,  # (N, K) exp(unary - shift); overwritten
    shift: FloatArray,  # (N,) largest unary score of each token
    factor: FloatArray,  # (E,) exp(score - step_shift), source by source
    out_ptr: IdArray,  # (K + 1,)
    targets: IdArray,  # (E,)
    pair_in: FloatArray,  # (E,) scores, target by target
    factor_in: FloatArray,  # (E,) factors, target by target
    in_ptr: IdArray,  # (K + 1,)
    sources: IdArray,  # (E,)
    step_shift: float,  # largest score of a step
    offsets: IntArray,  # (S + 1,)
    weight: FloatArray,  # (S,) factor of the expected counts of each sequence
    norm: FloatArray,  # (N,) workspace
    beta: FloatArray,  # (K,) workspace
    marginals: FloatArray,  # (N, K) out: weighted marginals
    flow: FloatArray,  # (E,) out, added to: weighted expected steps divided by factor
    log_z: FloatArray,  # (S,) out
    status: IntArray,  # (S,) out; outputs of a sequence are only valid where it is OK
) -> None:
    """``log Z`` and the expected counts of labels and scored steps, in ``O(T (K + E))``.

    Scaled forward-backward in the linear domain, one sequence after the other.
    """
    ground = math.exp(-step_shift)
    for s in range(offsets.shape[0] - 1):
        begin = offsets[s]
        end = offsets[s + 1]
        log_z[s] = 0.0
        status[s] = OK
        if begin == end:
            continue
        status[s] = _forward(
            unary, node, pair_in, factor_in, ground, in_ptr, sources, begin, end, marginals, norm
        )
        if status[s] != OK:
            continue
        log_z[s] = _log_total(norm, shift, step_shift, begin, end)
        _backward(
            node, factor, ground, out_ptr, targets, begin, end, norm, weight[s], beta, marginals,
            flow,
        )  # fmt: skip


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
    k = 0
    for e in range(begin, end):
        for m in range(k, sources[e]):
            score = max(score, best[t, m])
        k = sources[e] + 1
    for m in range(k, size):
        score = max(score, best[t, m])
    return score


@kernel
def _max_step(
    best: FloatArray,  # (N, K) in: row t - 1, out: row t, without the unary scores
    t: int,
    pair: FloatArray,  # (E,) source by source
    row_top: FloatArray,  # (K,) largest score of the steps from each label
    out_ptr: IdArray,  # (K + 1,)
    targets: IdArray,  # (E,)
    pair_in: FloatArray,  # (E,) target by target
    in_ptr: IdArray,  # (K + 1,)
    sources: IdArray,  # (E,)
) -> None:
    """``best_t(j) = max_i (best_{t-1}(i) + pair(i, j))``, the score of unscored steps being 0.

    The best label gives all others its own score. A label counts beside it only if its largest
    step may lift it above that (the bound by which CarpeDiem prunes; Esposito and Radicioni 2009).
    Where the step from the best label is scored below 0, all are looked at.
    """
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
    e = begin + 0  # adding a signed number makes it one
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
    unary: FloatArray,  # (N, K) scores
    pair: FloatArray,  # (E,) scores, source by source
    row_top: FloatArray,  # (K,) largest score of the steps from each label
    out_ptr: IdArray,  # (K + 1,)
    targets: IdArray,  # (E,)
    pair_in: FloatArray,  # (E,) scores, target by target
    in_ptr: IdArray,  # (K + 1,)
    sources: IdArray,  # (E,)
    offsets: IntArray,  # (S + 1,)
    best: FloatArray,  # (N, K) workspace
    labels: CodeArray,  # (N,) out
    value: FloatArray,  # (S,) out
    status: IntArray,  # (S,) out
) -> None:
    """Find the path of the largest score (Viterbi 1967); of equal ones, the lowest labels.

    ``best_t(j) = unary_t(j) + max_i (best_{t-1}(i) + pair(i, j))``, the same numbers as those of a
    dense chain.
    """
    size = unary.shape[1]
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
            _max_step(best, t, pair, row_top, out_ptr, targets, pair_in, in_ptr, sources)
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
def _entry(out_ptr: IdArray, targets: IdArray, source: int, target: int) -> int:
    """Return the entry of a step by bisection, -1 if it has none."""
    low = out_ptr[source] + 0  # adding a signed number makes it one
    high = out_ptr[source + 1] + 0
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
    unary: FloatArray,  # (N, K) scores
    pair: FloatArray,  # (E,) scores, source by source
    out_ptr: IdArray,  # (K + 1,)
    targets: IdArray,  # (E,)
    offsets: IntArray,  # (S + 1,)
    labels: CodeArray,  # (N,)
    score: FloatArray,  # (S,) out
) -> None:
    """``score = sum_t unary_t(y_t) + sum_{t > 1} pair(y_{t-1}, y_t)``."""
    for s in range(offsets.shape[0] - 1):
        score[s] = 0.0
        for t in range(offsets[s], offsets[s + 1]):
            score[s] += unary[t, labels[t]]
            if t > offsets[s]:
                entry = _entry(out_ptr, targets, labels[t - 1], labels[t])
                if entry >= 0:
                    score[s] += pair[entry]


@kernel
def sparse_add_path(
    out_ptr: IdArray,  # (K + 1,)
    targets: IdArray,  # (E,)
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
                entry = _entry(out_ptr, targets, labels[t - 1], labels[t])
                if entry >= 0:
                    pair[entry] += weight[s]
