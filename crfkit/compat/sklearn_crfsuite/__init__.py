"""The names of sklearn-crfsuite: ``from crfkit.compat import sklearn_crfsuite``."""

from crfkit.compat._eli5 import register_with_eli5
from crfkit.compat.sklearn_crfsuite import metrics, scorers
from crfkit.compat.sklearn_crfsuite.estimator import CRF

register_with_eli5(CRF)

__all__ = ["CRF", "metrics", "scorers"]
