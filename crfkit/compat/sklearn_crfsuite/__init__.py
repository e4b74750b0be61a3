"""The names of sklearn-crfsuite: ``from crfkit.compat import sklearn_crfsuite``."""

from crfkit.compat.sklearn_crfsuite import metrics, scorers
from crfkit.compat.sklearn_crfsuite.estimator import CRF

__all__ = ["CRF", "metrics", "scorers"]
