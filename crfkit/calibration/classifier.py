"""The estimator that calibrates another one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from functools import wraps
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.frozen import FrozenEstimator
from sklearn.utils import Tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from crfkit._doc_links import DocLink
from crfkit._parallel import ThreadMap
from crfkit._params import check_option
from crfkit._types import LEVELS, FloatArray
from crfkit.calibration.base import Calibration
from crfkit.calibration.held_out import (
    asked,
    fitted_on,
    held_out,
    listed,
    model_of,
    prefitted,
    with_last_step,
)
from crfkit.calibration.isotonic import Isotonic
from crfkit.calibration.temperature import Temperature
from crfkit.data import LabelSequences
from crfkit.data.sequence_list import SequenceList
from crfkit.estimators import CRFClassifier, _bounds, _labelings, _questions, _samples, _spans
from crfkit.inference.base import plain_codes
from crfkit.metrics.confidence import last_step
from crfkit.persistence import SaveMixin, register

METHODS: dict[str, type[Calibration]] = {"temperature": Temperature, "isotonic": Isotonic}


def _passed_on(question: Callable[..., Any], *, of_probabilities: bool = True) -> Any:
    """Return a method that asks the calibrated model a question, where it has an answer."""
    name = question.__name__

    def has_answer(self: Any) -> bool:
        if of_probabilities and not self._calibration().answers_all:
            raise AttributeError(
                f"with method={self.method!r} there is no calibrated {name}: only `predict_proba` "
                "and `confidence` are calibrated. Use method='temperature'."
            )
        return not self.__sklearn_is_fitted__() or hasattr(model_of(self.estimator_), name)

    @wraps(question)
    def ask(self: Any, X: Any, *given: Any, **options: Any) -> Any:
        model, X = self._asked(X)
        return getattr(model, name)(X, *given, **options)

    return available_if(has_answer)(ask)


@register
@dataclass(eq=False, repr=False)
class CalibratedSequenceClassifier(BaseEstimator):  # type: ignore[misc]
    """An estimator whose probabilities are made to be right as often as they say.

    What :class:`sklearn.calibration.CalibratedClassifierCV` is for other classifiers: clones are
    fitted on the training parts of folds, their probabilities are compared with the labels of the
    test parts, and what makes them agree is applied to the estimator that is fitted to all data.

    Parameters
    ----------
    estimator : estimator, default=None
        What is calibrated: an estimator of crfkit, a pipeline or a search that ends in one;
        ``CRFClassifier()`` if None. One without probabilities (:class:`~crfkit.MaxMarginCRF`,
        :class:`~crfkit.StructuredPerceptron`) gets them: ``exp(score) / Z``, calibrated.
    method : {"temperature", "isotonic"}, default="temperature"
        "temperature" divides all weights by one number, that of the largest likelihood of held-out
        labels (Guo et al. 2017): a distribution over labelings as before, that answers all
        questions. "isotonic" fits functions that do not fall from
        confidence to how often it was right (Zadrozny and Elkan 2002), for the probabilities of
        each label (divided by their sum then), for the confidence of spans and for that of
        sequences. It needs more data, mends more, and other questions of probabilities are not
        answered.
    cv : int, splitter, iterable or "prefit", default=5
        The folds, as for :class:`crfkit.CRFClassifierCV`. "prefit": the estimator is fitted
        already, and all data are for the calibration; they must not be those that it was fitted to.
        So it is for an estimator in a :class:`sklearn.frozen.FrozenEstimator`, which is not lost
        where this one is cloned.
    n_jobs : int or None, default=None
        Folds that are fitted at a time, by threads. The estimator has threads of its own.

    Attributes
    ----------
    estimator_ : estimator
        Fitted to all data, or the given one. With "temperature" a model of its own with the
        calibrated weights. Of a search the best estimator, of a model without probabilities a
        :class:`~crfkit.CRFClassifier` or :class:`~crfkit.SemiMarkovCRF` with its weights.
    calibration_ : Temperature or Isotonic
        What was fitted to the held-out data.
    temperature_ : float
        With "temperature": the number, from 0.01 to 100. Above 1 the estimator was too sure. It
        is at an end where the held-out data have no errors, or nothing was learned.
    classes_ : ndarray of shape (K,)
        The labels.
    n_features_in_, feature_names_in_
        Those of `estimator_`.

    Notes
    -----
    Held-out sequences with a label that is not in the training part of the fold are left out for
    the temperature, as they have no probability at any. Attributes are read once, for all folds,
    so `features` of the estimator, but nothing else of it, knows the X of the test parts; that is
    not so in a pipeline.

    The labeling of the largest score stays the same. What goes by probabilities instead,
    ``decoding="posterior"``, expected costs or spans, doubtful labels, goes by calibrated ones with
    "temperature", and may then choose others.

    Of a model with constraints, probabilities are those given these, also where it is calibrated.

    References
    ----------
    Guo, Pleiss, Sun and Weinberger (2017), "On calibration of modern neural networks"; Zadrozny and
    Elkan (2002), "Transforming classifier scores into accurate multiclass probability estimates".

    Examples
    --------
    >>> from crfkit import CalibratedSequenceClassifier, CRFClassifier
    >>> X = [[["the"], ["dog"]], [["a"], ["dog"]], [["the"], ["cat"]], [["dog"]]] * 3
    >>> y = [["D", "N"], ["D", "N"], ["D", "V"], ["N"]] * 3
    >>> model = CalibratedSequenceClassifier(CRFClassifier(c2=1.0), cv=3).fit(X, y)
    >>> model.temperature_ < 1.0  # the strong penalty had made it too unsure
    True
    >>> model.predict([[["the"], ["dog"]]])
    [['D', 'N']]
    """

    estimator: Any = None
    _: KW_ONLY
    method: str = "temperature"
    cv: Any = 5
    n_jobs: int | None = None

    _doc_link_module = "crfkit"
    _doc_link_template = DocLink()
    save = SaveMixin.save
    predict_marginals = _questions.predict_marginals
    predict_spans = _passed_on(_spans.predict_spans, of_probabilities=False)
    predict_with_bounds = _passed_on(_bounds.predict_with_bounds, of_probabilities=False)
    sequence_log_proba = _passed_on(_questions.sequence_log_proba)
    predict_n_best = _passed_on(_labelings.predict_n_best)
    predict_span_proba = _passed_on(_spans.predict_span_proba)
    likely_spans = _passed_on(_spans.likely_spans)
    expected_lengths = _passed_on(_questions.expected_lengths)
    sample = _passed_on(_samples.sample)
    entropy = _passed_on(_samples.entropy)

    def fit(self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None) -> Self:
        """Fit the estimator, unless it is fitted, and the calibration; return this one.

        Parameters
        ----------
        X, y
            As for `fit` of the estimator.
        sample_weight : array of shape (S,) or list of S arrays of shape (T,), optional
            Weights of sequences or tokens, for the estimator and for the calibration.
        groups : array of shape (S,), optional
            Which group a sequence belongs to, for splitters such as ``GroupKFold``.

        Raises
        ------
        ValueError, TypeError
            As for `fit` of the estimator; if it cannot be calibrated, a parameter cannot be used,
            or the model knows the labels of no held-out sequence.
        """
        check_option("method", self.method, METHODS)
        estimator = CRFClassifier() if self.estimator is None else self.estimator
        if isinstance(self.cv, str):
            check_option("cv", self.cv, ["prefit"])
        X, y = listed(X), listed(y)
        if isinstance(self.cv, str) or isinstance(estimator, FrozenEstimator):
            final = prefitted(estimator)
            held = [asked(final, X, y, sample_weight)]
        else:
            final = fitted_on(estimator, X, y, sample_weight)
            with ThreadMap(self.n_jobs) as threads:
                data = X, y, sample_weight
                held = held_out(estimator, final, data, self.cv, groups, threads)
        model = model_of(final)
        calibration = METHODS[self.method].fit(held, model.classes_)
        self.estimator_ = with_last_step(final, calibration.applied(model))
        self.calibration_, self.classes_ = calibration, model.classes_
        return self

    def predict(self, X: Any, *, constraints: Any = None) -> LabelSequences:
        """Return the labels that the estimator predicts; parameters and errors are as for it."""
        model, X = self._asked(X)
        labels: LabelSequences = model.predict(X, constraints=constraints)
        return labels

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the token accuracy, as of the estimator."""
        model, X = self._asked(X)
        return float(model.score(X, y, sample_weight))

    def predict_proba(self, X: Any, *, constraints: Any = None) -> list[FloatArray]:
        """Return the calibrated marginal probabilities of the labels.

        Parameters
        ----------
        X : iterable of sequences
            As for `predict`.
        constraints : Constraints, rule, list of rules, str or None, default=None
            As for `predict`; ValueError with "isotonic", which knows only how often predictions are
            right that keep to the `constraints` of the estimator.

        Returns
        -------
        list of S ndarrays of shape (T, K)
            In the order of `classes_`; rows sum to 1.
        """
        model, X = self._asked(X, constraints)
        return SequenceList(
            self.calibration_.proba(model.predict_proba(X, constraints=constraints))
        )

    def confidence(self, X: Any, *, of: str = "sequences", constraints: Any = None) -> Any:
        """Return the calibrated probability that what `predict` says is right.

        Parameters
        ----------
        X : iterable of sequences
            As for `predict`.
        of : {"sequences", "spans", "tokens"}, default="sequences"
            Of all labels of a sequence together, of each of the spans of `predict_spans`, or of the
            label of each token.
        constraints : Constraints, rule, list of rules, str or None, default=None
            As for `predict_proba`.

        Returns
        -------
        ndarray of shape (S,), or list of S ndarrays
            For each sequence, or each of its spans or tokens.
        """
        check_option("of", of, LEVELS)
        model, X = self._asked(X, constraints)
        data = model._pack(X)
        if of != "tokens" or self.calibration_.answers_all:
            found = model.confidence(data, of=of, constraints=constraints)
            calibrated = self.calibration_.confidence(found, of)
            if of == "sequences":  # of an empty one, nothing can be wrong
                return np.where(data.lengths > 0, calibrated, found)
            return calibrated
        labels = plain_codes(model._codes(data, None)) % len(self.classes_)
        rows = self.calibration_.proba(model.predict_proba(data))
        chosen = np.split(labels, data.offsets[1:-1])
        return [proba[np.arange(len(own)), own] for proba, own in zip(rows, chosen, strict=False)]

    @property
    def temperature_(self) -> float:
        """The number by which weights were divided."""
        found: float = self.calibration_.temperature  # type: ignore[attr-defined]
        return found

    @property
    def n_features_in_(self) -> int:
        """Number of attributes."""
        return int(self.estimator_.n_features_in_)

    @property
    def feature_names_in_(self) -> Any:
        """Names of the attributes, where they are known."""
        return self.estimator_.feature_names_in_

    def __sklearn_is_fitted__(self) -> bool:
        return "estimator_" in vars(self)

    def __sklearn_tags__(self) -> Tags:
        return CRFClassifier().__sklearn_tags__()

    def _calibration(self) -> Any:
        """Return the calibration, or before `fit` its class."""
        if self.__sklearn_is_fitted__():
            return self.calibration_
        return METHODS.get(self.method, Temperature)

    def _asked(self, X: Any, constraints: Any = None) -> tuple[Any, Any]:
        """Return the model that is asked, and what it is asked about."""
        check_is_fitted(self)
        if constraints is not None and not self.calibration_.answers_all:
            raise ValueError(
                f"method={self.method!r} has calibrated answers under the constraints of the "
                "estimator alone: fit it with these constraints, or use method='temperature'."
            )
        return last_step(self.estimator_, X)
