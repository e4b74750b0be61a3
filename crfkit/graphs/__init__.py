"""Random fields, methods of inference on their factor graphs, and edges that are asked for often.

For people: `RandomField`, `Factor`, `Graph`; methods, whose names `RandomField` and
:class:`crfkit.GraphCRF` take; builders of edges (`grid`, `complete`, `chow_liu`) and graphs of
labels (`multilabel_graphs`). Graphs of features are in :mod:`crfkit.data`, what makes them from
other forms in :mod:`crfkit.features`.
"""

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
    from crfkit.graphs.auto import AutoSearch as AutoSearch
    from crfkit.graphs.belief_propagation import BeliefPropagation as BeliefPropagation
    from crfkit.graphs.enumeration import Enumeration as Enumeration
    from crfkit.graphs.expansion import ExpansionMoves as ExpansionMoves
    from crfkit.graphs.gibbs import GibbsSampling as GibbsSampling
    from crfkit.graphs.integer_program import IntegerProgram as IntegerProgram
    from crfkit.graphs.junction_tree import JunctionTree as JunctionTree
    from crfkit.graphs.mean_field import MeanField as MeanField
    from crfkit.graphs.methods import BudgetError as BudgetError
    from crfkit.graphs.methods import MaxMethod as MaxMethod
    from crfkit.graphs.methods import SumMethod as SumMethod
    from crfkit.graphs.minimum_cut import MinimumCut as MinimumCut
    from crfkit.graphs.mplp import MPLP as MPLP
    from crfkit.graphs.results import FieldMaximum as FieldMaximum
    from crfkit.graphs.results import FieldSums as FieldSums
    from crfkit.graphs.tree_reweighted import TreeReweighted as TreeReweighted

__all__, __getattr__, __dir__ = lazy_names(
    __name__,
    {
        "auto": "AutoSearch",
        "belief_propagation": "BeliefPropagation",
        "enumeration": "Enumeration",
        "expansion": "ExpansionMoves",
        "gibbs": "GibbsSampling",
        "integer_program": "IntegerProgram",
        "junction_tree": "JunctionTree",
        "mean_field": "MeanField",
        "methods": "BudgetError MaxMethod SumMethod",
        "minimum_cut": "MinimumCut",
        "mplp": "MPLP",
        "results": "FieldMaximum FieldSums",
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
