"""Structures answer questions about potentials: sums, maxima, path scores, expectations."""

from typing import TYPE_CHECKING

from crfkit._lazy import lazy_names

if TYPE_CHECKING:
    from crfkit.structures.base import OF_TOPOLOGY as OF_TOPOLOGY
    from crfkit.structures.base import Capability as Capability
    from crfkit.structures.base import MissingCapabilityError as MissingCapabilityError
    from crfkit.structures.base import NoPathError as NoPathError
    from crfkit.structures.base import NoSegmentationError as NoSegmentationError
    from crfkit.structures.base import Structure as Structure
    from crfkit.structures.base import check_prefixes as check_prefixes
    from crfkit.structures.base import structure_for as structure_for
    from crfkit.structures.chain import Chain as Chain
    from crfkit.structures.k_best import RankedCodes as RankedCodes
    from crfkit.structures.posterior import Posterior as Posterior
    from crfkit.structures.potentials import ChainPotentials as ChainPotentials
    from crfkit.structures.potentials import SegmentOffset as SegmentOffset
    from crfkit.structures.potentials import SegmentPotentials as SegmentPotentials
    from crfkit.structures.potentials import Spans as Spans
    from crfkit.structures.second_order import SecondOrderChain as SecondOrderChain
    from crfkit.structures.second_order import SecondOrderPotentials as SecondOrderPotentials
    from crfkit.structures.semimarkov import SemiMarkov as SemiMarkov
    from crfkit.structures.sparse_chain import SparseChain as SparseChain
    from crfkit.structures.tree import Tree as Tree
    from crfkit.structures.tree import TreePotentials as TreePotentials

__all__, __getattr__, __dir__ = lazy_names(
    __name__,
    {
        "base": (
            "OF_TOPOLOGY Capability MissingCapabilityError NoPathError NoSegmentationError "
            "Structure check_prefixes structure_for"
        ),
        "chain": "Chain",
        "k_best": "RankedCodes",
        "posterior": "Posterior",
        "potentials": "ChainPotentials SegmentOffset SegmentPotentials Spans",
        "second_order": "SecondOrderChain SecondOrderPotentials",
        "semimarkov": "SemiMarkov",
        "sparse_chain": "SparseChain",
        "tree": "Tree TreePotentials",
    },
)
