"""Covariances of the features of linear chains: the Hessian of log Z as a matrix.

Shapes: ``N`` tokens of ``S`` sequences, ``K`` labels, ``B`` weights of (attribute, label) pairs.
The covariance of a feature with the labels of later tokens is carried from token to token. It
decays, as labels forget each other, and is dropped when it is lost.
"""

from __future__ import annotations

from typing import NamedTuple

from crfkit._types import FloatArray, IdArray, IntArray
from crfkit.compiler.jit import kernel


class TokenFeatures(NamedTuple):
    """Attributes of tokens and their weights. Read-only."""

    indptr: IntArray  # (N + 1,)
    attributes: IdArray  # (nnz,)
    values: FloatArray  # (nnz,) or (1,)
    stride: int
    ptr: IntArray  # (D + 1,) the weights of each attribute
    labels: IdArray  # (B,) their labels


class CovarianceWorkspace(NamedTuple):
    """Rooms for the longest sequence, and for the weights that are carried along, in slots."""

    steps: FloatArray  # (L, K, K) P(label of a token | label before)
    marginals: FloatArray  # (L, K)
    message: FloatArray  # (2, K)
    slots: IntArray  # (B,) in and out: the slot of each weight, -1 for none
    weights: IntArray  # (B + K K,) the weight in each slot; transitions come first
    sizes: FloatArray  # (B + K K,) the largest value it was put there with
    carried: FloatArray  # (K, B + K K) its covariance with the present label
    ahead: FloatArray  # (K, B + K K) and with the next one


@kernel
def _condition(
    node: FloatArray,  # (N, K) exp(unary - its largest)
    factor: FloatArray,  # (M, K, K) exp(pair - its largest), one table
    begin: int,
    end: int,
    work: CovarianceWorkspace,
) -> None:
    """Set the conditional and the marginal probabilities of the labels of a sequence.

    ``P(y_t = j | y_{t-1} = i)`` is 0 where ``i`` leads nowhere.
    """
    size, steps, marginals = node.shape[1], work.steps, work.marginals
    here, before = work.message[0], work.message[1]
    for j in range(size):
        here[j] = node[end - 1, j]
    for t in range(end - 1, begin, -1):
        largest = 0.0
        for i in range(size):
            total = 0.0
            for j in range(size):
                total += factor[0, i, j] * here[j]
            share = 1.0 / total if total > 0.0 else 0.0
            for j in range(size):
                steps[t - begin, i, j] = factor[0, i, j] * here[j] * share
            before[i] = node[t - 1, i] * total
            largest = max(largest, before[i])
        scale = 1.0 / largest if largest > 0.0 else 0.0
        for i in range(size):
            here[i] = before[i] * scale
    total = 0.0
    for j in range(size):
        total += here[j]
    for j in range(size):
        marginals[0, j] = here[j] / total if total > 0.0 else 0.0
    for r in range(1, end - begin):
        for j in range(size):
            total = 0.0
            for i in range(size):
                total += marginals[r - 1, i] * steps[r, i, j]
            marginals[r, j] = total


@kernel
def _carry(r: int, count: int, least: float, work: CovarianceWorkspace, out: FloatArray) -> int:
    """Go on to token `r` of a sequence; returns how many slots are still used."""
    steps, carried, ahead = work.steps, work.carried, work.ahead
    weights, slots, size = work.weights, work.slots, work.carried.shape[0]
    for j in range(size):
        for slot in range(count):
            ahead[j, slot] = 0.0
    for i in range(size):
        for j in range(size):
            row, share = slots.shape[0] + i * size + j, steps[r, i, j]
            for slot in range(count):
                moved = share * carried[i, slot]
                ahead[j, slot] += moved
                out[row, weights[slot]] += moved
    kept = 0
    for slot in range(count):
        p, bound = weights[slot], least * work.sizes[slot]
        is_lost = slot >= size * size
        for k in range(size):
            carried[k, kept] = ahead[k, slot]
            is_lost = is_lost and abs(ahead[k, slot]) < bound
        if is_lost:
            slots[p] = -1
        elif kept < slot:
            weights[kept], work.sizes[kept], slots[p] = p, work.sizes[slot], kept
        if not is_lost:
            kept += 1
    return kept


