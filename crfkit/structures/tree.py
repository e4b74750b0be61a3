"""Rooted forests."""

from __future__ import annotations

from typing import ClassVar, NamedTuple, Self

import numpy as np

from crfkit._types import BoolArray, CodeArray, Counts, FloatArray, IdArray, IntArray, Potentials
from crfkit.compiler.jit import frozen
from crfkit.data.forest import Forest
from crfkit.kernels.chain.arrays import ChainExponentials, ChainSums, TransitionRows
from crfkit.kernels.chain.sum import OK, UNDERFLOW
from crfkit.kernels.tree import max as kernels
from crfkit.kernels.tree.hessian import tree_hessian
from crfkit.kernels.tree.sample import tree_entropy, tree_sample
from crfkit.kernels.tree.sum import TreeScores, TreeWorkspace, tree_sum, tree_sum_log
from crfkit.structures.base import (
    OF_TOPOLOGY,
    Capability,
    Structure,
    longest,
    most_errors,
    raise_if_dead,
    too_many_errors,
)
from crfkit.structures.conditionals import add_to_neighbor_scores, neighbor_scores
from crfkit.structures.k_best import RankedCodes, empty_paths, labelings_at_most, ranked
from crfkit.structures.posterior import Posterior
from crfkit.structures.potentials import (
    ChainPotentials,
    exp_tables,
    exp_unary,
    restricted_tables,
    rows_before,
    table_losses,
    transposed,
)
from crfkit.structures.samples import are_small, as_uniforms
from crfkit.structures.shares import add_expected_paths, expected_path_scores


class _TreeArrays(NamedTuple):
    unary: FloatArray
    pair: FloatArray
    transition_index: IdArray
    offsets: IntArray
    first: int
    parent: IntArray
    order: IntArray


class TreePotentials(_TreeArrays, Potentials):
    """Potentials of rooted forests (:class:`Tree`).

    As :class:`crfkit.structures.ChainPotentials`, but that a transition leads into a token from its
    parent: axis 1 of `pair` is the label of the parent. `parent` and `order`, shape (N,), are those
    of :class:`crfkit.data.Forest`.
    """

    __slots__ = ()

    n_labels = ChainPotentials.n_labels
    n_codes = ChainPotentials.n_codes
    is_dense = ChainPotentials.is_dense
    in_order = ChainPotentials.in_order

    def take_tokens(self, tokens: IntArray, offsets: IntArray) -> Self:
        """Return the potentials of the chosen tokens, shape (n,), which are those of sequences."""
        taken = ChainPotentials.take_tokens(self, tokens, offsets)
        return taken._replace(parent=self.parent[tokens], order=self.order[tokens])


