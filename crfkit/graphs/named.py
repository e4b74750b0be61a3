"""Methods of inference by their names."""

from __future__ import annotations

from crfkit.graphs.auto import AutoSearch
from crfkit.graphs.belief_propagation import BeliefPropagation
from crfkit.graphs.expansion import ExpansionMoves
from crfkit.graphs.gibbs import GibbsSampling
from crfkit.graphs.integer_program import IntegerProgram
from crfkit.graphs.junction_tree import JunctionTree
from crfkit.graphs.mean_field import MeanField
from crfkit.graphs.methods import MaxMethod, SumMethod
from crfkit.graphs.minimum_cut import MinimumCut
from crfkit.graphs.mplp import MPLP
from crfkit.graphs.tree_reweighted import TreeReweighted

SUMS: dict[str, type[SumMethod]] = {
    "exact": JunctionTree,
    "bp": BeliefPropagation,
    "trw": TreeReweighted,
    "mean_field": MeanField,
    "gibbs": GibbsSampling,
}
MAXIMA: dict[str, type[MaxMethod]] = {
    "auto": AutoSearch,
    "exact": JunctionTree,
    "cut": MinimumCut,
    "expansion": ExpansionMoves,
    "mplp": MPLP,
    "milp": IntegerProgram,
}

__all__ = ["MAXIMA", "SUMS"]
