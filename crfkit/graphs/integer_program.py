"""The maximum by an integer program: a proof, of small graphs."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, OptimizeResult, milp
from scipy.sparse import csr_array

from crfkit._params import check_positive, check_whole
from crfkit._types import FloatArray, IntArray
from crfkit.graphs.methods import BudgetError, Maximum, MaxMethod
from crfkit.graphs.mplp import MPLP, states_left
from crfkit.graphs.tables import scores_of, tables_of
from crfkit.kernels.graph.arrays import FactorTables

# How far, as a share, the bound of the solver may be from the score, by its own tolerances.
SOLVED = 1e-6
PASSES = 100  # of messages, before
INFEASIBLE = 2  # as `milp` says it


class IntegerProgram(MaxMethod):
    """The values of the largest score, by branch and bound on the local polytope (HiGHS).

    The scores are linear in indicators of the states of variables and of the entries of tables.
    Entries add up to the indicators of their states, which are integers [1]_. Messages go first
    (:class:`~crfkit.graphs.mplp.MPLP`): where their bound is a score, no program is needed, and
    else it has only the states that better values may have. The solver proves that nothing is
    better, but for its tolerance of 1e-6, as a share.

    Parameters
    ----------
    time_limit : float, optional
        Seconds for each graph. After it, the best values and the bound so far are returned.
    max_size : int, default=200000
        How many indicators the program of a graph may have.

    References
    ----------
    .. [1] Wainwright and Jordan (2008). Graphical models, exponential families, and variational
       inference. Foundations and Trends in Machine Learning 1.

    Examples
    --------
    >>> from crfkit.graphs.tables import factor_tables
    >>> differ = [[0.0, 1.0], [1.0, 0.0]]
    >>> scopes = [[0, 1], [1, 2], [2, 0], [0]]
    >>> graph = factor_tables([2, 2, 2], scopes, [differ, differ, differ, [0.0, 0.5]])
    >>> IntegerProgram().maximum(graph).score
    array([2.5])
    """

    def __init__(self, time_limit: float | None = None, max_size: int = 200_000) -> None:
        self.time_limit = time_limit
        self.max_size = max_size

    def maximum(self, graph: FactorTables) -> Maximum:
        """Return the values of the largest score, or the best in time.

        Raises
        ------
        BudgetError
            If the program of a graph has more than `max_size` indicators.
        """
        check_whole("max_size", self.max_size)
        if self.time_limit is not None:
            check_positive("time_limit", self.time_limit)
        found = MPLP(PASSES).maximum(graph)
        if found.exact.all():
            return found
        left = states_left(graph, found, PASSES)
        values, score, bound = found.values.copy(), found.score.copy(), found.bound.copy()
        for s in np.flatnonzero(~found.exact):
            own = slice(graph.variable_ptr[s], graph.variable_ptr[s + 1])
            starts = graph.state_ptr[own.start : own.stop + 1]
            states = [np.flatnonzero(left[a:b]) for a, b in pairwise(starts)]
            better, least = self._solve(graph, int(s), states)
            bound[s] = min(bound[s], least)
            if better is not None:
                trial = values.copy()
                trial[own] = [own_states[k] for own_states, k in zip(states, better, strict=True)]
                if (reached := scores_of(graph, trial)[s]) > score[s]:
                    values, score[s] = trial, reached
        known = np.where(score > -np.inf, score, 0.0)
        solved = (score > -np.inf) & (bound - known <= SOLVED * (1.0 + abs(known))) & ~found.exact
        return Maximum(
            values, score, np.where(solved, score, np.maximum(bound, score)), found.n_iter
        )

    def _solve(
        self, graph: FactorTables, s: int, states: list[IntArray]
    ) -> tuple[IntArray | None, float]:
        """Return the best of some states of each variable, if found, and a bound of them."""
        sizes = [len(own) for own in states]
        if min(sizes) == 0:
            return None, -np.inf
        _, scopes, tables = tables_of(graph, s)
        tables = [table[np.ix_(*(states[v] for v in scope))] if scope else table
                  for scope, table in zip(scopes, tables, strict=True)]  # fmt: skip
        size = sum(sizes) + sum(table.size for table in tables if table.ndim > 1)
        if size > self.max_size:
            raise BudgetError(
                s,
                f"the integer program would have {size} indicators, more than max_size="
                f'{self.max_size}. Raise it, or take "mplp", which bounds what it may have missed.',
            )
        scores, constant = _scores(sizes, scopes, tables)
        if constant == -np.inf:
            return None, -np.inf
        allowed = scores > -np.inf
        solved = milp(
            np.where(allowed, -scores, 0.0),
            integrality=np.arange(size) < sum(sizes),
            bounds=Bounds(0.0, allowed.astype(float)),
            constraints=_constraints(sizes, scopes),
            options={"mip_rel_gap": 0.0}
            | ({} if self.time_limit is None else {"time_limit": self.time_limit}),
        )
        return _read(solved, sizes, constant)


def _scores(
    sizes: list[int], scopes: list[list[int]], tables: list[FloatArray]
) -> tuple[FloatArray, float]:
    """Return the scores of indicators, the largest of each table 0, and what was subtracted."""
    states = [np.zeros(size) for size in sizes]
    for scope, table in zip(scopes, tables, strict=True):
        if table.ndim == 1:
            states[scope[0]] += table
    parts = [*states, *(table.ravel() for table in tables if table.ndim > 1)]
    largest = [float(part.max()) for part in parts]
    constant = sum(largest) + sum(float(table) for table in tables if table.ndim == 0)
    if constant == -np.inf:
        return np.empty(0), constant
    return np.concatenate(
        [part - most for part, most in zip(parts, largest, strict=True)]
    ), constant


def _constraints(sizes: list[int], scopes: list[list[int]]) -> LinearConstraint:
    """Return that each variable has one state, and that the entries of tables agree with them."""
    start = np.cumsum([0, *sizes])
    rows = [np.repeat(np.arange(len(sizes)), sizes)]
    columns = [np.arange(start[-1])]
    signs = [np.ones(start[-1])]
    row, column = len(sizes), int(start[-1])
    for scope in (scope for scope in scopes if len(scope) > 1):
        digits = np.indices([sizes[v] for v in scope]).reshape(len(scope), -1)
        for v, states in zip(scope, digits, strict=True):
            rows += [row + states, row + np.arange(sizes[v])]
            columns += [column + np.arange(len(states)), start[v] + np.arange(sizes[v])]
            signs += [np.ones(len(states)), np.full(sizes[v], -1.0)]
            row += sizes[v]
        column += digits.shape[1]
    cells = np.concatenate(rows), np.concatenate(columns)
    table = csr_array((np.concatenate(signs), cells), shape=(row, column))
    wanted = (np.arange(row) < len(sizes)).astype(float)
    return LinearConstraint(table, wanted, wanted)


def _read(
    solved: OptimizeResult, sizes: list[int], constant: float
) -> tuple[IntArray | None, float]:
    """Return the values that the solver found, if there are some, and its bound."""
    if solved.status == INFEASIBLE:
        return None, -np.inf
    least = solved.mip_dual_bound
    bound = np.inf if least is None else constant - float(least)
    if solved.x is None:
        return None, bound
    start = np.cumsum([0, *sizes])
    return np.array([np.argmax(solved.x[a:b]) for a, b in pairwise(start)], np.int64), bound
