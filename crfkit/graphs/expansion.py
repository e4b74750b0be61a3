"""Large scores of Potts-like factors, by moves of many variables to one label."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from crfkit._params import check_whole
from crfkit._types import IntArray
from crfkit.graphs.methods import Maximum, MaxMethod, each_alone
from crfkit.graphs.minimum_cut import MinimumCut, cut_arrays, factor_error, require_pairs
from crfkit.graphs.tables import scores_of, single_scores, starts
from crfkit.kernels.graph.arrays import FactorTables
from crfkit.kernels.graph.cut import ALLOWED, expand_labels, find_odd_factor


class ExpansionMoves(MaxMethod):
    """Values of a large score, where factors of two variables are like distances of labels.

    In a move each variable keeps its value or takes one label, the same for all; the best move is a
    minimum cut. Moves to each label follow each other until none is better. Of a Potts model, in
    costs that are not negative, the result costs twice the least at most [1]_.

    The states of the two variables of a factor are the same labels, and for all labels
    ``score(a, a) + score(b, c) >= score(b, a) + score(a, c)``, as where equal labels score at least
    0 and different ones 0. A label that a variable may not have scores ``-inf`` in a factor of that
    variable alone. Two labels are left to :class:`~crfkit.graphs.minimum_cut.MinimumCut`.

    Parameters
    ----------
    max_iter : int, default=20
        Rounds over all labels at most.
    bound : MaxMethod, optional
        A method whose bound is reported, such as ``MPLP()``; its values, where they are better.
        Without one, nothing is known of more than two labels, and the bound is inf.

    References
    ----------
    .. [1] Boykov, Veksler and Zabih (2001). Fast approximate energy minimization via graph cuts.
       IEEE Transactions on Pattern Analysis and Machine Intelligence 23.

    Examples
    --------
    >>> import numpy as np
    >>> from crfkit.graphs.tables import factor_tables
    >>> single = [[0.0, 2.0, 0.0], [1.0, 0.0, 0.5]]
    >>> graph = factor_tables([3, 3], [[0], [1], [0, 1]], [*single, 2.0 * np.eye(3)])
    >>> ExpansionMoves().maximum(graph).values
    array([1, 1])
    """

    same_labels: ClassVar[bool] = True

    def __init__(self, max_iter: int = 20, bound: MaxMethod | None = None) -> None:
        self.max_iter = max_iter
        self.bound = bound

    def maximum(self, graph: FactorTables) -> Maximum:
        """Return values of a large score.

        Raises
        ------
        ValueError
            If a factor has more than two variables, or variables of different labels, or scores
            that are not like distances.
        """
        check_whole("max_iter", self.max_iter, 1)
        larger = starts(graph.sizes > 2)[graph.variable_ptr]
        if larger[-1] == 0:
            return MinimumCut().maximum(graph)
        if (larger[1:] == larger[:-1]).any():
            return each_alone(self, graph)
        require_pairs(graph, "expansion")
        _require_metric(graph)
        count = len(graph.factor_ptr) - 1
        rounds = np.zeros(count, np.int64)
        values = _best_singles(graph)
        expand_labels(
            graph, self.max_iter, values, rounds, np.empty_like(values), *cut_arrays(graph)
        )
        score = scores_of(graph, values)
        if self.bound is None:
            bound = np.where(score > -np.inf, np.inf, -np.inf)
            return Maximum(values, score, bound, rounds)
        return _better(graph, Maximum(values, score, score, rounds), self.bound.maximum(graph))


def _require_metric(graph: FactorTables) -> None:
    """Check that all moves are cuts."""
    f = find_odd_factor(graph)
    if f == ALLOWED:
        return
    i, j = graph.sizes[graph.scope[graph.scope_ptr[f] : graph.scope_ptr[f + 1]]]
    if i != j:
        raise factor_error(
            graph, f,
            f"has {i} and {j} states; expansion needs the same labels, of which scores of -inf "
            'forbid some. Or take "mplp".',
        )  # fmt: skip
    raise factor_error(
        graph, f,
        "is not like a distance of labels: some score(a, a) + score(b, c) is less than "
        'score(b, a) + score(a, c), or is -inf. Take "mplp".',
    )  # fmt: skip


def _best_singles(graph: FactorTables) -> IntArray:
    """Return the values that factors of one variable score most."""
    single = single_scores(graph)
    row = np.repeat(np.arange(len(graph.sizes)), graph.sizes)
    order = np.lexsort((-np.arange(len(single)), single, row))
    return np.asarray(order[graph.state_ptr[1:] - 1] - graph.state_ptr[:-1])


def _better(graph: FactorTables, found: Maximum, other: Maximum) -> Maximum:
    """Return the better values of each graph, and the bound of the other method."""
    chosen = other.score > found.score
    values = np.where(np.repeat(chosen, np.diff(graph.variable_ptr)), other.values, found.values)
    score = np.where(chosen, other.score, found.score)
    return Maximum(values, score, np.maximum(other.bound, score), found.n_iter + other.n_iter)
