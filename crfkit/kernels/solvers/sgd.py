"""Stochastic gradient descent: a step along the gradient of one batch after the other."""

from __future__ import annotations

from typing import Any, NamedTuple

from crfkit._types import FloatArray, IntArray
from crfkit.compiler.jit import inlined, kernel
from crfkit.kernels.design.batch import Weights
from crfkit.kernels.solvers.batches import (
    APPLY,
    COMPUTE,
    BlockIndex,
    copy_block,
    descend,
    gather,
    loss,
    pay,
)

# Numbers that steps share: the scale of the weights, the sum of the scales of all averaged weights,
# and the L1 penalty that any weight could have got so far.
SCALE, PAST, DUE = 0, 1, 2
N_NUMBERS = 3


class DescentWeights(NamedTuple):
    """Weights ``w = scale v``, so that a decay of all of them changes one number."""

    v: Weights
    lag: Weights  # the sum of all weights so far is ``past v - lag`` (Xu 2011, section 5.1)
    paid: Weights  # the L1 penalty that each weight has got, with its sign
    numbers: FloatArray  # (N_NUMBERS,)


class DescentSettings(NamedTuple):
    """What holds for a pass."""

    rates: FloatArray  # (B,) of the step of each batch
    decay: float  # 2 c2 / B
    l1: float  # c1 / B
    averaged: bool  # whether the sum of all weights is asked for
    least_scale: float  # below it, the weights are written with the scale 1


@kernel
def sgd_updates(
    order: IntArray,  # (n,) batches
    stage: int,
    settings: DescentSettings,
    problem: Any,
    index: BlockIndex,
    weights: DescentWeights,
    workspace: Any,
) -> None:
    """Make a step after each of some batches; or `COMPUTE` that of one batch, or apply it."""
    for n in range(order.shape[0]):
        if stage != APPLY:
            gather(problem, order[n], 1.0, weights.v, workspace)
            _scale_block(order[n], index, weights.numbers[SCALE], workspace.potentials)
            loss(problem, order[n], workspace)
            copy_block(order[n], index, workspace.counts, workspace.change)
        if stage != COMPUTE:
            _step(order[n], settings, problem, weights, workspace)


@inlined
def _step(
    batch: int, settings: DescentSettings, problem: Any, weights: DescentWeights, workspace: Any
) -> None:
    """Move along the gradient of a batch and that of its share of the penalty."""
    numbers, rate = weights.numbers, settings.rates[batch]
    numbers[SCALE] *= 1.0 - rate * settings.decay
    past = numbers[PAST] if settings.averaged else 0.0
    descend(problem, batch, rate / numbers[SCALE], past, weights.v, weights.lag, workspace)
    if settings.l1 > 0.0:
        numbers[DUE] += rate * settings.l1
        pay(problem, batch, numbers[SCALE], numbers[DUE], weights.paid, weights.v)
    numbers[PAST] += numbers[SCALE]
    if numbers[SCALE] < settings.least_scale:
        rescale(weights.v.flat, numbers)


@kernel
def rescale(v: FloatArray, numbers: FloatArray) -> None:
    """Write the weights with the scale 1."""
    for p in range(v.shape[0]):
        v[p] *= numbers[SCALE]
    numbers[PAST] /= numbers[SCALE]
    numbers[SCALE] = 1.0


@kernel
def _scale_block(batch: int, index: BlockIndex, scale: float, out: FloatArray) -> None:
    """Multiply what belongs to a batch in a vector (V,)."""
    for n in range(index.unary[batch + 1] - index.unary[batch]):
        out[n] *= scale
    first = index.first_pair
    for n in range(first, first + index.pair[batch + 1] - index.pair[batch]):
        out[n] *= scale
