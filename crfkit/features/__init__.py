"""From tokens to packed features."""

from crfkit.features.steps import StepFeatures
from crfkit.features.union import SequenceUnion, make_sequence_union
from crfkit.features.vectorizer import SequenceVectorizer

__all__ = ["SequenceUnion", "SequenceVectorizer", "StepFeatures", "make_sequence_union"]
