"""Structures answer questions about scores: sums, maxima, path scores, expectations."""

from crfkit.structures.base import NoPathError, Structure
from crfkit.structures.chain import Chain
from crfkit.structures.long_chain import LongChain, split_over
from crfkit.structures.semimarkov import NoSegmentationError, SemiMarkov
from crfkit.structures.offset import ShiftedSemiMarkov, added_scores, tempered, with_added
from crfkit.structures.sparse_chain import SparseChain

__all__ = [
    "Chain",
    "LongChain",
    "NoPathError",
    "NoSegmentationError",
    "SemiMarkov",
    "ShiftedSemiMarkov",
    "SparseChain",
    "Structure",
    "added_scores",
    "split_over",
    "tempered",
    "with_added",
]
