"""Parts of the kernels that update weights after each small batch of sequences.

A solver is written once; what depends on the structure and on the features are the parts declared
here, with a body for each class of problems: see :mod:`crfkit.compiler.dispatch`.

The potentials of a batch are one vector, `Workspace.potentials`: those of labels from 0 on, those
of transitions (or whatever else there is) from `first_pair` on. Counts, residuals and changes have
the same places. What is remembered of all batches is one vector too, see `BlockIndex`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from crfkit._types import FloatArray, IntArray
from crfkit.compiler.dispatch import dispatched
from crfkit.compiler.jit import kernel
from crfkit.kernels.design.batch import LazyWeights, Metric, Weights

# What of an update is done: all of it; what comes before, where some are computed from the same
# weights; what is computed; and the step of the weights.
ALL, PREPARE, COMPUTE, APPLY = 0, 1, 2, 3


class BlockIndex(NamedTuple):
    """Where the numbers of each batch stand in a vector over the potentials of all batches."""

    unary: IntArray  # (B + 1,)
    pair: IntArray  # (B + 1,)
    first_pair: int  # where those of pairs stand in a workspace


@dispatched
def gather(problem: Any, batch: int, scale: float, weights: Weights, workspace: Any) -> None:
    """Compute the potentials of a batch; what `step_always` moves is not scaled."""


@dispatched
def loss(problem: Any, batch: int, workspace: Any) -> float:
    """Return the loss of a batch, given the potentials; its gradient to them replaces counts."""
    raise NotImplementedError


@dispatched
def step_dual(
    problem: Any, batch: int, factor: float, threshold: float, dual: Weights, w: Weights,
    workspace: Any,
) -> float:  # fmt: skip
    """``v -= factor X' change``, ``w = sign(v) max(|v| - threshold, 0)``.

    Returns the rise of ``|w|^2``; `change` is a vector like the potentials, in the workspace.
    """
    raise NotImplementedError


@dispatched
def descend(
    problem: Any, batch: int, factor: float, past: float, v: Weights, lag: Weights, workspace: Any
) -> None:
    """``v -= factor X' change`` and, unless past is 0, ``lag -= past factor X' change``."""


@dispatched
def pay(problem: Any, batch: int, scale: float, due: float, paid: Weights, v: Weights) -> None:
    """Move the weights of a batch towards 0 by the penalty that they owe, for ``w = scale v``."""


@dispatched
def catch_up(problem: Any, batch: int, total: float, lazy: LazyWeights) -> None:
    """``v -= (total - seen) direction`` where a batch has weights that are moved lazily."""


@dispatched
def add_gradient(problem: Any, batch: int, out: Weights, workspace: Any) -> float:
    """``out += X' change``; returns something that `aim` needs."""
    raise NotImplementedError


@dispatched
def aim(problem: Any, batch: int, metric: Metric, probe: Weights, workspace: Any) -> float:
    """``probe = M X' change`` for the metric M; returns ``(X' change) . probe``."""
    raise NotImplementedError


@dispatched
def clear(problem: Any, batch: int, probe: Weights) -> None:
    """Let a probe be 0 again."""


@dispatched
def step_always(
    problem: Any,
    length: float,
    decay: float,
    known: float,
    metric: Metric,
    lazy: LazyWeights,
    workspace: Any,
) -> None:
    """``w -= length M (direction / known + decay w)`` for weights that are moved in each step."""


@dispatched
def settle(problem: Any, scale: float, total: float, lazy: LazyWeights) -> None:
    """Move all weights that are moved lazily, and write them with the scale 1."""


@kernel
def batch_losses(
    order: IntArray,  # (n,) batches
    problem: Any,
    weights: Weights,
    workspace: Any,
    losses: FloatArray,  # (n,) out
) -> None:
    """Compute the loss of some batches."""
    for n in range(order.shape[0]):
        gather(problem, order[n], 1.0, weights, workspace)
        losses[n] = loss(problem, order[n], workspace)


@kernel
def copy_block(batch: int, index: BlockIndex, source: FloatArray, out: FloatArray) -> None:
    """Copy what belongs to a batch from one vector (V,) to another."""
    for n in range(index.unary[batch + 1] - index.unary[batch]):
        out[n] = source[n]
    first = index.first_pair
    for n in range(first, first + index.pair[batch + 1] - index.pair[batch]):
        out[n] = source[n]
