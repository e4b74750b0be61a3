"""A distribution of the labels of a sequence, kept as marginals of labels and transitions."""

from __future__ import annotations

import numpy as np

from crfkit._types import CodeArray, FloatArray, Potentials
from crfkit.structures import ChainPotentials

# Mass that is no more than what rounding leaves is none.
NO_MASS = 1e-13


class ChainMarginals:
    """Consistent marginals of one sequence: a point of the marginal polytope of a chain.

    Marginals of transitions that are not negative, and whose sums over either label are the
    marginals of the labels, belong to some distribution of the labellings (Taskar, Guestrin and
    Koller 2003, section 4). The one of the largest entropy among these is the Markov chain
    ``a(y) = prod_t mu_t(y_t, y_{t+1}) / prod_{0 < t < T - 1} mu_t(y_t)``. At first, all mass is on
    given labels. `node`, (T, K), is that of labels, `edge`, (T - 1, K, K), that of transitions.
    """

    def __init__(self, labels: CodeArray, n_labels: int) -> None:
        size = len(labels)
        self.node = np.zeros((size, n_labels))
        self.edge = np.zeros((max(size - 1, 0), n_labels, n_labels))
        self._tokens = np.arange(size)
        self._add(labels, 1.0)

    def probability(self, labels: CodeArray) -> float:
        """Return the mass of a labelling under the distribution of the largest entropy."""
        nodes, edges = self._on_path(labels)
        if not len(edges):
            return float(np.prod(nodes))
        if edges.min() <= NO_MASS:
            return 0.0
        return float(edges[0] * np.prod(edges[1:] / nodes[1:-1]))

    def movable(self, target: CodeArray, source: CodeArray) -> float:
        """Return the largest mass that any distribution of these marginals lets move."""
        nodes, edges = self._on_path(source)
        differ = target != source
        held = np.append(nodes[differ], edges[differ[1:] | differ[:-1]])
        return float(held.min(initial=1.0))

    def shift(self, target: CodeArray, source: CodeArray, mass: float) -> None:
        """Move mass from the labelling `source` to `target`.

        Equation 48 of Gupta's report, with the step size that is missing there in print.
        """
        self._add(target, mass)
        self._add(source, -mass)

    def supported(self, scores: Potentials) -> Potentials:
        """Return scores of the same sequence that forbid what has no mass."""
        size = len(self.node)
        unary = scores.clamp(self.node > NO_MASS).unary
        pair = np.zeros((size, *self.edge.shape[1:]))
        table = scores.transition_index
        steps = scores.pair if len(table) == 1 else scores.pair[table[1:]]
        pair[1:] = np.where(self.edge > NO_MASS, steps, -np.inf)
        return ChainPotentials(unary, pair, np.arange(size, dtype=np.uint32), np.array([0, size]))

    def draw(self, random: np.random.RandomState) -> CodeArray:
        """Return a labelling, drawn from the distribution of the largest entropy."""
        labels = np.empty(len(self.node), np.int32)
        row = self.node[:1].reshape(-1)
        for t, point in enumerate(random.random_sample(len(labels))):
            if t:
                row = self.edge[t - 1, labels[t - 1]]
            mass = np.cumsum(row)
            labels[t] = min(np.searchsorted(mass, point * mass[-1], side="right"), len(row) - 1)
        return labels

    def _on_path(self, labels: CodeArray) -> tuple[FloatArray, FloatArray]:
        """Return the mass of each label, (T,), and of each transition, (T - 1,), of a labelling."""
        steps = self.edge[self._tokens[:-1], labels[:-1], labels[1:]]
        return self.node[self._tokens, labels], steps

    def _add(self, labels: CodeArray, mass: float) -> None:
        """Add mass to a labelling; what rounding leaves below 0 is 0."""
        nodes, edges = self._on_path(labels)
        self.node[self._tokens, labels] = np.maximum(nodes + mass, 0.0)
        self.edge[self._tokens[:-1], labels[:-1], labels[1:]] = np.maximum(edges + mass, 0.0)
