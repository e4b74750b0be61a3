"""An upper bound of log Z by tree-reweighted belief propagation."""

from __future__ import annotations

import hashlib
from functools import lru_cache
from typing import ClassVar, NamedTuple

import numpy as np

from crfkit._params import check_number, check_whole
from crfkit._types import BoolArray, FloatArray, IntArray, taken_rows
from crfkit.compiler.jit import frozen
from crfkit.graphs.belief_propagation import BeliefPropagation
from crfkit.graphs.chance import uniforms
from crfkit.graphs.links import links_of, propagated
from crfkit.graphs.merging import Merging
from crfkit.graphs.methods import UPPER, SumMethod, Sums
from crfkit.kernels.graph.arrays import FactorTables
from crfkit.kernels.graph.links import Links, grow_forests
from crfkit.kernels.graph.messages import Messages, Schedule

KEPT = 64  # plans of topologies


class TreeReweighted(SumMethod):
    r"""An upper bound of log Z, convex in the scores, with its gradient as marginals.

    Each factor graph is a mixture of forests of its factors, and log Z is at most the mixture of
    theirs (Wainwright, Jaakkola and Willsky 2005). The best such bound is

    .. math:: \max_\tau \langle \theta, \tau \rangle + \sum_f \rho_f H(\tau_f)
              + \sum_v \Bigl(1 - \sum_{f \ni v} \rho_f\Bigr) H(\tau_v)

    over beliefs that agree on single variables, where :math:`\rho_f` is the share of forests that
    have the factor f; 1, and all is exact, on a forest. Factors may have any number of variables:
    their forests are those of the factor graph, and factors whose variables another one has are
    added to it before.

    The forests depend on the topology and on `random_state` alone, not on scores; each prefers
    factors that those before it have less often. Beliefs are found by messages that are damped,
    the more the less they settle. They have settled when no belief of a factor and of a variable
    differ by more than `tol`; then the gradient is exact to about as much. Where they have
    not, log Z is the mean of that of the forests with the scores that the messages give them:
    still a bound, which is not the best one.

    Parameters
    ----------
    n_trees : int, default=32
        The least number of forests; more are taken until each factor is in one of them.
    max_iter : int, default=1000
        The largest number of sweeps over all messages.
    tol : float, default=1e-9
        The largest difference between beliefs about the same variable.
    random_state : int, default=0
        Chooses among forests.

    Examples
    --------
    >>> from crfkit.graphs.enumeration import Enumeration
    >>> from crfkit.graphs.tables import factor_tables
    >>> from crfkit.graphs.tree_reweighted import TreeReweighted
    >>> agree = [[1.0, 0.0], [0.0, 1.0]]
    >>> ring = factor_tables([2, 2, 2], [[0, 1], [1, 2], [2, 0], [0]], [agree] * 3 + [[0.0, 1.0]])
    >>> for method in (Enumeration(), TreeReweighted()):
    ...     print(method.sums(ring).log_partition.round(3))
    [4.654]
    [4.711]
    """

    bound: ClassVar[str] = UPPER
    is_convex: ClassVar[bool] = True

    def __init__(
        self, n_trees: int = 32, max_iter: int = 1000, tol: float = 1e-9, random_state: int = 0
    ) -> None:
        self.n_trees = n_trees
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state

    def sums(self, graph: FactorTables) -> Sums:
        """Return the bound of log Z, and its gradient: the marginals and beliefs."""
        check_whole("n_trees", self.n_trees, 1)
        check_whole("max_iter", self.max_iter, 1)
        check_number("tol", self.tol)
        check_whole("random_state", self.random_state)
        plan = _plan(_Topology(graph), self.n_trees, self.random_state)
        merged = plan.merging.merge(graph)
        way = Schedule(False, 0.3, True, float(self.tol), self.max_iter)
        sums, work = propagated(merged, plan.links, way)
        unsettled = np.flatnonzero(~sums.converged & (sums.log_partition > -np.inf)).tolist()
        if unsettled:
            scores, singles = _shared_out(merged, plan.links, work)
            for s in unsettled:
                sums.log_partition[s] = _mean_of_forests(merged, plan, scores, singles, s)
        return sums._replace(beliefs=plan.merging.split(sums.beliefs, len(graph.scores)))


class _Topology:
    """Which factors there are, without their scores; equal to others that have the same."""

    def __init__(self, graph: FactorTables) -> None:
        self.graph = graph
        found = hashlib.sha1()
        for array in (graph.sizes, graph.scope, graph.scope_ptr, graph.variable_ptr,
                      graph.factor_ptr):  # fmt: skip
            found.update(len(array).to_bytes(8, "little"))
            found.update(array.tobytes())
        self.key = found.digest()

    def __hash__(self) -> int:
        return hash(self.key)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Topology) and self.key == other.key


