"""Labelings of linear chains drawn from their distribution, and the entropy of that.

Shapes as in :mod:`crfkit.kernels.chain.arrays`, ``n`` labelings of each sequence. Both need the
forward vectors alone: given the label of a token, those of the tokens before it do not depend on
those after it.
"""

from __future__ import annotations

import math

from crfkit._types import CodeArray, FloatArray, IntArray
from crfkit.compiler.jit import kernel, part
from crfkit.compiler.simd import WIDTH, add, fill, load, multiply, store, subtract, where_positive
from crfkit.kernels._strips import product
from crfkit.kernels.chain.arrays import ChainExponentials, ChainScores, ChainWorkspace, Run
from crfkit.kernels.chain.sum import OK, forward


@part
def drawn_with_rest(weights: FloatArray, row: int, uniform: float) -> tuple[int, float]:
    """Return the column at which the sum of a row passes a share of the whole: a weight above 0.

    And which share of that weight, from 0 to 1, was needed.
    """
    total, below, before, column = 0.0, 0.0, 0.0, 0
    for k in range(weights.shape[1]):
        total += weights[row, k]
    target = uniform * total
    for k in range(weights.shape[1]):  # without branches, which are hard to foresee
        below += weights[row, k]
        column += 1 if below <= target else 0
        before = below if below <= target else before
    if column == weights.shape[1]:  # in another order of rounding
        column -= 1
        while weights[row, column] == 0.0 and column > 0:
            column -= 1
        return column, 1.0
    return column, (target - before) / weights[row, column]


@part
def drawn(weights: FloatArray, row: int, uniform: float) -> int:
    """Return the column at which the sum of a row passes a share of the whole: a weight above 0."""
    column, _ = drawn_with_rest(weights, row, uniform)
    return column


@kernel
def chain_sample(
    scores: ChainScores,
    exponentials: ChainExponentials,
    uniforms: FloatArray,  # (n, N) from 0 to 1
    workspace: ChainWorkspace,  # of which the messages are not used
    labels: CodeArray,  # (n, N) out
    status: IntArray,  # (S,) out: labels of a sequence are only written where it is OK
) -> None:
    """Forward filtering, backward sampling (Carter and Kohn 1994; Scott 2002).

    ``P(y_t = i | y_{t+1} = j) ~ alpha_t(i) factor(i, j)``: in time ``O(K)`` a token and labeling.
    """
    alpha, weights, index = workspace.alpha, workspace.vector, scores.transition_index
    tables, size, stride = exponentials.transposed, alpha.shape[1], min(index.shape[0] - 1, 1)
    for s in range(status.shape[0]):
        begin, end = scores.offsets[s], scores.offsets[s + 1]
        status[s] = OK
        if begin < end:
            status[s] = forward(scores, exponentials, Run(begin, end, 0), begin, end, workspace)
        for t in range(end - 1, begin - 1 if status[s] == OK else end - 1, -1):
            last = t == end - 1
            m = 0 if last else index[(t + 1) * stride]
            for n in range(labels.shape[0]):  # they do not wait for each other
                label = 0 if last else labels[n, t + 1]
                for i in range(size):
                    follows = 1.0 if last else tables[m, label, i]
                    weights[0, i] = alpha[t - begin, i] * follows
                labels[n, t] = drawn(weights, 0, uniforms[n, t])


@part
def _weigh(scores: ChainScores, exponentials: ChainExponentials, t: int, norm: float,
           alpha: FloatArray, row: int, rooms: FloatArray, to: int) -> float:  # fmt: skip
    """``rooms_to(j) = node_t(j) sum(j) / norm + alpha(j) (log norm + top_t - unary_t(j))``.

    With the sum of the first two rows; it is 0 where alpha is. Returns ``log norm``.
    """
    unary, node, size = scores.unary, exponentials.node, alpha.shape[1]
    scale, level = 1.0 / norm, math.log(norm)
    lost = level + exponentials.shift[t]
    if size < WIDTH:
        for j in range(size):
            known, carried = alpha[row, j], scale * node[t, j] * (rooms[0, j] + rooms[1, j])
            rooms[to, j] = carried + known * (lost - unary[t, j]) if known > 0.0 else 0.0
        return level
    for start in range(0, size, WIDTH):
        p = min(start, size - WIDTH)
        known, both = load(alpha, row, p), add(load(rooms, 0, p), load(rooms, 1, p))
        carried = multiply(multiply(fill(scale), load(node, t, p)), both)
        own = multiply(known, subtract(fill(lost), load(unary, t, p)))
        store(where_positive(known, add(carried, own)), rooms, to, p)
    return level


@kernel
def chain_entropy(
    scores: ChainScores,
    exponentials: ChainExponentials,
    losses: FloatArray,  # (M, K, K) - factor log factor
    workspace: ChainWorkspace,  # a row, and one for each token of a window; no messages
    rooms: FloatArray,  # (4, K)
    entropy: FloatArray,  # (2, S) out; and the size of the numbers whose differences they are
    status: IntArray,  # (S,) out: the entropy of a sequence is only valid where it is OK
) -> None:
    """Entropies of the labelings of sequences by the chain rule, beside the forward recurrence.

    Hernando, Crespi and Cybenko (2005) carry the entropy of the labels before a token given its
    own, ``H_t(j)``. Here it is carried less the logarithm of the forward probability, ``moment_t(j)
    = alpha_t(j) (H_t(j) - log alpha_t(j))``, which takes no logarithms of probabilities:
    ``moment_t(j) = node_t(j) / norm_{t-1} sum_i factor(i, j) (moment_{t-1}(i) - alpha_{t-1}(i) log
    factor(i, j)) + alpha_t(j) (log norm_{t-1} - log node_t(j))``. What is added at a token is of
    the size of its scores, whatever the length.
    """
    alpha, norm, index = workspace.alpha, workspace.norm, scores.transition_index
    window, stride = alpha.shape[0] - 1, min(index.shape[0] - 1, 1)
    for s in range(status.shape[0]):
        begin, end = scores.offsets[s], scores.offsets[s + 1]
        status[s], entropy[0, s], entropy[1, s] = OK, 0.0, 0.0
        for j in range(alpha.shape[1]):
            rooms[0, j], rooms[1, j] = 0.0, 0.0
        for low in range(begin, end, window):
            for j in range(alpha.shape[1] if low > begin else 0):
                alpha[0, j] = alpha[window, j]
            high, run = min(low + window, end), Run(begin, end, 1 - (low - begin))
            status[s] = forward(scores, exponentials, run, low, high, workspace)
            for t in range(low, high if status[s] == OK else low):
                m, row, to, last = index[t * stride], 1 + t - low, 2 + (t - begin) % 2, 1.0
                if t > begin:
                    last = norm[t - 1]
                    product(rooms, 5 - to, exponentials.factor, m, rooms, 0)
                    product(alpha, row - 1, losses, m, rooms, 1)
                level = _weigh(scores, exponentials, t, last, alpha, row, rooms, to)
                entropy[1, s] += 1.0 + abs(level)
            if status[s] != OK:
                break
        if begin < end and status[s] == OK:
            whole = 0.0
            for j in range(alpha.shape[1]):
                whole += rooms[2 + (end - 1 - begin) % 2, j]
            entropy[0, s] = whole / norm[end - 1] + math.log(norm[end - 1])
            entropy[1, s] += abs(math.log(norm[end - 1]))
