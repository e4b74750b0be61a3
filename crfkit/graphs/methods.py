"""What methods of inference do, and what they return."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar, NamedTuple

import numpy as np
from sklearn.base import BaseEstimator

from crfkit._types import BoolArray, FloatArray, IntArray
from crfkit.graphs.tables import graph_of
from crfkit.kernels.graph.arrays import FactorTables
from crfkit.structures import Capability

# What log Z of a method is to the true one.
EXACT, UPPER, LOWER, NONE = "exact", "upper", "lower", "none"


class Sums(NamedTuple):
    """Log Z and marginals of S factor graphs, or what a method takes for them."""

    log_partition: FloatArray  # (S,) in nats; -inf where each combination of values is forbidden
    marginals: FloatArray  # (state_ptr[-1],) of the states of variables
    beliefs: FloatArray  # (Z,) of the entries of tables
    exact: BoolArray  # (S,) whether these are the true ones, but for rounding
    converged: BoolArray  # (S,)
    n_iter: IntArray  # (S,) 0 of a method that does not iterate


class Maximum(NamedTuple):
    """Values of a large score, and how large others may be."""

    values: IntArray  # (V,) states of the variables
    score: FloatArray  # (S,) of these values; -inf where none were found that are allowed
    bound: FloatArray  # (S,) no values have a larger score; inf where nothing is known
    n_iter: IntArray  # (S,)

    @property
    def exact(self) -> BoolArray:
        """Whether no others are better, by more than a share of 1e-9, shape (S,)."""
        rounding = 1e-9 * (1.0 + abs(np.where(np.isfinite(self.score), self.score, 0.0)))
        found: BoolArray = self.bound <= self.score + rounding
        return found


class Slopes(NamedTuple):
    """Derivatives along a direction of the scores."""

    marginals: FloatArray  # (state_ptr[-1],) of the probabilities of states of variables
    beliefs: FloatArray  # (Z,) of those of the entries of tables


class BestValues(NamedTuple):
    """The best values of S graphs, the best first."""

    values: IntArray  # (k, V)
    scores: FloatArray  # (S, k) -inf where there are no more
    counts: IntArray  # (S,) how many were found


class GraphError(ValueError):
    """What a method cannot do with one of several graphs, by its number among these."""

    def __init__(self, graph: int, why: str) -> None:
        self.graph, self.why = graph, why
        super().__init__(graph, why)

    def __str__(self) -> str:
        return f"graph {self.graph}: {self.why}"


class BudgetError(GraphError):
    """A table would be larger than the budget of exact inference."""


class SumMethod(BaseEstimator, ABC):  # type: ignore[misc]
    """A way to compute log Z and marginals; options are parameters, as of estimators.

    `bound` says what its log Z is to the true one, "exact", "upper", "lower" or "none"; `is_convex`
    whether it is a convex function of the scores, whose gradient the marginals and beliefs are;
    `capabilities` what else it answers: with `Capability.HESSIAN_PRODUCT` and
    `Capability.POSTERIOR`, it has `derivative`. One that has no log Z gives nan for it.
    """

    bound: ClassVar[str] = NONE
    is_convex: ClassVar[bool] = False
    has_log_z: ClassVar[bool] = True
    capabilities: ClassVar[frozenset[Capability]] = frozenset()

    @abstractmethod
    def sums(self, graph: FactorTables) -> Sums:
        """Return log Z and the marginals."""

    def derivative(self, graph: FactorTables, tangent: FloatArray) -> Slopes:
        """Return the derivatives of marginals and beliefs along a direction of scores, (Z,)."""
        raise NotImplementedError(f"{self!r} has no derivatives")

    def sample(self, graph: FactorTables, uniforms: FloatArray) -> IntArray:
        """Return values that numbers from 0 to 1 choose, one for each variable, (n, V) both."""
        raise NotImplementedError(f'{self!r} draws no samples: take "exact" or "gibbs".')

    def entropy(self, graph: FactorTables) -> FloatArray:
        """Return the entropy of each graph in nats, (S,)."""
        raise NotImplementedError(f"{self!r} has no entropies")


class MaxMethod(BaseEstimator, ABC):  # type: ignore[misc]
    """A way to find the values of the largest score; options are parameters, as of estimators.

    `same_labels` says that the states of all variables are to be the same labels, those that one
    may not have included; `capabilities` whether it has `k_best`.
    """

    same_labels: ClassVar[bool] = False
    capabilities: ClassVar[frozenset[Capability]] = frozenset()

    @abstractmethod
    def maximum(self, graph: FactorTables) -> Maximum:
        """Return values of a large score."""

    def k_best(self, graph: FactorTables, k: int) -> BestValues:
        """Return the `k` best values of each graph, the best first."""
        raise NotImplementedError(f"{self!r} lists no best values")


def each_alone(method: MaxMethod, graph: FactorTables) -> Maximum:
    """Return what a method finds for each of several graphs, one or more, without the others."""
    found = []
    for s in range(len(graph.factor_ptr) - 1):
        try:
            found.append(method.maximum(graph_of(graph, s)))
        except GraphError as error:
            raise type(error)(s, error.why) from None
    return Maximum(*map(np.concatenate, zip(*found, strict=True)))
