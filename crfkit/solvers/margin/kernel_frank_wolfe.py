"""Block-coordinate Frank-Wolfe where features are known by their inner products alone."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from sklearn.utils import check_random_state

from crfkit._params import check_number, check_whole
from crfkit._types import CodeArray, FloatArray, IntArray, Random
from crfkit.compiler.jit import frozen
from crfkit.compiler.simd import padded
from crfkit.data.targets import Weights
from crfkit.kernels.solvers.kernelized import NEGATIVE, chain_kernel_steps
from crfkit.oracles.partition import aligned
from crfkit.potentials.kernelized import Gram, KernelChainModel
from crfkit.solvers.base import check_match
from crfkit.solvers.margin.dual import DualMarginSolver, DualSearch, inner
from crfkit.solvers.stochastic.base import PassLog
from crfkit.solvers.stochastic.exponentiated_gradient import drawn_by_gap
from crfkit.structures import ChainPotentials

NOT_DEFINITE = (
    "the kernel is not positive semidefinite: it is not the inner product of any features. Choose "
    "another kernel, or other kernel_params."
)
# A visit ends when the part of its sequence in the gap is below this share of what it was.
ENOUGH = 0.1


class KernelFrankWolfe(DualMarginSolver):
    """Pairwise block-coordinate Frank-Wolfe for scores that are sums of kernel values.

    The method of :class:`~crfkit.solvers.margin.frank_wolfe.BlockFrankWolfe` with pairwise steps
    (Lacoste-Julien, Jaggi, Schmidt and Pletscher 2013; Osokin et al. 2016, section 4), in
    coefficients of tokens: weights are sums of the features of tokens, so that the scores of all
    tokens, and the inner products that the best step needs, follow from kernel values. The scores
    of all tokens are kept up to date: a step costs a number of operations for each token of the
    data and each label that it changes.

    Parameters
    ----------
    max_iter : int, default=200
        Passes over the data at most.
    tol : float, default=1e-3
        Stop when the gap is below this share of the objective.
    steps : int, default=10
        Steps at most in a visit of a sequence. It ends where the part of the sequence in the gap is
        a tenth of what it was.
    max_gib : float, default=2.0
        GiB that kernel values may take. Where all do not fit, those of a sequence are computed when
        they are needed, and the latest ones are kept.
    random_state : int, RandomState or None, default=0
        Chooses and orders the sequences of a pass: half of the visits go to those with large parts
        in the gap.

    Notes
    -----
    The kernel must be symmetric and positive semidefinite: where a squared norm comes out negative,
    there is a ValueError. One thread, but for what the kernel itself uses. Parameters to start from
    are not used.
    """

    def __init__(
        self,
        *,
        max_iter: int = 200,
        tol: float = 1e-3,
        steps: int = 10,
        max_gib: float = 2.0,
        random_state: int | np.random.RandomState | None = 0,
    ) -> None:
        self.max_iter = max_iter
        self.tol = tol
        self.steps = steps
        self.max_gib = max_gib
        self.random_state = random_state

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_whole("steps", self.steps, 1)
        check_number("max_gib", self.max_gib)

    def _check_objective(self, objective: Any) -> None:
        super()._check_objective(objective)
        if not isinstance(objective.model, KernelChainModel):
            raise ValueError(
                "solver KernelFrankWolfe is for kernels; use solver='bcfw' with kernel='linear'."
            )

    def _begin(self, objective: Any) -> tuple[Random, Any]:
        self._check_parameters()
        check_match(self, objective)
        self._check_objective(objective)
        blocks = KernelBlocks(objective, int(self.max_gib * 2**30))
        return check_random_state(self.random_state), blocks

    def _start(self, batches: Any, start: FloatArray, random: Random) -> _Search:
        return _Search(batches)

    def _pass(self, search: _Search, number: int, random: Random, log: PassLog) -> FloatArray:
        for sequence in random.permutation(drawn_by_gap(search.gaps, random)).tolist():
            search.visit(sequence, int(self.steps))
        return search.weights()

    def _value(self, search: _Search, w: FloatArray) -> float:
        return search.value()


class KernelBlocks:
    """The sequences as blocks of the dual, and the kernel values between their tokens.

    Parameters
    ----------
    objective : Objective
        With kernel scores.
    max_bytes : int
        Bytes that kernel values may take.
    """

    def __init__(self, objective: Any, max_bytes: int) -> None:
        self.model, self.loss, self.penalty = objective.model, objective.loss, objective.penalty
        self.structure, self.codes = objective.structure, objective.labels
        self.offsets = objective.data.offsets
        self.weight = Weights.of(objective.weight, self.offsets).shared
        ends = self.model.offsets is not None
        self.gram = Gram(self.model.kernel, objective.data, max_bytes, boundaries=ends)
        self.visits = 0

    def __len__(self) -> int:
        return len(self.weight)


class _Corners(NamedTuple):
    """The labellings of a sequence that have a share.

    Attributes
    ----------
    labels : ndarray of shape (M, T)
        Label codes; those after the first ``number[0]`` are room for others.
    shares : ndarray of shape (M,)
        They add up to 1.
    number : ndarray of shape (1,)
        How many there are.
    """

    labels: CodeArray
    shares: FloatArray
    number: IntArray

    def with_room(self, more: int) -> _Corners:
        """Return the same with room for so many others."""
        needed = int(self.number[0]) + more
        if needed <= len(self.shares):
            return self
        room = 2 * needed - len(self.shares)
        labels = np.pad(self.labels, ((0, room), (0, 0)))
        return _Corners(labels, np.pad(self.shares, (0, room)), self.number)


class _Search(DualSearch):
    """Shares of labellings of all sequences, and the scores they amount to.

    Parameters
    ----------
    blocks : KernelBlocks
        The data.

    Attributes
    ----------
    corners : list of _Corners
        The labellings of each sequence.
    gaps : ndarray of shape (S,)
        The part of each sequence in the gap, as it was at its last visit; 0 before that.
    dual : ndarray of shape (N, K)
        Coefficients of the tokens.
    unary : ndarray of shape (K, N)
        Potentials of all tokens.
    pair : ndarray of shape (K, W)
        Weights of transitions; 0 where they have none.
    """

    def __init__(self, blocks: KernelBlocks) -> None:
        super().__init__(blocks)
        n_tokens, n_labels = len(blocks.codes), blocks.model.n_labels
        width, longest = padded(n_labels), int(np.diff(blocks.offsets).max(initial=0))
        self.corners = [
            _Corners(blocks.codes[None, begin:end].copy(), np.ones(1), np.ones(1, np.int64))
            for begin, end in zip(blocks.offsets[:-1], blocks.offsets[1:], strict=True)
        ]
        self.gaps = np.zeros(len(blocks))
        self.dual, self.unary = np.zeros((n_tokens, n_labels)), np.zeros((n_labels, n_tokens))
        self.pair, self.learned = aligned(n_labels, width), aligned(n_labels, width)
        self.learned[blocks.model.transition_from, blocks.model.transition_to] = 1.0
        self.added = frozen(self.cost.added(blocks.codes))
        self._room = (
            *(aligned(longest, width) for _ in range(4)), aligned(n_labels, width),
            np.empty(longest, np.int32),
        )  # fmt: skip

    def weights(self) -> FloatArray:
        """Return the coefficients of tokens and the weights of transitions."""
        model = self.batches.model
        return np.concatenate(
            [self.dual.reshape(-1), self.pair[model.transition_from, model.transition_to]]
        )

    def expected_cost(self) -> float:
        """Return the expected cost of all sequences, weighted."""
        return -2.0 * self.c2 * inner(self.dual, self.added)

    @property
    def square(self) -> float:
        """The squared norm of the weights."""
        of_tokens = inner(self.dual.T, self.unary)
        if of_tokens < 0.0 and of_tokens < NEGATIVE * inner(abs(self.dual.T), abs(self.unary)):
            raise ValueError(NOT_DEFINITE)
        return of_tokens + inner(self.pair, self.pair)

    def value(self) -> float:
        """Return the objective."""
        blocks = self.batches
        pair = self.pair[None, :, : blocks.model.n_labels]
        scores = ChainPotentials.of(
            np.ascontiguousarray(self.unary.T + self.added), pair, blocks.offsets
        )
        worst = blocks.structure.argmax(scores)[1]
        gold = blocks.structure.score(scores, blocks.codes)
        return inner(blocks.weight, worst - gold) + self.c2 * self.square

    def visit(self, sequence: int, steps: int) -> None:
        """Make some steps of a sequence."""
        blocks, weight = self.batches, float(self.batches.weight[sequence])
        begin, end = blocks.offsets[sequence : sequence + 2].tolist()
        blocks.visits += 1
        if begin == end or not weight:
            return
        corners = self.corners[sequence] = self.corners[sequence].with_room(steps)
        *room, path = self._room
        gap = chain_kernel_steps(
            begin, frozen(blocks.gram.rows(sequence)), self.added, weight / (2.0 * self.c2), steps,
            ENOUGH, tuple(corners), self.unary, self.pair, frozen(self.learned), self.dual,
            (*room, np.empty(len(corners.shares)), path),
        )  # fmt: skip
        if math.isnan(gap):
            raise ValueError(NOT_DEFINITE)
        self.gaps[sequence] = max(weight * gap, 0.0)
