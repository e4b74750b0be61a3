"""Methods of inference by their names."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

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
# The same where weights are fitted. MPLP has fewer passes: far from the optimum no number of them
# proves much, and its bound holds after any.
MAXIMA_IN_FITS: dict[str, Callable[[], MaxMethod]] = {
    **MAXIMA,
    "auto": partial(AutoSearch, max_iter=40),
    "mplp": partial(MPLP, max_iter=40),
}

__all__ = ["MAXIMA", "MAXIMA_IN_FITS", "SUMS"]
