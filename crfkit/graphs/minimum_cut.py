"""The maximum of associative factors of two states, by a minimum cut."""

from __future__ import annotations

import numpy as np

from crfkit._types import BoolArray, IntArray
from crfkit.compiler.jit import frozen
from crfkit.graphs.methods import GraphError, Maximum, MaxMethod
from crfkit.graphs.tables import scores_of
from crfkit.kernels.graph.arrays import FactorTables
from crfkit.kernels.graph.cut import ALLOWED, Choices, cut_graphs
from crfkit.kernels.graph.max_flow import Network, Trees, link_nodes


class MinimumCut(MaxMethod):
    """The values of the largest score, of variables of two states whose factors are associative.

    A factor of two variables is associative (supermodular) where ``score(0, 0) + score(1, 1)`` is
    at least ``score(0, 1) + score(1, 0)``; factors of one variable may be any. The largest score is
    then that of a minimum cut [1]_ [2]_, found by augmenting paths [3]_ in floating-point numbers,
    and the flow proves it: `bound` is computed from it alone.

    Scores of ``-inf`` fix values and forbid pairs of them.

    References
    ----------
    .. [1] Greig, Porteous and Seheult (1989). Exact maximum a posteriori estimation for binary
       images. Journal of the Royal Statistical Society B 51.
    .. [2] Kolmogorov and Zabih (2004). What energy functions can be minimized via graph cuts?
       IEEE Transactions on Pattern Analysis and Machine Intelligence 26.
    .. [3] Boykov and Kolmogorov (2004). An experimental comparison of min-cut/max-flow algorithms
       for energy minimization in vision. The same journal 26.

    Examples
    --------
    >>> from crfkit.graphs.tables import factor_tables
    >>> agree = [[1.0, 0.0], [0.0, 1.0]]
    >>> graph = factor_tables([2, 2, 2], [[0], [0, 1], [1, 2]], [[0.0, 3.0], agree, agree])
    >>> found = MinimumCut().maximum(graph)
    >>> found.values, found.score, found.exact
    (array([1, 1, 1]), array([5.]), array([ True]))
    """

    def maximum(self, graph: FactorTables) -> Maximum:
        """Return the values of the largest score.

        Raises
        ------
        ValueError
            If a variable has more than two states, a factor more than two variables, or if one is
            not associative.
        """
        more = np.flatnonzero(graph.sizes > 2)
        if len(more):
            s, v = place_of(graph.variable_ptr, int(more[0]))
            raise GraphError(
                s,
                f"variable {v} has {graph.sizes[more[0]]} states; a minimum cut takes two. Take "
                '"expansion" or "mplp".',
            )
        require_pairs(graph, "a minimum cut")
        count = len(graph.factor_ptr) - 1
        values, bound = np.zeros(len(graph.sizes), np.int64), np.empty(count)
        net, trees, choices = cut_arrays(graph)
        cut_graphs(graph, values, bound, net, trees, choices)
        odd = int(choices.odd_factor[0])
        if odd != ALLOWED:
            raise factor_error(
                graph, odd,
                "is not associative: score(0, 0) + score(1, 1) is less than score(0, 1) + "
                'score(1, 0). Take "mplp", "exact" or "milp".',
            )  # fmt: skip
        score = np.where(bound > -np.inf, scores_of(graph, values), -np.inf)
        return Maximum(values, score, np.maximum(bound, score), np.zeros(count, np.int64))


def place_of(ptr: IntArray, index: int) -> tuple[int, int]:
    """Return the graph of a variable or factor, and its number there."""
    s = int(np.searchsorted(ptr, index, side="right")) - 1
    return s, index - int(ptr[s])


def factor_error(graph: FactorTables, factor: int, why: str) -> GraphError:
    """Return the error that a factor cannot be taken, which names it and its variables."""
    s, f = place_of(graph.factor_ptr, factor)
    scope = graph.scope[graph.scope_ptr[factor] : graph.scope_ptr[factor + 1]]
    variables = ", ".join(str(place_of(graph.variable_ptr, int(v))[1]) for v in scope)
    return GraphError(s, f"factor {f}, of the variables {variables}, {why}")


def require_pairs(graph: FactorTables, what: str) -> None:
    """Check that no factor has more than two variables."""
    wide = np.flatnonzero(np.diff(graph.scope_ptr) > 2)
    if len(wide):
        raise factor_error(
            graph, int(wide[0]),
            f'has more than two; {what} takes one or two. Take "mplp", "exact" or "milp".',
        )  # fmt: skip


def cut_arrays(graph: FactorTables) -> tuple[Network, Trees, Choices]:
    """Return what kernels of cuts need, with arcs between the variables of factors of two."""
    nodes = len(graph.sizes)
    pairs: BoolArray = np.diff(graph.scope_ptr) == 2
    first = graph.scope_ptr[:-1][pairs]
    arcs = 2 * len(first)

    def codes(n: int, fill: int = 0) -> np.ndarray[tuple[int], np.dtype[np.int32]]:
        return np.full(n, fill, np.int32)

    net = Network(codes(nodes + 1), codes(arcs), codes(arcs), np.zeros(arcs), np.zeros(nodes))
    place = codes(len(first))
    link_nodes(frozen(graph.scope[first]), frozen(graph.scope[first + 1]), net, place)
    of_factor = codes(len(pairs), -1)
    of_factor[pairs] = place
    trees = Trees(
        np.zeros(nodes, np.uint8), codes(nodes), codes(nodes), codes(nodes), codes(nodes),
        np.zeros(nodes, np.uint8), codes(nodes), np.zeros(4, np.int64),
    )  # fmt: skip
    choices = Choices(
        np.zeros((nodes, 2), np.uint8), of_factor, np.zeros(4), np.zeros(1),
        np.full(1, ALLOWED, np.int64),
    )  # fmt: skip
    return net, trees, choices
