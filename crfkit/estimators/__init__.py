"""Estimators wire the parts and name them."""

from crfkit.estimators.crf import CRFClassifier

__all__ = ["CRFClassifier"]
