"""Estimators wire the parts and name them."""

from crfkit.estimators._early_stopping import EarlyStopping
from crfkit.estimators.crf import CRFClassifier
from crfkit.estimators.cv import CRFClassifierCV
from crfkit.estimators.max_margin import MaxMarginCRF
from crfkit.estimators.perceptron import StructuredPerceptron

__all__ = [
    "CRFClassifier",
    "CRFClassifierCV",
    "EarlyStopping",
    "MaxMarginCRF",
    "StructuredPerceptron",
]
