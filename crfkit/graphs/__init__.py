"""Random fields: their graphs, exact and approximate sums, and maxima."""

from typing import TYPE_CHECKING

from crfkit._lazy import lazy_names
from crfkit.graphs.build import (
    chow_liu,
    complete,
    grid,
    multilabel_graphs,
    multilabel_indicators,
    multilabel_labels,
)
from crfkit.graphs.canonical import canonical_factors
from crfkit.graphs.factors import Factor
from crfkit.graphs.fields import RandomField
from crfkit.graphs.graph import Graph, Independence

if TYPE_CHECKING:
    from crfkit.graphs.belief_propagation import BeliefPropagation as BeliefPropagation
    from crfkit.graphs.enumeration import Enumeration as Enumeration
    from crfkit.graphs.expansion import ExpansionMoves as ExpansionMoves
    from crfkit.graphs.gibbs import GibbsSampling as GibbsSampling
    from crfkit.graphs.integer_program import IntegerProgram as IntegerProgram
    from crfkit.graphs.junction_tree import JunctionTree as JunctionTree
    from crfkit.graphs.mean_field import MeanField as MeanField
    from crfkit.graphs.methods import BudgetError as BudgetError
    from crfkit.graphs.minimum_cut import MinimumCut as MinimumCut
    from crfkit.graphs.mplp import MPLP as MPLP
    from crfkit.graphs.tree_reweighted import TreeReweighted as TreeReweighted

__all__, __getattr__, __dir__ = lazy_names(
    __name__,
    {
        "belief_propagation": "BeliefPropagation",
        "enumeration": "Enumeration",
        "expansion": "ExpansionMoves",
        "gibbs": "GibbsSampling",
        "integer_program": "IntegerProgram",
        "junction_tree": "JunctionTree",
        "mean_field": "MeanField",
        "methods": "BudgetError",
        "minimum_cut": "MinimumCut",
        "mplp": "MPLP",
        "tree_reweighted": "TreeReweighted",
    },
)
__all__ += [
    "Factor",
    "Graph",
    "Independence",
    "RandomField",
    "canonical_factors",
    "chow_liu",
    "complete",
    "grid",
    "multilabel_graphs",
    "multilabel_indicators",
    "multilabel_labels",
]
