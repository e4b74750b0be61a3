"""The linear chain of which few transitions have a score."""

from __future__ import annotations

import math
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from crfkit._types import BoolArray, CodeArray, Counts, FloatArray, IdArray, IntArray, LabelReading
from crfkit.compiler.jit import frozen
from crfkit.kernels import sparse_chain as kernels
from crfkit.kernels.chain.conditionals import add_scored_neighbors, add_to_scored_neighbors
from crfkit.kernels.chain.copies import LabelCopies
from crfkit.kernels.chain.shares import add_scored_shares, score_scored_shares
from crfkit.kernels.chain.sum import UNDERFLOW
from crfkit.kernels.sparse_chain_log import sparse_sum_log
from crfkit.structures.base import Capability, Structure, raise_if_dead
from crfkit.structures.chain import Chain
from crfkit.structures.k_best import RankedCodes
from crfkit.structures.lattice import Lattice, chain_lattice
from crfkit.structures.posterior import Posterior
from crfkit.structures.potentials import ChainPotentials, exp_unary
from crfkit.structures.shares import add_share_of_labels, expected_scores

# A table of all pairs is faster than a list of more than this share of them, and takes less memory.
MOST_SCORED = 0.25


class SparseChain(Structure[ChainPotentials]):
    """A chain whose transitions all have the score 0, but for E given pairs of labels.

    Answers the same questions as :class:`Chain` in time ``O(T (K + E))`` instead of
    ``O(T K**2)``: the unscored transitions count as all minus the scored ones (Jeong, Lin and Lee
    2009, who tie those that were never seen in the same way). Where that difference would lose
    digits, its terms are added up one by one. A sequence whose scores are spread too far for the
    linear domain (some 460 nats) is computed again by sums of logarithms. The
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
    capabilities: ClassVar[frozenset[Capability]] = Chain.capabilities - {Capability.COVARIANCES}

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
        self._by_target = by_target = np.argsort(columns, kind="stable")
        self._pattern = kernels.SparsePattern(
            *_frozen_ids(np.searchsorted(rows, labels), columns),
            *_frozen_ids(np.searchsorted(columns[by_target], labels), rows[by_target]),
        )

    def log_partition(
        self, potentials: ChainPotentials, weight: FloatArray, out: Counts
    ) -> FloatArray:
        """Return log Z, and the expected counts: ``out.pair`` has the shape (1, E)."""
        node, shift = exp_unary(potentials)
        pair_shift = float(potentials.pair.max(initial=0.0))
        factor = np.exp(potentials.pair[0] - pair_shift)
        log_z, status = np.empty(len(weight)), np.empty(len(weight), np.int64)
        sums = kernels.SparseSums(out.unary, np.zeros_like(factor), log_z, status)
        arrays = self._arrays(potentials)
        kernels.sparse_sum(
            arrays,
            kernels.SparseExponentials(
                shift, frozen(factor), frozen(factor[self._by_target]), pair_shift,
                math.exp(-pair_shift),
            ),
            self._pattern,
            frozen(weight),
            kernels.SparseWorkspace(node.copy(), np.empty_like(shift), np.empty(self.n_labels)),
            sums,
        )  # fmt: skip
        out.pair[0] += np.multiply(sums.flow, factor, out=sums.flow)
        raise_if_dead(potentials, status)
        failed = np.flatnonzero(status == UNDERFLOW)
        if len(failed):
            norm, work = np.empty(len(shift)), np.empty((4, self.n_labels))
            in_logs = sums._replace(flow=out.pair[0])
            for s in failed.tolist():
                status[s] = sparse_sum_log(
                    arrays, s, self._pattern, frozen(weight), norm, work, in_logs
                )
            raise_if_dead(potentials, status)
        return log_z

    def _arrays(self, potentials: ChainPotentials) -> kernels.SparseScores:
        """Return the arrays of the potentials, as kernels read them."""
        pair = frozen(potentials.pair[0])
        return kernels.SparseScores(
            frozen(potentials.unary), pair, frozen(pair[self._by_target]),
            frozen(potentials.offsets),
        )  # fmt: skip

    def _filled_up(self, potentials: ChainPotentials) -> ChainPotentials:
        """Return the potentials of the dense chain that this one is."""
        pair = np.zeros((1, self.n_labels, self.n_labels))
        pair[0, self.source, self.target] = potentials.pair[0]
        return potentials._replace(pair=pair)

    def argmax(self, potentials: ChainPotentials) -> tuple[CodeArray, FloatArray]:
        """Return the labels of the best paths and their scores, exactly as :meth:`Chain.argmax`."""
        count = len(potentials.offsets) - 1
        labels = np.empty(len(potentials.unary), np.int32)
        value, status = np.empty(count), np.empty(count, np.int64)
        row_top = np.full(self.n_labels, -np.inf)
        np.maximum.at(row_top, self.source, potentials.pair[0])
        kernels.sparse_max(
            self._arrays(potentials), frozen(row_top), self._pattern,
            np.empty(potentials.unary.shape), labels, value, status,
        )  # fmt: skip
        raise_if_dead(potentials, status)
        return labels, value

    def score(self, potentials: ChainPotentials, labels: CodeArray) -> FloatArray:
        """Return the score of a path of each sequence, shape (S,)."""
        value = np.empty(len(potentials.offsets) - 1)
        kernels.sparse_score(self._arrays(potentials), self._pattern, frozen(labels), value)
        return value

    def add_counts(
        self, potentials: ChainPotentials, labels: CodeArray, weight: FloatArray, out: Counts
    ) -> None:
        """Add `weight`, shape (S,), to the parts on a path of each sequence."""
        kernels.sparse_add_path(
            self._pattern, frozen(potentials.offsets), frozen(labels), frozen(weight), out.unary,
            out.pair[0],
        )  # fmt: skip

    def restricted(
        self, potentials: ChainPotentials, steps: BoolArray, which: IntArray | None = None
    ) -> tuple[Structure, ChainPotentials]:
        """Return the chain without some steps: a dense one, where these are many."""
        size, scored = self.n_labels, self.source * self.n_labels + self.target
        forbidden = np.flatnonzero(~steps) if which is None else np.zeros(0, np.int64)
        if which is not None or len(scored) + len(forbidden) > MOST_SCORED * size**2:
            return Chain().restricted(self._filled_up(potentials), steps, which)
        keys = np.union1d(scored, forbidden)
        pair = np.zeros((1, len(keys)))
        pair[0, np.searchsorted(keys, scored)] = potentials.pair[0]
        pair[0, np.searchsorted(keys, forbidden)] = -np.inf
        return SparseChain(keys // size, keys % size, size), potentials._replace(pair=pair)

    def conditional_scores(self, potentials: ChainPotentials, labels: CodeArray) -> FloatArray:
        """Return the scores of the labels of each token, those of its neighbors given, (N, K)."""
        scores, arrays = potentials.unary.copy(), self._arrays(potentials)
        add_scored_neighbors(
            arrays.offsets, frozen(labels), arrays.pair, arrays.pair_in, self._pattern, scores
        )
        return scores

    def add_conditional_counts(
        self, potentials: ChainPotentials, labels: CodeArray, weight: FloatArray, out: Counts
    ) -> None:
        """Write the weights, (N, K), of `conditional_scores` as weights of their parts."""
        out.unary[...] = weight
        into, offsets = np.zeros_like(out.pair[0]), frozen(potentials.offsets)
        add_to_scored_neighbors(
            offsets, frozen(labels), frozen(weight), self._pattern, out.pair[0], into
        )
        out.pair[0, self._by_target] += into

    def expected_score(self, potentials: ChainPotentials, shares: FloatArray) -> FloatArray:
        """Return the expected score of independent labels, shape (S,)."""
        offsets = frozen(potentials.offsets)

        def score(unary: FloatArray, pair: FloatArray, out: FloatArray) -> None:
            score_scored_shares(offsets, frozen(shares), unary, frozen(pair[0]), self._pattern, out)

        return expected_scores(potentials, score)

    def add_expected_counts(
        self, potentials: ChainPotentials, shares: FloatArray, weight: FloatArray, out: Counts
    ) -> None:
        """Add the expected counts of independent labels, and of transitions between them."""
        add_share_of_labels(potentials, shares, weight, out)
        offsets = frozen(potentials.offsets)
        add_scored_shares(offsets, frozen(shares), frozen(weight), self._pattern, out.pair[0])

    def k_best(self, potentials: ChainPotentials, k: int) -> RankedCodes:
        """Return the k best paths of each sequence, as of a dense chain."""
        return Chain().k_best(self._filled_up(potentials), k)

    def span_probabilities(
        self,
        potentials: ChainPotentials,
        reading: LabelReading,
        start: IntArray,
        stop: IntArray,
        type: IntArray,
    ) -> FloatArray:
        """Return the probability of each span, as of a dense chain."""
        dense = self._filled_up(potentials)
        return Chain().span_probabilities(dense, reading, start, stop, type)

    def likely_spans(
        self, potentials: ChainPotentials, reading: LabelReading, threshold: float
    ) -> tuple[IntArray, IntArray, IntArray, FloatArray]:
        """Return the spans of at least some probability, as of a dense chain."""
        return Chain().likely_spans(self._filled_up(potentials), reading, threshold)

    def sample(self, potentials: ChainPotentials, uniforms: FloatArray) -> CodeArray:
        """Return paths drawn from their distribution, as of a dense chain, shape (n, N)."""
        return Chain().sample(self._filled_up(potentials), uniforms)

    def entropy(self, potentials: ChainPotentials) -> FloatArray:
        """Return the entropy of the paths of each sequence, as of a dense chain, shape (S,)."""
        return Chain().entropy(self._filled_up(potentials))

    def max_by_hamming(
        self, potentials: ChainPotentials, labels: CodeArray, most: int | None = None
    ) -> FloatArray:
        """Return the largest scores by numbers of wrong labels, as of a dense chain."""
        return Chain().max_by_hamming(self._filled_up(potentials), labels, most)

    def path_at_hamming(
        self,
        potentials: ChainPotentials,
        labels: CodeArray,
        errors: IntArray,
        most: int | None = None,
    ) -> CodeArray:
        """Return the best labels with numbers of wrong ones, as of a dense chain."""
        return Chain().path_at_hamming(self._filled_up(potentials), labels, errors, most)

    def with_copies(
        self, potentials: ChainPotentials, copies: LabelCopies
    ) -> tuple[Structure, ChainPotentials]:
        """Return the dense chain over copies of labels, and its potentials."""
        return Chain().with_copies(self._filled_up(potentials), copies)

    def add_copied_counts(
        self, potentials: ChainPotentials, copies: LabelCopies, found: Counts, out: Counts
    ) -> None:
        """Write weights of the parts of `with_copies` as those of labels and scored transitions."""
        dense = Counts(out.unary, np.zeros((1, self.n_labels, self.n_labels)))
        Chain().add_copied_counts(potentials, copies, found, dense)
        out.pair[0] += dense.pair[0, self.source, self.target]

    def argmax_of_copies(
        self, potentials: ChainPotentials, copies: LabelCopies
    ) -> tuple[CodeArray, FloatArray]:
        """Return the best paths of copies of labels and their scores, as of a dense chain."""
        return Chain().argmax_of_copies(self._filled_up(potentials), copies)

    def lattice(self, potentials: ChainPotentials) -> Lattice:
        """Return the labelings of the only sequence as paths of the graph of a dense chain."""
        return chain_lattice(self._filled_up(potentials))

    def posterior(self, potentials: ChainPotentials) -> Posterior:
        """Return the distribution of the label of each token, as of a dense chain."""
        dense = self._filled_up(potentials)
        return _SparsePosterior(Chain().posterior(dense), self.source, self.target, dense.pair)

    def hessian_product(
        self, potentials: ChainPotentials, tangent: ChainPotentials, weight: FloatArray, out: Counts
    ) -> None:
        """Differentiate the expected counts along a direction, as of a dense chain."""
        dense = self._filled_up(potentials)
        moved = Counts(out.unary, np.zeros_like(dense.pair))
        Chain().hessian_product(dense, self._filled_up(tangent), weight, moved)
        out.pair[0] += moved.pair[0, self.source, self.target]


class _SparsePosterior(Posterior):
    """What is known of the labels of a dense chain, of whose transitions few have a score."""

    def __init__(
        self, dense: Posterior, source: IntArray, target: IntArray, pair: FloatArray
    ) -> None:
        self._dense, self._source, self._target, self._pair = dense, source, target, pair
        self.log_z, self.marginals = dense.log_z, dense.marginals

    def log_probability(self, tokens: IntArray, codes: IntArray) -> FloatArray:
        """Return the logarithms of probabilities of labels at tokens."""
        return self._dense.log_probability(tokens, codes)

    def pull_back(self, slopes: FloatArray, out: Counts) -> None:
        """Write the gradient of a function of the marginals."""
        moved = Counts(out.unary, np.zeros_like(self._pair))
        self._dense.pull_back(slopes, moved)
        out.pair[0] += moved.pair[0, self._source, self._target]


def _frozen_ids(ptr: IntArray, ids: IntArray) -> tuple[IdArray, IdArray]:
    return frozen(ptr.astype(np.uint32)), frozen(ids.astype(np.uint32))
