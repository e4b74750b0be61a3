"""The metrics of sklearn-crfsuite, from `crfkit.metrics`."""

from crfkit._lazy import public_names
from crfkit.metrics import flat_accuracy_score as flat_accuracy_score
from crfkit.metrics import flat_classification_report as flat_classification_report
from crfkit.metrics import flat_f1_score as flat_f1_score
from crfkit.metrics import flat_fbeta_score as flat_fbeta_score
from crfkit.metrics import flat_precision_score as flat_precision_score
from crfkit.metrics import flat_recall_score as flat_recall_score
from crfkit.metrics import sequence_accuracy_score as sequence_accuracy_score

__all__ = public_names(__name__)
