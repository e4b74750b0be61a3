"""Methods of inference by their names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

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
    "exact": JunctionTree,
    "cut": MinimumCut,
    "expansion": ExpansionMoves,
    "mplp": MPLP,
    "milp": IntegerProgram,
}

Method = TypeVar("Method")


def named(method: str | Method, known: Mapping[str, type[Method]]) -> Method:
    """Return the method of a name; an object is one. ValueError names those that there are."""
    if not isinstance(method, str):
        return method
    if method not in known:
        raise ValueError(f"no method is named {method!r}: choose {', '.join(map(repr, known))}.")
    return known[method]()


__all__ = ["MAXIMA", "SUMS", "named"]
