"""What all classifiers of sequences are to scikit-learn, those too that wrap another one."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, Concatenate, Generic, ParamSpec, TypeVar, overload

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import Tags

from crfkit._tables import refuse_tables
from crfkit.compiler.jit import protect
from crfkit.data.label_checks import check_labels
from crfkit.data.labels import LabelStream, by_sequence, check_lengths, check_sample_weight
from crfkit.training.data import fitted_attributes
from crfkit.training.mistakes import swapped_are_told

Arguments = ParamSpec("Arguments")
Answer = TypeVar("Answer")


class OfProbabilities(Generic[Arguments, Answer]):
    """A method that only classes with `has_probabilities` have."""

    def __init__(self, method: Callable[Concatenate[Any, Arguments], Answer]) -> None:
        self.method = method

    @overload
    def __get__(self, item: None, owner: Any) -> Callable[Concatenate[Any, Arguments], Answer]: ...
    @overload
    def __get__(self, item: object, owner: Any) -> Callable[Arguments, Answer]: ...
    def __get__(self, item: Any, owner: Any) -> Any:
        """Return the function, or the method of an object; AttributeError if there is none."""
        if not owner.has_probabilities:
            raise AttributeError(f"{owner.__name__} has no probabilities.")
        if item is not None:
            refuse_tables()
        return self.method.__get__(item, owner)


def asked_for_tags(tags: Tags) -> Tags:
    """Return the tags of a classifier of sequences, unless a tool for tables asks for them."""
    refuse_tables()
    return sequence_tags(tags)


def sequence_tags(tags: Tags) -> Tags:
    """Return the tags of an estimator as those of a classifier of sequences."""
    # Not "classifier": scikit-learn would then stratify by y, which is a list of sequences.
    tags.estimator_type = "sequence_classifier"
    tags.target_tags.required = True
    tags.input_tags.two_d_array = False
    tags.input_tags.three_d_array = True
    tags.input_tags.sparse = True
    tags.input_tags.dict = True
    tags.input_tags.string = True
    return tags


def restore(self: Any, state: dict[str, Any]) -> None:
    """Take a state; parameters that an older version did not have get their defaults."""
    known = inspect.signature(type(self).__init__).parameters.values()
    defaults = {p.name: p.default for p in known if p.default is not p.empty}
    BaseEstimator.__setstate__(self, defaults | state)
    protect(fitted_attributes(self))


def score(self: Any, X: Any, y: Any, sample_weight: Any = None) -> float:
    """Return the token accuracy: the share of tokens whose label is right.

    Parameters
    ----------
    X : iterable of sequences
        As for `predict`.
    y : iterable of sequences of labels
        The true labels. A label that the model does not know counts as an error; tokens that
        are `UNLABELED` do not count; a set of labels is right if it has the predicted one.
    sample_weight : array of shape (S,) or sequence of arrays of shape (T,), optional
        Weights of sequences (each of its tokens counts with it) or of tokens.

    Returns
    -------
    float
        Between 0 and 1; NaN if there is no token with a label.
    """
    with swapped_are_told(X, y):
        predicted = LabelStream(self.predict(X))
    coding = self._fitted_labels().coding(self)  # true labels are read as predicted ones: tags
    labels = by_sequence(y, predicted.offsets)
    truth = LabelStream(coding.as_predicted(labels, predicted.offsets), partial=True)
    check_lengths(predicted.offsets, truth.offsets, "y")
    check_labels(truth, self.classes_)
    weight = check_sample_weight(sample_weight, truth.offsets)
    classes = list(truth.index | predicted.index)
    found, allowed = predicted.codes_for(classes), truth.allowed_for(classes)
    right = found == truth.codes_for(classes)
    if allowed is not None:
        right = allowed[np.arange(len(found)), found]
        weight = np.where(truth.unlabeled, 0.0, weight)
    if not weight.any():
        return float("nan")
    return float(weight[right].sum() / weight.sum())