class _Plan(NamedTuple):
    merging: Merging
    links: Links
    forests: list[BoolArray]
    n_forests: IntArray


def _mean_of_forests(
    graph: FactorTables, plan: _Plan, scores: FloatArray, singles: FloatArray, s: int
) -> float:
    """Return the mean of log Z of the forests of a graph, with scores that add up to its own."""
    first, last = (int(v) for v in graph.variable_ptr[s : s + 2])
    begin, end = (int(f) for f in graph.factor_ptr[s : s + 2])
    states, count, total = graph.state_ptr[first : last + 1], last - first, 0.0
    own = singles[states[0] : states[-1]]
    for forest in plan.forests[: plan.n_forests[s]]:
        chosen = begin + np.flatnonzero(forest[begin:end])
        scope_ptr, places = taken_rows(graph.scope_ptr, chosen)
        score_ptr, entries = taken_rows(graph.score_ptr, chosen)
        ends = np.array([0, count]), np.array([0, count + len(chosen)])
        tree = FactorTables(*map(frozen, (
            graph.sizes[first:last], states - states[0],
            np.concatenate([np.arange(count), graph.scope[places] - first]),
            np.concatenate([np.arange(count), count + scope_ptr]),
            np.concatenate([own, scores[entries]]),
            np.concatenate([states[:-1] - states[0], len(own) + score_ptr]), *ends,
        )))  # fmt: skip
        total += float(BeliefPropagation().sums(tree).log_partition[0])
    return total / float(plan.n_forests[s])


def _shared_out(
    graph: FactorTables, links: Links, work: Messages
) -> tuple[FloatArray, FloatArray]:  # fmt: skip
    """Return what a forest has as scores of its factors, (Z,), and of single variables.

    The means over forests are the scores of the graph, whatever the messages are.
    """
    lengths, arity = np.diff(graph.score_ptr), np.diff(graph.scope_ptr)
    factor = np.repeat(np.arange(len(arity)), lengths)
    own = np.arange(len(factor)) - graph.score_ptr[factor]
    scores = graph.scores / links.weight[factor]
    # What is -inf is forbidden by the single variable.
    told = np.where(work.values > -np.inf, work.values, 0.0)
    for axis in range(int(arity.max(initial=0))):
        having = np.flatnonzero(arity[factor] > axis)
        place = graph.scope_ptr[factor[having]] + axis
        state = own[having] // links.stride[place] % graph.sizes[graph.scope[place]]
        scores[having] -= told[links.message_ptr[place] + state]
    return scores, np.where(work.forbidden > 0, -np.inf, work.finite)


@lru_cache(maxsize=KEPT)
def _plan(topology: _Topology, n_trees: int, seed: int) -> _Plan:
    """Return what depends on the topology alone."""
    merging = Merging(topology.graph)
    empty = topology.graph._replace(scores=frozen(np.zeros(topology.graph.score_ptr[-1])))
    graph = merging.merge(empty)
    topology.graph = empty  # scores are not kept
    forests, count = spanning_forests(graph, n_trees, seed)
    n_factors = len(graph.scope_ptr) - 1
    taken = np.zeros(n_factors)
    owner = np.repeat(np.arange(len(graph.factor_ptr) - 1), np.diff(graph.factor_ptr))
    for t, forest in enumerate(forests):
        taken += forest & (t < count[owner])
    return _Plan(merging, links_of(graph, taken / count[owner]), forests, count)


def spanning_forests(
    graph: FactorTables, least: int, seed: int
) -> tuple[list[BoolArray], IntArray]:
    """Return forests of factors, that together have each factor, and how many each graph has.

    A forest prefers factors that those before have less often, else it goes by chance.
    """
    n_factors, count = len(graph.scope_ptr) - 1, len(graph.factor_ptr) - 1
    owner = np.repeat(np.arange(count), np.diff(graph.factor_ptr))
    local = np.arange(n_factors) - graph.factor_ptr[owner]
    taken, parent = np.zeros(n_factors, np.int64), np.empty(len(graph.sizes), np.int64)
    forests, n_forests = list[BoolArray](), np.zeros(count, np.int64)
    going = np.ones(count, bool)
    while going.any():
        forest = np.empty(n_factors, np.bool_)
        chance = uniforms(local, seed, len(forests))
        grow_forests(graph, frozen(np.lexsort((chance, taken))), parent, forest)
        taken += forest & going[owner]
        forests.append(forest)
        n_forests[going] += 1
        uncovered = np.zeros(count, bool)
        uncovered[owner[taken == 0]] = True
        going &= uncovered | (n_forests < least)
    return forests, n_forests
