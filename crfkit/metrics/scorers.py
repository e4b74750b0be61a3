"""Scorers for ``scoring=`` of scikit-learn's searches and cross-validation.

Undefined ratios (a label or entity type that is never predicted) count as zero without a warning,
so that a search over many folds stays quiet.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from copy import deepcopy
from difflib import get_close_matches
from typing import Any, TypeAlias

import numpy as np
from sklearn.metrics import make_scorer
from sklearn.pipeline import Pipeline

from crfkit.data.labels import by_sequence
from crfkit.labels.fields import holds_segments
from crfkit.labels.schemes import OUTSIDE_LABEL, RUNS, allowed_transitions, looks_like_tag
from crfkit.labels.sequences import as_lists, flatten
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

    Where y are segments, they are compared with those that the estimator predicts as such, also
    behind a pipeline. Labels and tags are compared with predicted ones, both read the same way: as
    tags where all of them are, else as runs. A bare letter such as ``B`` is only a tag where the
    estimator was fitted on tags and says so by its ``scheme_``. To have labels read in one way
    always, take ``make_scorer(segment_f1_score, scheme="runs")`` of scikit-learn.
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
            return self._score(truth, last.predict_segments(X))
        predicted = last.predict(X) if predicted is None else predicted
        if scheme != RUNS:
            labels = {*flatten([] if listed else truth, "y").labels}
            labels.update(flatten(predicted, "the prediction").labels)
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


def _averaged(metric: Callable[..., Any], average: str) -> Scorer:
    scorer: Scorer = make_scorer(metric, average=average, zero_division=0)
    return scorer


flat_accuracy: Scorer = make_scorer(flat_accuracy_score)
sequence_accuracy: Scorer = make_scorer(sequence_accuracy_score)
flat_precision_macro = _averaged(flat_precision_score, "macro")
flat_precision_micro = _averaged(flat_precision_score, "micro")
flat_precision_weighted = _averaged(flat_precision_score, "weighted")
flat_recall_macro = _averaged(flat_recall_score, "macro")
flat_recall_micro = _averaged(flat_recall_score, "micro")
flat_recall_weighted = _averaged(flat_recall_score, "weighted")
flat_f1_macro = _averaged(flat_f1_score, "macro")
flat_f1_micro = _averaged(flat_f1_score, "micro")
flat_f1_weighted = _averaged(flat_f1_score, "weighted")
entity_precision = _averaged(entity_precision_score, "micro")
entity_precision_macro = _averaged(entity_precision_score, "macro")
entity_precision_weighted = _averaged(entity_precision_score, "weighted")
entity_recall = _averaged(entity_recall_score, "micro")
entity_recall_macro = _averaged(entity_recall_score, "macro")
entity_recall_weighted = _averaged(entity_recall_score, "weighted")
entity_f1 = _averaged(entity_f1_score, "micro")
entity_f1_macro = _averaged(entity_f1_score, "macro")
entity_f1_weighted = _averaged(entity_f1_score, "weighted")
segment_precision: Scorer = SegmentScorer(segment_precision_score, "micro")
segment_precision_macro: Scorer = SegmentScorer(segment_precision_score, "macro")
segment_precision_weighted: Scorer = SegmentScorer(segment_precision_score, "weighted")
segment_recall: Scorer = SegmentScorer(segment_recall_score, "micro")
segment_recall_macro: Scorer = SegmentScorer(segment_recall_score, "macro")
segment_recall_weighted: Scorer = SegmentScorer(segment_recall_score, "weighted")
segment_f1: Scorer = SegmentScorer(segment_f1_score, "micro")
segment_f1_macro: Scorer = SegmentScorer(segment_f1_score, "macro")
segment_f1_weighted: Scorer = SegmentScorer(segment_f1_score, "weighted")

_SCORERS: dict[str, Scorer] = {
    name: value
    for name, value in globals().items()
    if name.startswith(("flat_", "entity_", "segment_", "sequence_"))
    and not name.endswith("_score")
}


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
