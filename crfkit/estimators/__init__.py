"""Estimators wire the parts and name them."""

from crfkit.estimators.crf import CRFClassifier
from crfkit.estimators.cv import CRFClassifierCV
from crfkit.estimators.max_margin import MaxMarginCRF
from crfkit.estimators.perceptron import StructuredPerceptron
from crfkit.estimators.segments import SegmentConstraints, Segments
from crfkit.estimators.semimarkov import SemiMarkovCRF
from crfkit.persistence import register
from crfkit.training.early_stopping import EarlyStopping

register(EarlyStopping)

__all__ = [
    "CRFClassifier",
    "CRFClassifierCV",
    "EarlyStopping",
    "MaxMarginCRF",
    "SegmentConstraints",
    "Segments",
    "SemiMarkovCRF",
    "StructuredPerceptron",
]
