"""Structures answer questions about potentials: sums, maxima, path scores, expectations."""

from crfkit.structures.base import Capability, MissingCapabilityError, NoPathError, Structure
from crfkit.structures.chain import Chain
from crfkit.structures.offset import SegmentOffset
from crfkit.structures.potentials import ChainPotentials, SegmentPotentials, Spans
from crfkit.structures.semimarkov import NoSegmentationError, SemiMarkov
from crfkit.structures.sparse_chain import SparseChain

__all__ = [
    "Capability",
    "Chain",
    "ChainPotentials",
    "MissingCapabilityError",
    "NoPathError",
    "NoSegmentationError",
    "SegmentOffset",
    "SegmentPotentials",
    "SemiMarkov",
    "Spans",
    "SparseChain",
    "Structure",
]
