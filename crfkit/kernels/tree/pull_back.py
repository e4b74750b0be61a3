"""From slopes of functions of the marginals of forests to gradients of their scores.

Shapes as in :mod:`crfkit.kernels.tree.sum`. What :mod:`crfkit.kernels.tree.posterior` does by
logarithms, in linear form, for marginals ``mu`` that are known: with what the subtree of ``c`` says
of its label and of that of the parent ``p``, ``P(y_c = j | y_p = i) = factor(i, j) inside_c(j) /
message_c(i)`` and ``P(y_p = i | y_c = j) = mu_p(i) / message_c(i) factor(i, j) inside_c(j) /
mu_c(j)``.
"""

from __future__ import annotations

from typing import NamedTuple

from crfkit._types import FloatArray
from crfkit.compiler.jit import kernel, part
from crfkit.kernels._strips import add_outer, product
from crfkit.kernels.chain.arrays import ChainExponentials
from crfkit.kernels.chain.posterior import LEAST_SHARE, MOST, NO_SHARE, SLIGHT, SlopeSums
from crfkit.kernels.chain.sum import OK, UNDERFLOW
from crfkit.kernels.tree.sum import TreeScores, edge, scale_row


class TreeSlopeRooms(NamedTuple):
    """Messages and measures of one forest of at most ``R`` tokens."""

    inside: FloatArray  # (R, K) what the subtree below each token says of its label
    message: FloatArray  # (R, K) what it says of that of the parent; then what is carried down
    share: FloatArray  # (R, K) marginals of the parent over messages
    measure: FloatArray  # (R, K) what is carried up, times inside over marginals
    up: FloatArray  # (R, K) what came up to the parent
    row: FloatArray  # (1, K)


@part
def _weigh(marginals: FloatArray, t: int, c: int, whole: FloatArray,
           rooms: TreeSlopeRooms) -> bool:  # fmt: skip
    """Divide what is carried up from a token by its marginals; returns whether to trust it."""
    inside, measure, most = rooms.inside, rooms.measure, 0.0
    for k in range(whole.shape[1]):
        mu = marginals[t, k]
        if mu < LEAST_SHARE and abs(whole[t, k]) > SLIGHT:
            return False
        measure[c, k] = 0.0
        if mu > NO_SHARE:
            if inside[c, k] < LEAST_SHARE:
                return False
            measure[c, k] = inside[c, k] * (whole[t, k] / mu)
            most = max(most, abs(measure[c, k]))
    return most <= MOST


@part
def _send_up(marginals: FloatArray, p: int, c: int, at: int, exponentials: ChainExponentials,
             m: int, whole: FloatArray, rooms: TreeSlopeRooms) -> bool:  # fmt: skip
    """Carry what is known and the slopes of a token to its parent; returns whether to trust it."""
    inside, message, row = rooms.inside, rooms.message, rooms.row
    product(inside, c, exponentials.transposed, m, message, c)
    product(rooms.measure, c, exponentials.transposed, m, row, 0)
    for i in range(whole.shape[1]):
        mu = marginals[at, i]
        rooms.share[c, i] = 0.0
        if mu > NO_SHARE:
            if message[c, i] < 1.0 / MOST:
                return False
            rooms.share[c, i] = mu / message[c, i]
        rooms.up[c, i] = rooms.share[c, i] * row[0, i]
        whole[at, i] += rooms.up[c, i]
        inside[p, i] *= message[c, i]
        if mu > NO_SHARE and inside[p, i] < LEAST_SHARE:
            return False
    return scale_row(inside, p) > 0.0


@part
def _send_down(p: int, c: int, begin: int, exponentials: ChainExponentials, m: int,
               whole: FloatArray, rooms: TreeSlopeRooms) -> bool:  # fmt: skip
    """Carry the slopes that came to the parent from elsewhere; returns whether to trust them."""
    message, most = rooms.message, 0.0
    for i in range(whole.shape[1]):
        rest = whole[begin + p, i] - rooms.up[c, i]
        message[c, i] = rest / message[c, i] if rooms.share[c, i] > 0.0 else 0.0
        most = max(most, abs(message[c, i]))
    product(message, c, exponentials.factor, m, rooms.row, 0)
    for j in range(whole.shape[1]):
        whole[begin + c, j] += rooms.row[0, j] * rooms.inside[c, j]
    return most <= MOST


@part
def _carry_forest(scores: TreeScores, exponentials: ChainExponentials, marginals: FloatArray,
                  s: int, rooms: TreeSlopeRooms, out: SlopeSums) -> int:  # fmt: skip
    """Carry the slopes of one forest along its edges, up and down; returns its status."""
    begin, end, size = scores.offsets[s], scores.offsets[s + 1], scores.unary.shape[1]
    whole, inside, message = out.unary, rooms.inside, rooms.message
    for t in range(begin, end):
        for k in range(size):
            inside[t - begin, k] = exponentials.node[t, k]
    for n in range(end - 1, begin - 1, -1):
        c, p, m = edge(scores, begin, n)
        if not scale_row(inside, c) > 0.0 or not _weigh(marginals, begin + c, c, whole, rooms):
            return UNDERFLOW
        if p >= 0 and not _send_up(marginals, p, c, begin + p, exponentials, m, whole, rooms):
            return UNDERFLOW
    for n in range(begin, end):
        c, p, m = edge(scores, begin, n)
        if p < 0:
            for k in range(size):
                rooms.share[c, k], message[c, k] = 0.0, 0.0
        elif not _send_down(p, c, begin, exponentials, m, whole, rooms):
            return UNDERFLOW
    index = scores.transition_index
    if index.shape[0] == 1:
        add_outer(rooms.share, 0, rooms.measure, 0, end - begin, out.flow, index[0])
        add_outer(message, 0, inside, 0, end - begin, out.flow, index[0])
        return OK
    for t in range(end - begin):
        m = index[begin + t]
        add_outer(rooms.share, 0, rooms.measure, t, t + 1, out.flow, m)
        add_outer(message, 0, inside, t, t + 1, out.flow, m)
    return OK


@kernel
def tree_pull_back(
    scores: TreeScores,
    exponentials: ChainExponentials,
    marginals: FloatArray,  # (N, K)
    rooms: TreeSlopeRooms,
    out: SlopeSums,  # in: the slopes, as the unary part
) -> None:
    """Carry the slopes of forests, which turn into the gradient where they can be trusted."""
    for s in range(out.status.shape[0]):
        if out.status[s] == OK:
            out.status[s] = _carry_forest(scores, exponentials, marginals, s, rooms, out)
