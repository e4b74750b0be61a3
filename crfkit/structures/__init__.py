"""Structures answer questions about scores: sums, maxima, path scores, expectations."""

from crfkit.structures.base import NoPathError, Structure
from crfkit.structures.chain import Chain
from crfkit.structures.long_chain import LongChain, split_over
from crfkit.structures.offset import OffsetSemiMarkov, offset_scores, tempered, with_offsets
from crfkit.structures.semimarkov import NoSegmentationError, SemiMarkov
from crfkit.structures.sparse_chain import SparseChain

__all__ = [
    "Chain",
    "LongChain",
    "NoPathError",
    "NoSegmentationError",
    "SemiMarkov",
    "OffsetSemiMarkov",
    "SparseChain",
    "Structure",
    "offset_scores",
    "split_over",
    "tempered",
    "with_offsets",
]
