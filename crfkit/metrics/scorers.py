"""Scorers for ``scoring=`` of scikit-learn's searches and cross-validation.

Undefined ratios (a label or entity type that is never predicted) count as zero without a warning,
so that a search over many folds stays quiet.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from difflib import get_close_matches
from typing import Any, TypeAlias

from sklearn.metrics import make_scorer

from .entity import entity_f1_score, entity_precision_score, entity_recall_score
from .tokens import (
    flat_accuracy_score,
    flat_f1_score,
    flat_precision_score,
    flat_recall_score,
    sequence_accuracy_score,
)

Scorer: TypeAlias = Callable[..., float]


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

_SCORERS: dict[str, Scorer] = {
    name: value
    for name, value in globals().items()
    if name.startswith(("flat_", "entity_", "sequence_")) and not name.endswith("_score")
}


def get_scorer(name: str) -> Scorer:
    """Return a scorer by name.

    Parameters
    ----------
    name : str
        One of :func:`get_scorer_names`.

    Returns
    -------
    callable
        A scorer with signature ``(estimator, X, y)``. It is a copy, so that ``set_score_request``
        on it changes nobody else's.

    Raises
    ------
    ValueError
        If there is no scorer of that name.

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
    """Return the names of all scorers, sorted.

    Returns
    -------
    list of str
    """
    return sorted(_SCORERS)
