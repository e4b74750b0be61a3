"""The linear chain of which few transitions have a score."""

from __future__ import annotations

import math
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from crfkit._parallel import ThreadMap
from crfkit._types import (
    CodeArray,
    Counts,
    FloatArray,
    IdArray,
    IntArray,
)
from crfkit.compiler.jit import frozen
from crfkit.kernels import sparse_chain as kernels
from crfkit.kernels.chain import sum as dense_kernels
from crfkit.structures.base import Capability, Structure
from crfkit.structures.chain import Chain
from crfkit.structures.chain_tables import as_kernel_input, raise_if_dead
from crfkit.structures.potentials import ChainPotentials


class SparseChain(Structure[ChainPotentials]):
    """A chain whose transitions all have the score 0, but for E given pairs of labels.

    Answers the same questions as :class:`Chain` in time ``O(T (K + E))`` instead of
    ``O(T K**2)``: the unscored transitions count as all minus the scored ones (Jeong, Lin and Lee
    2009, who tie those that were never seen in the same way). Where that difference would lose
    digits, its terms are added up one by one. A sequence whose scores are spread too far for the
    linear domain (some 460 nats) is computed again as a dense chain by sums of logarithms. The
    best path is that of :class:`Chain` to the last bit; transitions that cannot be part of it are
    left out by the bound of Esposito and Radicioni (2009).

    The pair scores, ``Potentials.pair``, have the shape (1, E).

    Parameters
    ----------
    source, target : array of shape (E,)
        The pairs of labels that have a score, sorted by source, then target.
    n_labels : int
        K.

    Raises
    ------
    ValueError
        If the pairs are not sorted, occur twice, or are no labels.
    """

    potentials = ChainPotentials
    capabilities: ClassVar[frozenset[Capability]] = Chain.capabilities

    def __init__(self, source: ArrayLike, target: ArrayLike, n_labels: int) -> None:
        rows, columns = np.asarray(source, np.int64), np.asarray(target, np.int64)
        labels = np.arange(n_labels + 1)
        keys = rows * n_labels + columns
        inside = (rows >= 0) & (rows < n_labels) & (columns >= 0) & (columns < n_labels)
        if not inside.all() or np.any(np.diff(keys) <= 0):
            raise ValueError(
                f"the pairs of labels must be numbers below {n_labels}, sorted by source and "
                "target, each once."
            )
        self.n_labels = n_labels
        self.source, self.target = rows, columns
        self._by_target = np.argsort(columns, kind="stable")
        by_target = self._by_target
        self._pattern = kernels.SparsePattern(
            *_frozen_ids(np.searchsorted(rows, labels), columns),
            *_frozen_ids(np.searchsorted(columns[by_target], labels), rows[by_target]),
        )

    def in_parallel(self, threads: ThreadMap) -> SparseChain:
        """Return itself: a sequence is worked on by one thread."""
        return self

    def zeros(self, scores: ChainPotentials) -> Counts:
        """Return zero weights for the parts of `scores`."""
        return Counts(np.zeros(scores.unary.shape), np.zeros(scores.pair.shape))

    def log_partition(self, scores: ChainPotentials, weight: FloatArray, out: Counts) -> FloatArray:
        """Return log Z and expected counts, ``out.pair`` of shape (1, E), as `Chain` does.

        Raises
        ------
        NoPathError
            If a sequence has no path of finite score.
        """
        scores = as_kernel_input(scores)
        node, shift = np.empty_like(scores.unary), np.empty(len(scores.unary))
        dense_kernels.chain_shift(scores.unary, node, shift)
        np.exp(node, out=node)
        pair_shift = float(scores.pair.max(initial=0.0))
        factor = np.exp(scores.pair[0] - pair_shift)
        log_z, status = np.empty(len(weight)), np.empty(len(weight), np.int64)
        sums = kernels.SparseSums(out.unary, np.zeros_like(factor), log_z, status)
        kernels.sparse_sum(
            self._arrays(scores),
            kernels.SparseExponentials(
                frozen(shift), frozen(factor), frozen(factor[self._by_target]), pair_shift,
                math.exp(-pair_shift),
            ),
            self._pattern,
            frozen(weight),
            kernels.SparseWorkspace(node, np.empty_like(shift), np.empty(self.n_labels)),
            sums,
        )  # fmt: skip
        out.pair[0] += np.multiply(sums.flow, factor, out=sums.flow)
        raise_if_dead(scores, status)
        for s in np.flatnonzero(status == dense_kernels.UNDERFLOW):
            log_z[s] = self._sum_dense(scores, int(s), weight[s], out)
        return log_z

    def _arrays(self, scores: ChainPotentials) -> kernels.SparseScores:
        """Return the arrays of the potentials, as kernels read them."""
        pair = scores.pair[0]
        return kernels.SparseScores(
            frozen(scores.unary), frozen(pair), frozen(pair[self._by_target]),
            frozen(scores.offsets),
        )  # fmt: skip

    def _sum_dense(self, scores: ChainPotentials, s: int, weight: float, out: Counts) -> float:
        """Sum one sequence as a dense chain."""
        begin, end = (int(place) for place in scores.offsets[s : s + 2])
        offsets = np.array([0, end - begin])
        one = ChainPotentials.of(scores.unary[begin:end], scores.pair, offsets, scores.first + s)
        dense = self._filled_up(one)
        expected = Counts(out.unary[begin:end], np.zeros_like(dense.pair))
        log_z = Chain().log_partition(dense, np.array([weight]), expected)
        out.pair[0] += expected.pair[0, self.source, self.target]
        return float(log_z[0])

    def _filled_up(self, scores: ChainPotentials) -> ChainPotentials:
        """Return the scores of the dense chain that this one is."""
        pair = np.zeros((1, self.n_labels, self.n_labels))
        pair[0, self.source, self.target] = scores.pair[0]
        return scores._replace(pair=pair)

    def argmax(self, scores: ChainPotentials) -> tuple[CodeArray, FloatArray]:
        """Return the labels of the best paths and their scores, exactly as :meth:`Chain.argmax`.

        Raises
        ------
        NoPathError
            If a sequence has no path of finite score.
        """
        scores = as_kernel_input(scores)
        count = len(scores.offsets) - 1
        labels = np.empty(len(scores.unary), np.int32)
        value, status = np.empty(count), np.empty(count, np.int64)
        row_top = np.full(self.n_labels, -np.inf)
        np.maximum.at(row_top, self.source, scores.pair[0])
        kernels.sparse_max(
            self._arrays(scores), frozen(row_top), self._pattern, np.empty_like(scores.unary),
            labels, value, status,
        )  # fmt: skip
        raise_if_dead(scores, status)
        return labels, value

    def score(self, scores: ChainPotentials, labels: CodeArray) -> FloatArray:
        """Return the score of the path of each sequence, shape (S,), as :meth:`Chain.score`."""
        scores = as_kernel_input(scores)
        value = np.empty(len(scores.offsets) - 1)
        kernels.sparse_score(self._arrays(scores), self._pattern, frozen(labels), value)
        return value

    def add_counts(
        self, scores: ChainPotentials, labels: CodeArray, weight: FloatArray, out: Counts
    ) -> None:
        """Add a weight to the parts on the path of each sequence, as :meth:`Chain.add_counts`."""
        kernels.sparse_add_path(
            self._pattern, frozen(scores.offsets), frozen(labels), frozen(weight), out.unary,
            out.pair[0],
        )  # fmt: skip

    def k_best(self, scores: ChainPotentials, k: int) -> tuple[CodeArray, FloatArray]:
        """Return the best labelings as :meth:`Chain.k_best`, of a dense chain.

        Raises
        ------
        NoPathError
            If there is no path of finite score.
        """
        return Chain().k_best(self._filled_up(scores), k)

    def max_by_hamming(
        self, scores: ChainPotentials, labels: CodeArray, most: int | None = None
    ) -> FloatArray:
        """Return the largest scores as :meth:`Chain.max_by_hamming`, of a dense chain."""
        return Chain().max_by_hamming(self._filled_up(scores), labels, most)

    def path_at_hamming(
        self, scores: ChainPotentials, labels: CodeArray, errors: IntArray, most: int | None = None
    ) -> CodeArray:
        """Return the labels of paths as :meth:`Chain.path_at_hamming`, of a dense chain.

        Raises
        ------
        ValueError
            If a sequence has no such labelling of finite score.
        """
        return Chain().path_at_hamming(self._filled_up(scores), labels, errors, most)

    def hessian_product(
        self, scores: ChainPotentials, tangent: ChainPotentials, weight: FloatArray, out: Counts
    ) -> None:
        """Differentiate the expected counts as :meth:`Chain.hessian_product`, on a dense chain.

        Raises
        ------
        NoPathError
            If a sequence has no path of finite score.
        """
        dense = self._filled_up(scores)
        moved = Counts(out.unary, np.zeros_like(dense.pair))
        Chain().hessian_product(dense, self._filled_up(tangent), weight, moved)
        out.pair[0] += moved.pair[0, self.source, self.target]


def _frozen_ids(ptr: IntArray, ids: IntArray) -> tuple[IdArray, IdArray]:
    return frozen(ptr.astype(np.uint32)), frozen(ids.astype(np.uint32))
