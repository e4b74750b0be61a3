"""From tokens to packed features."""

from crfkit.features.segments.vectorizer import SegmentFeatures
from crfkit.features.templates.expressions import transition, window
from crfkit.features.templates.vectorizer import TemplateFeatures
from crfkit.features.union import SequenceUnion, make_sequence_union
from crfkit.features.vectorizer import SequenceVectorizer
from crfkit.features.windows import WindowFeatures
from crfkit.features.wrappers import TransitionFeatures, TreeFeatures

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
