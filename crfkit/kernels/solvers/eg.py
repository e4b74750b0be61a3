"""Block updates of the exponentiated-gradient dual of the log loss (Collins et al. 2008).

The distribution of a batch is kept by potentials that stand for it. An update mixes these with the
potentials of the weights, moves the weights by the change of the expected counts, and is taken back
where the dual does not rise.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from crfkit._types import FloatArray, IntArray, SingleArray
from crfkit.compiler.jit import inlined, kernel
from crfkit.compiler.simd import rounded_number
from crfkit.kernels.design.batch import Weights
from crfkit.kernels.solvers.batches import APPLY, COMPUTE, BlockIndex, gather, loss, step_dual

# A rate is changed by these factors at most; where an update did not raise the dual, by the last.
SLOWER, FASTER, FAR_SLOWER = 0.5, 1.1, 0.1
TINY = 1e-300


class DualBlocks(NamedTuple):
    """The distributions of all batches.

    Potentials of 32 bits are as good as any: all else is computed from what they are. So is the
    dual computed from residuals as they are kept; the error of a bound is then their rounding times
    how far the potentials are from those of the weights, and vanishes at the optimum.
    """

    potentials: SingleArray  # (T,) that stand for the distributions
    residuals: SingleArray  # (T,) their expected counts minus the true ones, weighted
    entropies: FloatArray  # (B,) weighted; of a prior, where some scores are not learned
    rates: FloatArray  # (B,) how far the next update goes
    gaps: FloatArray  # (B,) about the part of each batch in the duality gap
    proposals: FloatArray  # (B, 2) entropy after an update, and the rise of a linear dual by it


class DualWeights(NamedTuple):
    """Weights that distributions amount to; where the threshold is 0, all may be the same."""

    read: Weights  # towards whose potentials updates go
    dual: Weights
    w: Weights  # the dual vector, shrunk by the threshold


class DualSettings(NamedTuple):
    """What holds for a run of updates."""

    factor: float  # 1 / (2 c2)
    threshold: float  # c1 / (2 c2)
    forced: bool  # keep each update, whatever becomes of the dual


@kernel
def eg_updates(
    order: IntArray,  # (n,) batches
    stage: int,
    settings: DualSettings,
    problem: Any,
    index: BlockIndex,
    blocks: DualBlocks,
    weights: DualWeights,
    workspace: Any,
) -> None:
    """Update batches, one after the other; or `COMPUTE` the proposal for one batch, or apply it."""
    for n in range(order.shape[0]):
        if stage != APPLY:
            _propose(order[n], problem, index, blocks, weights.read, workspace)
        if stage != COMPUTE:
            _apply(order[n], settings, problem, index, blocks, weights, workspace)


@inlined
def _propose(
    batch: int, problem: Any, index: BlockIndex, blocks: DualBlocks, read: Weights, workspace: Any
) -> None:
    """Mix the potentials of a batch with those of the weights, and count what that changes."""
    unary, pair, at = index.unary[batch], index.pair[batch], index.first_pair
    n_unary, n_pair = index.unary[batch + 1] - unary, index.pair[batch + 1] - pair
    rate = blocks.rates[batch]
    gather(problem, batch, 1.0, read, workspace)
    potentials, direction = workspace.potentials, workspace.direction
    mix(unary, n_unary, 0, rate, blocks.potentials, potentials, direction)
    mix(pair, n_pair, at, rate, blocks.potentials, potentials, direction)
    entropy = loss(problem, batch, workspace)
    residual, change = workspace.counts, workspace.change
    inner, slope = compare(unary, n_unary, 0, blocks.residuals, potentials, direction, residual,
                           change)  # fmt: skip
    more, steeper = compare(pair, n_pair, at, blocks.residuals, potentials, direction, residual,
                            change)  # fmt: skip
    blocks.proposals[batch, 0], blocks.proposals[batch, 1] = entropy - inner - more, slope + steeper


@inlined
def _apply(
    batch: int,
    settings: DualSettings,
    problem: Any,
    index: BlockIndex,
    blocks: DualBlocks,
    weights: DualWeights,
    workspace: Any,
) -> None:
    """Move the weights, and keep the update if it raises the dual; choose the next rate."""
    factor, threshold = settings.factor, settings.threshold
    entropy, slope = blocks.proposals[batch, 0], blocks.proposals[batch, 1]
    if settings.forced or abs(entropy) + abs(slope) < math.inf:
        square = step_dual(problem, batch, factor, threshold, weights.dual, weights.w, workspace)
        rise = entropy - blocks.entropies[batch] - 0.5 / factor * square
        if settings.forced or rise >= 0.0:
            unary, pair, at = index.unary[batch], index.pair[batch], index.first_pair
            keep(unary, index.unary[batch + 1] - unary, 0, workspace.potentials, workspace.counts,
                 blocks.potentials, blocks.residuals)  # fmt: skip
            keep(pair, index.pair[batch + 1] - pair, at, workspace.potentials, workspace.counts,
                 blocks.potentials, blocks.residuals)  # fmt: skip
            blocks.entropies[batch] = entropy
        else:
            step_dual(problem, batch, -factor, threshold, weights.dual, weights.w, workspace)
        _adapt(batch, slope, rise, settings.forced, blocks)
    else:
        blocks.rates[batch] *= FAR_SLOWER


@inlined
def _adapt(batch: int, slope: float, rise: float, forced: bool, blocks: DualBlocks) -> None:
    """Choose the next rate of a batch, from the slope and the rise of the dual."""
    # The gap is half the slope all the way to the scores of the weights.
    blocks.gaps[batch] = max(0.5 * slope / max(blocks.rates[batch], TINY), 0.0)
    # A parabola with this slope and this rise is highest at half its slope.
    ratio = 0.5 * slope / max(slope - rise, 1e-3 * slope, TINY)
    least, most = (SLOWER, FASTER) if rise >= 0.0 else (FAR_SLOWER, SLOWER)
    if not forced:
        blocks.rates[batch] = min(blocks.rates[batch] * min(max(ratio, least), most), 1.0)


@kernel
def mix(
    start: int,
    count: int,
    at: int,
    rate: float,
    before: SingleArray,  # (T,) read from `start`
    potentials: FloatArray,  # (V,) in and out, from `at`
    direction: FloatArray,  # (V,) out, from `at`
) -> None:
    """``direction = potentials - before`` and ``potentials = before + rate direction``: 32 bits."""
    for n in range(count):
        step = potentials[at + n] - before[start + n]
        direction[at + n] = step
        potentials[at + n] = rounded_number(before[start + n] + rate * step)


@kernel
def compare(
    start: int,
    count: int,
    at: int,
    before: SingleArray,  # (T,) residuals before the update
    potentials: FloatArray,  # (V,)
    direction: FloatArray,  # (V,)
    residual: FloatArray,  # (V,) in and out: those after the update, then of 32 bits
    change: FloatArray,  # (V,) out: the difference of the two
) -> tuple[float, float]:
    """Return ``potentials . residual`` and ``change . direction``."""
    inner = 0.0
    slope = 0.0
    for n in range(count):
        after = rounded_number(residual[at + n])
        more = after - before[start + n]
        residual[at + n] = after
        change[at + n] = more
        inner += potentials[at + n] * after
        slope += more * direction[at + n]
    return inner, slope


@kernel
def keep(
    start: int,
    count: int,
    at: int,
    potentials: FloatArray,  # (V,)
    residual: FloatArray,  # (V,)
    kept_potentials: SingleArray,  # (T,) out
    kept_residuals: SingleArray,  # (T,) out
) -> None:
    """Let the distribution of a batch be the one that was computed."""
    for n in range(count):
        kept_potentials[start + n] = potentials[at + n]
        kept_residuals[start + n] = residual[at + n]
