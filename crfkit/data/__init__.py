"""Packed sequences of features, sequences of labels."""

from crfkit.data.frames import sequences_from_frame
from crfkit.data.labels import LabelSequences
from crfkit.data.packed import PackedSequences

__all__ = ["LabelSequences", "PackedSequences", "sequences_from_frame"]
