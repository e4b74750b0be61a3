"""The choice of a solver, by the penalty and the size of the data."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, cast

import numpy as np

import crfkit.solvers as solvers  # they are imported when they are chosen
from crfkit._params import check_whole
from crfkit._types import FloatArray, IterationRecord, SolverResult
from crfkit.objective.batch import Objective
from crfkit.potentials import LinearModel
from crfkit.solvers import margin
from crfkit.solvers.base import Callback, Solver, check_match, minimize, resume
from crfkit.structures.base import Capability

if TYPE_CHECKING:
    from crfkit.losses.margin import HingeLoss

# With fewer scores (tokens times labels) L-BFGS takes no more passes, or shorter ones.
MANY_SCORES = 800_000
# The numbers that OEG or SAG holds may take so many bytes; a score takes so many of them.
BATCH_BYTES, OEG_SCORE, SAG_SCORE = 1 << 30, 4, 8
# With fewer distinct attributes a token sees most weights in every batch, and the dual is slow.
MANY_WEIGHTS = 50_000
# With so strong a penalty so many sequences are enough for OEG, or SAG: they take far fewer passes
# than L-BFGS. With fewer labels these cost more than that.
STRONG, MANY_SEQUENCES, MANY_LABELS = 1.0, 1_000, 16
# With up to so many weights Newton's method takes fewer passes, if there are so many tokens.
FEW_WEIGHTS, ENOUGH_TOKENS = 512, 5_000
# It hands over after so many steps: where features depend on one another, the last ones are small.
NEWTON_STEPS = 40
# Where a quasi-Newton method is stuck: the curvature of so many weights may be a matrix, or of so
# many, if that takes a product for each.
MATRIX_WEIGHTS, FEW_PRODUCTS = 2_500, 256
# OEG and SAG hand over where, after so many passes, so many more are to be expected for each label:
# with few labels, a pass of theirs takes several times as long as one of L-BFGS.
TRIAL_PASSES = 12
PATIENCE = 4
# They hand over at once where the gap is known to be so many times the objective: with so weak a
# penalty it takes as many passes as L-BFGS.
HOPELESS = 20.0


@dataclass(kw_only=True, eq=False, repr=False)
class AutoSolver(Solver):
    """Newton's or a stochastic method where it pays, else a quasi-Newton method.

    For a hinge loss :class:`~crfkit.solvers.margin.BlockFrankWolfe`, if ``c1 = 0`` and ``c2 > 0``,
    else, if the cost is a sum over tokens, a quasi-Newton method that minimizes softened ones
    (:class:`~crfkit.losses.AnnealedHingeLoss`), and then :class:`SGD`; for any other loss that is
    not differentiable, :class:`SGD`. For all others, :class:`DenseNewton` for much data with few
    weights; OWL-QN where ``c1 > 0``; L-BFGS where some weights may not be negative; for the log
    loss with ``c2 > 0``, :class:`OEG` for much data with many sparse attributes, and, if the
    penalty is strong, for many sequences with many labels; then :class:`SAG`, if all features are
    dense, or all sequences of one token; else L-BFGS. Where the gap of OEG or SAG shrinks too
    slowly, or Newton's method takes many steps, a quasi-Newton method goes on from their
    parameters. Where that no longer gets on far from the optimum, as with features of very
    different scales, a Newton method does, whose steps depend on scales less: :class:`DenseNewton`
    for up to 2,500 weights, else :class:`NewtonCG`, if ``c1 = 0``. The rules were found by trial;
    the performance page of the documentation compares their choices with the batch solvers.

    Parameters
    ----------
    max_iter : int or None, default=None
        Iterations, or passes, at most; None leaves it to the solver.
    random_state : int, RandomState or None, default=0
        For a stochastic solver.
    """

    requires: ClassVar[tuple[str, ...]] = ("value_and_grad", "minibatches")
    handles_l1: ClassVar[bool] = True
    handles_bounds: ClassVar[bool] = True
    is_random: ClassVar[bool] = True

    max_iter: int | None = None
    random_state: int | np.random.RandomState | None = 0

    def solve(
        self, objective: Objective, start: FloatArray, callback: Callback | None = None
    ) -> SolverResult:
        """Minimize an objective with the solver that fits it; arguments as for that one."""
        if self.max_iter is not None:
            check_whole("max_iter", self.max_iter)
        check_match(self, objective)
        first: Any = self._with_limit(choose_solver(objective, start, self.random_state))
        is_newton, name = "hessian" in first.requires, type(first).__name__
        if can_be_softened(objective):
            return self._softened(objective, start, callback)
        if not objective.loss.is_smooth:
            alone: SolverResult = first.solve(objective, start, callback)
            return alone._replace(solver=name)
        told, steps = _Told(callback), NEWTON_STEPS if is_newton else math.inf
        watch = _Watch(first, told, None if first.is_random else steps, patience(objective))
        result: SolverResult = first.solve(objective, start, watch)._replace(solver=name)
        left = first.max_iter - result.n_iter
        if watch.too_slow and not result.interrupted:
            second = solvers.OWLQN() if objective.l1 else solvers.LBFGS()
            unit = "steps" if is_newton else "passes"
            result, left = self._go_on(self._with_limit(second), objective, result, told, unit)
        is_stuck = left > 0 and not (result.converged or result.interrupted or told.stopped)
        last = solver_at_any_scale(objective) if is_stuck and not is_newton else None
        if last is not None:
            result, _ = self._go_on(self._with_limit(last), objective, result, told, "iterations")
        return result

    def _softened(
        self, objective: Objective, start: FloatArray, callback: Callback | None
    ) -> SolverResult:
        """Minimize a hinge loss by softened ones, and then itself, if that lowers it."""
        from crfkit.losses.softmax_margin import AnnealedHingeLoss  # few fits need it

        loss, told = AnnealedHingeLoss(cast("HingeLoss", objective.loss).cost), _Told(callback)
        solver = self._with_limit(solvers.OWLQN() if objective.l1 else solvers.LBFGS())
        found = minimize(solver, objective.with_loss(loss), start, told)
        best = min(found.parameters, start, key=partial(_value_at, objective))
        last = found.history[-1]._replace(
            value=_value_at(objective, best), gap=math.nan, nonzero=int(np.count_nonzero(best))
        )
        found = found._replace(
            parameters=best.copy(), value=last.value, gap=math.nan, solver=type(solver).__name__,
            history=[*found.history[:-1], last], message=f"{found.message} (of softened losses)",
            converged=found.converged and best is found.parameters,
        )  # fmt: skip
        if found.interrupted or told.stopped or last.iteration >= (self.max_iter or math.inf):
            return found
        descent: Any = solvers.SGD(random_state=self.random_state)
        if self.max_iter is not None:
            descent.max_iter = int(self.max_iter) - last.iteration
        note = f" (after {last.iteration} iterations of {found.solver})"
        after = resume(descent, objective, found, told, note)
        both = f"{found.solver}, {type(descent).__name__}"
        return after._replace(solver=both) if after.value < found.value else found

    def _go_on(
        self, solver: Any, objective: Objective, before: SolverResult, callback: Callback, unit: str
    ) -> tuple[SolverResult, int]:
        """Return the result of another solver from there, and the iterations that it has left."""
        done, name = before.history[-1].iteration, before.solver
        if self.max_iter is not None:
            solver.max_iter = max(solver.max_iter - done, 0)
        after = resume(solver, objective, before, callback, f" (after {done} {unit} of {name})")
        last = after.history[-1]  # of the one before, where this one made no step
        both = f"{name}, {type(solver).__name__}"
        left = solver.max_iter - (last.iteration - done)
        return after._replace(value=last.value, gap=last.gap, solver=both), left

    def _with_limit(self, solver: Any) -> Any:
        if self.max_iter is not None:
            solver.max_iter = int(self.max_iter)
        return solver


class _Told:
    """A callback, if there is one, and whether it has asked to stop."""

    def __init__(self, callback: Callback | None) -> None:
        self.callback, self.stopped = callback, False

    def __call__(self, record: IterationRecord, w: FloatArray) -> bool:
        """Return whether to stop."""
        self.stopped = self.callback is not None and bool(self.callback(record, w))
        return self.stopped


class _Watch:
    """Tells a solver to stop where it is going to take too long; passes all else on.

    That is after so many `steps`; if not given, where the gap tells that more passes than
    `patience` are to come.
    """

    def __init__(
        self, solver: Solver, callback: Callback, steps: float | None = None, patience: float = 0.0
    ) -> None:
        self.solver, self.callback, self.steps, self.patience = solver, callback, steps, patience
        self.too_slow = False
        self._before: IterationRecord | None = None

    def __call__(self, record: IterationRecord, w: FloatArray) -> bool:
        """Return whether to stop."""
        if self.callback(record, w):
            return True
        before, self._before = self._before, record
        if not 0 < record.iteration < self.solver.max_iter:
            return False
        if self.steps is not None:
            self.too_slow = record.iteration >= self.steps
        elif record.iteration < TRIAL_PASSES:
            self.too_slow = record.gap > HOPELESS * abs(record.value)
        elif before is not None:
            self.too_slow = self._expected(before, record) > self.patience
        return self.too_slow

    def _expected(self, before: IterationRecord, now: IterationRecord) -> float:
        """Return how many more passes the gap takes to reach its goal at the present rate."""
        goal = self.solver.tol * abs(now.value)
        if not 0.0 < now.gap < before.gap:
            return 0.0 if now.gap <= goal else math.inf
        rate = math.log(before.gap / now.gap) / (now.iteration - before.iteration)
        return math.log(max(now.gap / goal, 1.0)) / rate if goal else math.inf


def choose_solver(objective: Objective, start: FloatArray, random_state: Any = 0) -> Solver:
    """Return the solver that is expected to be the fastest for an objective.

    `start` are the first parameters: a dual method gains little from good ones.
    """
    if not objective.loss.is_smooth:
        if has_dual(objective):
            return margin.BlockFrankWolfe(random_state=random_state)
        return solvers.SGD(random_state=random_state)
    few = objective.n_parameters <= FEW_WEIGHTS and len(objective.weight) >= ENOUGH_TOKENS
    bounded = objective.nonnegative is not None
    if few and objective.has_covariances and not bounded:
        return solvers.DenseNewton()
    if objective.l1:
        return solvers.OWLQN()
    if bounded:
        return solvers.LBFGS()
    if is_fast_dual(objective, start):
        return solvers.OEG(random_state=random_state)
    if is_fast_average(objective, start):
        return solvers.SAG(random_state=random_state)
    return solvers.LBFGS()


def patience(objective: Objective) -> float:
    """Return for how many more passes it is worth to stay with a stochastic solver."""
    labels = cast(LinearModel, objective.model).n_columns if objective.model.is_linear else 0
    return PATIENCE * labels


def solver_at_any_scale(objective: Objective) -> Solver | None:
    """Return a solver that gets on where a quasi-Newton method does not, if there is one."""
    known = Capability.HESSIAN_PRODUCT in objective.structure.capabilities
    convex = objective.is_convex and objective.nonnegative is None
    if not (objective.loss.has_hessian and objective.model.is_linear and known and convex):
        return None
    most = MATRIX_WEIGHTS if objective.has_covariances else FEW_PRODUCTS
    if objective.n_parameters <= most:
        return solvers.DenseNewton()
    return None if objective.l1 else solvers.NewtonCG()


def _value_at(objective: Objective, w: FloatArray) -> float:
    """Return the objective, with the L1 penalty."""
    return objective.value_and_grad(w)[0] + objective.l1 * float(np.abs(w).sum())


def can_be_softened(objective: Objective) -> bool:
    """Whether a hinge loss that has no dual is the limit of losses with derivatives."""
    if not objective.loss.is_hinge or has_dual(objective) or not objective.has_sequence_weights:
        return False
    loss = cast("HingeLoss", objective.loss)
    additive = loss.cost == "hamming" if isinstance(loss.cost, str) else loss.cost.is_additive
    exact = objective.structure.is_convex and objective.nonnegative is None
    return bool(loss.rescaling == "margin" and additive and exact and objective.has_known_labels)


def has_dual(objective: Objective) -> bool:
    """Whether a hinge loss has a dual that block-coordinate Frank-Wolfe maximizes."""
    strong = objective.penalty.l2 > 0.0 and not objective.l1
    known = objective.has_known_labels and objective.has_sequence_weights
    return bool(strong and objective.loss.is_hinge and known)


def is_fast_dual(objective: Objective, start: FloatArray) -> bool:
    """Whether online exponentiated gradient is the faster way to the optimum."""
    if not objective.model.is_linear or objective.data.dense is not None:
        return False
    model, tokens = cast(LinearModel, objective.model), objective.data.n_tokens
    many = objective.n_parameters >= MANY_WEIGHTS and tokens * model.n_columns >= MANY_SCORES
    return (
        len(objective.data) < tokens  # the others are sums without recurrences: cheap passes
        and (many or _is_strong(objective))
        and _takes_batches(objective, start, OEG_SCORE)
    )


def is_fast_average(objective: Objective, start: FloatArray) -> bool:
    """Whether the stochastic average gradient is the faster way to the optimum."""
    return (
        objective.model.is_linear
        and _is_strong(objective)
        and _takes_batches(objective, start, SAG_SCORE)
    )


def _is_strong(objective: Objective) -> bool:
    """Whether the penalty of a linear model is strong, and there are many sequences and labels."""
    strong = objective.penalty.l2 >= STRONG and len(objective.data) >= MANY_SEQUENCES
    return bool(strong and cast(LinearModel, objective.model).n_columns >= MANY_LABELS)


def _takes_batches(objective: Objective, start: FloatArray, score_bytes: int) -> bool:
    """Whether small batches are worked on by compiled code, from a start without weights."""
    if objective.l1 or not objective.penalty.l2 > 0.0 or not objective.loss.is_log_likelihood:
        return False
    if not (objective.has_known_labels and objective.has_sequence_weights):
        return False
    if start.any() or objective.data.transitions is not None:
        return False
    model, tokens = cast(LinearModel, objective.model), objective.data.n_tokens
    if score_bytes * _batch_scores(model, tokens) > BATCH_BYTES:
        return False
    from crfkit.oracles.batches import is_compiled  # with all that batches need

    return is_compiled(objective.model, objective.structure)


def _batch_scores(model: LinearModel, tokens: int) -> float:
    """Return about how many scores batches have, where each has a table of steps."""
    table: float = model.table_cells
    return float(tokens * (model.n_columns + table / solvers.OEG().batch_tokens))
