"""The linear chain."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from crfkit._parallel import ThreadMap
from crfkit._types import CodeArray, Counts, FloatArray, IntArray
from crfkit.compiler.jit import frozen
from crfkit.kernels.chain import max as chain_path
from crfkit.kernels.chain import sum as kernels
from crfkit.kernels.chain.arrays import (
    ChainExponentials,
    ChainSums,
    ChainWorkspace,
)
from crfkit.kernels.chain.by_hamming import NONE, chain_level_path, chain_max_by_hamming
from crfkit.kernels.chain.hessian import (
    CountDerivatives,
    LogTangentWorkspace,
    TangentFactors,
    TangentWorkspace,
    chain_hessian,
    chain_hessian_log,
)
from crfkit.kernels.chain.k_best import chain_n_best
from crfkit.structures.base import Capability, NoPathError, Structure
from crfkit.structures.chain_tables import (
    as_kernel_input,
    chain_arrays,
    exp_pair,
    exp_unary,
    raise_if_dead,
)
from crfkit.structures.interleaved import sum_interleaved
from crfkit.structures.long_chain import best_in_blocks, is_long, score_in_blocks, sum_in_blocks
from crfkit.structures.potentials import ChainPotentials

# Short sequences of about so many tokens are worked on together.
TOGETHER = 96

# What finding a path with many wrong labels may take.
MOST_LEVEL_BYTES = 4 << 30


class Chain(Structure[ChainPotentials]):
    """A label at each token, a score for each label and for each transition to the next one.

    Sums are computed by the scaled forward-backward recurrence of Rabiner (1989) in the linear
    domain. A sequence whose scores are spread too far for it (some 460 nats) is computed
    again by sums of logarithms, so that the result is exact for scores of any size. Scores of
    ``-inf`` are real: what they forbid has probability 0. The best path is Viterbi's (1967), and
    among equal ones the one whose last label is lowest, then the one before, and so on.

    With threads, one long sequence is worked on in blocks
    (:func:`crfkit.structures.long_chain.sum_in_blocks`), and many short ones are summed side by
    side, which is faster with few labels; the last bit of a sum may then depend on the other
    sequences of the batch, but never on the number of threads.

    Parameters
    ----------
    threads : ThreadMap, optional
        An open pool that the sequences have to themselves.
    """

    potentials = ChainPotentials
    is_chain: ClassVar[bool] = True
    capabilities: ClassVar[frozenset[Capability]] = frozenset(
        {
            Capability.HESSIAN_PRODUCT,
            Capability.K_BEST,
            Capability.ARGMAX_BY_HAMMING,
            Capability.PREFIXES,
        }
    )

    def __init__(self, threads: ThreadMap | None = None) -> None:
        self.threads = threads

    def in_parallel(self, threads: ThreadMap) -> Chain:
        """Return the chain for data that have all threads of an open pool to themselves."""
        return Chain(threads)

    def zeros(self, scores: ChainPotentials) -> Counts:
        """Return zero weights for the parts of `scores`."""
        return Counts(np.zeros(scores.unary.shape), np.zeros(scores.pair.shape))

    def log_partition(self, scores: ChainPotentials, weight: FloatArray, out: Counts) -> FloatArray:
        """Return log Z of each sequence and the expected counts of its parts.

        Parameters
        ----------
        scores : ChainPotentials
            Potentials of the parts of S sequences.
        weight : ndarray of shape (S,)
            Factor of the expected counts of each sequence.
        out : Counts
            The expected unary counts (label marginals) replace ``out.unary``, the expected
            transitions are added to ``out.pair``.

        Returns
        -------
        ndarray of shape (S,)
            The logarithm of the sum of ``exp(score)`` over all paths; 0 for an empty sequence.

        Raises
        ------
        NoPathError
            If a sequence has no path of finite score.
        """
        scores, weight = as_kernel_input(scores), frozen(weight)
        if self.threads is not None and is_long(scores):
            return sum_in_blocks(Chain(), scores, weight, out, self.threads)
        factor, pair_shift = (frozen(array) for array in exp_pair(scores))
        flow, log_z = np.zeros_like(scores.pair), np.zeros(len(weight))
        status = np.full(len(weight), kernels.OK)
        left = None
        if self.threads is not None:
            left = sum_interleaved(scores, factor, pair_shift, weight, out.unary, flow, log_z)
        if left is None:  # by length, because neighbors are summed side by side
            left = np.argsort(np.diff(scores.offsets), kind="stable")
        if len(left):
            node, shift = exp_unary(scores)
            kernels.chain_sum(
                chain_arrays(scores),
                ChainExponentials(node, shift, factor, transposed(factor), pair_shift),
                frozen(left),
                weight,
                chain_workspace(scores),
                ChainSums(out.unary, flow, log_z, status),
            )
        out.pair[...] += np.multiply(flow, factor, out=flow)
        if status.max(initial=kernels.OK) != kernels.OK or status.min(initial=0) != kernels.OK:
            raise_if_dead(scores, status)
            for s in np.flatnonzero(status == kernels.UNDERFLOW):
                log_z[s] = self._sum_log(scores, int(s), weight[s], out)
        return log_z

    def _sum_log(self, scores: ChainPotentials, s: int, weight: float, out: Counts) -> float:
        """Sum one sequence in the log domain."""
        count, (length, size) = len(scores.offsets) - 1, scores.unary.shape
        sums = ChainSums(out.unary, out.pair, np.empty(count), np.empty(count, np.int64))
        position = kernels.chain_sum_log(
            chain_arrays(scores),
            s,
            frozen(np.full(count, weight)),
            np.empty(length),
            np.empty((3, size)),
            sums,
        )
        if position >= 0:
            raise NoPathError(scores.first + s, position - int(scores.offsets[s]))
        return float(sums.log_z[s])

    def argmax(self, scores: ChainPotentials) -> tuple[CodeArray, FloatArray]:
        """Return the labels of the best path of each sequence and its score.

        Parameters
        ----------
        scores : ChainPotentials
            Potentials of the parts of S sequences.

        Returns
        -------
        labels : ndarray of shape (N,)
            Label codes.
        value : ndarray of shape (S,)
            Score of the path; 0 for an empty sequence.

        Raises
        ------
        NoPathError
            If a sequence has no path of finite score.
        """
        scores = as_kernel_input(scores)
        if self.threads is not None and is_long(scores):
            return best_in_blocks(Chain(), scores, self.threads)
        count = len(scores.offsets) - 1
        labels = np.empty(len(scores.unary), np.int32)
        value, status = np.empty(count), np.empty(count, np.int64)
        chain_path.chain_max(
            chain_arrays(scores), np.empty_like(scores.unary), labels, value, status
        )
        raise_if_dead(scores, status)
        return labels, value

    def score(self, scores: ChainPotentials, labels: CodeArray) -> FloatArray:
        """Return the score of the path of each sequence.

        Parameters
        ----------
        scores : ChainPotentials
            Potentials of the parts of S sequences.
        labels : ndarray of shape (N,)
            Label codes of all tokens.

        Returns
        -------
        ndarray of shape (S,)
            Sum of the scores of the parts on the path; ``-inf`` for a forbidden path.
        """
        scores = as_kernel_input(scores)
        if self.threads is not None and is_long(scores):
            return score_in_blocks(Chain(), scores, labels, self.threads)
        value = np.empty(len(scores.offsets) - 1)
        chain_path.chain_score(chain_arrays(scores), frozen(labels), value)
        return value

    def add_counts(
        self, scores: ChainPotentials, labels: CodeArray, weight: FloatArray, out: Counts
    ) -> None:
        """Add a weight to the parts on the path of each sequence.

        Parameters
        ----------
        scores : ChainPotentials
            Tells the sequences; the scores themselves are not read.
        labels : ndarray of shape (N,)
            Label codes of all tokens.
        weight : ndarray of shape (S,)
            What is added to each part on the path of a sequence.
        out : Counts
            Added to.
        """
        chain_path.chain_add_path(
            frozen(scores.transition_index), frozen(scores.offsets), frozen(labels), frozen(weight),
            out.unary, out.pair,
        )  # fmt: skip

    def k_best(self, scores: ChainPotentials, k: int) -> tuple[CodeArray, FloatArray]:
        """Return the labelings of the largest scores of the only sequence, and these scores.

        The list Viterbi algorithm (Seshadri and Sundberg 1994). Of equal scores, the lowest labels
        come first, from the last token on.

        Parameters
        ----------
        scores : ChainPotentials
            Of one sequence of T tokens.
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
            If there is no path of finite score.
        """
        (length, size), k = scores.unary.shape, int(k)
        shape, labels, value = (length, size, k), np.empty((k, length), np.int32), np.zeros(k)
        if not length:
            return labels[:1], value[:1]
        scores = as_kernel_input(scores)
        chain_n_best(
            chain_arrays(scores),
            np.empty(shape),
            np.empty(shape, np.int64),
            np.empty(k, np.int64),
            value,
            labels,
        )
        found = value > -np.inf
        if not found.any():
            self.argmax(scores)  # raises, and tells where
        return labels[found], value[found]

    def max_by_hamming(
        self, scores: ChainPotentials, labels: CodeArray, most: int | None = None
    ) -> FloatArray:
        """Return the largest score of each sequence for each number of wrong labels.

        In time ``O(T L K**2)`` a sequence.

        Parameters
        ----------
        scores : ChainPotentials
            Potentials of the parts of S sequences.
        labels : ndarray of shape (N,)
            Label codes of all tokens: what is right.
        most : int, optional
            The last number, at least 1; it stands for all from it on. If not given, the length of
            the longest sequence.

        Returns
        -------
        ndarray of shape (S, L)
            Potentials of the best labellings with 0, 1, ..., ``L - 1`` wrong labels; ``-inf`` where
            there is none.
        """
        scores, size = as_kernel_input(scores), scores.unary.shape[1]
        most = _most_errors(scores, most)
        value = np.empty((len(scores.offsets) - 1, most + 1))
        best = np.empty((2 * (most + 1), size))
        work = np.empty((1, size))
        chain_max_by_hamming(chain_arrays(scores), frozen(labels), work, best, value)
        return value

    def path_at_hamming(
        self, scores: ChainPotentials, labels: CodeArray, errors: IntArray, most: int | None = None
    ) -> CodeArray:
        """Return the labels of the best path of each sequence with some number of wrong labels.

        In memory of ``O(T E K)`` for the sequence with the most errors ``E``.

        Parameters
        ----------
        scores, labels, most
            As for :meth:`max_by_hamming`.
        errors : ndarray of shape (S,)
            How many labels are to be wrong. 0 gives `labels`.

        Returns
        -------
        ndarray of shape (N,)
            Label codes.

        Raises
        ------
        ValueError
            If a sequence has no such labelling of finite score, or is so long that the search
            would take more memory than ``MOST_LEVEL_BYTES``.
        """
        scores, size = as_kernel_input(scores), scores.unary.shape[1]
        path: CodeArray = np.empty(len(scores.unary), np.int32)
        rows = np.diff(scores.offsets) * np.where(errors > 0, errors + 2, 0)
        if int(rows.max(initial=0)) * size * 8 > MOST_LEVEL_BYTES:
            s = int(rows.argmax())
            raise ValueError(
                f"sequence {scores.first + s}: finding its labelling with {errors[s]} wrong labels "
                f"takes {rows[s] * size * 8 / 2**30:.1f} GiB, which grows with the square of its "
                "length. Cut it, or use margin rescaling."
            )
        status = np.empty(len(errors), np.int64)
        chain_level_path(
            chain_arrays(scores),
            frozen(labels),
            _most_errors(scores, most),
            frozen(errors),
            np.empty((1, size)),
            np.empty((int(rows.max(initial=0)), size)),
            path,
            status,
        )
        if (status == NONE).any():
            s = int(np.argmax(status == NONE))
            raise ValueError(
                f"sequence {scores.first + s}: no labelling of finite score has {errors[s]} wrong "
                "labels."
            )
        return path

    def hessian_product(
        self, scores: ChainPotentials, tangent: ChainPotentials, weight: FloatArray, out: Counts
    ) -> None:
        """Differentiate the expected counts along a direction of the scores.

        This is the product of the Hessian of log Z, summed, with that direction.

        Parameters
        ----------
        scores : ChainPotentials
            Potentials of the parts of S sequences.
        tangent : ChainPotentials
            The direction: finite, and of the same parts.
        weight : ndarray of shape (S,)
            Factor of each sequence.
        out : Counts
            The derivatives of the unary counts replace ``out.unary``, those of the transitions
            are added to ``out.pair``.

        Raises
        ------
        NoPathError
            If a sequence has no path of finite score.
        """
        scores, size = as_kernel_input(scores), scores.unary.shape[1]
        node, shift = exp_unary(scores)
        factor, _ = exp_pair(scores)
        slope = factor * tangent.pair
        derivatives = CountDerivatives(
            out.unary, np.zeros_like(factor), np.zeros_like(factor), np.empty(len(weight), np.int64)
        )
        chain_hessian(
            TangentFactors(node, frozen(factor), frozen(slope)),
            scores.transition_index,
            scores.offsets,
            frozen(weight),
            TangentWorkspace(
                tangent.unary.copy(), np.empty_like(node), np.empty_like(shift), np.empty((4, size))
            ),
            derivatives,
        )
        out.pair[...] += factor * derivatives.flow_slope + slope * derivatives.flow
        for s in np.flatnonzero(derivatives.status == kernels.UNDERFLOW):
            self._hessian_product_log(scores, tangent, int(s), float(weight[s]), out)

    def _hessian_product_log(
        self, scores: ChainPotentials, tangent: ChainPotentials, s: int, weight: float, out: Counts
    ) -> None:
        """Differentiate the counts of one sequence in the log domain."""
        length, size = scores.unary.shape
        work = LogTangentWorkspace(
            tangent.unary.copy(),
            np.empty((length, size)),
            np.empty((length, size)),
            np.empty(length),
            np.zeros((1, size)),
            np.zeros((1, size)),
            np.empty((2, size)),
            np.empty((2, size)),
        )
        position = chain_hessian_log(
            chain_arrays(scores), frozen(tangent.pair), s, weight, work, out.unary, out.pair
        )
        if position >= 0:
            raise NoPathError(scores.first + s, position - int(scores.offsets[s]))


def _most_errors(scores: ChainPotentials, most: int | None) -> int:
    longest = int(np.diff(scores.offsets).max(initial=0))
    return max(longest if most is None else most, 1)


def transposed(tables: FloatArray) -> FloatArray:
    """Return tables of transitions with the labels that these lead to first."""
    return frozen(np.ascontiguousarray(tables.transpose(0, 2, 1)))


def chain_workspace(scores: ChainPotentials) -> ChainWorkspace:
    """Return the workspace of the kernel ``chain_sum``."""
    longest, (length, size) = int(np.diff(scores.offsets).max(initial=0)), scores.unary.shape
    rows = max(min(2 * longest, length), TOGETHER)
    return ChainWorkspace(
        np.empty(length), np.empty((1, size)), np.empty((rows, size)), np.empty((rows, size))
    )
