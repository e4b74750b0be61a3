"""From what users hold to the model within: searches, pipelines, calibrated ones, drop-ins."""

from __future__ import annotations

from typing import Any, NamedTuple

from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from crfkit.calibration import CalibratedSequenceClassifier
from crfkit.collective.base import CollectiveClassifier
from crfkit.compat._eli5 import register_with_eli5
from crfkit.compat.sklearn_crfsuite import CRF
from crfkit.estimators import FrameClassifier
from crfkit.estimators.base import SequenceClassifier
from crfkit.estimators.linear import LinearClassifier

register_with_eli5(LinearClassifier)


class Opened(NamedTuple):
    """A fitted model, and the transformers that its sequences go through first."""

    model: SequenceClassifier
    before: tuple[Any, ...]
    calibrated: Any = None  # the calibrated classifier that the model is within
    n_before: int = 0  # how many transformers come before that
    frame: Any = None  # the classifier of frames that all of it is within

    def sequences(self, X: Any) -> Any:
        """Return sequences; those of a data frame, where the model takes frames and X is one."""
        return self.frame.sequences(X) if self.takes_frame(X) else X

    def takes_frame(self, X: Any) -> bool:
        """Whether the model takes data frames, and X is one."""
        return self.frame is not None and hasattr(X, "columns")

    def transform(self, X: Any) -> Any:
        """Return sequences as the model is given them."""
        for step in self.before:
            X = step.transform(X)
        return X

    def confidence(self, X: Any, of: str, constraints: Any = None) -> list[Any] | None:
        """Return the probabilities of predicted spans or tokens; None where there are none."""
        if self.calibrated is not None:
            for step in self.before[: self.n_before]:
                X = step.transform(X)
            found = self.calibrated.confidence(X, of=of, constraints=constraints)
            return found  # type: ignore[no-any-return]
        if not self.model.has_probabilities:
            return None
        model: Any = self.model
        X = self.transform(X)
        if of == "tokens" and not hasattr(model, "confidence"):  # nodes of graphs
            return _of_labels(model, X, constraints)
        found = model.confidence(X, of=of, constraints=constraints)
        return found  # type: ignore[no-any-return]


def _of_labels(model: Any, X: Any, constraints: Any) -> list[Any]:
    """Return the probabilities of the labels that a model predicts."""
    place = {label: k for k, label in enumerate(model.classes_.tolist())}
    proba = model.predict_proba(X, constraints=constraints)
    predicted = model.predict(X, constraints=constraints)
    return [
        [p[place[label]] for p, label in zip(rows, own, strict=True)]
        for rows, own in zip(proba, predicted, strict=True)
    ]


def opened(model: Any) -> Opened:
    """Return the fitted model within a search, a pipeline, a calibrated or a compatible one.

    Parameters
    ----------
    model : estimator
        A fitted estimator of crfkit; a search or a pipeline of scikit-learn that ends in one.

    Raises
    ------
    TypeError
        If there is none within.
    NotFittedError
        If it is not fitted.
    """
    steps: list[Any] = []
    calibrated, n_before, frame = None, 0, None
    while not isinstance(model, SequenceClassifier):
        if isinstance(model, Pipeline):
            check_is_fitted(model)
            steps += [step for _, step in model.steps[:-1] if step not in (None, "passthrough")]
            model = model.steps[-1][1]
        elif isinstance(model, CRF):
            model = model._fitted()
        elif isinstance(model, FrameClassifier):
            check_is_fitted(model)
            frame, model = model, model.estimator_
        elif isinstance(model, FrozenEstimator):
            model = model.estimator
        elif isinstance(model, CalibratedSequenceClassifier):
            check_is_fitted(model)
            calibrated, n_before, model = model, len(steps), model.estimator_
        elif hasattr(model, "best_estimator_"):
            model = model.best_estimator_
        else:
            _refuse(model)
    check_is_fitted(model)
    return Opened(model, tuple(steps), calibrated, n_before, frame)


def _refuse(model: Any) -> None:
    """Raise the error that there is no model within."""
    if hasattr(model, "estimator"):
        check_is_fitted(model)  # a search before its fit
    if isinstance(model, CollectiveClassifier):
        raise TypeError(
            f"{type(model).__name__} labels nodes one by one, and has no weights of labelings of "
            "its own: ask its classifier of nodes, model.estimator_, where there is one. "
            "show_tokens(None, tokens, model.predict(X)) shows its labels."
        )
    raise TypeError(
        f"{type(model).__name__} is no fitted model of crfkit, nor a pipeline or a search (fitted "
        "with refit=True) that ends in one."
    )


def name_of(model: Any) -> str:
    """Return the name of the class of the model within, for titles."""
    return type(opened(model).model).__name__