class Tree(Structure[TreePotentials]):
    """A label at each token of a forest, scores of labels and of pairs of them with the parent's.

    Sums are computed from the leaves to the roots and back (belief propagation, which is exact on
    trees: Pearl 1988, section 4.3) in time ``O(T K**2)``, without recursion, in the linear domain;
    a forest whose scores are spread too far for that is summed again in logarithms, so that
    the result is exact for scores of any size. A path whose root is its first token has the
    distribution of :class:`Chain`. Of equal labels the lowest wins, the one of the parent first.
    """

    potentials = TreePotentials
    capabilities: ClassVar[frozenset[Capability]] = frozenset(
        {
            Capability.HESSIAN_PRODUCT,
            Capability.K_BEST,
            Capability.ARGMAX_BY_HAMMING,
            Capability.POSTERIOR,
            Capability.CONDITIONALS,
            Capability.SHARES,
            Capability.SAMPLE,
            Capability.ENTROPY,
        }
    )

    def log_partition(
        self, potentials: TreePotentials, weight: FloatArray, out: Counts
    ) -> FloatArray:
        """Return log Z, and the expected counts of labels and transitions."""
        scores, raised, work, sums = _arrays(potentials, out.unary)
        tree_sum(scores, raised, frozen(weight), work, sums)
        out.pair[...] += np.multiply(sums.flow, raised.factor, out=sums.flow)
        in_logs = sums._replace(flow=out.pair)  # no factor is left to be multiplied with
        for s in np.flatnonzero(sums.status == UNDERFLOW).tolist():
            sums.status[s] = tree_sum_log(scores, s, float(weight[s]), work, in_logs)
        raise_if_dead(potentials, sums.status)
        return sums.log_z

    def argmax(self, potentials: TreePotentials) -> tuple[CodeArray, FloatArray]:
        """Return the labels of the best labeling of each forest, shape (N,), and scores (S,)."""
        count, labels = len(potentials.offsets) - 1, np.empty(len(potentials.unary), np.int32)
        value, status = np.empty(count), np.empty(count, np.int64)
        best = np.empty((longest(potentials), potentials.n_labels))
        kernels.tree_max(tree_scores(potentials), best, labels, value, status)
        raise_if_dead(potentials, status)
        return labels, value

    def score(self, potentials: TreePotentials, labels: CodeArray) -> FloatArray:
        """Return the score of one labeling of each forest, shape (S,)."""
        value = np.empty(len(potentials.offsets) - 1)
        kernels.tree_score(tree_scores(potentials), frozen(labels), value)
        return value

    def add_counts(
        self, potentials: TreePotentials, labels: CodeArray, weight: FloatArray, out: Counts
    ) -> None:
        """Add `weight`, shape (S,), to the parts of one labeling of each forest."""
        kernels.tree_add_counts(tree_scores(potentials), frozen(labels), frozen(weight), *out)

    def posterior(self, potentials: TreePotentials) -> Posterior:
        """Return the distribution of the label of each token."""
        from crfkit.structures.tree_posterior import TreePosterior

        return TreePosterior(self, potentials)

    def hessian_product(
        self, potentials: TreePotentials, tangent: TreePotentials, weight: FloatArray, out: Counts
    ) -> None:
        """Differentiate the expected counts along a direction of the potentials."""
        scores, raised, work, sums = _arrays(potentials, np.empty(potentials.unary.shape))
        tree_hessian(scores, raised, tree_scores(tangent), frozen(weight), work, sums, out)
        raise_if_dead(potentials, sums.status)

    def restricted(
        self, potentials: TreePotentials, steps: BoolArray, which: IntArray | None = None
    ) -> tuple[Tree, TreePotentials]:
        """Return the tree, and potentials without some steps from parents to children."""
        pair, index = restricted_tables(*potentials[1:3], steps, which)
        return self, potentials._replace(pair=pair, transition_index=index)

    def conditional_scores(self, potentials: TreePotentials, labels: CodeArray) -> FloatArray:
        """Return the scores of labels, those of the parent and the children given, (N, K)."""
        return neighbor_scores(potentials, _rows(potentials), labels)

    def add_conditional_counts(
        self, potentials: TreePotentials, labels: CodeArray, weight: FloatArray, out: Counts
    ) -> None:
        """Write the weights, (N, K), of `conditional_scores` as weights of their parts."""
        add_to_neighbor_scores(_rows(potentials), labels, weight, out)

    def expected_score(self, potentials: TreePotentials, shares: FloatArray) -> FloatArray:
        """Return the expected score of independent labels, shape (S,)."""
        return expected_path_scores(potentials, _rows(potentials), shares)

    def add_expected_counts(
        self, potentials: TreePotentials, shares: FloatArray, weight: FloatArray, out: Counts
    ) -> None:
        """Add the expected counts of independent labels, and of pairs of them."""
        add_expected_paths(potentials, _rows(potentials), shares, weight, out)

    def k_best(self, potentials: TreePotentials, k: int) -> RankedCodes:
        """Return the k best labelings of each forest, and their scores, in time of lists of k."""
        most = labelings_at_most(potentials, k)
        length, found = longest(potentials), empty_paths(potentials, most)
        lists = _lists(length, potentials.n_labels, int(most.max(initial=1)))
        kernels.tree_k_best(tree_scores(potentials), lists, found)
        return ranked(self, potentials, found)

    def sample(self, potentials: TreePotentials, uniforms: FloatArray) -> CodeArray:
        """Return labelings drawn from the roots to the leaves, shape (n, N)."""
        from crfkit.structures.tree_posterior import LogTreePosterior

        scores, raised, work, sums = _arrays(potentials, np.empty(potentials.unary.shape))
        numbers = as_uniforms(potentials, uniforms)
        labels: CodeArray = np.empty(numbers.shape, np.int32)
        tree_sample(scores, raised, numbers, work, sums.log_z, labels, sums.status)
        raise_if_dead(potentials, sums.status)
        failed = sums.status == UNDERFLOW
        if failed.any():
            tokens = np.repeat(failed, np.diff(potentials.offsets))
            rest = LogTreePosterior(potentials.take(np.flatnonzero(failed)))
            labels[:, tokens] = rest.sample(numbers[:, tokens])
        return labels

    def entropy(self, potentials: TreePotentials) -> FloatArray:
        """Return the entropy of the labelings of each forest, shape (S,)."""
        from crfkit.structures.tree_posterior import LogTreePosterior

        scores, raised, work, sums = _arrays(potentials, np.empty(potentials.unary.shape))
        losses = transposed(table_losses(potentials.pair, raised.factor, raised.pair_shift))
        level = raised._replace(
            shift=frozen(np.zeros_like(raised.shift)),
            pair_shift=frozen(np.zeros_like(raised.pair_shift)),
        )
        work = work._replace(row=np.empty((2, potentials.n_labels)))
        entropy = np.zeros((2, len(sums.log_z)))
        tree_entropy(scores, level, raised.shift, losses, work, sums.log_z, entropy, sums.status)
        raise_if_dead(potentials, sums.status)
        again = are_small(potentials, entropy, sums.status == OK)
        if again.any():
            rest = LogTreePosterior(potentials.take(np.flatnonzero(again)))
            entropy[0, again] = rest.entropy()
        found: FloatArray = entropy[0]
        return found

    def max_by_hamming(
        self, potentials: TreePotentials, labels: CodeArray, most: int | None = None
    ) -> FloatArray:
        """Return the largest score of each forest for each number of wrong labels, (S, L)."""
        levels = most_errors(potentials, most) + 1
        value = np.empty((len(potentials.offsets) - 1, levels))
        for s in range(len(value)):
            value[s] = _lists_by_errors(potentials, s, levels, labels, traced=False).best[-1, 0]
        return value

    def path_at_hamming(
        self,
        potentials: TreePotentials,
        labels: CodeArray,
        errors: IntArray,
        most: int | None = None,
    ) -> CodeArray:
        """Return the best labels of each forest with some number of wrong labels, shape (N,)."""
        levels, path = most_errors(potentials, most) + 1, np.array(labels, np.int32)
        begin = potentials.offsets
        for s in np.flatnonzero(errors > 0).tolist():
            lists = _lists_by_errors(potentials, s, levels, labels)
            if lists.best[-1, 0, errors[s]] == -np.inf:
                raise too_many_errors(potentials, s, errors[s])
            kernels.tree_trace(
                tree_scores(potentials), s, int(errors[s]), lists, path, int(begin[s])
            )
        return path


