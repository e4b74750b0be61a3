"""Sums over the many short sequences of a batch, side by side."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from crfkit._types import FloatArray, IntArray
from crfkit.compiler.jit import frozen
from crfkit.kernels.chain import interleaved as kernels
from crfkit.kernels.chain.arrays import ChainScores, ChainSums
from crfkit.kernels.chain.sum import TINY

# Loops over fewer lanes are slower than those over labels. Lanes come in eights, as many as numbers
# fit a vector register.
MIN_LANES, LANE_STEP, MAX_LANES = 16, 8, 64
# With more labels than this, loops over labels are long enough.
MAX_LABELS = 9


def sum_interleaved(
    scores: ChainScores,
    factor: FloatArray,
    pair_shift: FloatArray,
    weight: FloatArray,
    out: ChainSums,
) -> IntArray | None:
    """Sum short sequences that share one table; returns those that are left, None for all."""
    lanes = deal(scores)
    if lanes is None or factor.min() < TINY:
        return None
    failed = sum_lanes(lanes, scores, factor[0], float(pair_shift[0]), weight, out)
    return np.union1d(np.delete(np.arange(len(weight)), lanes.order), failed)


class Lanes(NamedTuple):
    """Which sequences are computed side by side, and where."""

    order: IntArray  # (n,) sequences, the longest first
    lane: IntArray  # (n,) where each is laid
    start: IntArray  # (n,)
    token: IntArray  # (T, W) which token each lane has at each time, -1 for none
    fresh: FloatArray  # (T, W) 1 where no transition leads into it


def deal(scores: ChainScores) -> Lanes | None:
    """Deal sequences, but for a few long ones, to lanes; None where that does not pay."""
    lengths = np.diff(scores.offsets)
    order = np.argsort(-lengths, kind="stable")[: np.count_nonzero(lengths)]
    sizes = lengths[order]
    rest = np.cumsum(sizes[::-1])[::-1]
    fits = sizes * MIN_LANES <= rest
    if not fits.any():
        return None
    first = int(fits.argmax())
    order, width = frozen(order[first:]), int(rest[first] // sizes[first])
    width = min(MAX_LANES, width // LANE_STEP * LANE_STEP)
    filled, lane, start = np.empty(width, np.int64), np.empty_like(order), np.empty_like(order)
    kernels.lanes_deal(scores.offsets, order, filled, lane, start)
    lane, start = frozen(lane), frozen(start)
    shape = int(filled.max()), width
    token, fresh = np.empty(shape, np.int64), np.empty(shape)
    kernels.lanes_lay(scores.offsets, order, lane, start, token, fresh)
    return Lanes(order, lane, start, frozen(token), frozen(fresh))


def sum_lanes(
    lanes: Lanes,
    scores: ChainScores,
    factor: FloatArray,
    pair_shift: float,
    weight: FloatArray,
    out: ChainSums,
) -> IntArray:
    """Sum the sequences in the lanes; returns those in which a probability vanishes."""
    node = np.empty((len(lanes.token), scores.unary.shape[1], lanes.token.shape[1]))
    alpha = np.empty_like(node)
    shift, norm, inverse, least = (np.empty(lanes.fresh.shape) for _ in range(4))
    kernels.lanes_load(scores.unary, lanes.token, node, shift)
    np.exp(node, out=node)
    kernels.lanes_forward(frozen(node), lanes.fresh, factor, alpha, norm, inverse, least)
    tokens = lanes.token[~(least >= TINY)]
    found = np.searchsorted(scores.offsets, tokens[tokens >= 0], side="right") - 1
    failed: IntArray = np.unique(found)
    if len(failed):
        marks = np.repeat(np.isin(np.arange(len(weight)), failed), np.diff(scores.offsets))
        kernels.lanes_drop(lanes.token, frozen(marks.astype(np.int32)), node, alpha, norm, inverse)
    ending = np.zeros(lanes.fresh.shape)
    lengths = np.diff(scores.offsets)[lanes.order]
    ending[lanes.start + lengths - 1, lanes.lane] = weight[lanes.order]
    kernels.lanes_backward(
        lanes.fresh, frozen(ending), frozen(factor.T), frozen(inverse), node, alpha,
        np.empty((1, *node.shape[1:])), out.flow[0],
    )  # fmt: skip
    kernels.lanes_store(lanes.token, frozen(alpha), out.marginals)
    shift += np.log(norm, out=norm)
    kernels.lanes_log_total(
        scores.offsets, lanes.order, lanes.lane, lanes.start, frozen(shift), pair_shift, out.log_z
    )
    return failed
