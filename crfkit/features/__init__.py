"""From tokens to packed features."""

from crfkit.features.composition import (
    SequenceUnion,
    TransitionFeatures,
    TreeFeatures,
    make_sequence_union,
)
from crfkit.features.segments.vectorizer import SegmentFeatures
from crfkit.features.templates.expressions import transition, window
from crfkit.features.templates.vectorizer import TemplateFeatures
from crfkit.features.vectorizer import SequenceVectorizer
from crfkit.features.windows import WindowFeatures

__all__ = [
    "SegmentFeatures",
    "SequenceUnion",
    "SequenceVectorizer",
    "TransitionFeatures",
    "TemplateFeatures",
    "TreeFeatures",
    "WindowFeatures",
    "make_sequence_union",
    "transition",
    "window",
]
