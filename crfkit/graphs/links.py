"""What methods that send messages read beside the tables, and the arrays that they write."""

from __future__ import annotations

import numpy as np

from crfkit._types import FloatArray, IntArray
from crfkit.compiler.jit import frozen
from crfkit.graphs.methods import Sums
from crfkit.graphs.tables import starts
from crfkit.kernels.graph.arrays import FactorTables
from crfkit.kernels.graph.links import Links, breadth_first
from crfkit.kernels.graph.messages import Messages, MessageSums, Schedule, propagate


def links_of(graph: FactorTables, weight: FloatArray | None = None) -> Links:
    """Return the places of variables in factors; weights of factors are 1 where none are given."""
    count, n_factors = len(graph.factor_ptr) - 1, len(graph.scope_ptr) - 1
    n_variables = len(graph.sizes)
    factor = frozen(np.repeat(np.arange(n_factors), np.diff(graph.scope_ptr)))
    places = frozen(np.argsort(graph.scope, kind="stable"))
    places_ptr = starts(np.bincount(graph.scope, minlength=n_variables))
    order, is_forest = np.empty(n_variables, np.int64), np.empty(count, np.bool_)
    breadth_first(
        graph, factor, places, places_ptr, order,
        np.zeros(n_variables, np.bool_), np.zeros(n_factors, np.bool_), is_forest,
    )  # fmt: skip
    sizes = graph.sizes[graph.scope]
    return Links(
        factor=factor,
        stride=frozen(_strides(graph, sizes)),
        places=places,
        places_ptr=places_ptr,
        message_ptr=starts(sizes),
        order=frozen(order),
        is_forest=frozen(is_forest),
        weight=frozen(np.ones(n_factors) if weight is None else weight),
    )


def _strides(graph: FactorTables, sizes: IntArray) -> IntArray:
    """Return how many entries of a table are between two states of the variable of each place."""
    stride = np.ones(len(sizes), np.int64)
    arity = np.diff(graph.scope_ptr)
    for back in range(2, int(arity.max(initial=0)) + 1):  # the last variable is fastest
        place = graph.scope_ptr[1:][arity >= back] - back
        stride[place] = stride[place + 1] * sizes[place + 1]
    return stride


def propagated(graph: FactorTables, links: Links, way: Schedule) -> tuple[Sums, Messages]:
    """Send messages until they settle; return what they say, and the messages."""
    count, n_places = len(graph.factor_ptr) - 1, len(graph.scope)
    n_states = int(graph.state_ptr[-1])
    work = Messages(
        values=np.zeros(links.message_ptr[-1]),
        fresh=np.zeros(links.message_ptr[-1]),
        finite=np.empty(n_states),
        forbidden=np.empty(n_states, np.int64),
        outer=np.empty(graph.sizes.max(initial=1)),
        table=np.empty(np.diff(graph.score_ptr).max(initial=1)),
        residual=np.empty(n_places),
        heap=np.empty(n_places, np.int64),
        position=np.empty(n_places, np.int64),
    )
    sums = MessageSums(
        np.empty(count), np.empty(n_states), np.empty(len(graph.scores)),
        np.empty(count, np.bool_), np.empty(count, np.int64),
    )  # fmt: skip
    propagate(graph, links, work, way, sums)
    return Sums(
        sums.log_partition, sums.marginals, sums.beliefs,
        links.is_forest.copy(), sums.converged, sums.n_iter,
    ), work  # fmt: skip
