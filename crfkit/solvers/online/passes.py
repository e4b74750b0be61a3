"""Online learning: passes over the sequences, and a step after each mistake."""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, ClassVar

import numpy as np
from sklearn.utils import check_random_state

from crfkit._params import check_flag, check_method, check_number, check_option, check_whole
from crfkit._types import FloatArray, IntArray, Random, SolverResult
from crfkit.kernels.solvers.online import UpdateCoefficients
from crfkit.labels.costs import AdditiveCost
from crfkit.objective.batch import Objective
from crfkit.oracles.label_order import LabelOrder
from crfkit.solvers.base import Callback, Solver, SolverLog, check_match
from crfkit.solvers.online.learner import (
    BatchLearner,
    InfiniteScoresError,
    MistakeLoss,
    OnlineLearner,
    OnlineProblem,
    Recorder,
    count_updates,
    make_learner,
)
from crfkit.solvers.online.updates import UpdateRule, find_coefficients
from crfkit.structures import Capability

AVERAGES = ("average", "vote", "batch")


@dataclass(eq=False, repr=False)
class OnlineSolver(Solver):
    """Looks at one sequence after the other and moves the weights after each mistake.

    A mistake is a sequence of which a predicted label is wrong, whatever its score: from weights of
    0 all labelings score the same. With a cost and a rule that has a loss, this has to be above 0:
    a step may end where the true labels win by just the margin. The loss and the penalty of the
    objective do not matter.

    Parameters
    ----------
    rule : str or UpdateRule, default="perceptron"
        How far the weights move: "perceptron", "pa", "pa1", "pa2", "arow" or "mira", or an object,
        such as ``PassiveAggressive(C=0.1)``.
    averaging : {"average", "vote", "batch"} or None, default="average"
        "average": the result is the mean of the weights at the start and after each
        sequence (Collins 2002), in the lazy form. None: the weights after the last one. "vote": the
        same, while each step is told to `recorder`. "batch": all steps of a pass are computed at
        the weights before it, and their mean is made at its end (over threads); "perceptron" only.
    max_iter : int, default=10
        Passes over the data at most.
    tol : float or None, default=None
        Stop when the mean loss of a pass, over sequences of a weight above 0, is below this. None:
        stop after a pass without a mistake, and do not call `max_iter` passes a failure.
    shuffle : bool, default=True
        Whether the sequences are put into a new order before each pass.
    cost : AdditiveCost or None, default=None
        Added to the scores of wrong labels when labels are predicted, so that the true ones have to
        win by a margin; it replaces the number of wrong labels in the rules that have a loss. None:
        that of the loss of the objective, if this is a `MistakeLoss`.
    search : BeamSearch or None, default=None
        Predicts labels instead of the exact search, and tells which part of them to learn from.
    random_state : int, RandomState or None, default=0
        Orders the sequences.

    Notes
    -----
    Of labels that score the same, the one that occurs first in the data is predicted, where
    sequences of weight 0 do not count; in `partial`, the one of the lowest code.

    Where labels are known in part, the labeling of the largest score of those that are allowed, at
    the weights by then, stands for the true one. It needs a cost of None.

    The value of a record is the loss of the pass: the sum over sequences with a mistake of the
    share of wrong labels for rules of a fixed length, else of the losses of the rule, as CRFsuite
    reports it. The first record is that of the start, where no value is known.
    """

    requires: ClassVar[tuple[str, ...]] = ("minibatches",)
    is_random: ClassVar[bool] = True
    handles_partial: ClassVar[bool] = True
    # With "vote", told of each update.
    recorder: Recorder | None = field(default=None, init=False)

    rule: str | UpdateRule = "perceptron"
    _: KW_ONLY
    averaging: str | None = "average"
    max_iter: int = 10
    tol: float | None = None
    shuffle: bool = True
    cost: AdditiveCost | None = None
    search: Any = None
    random_state: int | np.random.RandomState | None = 0

    def solve(
        self, objective: Objective, start: FloatArray, callback: Callback | None = None
    ) -> SolverResult:
        """Learn from the data of an objective, see :meth:`crfkit.solvers.Solver.solve`.

        The result has the parameters of the last finished pass, also when interrupted by Ctrl-C.
        """
        random, problem = self._begin(objective)
        model = objective.model
        targets = objective.targets
        order = LabelOrder.by_appearance(
            targets.states, model.n_labels, objective.weight * targets.single, model.n_codes
        )
        problem = problem._replace(order=order)
        log = SolverLog(objective, callback)
        return log.guard(lambda: self._iterate(problem, start, random, log))

    def partial(
        self, objective: Objective, start: FloatArray, state: dict[str, Any] | None
    ) -> tuple[FloatArray, dict[str, Any]]:
        """Make one pass over an objective of some data, given the state of the last call, or None.

        Returns the parameters after it, or the mean of those of all passes, (P,), and the state.
        """
        random, problem = self._begin(objective)
        if self.averaging == "vote":
            raise ValueError(
                "averaging='vote' keeps all weights of one fit: use 'average' for partial_fit."
            )
        learner = self._learner(problem, start, state)
        order = self._next_order(np.arange(len(objective.data)), random)
        try:
            parameters, _, _ = self._pass(learner, order)
        except InfiniteScoresError as error:
            raise ValueError(f"{_TOO_LARGE}.") from error
        return parameters, learner.save() if isinstance(learner, OnlineLearner) else {}

    def checked_update(self) -> UpdateCoefficients:
        """Check the options, and return the coefficients of the rule."""
        check_whole("max_iter", self.max_iter)
        check_flag("shuffle", self.shuffle)
        if self.tol is not None:
            check_number("tol", self.tol)
        if self.averaging is not None:
            check_option("averaging", self.averaging, AVERAGES)
        return find_coefficients(self.rule)

    def _begin(self, objective: Objective) -> tuple[Random, OnlineProblem]:
        """Check the parameters."""
        check_match(self, objective)
        update = self.checked_update()
        if self.averaging == "batch" and (not update.rate or self.search is not None):
            raise ValueError(
                "averaging='batch' has steps of one length and an exact search: use the rule "
                "'perceptron' without search, or another averaging."
            )
        cost = self.cost
        if cost is None and isinstance(objective.loss, MistakeLoss):
            cost = objective.loss.cost
        if cost is not None and not objective.has_known_labels:
            raise ValueError(
                "a cost counts errors against one known label for each token, but of some the "
                "label is UNLABELED, or one of a set: use cost=None, or "
                "MaxMarginCRF(solver='subgradient')."
            )
        self._check_search(objective, update.n_best, cost)
        problem = OnlineProblem(objective, update, cost, self.search)
        _ = problem.weight  # raises where that cannot be used
        return check_random_state(self.random_state), problem

    def _check_search(self, objective: Objective, n_best: int, cost: Any) -> None:
        """Raise if labels cannot be predicted in the way that is asked for."""
        if cost is not None and not isinstance(cost, AdditiveCost):
            raise ValueError(
                f"the cost {type(cost).__name__} is no sum over tokens, which is added to the "
                "scores: use 'hamming', costs of labels or a matrix."
            )
        if self.search is not None:
            check_method("search", self.search, "violation", "None, a BeamSearch")
        if n_best == 1:
            return
        if self.search is not None or cost is not None:
            raise ValueError("n_best > 1 goes with neither a search nor a cost: use n_best=1.")
        if Capability.K_BEST not in objective.structure.capabilities:
            raise ValueError(
                f"there is no search for several labelings of a "
                f"{type(objective.structure).__name__}: use n_best=1."
            )

    def _learner(
        self, problem: OnlineProblem, start: FloatArray, state: dict[str, Any] | None = None
    ) -> OnlineLearner | BatchLearner:
        if self.averaging == "batch":
            return BatchLearner(problem, start)
        learner = make_learner(problem, start, state)
        learner.recorder = self.recorder if self.averaging == "vote" else None
        return learner

    def _next_order(self, order: IntArray, random: Random) -> IntArray:
        """Return the order of the next pass, made of that of the last one."""
        if self.shuffle and self.averaging != "batch":
            random.shuffle(order)
        return order

    def _pass(
        self, learner: OnlineLearner | BatchLearner, order: IntArray
    ) -> tuple[FloatArray, float, int]:
        """Make a pass; return its result, the sum of its losses and the mistakes."""
        with np.errstate(over="ignore", invalid="ignore"):
            loss, mistakes = learner.run(order)
            parameters = self._result(learner)
        if not (np.isfinite(parameters).all() and math.isfinite(loss)):
            raise InfiniteScoresError
        return parameters, loss, mistakes

    def _result(self, learner: OnlineLearner | BatchLearner) -> FloatArray:
        if self.averaging == "average" and isinstance(learner, OnlineLearner):
            return learner.mean()
        return learner.weights()

    def _iterate(
        self, problem: OnlineProblem, start: FloatArray, random: Random, log: SolverLog
    ) -> SolverResult:
        objective = problem.objective
        size = count_updates(objective.weight, objective.data.offsets)
        learner, order = self._learner(problem, start), np.arange(len(objective.data))
        if log.add(start.copy(), math.nan):
            return log.result("stopped by a callback", converged=False)
        for _ in range(int(self.max_iter)):
            order = self._next_order(order, random)
            try:
                parameters, loss, mistakes = self._pass(learner, order)
            except InfiniteScoresError:
                return log.result(_TOO_LARGE, converged=False)
            objective.evaluations += 1
            if log.add(parameters, loss, mistakes=mistakes):
                return log.result("stopped by a callback", converged=False)
            if self.tol is None and not mistakes:
                return log.result("a pass without a mistake", converged=True)
            if self.tol is not None and loss < self.tol * size:
                return log.result("the mean loss of a pass is below tol", converged=True)
        return self._last(log, size)

    def _last(self, log: SolverLog, size: int) -> SolverResult:
        """Return the result after the last pass."""
        if self.tol is None:
            return log.result(f"made all {self.max_iter} passes", converged=True)
        if not self.max_iter:
            return log.result("max_iter=0 makes no pass. Increase it, or set tol=None",
                              converged=False)  # fmt: skip
        loss = log.history[-1].value / max(size, 1)
        return log.result(
            f"max_iter={self.max_iter} passes were not enough: their last mean loss is {loss:.3g}. "
            "Increase max_iter or tol, or set tol=None", converged=False,
        )  # fmt: skip


_TOO_LARGE = "scores became infinite. Scale numeric features to about 1, or use a smaller C"