@kernel
def _add_transition(r: int, weight: float, work: CovarianceWorkspace, out: FloatArray) -> None:
    """Add the transition into token `r` to what is carried; of itself half the covariances."""
    steps, marginals, carried, size = work.steps, work.marginals, work.carried, work.steps.shape[1]
    first = work.slots.shape[0]
    for m in range(size * size):
        i, j = m // size, m % size
        share = weight * marginals[r - 1, i] * steps[r, i, j]
        for k in range(size):
            carried[k, m] -= share * marginals[r, k]
        carried[j, m] += share
        for other in range(size * size):
            g, h = other // size, other % size
            out[first + m, first + other] -= 0.5 * share * marginals[r - 1, g] * steps[r, g, h]
        out[first + m, first + m] += 0.5 * share


@kernel
def _add_token(
    t: int,
    r: int,
    weight: float,
    features: TokenFeatures,
    least: float,
    count: int,
    work: CovarianceWorkspace,
    out: FloatArray,
) -> int:
    """Add the features of token `t`, number `r` of a sequence; returns how many slots are used."""
    marginals, carried, weights, slots = work.marginals, work.carried, work.weights, work.slots
    size = carried.shape[0]
    for n in range(features.indptr[t], features.indptr[t + 1]):
        a, x = features.attributes[n], features.values[n * features.stride]
        for p in range(features.ptr[a], features.ptr[a + 1]):
            label = features.labels[p]
            share = marginals[r, label]
            for slot in range(count):
                out[p, weights[slot]] += x * carried[label, slot]
            if share * (1.0 - share) < least:
                continue
            slot = slots[p]
            if slot < 0:
                slot = count
                count += 1
                slots[p], weights[slot], work.sizes[slot] = slot, p, 0.0
                for k in range(size):
                    carried[k, slot] = 0.0
            moved = weight * x * share
            out[p, p] += 0.5 * moved * x * (1.0 - share)
            work.sizes[slot] = max(work.sizes[slot], abs(weight * x))
            for k in range(size):
                carried[k, slot] -= moved * marginals[r, k]
            carried[label, slot] += moved
    return count


@kernel
def chain_covariances(
    node: FloatArray,  # (N, K) exp(unary - its largest)
    factor: FloatArray,  # (1, K, K) exp(pair - its largest)
    offsets: IntArray,  # (S + 1,) where the sequences start, and the end
    weight: FloatArray,  # (S,)
    first: int,  # the first token of the features
    features: TokenFeatures,
    least: float,  # covariances below this part of the largest possible are left out
    work: CovarianceWorkspace,
    out: FloatArray,  # (B + K K, B + K K) out, added to: half of the matrix plus its transpose
) -> None:
    """Add the covariances of the weights of attributes, and of all transitions."""
    n_weights, size = work.slots.shape[0], node.shape[1]
    for m in range(size * size):
        work.weights[m], work.sizes[m] = n_weights + m, 0.0
    for s in range(weight.shape[0]):
        begin, end, count = offsets[s], offsets[s + 1], size * size
        if begin == end or weight[s] == 0.0:
            continue
        _condition(node, factor, begin, end, work)
        for k in range(size):
            for m in range(count):
                work.carried[k, m] = 0.0
        for t in range(begin, end):
            r = t - begin
            if r > 0:
                count = _carry(r, count, least, work, out)
                _add_transition(r, weight[s], work, out)
            count = _add_token(first + t, r, weight[s], features, least, count, work, out)
        for slot in range(size * size, count):
            work.slots[work.weights[slot]] = -1
