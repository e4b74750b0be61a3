"""Stochastic average gradient: steps along the mean of the last gradients of all batches.

Weights ``w = scale v`` of attributes are moved when they are next needed, others in each step.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from crfkit._types import FloatArray, IntArray
from crfkit.compiler.jit import inlined, kernel
from crfkit.kernels.design.batch import LazyWeights, Metric, Weights
from crfkit.kernels.solvers.batches import (
    ALL,
    APPLY,
    COMPUTE,
    BlockIndex,
    add_gradient,
    aim,
    catch_up,
    clear,
    copy_block,
    gather,
    loss,
    settle,
    step_always,
)

# Numbers that updates share: the scale, the sum of the lengths of all steps, how many batches have
# a gradient, the first guess of a Lipschitz constant, and of all estimates the sum, the largest and
# the number.
SCALE, TOTAL, KNOWN, GUESS, SUM, MOST, COUNT = 0, 1, 2, 3, 4, 5, 6
N_NUMBERS = 7

# What happens to an estimate before it is tested, and each time it is too small.
LESS, MORE = 0.9, 1.5
# Updates between tests at most, and tests at an update.
LONGEST_PAUSE, MOST_TESTS = 32, 200
# A decrease of the loss by less than this share of it is not told from rounding.
LEAST_CHANGE = 1e-9
# The scale of the weights below which they are written anew, before anything overflows.
LEAST_SCALE = 1e-9


class Lipschitz(NamedTuple):
    """Estimated Lipschitz constants of the gradient of the loss of each batch."""

    estimates: FloatArray  # (B,) 0 before the first one
    wait: IntArray  # (B,) updates until the next test
    pause: IntArray  # (B,) between tests


class GradientMemory(NamedTuple):
    """The weights, and of each batch its last gradient, to its potentials, and the loss there."""

    residuals: FloatArray  # (T,)
    losses: FloatArray  # (B,)
    offsets: FloatArray  # (B,) ``loss(w) >= offset + residual . potentials(w)``
    known: FloatArray  # (B,) 1 where there is one
    numbers: FloatArray  # (N_NUMBERS,)
    lipschitz: Lipschitz
    lazy: LazyWeights


class StepSettings(NamedTuple):
    """What holds for a run of updates."""

    decay: float  # 2 c2 / B
    longest: float  # steps are no longer; with 0, nothing is moved and nothing tested
    steepest: float  # the largest number of the metric times the decay
    caution: float  # the share of the largest constant that their mean is taken for at least
    metric: Metric


class SagSearch(NamedTuple):
    """What updates read and write, beside the problem."""

    settings: StepSettings
    places: BlockIndex
    memory: GradientMemory


class LineRoom(NamedTuple):
    """Room for the test of an estimate along a line."""

    probe: Weights  # 0 between tests
    potentials: FloatArray  # (V,)
    along: FloatArray  # (V,)
    residual: FloatArray  # (V,)
    value: FloatArray  # (1,) the loss


@kernel
def sag_updates(
    order: IntArray, stage: int, problem: Any, search: SagSearch, room: LineRoom, workspace: Any
) -> None:
    """Update the weights after each of some batches, (n,), or do a part of that for one batch."""
    for n in range(order.shape[0]):
        if stage != COMPUTE:
            catch_up(problem, order[n], search.memory.numbers[TOTAL], search.memory.lazy)
        if stage == ALL or stage == COMPUTE:
            _evaluate(order[n], problem, search, room, workspace)
        if stage == ALL or stage == APPLY:
            _apply(order[n], problem, search, room, workspace)


@kernel
def sag_settle(problem: Any, memory: GradientMemory) -> None:
    """Move all weights that are moved lazily, and write them with the scale 1."""
    settle(problem, memory.numbers[SCALE], memory.numbers[TOTAL], memory.lazy)
    memory.numbers[SCALE], memory.numbers[TOTAL] = 1.0, 0.0


@inlined
def _evaluate(batch: int, problem: Any, search: SagSearch, room: LineRoom, workspace: Any) -> None:
    """Compute the loss of a batch and its gradient, and perhaps test its estimate."""
    settings, index, memory = search
    lipschitz = memory.lipschitz
    gather(problem, batch, memory.numbers[SCALE], memory.lazy.v, workspace)
    value = loss(problem, batch, workspace)
    copy_block(batch, index, workspace.potentials, room.potentials)
    copy_block(batch, index, workspace.counts, room.residual)
    if settings.longest > 0.0 and _is_due(batch, memory.numbers[GUESS], lipschitz):
        copy_block(batch, index, room.residual, workspace.change)
        square = aim(problem, batch, settings.metric, room.probe, workspace)
        estimate = LESS * lipschitz.estimates[batch]
        if square > LEAST_CHANGE * abs(value) * estimate:
            gather(problem, batch, 1.0, room.probe, workspace)
            copy_block(batch, index, workspace.potentials, room.along)
            tests = 0
            while tests < MOST_TESTS:
                _shift_block(batch, index, 1.0 / estimate, room, workspace.potentials)
                tests += 1
                if loss(problem, batch, workspace) <= value - 0.5 * square / estimate:
                    break
                estimate *= MORE
            _conclude(batch, estimate, tests, lipschitz)
        clear(problem, batch, room.probe)
    room.value[0] = value


@inlined
def _is_due(batch: int, guess: float, lipschitz: Lipschitz) -> bool:
    """Whether the estimate of a batch shall be tested now."""
    new = lipschitz.estimates[batch] == 0.0
    if new:
        lipschitz.estimates[batch] = guess / LESS
    else:
        lipschitz.wait[batch] -= 1
    due: bool = new or lipschitz.wait[batch] < 0
    return due


@inlined
def _conclude(batch: int, estimate: float, tests: int, lipschitz: Lipschitz) -> None:
    """Note an estimate; the longer it has been good, the more rarely it is tested."""
    pause = min(2 * max(lipschitz.pause[batch], 1), LONGEST_PAUSE) if tests == 1 else 1
    lipschitz.estimates[batch] = estimate
    lipschitz.pause[batch] = pause
    lipschitz.wait[batch] = pause


@inlined
def _apply(batch: int, problem: Any, search: SagSearch, room: LineRoom, workspace: Any) -> None:
    """Replace the gradient of a batch in the sum of all, and make a step."""
    settings, index, memory = search
    numbers, decay, value = memory.numbers, settings.decay, room.value[0]
    lazy, lipschitz = memory.lazy, memory.lipschitz
    unary, pair, at = index.unary[batch], index.pair[batch], index.first_pair
    inner = _remember(unary, index.unary[batch + 1] - unary, 0, room.residual, room.potentials,
                     memory.residuals, workspace.change)  # fmt: skip
    inner += _remember(pair, index.pair[batch + 1] - pair, at, room.residual, room.potentials,
                      memory.residuals, workspace.change)  # fmt: skip
    add_gradient(problem, batch, lazy.direction, workspace)
    numbers[KNOWN] += 1.0 - memory.known[batch]
    memory.losses[batch], memory.offsets[batch] = value, value - inner
    memory.known[batch] = 1.0
    if settings.longest > 0.0:
        if lipschitz.pause[batch] > 0:  # it was tested
            numbers[GUESS] = 0.5 * lipschitz.estimates[batch]
        if lipschitz.wait[batch] == lipschitz.pause[batch]:  # just now
            survey(lipschitz.estimates, numbers)
        length = step_length(numbers, settings.steepest, settings.caution)
        length = min(length, settings.longest)
        step_always(problem, length, decay, numbers[KNOWN], settings.metric, lazy, workspace)
        numbers[SCALE] *= 1.0 - length * decay
        numbers[TOTAL] += length / (numbers[KNOWN] * numbers[SCALE])
        if numbers[SCALE] < LEAST_SCALE:
            settle(problem, numbers[SCALE], numbers[TOTAL], lazy)
            numbers[SCALE], numbers[TOTAL] = 1.0, 0.0


@kernel
def survey(estimates: FloatArray, numbers: FloatArray) -> None:
    """Note the sum, the largest and the number of the estimates."""
    numbers[SUM], numbers[MOST], numbers[COUNT] = 0.0, 0.0, 0.0
    for n in range(estimates.shape[0]):
        numbers[SUM] += estimates[n]
        numbers[MOST] = max(numbers[MOST], estimates[n])
        numbers[COUNT] += estimates[n] > 0.0


@kernel
def step_length(numbers: FloatArray, decay: float, caution: float) -> float:
    """Return ``1/2 (1 / (max L + decay) + 1 / (mean L + decay))``, less for a large decay."""
    mean = max(numbers[SUM] / numbers[COUNT], caution * numbers[MOST])
    length: float = 0.5 / (numbers[MOST] + decay) + 0.5 / (mean + decay)
    return min(length, 0.5 / decay) if decay > 0.0 else length


@kernel
def _shift_block(
    batch: int, index: BlockIndex, length: float, room: LineRoom, out: FloatArray
) -> None:
    """``out = potentials - length along`` for what belongs to a batch."""
    before, along, first = room.potentials, room.along, index.first_pair
    for n in range(index.unary[batch + 1] - index.unary[batch]):
        out[n] = before[n] - length * along[n]
    for n in range(first, first + index.pair[batch + 1] - index.pair[batch]):
        out[n] = before[n] - length * along[n]


@kernel
def _remember(
    start: int,
    count: int,
    at: int,
    residual: FloatArray,  # (V,) the new gradient, from `at` on
    potentials: FloatArray,  # (V,)
    memory: FloatArray,  # (T,) the old one, from `start` on; in and out
    change: FloatArray,  # (V,) out: the difference of the two
) -> float:
    """Replace a gradient to potentials; returns ``residual . potentials``."""
    inner = 0.0
    for n in range(count):
        new = residual[at + n]
        change[at + n] = new - memory[start + n]
        memory[start + n] = new
        inner += new * potentials[at + n]
    return inner
