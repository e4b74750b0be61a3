"""From tokens to packed features."""

from typing import TYPE_CHECKING

from crfkit._lazy import lazy_names

if TYPE_CHECKING:
    from crfkit.features.composition import SequenceUnion as SequenceUnion
    from crfkit.features.composition import TransitionFeatures as TransitionFeatures
    from crfkit.features.composition import TreeFeatures as TreeFeatures
    from crfkit.features.composition import make_sequence_union as make_sequence_union
    from crfkit.features.graphs import GraphVectorizer as GraphVectorizer
    from crfkit.features.graphs import SkipChainFeatures as SkipChainFeatures
    from crfkit.features.quadratic import QuadraticFeatures as QuadraticFeatures
    from crfkit.features.segments.vectorizer import SegmentFeatures as SegmentFeatures
    from crfkit.features.suffixes import SuffixClasses as SuffixClasses
    from crfkit.features.symbols import SymbolVectorizer as SymbolVectorizer
    from crfkit.features.templates.expressions import transition as transition
    from crfkit.features.templates.expressions import window as window
    from crfkit.features.templates.presets import preset as preset
    from crfkit.features.templates.vectorizer import TemplateFeatures as TemplateFeatures
    from crfkit.features.vectorizer import SequenceVectorizer as SequenceVectorizer
    from crfkit.features.windows import WindowFeatures as WindowFeatures

__all__, __getattr__, __dir__ = lazy_names(
    __name__,
    {
        "composition": "SequenceUnion TransitionFeatures TreeFeatures make_sequence_union",
        "graphs": "GraphVectorizer SkipChainFeatures",
        "quadratic": "QuadraticFeatures",
        "segments.vectorizer": "SegmentFeatures",
        "suffixes": "SuffixClasses",
        "symbols": "SymbolVectorizer",
        "templates.expressions": "transition window",
        "templates.presets": "preset",
        "templates.vectorizer": "TemplateFeatures",
        "vectorizer": "SequenceVectorizer",
        "windows": "WindowFeatures",
    },
)
