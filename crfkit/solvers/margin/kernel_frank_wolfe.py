"""Block-coordinate Frank-Wolfe where features are known by their inner products alone."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, cast

import numpy as np

from crfkit._params import check_number
from crfkit._types import FloatArray, Random
from crfkit.compiler.jit import frozen
from crfkit.compiler.simd import padded
from crfkit.data.targets import Weights
from crfkit.kernels.solvers import kernelized as kernels
from crfkit.labels.costs import find_cost
from crfkit.losses import HingeLoss
from crfkit.objective.batch import Objective
from crfkit.oracles.weights import aligned
from crfkit.potentials.kernelized import Gram, KernelChainModel
from crfkit.solvers.base import Check, SolverLog, at_least_one
from crfkit.solvers.margin.bounds import (
    certified_distance,
    check_dual,
    check_fixed,
    inner,
    why_certified,
)
from crfkit.solvers.stochastic.base import MiniBatchSolver, Search
from crfkit.solvers.stochastic.exponentiated_gradient import drawn_by_gap
from crfkit.structures import ChainPotentials

NOT_DEFINITE = (
    "the kernel is not positive semidefinite: it is not the inner product of any features. Choose "
    "another kernel, or other kernel_params."
)
# A visit ends when the part of its sequence in the gap is below this share of what it was.
ENOUGH = 0.1


def kernel_blocks(solver: KernelFrankWolfe, objective: Objective, random: Random) -> KernelBlocks:
    """Compute what is kept of the kernel values of an objective's tokens."""
    return KernelBlocks(objective, int(solver.max_gib * 2**30))


def itself(solver: KernelFrankWolfe) -> KernelFrankWolfe:
    """Return the solver, which is for kernels."""
    return solver


@dataclass(kw_only=True, eq=False, repr=False)
class KernelFrankWolfe(MiniBatchSolver):
    """Pairwise block-coordinate Frank-Wolfe for scores that are sums of kernel values.

    The method of :class:`~crfkit.solvers.margin.frank_wolfe.BlockFrankWolfe` with pairwise steps
    (Lacoste-Julien, Jaggi, Schmidt and Pletscher 2013; Osokin et al. 2016, section 4), in
    coefficients of tokens: weights are sums of the features of tokens, so that the scores of all
    tokens, and the inner products that the best step needs, follow from kernel values. The scores
    of all tokens are kept up to date: a step costs a number of operations for each token of the
    data and each label that it changes.

    Parameters
    ----------
    max_iter, tol
        As for :class:`BlockFrankWolfe`.
    steps : int, default=10
        As `max_steps` there.
    max_gib : float, default=2.0
        GiB that kernel values may take. Where all do not fit, those of a sequence are computed when
        they are needed, and the latest ones are kept.
    random_state : int, RandomState or None, default=0
        Chooses and orders the sequences of a pass, half of them by their part of the gap.

    Notes
    -----
    The kernel must be symmetric and positive semidefinite: where a squared norm comes out negative,
    there is a ValueError. One thread, but for what the kernel itself uses. Parameters to start from
    are not used.
    """

    handles_l1: ClassVar[bool] = False
    needs_known_labels: ClassVar[bool] = True
    why_done: ClassVar[Callable[..., str | None]] = why_certified
    cut: ClassVar[Callable[..., Any]] = kernel_blocks
    kernel_form: ClassVar[Callable[[Any], Any] | None] = itself
    batch_tokens = 1
    batches_per_update = 1

    checks: ClassVar[dict[str, Check]] = {"steps": at_least_one, "max_gib": check_number}

    max_iter: int = 200
    tol: float = 1e-3
    steps: int = 10
    max_gib: float = 2.0
    random_state: int | np.random.RandomState | None = 0

    def _check_objective(self, objective: Objective) -> None:
        check_dual(self, objective)
        if not objective.model.is_kernelized:
            raise ValueError(
                "solver KernelFrankWolfe is for kernels; use solver='bcfw' with kernel='linear'."
            )

    def _start(self, batches: Any, start: FloatArray, random: Random) -> _Search:
        return _Search(batches)

    def _pass(self, search: _Search, number: int, random: Random, log: SolverLog) -> FloatArray:
        for sequence in random.permutation(drawn_by_gap(search.gaps, random)).tolist():
            search.update(sequence, int(self.steps))
        return search.weights()


class KernelBlocks:
    """The sequences as blocks of the dual, and the kernel values between their tokens."""

    def __init__(self, objective: Objective, max_bytes: int) -> None:
        self.model = cast(KernelChainModel, objective.model)
        self.loss, self.penalty = cast(HingeLoss, objective.loss), objective.penalty
        self.structure, self.codes = objective.structure, objective.labels
        self.offsets = objective.data.offsets
        self.weight = Weights.of(objective.weight, self.offsets).shared
        ends = self.model.offsets is not None
        self.gram = Gram(self.model.kernel, objective.data, max_bytes, boundaries=ends)
        self.n_computed = 0

    def __len__(self) -> int:
        return len(self.weight)


