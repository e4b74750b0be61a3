"""Fitting a linear chain by minimizing a loss and an elastic net."""

from __future__ import annotations

import copy
import warnings
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from crfkit._parallel import ThreadMap
from crfkit._params import check_flag, check_method, check_number, check_option, check_whole
from crfkit._types import CodeArray, FloatArray, SolverResult
from crfkit._validation import check_sample_weight, check_training, warn_if_badly_scaled
from crfkit.data import LabelSequences, PackedSequences
from crfkit.data.labels import LabelStream
from crfkit.data.names import Names
from crfkit.estimators._base import LinearChainClassifier
from crfkit.estimators._callbacks import CallbackSupportMixin, FitProgress
from crfkit.estimators._input import pack_training
from crfkit.estimators._size import ParameterCounts, parameter_counts, warn_if_large
from crfkit.features import SequenceVectorizer
from crfkit.losses import Loss
from crfkit.objective import Objective
from crfkit.penalties import ElasticNet
from crfkit.scores import LinearScores
from crfkit.scores.selection import choose_features
from crfkit.scores.transfer import NamedWeights, carry_over
from crfkit.solvers import SOLVERS, Solver


class TrainingData(NamedTuple):
    """What a model is fitted to.

    Attributes
    ----------
    data : PackedSequences
        S sequences of N tokens with D attributes.
    vectorizer : SequenceVectorizer or None
        The vocabulary, if one was learned.
    classes : ndarray of shape (K,)
        Labels.
    codes : ndarray of shape (N,)
        Label codes.
    weight : ndarray of shape (N,)
        Token weights.
    """

    data: PackedSequences
    vectorizer: SequenceVectorizer | None
    classes: NDArray[np.object_]
    codes: CodeArray
    weight: FloatArray

    @property
    def labels(self) -> LabelSequences:
        """The labels as sequences."""
        return LabelSequences.from_codes(self.codes, self.classes, self.data.offsets)


class GradientChainClassifier(CallbackSupportMixin, LinearChainClassifier):  # type: ignore[misc]
    """A linear chain whose weights minimize a sum of losses plus ``c1 sum |w| + c2 sum w**2``.

    A subclass has the parameters below and says which loss it is.
    """

    c1: float
    c2: float
    solver: str | Solver
    max_iter: int | None
    min_freq: int
    all_possible_states: bool
    all_possible_transitions: bool
    boundary_weights: bool
    warm_start: bool
    verbose: int

    def _loss(self) -> Loss:
        """Return the loss."""
        raise NotImplementedError

    def _fit(self, X: Any, y: Any, sample_weight: Any) -> Self:
        """Fit the weights; to be called by `fit`, which carries the documentation."""
        self._check_parameters()
        training = _read_training(X, y, sample_weight)
        model = self._choose_model(training)
        warn_if_large(model)
        if self.verbose:
            print(f"{parameter_counts(model)}", flush=True)
        result = self._solve(model, training)
        self._set_fitted(
            self._model_attributes(model, training, result.parameters)
            | {
                "n_parameters_": model.n_parameters,
                "n_iter_": result.n_iter,
                "converged_": result.converged,
                "objective_": result.value,
                "training_log_": result.history,
            }
        )
        self._report(result)
        return self

    def _choose_model(self, training: TrainingData) -> LinearScores:
        """Return the score model with the weights that are to be fitted."""
        return choose_features(
            training.data, training.codes, len(training.classes),
            min_freq=self.min_freq, all_states=self.all_possible_states,
            all_steps=self.all_possible_transitions, boundaries=self.boundary_weights,
        )  # fmt: skip

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
        return parameter_counts(self._choose_model(_read_training(X, y, None)))

    def _check_parameters(self) -> None:
        check_number("c1", self.c1)
        check_number("c2", self.c2)
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
        if isinstance(self.solver, str):
            check_option("solver", self.solver, ["auto", *SOLVERS])
        else:
            check_method("solver", self.solver, "solve")
        self._decoder()

    def _make_solver(self) -> Any:
        """Return the solver with its number of iterations set."""
        solver: Any = self.solver
        if isinstance(solver, str):
            name = solver if solver != "auto" else "owlqn" if self.c1 else "lbfgs"
            solver = SOLVERS[name]()
        if self.max_iter is not None:
            solver = copy.copy(solver)
            solver.max_iter = int(self.max_iter)
        return solver

    def _start(self, model: LinearScores, training: TrainingData) -> FloatArray:
        """Return the first parameters: zeros, or those of the last fit."""
        if not (self.warm_start and hasattr(self, "coef_")):
            return np.zeros(model.n_parameters)
        old = NamedWeights(
            self.classes_, self._feature_names, self.coef_, self.transitions_,
            self.start_weights_, self.end_weights_, self._step_names, self.step_coef_,
        )  # fmt: skip
        return carry_over(
            old, model, training.classes, training.data.names, _step_names(training.data)
        )

    def _solve(self, model: LinearScores, training: TrainingData) -> SolverResult:
        """Minimize the objective."""
        solver, start = self._make_solver(), self._start(model, training)
        progress = FitProgress(
            self,
            getattr(solver, "max_iter", None),
            training=lambda: (training.data, training.labels),
            attributes=lambda w: self._model_attributes(model, training, w),
            every={0: 0, 1: 10}.get(int(self.verbose), 1),
        )
        penalty = ElasticNet(float(self.c1), float(self.c2))
        with ThreadMap(self.n_jobs) as threads:
            objective = Objective(
                model, self._structure(), self._loss(), penalty,
                training.data, training.codes, training.weight, threads,
            )  # fmt: skip
            result: SolverResult = solver.solve(objective, start, progress)
        progress.close(result.parameters)
        return result

    def _model_attributes(
        self, model: LinearScores, training: TrainingData, parameters: FloatArray
    ) -> dict[str, Any]:
        """Return what prediction needs."""
        return self._weight_attributes(model, parameters, training.classes) | {
            "n_features_in_": training.data.n_features,
            "vectorizer_": training.vectorizer,
            "_feature_names": training.data.names,
            "_step_names": _step_names(training.data),
        }

    def _report(self, result: SolverResult) -> None:
        """Say how the fit ended."""
        if self.verbose:
            print(f"stopped after {result.n_iter} iterations: {result.message}", flush=True)
        if result.interrupted:
            message = f"fit was {result.message}; the model keeps the weights reached so far."
            warnings.warn(message, ConvergenceWarning, stacklevel=5)
        elif not result.converged:
            warnings.warn(f"fit did not converge: {result.message}.", ConvergenceWarning,
                          stacklevel=5)  # fmt: skip


def _step_names(data: PackedSequences) -> Names | None:
    return None if data.steps is None else data.steps.names


def _read_training(X: Any, y: Any, sample_weight: Any) -> TrainingData:
    """Read and check what a model is to be fitted to."""
    data, vectorizer = pack_training(X)
    stream = LabelStream(y)
    check_training(data, stream)
    weight = check_sample_weight(sample_weight, data.offsets)
    for block in (data, data.steps):
        if block is not None:
            warn_if_badly_scaled(block)
    classes = stream.classes()
    return TrainingData(data, vectorizer, classes, stream.codes_for(classes), weight)
