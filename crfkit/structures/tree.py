"""Rooted forests."""

from __future__ import annotations

from typing import ClassVar, NamedTuple, Self

import numpy as np

from crfkit._parallel import ThreadMap
from crfkit._types import CodeArray, Counts, FloatArray, IdArray, IntArray, Potentials
from crfkit.compiler.jit import frozen
from crfkit.data.forest import Forest
from crfkit.kernels.chain.arrays import ChainExponentials, ChainSums
from crfkit.kernels.chain.sum import UNDERFLOW
from crfkit.kernels.tree.arrays import TreeScores, TreeWorkspace
from crfkit.kernels.tree.by_hamming import (
    TreeErrors,
    tree_max_by_hamming,
    tree_path_at_hamming,
)
from crfkit.kernels.tree.hessian import (
    TreeDerivatives,
    TreeTangent,
    tree_hessian,
)
from crfkit.kernels.tree.max import (
    TreeLists,
    tree_add_counts,
    tree_k_best,
    tree_max,
    tree_score,
)
from crfkit.kernels.tree.sum import tree_sum, tree_sum_log
from crfkit.structures.base import OF_TOPOLOGY, Capability, Structure
from crfkit.structures.chain_tables import exp_tables, exp_unary, raise_if_dead


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

    @property
    def n_labels(self) -> int:
        """How many labels K a token may have."""
        return int(self.unary.shape[1])

    @property
    def n_codes(self) -> int:
        """How many codes a token may have: K."""
        return int(self.unary.shape[1])

    @property
    def is_dense(self) -> bool:
        """Whether each pair of labels has a score."""
        return True

    def take_tokens(self, tokens: IntArray, offsets: IntArray) -> Self:
        """Return the potentials of the chosen tokens, shape (n,), which are those of sequences."""
        index = self.transition_index
        return self._replace(
            unary=self.unary[tokens], offsets=offsets, first=0,
            transition_index=index[tokens] if len(index) > 1 else index,
            parent=self.parent[tokens], order=self.order[tokens],
        )  # fmt: skip

    def in_order(self, order: IntArray) -> Self:
        """Return the potentials with the labels in another order, shape (K,)."""
        return self._replace(unary=self.unary[:, order], pair=self.pair[:, order][:, :, order])


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
        }
    )

    def in_parallel(self, threads: ThreadMap) -> Tree:
        """Return the same structure: a forest is worked on by one thread."""
        return self

    def zeros(self, potentials: TreePotentials) -> Counts:
        """Return counts of 0 for the parts of `potentials`."""
        return Counts(np.zeros(potentials.unary.shape), np.zeros(potentials.pair.shape))

    def log_partition(
        self, potentials: TreePotentials, weight: FloatArray, out: Counts
    ) -> FloatArray:
        """Return log Z of each forest, shape (S,), and the expected counts of its parts.

        Parameters
        ----------
        potentials : TreePotentials
            Potentials of the parts of S forests.
        weight : ndarray of shape (S,)
            Factor of the expected counts of each forest.
        out : Counts
            The marginals replace ``out.unary``, expected transitions are added to ``out.pair``.

        Raises
        ------
        NoPathError
            If a forest has no labeling of finite score.
        """
        scores, raised, work = _scores(potentials), _exponentials(potentials), _work(potentials)
        sums = _outputs(potentials, out.unary)
        tree_sum(scores, raised, frozen(weight), work, sums)
        out.pair[...] += np.multiply(sums.flow, raised.factor, out=sums.flow)
        for s in np.flatnonzero(sums.status == UNDERFLOW).tolist():
            in_logs = sums._replace(flow=out.pair)  # no factor is left to be multiplied with
            sums.status[s] = tree_sum_log(scores, s, float(weight[s]), work, in_logs)
        raise_if_dead(potentials, sums.status)
        return sums.log_z

    def argmax(self, potentials: TreePotentials) -> tuple[CodeArray, FloatArray]:
        """Return the labels of the best labeling of each forest, shape (N,), and scores (S,).

        Raises
        ------
        NoPathError
            If a forest has no labeling of finite score.
        """
        count, labels = len(potentials.offsets) - 1, np.empty(len(potentials.unary), np.int32)
        value, status = np.empty(count), np.empty(count, np.int64)
        best = np.empty((_longest(potentials), potentials.n_labels))
        tree_max(_scores(potentials), best, labels, value, status)
        raise_if_dead(potentials, status)
        return labels, value

    def score(self, potentials: TreePotentials, labels: CodeArray) -> FloatArray:
        """Return the score of one labeling of each forest, shape (S,)."""
        value = np.empty(len(potentials.offsets) - 1)
        tree_score(_scores(potentials), frozen(labels), value)
        return value

    def add_counts(
        self, potentials: TreePotentials, labels: CodeArray, weight: FloatArray, out: Counts
    ) -> None:
        """Add `weight`, shape (S,), to the parts of one labeling of each forest."""
        tree_add_counts(_scores(potentials), frozen(labels), frozen(weight), *out)

    def hessian_product(
        self, potentials: TreePotentials, tangent: TreePotentials, weight: FloatArray, out: Counts
    ) -> None:
        """Differentiate the expected counts along a direction of the potentials.

        Parameters
        ----------
        potentials, tangent : TreePotentials
            Where, and the direction: finite, and of the same parts.
        weight : ndarray of shape (S,)
            Factor of each forest.
        out : Counts
            The derivatives of the marginals replace ``out.unary``, those of the expected
            transitions are added to ``out.pair``.

        Raises
        ------
        NoPathError
            If a forest has no labeling of finite score.
        """
        sums = _outputs(potentials, np.zeros_like(potentials.unary))
        direction = TreeTangent(frozen(tangent.unary), frozen(tangent.pair))
        mean = np.empty((_longest(potentials), potentials.n_labels))
        tree_hessian(
            _scores(potentials), _exponentials(potentials), direction, frozen(weight),
            _work(potentials), sums, TreeDerivatives(*out, mean),
        )  # fmt: skip
        raise_if_dead(potentials, sums.status)

    def k_best(self, potentials: TreePotentials, k: int) -> tuple[CodeArray, FloatArray]:
        """Return the k labelings of the largest scores of the only forest, and these scores.

        Parameters
        ----------
        potentials : TreePotentials
            Of one forest of T tokens.
        k : int
            How many, at most: there may be fewer of a finite score.

        Returns
        -------
        labels : ndarray of shape (n, T)
            Label codes, the best labeling first.
        value : ndarray of shape (n,)
            Their scores.

        Raises
        ------
        NoPathError
            If there is no labeling of finite score.
        """
        length, k = len(potentials.unary), int(k)
        shape = length + 1, potentials.n_labels, k
        labels, value = np.empty((k, length), np.int32), np.empty(k)
        places = np.empty((4, *shape), np.int64)
        lists = TreeLists(
            np.empty(shape), np.empty(shape), places[0], places[1], places[2], places[3],
            np.empty(k), np.empty(length + 1, np.int64),
        )  # fmt: skip
        tree_k_best(_scores(potentials), 0, length, lists, value, labels)
        found = value > -np.inf
        if not found.any():
            self.argmax(potentials)  # raises, and tells where
        return labels[found], value[found]

    def max_by_hamming(
        self, potentials: TreePotentials, labels: CodeArray, most: int | None = None
    ) -> FloatArray:
        """Return the largest score of each forest for each number of wrong labels.

        Parameters
        ----------
        potentials : TreePotentials
            Potentials of the parts of S forests.
        labels : ndarray of shape (N,)
            Label codes of all tokens: what is right.
        most : int, optional
            The last number, at least 1; it stands for all from it on. If not given, the number of
            tokens of the largest forest.

        Returns
        -------
        ndarray of shape (S, L)
            Scores of the best labelings with 0, 1, ..., ``L - 1`` wrong labels; ``-inf`` where
            there is none.
        """
        most = max(_longest(potentials) if most is None else most, 1)
        value = np.empty((len(potentials.offsets) - 1, most + 1))
        for s in range(len(value)):
            _by_hamming(potentials, s, labels, value[s], trace=False)
        return value

    def path_at_hamming(
        self,
        potentials: TreePotentials,
        labels: CodeArray,
        errors: IntArray,
        most: int | None = None,
    ) -> CodeArray:
        """Return the best labels of each forest with some number of wrong labels, shape (N,).

        Parameters
        ----------
        potentials, labels, most
            As for :meth:`max_by_hamming`.
        errors : ndarray of shape (S,)
            How many labels are to be wrong. 0 gives `labels`.

        Raises
        ------
        ValueError
            If a forest has no such labeling of finite score.
        """
        most, scores = max(_longest(potentials) if most is None else most, 1), _scores(potentials)
        path: CodeArray = np.array(labels, np.int32)
        for s in np.flatnonzero(errors > 0).tolist():
            value = np.empty(most + 1)
            found = _by_hamming(potentials, s, labels, value, trace=True)
            if value[errors[s]] == -np.inf:
                raise ValueError(
                    f"sequence {potentials.first + s}: no labeling of finite score has {errors[s]} "
                    "wrong labels."
                )
            begin, end = (int(at) for at in potentials.offsets[s : s + 2])
            tree_path_at_hamming(scores, begin, end, int(errors[s]), found, path)
        return path