def _rows(potentials: TreePotentials) -> TransitionRows:
    """Return a transition into each token from its parent."""
    begin = np.repeat(potentials.offsets[:-1], np.diff(potentials.offsets))
    return rows_before(potentials, np.where(potentials.parent < 0, -1, potentials.parent + begin))


def tree_scores(potentials: TreePotentials) -> TreeScores:
    """Return the potentials in arrays that kernels do not write to."""
    return TreeScores(
        frozen(potentials.unary), frozen(potentials.pair), frozen(potentials.transition_index),
        frozen(potentials.parent), frozen(potentials.order), frozen(potentials.offsets),
    )  # fmt: skip


def tree_exponentials(potentials: TreePotentials) -> ChainExponentials:
    """Return the exponentials of the scores, as kernels read them."""
    node, shift = exp_unary(potentials)
    roots = np.flatnonzero(potentials.parent < 0)
    factor, pair_shift = exp_tables(potentials.pair, potentials.transition_index, roots)
    return ChainExponentials(node, shift, factor, transposed(factor), pair_shift)


def _arrays(
    potentials: TreePotentials, marginals: FloatArray
) -> tuple[TreeScores, ChainExponentials, TreeWorkspace, ChainSums]:
    """Return what sums read: the scores and their exponentials; and what they write."""
    raised = tree_exponentials(potentials)
    size, count, factor = potentials.n_labels, len(potentials.offsets) - 1, raised.factor
    inside, message, mean = np.empty((3, longest(potentials), size))
    work = TreeWorkspace(inside, message, mean, np.empty((1, size)))
    sums = ChainSums(marginals, np.zeros_like(factor), np.zeros(count), np.zeros(count, np.int64))
    return tree_scores(potentials), raised, work, sums


def _lists_by_errors(
    potentials: TreePotentials, s: int, n: int, truth: CodeArray, traced: bool = True
) -> kernels.TreeLists:
    """Return the best labelings of a forest by their errors."""
    length = int(np.diff(potentials.offsets)[s])
    lists = _lists(length, potentials.n_labels, n, traced)
    kernels.tree_lists(tree_scores(potentials), s, frozen(truth), True, lists)
    return lists


def _lists(length: int, size: int, n: int, traced: bool = True) -> kernels.TreeLists:
    """Return room for n labelings of each subtree of forests of so many tokens at most."""
    labels, joined = np.empty((2, length if traced else 0, size, n), np.int64)
    tokens, chosen = np.empty((2, length + 1), np.int64)
    return kernels.TreeLists(
        np.empty((length + 1, size, n)), np.empty((1, size, n)), np.empty(n),
        tokens, labels, joined, chosen,
    )  # fmt: skip


OF_TOPOLOGY[Forest] = Tree()