class _Search(Search):
    """Shares of labelings of all sequences (`vertices`), and the scores they amount to (`state`).

    `gaps`, (S,), are the part of each in the gap at its last visit; 0 before that.
    """

    distance = certified_distance

    def __init__(self, blocks: KernelBlocks) -> None:
        check_fixed(blocks.structure)
        self.batches, self.c2 = blocks, float(blocks.penalty.l2)
        n_tokens, n_labels = len(blocks.codes), blocks.model.n_labels
        width, longest = padded(n_labels), int(np.diff(blocks.offsets).max(initial=0))
        self.vertices = [
            kernels.KernelVertices(
                blocks.codes[None, begin:end].copy(), np.ones(1), np.ones(1, np.int64)
            )
            for begin, end in zip(blocks.offsets[:-1], blocks.offsets[1:], strict=True)
        ]
        self.gaps = np.zeros(len(blocks))
        pair, learned = aligned(n_labels, width), aligned(n_labels, width)
        self.state = kernels.KernelState(
            np.zeros((n_labels, n_tokens)), pair, np.zeros((n_tokens, n_labels))
        )
        learned[blocks.model.transition_from, blocks.model.transition_to] = 1.0
        added = find_cost(blocks.loss.cost, blocks.model.n_codes).added(blocks.codes)
        self.problem = kernels.KernelProblem(n_labels, frozen(added), frozen(learned))
        scores, best, moved, change = (aligned(longest, width) for _ in range(4))
        self._workspace = kernels.KernelWorkspace(
            self.state, pair[None], np.zeros(1, np.uint32), scores, best, moved, change,
            aligned(n_labels, width), np.empty(longest, np.int32),
        )  # fmt: skip

    def weights(self) -> FloatArray:
        """Return the coefficients of tokens and the weights of transitions."""
        model = self.batches.model
        pair = self.state.pair[model.transition_from, model.transition_to]
        return np.concatenate([self.state.dual.reshape(-1), pair])

    @property
    def lower_bound(self) -> float:
        """The dual: no parameters have a smaller objective."""
        cost = -2.0 * self.c2 * inner(self.state.dual, self.problem.costs)
        return cost - self.c2 * self.squared_norm()

    def squared_norm(self) -> float:
        """Return the squared norm of the weights."""
        unary, pair, dual = self.state
        of_tokens = inner(dual.T, unary)
        if of_tokens < 0.0 and of_tokens < kernels.NEGATIVE * inner(abs(dual.T), abs(unary)):
            raise ValueError(NOT_DEFINITE)
        return of_tokens + inner(pair, pair)

    def evaluate(self, w: FloatArray) -> tuple[FloatArray, float]:
        """Return the parameters, those of the search, and the objective there."""
        blocks = self.batches
        pair = self.state.pair[None, :, : blocks.model.n_labels]
        unary = np.ascontiguousarray(self.state.unary.T + self.problem.costs)
        scores = ChainPotentials.of(unary, pair, blocks.offsets)
        worst = blocks.structure.argmax(scores)[1]
        gold = blocks.structure.score(scores, blocks.codes)
        return w, inner(blocks.weight, worst - gold) + self.c2 * self.squared_norm()

    def update(self, sequence: int, steps: int) -> None:
        """Make some steps of a sequence."""
        blocks, weight = self.batches, float(self.batches.weight[sequence])
        begin, end = blocks.offsets[sequence : sequence + 2].tolist()
        blocks.n_computed += 1
        if begin == end or not weight:
            return
        vertices = self.vertices[sequence] = _with_room(self.vertices[sequence], steps)
        rows, values = frozen(blocks.gram.rows(sequence)), np.empty(len(vertices.alphas))
        gap = kernels.kernelized_updates(
            kernels.KernelBlock(begin, rows, vertices, values), weight / (2.0 * self.c2), steps,
            ENOUGH, self.problem, self._workspace,
        )  # fmt: skip
        if math.isnan(gap):
            raise ValueError(NOT_DEFINITE)
        self.gaps[sequence] = max(weight * gap, 0.0)


def _with_room(vertices: kernels.KernelVertices, more: int) -> kernels.KernelVertices:
    """Return vertices with room for so many others."""
    needed = int(vertices.number[0]) + more
    if needed <= len(vertices.alphas):
        return vertices
    room = 2 * needed - len(vertices.alphas)
    labels = np.pad(vertices.labels, ((0, room), (0, 0)))
    return kernels.KernelVertices(labels, np.pad(vertices.alphas, (0, room)), vertices.number)
