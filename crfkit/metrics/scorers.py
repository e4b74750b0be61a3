"""Scorers for ``scoring=`` of scikit-learn, for which undefined ratios are 0 without a warning."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from copy import deepcopy
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from sklearn.metrics import make_scorer
from sklearn.pipeline import Pipeline

from crfkit.data.labels import by_sequence
from crfkit.labels.fields import holds_segments
from crfkit.labels.schemes import OUTSIDE_LABEL, RUNS, allowed_transitions, looks_like_tag
from crfkit.labels.sequences import as_lists, flatten, names_of
from crfkit.metrics._counts import AVERAGES
from crfkit.metrics.entity import entity_f1_score, entity_precision_score, entity_recall_score
from crfkit.metrics.segments import segment_f1_score, segment_precision_score, segment_recall_score
from crfkit.metrics.tokens import (
    flat_accuracy_score,
    flat_f1_score,
    flat_precision_score,
    flat_recall_score,
    sequence_accuracy_score,
)

Scorer: TypeAlias = Callable[..., float]


class SegmentScorer:
    """Score an estimator by whole segments, in whatever form it takes the true labels.

    Segments are compared with those that are predicted as such. Labels are read as tags where all
    of them are (bare letters such as ``B``, if the ``scheme_`` of the estimator says so), else as
    runs. To have them read in one way, take ``make_scorer(segment_f1_score, scheme="runs")``.
    """

    def __init__(self, metric: Callable[..., Any], average: str) -> None:
        self.metric, self.average = metric, average

    def __call__(self, estimator: Any, X: Any, y: Any) -> float:
        """Return the score of the predictions for X."""
        last, X = _last_step(estimator, X)
        predicted, scheme = None, getattr(last, "scheme_", None)
        if hasattr(y, "to_numpy"):  # maybe a column of a frame, which is cut as its tokens are
            predicted = last.predict(X)
            y = by_sequence(y, np.cumsum([0, *map(len, predicted)]))
        truth = as_lists(y, "y")
        listed = holds_segments(truth)
        if listed and scheme is not None:
            return self._score(truth, last.predict_spans(X))
        predicted = last.predict(X) if predicted is None else predicted
        if scheme != RUNS:
            known = flatten([] if listed else truth, "y").labels
            labels = names_of(known, flatten(predicted, "the prediction").labels)
            tags = are_typed_tags(labels) if scheme is None else are_tags(labels)
            scheme = "conll" if tags else RUNS
        return self._score(truth, predicted, scheme=scheme)

    def _score(self, y_true: Any, y_pred: Any, **kwargs: Any) -> float:
        return float(self.metric(y_true, y_pred, average=self.average, zero_division=0, **kwargs))

    def __repr__(self) -> str:
        return f"SegmentScorer({self.metric.__name__}, average={self.average!r})"


def _last_step(estimator: Any, X: Any) -> tuple[Any, Any]:
    """Return what predicts within searches and pipelines, and what it is given."""
    if hasattr(estimator, "best_estimator_"):
        return _last_step(estimator.best_estimator_, X)
    if not isinstance(estimator, Pipeline):
        return estimator, X
    before = estimator[:-1]
    return _last_step(estimator[-1], before.transform(X) if len(before) else X)


def are_tags(labels: Iterable[Any]) -> bool:
    """Whether all labels are tags such as ``B-PER`` and ``O``."""
    try:
        allowed_transitions(list(labels), "conll")
    except (TypeError, ValueError):
        return False
    return True


def are_typed_tags(labels: Iterable[Any]) -> bool:
    """Whether all labels are tags with a type, or ``O``: bare letters may be no tags."""
    return all(label == OUTSIDE_LABEL or looks_like_tag(label) for label in labels)


_METRICS: dict[str, tuple[Callable[..., Any], ...]] = {
    "precision": (flat_precision_score, entity_precision_score, segment_precision_score),
    "recall": (flat_recall_score, entity_recall_score, segment_recall_score),
    "f1": (flat_f1_score, entity_f1_score, segment_f1_score),
}
_SCORERS: dict[str, Scorer] = {
    "flat_accuracy": make_scorer(flat_accuracy_score),
    "sequence_accuracy": make_scorer(sequence_accuracy_score),
}
for _name, (_flat, _entity, _segment) in _METRICS.items():
    for _average in AVERAGES:
        _end = "" if _average == "micro" else f"_{_average}"  # the usual one of whole entities
        _settings: dict[str, Any] = {"average": _average, "zero_division": 0}
        _SCORERS[f"flat_{_name}_{_average}"] = make_scorer(_flat, **_settings)
        _SCORERS[f"entity_{_name}{_end}"] = make_scorer(_entity, **_settings)
        _SCORERS[f"segment_{_name}{_end}"] = SegmentScorer(_segment, _average)


globals().update(_SCORERS)
if TYPE_CHECKING:

    def __getattr__(name: str) -> Scorer: ...


def get_scorer(name: str) -> Scorer:
    """Return a scorer ``(estimator, X, y)`` by one of :func:`get_scorer_names`, else ValueError.

    It is a copy, so that ``set_score_request`` on it changes nobody else's. Those of segments are
    :class:`SegmentScorer`, which take y in any form that models of segments are fitted on, and no
    weights.

    Examples
    --------
    >>> from crfkit.metrics import get_scorer
    >>> get_scorer("entity_f1")
    make_scorer(entity_f1_score, response_method='predict', average=micro, zero_division=0)
    """
    if name not in _SCORERS:
        close = get_close_matches(str(name), _SCORERS, n=3)
        raise ValueError(f"unknown scorer {name!r}; try {', '.join(close or get_scorer_names())}")
    return deepcopy(_SCORERS[name])


def get_scorer_names() -> list[str]:
    """Return the names of all scorers, sorted."""
    return sorted(_SCORERS)
