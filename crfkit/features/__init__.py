"""From tokens to packed features."""

from crfkit.features.vectorizer import SequenceVectorizer

__all__ = ["SequenceVectorizer"]
