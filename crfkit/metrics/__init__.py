"""Metrics of tokens, whole sequences, entities and segments; tag schemes; scorers."""

from crfkit._types import Segment
from crfkit.labels.schemes import allowed_transitions
from crfkit.labels.spans import (
    IllegalTag,
    convert_tags,
    detect_scheme,
    illegal_tags,
    repair_tags,
    spans_from_tags,
    tags_from_spans,
    validate_tags,
)
from crfkit.metrics import scorers
from crfkit.metrics.entity import (
    conlleval_report,
    entity_classification_report,
    entity_f1_score,
    entity_precision_recall_fscore_support,
    entity_precision_score,
    entity_recall_score,
)
from crfkit.metrics.scorers import get_scorer, get_scorer_names
from crfkit.metrics.segments import (
    segment_classification_report,
    segment_f1_score,
    segment_precision_recall_fscore_support,
    segment_precision_score,
    segment_recall_score,
)
from crfkit.metrics.tokens import (
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
    "Segment",
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
    "segment_classification_report",
    "segment_f1_score",
    "segment_precision_recall_fscore_support",
    "segment_precision_score",
    "segment_recall_score",
    "sequence_accuracy_score",
    "spans_from_tags",
    "tags_from_spans",
    "validate_tags",
]
