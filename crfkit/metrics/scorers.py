"""Scorers for ``scoring=`` of scikit-learn, for which undefined ratios are 0 without a warning."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from sklearn.metrics import make_scorer

from crfkit.data.labels import by_sequence
from crfkit.labels.fields import holds_segments
from crfkit.labels.sequences import as_lists, token_weights
from crfkit.metrics._counts import AVERAGES
from crfkit.metrics.calibration import (
    expected_calibration_error,
    sequence_log_loss,
    token_brier_score,
    token_log_loss,
)
from crfkit.metrics.confidence import judged_confidence, labels_of_tokens, last_step
from crfkit.metrics.entity import entity_f1_score, entity_precision_score, entity_recall_score
from crfkit.metrics.segments import (
    scheme_beside,
    segment_f1_score,
    segment_precision_score,
    segment_recall_score,
)
from crfkit.metrics.tokens import (
    flat_accuracy_score,
    flat_f1_score,
    flat_precision_score,
    flat_recall_score,
    sequence_accuracy_score,
)

Scorer: TypeAlias = Callable[..., float]


class ProbabilityScorer:
    """Score an estimator by minus a loss of its probabilities: the larger, the better.

    It is called with `sample_weight`, weights of sequences or tokens, if any are to count.
    """

    def __init__(self, loss: Callable[..., float], **options: Any) -> None:
        self.loss, self.options = loss, options

    def __call__(self, estimator: Any, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the score of the probabilities for X."""
        return -self.loss(*last_step(estimator, X), y, sample_weight, **self.options)

    def __repr__(self) -> str:
        options = "".join(f", {name}={value!r}" for name, value in self.options.items())
        return f"ProbabilityScorer({self.loss.__name__}{options})"


def _token_loss(
    model: Any, X: Any, y: Any, sample_weight: Any, metric: Callable[..., float]
) -> float:
    """Return a loss of the probabilities of tokens."""
    proba = model.predict_proba(X)
    offsets = np.cumsum([0, *map(len, proba)], dtype=np.int64)
    truth = labels_of_tokens(model, by_sequence(y, offsets), offsets)
    return metric(truth, proba, list(model.classes_), sample_weight=sample_weight)


def _sequence_loss(model: Any, X: Any, y: Any, sample_weight: Any) -> float:
    """Return the log loss of sequences, of which none is infinite."""
    log_proba, lengths = model.sequence_log_proba(X, y), np.array([*map(len, model.predict(X))])
    if sample_weight is not None:
        rows = token_weights(sample_weight, lengths)
        sums = np.append(0.0, np.cumsum(rows))[np.append(0, np.cumsum(lengths))]
        sample_weight = np.diff(sums) / np.maximum(lengths, 1)
    return sequence_log_loss(log_proba, lengths=lengths, sample_weight=sample_weight)


def _calibration_error(model: Any, X: Any, y: Any, sample_weight: Any, of: str) -> float:
    """Return the expected calibration error of the confidence of predictions."""
    found = judged_confidence(model, X, y, of=of, sample_weight=sample_weight)
    return expected_calibration_error(*found[:2], sample_weight=found.sample_weight)


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
        last, X = last_step(estimator, X)
        predicted, scheme = None, getattr(last, "scheme_", None)
        if hasattr(y, "to_numpy"):  # maybe a column of a frame, which is cut as its tokens are
            predicted = last.predict(X)
            y = by_sequence(y, np.cumsum([0, *map(len, predicted)]))
        truth = as_lists(y, "y")
        listed = holds_segments(truth)
        if listed and scheme is not None:
            return self._score(truth, last.predict_spans(X))
        predicted = last.predict(X) if predicted is None else predicted
        scheme = scheme_beside(scheme, [] if listed else truth, predicted)
        return self._score(truth, predicted, scheme=scheme)

    def _score(self, y_true: Any, y_pred: Any, **kwargs: Any) -> float:
        return float(self.metric(y_true, y_pred, average=self.average, zero_division=0, **kwargs))

    def __repr__(self) -> str:
        return f"SegmentScorer({self.metric.__name__}, average={self.average!r})"


_METRICS: dict[str, tuple[Callable[..., Any], ...]] = {
    "precision": (flat_precision_score, entity_precision_score, segment_precision_score),
    "recall": (flat_recall_score, entity_recall_score, segment_recall_score),
    "f1": (flat_f1_score, entity_f1_score, segment_f1_score),
}
_SCORERS: dict[str, Scorer] = {
    "flat_accuracy": make_scorer(flat_accuracy_score),
    "sequence_accuracy": make_scorer(sequence_accuracy_score),
    "neg_token_log_loss": ProbabilityScorer(_token_loss, metric=token_log_loss),
    "neg_token_brier_score": ProbabilityScorer(_token_loss, metric=token_brier_score),
    "neg_sequence_log_loss": ProbabilityScorer(_sequence_loss),
    "neg_token_calibration_error": ProbabilityScorer(_calibration_error, of="tokens"),
    "neg_span_calibration_error": ProbabilityScorer(_calibration_error, of="spans"),
    "neg_sequence_calibration_error": ProbabilityScorer(_calibration_error, of="sequences"),
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
    weights; those of probabilities, "neg_...", are :class:`ProbabilityScorer`.

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
