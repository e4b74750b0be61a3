"""Large scores of any factors, with a bound that says how large others may be."""

from __future__ import annotations

import numpy as np

from crfkit._params import check_number, check_whole
from crfkit._types import BoolArray, ByteArray, IntArray
from crfkit.compiler.jit import frozen
from crfkit.graphs.methods import Maximum, MaxMethod
from crfkit.graphs.tables import single_scores, starts
from crfkit.kernels.graph.arrays import FactorTables
from crfkit.kernels.graph.decode import Labelings, maximize_graphs
from crfkit.kernels.graph.reweighted import EARLIER, LATER, Messages


class MPLP(MaxMethod):
    """Values of a large score, and an upper bound that falls: max-product linear programming.

    Messages from factors to variables lower the bound, the dual of the linear program of the local
    polytope [1]_, by sequential reweighted updates [2]_ [3]_, which take fewer passes than those of
    the original method. After each pass values are chosen one variable after the other, given those
    before, and improved by changes of single ones. States that lose more than the distance of the
    bound to the best score so far are left out, which lowers the bound below that of the linear
    program. Where it meets a score, these values are the best. On forests one pass is enough.
    Where it does not, some hundred passes at most follow in which states are left out that lose
    less and less, for a better labeling; they do not touch the bound.

    Takes factors of any number of variables, and scores of ``-inf``.

    Parameters
    ----------
    max_iter : int, default=1000
        Passes forth and back at most.
    tol : float, default=1e-9
        A bound that falls by no more in each of five passes, as a share of it, is as low as it
        gets.

    References
    ----------
    .. [1] Globerson and Jaakkola (2007). Fixing max-product: convergent message passing algorithms
       for MAP LP-relaxations. Neural Information Processing Systems 20.
    .. [2] Kolmogorov (2006). Convergent tree-reweighted message passing for energy minimization.
       IEEE Transactions on Pattern Analysis and Machine Intelligence 28.
    .. [3] Kolmogorov (2015). A new look at reweighted message passing. The same journal 37.

    Examples
    --------
    >>> from crfkit.graphs.tables import factor_tables
    >>> agree = [[2.0, 0.0, 0.0], [0.0, 2.0, 0.0], [0.0, 0.0, 2.0]]
    >>> scopes = [[0, 1], [1, 2], [2, 0], [0]]
    >>> graph = factor_tables([3, 3, 3], scopes, [agree, agree, agree, [0.0, 0.0, 1.0]])
    >>> found = MPLP().maximum(graph)
    >>> found.values, found.score, found.bound
    (array([2, 2, 2]), array([7.]), array([7.]))
    """

    def __init__(self, max_iter: int = 1000, tol: float = 1e-9) -> None:
        self.max_iter = max_iter
        self.tol = tol

    def maximum(self, graph: FactorTables) -> Maximum:
        """Return values of a large score, and the bound."""
        check_whole("max_iter", self.max_iter, 1)
        check_number("tol", self.tol)
        found, messages = _labelings(graph), _messages(graph)
        maximize_graphs(graph, self.max_iter, float(self.tol), True, messages, found)
        return Maximum(found.values, found.score, found.bound, found.n_iter)


def states_left(graph: FactorTables, found: Maximum, max_iter: int) -> BoolArray:
    """Return which states values may have that are better than those found, (state_ptr[-1],)."""
    labelings, messages = _labelings(graph), _messages(graph)
    labelings.values[:], labelings.score[:] = found.values, found.score
    maximize_graphs(graph, max_iter, 0.0, False, messages, labelings)
    left: BoolArray = messages.single > -np.inf
    return left


def _labelings(graph: FactorTables) -> Labelings:
    """Return that no labelings are known."""
    count, variables = len(graph.factor_ptr) - 1, len(graph.sizes)
    return Labelings(
        np.zeros(variables, np.int64), np.full(count, -np.inf), np.empty(count),
        np.zeros(count, np.int64), np.zeros(variables, np.int64), np.zeros(variables, np.uint8),
    )  # fmt: skip


def _messages(graph: FactorTables) -> Messages:
    """Return messages that say nothing yet."""
    arity = np.diff(graph.scope_ptr)
    factor = np.repeat(np.arange(len(arity)), arity)
    wide = np.flatnonzero(arity[factor] > 1)
    entries = wide[np.argsort(graph.scope[wide], kind="stable")]
    sent_ptr = starts(graph.sizes[graph.scope])
    most = int(graph.sizes.max(initial=1))
    return Messages(
        single=single_scores(graph),
        sent=np.zeros(int(sent_ptr[-1])),
        sent_ptr=sent_ptr,
        factor=frozen(factor),
        order=frozen(_order(graph, factor)),
        entries=frozen(entries),
        entry_ptr=starts(np.bincount(graph.scope[wide], minlength=len(graph.sizes))),
        belief=np.zeros(most),
        broken=np.zeros(most, np.int64),
        digits=np.zeros(int(arity.max(initial=1)), np.int64),
    )


def _order(graph: FactorTables, factor: IntArray) -> ByteArray:
    """Return which entries of scopes have variables before and after them."""
    first = np.full(len(graph.scope_ptr) - 1, len(graph.sizes))
    last = np.full(len(first), -1)
    np.minimum.at(first, factor, graph.scope)
    np.maximum.at(last, factor, graph.scope)
    earlier, later = graph.scope > first[factor], graph.scope < last[factor]
    codes: ByteArray = (EARLIER * earlier + LATER * later).astype(np.uint8)
    return codes
