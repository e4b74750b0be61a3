"""Random fields: products of factors, and the distributions that they stand for."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import logsumexp
from sklearn.utils import check_random_state

from crfkit._params import find_named
from crfkit._types import FloatArray, IntArray
from crfkit.graphs.enumeration import MOST_STATES, all_scores
from crfkit.graphs.factors import Factor
from crfkit.graphs.graph import Graph, Nodes
from crfkit.graphs.methods import EXACT, MaxMethod, SumMethod
from crfkit.graphs.results import FieldMaximum, FieldSums
from crfkit.graphs.tables import factor_tables, scores_of
from crfkit.kernels.graph.arrays import FactorTables

FORBIDDEN = "each combination of values has the score -inf."


class RandomField:
    """A distribution of discrete variables, the normalized product of its factors.

    ``P(x) = exp(sum of the scores of all factors at x) / Z``. Two variables are neighbors where a
    factor has both, and by the theorem of Hammersley and Clifford (Besag 1974) a variable depends
    on its neighbors alone, given these. A random field of which some variables are known, see
    :meth:`clamped`, is a conditional random field of the others (Lafferty, McCallum and Pereira
    2001).

    All properties, and all methods but those that take a `method`, answer exactly: by enumeration
    of all combinations of values where these are 4 million at most, else by a junction tree
    (:class:`crfkit.graphs.junction_tree.JunctionTree`), of whose budget a BudgetError tells.
    `joint` is always enumerated. :meth:`infer`, :meth:`map` and :meth:`sample` do as the method
    that they are given.

    Parameters
    ----------
    factors : iterable of Factor or of pairs (nodes, scores)
        Scores of the values of some variables.
    nodes : sequence, optional
        The order of the variables; by default that in which factors name them.

    Attributes
    ----------
    factors : tuple of Factor
        The factors.
    nodes : tuple
        The variables, in the order of the axes of answers.
    sizes : tuple of int
        How many values each of them has.
    graph : Graph
        The neighbors of each variable.

    Examples
    --------
    >>> import numpy as np
    >>> from crfkit.graphs import Factor, RandomField
    >>> agree = np.array([[1.0, 0.0], [0.0, 1.0]])
    >>> field = RandomField([("ab", agree), ("bc", agree), ("a", [0.0, 2.0])])
    >>> field.graph.neighbors("a")
    ('b',)
    >>> field.marginal("c").round(3)
    array([0.419, 0.581])
    >>> field.clamped({"b": 0}).marginal("c").round(3)
    array([0.731, 0.269])
    >>> field.dependence("a", "c", given="b") < 1e-15
    True
    >>> ring = RandomField(((i, (i + 1) % 50), agree) for i in range(50))
    >>> round(ring.infer().log_partition, 3), ring.infer("trw").bound_
    (65.663, 'upper')
    """

    def __init__(
        self,
        factors: Iterable[tuple[Sequence[Hashable], ArrayLike]],
        nodes: Sequence[Hashable] = (),
    ) -> None:
        self.factors = tuple(Factor.of(names, scores) for names, scores in factors)
        self.graph = Graph.of_cliques((factor.nodes for factor in self.factors), nodes)
        self.nodes: Nodes = self.graph.nodes
        found = self._sizes()
        self.sizes = tuple(found[node] for node in self.nodes)
        self._places = {node: i for i, node in enumerate(self.nodes)}

    def _sizes(self) -> dict[Hashable, int]:
        sizes: dict[Hashable, int] = {}
        for factor in self.factors:
            for node, size in zip(factor.nodes, factor.scores.shape, strict=True):
                if sizes.setdefault(node, size) != size:
                    raise ValueError(
                        f"{node!r} has {sizes[node]} values in one factor, {size} in another."
                    )
        unknown = [node for node in self.nodes if node not in sizes]
        if unknown:
            raise ValueError(f"no factor has {unknown[0]!r}.")
        return sizes

    @property
    def _is_large(self) -> bool:
        """Whether there are more combinations of values than are enumerated."""
        return math.prod(self.sizes) > MOST_STATES

    @cached_property
    def tables(self) -> FactorTables:
        """The factors as methods of inference read them."""
        scopes = [[self._places[node] for node in factor.nodes] for factor in self.factors]
        return factor_tables(self.sizes, scopes, [factor.scores for factor in self.factors])

    def infer(self, method: str | SumMethod = "exact") -> FieldSums:
        """Return log Z and the probabilities of values, by a method of one's choice.

        Parameters
        ----------
        method : str or SumMethod, default="exact"
            "exact", "bp", "trw", "mean_field" or "gibbs", or an object with parameters of its own.

        Returns
        -------
        FieldSums
            Log Z and probabilities, and how far they are exact.

        Raises
        ------
        BudgetError
            If the method is exact, and needs a table that is too large.
        ValueError, TypeError
            If the method is not known, or finds no values that are allowed to start from.
        """
        from crfkit.graphs.named import SUMS

        chosen: SumMethod = find_named("method", method, SUMS, "sums")
        found, graph = chosen.sums(self.tables), self.tables
        of_variables = np.split(found.marginals, graph.state_ptr[1:-1])
        of_factors = np.split(found.beliefs, graph.score_ptr[1:-1])
        return FieldSums(
            log_partition=float(found.log_partition[0]),
            marginals=dict(zip(self.nodes, of_variables, strict=bool(self.nodes))),
            beliefs=tuple(
                own.reshape(factor.scores.shape)
                for own, factor in zip(of_factors, self.factors, strict=bool(self.factors))
            ),
            exact_=bool(found.exact[0]),
            bound_=EXACT if found.exact[0] else chosen.bound,
            converged_=bool(found.converged[0]),
            n_iter_=int(found.n_iter[0]),
        )

    def map(self, method: str | MaxMethod = "exact") -> FieldMaximum:
        """Return values of the largest score, or of a large one, by a method of one's choice.

        Parameters
        ----------
        method : str or MaxMethod, default="exact"
            "exact", "auto", "cut", "expansion", "mplp" or "milp", or an object with parameters of
            its own.

        Returns
        -------
        FieldMaximum
            The values, their score, and a bound of the scores of all others.

        Raises
        ------
        BudgetError
            If the method is exact, and needs a table or a program that is too large.
        ValueError, TypeError
            If the method is not known, or does not take the factors of the field.
        """
        from crfkit.graphs.named import MAXIMA

        chosen: MaxMethod = find_named("method", method, MAXIMA, "maximum")
        found = chosen.maximum(self.tables)
        return FieldMaximum(
            values=dict(zip(self.nodes, found.values.tolist(), strict=True)),
            score=float(found.score[0]),
            score_bound=float(found.bound[0]),
            exact_=bool(found.exact[0]),
            n_iter_=int(found.n_iter[0]),
        )

    def sample(
        self,
        n: int = 1,
        method: str | SumMethod = "exact",
        random_state: int | np.random.RandomState | None = None,
    ) -> IntArray:
        """Return values drawn from the distribution, shape (n, V), a column for each of `nodes`.

        Parameters
        ----------
        n : int, default=1
            How often.
        method : str or SumMethod, default="exact"
            "exact" or "gibbs", or an object with parameters of its own.
        random_state : int, RandomState or None
            Where the random numbers are from.

        Raises
        ------
        BudgetError
            If the method is exact, and needs a table that is too large.
        NotImplementedError
            If the method draws no samples.
        ValueError
            If each combination of values has the score -inf.
        """
        from crfkit.graphs.named import SUMS

        chosen: SumMethod = find_named("method", method, SUMS, "sample")
        uniforms = check_random_state(random_state).uniform(size=(n, len(self.nodes)))
        values = chosen.sample(self.tables, uniforms)
        if n and scores_of(self.tables, values[0])[0] == -math.inf:
            raise ValueError(FORBIDDEN)
        return values

    @cached_property
    def _scores(self) -> FloatArray:
        """The scores of all combinations of values, an axis for each variable."""
        return all_scores(self.tables, 0)

    @cached_property
    def log_partition(self) -> float:
        """Log Z, the logarithm of the sum of the potentials of all combinations of values."""
        log_z = self.infer().log_partition if self._is_large else float(logsumexp(self._scores))
        if log_z == -math.inf:
            raise ValueError(FORBIDDEN)
        return log_z

    @cached_property
    def joint(self) -> FloatArray:
        """The probabilities of all combinations of values, an axis for each variable."""
        probabilities: FloatArray = np.exp(self._scores - self.log_partition)
        probabilities.setflags(write=False)
        return probabilities

    def score(self, values: Mapping[Hashable, int]) -> float:
        """Return the sum of the scores of all factors, given the values of all variables.

        ValueError if a variable has no value, or none of its own.
        """
        for node in self.nodes:
            if node not in values:
                raise ValueError(f"variable {node!r} has no value: a score needs those of all.")
        return float(sum(float(factor.scores) for factor in self.clamped(values).factors))

    def log_probability(self, values: Mapping[Hashable, int]) -> float:
        """Return the logarithm of a probability, given the values of some variables or of all."""
        return self.clamped(values).log_partition - self.log_partition

    def argmax(self) -> dict[Hashable, int]:
        """Return the most probable values of all variables; of equal ones, the lowest.

        Where too many combinations are to be enumerated, any of equal ones. ValueError if each
        combination has the score -inf.
        """
        if self._is_large:
            found = self.map()
            if found.score == -math.inf:
                raise ValueError(FORBIDDEN)
            return found.values
        if self._scores.max() == -math.inf:
            raise ValueError(FORBIDDEN)
        best = np.unravel_index(np.argmax(self._scores), self.sizes)
        return {node: int(value) for node, value in zip(self.nodes, best, strict=True)}

    def marginal(self, *nodes: Hashable) -> FloatArray:
        """Return the probabilities of the values of some variables, an axis for each.

        ValueError if one is not there, or is named twice.
        """
        if len(set(nodes)) != len(nodes) or not self._places.keys() >= set(nodes):
            raise ValueError(f"{nodes!r:.80} are not variables of the field, all different.")
        if self._is_large:
            shape = [self.sizes[self._places[node]] for node in nodes]
            joined = RandomField([*self.factors, Factor.of(nodes, np.zeros(shape))], self.nodes)
            found = joined.infer()
            if found.log_partition == -math.inf:
                raise ValueError(FORBIDDEN)
            return found.beliefs[-1]
        others = tuple(i for i, node in enumerate(self.nodes) if node not in nodes)
        kept = [node for node in self.nodes if node in nodes]
        table: FloatArray = self.joint.sum(axis=others)
        return table.transpose([kept.index(node) for node in nodes])

    def conditional(self, nodes: Sequence[Hashable], given: Sequence[Hashable]) -> FloatArray:
        """Return the probabilities of the values of some variables, given those of others.

        Returns
        -------
        ndarray
            An axis for each of `nodes`, then one for each of `given`; nan where values that are
            given have probability 0.
        """
        table = self.marginal(*nodes, *given)
        with np.errstate(invalid="ignore"):
            shares: FloatArray = table / table.sum(axis=tuple(range(len(nodes))), keepdims=True)
        return shares

    def clamped(self, values: Mapping[Hashable, int]) -> RandomField:
        """Return the field of the other variables, given the values of some.

        Its distribution is the conditional one, and its log Z is that of all combinations that have
        these values: so a difference of two is the logarithm of a probability.
        """
        for node, value in values.items():
            size = self.sizes[self._places[node]] if node in self._places else 0
            if not (0 <= value < size and value == int(value)):
                raise ValueError(f"no variable {node!r} has the value {value!r}.")
        free = [node for node in self.nodes if node not in values]
        known = {node: int(value) for node, value in values.items()}  # True is no position
        return RandomField([factor.clamped(known) for factor in self.factors], free)

    def dependence(
        self, left: Sequence[Hashable], right: Sequence[Hashable], given: Sequence[Hashable] = ()
    ) -> float:
        """Return how far two sets of variables are from being independent, given a third.

        The largest difference ``|P(l, r | g) - P(l | g) P(r | g)|`` over all values, where g has a
        probability. 0, but for rounding, if and only if they are independent.
        """
        sizes = dict(zip(self.nodes, self.sizes, strict=True))
        shape = [math.prod(sizes[node] for node in part) for part in (left, right, given)]
        table = self.marginal(*left, *right, *given).reshape(shape)
        table = table[:, :, table.sum(axis=(0, 1)) > 0.0]
        table = table / table.sum(axis=(0, 1))
        product = table.sum(axis=1, keepdims=True) * table.sum(axis=0, keepdims=True)
        return float(abs(table - product).max())
