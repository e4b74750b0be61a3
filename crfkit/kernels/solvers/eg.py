"""Block updates of the exponentiated-gradient dual of the log loss (Collins et al. 2008).

The distribution of a batch is kept by potentials that stand for it. An update mixes these with the
potentials of the weights, moves the weights by the change of the expected counts, and is taken back
where the dual does not rise.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from crfkit._types import FloatArray, IntArray, LabelArray, SingleArray
from crfkit.compiler.dispatch import dispatched, implements
from crfkit.compiler.jit import inlined, kernel
from crfkit.compiler.simd import rounded_number
from crfkit.kernels.design.batch import Weights
from crfkit.kernels.solvers.batches import APPLY, COMPUTE, BlockIndex, gather, loss, step_dual

# A rate is changed by these factors at most; where an update did not raise the dual, by the last.
SLOWER, FASTER, FAR_SLOWER = 0.5, 1.1, 0.1
# At first all of a distribution is on the true labels, which is not quite what the potentials stand
# for; later, rounding may hide what a short step does. Where not even a step of the first rate
# raises the dual, it is kept all the same, so that both agree; the next one has the second rate.
LEAST_RATE, NEXT_RATE = 1e-4, 1e-2
TINY = 1e-300
# Numbers of 16 bits: the largest; what stands for a residual of 0, and the largest beside it.
LARGEST, ZERO, MOST = 65_535.0, 32_768.0, 32_767.0
# The bits of a number from this one on choose whether it is rounded up.
LATER_BITS = 4294967296.0
# What is known of the short numbers of a batch: the least potential and the steps of potentials and
# residuals; of labels, then of transitions.
LOW, STEP, RESIDUAL_STEP, N_NUMBERS = 0, 1, 2, 3
# What is known of an update: the entropy after it, the rise of a linear dual, how far rounding may
# be off from that of the dual, and numbers as above.
ENTROPY, SLOPE, NOISE, N_PROPOSED = 0, 1, 2, 3


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
    proposals: FloatArray  # (B, 9) see `N_PROPOSED`


class ShortBlocks(NamedTuple):
    """The same in half the room: numbers of steps, which differ from batch to batch.

    Potentials are rounded before all else is computed from what they are, up or down at random:
    small moves are not lost. Residuals are kept by their square roots: most are small.
    """

    potentials: LabelArray  # (T,) how many steps above the least
    residuals: LabelArray  # (T,) `ZERO`, and the root of how many steps, negative ones below it
    entropies: FloatArray  # (B,)
    rates: FloatArray  # (B,)
    gaps: FloatArray  # (B,)
    proposals: FloatArray  # (B, 9)
    numbers: FloatArray  # (B, 6) steps, see `LOW`


Blocks = DualBlocks | ShortBlocks


class BlockPlace(NamedTuple):
    """Where the numbers of a batch stand: of a kind, labels (0) or transitions (1)."""

    batch: int
    kind: int
    start: int  # in the vectors of all batches, (T,)
    size: int
    at: int  # where the same stand in the vectors of the batch, (V,)


class BatchVectors(NamedTuple):
    """Vectors (V,) of a batch."""

    potentials: FloatArray
    direction: FloatArray
    residual: FloatArray
    change: FloatArray


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
    blocks: Blocks,
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
    batch: int, problem: Any, index: BlockIndex, blocks: Blocks, read: Weights, workspace: Any
) -> None:
    """Mix the potentials of a batch with those of the weights, and count what that changes."""
    unary, pair, at = index.unary[batch], index.pair[batch], index.first_pair
    n_unary, n_pair = index.unary[batch + 1] - unary, index.pair[batch + 1] - pair
    rate = blocks.rates[batch]
    gather(problem, batch, 1.0, read, workspace)
    vectors = BatchVectors(
        workspace.potentials, workspace.direction, workspace.counts, workspace.change
    )
    labels = BlockPlace(batch, 0, unary, n_unary, 0)
    transitions = BlockPlace(batch, 1, pair, n_pair, at)
    mix(blocks, labels, rate, vectors)
    mix(blocks, transitions, rate, vectors)
    entropy = loss(problem, batch, workspace)
    inner, slope, of_labels = compare(blocks, labels, vectors)
    more, steeper, of_transitions = compare(blocks, transitions, vectors)
    proposal = blocks.proposals
    proposal[batch, ENTROPY], proposal[batch, SLOPE] = entropy - inner - more, slope + steeper
    proposal[batch, NOISE] = math.sqrt(of_labels + of_transitions) / max(rate, TINY)


@inlined
def _apply(
    batch: int,
    settings: DualSettings,
    problem: Any,
    index: BlockIndex,
    blocks: Blocks,
    weights: DualWeights,
    workspace: Any,
) -> None:
    """Move the weights, and keep the update if it raises the dual; choose the next rate."""
    factor, threshold = settings.factor, settings.threshold
    entropy, slope = blocks.proposals[batch, ENTROPY], blocks.proposals[batch, SLOPE]
    if settings.forced or abs(entropy) + abs(slope) < math.inf:
        square = step_dual(problem, batch, factor, threshold, weights.dual, weights.w, workspace)
        rise = entropy - blocks.entropies[batch] - 0.5 / factor * square
        # What rounding may have taken from it.
        rise += min(2.0 * blocks.proposals[batch, NOISE], max(slope - rise, 0.0))
        if settings.forced or rise >= 0.0 or blocks.rates[batch] < LEAST_RATE:
            unary, pair, at = index.unary[batch], index.pair[batch], index.first_pair
            vectors = BatchVectors(
                workspace.potentials, workspace.direction, workspace.counts, workspace.change
            )
            labels = BlockPlace(batch, 0, unary, index.unary[batch + 1] - unary, 0)
            keep(blocks, labels, vectors)
            keep(blocks, BlockPlace(batch, 1, pair, index.pair[batch + 1] - pair, at), vectors)
            blocks.entropies[batch] = entropy
        else:
            step_dual(problem, batch, -factor, threshold, weights.dual, weights.w, workspace)
        _adapt(batch, slope, rise, settings.forced, blocks)
    else:
        blocks.rates[batch] *= FAR_SLOWER


@inlined
def _adapt(batch: int, slope: float, rise: float, forced: bool, blocks: Blocks) -> None:
    """Choose the next rate of a batch, from the slope and the rise of the dual."""
    rate = blocks.rates[batch]
    if forced:
        return
    if rate < LEAST_RATE:
        blocks.rates[batch] = NEXT_RATE
        return
    if slope > 0.0:  # the gap is half the slope all the way to the scores of the weights
        blocks.gaps[batch] = 0.5 * slope / rate
    # A parabola with this slope and this rise is highest at half its slope.
    ratio = 0.5 * slope / max(slope - rise, 1e-3 * slope, TINY)
    least, most = (SLOWER, FASTER) if rise >= 0.0 else (FAR_SLOWER, SLOWER)
    blocks.rates[batch] = min(rate * min(max(ratio, least), most), 1.0)


@dispatched
def mix(blocks: Blocks, place: BlockPlace, rate: float, vectors: BatchVectors) -> None:
    """``direction = potentials - before`` and ``potentials = before + rate direction``."""


@dispatched
def compare(blocks: Blocks, place: BlockPlace, vectors: BatchVectors) -> tuple[float, float, float]:
    """Round residuals, and write the change of them; returns its products.

    These are ``potentials . residual``, ``change . direction``, and the variance of
    ``error . change`` for the error that rounding has made in the potentials. The direction may be
    written over, for `keep`.
    """
    raise NotImplementedError


@dispatched
def keep(blocks: Blocks, place: BlockPlace, vectors: BatchVectors) -> None:
    """Let the distribution of a batch be the one that was computed."""


@implements(mix, DualBlocks)
def _mix(blocks: DualBlocks, place: BlockPlace, rate: float, vectors: BatchVectors) -> None:
    """Read potentials of 32 bits."""
    mix_singles(place, rate, blocks.potentials, vectors)


@implements(compare, DualBlocks)
def _compare(
    blocks: DualBlocks, place: BlockPlace, vectors: BatchVectors
) -> tuple[float, float, float]:
    """Round residuals to 32 bits."""
    inner, slope = compare_singles(place, blocks.residuals, vectors)
    return inner, slope, 0.0


@implements(keep, DualBlocks)
def _keep(blocks: DualBlocks, place: BlockPlace, vectors: BatchVectors) -> None:
    """Keep numbers of 32 bits."""
    keep_singles(place, vectors, blocks.potentials, blocks.residuals)


@implements(mix, ShortBlocks)
def _mix_short(blocks: ShortBlocks, place: BlockPlace, rate: float, vectors: BatchVectors) -> None:
    """Read potentials that are numbers of steps, and round the new ones to such numbers."""
    first, numbers, batch = place.kind * N_NUMBERS, blocks.numbers, place.batch
    low, step = numbers[batch, first + LOW], numbers[batch, first + STEP]
    mix_short(place, rate, low, step, blocks.potentials, vectors)
    low, high = limits(place.at, place.size, vectors.potentials)
    step = (high - low) / LARGEST
    round_short(place, low, step, vectors.potentials)
    of_kind = N_PROPOSED + first
    blocks.proposals[batch, of_kind + LOW], blocks.proposals[batch, of_kind + STEP] = low, step


@implements(compare, ShortBlocks)
def _compare_short(
    blocks: ShortBlocks, place: BlockPlace, vectors: BatchVectors
) -> tuple[float, float, float]:
    """Round residuals to squares of whole numbers of steps."""
    before = blocks.numbers[place.batch, place.kind * N_NUMBERS + RESIDUAL_STEP]
    step = largest(place.at, place.size, vectors.residual) / MOST**2
    of_kind = N_PROPOSED + place.kind * N_NUMBERS
    blocks.proposals[place.batch, of_kind + RESIDUAL_STEP] = step
    inner, slope, square = compare_short(place, before, step, blocks.residuals, vectors)
    return inner, slope, blocks.proposals[place.batch, of_kind + STEP] ** 2 / 6.0 * square


@implements(keep, ShortBlocks)
def _keep_short(blocks: ShortBlocks, place: BlockPlace, vectors: BatchVectors) -> None:
    """Keep numbers of 16 bits, and what they are counted in."""
    first, batch = place.kind * N_NUMBERS, place.batch
    for n in range(first, first + N_NUMBERS):
        blocks.numbers[batch, n] = blocks.proposals[batch, N_PROPOSED + n]
    low, step = blocks.numbers[batch, first + LOW], blocks.numbers[batch, first + STEP]
    keep_short(place, low, step, vectors, blocks.potentials, blocks.residuals)


@kernel
def mix_singles(
    place: BlockPlace,
    rate: float,
    before: SingleArray,  # (T,)
    vectors: BatchVectors,  # potentials in and out, direction out
) -> None:
    """``direction = potentials - before`` and ``potentials = before + rate direction``: 32 bits."""
    start, at, potentials, direction = place.start, place.at, vectors.potentials, vectors.direction
    for n in range(place.size):
        step = potentials[at + n] - before[start + n]
        direction[at + n] = step
        potentials[at + n] = rounded_number(before[start + n] + rate * step)


@kernel
def compare_singles(
    place: BlockPlace,
    before: SingleArray,  # (T,) residuals before the update
    vectors: BatchVectors,  # residuals in and out: those after the update, then of 32 bits
) -> tuple[float, float]:
    """Return ``potentials . residual`` and ``change . direction``; writes the change."""
    inner, slope, start, at = 0.0, 0.0, place.start, place.at
    potentials, direction, residual, change = vectors
    for n in range(place.size):
        residual[at + n] = rounded_number(residual[at + n])
        after = residual[at + n]
        more = after - before[start + n]
        change[at + n] = more
        inner += potentials[at + n] * after
        slope += more * direction[at + n]
    return inner, slope


@kernel
def keep_singles(
    place: BlockPlace,
    vectors: BatchVectors,
    kept_potentials: SingleArray,  # (T,) out
    kept_residuals: SingleArray,  # (T,) out
) -> None:
    """Let the distribution of a batch be the one that was computed."""
    start, at, potentials, residual = place.start, place.at, vectors.potentials, vectors.residual
    for n in range(place.size):
        kept_potentials[start + n] = potentials[at + n]
        kept_residuals[start + n] = residual[at + n]


@kernel
def mix_short(
    place: BlockPlace,
    rate: float,
    low: float,
    step: float,
    before: LabelArray,  # (T,)
    vectors: BatchVectors,  # potentials in and out, direction out
) -> None:
    """``direction = potentials - before`` and ``potentials = before + rate direction``."""
    start, at, potentials, direction = place.start, place.at, vectors.potentials, vectors.direction
    for n in range(place.size):
        known = low + step * before[start + n]
        along = potentials[at + n] - known
        direction[at + n] = along
        potentials[at + n] = known + rate * along


@kernel
def round_short(
    place: BlockPlace,
    low: float,
    step: float,
    potentials: FloatArray,  # (V,) in and out
) -> None:
    """Round potentials to whole numbers of steps above the least, up or down at random."""
    at, scale = place.at, 1.0 / step if step > 0.0 else 0.0
    for n in range(place.size):
        x = scale * (potentials[at + n] - low)
        later = LATER_BITS * x
        potentials[at + n] = low + step * math.floor(x + (later - math.floor(later)))


@kernel
def compare_short(
    place: BlockPlace,
    step_before: float,
    step: float,
    before: LabelArray,  # (T,) residuals before the update
    vectors: BatchVectors,  # residuals and direction in and out
) -> tuple[float, float, float]:
    """Return ``potentials . residual``, ``change . direction``, ``change . change``; writes it.

    Residuals become squares of whole numbers of steps; these replace the direction.
    """
    inner, slope, square, scale = 0.0, 0.0, 0.0, 1.0 / step if step > 0.0 else 0.0
    start, at = place.start, place.at
    potentials, direction, residual, change = vectors
    for n in range(place.size):
        exact, known = residual[at + n], before[start + n] - ZERO
        root = math.copysign(math.floor(math.sqrt(scale * abs(exact)) + 0.5), exact)
        after = step * root * abs(root)
        more = after - step_before * known * abs(known)
        residual[at + n] = after
        change[at + n] = more
        inner += potentials[at + n] * after
        slope += more * direction[at + n]
        square += more * more
        direction[at + n] = root
    return inner, slope, square


@kernel
def keep_short(
    place: BlockPlace,
    low: float,
    step: float,
    vectors: BatchVectors,  # potentials, and roots of residuals in place of the direction
    kept_potentials: LabelArray,  # (T,) out
    kept_residuals: LabelArray,  # (T,) out
) -> None:
    """Let the distribution of a batch be the one that was computed."""
    start, at, potentials, roots = place.start, place.at, vectors.potentials, vectors.direction
    scale = 1.0 / step if step > 0.0 else 0.0
    for n in range(place.size):
        kept_potentials[start + n] = scale * (potentials[at + n] - low) + 0.5
        kept_residuals[start + n] = roots[at + n] + ZERO


@kernel
def largest(at: int, count: int, vector: FloatArray) -> float:
    """Return the largest absolute value of some numbers."""
    low, high = limits(at, count, vector)
    return max(-low, high)


@kernel
def limits(at: int, count: int, vector: FloatArray) -> tuple[float, float]:
    """Return the smallest and the largest of some numbers; two in each step are faster."""
    if count == 0:
        return 0.0, 0.0
    low, high = vector[at], vector[at]
    other_low, other_high = low, high
    for n in range(at, at + count - 1, 2):
        a, b = vector[n], vector[n + 1]
        low = a if a < low else low
        high = a if a > high else high
        other_low = b if b < other_low else other_low
        other_high = b if b > other_high else other_high
    last = vector[at + count - 1]
    return min(low, other_low, last), max(high, other_high, last)
