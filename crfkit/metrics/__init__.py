"""Metrics of sequence labeling: tokens, whole sequences and entities; tag schemes; scorers."""

from . import scorers
from .entity import (
    conlleval_report,
    entity_classification_report,
    entity_f1_score,
    entity_precision_recall_fscore_support,
    entity_precision_score,
    entity_recall_score,
)
from .schemes import allowed_transitions
from .scorers import get_scorer, get_scorer_names
from .spans import (
    IllegalTag,
    Span,
    convert_tags,
    detect_scheme,
    illegal_tags,
    repair_tags,
    spans_from_tags,
    tags_from_spans,
    validate_tags,
)
from .tokens import (
    flat_accuracy_score,
    flat_classification_report,
    flat_f1_score,
    flat_fbeta_score,
    flat_precision_score,
    flat_recall_score,
    sequence_accuracy_score,
)

__all__ = [
    "IllegalTag",
    "Span",
    "allowed_transitions",
    "conlleval_report",
    "convert_tags",
    "detect_scheme",
    "entity_classification_report",
    "entity_f1_score",
    "entity_precision_recall_fscore_support",
    "entity_precision_score",
    "entity_recall_score",
    "flat_accuracy_score",
    "flat_classification_report",
    "flat_f1_score",
    "flat_fbeta_score",
    "flat_precision_score",
    "flat_recall_score",
    "get_scorer",
    "get_scorer_names",
    "illegal_tags",
    "repair_tags",
    "scorers",
    "sequence_accuracy_score",
    "spans_from_tags",
    "tags_from_spans",
    "validate_tags",
]
