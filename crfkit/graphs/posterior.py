"""What graphs know of the labels of single nodes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from crfkit._types import Counts, FloatArray, IntArray
from crfkit.compiler.jit import frozen
from crfkit.graphs.potentials import GraphPotentials
from crfkit.structures import NoPathError
from crfkit.structures.posterior import Posterior

if TYPE_CHECKING:
    from crfkit.graphs.structure import GraphStructure

# Slopes are divided by marginals from here on; labels of smaller ones are summed over by
# themselves.
LEAST = 1e-100


class GraphPosterior(Posterior):
    """What is known of the labels of graphs, by an exact method that has derivatives.

    A function of the marginals with the slopes ``a`` has the gradient ``sum_tk a_tk E[parts | y_t =
    k]``. That is the derivative of the expected parts along ``a_tk / mu_tk``, but for labels whose
    marginals vanish: their expectations are sums over the labelings that have them.
    """

    def __init__(self, structure: GraphStructure, potentials: GraphPotentials) -> None:
        self._structure, self._potentials = structure, potentials
        self._weight = np.ones(len(potentials.offsets) - 1)
        self._expected = structure.zeros(potentials)
        self.log_z = structure.log_partition(potentials, self._weight, self._expected)
        self.marginals = frozen(self._expected.unary)

    def log_probability(self, tokens: IntArray, codes: IntArray) -> FloatArray:
        """Return the logarithms of probabilities of labels at nodes."""
        found = self.marginals[tokens, codes]
        tiny = np.flatnonzero(found < LEAST)
        found[tiny] = 1.0
        found = np.log(found)
        for i in tiny.tolist():
            found[i] = self._given(int(tokens[i]), int(codes[i]), None)
        return found

    def pull_back(self, slopes: FloatArray, out: Counts) -> None:
        """Write the gradient of a function of the marginals."""
        ratio, large = np.zeros_like(slopes), self.marginals >= LEAST
        np.divide(slopes, self.marginals, out=ratio, where=large)
        none = np.zeros_like(self._potentials.pair)
        tangent = self._potentials.with_arrays(ratio, none)
        self._structure.hessian_product(self._potentials, tangent, self._weight, out)
        for t, k in np.argwhere(~large & (slopes != 0.0)).tolist():
            self._given(t, k, out, float(slopes[t, k]))

    def _given(self, node: int, label: int, out: Counts | None, amount: float = 0.0) -> float:
        """Return the log-probability of a label, and add what it changes in expectations."""
        if self._potentials.unary[node, label] == -np.inf:
            return -np.inf
        s = int(np.searchsorted(self._potentials.offsets, node, side="right")) - 1
        one = self._potentials.one(s)
        begin, end = (int(place) for place in self._potentials.offsets[s : s + 2])
        allowed = np.ones((end - begin, one.n_labels), bool)
        allowed[node - begin] = np.arange(one.n_labels) == label
        part = self._structure.zeros(one)
        try:
            log_z = self._structure.log_partition(one.clamp(allowed), np.ones(1), part)
        except NoPathError:
            return -np.inf
        if out is not None:
            whole = self._structure.zeros(one)
            self._structure.log_partition(one, np.ones(1), whole)
            out.unary[begin:end] += amount * (part.unary - whole.unary)
            out.pair[...] += amount * (part.pair - whole.pair)
        return float(log_z[0] - self.log_z[s])
