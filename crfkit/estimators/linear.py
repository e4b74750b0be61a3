"""Estimators of linear potentials, whose weights a solver finds."""

from __future__ import annotations

import copy
from abc import abstractmethod
from typing import Any, ClassVar, Self

from sklearn.base import BaseEstimator

from crfkit._types import FloatArray, SolverResult
from crfkit.estimators._kernelized import KernelledTokens
from crfkit.estimators._views import max_lengths, names_of_attributes, weight_view
from crfkit.estimators.base import SequenceClassifier
from crfkit.potentials.blocks import LABELS, PAIRS, SEGMENTS, TRANSITIONS
from crfkit.potentials.linear import WeightSpace
from crfkit.potentials.semimarkov import WEIGHTS_OF
from crfkit.training.data import Labeled, hold_out
from crfkit.training.early_stopping import Watch, find_scorer
from crfkit.training.fit import Fit, FitProgress, ParameterCounts, Problem
from crfkit.training.partial_fit import learn_batch


class LinearClassifier(SequenceClassifier):
    """A classifier with linear potentials; a subclass says in `_problem` what it is."""

    warm_start: Any = False
    init: Any = "zeros"
    scales: ClassVar[bool] = True  # whether scores of labelings are multiplied as weights are
    fitted_by = frozenset(("coef_", "dual_coef_"))
    weight_space: ClassVar[type[WeightSpace] | None] = None  # None: that of the labels

    state_features_ = weight_view("coef_", "(attribute, label)")
    first_features_ = weight_view("first_coef_", "(attribute, label) of first tokens")
    last_features_ = weight_view("last_coef_", "(attribute, label) of last tokens")
    single_features_ = weight_view("single_coef_", "(attribute, label) of only tokens")
    segment_features_ = weight_view("segment_coef_", "(attribute of segments, label)", SEGMENTS)
    transition_features_ = weight_view("transitions_", "(label, next label)", LABELS)
    transition_attributes_ = weight_view(
        "transition_coef_", "(attribute, (label, next label))", TRANSITIONS, PAIRS
    )
    transition_feature_names_in_ = names_of_attributes(TRANSITIONS, "shape (D2,)")
    segment_feature_names_in_ = names_of_attributes(SEGMENTS, "shape (D3,)")
    max_lengths_ = property(max_lengths)

    def __sklearn_clone__(self) -> Self:
        """Return the estimator without what was fitted; a model to start from is the same."""
        plain = copy.copy(self)
        if not isinstance(self.init, str):
            plain.init = "zeros"
        cloned: Self = BaseEstimator.__sklearn_clone__(plain)
        if not isinstance(self.init, str):
            cloned.init = self.init
        return cloned

    @abstractmethod
    def _problem(self) -> Problem:
        """Return what a fit minimizes, and how; raise if a parameter cannot be used."""

    def count_parameters(self, X: Any, y: Any) -> ParameterCounts:
        """Return the weights that `fit` would learn, by kind, and the memory that fitting takes."""
        problem = self._problem()
        return ParameterCounts(Fit(problem, problem.read(X, y)).model.parameter_counts)

    def _task(
        self, X: Any, y: Any, sample_weight: Any, X_val: Any = None, y_val: Any = None
    ) -> tuple[Fit, Labeled | None]:
        """Return the fit that is to be run, and what it is watched on."""
        problem = self._problem()
        rules = problem.early_stopping
        fraction = None if rules is None else rules.validation_fraction
        training = problem.read(X, y, sample_weight)
        training, held = hold_out(training, X_val, y_val, fraction, problem.random_state)
        return Fit(problem, training), held

    def _learn(self, fit: Fit, held: Labeled | None = None) -> Self:
        """Run a fit, and take what it finds."""
        start, rules, watch = self._start(fit), fit.problem.early_stopping, None
        if held is not None and rules is not None:
            scorer = find_scorer(rules.scoring)
            watch = Watch(rules, lambda w: scorer(self._with(fit.attributes(w)), *held))
        with self._without_the_last_fit(), FitProgress(self, fit, watch) as progress:
            result: SolverResult = fit.run(start, progress, watch)
            progress.close(result)
            found = fit.attributes(result.parameters) | fit.results(start, result, watch)
        self._set_fitted(found)
        fit.report(result, watch)
        return self

    def _learn_batch(self, batch: tuple[Any, Any, Any], classes: Any) -> Self:
        """Make a pass over X, y and sample weights."""
        problem, fitted = self._problem(), self.__sklearn_is_fitted__()
        if problem.labels.of_segments or (fitted and self._fitted_labels().of_segments):
            raise ValueError("partial_fit learns labels of tokens, not of segments: use fit.")
        known = vars(self) if fitted else {}
        schema = self._schema() if fitted else None
        self._set_fitted(learn_batch(problem, known, schema, batch, classes))
        return self

    def _start(self, fit: Fit) -> FloatArray:
        """Return the first parameters: those of the last fit, or what a first one starts from."""
        if not (self.warm_start and "coef_" in vars(self)) or not fit.model.is_linear:
            return fit.start()
        if self._fitted_labels().of_segments:
            raise ValueError(
                "warm_start=True carries weights of the labels of tokens over, but the last fit "
                "learned those of segments: use warm_start=False."
            )
        return fit.start(self)

    def _weight_space(self) -> Any:
        """Return what makes a model of the fitted weights."""
        if "dual_coef_" in vars(self):
            return KernelledTokens.of(self)
        labels = self._fitted_labels()
        return (self.weight_space or WEIGHTS_OF[type(labels)])(labels)
