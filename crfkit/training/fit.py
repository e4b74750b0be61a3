"""What a fit is to minimize, and one fit: from training data to parameters.

It also says what the user and scikit-learn's callbacks are told.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state

from crfkit._callbacks import CallbackSupportMixin, with_callbacks
from crfkit._parallel import ThreadMap, return_memory
from crfkit._params import check_flag, check_method, check_number, check_option, check_whole
from crfkit._progress import is_heard, working
from crfkit._types import FloatArray, IterationRecord, SolverResult
from crfkit._warnings import warn_user
from crfkit.labels.base import LabelSpace
from crfkit.labels.costs import Cost
from crfkit.losses import LOSSES, Loss
from crfkit.objective.batch import Objective
from crfkit.objective.penalties import ElasticNet
from crfkit.potentials.base import FeatureChoice
from crfkit.potentials.blocks import NAMES_OF, names_of
from crfkit.potentials.examples import Examples
from crfkit.potentials.semimarkov import WEIGHTS_OF
from crfkit.solvers.base import Callback, minimize
from crfkit.training.data import Packed, TrainingData, column_sizes, pack_training, read_training
from crfkit.training.early_stopping import EarlyStopping, Watch
from crfkit.training.expected import IterationsLeft
from crfkit.training.mistakes import scale_advice
from crfkit.training.start import check_init, first_parameters

__all__ = ["CallbackSupportMixin", "Fit", "FitProgress", "ParameterCounts", "with_callbacks"]

LARGE = 50_000_000  # weights
# Vectors of P numbers that L-BFGS holds: six pairs of corrections, point, gradient and direction,
# the same of the iteration before.
SOLVER_VECTORS = 18


# Parameters that mean the same for all estimators, with the values of those that lack them.
_FLAGS = (*FeatureChoice._fields[1:], "warm_start")
_USUAL = {
    **dict.fromkeys(_FLAGS, False), "early_stopping": False, "features": None, "init": "zeros",
    "constraints": None, "min_freq": 0,
}  # fmt: skip


@dataclass(frozen=True)
class Problem:
    """What a model is, and how it is fitted."""

    labels: LabelSpace
    loss: Callable[[TrainingData], Loss]  # training data, whose labels a cost may name, to the loss
    penalty: ElasticNet
    solver: Any
    scale: float = 1.0  # the loss is multiplied by it
    features: FeatureChoice = FeatureChoice()
    transformer: Any = None  # makes the attributes of tokens
    weights: Any = None  # chooses weights and names fitted ones: a WeightSpace, that of the labels
    early_stopping: EarlyStopping | None = None  # what it holds out, `random_state` chooses
    random_state: Any = None
    # From the fit, its first parameters and how many iterations count to more fitted attributes.
    further: Callable[..., dict[str, Any]] | None = None
    n_jobs: int | None = None
    verbose: int = 0
    init: Any = "zeros"  # where the solver starts: "zeros", "counts", or a fitted model
    # From X, y and `transformer` to packed data and what made them.
    pack: Callable[..., Packed] = pack_training
    # From the model and its training data to what a solver sees of them; None: themselves.
    examples: Callable[[Any, TrainingData], Examples] | None = None

    def read(self, X: Any, y: Any, sample_weight: Any = None) -> TrainingData:
        """Read and check what the model is to be fitted to."""
        pack = partial(self.pack, features=self.transformer)
        return read_training(X, y, sample_weight, read=self.labels.read, pack=pack)

    def model(self, training: TrainingData) -> Any:
        """Return the model of potentials with the weights that are to be fitted."""
        return self._weights.choose(self.features, training)

    @property
    def _weights(self) -> Any:
        return WEIGHTS_OF[type(self.labels)](self.labels) if self.weights is None else self.weights

    def seen(self, model: Any, training: TrainingData) -> Examples:
        """Return what a solver sees of a model and its training data."""
        rewritten = Examples if self.examples is None else self.examples
        return rewritten(model, training)

    def objective(self, model: Any, training: TrainingData, threads: ThreadMap) -> Objective:
        """Return what the solver minimizes."""
        weight = training.weight if self.scale == 1.0 else self.scale * training.weight
        return Objective(
            model, model.structure, self.loss(training), self.penalty,
            training.data, training.targets, weight, threads,
        )  # fmt: skip

    def attributes(self, model: Any, training: TrainingData, parameters: Any) -> dict[str, Any]:
        """Return the fitted attributes that prediction needs."""
        data = training.data
        named: dict[str, Any] = self._weights.attributes(
            model, parameters, training.classes, training.coding
        )
        return named | {
            "n_features_in_": data.n_features,
            "vectorizer_": training.vectorizer,
            **{NAMES_OF[kind]: names for kind, names in names_of(data).items()},
        }


def shared_parameters(estimator: Any) -> dict[str, Any]:
    """Return the parameters of an estimator, and defaults of those that it lacks.

    Those that mean the same for all estimators are checked.
    """
    given: dict[str, Any] = _USUAL | estimator.get_params(deep=False)
    check_whole("min_freq", given["min_freq"])
    if not isinstance(given["verbose"], bool):
        check_whole("verbose", given["verbose"])
    if given["n_jobs"] is not None:
        check_whole("n_jobs", given["n_jobs"], None)
    for name in _FLAGS:
        check_flag(name, given[name])
    if given["features"] is not None:
        check_method("features", given["features"], "fit_transform", "None")
    check_random_state(given["random_state"])
    check_init(given["init"])
    if given["constraints"] is not None:
        from crfkit.constraints import Constraints  # rules take their time to import

        Constraints.of(given["constraints"])
    estimator._decoder()
    return given


def make_problem(estimator: Any, **parts: Any) -> Problem:
    """Return a problem of these parts, and of the parameters that all estimators share."""
    given = shared_parameters(estimator)
    return Problem(
        features=FeatureChoice(**{name: given[name] for name in FeatureChoice._fields}),
        transformer=given["features"], early_stopping=_rules(given["early_stopping"]),
        verbose=int(given["verbose"]),
        **{name: given[name] for name in ("random_state", "n_jobs", "init")},
        **parts,
    )  # fmt: skip


def _rules(given: Any) -> EarlyStopping | None:
    """Return the rules of the parameter `early_stopping`; None where a fit is not watched."""
    if isinstance(given, EarlyStopping):
        given._check_parameters()
        return given
    if not isinstance(given, (bool, np.bool_)):
        raise TypeError(f"early_stopping={given!r} must be True, False or an EarlyStopping.")
    return EarlyStopping() if given else None


def elastic_net(estimator: Any) -> ElasticNet:
    """Return the penalty of the parameters `c1` and `c2`."""
    check_number("c1", estimator.c1)
    check_number("c2", estimator.c2)
    return ElasticNet(float(estimator.c1), float(estimator.c2))


def chosen_solver(estimator: Any, solvers: Mapping[str, Any]) -> Any:
    """Return the solver of the parameter `solver`, with its number of iterations, and seed, set.

    None leaves `max_iter` to the solver; `random_state` is only for one that is named.
    """
    solver = estimator.solver
    if isinstance(solver, str):
        check_option("solver", solver, solvers)
        solver = solvers[solver]()
        if estimator.random_state is not None and solver.is_random:
            solver.random_state = estimator.random_state
    else:
        check_method("solver", solver, "solve")
    if estimator.max_iter is not None:
        check_whole("max_iter", estimator.max_iter)
        solver = copy.copy(solver)
        solver.max_iter = int(estimator.max_iter)
    return solver


def chosen_loss(estimator: Any) -> Callable[[TrainingData], Loss]:
    """Return how the loss of the parameters `loss` and `cost` is made."""
    loss, cost = estimator.loss, estimator.cost
    if isinstance(loss, str):
        check_option("loss", loss, LOSSES)
    else:
        check_method("loss", loss, "value_and_grad")
    if isinstance(cost, str):
        check_option("cost", cost, ("hamming", "zero_one"))
    if not (isinstance(cost, str) and cost == "hamming"):
        _check_uses_cost(loss, cost)

    def make(training: TrainingData) -> Loss:
        found: Any = LOSSES[loss]() if isinstance(loss, str) else loss
        if found.takes_cost:
            given = cost if isinstance(loss, str) else found.cost
            found = copy.copy(found)
            found.cost = given if isinstance(given, Cost) else training.cost(given)
        return found  # type: ignore[no-any-return]

    return make


def _check_uses_cost(loss: Any, cost: Any) -> None:
    """Raise ValueError if a cost that is not the default one would have no effect."""
    if not isinstance(loss, str):
        raise ValueError(
            f"cost={cost!r:.80} is for losses that are given by name: give {type(loss).__name__} "
            "its own, if it has one, and leave cost at 'hamming'."
        )
    if not LOSSES[loss].takes_cost:
        using = sorted(name for name, kind in LOSSES.items() if kind.takes_cost)
        raise ValueError(
            f"cost={cost!r:.80} has no effect on loss={loss!r}: choose a loss that uses a cost, "
            f"which are {using}, or leave cost at 'hamming'."
        )


class ParameterCounts(NamedTuple):
    """Numbers of weights."""

    by_kind: dict[str, int]  # by what they are: "attribute x label", "label x label", and so on

    @property
    def total(self) -> int:
        """All weights."""
        return sum(self.by_kind.values())

    @property
    def fit_bytes(self) -> int:
        """Bytes that the vectors of L-BFGS take while fitting, without the training data."""
        return 8 * SOLVER_VECTORS * self.total

    def __str__(self) -> str:
        named = ", ".join(f"{count:,} {kind}" for kind, count in self.by_kind.items() if count)
        return f"{self.total:,} weights ({named})"


class Fit:
    """The model that is chosen for training data, and the search for its parameters."""

    def __init__(self, problem: Problem, training: TrainingData) -> None:
        self.problem, self.training = problem, training.of_weight()
        self.model = problem.model(self.training)

    def start(self, init: Any = None) -> FloatArray:
        """Return the first parameters: those of `init`, by default of the problem."""
        return first_parameters(self.problem.init if init is None else init, self)

    def attributes(self, parameters: FloatArray) -> dict[str, Any]:
        """Return the fitted attributes that prediction needs."""
        return self.problem.attributes(self.model, self.training, parameters)

    def run(
        self, start: FloatArray, callback: Callback | None = None, watch: Watch | None = None
    ) -> SolverResult:
        """Minimize the objective from first parameters until a callback or `watch` ends it."""
        self._tell_size()
        return_memory(self.training.data.nbytes)
        solver, seen = self.problem.solver, self.problem.seen(self.model, self.training)
        result: SolverResult
        with ThreadMap(self.problem.n_jobs) as threads:
            objective = self.problem.objective(seen.model, seen.training, threads)
            if objective.loss.is_staged:
                result = minimize(solver, objective, start, self._told(callback), watch)
            else:
                told = self._told(callback, watch)
                result = solver.solve(
                    objective, seen.inward(start), lambda r, w: told(r, seen.outward(w))
                )
                result = result._replace(parameters=seen.outward(result.parameters))
        if watch is not None:
            result = watch.finish(result)
        reached = [record for record in result.history if record.value == result.value]
        return result._replace(gap=objective.gap(reached[-1]) if reached else math.nan)

    def _tell_size(self) -> None:
        """Say how many weights there are, and warn where they may not fit into memory."""
        counts = ParameterCounts(self.model.parameter_counts)
        if counts.total > LARGE:
            warn_user(
                f"the model has {counts}; fitting it takes about {counts.fit_bytes / 2**30:.0f} GiB"
                " beside the data. A larger min_freq, fewer templates, or observed pairs only "
                "(all_possible_states=False, all_possible_transitions=False) make it smaller."
            )
        if self.problem.verbose:
            print(f"{counts}", flush=True)

    def _told(self, *callbacks: Callback | None) -> Callback:
        """Return a callback that prints every so many iterations, and asks others."""
        every = {0: 0, 1: 10}.get(self.problem.verbose, 1)
        others = [callback for callback in callbacks if callback is not None]

        def told(record: IterationRecord, parameters: FloatArray) -> bool:
            if every and record.iteration % every == 0:
                print(_describe(record), flush=True)
            return any([callback(record, parameters) for callback in others])

        return told

    def results(
        self, start: FloatArray, result: SolverResult, watch: Watch | None = None
    ) -> dict[str, Any]:
        """Return the fitted attributes that tell of the search."""
        found = {
            "n_parameters_": self.model.n_parameters,
            "n_iter_": result.n_iter,
            "solver_": result.solver or type(self.problem.solver).__name__,
            "converged_": result.converged,
            "objective_": result.value,
            "gap_": result.gap,
            "training_log_": result.history,
        }
        found |= {} if watch is None else watch.attributes()
        if self.problem.further is not None:
            best = found.get("best_iteration_")
            found |= self.problem.further(self, start, result.n_iter if best is None else best)
        return found

    def report(self, result: SolverResult, watch: Watch | None = None) -> None:
        """Say how the fit ended; that it was stopped early is what the user wants."""
        if self.problem.verbose:
            print(f"stopped after {result.n_iter} iterations: {result.message}", flush=True)
        if result.interrupted:
            message = f"fit was {result.message}; the model keeps the weights reached so far."
            warn_user(message, ConvergenceWarning)
        elif self.problem.solver.max_iter == 0:
            self._warn_of_no_start(result)
        elif not (result.converged or (watch is not None and watch.stopped)):
            self._warn_of_no_end(result)

    def _warn_of_no_start(self, result: SolverResult) -> None:
        """Warn that no iteration was asked for."""
        if result.parameters.any():
            message = "the weights are those of the start."
        else:
            message = (
                "nothing was learned, all weights are 0. Increase max_iter, or give weights to "
                'start from, such as init="counts", where there is init.'
            )
        warn_user(f"max_iter=0: {message}", ConvergenceWarning)

    def _warn_of_no_end(self, result: SolverResult) -> None:
        """Warn that the solver did not converge, and say what to do first."""
        data = self.training.data
        numbers = data.values is not None or data.dense is not None
        first = scale_advice(column_sizes(data), data.names) if numbers else ""
        warn_user(f"fit did not converge: {first}{result.message}.", ConvergenceWarning)


class FitProgress:
    """Tells progress bars, and scikit-learn's callbacks of an estimator, how far a fit is."""

    def __init__(self, estimator: Any, fit: Fit, watch: Watch | None = None) -> None:
        self.fit, self.watch, most = fit, watch, fit.problem.solver.max_iter
        self.told = {
            "estimator": estimator,
            "X": lambda: fit.training.data,
            "y": lambda: fit.training.labels,
        }
        self.context = estimator._init_callback_context(max_subtasks=most)
        self.context.call_on_fit_task_begin(**self.told)
        own = estimator.get_params(deep=False).get("max_iter")
        self.task = working("fitting", own, "iterations")
        self.expected = IterationsLeft(fit.problem.solver) if is_heard() else None

    def __enter__(self) -> FitProgress:
        self.task.__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        self.task.__exit__(*error)

    def __call__(self, record: IterationRecord, parameters: FloatArray) -> bool:
        """Report an iteration; returns whether a callback asks to stop."""
        if self.expected is not None:
            scores = {} if self.watch is None else self.watch.told()
            left = self.expected.after(record)
            self.task.update(record.iteration, objective=record.value, left=left, **scores)
        if record.iteration == 0:
            return False
        task = self.context.subcontext(task_name="iteration")
        task.call_on_fit_task_begin(**self.told)
        return self._end(task, parameters)

    def close(self, result: SolverResult) -> None:
        """Report the end of the fit."""
        scores = {} if self.watch is None else self.watch.told(best=True)
        told = {"objective": result.value, "interrupted": result.interrupted} | scores
        self.task.update(result.n_iter, **told)
        self._end(self.context, result.parameters)

    def _end(self, task: Any, parameters: FloatArray) -> bool:
        return bool(
            task.call_on_fit_task_end(
                reconstruction_attributes=lambda: self.fit.attributes(parameters), **self.told
            )
        )


def _describe(record: IterationRecord) -> str:
    """Return a line of the log."""
    name, distance = "gradient", record.gradient_norm
    if math.isnan(distance):
        name, distance = "gap", record.gap
    if record.mistakes >= 0:
        name, distance = "mistakes", float(record.mistakes)
    return (
        f"iteration {record.iteration:4d}  objective {record.value:14.4f}  "
        f"{name:<8s} {distance:10.4g}  weights {record.nonzero:9,d}  {record.seconds:7.1f} s"
    )
