"""From tokens to packed features."""

from crfkit.features.expressions import step, window
from crfkit.features.segments import SegmentFeatures
from crfkit.features.steps import StepFeatures
from crfkit.features.templates import TemplateFeatures
from crfkit.features.union import SequenceUnion, make_sequence_union
from crfkit.features.vectorizer import SequenceVectorizer
from crfkit.features.windows import WindowFeatures

__all__ = [
    "SegmentFeatures",
    "SequenceUnion",
    "SequenceVectorizer",
    "StepFeatures",
    "TemplateFeatures",
    "WindowFeatures",
    "make_sequence_union",
    "step",
    "window",
]
