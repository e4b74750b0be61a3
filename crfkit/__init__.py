"""Structured linear models for sequences, in scikit-learn."""

from crfkit._version import __version__
from crfkit.data import LabelSequences, PackedSequences
from crfkit.estimators import CRFClassifier
from crfkit.features import SequenceVectorizer

__all__ = [
    "CRFClassifier",
    "LabelSequences",
    "PackedSequences",
    "SequenceVectorizer",
    "__version__",
]
