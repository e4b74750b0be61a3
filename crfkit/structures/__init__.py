"""Structures answer questions about potentials: sums, maxima, path scores, expectations."""

from crfkit.structures.base import (
    OF_TOPOLOGY,
    Capability,
    MissingCapabilityError,
    NoPathError,
    Structure,
    check_prefixes,
    structure_for,
)
from crfkit.structures.chain import Chain
from crfkit.structures.potentials import ChainPotentials, SegmentOffset, SegmentPotentials, Spans
from crfkit.structures.semimarkov import NoSegmentationError, SemiMarkov
from crfkit.structures.sparse_chain import SparseChain
from crfkit.structures.tree import Tree, TreePotentials

__all__ = [
    "OF_TOPOLOGY",
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
    "Tree",
    "TreePotentials",
    "check_prefixes",
    "structure_for",
]
