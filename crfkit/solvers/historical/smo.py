"""Sequential minimal optimization on the factored dual of a margin."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from crfkit._params import check_option
from crfkit._types import CodeArray, FloatArray, Potentials, Random
from crfkit.compiler.jit import frozen
from crfkit.kernels.solvers.stochastic import dual_step
from crfkit.objective.stochastic import StochasticObjective
from crfkit.solvers.base import SolverLog
from crfkit.solvers.margin.dual import DualSearch, check_dual, inner
from crfkit.solvers.margin.marginals import ChainMarginals
from crfkit.solvers.margin.tangents import why_certified
from crfkit.solvers.stochastic.base import MiniBatchSolver
from crfkit.structures import Chain, Structure

PAIRS = ("worst", "drawn")
ALPHAS = ("max_entropy", "largest")


class SMO(MiniBatchSolver):
    """Sequential minimal optimization on the factored dual (Taskar, Guestrin and Koller 2003).

    The dual variables are the marginals of the labels and steps of each sequence, in place of the
    probabilities of all its labellings. A step takes two labellings of a sequence and moves mass
    from the one to the other, as much as raises the dual most: ``2 c2 (a(y1) - a(y2)) / (v |f(y1) -
    f(y2)|^2)`` for scores ``a`` with costs added, and the weight ``v`` of the sequence, if there is
    so much (section 5 there; section 2.4.1 and equation 48 of Gupta's report on conditional random
    fields). It goes to the worst labelling, the one of the largest ``a``.

    The gap between the objective and the dual bounds how far the parameters are from the optimum.

    Parameters
    ----------
    max_iter : int, default=200
        Passes over the data at most: one step of each sequence.
    tol : float, default=1e-2
        Stop when the gap is below this share of the objective.
    pair : {"worst", "drawn"}, default="worst"
        Where the mass comes from. "worst": the labelling of the least ``a`` among those that have
        mass. "drawn": one drawn from the distribution of the largest entropy.
    alpha : {"largest", "max_entropy"}, default="largest"
        How much mass the other labelling has, as marginals alone do not say. "max_entropy": as much
        as in the distribution of the largest entropy that has these marginals, the choice of the
        paper. It becomes tiny for long sequences. "largest": as much as in the distribution that
        gives it most, which is the least of the marginals of its labels and steps.
    random_state : int, RandomState or None, default=0
        Orders the sequences of a pass, and draws.

    Notes
    -----
    Needs the hinge loss with margin rescaling, a cost that is a sum over tokens, and a chain whose
    steps are a table of all pairs of labels. Holds ``K * K + K`` numbers a token. One thread; the
    dual method of choice is "bcfw", which is many times faster. Parameters to start from are not
    used.

    Examples
    --------
    >>> from crfkit.solvers.historical.smo import SMO
    >>> SMO(alpha="max_entropy")
    SMO(alpha='max_entropy')
    """

    handles_l1: ClassVar[bool] = False
    batch_tokens = 1
    batches_per_update = 1

    def __init__(
        self,
        *,
        max_iter: int = 200,
        tol: float = 1e-2,
        pair: str = "worst",
        alpha: str = "largest",
        random_state: int | np.random.RandomState | None = 0,
    ) -> None:
        self.max_iter = max_iter
        self.tol = tol
        self.pair = pair
        self.alpha = alpha
        self.random_state = random_state

    def _check_own_parameters(self) -> None:
        check_option("pair", self.pair, PAIRS)
        check_option("alpha", self.alpha, ALPHAS)

    def _check_objective(self, objective: Any) -> None:
        check_dual(self, objective)
        if not objective.structure.is_chain:
            raise ValueError(
                "solver SMO needs a chain whose steps are a table of all pairs of labels, not "
                f"{type(objective.structure).__name__}. Use another solver."
            )

    def _start(self, batches: StochasticObjective, start: FloatArray, random: Random) -> _Factored:
        return _Factored(batches, self.alpha == "max_entropy")

    def _pass(self, search: _Factored, number: int, random: Random, log: SolverLog) -> FloatArray:
        for index in random.permutation(len(search.batches)).tolist():
            search.update(index, random if self.pair == "drawn" else None)
        return search.weights()

    def _why_done(self, search: _Factored, w: FloatArray, log: SolverLog) -> str | None:
        return why_certified(search, log, self.tol)


class _Factored(DualSearch):
    """Marginals of all sequences, and the parameters they amount to.

    Parameters
    ----------
    batches : StochasticObjective
        One sequence each, beside empty ones.
    max_entropy : bool
        Whether labellings have the mass of the distribution of the largest entropy.

    Attributes
    ----------
    marginals : list of ChainMarginals
        Those of each batch.
    w : ndarray of shape (P,)
        The parameters.
    """

    def __init__(self, batches: StochasticObjective, max_entropy: bool) -> None:
        super().__init__(batches)
        self.max_entropy = max_entropy
        self.chain: Structure = Chain()
        self.marginals = [
            ChainMarginals(batches.labels(index), batches.model.n_labels)
            for index in range(len(batches))
        ]
        self.w = np.zeros(batches.n_parameters)
        # Empty sequences may share a batch with one: their weight has no part in it.
        lengths = [np.diff(chunk.offsets) for chunk in batches.chunks]
        self.weight = [
            float(batches.sequence_weight(index)[size > 0].sum())
            for index, size in enumerate(lengths)
        ]

    def weights(self) -> FloatArray:
        """Return the parameters, a new array."""
        return self.w.copy()

    def evaluate(self, w: FloatArray) -> tuple[FloatArray, float]:
        """Return the parameters and the objective there."""
        return w, float(self.batches.value(w))

    def squared_norm(self) -> float:
        """Return the squared norm of the weights."""
        return inner(self.w, self.w)

    def expected_cost(self) -> float:
        """Return the expected cost of all sequences, weighted."""
        return sum(
            weight * inner(self.cost.added(self.batches.labels(index)), marginals.node)
            for index, (weight, marginals) in enumerate(
                zip(self.weight, self.marginals, strict=True)
            )
        )

    def update(self, index: int, random: Random | None) -> None:
        """Make a step of a sequence, from a labelling that is drawn where there is `random`."""
        if not self.weight[index]:
            return
        self.batches.n_computed += 1
        marginals = self.marginals[index]
        scores = self.augmented(self.batches.bind(self.w), index)
        scores = scores.take_tokens(np.arange(len(scores.unary)), np.array([0, len(scores.unary)]))
        target, [top] = self.chain.argmax(scores)
        source = self._least(marginals, scores) if random is None else marginals.draw(random)
        slope = float(top - self.chain.score(scores, source)[0])
        if slope > 0.0:
            self._shift(index, scores, target, source, slope)

    def _least(self, marginals: ChainMarginals, scores: Potentials) -> CodeArray:
        """Return the labelling of the least score among those that have mass."""
        opposite = scores.with_arrays(-scores.unary, -scores.pair)
        return self.chain.argmax(marginals.supported(opposite))[0]

    def _shift(
        self, index: int, scores: Potentials, target: CodeArray, source: CodeArray, slope: float
    ) -> None:
        """Move the best mass, given how fast the dual rises at first."""
        marginals, one = self.marginals[index], np.ones(1)
        residual = self.chain.zeros(scores)
        self.chain.add_counts(scores, target, one, residual)
        self.chain.add_counts(scores, source, -one, residual)
        change = frozen(self.batches.gradient(index, residual))
        mass = marginals.movable(target, source)
        if self.max_entropy:
            mass = min(mass, marginals.probability(source))
        square = self.weight[index] * inner(change, change)
        if square > 0.0:
            mass = min(mass, 2.0 * self.c2 * slope / square)
        marginals.shift(target, source, mass)
        factor = -self.weight[index] * mass / (2.0 * self.c2)
        dual_step(frozen(self.batches.places(index)), change, factor, 0.0, self.w, self.w)
