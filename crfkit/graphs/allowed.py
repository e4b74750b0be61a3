"""Values of variables that are allowed: where sampling and mean field start."""

from __future__ import annotations

import numpy as np

from crfkit._types import BoolArray, FloatArray, IntArray
from crfkit.compiler.jit import frozen
from crfkit.graphs.methods import GraphError
from crfkit.graphs.tables import starts
from crfkit.kernels.graph.allowed import GIVEN_UP, NONE_ALLOWED, Search, find_allowed
from crfkit.kernels.graph.arrays import FactorTables
from crfkit.kernels.graph.links import Links

MOST_FAILURES = 10_000


def graphs_that_forbid(graph: FactorTables) -> BoolArray:
    """Return which graphs have a score of -inf, (S,)."""
    return _forbids(graph, graph.score_ptr[graph.factor_ptr])


def _forbids(graph: FactorTables, ptr: IntArray) -> BoolArray:
    """Return which runs of scores, from one of the places `ptr` to the next, have -inf."""
    found: BoolArray = np.diff(starts(np.isneginf(graph.scores))[ptr]) > 0
    return found


def allowed_values(
    graph: FactorTables, links: Links, prefer: FloatArray
) -> tuple[IntArray, BoolArray]:
    """Return values that no factor forbids, (V,), and which graphs have some, (S,).

    States with a larger number in `prefer` are tried first. ValueError if the search gives up.
    """
    n_variables, n_states = len(graph.sizes), int(graph.state_ptr[-1])
    n_factors, count = len(graph.scope_ptr) - 1, len(graph.factor_ptr) - 1
    hard, in_scopes = _forbids(graph, graph.score_ptr), starts(graph.sizes[graph.scope])
    widest = np.diff(in_scopes[graph.scope_ptr]).max(initial=1)
    work = Search(
        alive=np.empty(n_states, np.bool_),
        killed=np.empty(n_states, np.int64),
        level=np.empty(n_variables, np.int64),
        tried=np.empty(n_variables, np.int64),
        queue=np.empty(n_factors, np.int64),
        waits=np.empty(n_factors, np.bool_),
        supported=np.empty(widest, np.bool_),
        marks=np.empty(3, np.int64),
    )
    values, status = np.empty(n_variables, np.int64), np.empty(count, np.int64)
    find_allowed(graph, links, frozen(hard), frozen(prefer), MOST_FAILURES, work, values, status)
    if (status == GIVEN_UP).any():
        raise GraphError(
            int(np.argmax(status == GIVEN_UP)),
            f"no allowed values of all variables were found in {MOST_FAILURES} attempts; take a "
            "method that needs none to start from, exact sums or belief propagation.",
        )
    return values, status != NONE_ALLOWED
