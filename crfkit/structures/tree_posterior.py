"""What forests know of the labels of single tokens."""

from __future__ import annotations

import numpy as np

from crfkit._types import CodeArray, Counts, FloatArray, IntArray
from crfkit.compiler.jit import frozen
from crfkit.kernels.chain.posterior import SlopeSums
from crfkit.kernels.tree.posterior import TreeBeliefs, tree_beliefs_log, tree_pull_back_log
from crfkit.kernels.tree.pull_back import TreeSlopeRooms, tree_pull_back
from crfkit.kernels.tree.sample import tree_entropy_log, tree_sample_log
from crfkit.structures.base import longest, raise_if_dead
from crfkit.structures.posterior import Posterior
from crfkit.structures.summed_posterior import SummedPosterior
from crfkit.structures.tree import Tree, TreePotentials, tree_exponentials, tree_scores


class TreePosterior(SummedPosterior):
    """What is known of the labels of forests, by the sums of :class:`Tree`."""

    _potentials: TreePotentials

    def __init__(self, tree: Tree, potentials: TreePotentials) -> None:
        super().__init__(tree, potentials)

    def _carry(self, slopes: FloatArray, status: IntArray, unary: FloatArray) -> FloatArray:
        """Write the gradient to the unary scores; return that to the scores of transitions."""
        scores, raised = tree_scores(self._potentials), tree_exponentials(self._potentials)
        centered = _centered(slopes, self.marginals, unary)
        sums, size = SlopeSums(centered, np.zeros_like(raised.factor), status), slopes.shape[1]
        inside, message, share, measure, up = np.empty((5, longest(self._potentials), size))
        rooms = TreeSlopeRooms(inside, message, share, measure, up, np.empty((1, size)))
        tree_pull_back(scores, raised, self.marginals, rooms, sums)
        return np.multiply(sums.flow, raised.factor, out=sums.flow)

    def _in_logs(self, chosen: IntArray) -> Posterior:
        """Return what is known of some sequences by sums of logarithms."""
        return LogTreePosterior(self._potentials.take(chosen))


class LogTreePosterior(Posterior):
    """What is known of the labels of forests, by sums of logarithms."""

    def __init__(self, potentials: TreePotentials) -> None:
        count, shape = len(potentials.offsets) - 1, potentials.unary.shape
        self._scores, self._longest = tree_scores(potentials), longest(potentials)
        self.beliefs, row = TreeBeliefs(*np.empty((3, *shape))), np.empty((1, shape[1]))
        self.log_z, status = np.empty(count), np.empty(count, np.int64)
        for s in range(count):
            status[s] = tree_beliefs_log(self._scores, s, row, self.log_z, self.beliefs)
        raise_if_dead(potentials, status)
        self.marginals = frozen(np.exp(self.beliefs.marginal))

    def log_probability(self, tokens: IntArray, codes: IntArray) -> FloatArray:
        """Return the logarithms of probabilities of labels at tokens."""
        found: FloatArray = self.beliefs.marginal[tokens, codes]
        return found

    def sample(self, uniforms: FloatArray) -> CodeArray:
        """Return labelings, shape (n, N), given the numbers that choose them."""
        numbers, row = frozen(uniforms), np.empty((1, self.marginals.shape[1]))
        labels: CodeArray = np.empty(numbers.shape, np.int32)
        for s in range(len(self.log_z)):
            tree_sample_log(self._scores, s, self.beliefs, numbers, row, labels)
        return labels

    def entropy(self) -> FloatArray:
        """Return the entropy of the labelings of each forest, shape (S,)."""
        row, count = np.empty((1, self.marginals.shape[1])), len(self.log_z)
        each = [tree_entropy_log(self._scores, s, self.beliefs, row) for s in range(count)]
        return np.array(each, np.float64)

    def pull_back(self, slopes: FloatArray, out: Counts) -> None:
        """Write the gradient of a function of the marginals."""
        _centered(slopes, self.marginals, out.unary)
        up = np.empty((self._longest, slopes.shape[1]))
        for s in range(len(self.log_z)):
            tree_pull_back_log(self._scores, s, self.beliefs, up, out)


def _centered(slopes: FloatArray, marginals: FloatArray, out: FloatArray) -> FloatArray:
    """Write slopes without what they add up to, in rounding: it would be carried on."""
    np.multiply(marginals, -slopes.sum(axis=1, keepdims=True), out=out)
    out += slopes
    return out
