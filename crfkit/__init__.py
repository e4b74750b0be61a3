"""Structured linear models for sequences, in scikit-learn."""

from crfkit._version import __version__
from crfkit.data import LabelSequences, PackedSequences
from crfkit.estimators import CRFClassifier
from crfkit.features import (
    SequenceVectorizer,
    StepFeatures,
    TemplateFeatures,
    WindowFeatures,
    make_sequence_union,
)
from crfkit.persistence import load, save

__all__ = [
    "CRFClassifier",
    "LabelSequences",
    "PackedSequences",
    "SequenceVectorizer",
    "StepFeatures",
    "TemplateFeatures",
    "WindowFeatures",
    "__version__",
    "load",
    "make_sequence_union",
    "save",
]
