"""Fitting a linear chain: what all estimators share that a solver gives their weights."""

from __future__ import annotations

import copy
import math
from collections.abc import Mapping
from typing import Any, Self

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state

from crfkit._parallel import ThreadMap
from crfkit._params import check_flag, check_method, check_number, check_option, check_whole
from crfkit._types import FloatArray, SolverResult
from crfkit._warnings import warn_user
from crfkit.estimators._base import LinearChainClassifier
from crfkit.estimators._callbacks import CallbackSupportMixin, FitProgress
from crfkit.estimators._early_stopping import EarlyStopping, Watch, find_scorer
from crfkit.estimators._layout import TokenLabels
from crfkit.estimators._size import warn_if_large
from crfkit.estimators._training import Labeled, TrainingData, read_training, read_validation
from crfkit.losses import Loss
from crfkit.objective.batch import Objective
from crfkit.objective.penalties import ElasticNet
from crfkit.potentials import LinearModel
from crfkit.potentials.blocks import NAMES_OF
from crfkit.potentials.size import ParameterCounts, parameter_counts
from crfkit.potentials.transfer import NamedWeights, transfer_weights
from crfkit.solvers.stages import minimize

# What only some fits leave behind.
_OF_OTHER_FITS = ("validation_scores_", "best_iteration_", "best_score_", "_partial_state")


