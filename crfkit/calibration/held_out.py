"""Models that are to be calibrated, and what these have not learned from."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from sklearn import get_config
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import check_cv
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from crfkit._parallel import ThreadMap
from crfkit._types import IntArray
from crfkit.calibration.base import HeldOut
from crfkit.data import PackedSequences, SoftLabels
from crfkit.data.labels import by_sequence, iterate_sequences
from crfkit.estimators import CRFClassifier, HMMClassifier, SemiMarkovCRF
from crfkit.estimators.linear import LinearClassifier
from crfkit.metrics.confidence import last_step
from crfkit.training.data import fitted_attributes


def listed(sequences: Any) -> Any:
    """Return sequences that can be read more than once."""
    if hasattr(sequences, "__len__") and not isinstance(sequences, (list, tuple)):
        return sequences
    if not isinstance(sequences, Iterable):
        return sequences  # of which whoever reads it tells what is wrong
    return [list(each) if isinstance(each, Iterator) else each for each in sequences]


def fitted_on(estimator: Any, X: Any, y: Any, sample_weight: Any = None) -> Any:
    """Return a fitted clone of an estimator; of a search the best one that it finds."""
    given = {}
    if sample_weight is not None:
        given[_name_of_weights(estimator)] = sample_weight
    fitted = clone(estimator).fit(X, y, **given)
    return as_probabilistic(fitted)


def prefitted(estimator: Any) -> Any:
    """Return an estimator that is fitted already."""
    while isinstance(estimator, FrozenEstimator):
        estimator = estimator.estimator
    check_is_fitted(estimator)
    return as_probabilistic(estimator)


def held_out(
    estimator: Any, final: Any, data: tuple[Any, Any, Any], cv: Any, groups: Any, threads: ThreadMap
) -> list[HeldOut]:
    """Return the test part of each fold, and what is learned from the other one.

    `data` are X, y and weights; `final` is the estimator fitted to all.
    """
    X, y, sample_weight = data
    if isinstance(final, LinearClassifier) and isinstance(estimator, LinearClassifier):
        # What reads X is fitted to all of it, and X is read once.
        X = final._pack(X)
        y = by_sequence(y, X.offsets)
        if sample_weight is not None:
            sample_weight = by_sequence(sample_weight, X.offsets)
        estimator = clone(estimator).set_params(features=None)
    X, y = _indexable(X, "X"), _indexable(y, "y")
    weight = None if sample_weight is None else list(sample_weight)
    folds = list(check_cv(cv).split(np.arange(len(X)), y, groups))
    if not folds:
        raise ValueError("cv gives no folds: is it an iterator that was used up?")

    def learn(fold: tuple[IntArray, IntArray]) -> HeldOut:
        train, test = ([_take(part, own) for part in (X, y, weight)] for own in fold)
        return asked(fitted_on(estimator, *train), *test)

    return threads(learn, folds)


def asked(estimator: Any, X: Any, y: Any, sample_weight: Any) -> HeldOut:
    """Return what a fitted estimator can be asked of: its last step, with packed sequences."""
    model, X = last_step(estimator, X)
    data = model._pack(X)
    if sample_weight is not None:
        sample_weight = by_sequence(sample_weight, data.offsets)
    return HeldOut(model, data, by_sequence(y, data.offsets), sample_weight)


def model_of(estimator: Any) -> Any:
    """Return the model that a fitted estimator ends in."""
    return model_of(estimator[-1]) if isinstance(estimator, Pipeline) else estimator


def as_probabilistic(estimator: Any) -> Any:
    """Return a fitted estimator that has probabilities; ValueError or TypeError if none can be."""
    if hasattr(estimator, "best_estimator_"):
        return as_probabilistic(estimator.best_estimator_)
    if isinstance(estimator, Pipeline):
        return with_last_step(estimator, as_probabilistic(estimator[-1]))
    if isinstance(estimator, HMMClassifier):
        return estimator.to_crf()  # whose scores are linear in weights, and the same
    if not isinstance(estimator, LinearClassifier):
        raise TypeError(
            f"{type(estimator).__name__} cannot be calibrated: give CRFClassifier, SemiMarkovCRF "
            "or another model of crfkit.estimators, or a pipeline or a search that ends in one."
        )
    if estimator.has_probabilities:
        return estimator
    name, fitted = type(estimator).__name__, fitted_attributes(estimator)
    if "dual_coef_" in fitted or "vote_changes_" in fitted:
        raise ValueError(
            f"this {name} has no weights that scores are linear in, as it has a kernel, or "
            "averaging='vote': it cannot be calibrated. Use kernel='linear', averaging='average'."
        )
    kind = SemiMarkovCRF if estimator._fitted_labels().of_segments else CRFClassifier
    shared = {n: getattr(estimator, n) for n in ("features", "decoding", "constraints", "n_jobs")}
    return kind(**shared)._with(fitted)


def with_last_step(estimator: Any, model: Any) -> Any:
    """Return a copy of a fitted estimator with another model as its last step."""
    if not isinstance(estimator, Pipeline):
        return model
    changed = copy.copy(estimator)
    name, last = estimator.steps[-1]
    changed.steps = [*estimator.steps[:-1], (name, with_last_step(last, model))]
    return changed


def _name_of_weights(estimator: Any) -> str:
    """Return the name by which `fit` takes weights."""
    if get_config()["enable_metadata_routing"]:
        return "sample_weight"
    if isinstance(estimator, Pipeline):
        name, last = estimator.steps[-1]
        return f"{name}__{_name_of_weights(last)}"
    inner = getattr(estimator, "estimator", None)  # of a search
    return "sample_weight" if inner is None else _name_of_weights(inner)


def _indexable(sequences: Any, name: str) -> Any:
    """Return sequences that can be chosen from by arrays of places, or a list."""
    if isinstance(sequences, (np.ndarray, PackedSequences, SoftLabels)):
        return sequences
    if hasattr(sequences, "to_numpy") and not hasattr(sequences, "columns"):
        return sequences.to_numpy()
    return list(iterate_sequences(sequences, name))


def _take(items: Any, places: IntArray) -> Any:
    """Return chosen sequences, or None of None."""
    if isinstance(items, list):
        return [items[place] for place in places.tolist()]
    return None if items is None else items[places]
