"""The maximum by an integer program: a proof, of small graphs."""

from __future__ import annotations

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, OptimizeResult, milp
from scipy.sparse import csr_array

from crfkit._types import FloatArray, IntArray
from crfkit.graphs.methods import BudgetError, Maximum, MaxMethod
from crfkit.graphs.tables import scores_of, tables_of
from crfkit.kernels.graph.arrays import FactorTables

# How far, as a share, the bound of the solver may be from the score, by its own tolerances.
SOLVED = 1e-6
INFEASIBLE = 2  # as `milp` says it


class IntegerProgram(MaxMethod):
    """The values of the largest score, by branch and bound on the local polytope (HiGHS).

    The scores are linear in indicators of the states of variables and of the entries of tables.
    Entries add up to the indicators of their states, which are integers [1]_. The solver proves
    that nothing is better, but for its tolerance of 1e-6, as a share.

    Parameters
    ----------
    time_limit : float, optional
        Seconds for each graph. After it, the best values and the bound so far are returned.
    max_size : int, default=200000
        How many indicators a graph may have.

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
            If a graph has more than `max_size` indicators.
        """
        count = len(graph.factor_ptr) - 1
        values, bound = np.zeros(len(graph.sizes), np.int64), np.empty(count)
        found = np.zeros(count, bool)
        for s in range(count):
            own = slice(graph.variable_ptr[s], graph.variable_ptr[s + 1])
            values[own], found[s], bound[s] = self._solve(graph, s)
        score = np.where(found, scores_of(graph, values), -np.inf)
        known = np.where(found, score, 0.0)
        solved = found & (bound - known <= SOLVED * (1.0 + abs(known)))
        bound = np.where(solved, score, np.maximum(bound, score))
        return Maximum(values, score, bound, np.zeros(count, np.int64))

    def _solve(self, graph: FactorTables, s: int) -> tuple[IntArray, bool, float]:
        """Return values of a graph, whether the solver found them, and its bound."""
        sizes, scopes, tables = tables_of(graph, s)
        size = sum(sizes) + sum(table.size for table in tables if table.ndim > 1)
        if size > self.max_size:
            raise BudgetError(
                f"graph {s}: the integer program would have {size} indicators, more than max_size="
                f'{self.max_size}. Raise it, or take "mplp", which bounds what it may have missed.'
            )
        if not sizes:
            constant = float(sum(table.sum() for table in tables))
            return np.empty(0, np.int64), constant > -np.inf, constant
        scores, constant = _scores(sizes, scopes, tables)
        if constant == -np.inf:
            return np.zeros(len(sizes), np.int64), False, -np.inf
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
) -> tuple[IntArray, bool, float]:
    """Return the values that the solver found, whether there are some, and its bound."""
    none = np.zeros(len(sizes), np.int64)
    if solved.status == INFEASIBLE:
        return none, False, -np.inf
    least = solved.mip_dual_bound
    bound = np.inf if least is None else constant - float(least)
    if solved.x is None:
        return none, False, bound
    start = np.cumsum([0, *sizes])
    chosen = [int(np.argmax(solved.x[a:b])) for a, b in zip(start[:-1], start[1:], strict=True)]
    return np.array(chosen, np.int64), True, bound