def _scores(potentials: TreePotentials) -> TreeScores:
    """Return the potentials in arrays that kernels do not write to."""
    return TreeScores(
        frozen(potentials.unary), frozen(potentials.pair), frozen(potentials.transition_index),
        frozen(potentials.parent), frozen(potentials.order), frozen(potentials.offsets),
    )  # fmt: skip


def _exponentials(potentials: TreePotentials) -> ChainExponentials:
    """Return the exponentials of potentials, shifted so that the largest of each part is 1."""
    node, shift = exp_unary(potentials)
    roots = np.flatnonzero(potentials.parent < 0)
    factor, pair_shift = exp_tables(potentials.pair, potentials.transition_index, roots)
    transposed = np.ascontiguousarray(factor.transpose(0, 2, 1))
    arrays = node, shift, factor, transposed, pair_shift
    return ChainExponentials(*(frozen(array) for array in arrays))


def _outputs(potentials: TreePotentials, marginals: FloatArray) -> ChainSums:
    """Return room for sums."""
    count = len(potentials.offsets) - 1
    flow = np.zeros_like(potentials.pair)
    return ChainSums(marginals, flow, np.zeros(count), np.zeros(count, np.int64))


def _longest(potentials: TreePotentials) -> int:
    return int(np.diff(potentials.offsets).max(initial=0))


def _work(potentials: TreePotentials) -> TreeWorkspace:
    shape = _longest(potentials), potentials.n_labels
    return TreeWorkspace(np.empty(shape), np.empty(shape), np.empty((1, shape[1])))


def _by_hamming(
    potentials: TreePotentials, s: int, labels: CodeArray, value: FloatArray, *, trace: bool
) -> TreeErrors:
    """Write the largest score of a forest for each number of wrong labels."""
    begin, end = (int(at) for at in potentials.offsets[s : s + 2])
    last, rows = len(value) - 1, end - begin + 1
    shape = rows, potentials.n_labels, last + 1
    kept = np.empty((2, rows if trace else 0, *shape[1:]), np.int32)
    errors = TreeErrors(
        np.empty(shape), np.empty(rows, np.int64), np.empty(last + 1), np.empty(last + 1),
        kept[0], kept[1], np.empty(rows, np.int64),
    )  # fmt: skip
    tree_max_by_hamming(_scores(potentials), begin, end, frozen(labels), errors, value)
    return errors


OF_TOPOLOGY[Forest] = Tree()
