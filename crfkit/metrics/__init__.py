"""Metrics of tokens, sequences, entities, segments and confidence; tag schemes; scorers."""

from crfkit._lazy import public_names
from crfkit._types import RankedLabels as RankedLabels
from crfkit._types import Segment as Segment
from crfkit.labels.schemes import allowed_transitions as allowed_transitions
from crfkit.labels.spans import IllegalTag as IllegalTag
from crfkit.labels.spans import convert_tags as convert_tags
from crfkit.labels.spans import detect_scheme as detect_scheme
from crfkit.labels.spans import illegal_tags as illegal_tags
from crfkit.labels.spans import repair_tags as repair_tags
from crfkit.labels.spans import spans_from_tags as spans_from_tags
from crfkit.labels.spans import tags_from_spans as tags_from_spans
from crfkit.labels.spans import validate_tags as validate_tags
from crfkit.metrics import scorers as scorers
from crfkit.metrics.calibration import ReliabilityCurve as ReliabilityCurve
from crfkit.metrics.calibration import RiskCoverageCurve as RiskCoverageCurve
from crfkit.metrics.calibration import brier_score as brier_score
from crfkit.metrics.calibration import confidence_average_precision as confidence_average_precision
from crfkit.metrics.calibration import expected_calibration_error as expected_calibration_error
from crfkit.metrics.calibration import log_loss as log_loss
from crfkit.metrics.calibration import reliability_curve as reliability_curve
from crfkit.metrics.calibration import risk_coverage_area as risk_coverage_area
from crfkit.metrics.calibration import risk_coverage_curve as risk_coverage_curve
from crfkit.metrics.calibration import sequence_log_loss as sequence_log_loss
from crfkit.metrics.calibration import token_brier_score as token_brier_score
from crfkit.metrics.calibration import token_log_loss as token_log_loss
from crfkit.metrics.confidence import JudgedConfidence as JudgedConfidence
from crfkit.metrics.confidence import judged_confidence as judged_confidence
from crfkit.metrics.entity import conlleval_report as conlleval_report
from crfkit.metrics.entity import entity_classification_report as entity_classification_report
from crfkit.metrics.entity import entity_f1_score as entity_f1_score
from crfkit.metrics.entity import (
    entity_precision_recall_fscore_support as entity_precision_recall_fscore_support,
)
from crfkit.metrics.entity import entity_precision_score as entity_precision_score
from crfkit.metrics.entity import entity_recall_score as entity_recall_score
from crfkit.metrics.scorers import get_scorer as get_scorer
from crfkit.metrics.scorers import get_scorer_names as get_scorer_names
from crfkit.metrics.segments import segment_classification_report as segment_classification_report
from crfkit.metrics.segments import segment_f1_score as segment_f1_score
from crfkit.metrics.segments import (
    segment_precision_recall_fscore_support as segment_precision_recall_fscore_support,
)
from crfkit.metrics.segments import segment_precision_score as segment_precision_score
from crfkit.metrics.segments import segment_recall_score as segment_recall_score
from crfkit.metrics.tokens import flat_accuracy_score as flat_accuracy_score
from crfkit.metrics.tokens import flat_classification_report as flat_classification_report
from crfkit.metrics.tokens import flat_f1_score as flat_f1_score
from crfkit.metrics.tokens import flat_fbeta_score as flat_fbeta_score
from crfkit.metrics.tokens import flat_precision_score as flat_precision_score
from crfkit.metrics.tokens import flat_recall_score as flat_recall_score
from crfkit.metrics.tokens import sequence_accuracy_score as sequence_accuracy_score
from crfkit.metrics.unknown import TokenErrors as TokenErrors
from crfkit.metrics.unknown import token_errors as token_errors

__all__ = [*public_names(__name__), "scorers"]