class SolvedChainClassifier(CallbackSupportMixin, LinearChainClassifier):  # type: ignore[misc]
    """A linear chain whose weights a solver finds, given an objective.

    A subclass has the parameters below and says what the objective and the solver are. One without
    `early_stopping` has that switched off.
    """

    max_iter: int | None
    min_freq: int
    all_possible_states: bool
    all_possible_transitions: bool
    boundary_weights: bool
    early_stopping: bool | EarlyStopping = False
    validation_fraction: float = 0.1
    warm_start: bool
    random_state: Any
    verbose: int

    def _loss(self, training: TrainingData) -> Loss:
        """Return the loss, given what is learned from."""
        raise NotImplementedError

    def _penalty(self) -> ElasticNet:
        """Return the penalty."""
        raise NotImplementedError

    def _make_solver(self) -> Any:
        """Return the solver with its number of iterations, and its seed, set."""
        raise NotImplementedError

    def _fit(
        self, X: Any, y: Any, sample_weight: Any, X_val: Any = None, y_val: Any = None
    ) -> Self:
        """Fit the weights; to be called by `fit`, which carries the documentation."""
        self._check_parameters()
        training = self._read(X, y, sample_weight)
        training, validation = self._hold_out(training, X_val, y_val)
        return self._learn(training, validation)

    def _learn(self, training: TrainingData, validation: Labeled | None = None) -> Self:
        """Fit the weights to data that were read."""
        model = self._choose_model(training)
        warn_if_large(model)
        if self.verbose:
            print(f"{parameter_counts(model)}", flush=True)
        watch = None if validation is None else self._watch(model, training, validation)
        result = self._solve(model, training, watch)
        self._forget(_OF_OTHER_FITS)
        self._set_fitted(
            self._model_attributes(model, training, result.parameters)
            | {
                "n_parameters_": model.n_parameters,
                "n_iter_": result.n_iter,
                "converged_": result.converged,
                "objective_": result.value,
                "gap_": result.gap,
                "training_log_": result.history,
            }
            | ({} if watch is None else watch.attributes())
        )
        self._report(result, early=watch is not None and watch.stopped)
        return self

    def _forget(self, names: tuple[str, ...]) -> None:
        """Remove fitted attributes that only some fits have."""
        for name in names:
            self.__dict__.pop(name, None)

    def _hold_out(
        self, training: TrainingData, X_val: Any, y_val: Any
    ) -> tuple[TrainingData, Labeled | None]:
        """Return what to learn from, and what to watch the fit on, if it is to be watched."""
        given = X_val is not None
        if given != (y_val is not None):
            missing, present = ("y_val", "X_val") if given else ("X_val", "y_val")
            raise ValueError(f"{present} was given without {missing}: give both, or neither.")
        if not self.early_stopping:
            if given:
                raise ValueError(
                    "X_val and y_val are used by early stopping only: set early_stopping=True, or "
                    "leave them out."
                )
            return training, None
        if given:
            return training, read_validation(X_val, y_val, training)
        total = len(training.data)
        count = math.ceil(self.validation_fraction * total)
        if count >= total:
            raise ValueError(
                f"early_stopping holds out {count} of {total} sequences, which leaves none to "
                "learn from: give more sequences, or X_val and y_val."
            )
        order = check_random_state(self.random_state).permutation(total)
        held, kept = np.sort(order[:count]), np.sort(order[count:])
        return training.take(kept), Labeled(training.data[held], training.labels[held])

    def _watch(self, model: LinearModel, training: TrainingData, validation: Labeled) -> Watch:
        """Return the callback that ends the fit."""
        rules = self.early_stopping
        rules = rules if isinstance(rules, EarlyStopping) else EarlyStopping()
        scorer = find_scorer(rules.scoring)

        def score(parameters: FloatArray) -> float:
            return scorer(self._as_fitted(model, training, parameters), *validation)

        return Watch(rules, score)

    def _as_fitted(self, model: LinearModel, training: TrainingData, w: FloatArray) -> Self:
        """Return a copy with these parameters as its fitted weights."""
        fitted = copy.copy(self)
        fitted._set_fitted(self._model_attributes(model, training, w))
        return fitted

    def _choose_model(self, training: TrainingData) -> LinearModel:
        """Return the score model with the weights that are to be fitted."""
        model: LinearModel = self._layout.choose(self, training)
        return model

    def _read(self, X: Any, y: Any, sample_weight: Any) -> TrainingData:
        """Read and check what the model is to be fitted to."""
        layout = self._layout
        training = read_training(X, y, sample_weight, read=layout.read)
        drop_zero_weight_sequences: TrainingData = layout.drop_zero_weight_sequences(training)
        return drop_zero_weight_sequences

    def count_parameters(self, X: Any, y: Any) -> ParameterCounts:
        """Return how many weights `fit` would learn from the same data, without fitting.

        Parameters
        ----------
        X, y : iterable of S sequences
            As for `fit`.

        Returns
        -------
        ParameterCounts
            The weights by kind, their total and the memory that fitting them takes.

        Raises
        ------
        ValueError, TypeError
            As for `fit`.
        """
        self._check_parameters()
        return parameter_counts(self._choose_model(self._read(X, y, None)))

    def _check_parameters(self) -> None:
        check_whole("min_freq", self.min_freq)
        if not isinstance(self.verbose, bool):
            check_whole("verbose", self.verbose)
        if self.n_jobs is not None:
            check_whole("n_jobs", self.n_jobs, None)
        if self.max_iter is not None:
            check_whole("max_iter", self.max_iter)
        for name in ("all_possible_states", "all_possible_transitions", "boundary_weights",
                     "warm_start"):  # fmt: skip
            check_flag(name, getattr(self, name))
        self._check_early_stopping()
        self._decoder()

    def _check_early_stopping(self) -> None:
        if isinstance(self.early_stopping, EarlyStopping):
            self.early_stopping._check_parameters()
        elif not isinstance(self.early_stopping, (bool, np.bool_)):
            raise TypeError(
                f"early_stopping={self.early_stopping!r} must be True, False or an EarlyStopping."
            )
        check_number("validation_fraction", self.validation_fraction)
        if not 0.0 < self.validation_fraction < 1.0:
            raise ValueError(
                f"validation_fraction={self.validation_fraction!r} must be between 0 and 1."
            )
        check_random_state(self.random_state)

    def _start(self, model: LinearModel, training: TrainingData) -> FloatArray:
        """Return the first parameters: zeros, or those of the last fit."""
        if not (self.warm_start and hasattr(self, "coef_")):
            return np.zeros(model.n_parameters)
        if type(self._fitted_layout) is not TokenLabels:
            raise ValueError(
                "warm_start=True carries weights of the labels of tokens over, but the last fit "
                "learned those of segments: use warm_start=False."
            )
        return transfer_weights(
            self._named_weights(),
            model,
            training.classes,
            training.names,
        )

    def _named_weights(self) -> NamedWeights:
        """Return the fitted weights with their names."""
        names = {axis: vars(self).get(name) for axis, name in NAMES_OF.items()}
        return NamedWeights(self.classes_, names, vars(self))

    def _solve(
        self, model: LinearModel, training: TrainingData, watch: Watch | None
    ) -> SolverResult:
        """Minimize the objective."""
        solver, start = self._make_solver(), self._start(model, training)
        progress = FitProgress(
            self,
            getattr(solver, "max_iter", None),
            training=lambda: (training.data, training.labels),
            attributes=lambda w: self._model_attributes(model, training, w),
            every={0: 0, 1: 10}.get(int(self.verbose), 1),
        )
        with ThreadMap(self.n_jobs) as threads:
            objective = self._objective(model, training, threads)
            result = minimize(solver, objective, start, progress, watch)
        if watch is not None:
            result = watch.finish(result)
        progress.close(result.parameters)
        reached = [record for record in result.history if record.value == result.value]
        return result._replace(gap=objective.gap(reached[-1]) if reached else math.nan)

    def _objective(
        self, model: LinearModel, training: TrainingData, threads: ThreadMap
    ) -> Objective:
        """Return what the solver minimizes."""
        return Objective(
            model, model.structure, self._loss(training), self._penalty(),
            training.data, training.codes, training.weight, threads,
        )  # fmt: skip

    def _model_attributes(
        self, model: LinearModel, training: TrainingData, parameters: FloatArray
    ) -> dict[str, Any]:
        """Return what prediction needs."""
        weights = self._weight_attributes(model, parameters, training.classes, training.coding)
        return weights | {
            "n_features_in_": training.data.n_features,
            "vectorizer_": training.vectorizer,
            **{NAMES_OF[axis]: names for axis, names in training.names.items()},
        }

    def _report(self, result: SolverResult, *, early: bool) -> None:
        """Say how the fit ended; that it was stopped early is what the user wants."""
        if self.verbose:
            print(f"stopped after {result.n_iter} iterations: {result.message}", flush=True)
        if result.interrupted:
            message = f"fit was {result.message}; the model keeps the weights reached so far."
            warn_user(message, ConvergenceWarning)
        elif not (result.converged or early):
            warn_user(f"fit did not converge: {result.message}.", ConvergenceWarning)


def ready_solver(solver: Any, solvers: Mapping[str, Any], max_iter: Any, random_state: Any) -> Any:
    """Return a solver with its number of iterations, and its seed, set.

    Parameters
    ----------
    solver : str or Solver
        What the user said.
    solvers : dict
        Solvers by their names.
    max_iter, random_state
        None leaves it to the solver; the seed is only for one that is named.
    """
    if isinstance(solver, str):
        solver = solvers[solver]()
        if random_state is not None and hasattr(solver, "random_state"):
            solver.random_state = random_state
    if max_iter is not None:
        solver = copy.copy(solver)
        solver.max_iter = int(max_iter)
    return solver


def check_solver(solver: Any, solvers: Mapping[str, Any]) -> None:
    """Raise ValueError or TypeError if a solver is neither a name nor one itself."""
    if isinstance(solver, str):
        check_option("solver", solver, solvers)
    else:
        check_method("solver", solver, "solve")
