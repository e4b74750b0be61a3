"""Methods of inference by their names."""

from __future__ import annotations

from crfkit.graphs.expansion import ExpansionMoves
from crfkit.graphs.integer_program import IntegerProgram
from crfkit.graphs.methods import MaxMethod
from crfkit.graphs.minimum_cut import MinimumCut
from crfkit.graphs.mplp import MPLP

MAXIMA: dict[str, type[MaxMethod]] = {
    "cut": MinimumCut,
    "expansion": ExpansionMoves,
    "mplp": MPLP,
    "milp": IntegerProgram,
}
