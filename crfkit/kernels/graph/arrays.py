"""Factor graphs in flat arrays."""

from __future__ import annotations

from typing import NamedTuple

from crfkit._types import FloatArray, IntArray


class FactorTables(NamedTuple):
    """S factor graphs side by side: V variables, F factors of them. Read-only.

    Variables and factors are numbered through all graphs; no factor has variables of two graphs,
    or one twice. One of no variable is a constant.
    """

    sizes: IntArray  # (V,) how many states each variable has, at least 1
    state_ptr: IntArray  # (V + 1,) where the states of each variable start, and the end
    scope: IntArray  # (A,) the variables of all factors in turn
    scope_ptr: IntArray  # (F + 1,) where those of each factor start, and the end
    scores: FloatArray  # (Z,) tables in nats, the last variable of a factor fastest; -inf forbids
    score_ptr: IntArray  # (F + 1,) where the table of each factor starts, and the end
    variable_ptr: IntArray  # (S + 1,) where the variables of each graph start, and the end
    factor_ptr: IntArray  # (S + 1,) where the factors of each graph start, and the end
