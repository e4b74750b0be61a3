"""The linear chain."""

from __future__ import annotations

from typing import ClassVar, NamedTuple

import numpy as np

from crfkit._parallel import LONG_TOKENS, ThreadMap
from crfkit._types import (
    BoolArray,
    CodeArray,
    Counts,
    FloatArray,
    IdArray,
    IntArray,
    LabelReading,
    ReadSpans,
)
from crfkit.compiler.jit import frozen
from crfkit.compiler.simd import WIDTH, padded
from crfkit.data.topology import tokens_before
from crfkit.kernels.chain.arrays import (
    ChainExponentials,
    ChainScores,
    ChainSums,
    ChainWorkspace,
    TransitionRows,
)
from crfkit.kernels.chain.by_hamming import NONE, chain_level_path, chain_max_by_hamming
from crfkit.kernels.chain.copies import LabelCopies
from crfkit.kernels.chain.covariances import CovarianceWorkspace, TokenFeatures, chain_covariances
from crfkit.kernels.chain.hessian import (
    CountDerivatives,
    TangentFactors,
    TangentWorkspace,
    chain_hessian,
)
from crfkit.kernels.chain.interleaved import FILLED, LACKING, TILE, LaneRooms, LaneTables, lanes_sum
from crfkit.kernels.chain.k_best import chain_k_best
from crfkit.kernels.chain.max import chain_add_path, chain_max, chain_score
from crfkit.kernels.chain.sum import OK, TINY, UNDERFLOW, chain_sum, chain_sum_log
from crfkit.structures.base import (
    Capability,
    NoPathError,
    Structure,
    longest,
    most_errors,
    raise_if_dead,
    too_many_errors,
)
from crfkit.structures.conditionals import add_to_neighbor_scores, neighbor_scores
from crfkit.structures.copies import (
    FEW_COPIES,
    TABLE_CELLS,
    add_copies_of_chain,
    best_copies,
    copied_chain,
)
from crfkit.structures.k_best import (
    RankedCodes,
    empty_lists,
    empty_paths,
    labelings_at_most,
    ranked,
)
from crfkit.structures.lattice import Lattice, chain_lattice
from crfkit.structures.long_chain import (
    best_in_blocks,
    entropy_in_blocks,
    score_in_blocks,
    sum_in_blocks,
)
from crfkit.structures.posterior import Posterior
from crfkit.structures.potentials import (
    ChainPotentials,
    chain_arrays,
    exp_pair,
    exp_unary,
    restricted_tables,
    rows_before,
    transposed,
)
from crfkit.structures.shares import add_expected_paths, expected_path_scores
from crfkit.structures.single_tokens import are_single, sum_single

# Short sequences of about so many tokens are worked on together.
TOGETHER = 96

# Covariances below this part of the largest that could be are left out.
LEAST_COVARIANCE = 1e-6
# Up to so many labels, all sequences of a batch are summed side by side; up to the second number,
# where a row of the table would leave so many lanes of vectors empty.
MAX_LABELS, MOST_LABELS, EMPTY = 20, 36, 3

# Tables of transitions are turned around where there are so many times more tokens.
FEW_TABLES = 8

# What finding a path with many wrong labels may take.
MOST_LEVEL_BYTES = 4 << 30


class RaisedTables(NamedTuple):
    """Exponentials of tables of transitions."""

    factor: FloatArray  # (M, K, K)
    shift: FloatArray  # (M,) the largest score of each, which they are divided by
    lanes: LaneTables | None  # the same for ``lanes_sum``, where that is used


class Chain(Structure[ChainPotentials]):
    """A label at each token, a score for each label and for each transition to the next one.

    Sums are computed by the scaled forward-backward recurrence of Rabiner (1989) in the linear
    domain. A sequence whose scores are spread too far for it (some 460 nats) is computed
    again by sums of logarithms, so that the result is exact for scores of any size. Scores of
    ``-inf`` are real: what they forbid has probability 0. The best path is Viterbi's (1967), and
    among equal ones the one whose last label is lowest, then the one before, and so on; the k best
    ones come in the same order, each found from those before (Soong and Huang 1991; see
    :mod:`crfkit.kernels.k_best`): little is computed for one more.

    Samples are drawn by forward filtering, backward sampling (Scott 2002); entropies are carried
    beside the forward recurrence (Hernando, Crespi and Cybenko 2005).

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
    _last: tuple[FloatArray, RaisedTables] | None = None  # what was last made of a table
    is_chain: ClassVar[bool] = True
    uses_threads: ClassVar[bool] = True
    capabilities: ClassVar[frozenset[Capability]] = frozenset(
        {
            Capability.HESSIAN_PRODUCT,
            Capability.K_BEST,
            Capability.ARGMAX_BY_HAMMING,
            Capability.PREFIXES,
            Capability.COVARIANCES,
            Capability.POSTERIOR,
            Capability.CONDITIONALS,
            Capability.SHARES,
            Capability.SPANS,
            Capability.SAMPLE,
            Capability.ENTROPY,
            Capability.COPIES,
        }
    )

    def __init__(self, threads: ThreadMap | None = None) -> None:
        self.threads = threads

    def log_partition(
        self, potentials: ChainPotentials, weight: FloatArray, out: Counts
    ) -> FloatArray:
        """Return log Z, and the expected counts of labels and transitions."""
        weight, scores = frozen(weight), chain_arrays(potentials)
        if self.threads is not None and _is_long(scores):
            return sum_in_blocks(Chain(), potentials, weight, out, self.threads)
        is_many = self.threads is not None and len(weight) == len(scores.unary)
        if is_many and are_single(potentials):
            return sum_single(potentials, weight, out.unary)
        factor, pair_shift, lanes = self._raised(potentials, scores)
        count, flow = len(weight), np.zeros_like(factor)
        sums = ChainSums(out.unary, flow, np.zeros(count), np.full(count, UNDERFLOW))
        if count and lanes is not None:
            rooms = lane_rooms(scores.offsets, scores.unary.shape[1])
            lanes_sum(scores, lanes, weight, rooms, sums)
        left = np.flatnonzero(sums.status != OK)
        if len(left):  # by length, because neighbors are summed together
            left = left[np.argsort(np.diff(scores.offsets)[left], kind="stable")]
            node, shift = exp_unary(scores)
            raised = ChainExponentials(node, shift, factor, transposed(factor), pair_shift)
            chain_sum(scores, raised, frozen(left), weight, chain_workspace(potentials), sums)
        out.pair[...] += np.multiply(flow, factor, out=flow)
        raise_if_dead(potentials, sums.status)
        failed = np.flatnonzero(sums.status == UNDERFLOW)
        if len(failed):
            size = scores.unary.shape[1]
            work, in_logs = np.empty((3, size)), sums._replace(flow=out.pair)
            norm = np.empty(len(scores.unary))
            for s in failed.tolist():
                sums.status[s] = chain_sum_log(scores, s, weight, norm, work, in_logs)
            raise_if_dead(potentials, sums.status)
        return sums.log_z

    def _raised(self, potentials: ChainPotentials, scores: ChainScores) -> RaisedTables:
        """Return the exponentials of the tables; those of the last one, if no other is given.

        The chunks of an evaluation share their table, which nobody can write to.
        """
        table, last = potentials.pair, self._last
        is_shared = len(scores.transition_index) == 1 and not table.flags.writeable
        if is_shared and last is not None and last[0] is table:
            return last[1]
        factor, shift = exp_pair(scores)
        fast = self.threads is not None and are_interleaved(scores.transition_index, factor)
        raised = RaisedTables(factor, shift, lane_tables(factor, shift) if fast else None)
        if is_shared:
            self._last = table, raised
        return raised

    def argmax(self, potentials: ChainPotentials) -> tuple[CodeArray, FloatArray]:
        """Return the labels of the best path of each sequence, shape (N,), and scores (S,)."""
        scores = chain_arrays(potentials)
        if self.threads is not None and _is_long(scores):
            return best_in_blocks(Chain(), potentials, self.threads)
        count = len(scores.offsets) - 1
        labels = np.empty(len(scores.unary), np.int32)
        value, status = np.empty(count), np.empty(count, np.int64)
        chain_max(scores, np.empty_like(scores.unary), labels, value, status)
        raise_if_dead(potentials, status)
        return labels, value

    def score(self, potentials: ChainPotentials, labels: CodeArray) -> FloatArray:
        """Return the score of a path of each sequence, shape (S,)."""
        scores = chain_arrays(potentials)
        if self.threads is not None and _is_long(scores):
            return score_in_blocks(Chain(), potentials, labels, self.threads)
        value = np.empty(len(scores.offsets) - 1)
        chain_score(scores, frozen(labels), value)
        return value

    def add_counts(
        self, potentials: ChainPotentials, labels: CodeArray, weight: FloatArray, out: Counts
    ) -> None:
        """Add `weight`, shape (S,), to the parts on a path of each sequence."""
        index, offsets = frozen(potentials.transition_index), frozen(potentials.offsets)
        chain_add_path(index, offsets, frozen(labels), frozen(weight), *out)

    def restricted(
        self, potentials: ChainPotentials, steps: BoolArray, which: IntArray | None = None
    ) -> tuple[Chain, ChainPotentials]:
        """Return the chain, and potentials without some steps."""
        pair, index = restricted_tables(*potentials[1:3], steps, which)
        return self, potentials._replace(pair=pair, transition_index=index)

    def conditional_scores(self, potentials: ChainPotentials, labels: CodeArray) -> FloatArray:
        """Return the scores of the labels of each token, those of its neighbors given, (N, K)."""
        return neighbor_scores(potentials, _rows(potentials), labels)

    def add_conditional_counts(
        self, potentials: ChainPotentials, labels: CodeArray, weight: FloatArray, out: Counts
    ) -> None:
        """Write the weights, (N, K), of `conditional_scores` as weights of their parts."""
        add_to_neighbor_scores(_rows(potentials), labels, weight, out)

    def expected_score(self, potentials: ChainPotentials, shares: FloatArray) -> FloatArray:
        """Return the expected score of independent labels, shape (S,)."""
        return expected_path_scores(potentials, _rows(potentials), shares)

    def add_expected_counts(
        self, potentials: ChainPotentials, shares: FloatArray, weight: FloatArray, out: Counts
    ) -> None:
        """Add the expected counts of independent labels, and of transitions between them."""
        add_expected_paths(potentials, _rows(potentials), shares, weight, out)

    def k_best(self, potentials: ChainPotentials, k: int) -> RankedCodes:
        """Return the labels of the k best paths of each sequence, and their scores."""
        most, scores = labelings_at_most(potentials, k), chain_arrays(potentials)
        rows, size = longest(potentials) + 1, potentials.n_labels
        few = len(scores.pair) * FEW_TABLES <= max(len(scores.unary), FEW_TABLES)
        back = np.zeros((len(scores.pair) if few else 0, size, padded(size)))
        back[:, :, :size] = scores.pair.transpose(0, 2, 1)[: len(back)]
        best, found = np.empty((rows, padded(size))), empty_paths(potentials, most)
        lists = empty_lists(potentials, most, rows, size)
        chain_k_best(scores, frozen(back), frozen(most), best, lists, found)
        return ranked(self, potentials, found)

    def span_probabilities(
        self,
        potentials: ChainPotentials,
        reading: LabelReading,
        start: IntArray,
        stop: IntArray,
        type: IntArray,
    ) -> FloatArray:
        """Return the probability of each span, shape (n,): a sum over the paths that have it."""
        from crfkit.structures.chain_spans import chain_span_probabilities

        return chain_span_probabilities(potentials, reading, ReadSpans(start, stop, type))

    def likely_spans(
        self, potentials: ChainPotentials, reading: LabelReading, threshold: float
    ) -> tuple[IntArray, IntArray, IntArray, FloatArray]:
        """Return the spans of at least some probability."""
        from crfkit.structures.chain_spans import likely_chain_spans

        return likely_chain_spans(potentials, reading, threshold)

    def sample(self, potentials: ChainPotentials, uniforms: FloatArray) -> CodeArray:
        """Return paths drawn from the last label to the first, shape (n, N)."""
        from crfkit.structures.chain_samples import sample_chains

        return sample_chains(self, potentials, uniforms)

    def entropy(self, potentials: ChainPotentials) -> FloatArray:
        """Return the entropy of the paths of each sequence, shape (S,)."""
        from crfkit.structures.chain_samples import chain_entropies

        if self.threads is not None and _is_long(chain_arrays(potentials)):
            return entropy_in_blocks(Chain(), potentials, self.threads)
        return chain_entropies(self, potentials)

    def max_by_hamming(
        self, potentials: ChainPotentials, labels: CodeArray, most: int | None = None
    ) -> FloatArray:
        """Return the largest scores by numbers of wrong labels, in time ``O(T L K**2)`` each."""
        size, most = potentials.n_labels, most_errors(potentials, most)
        value = np.empty((len(potentials.offsets) - 1, most + 1))
        work, best = np.empty((1, size)), np.empty((2 * (most + 1), size))
        chain_max_by_hamming(chain_arrays(potentials), frozen(labels), work, best, value)
        return value

    def path_at_hamming(
        self,
        potentials: ChainPotentials,
        labels: CodeArray,
        errors: IntArray,
        most: int | None = None,
    ) -> CodeArray:
        """Return the best labels with numbers of wrong ones, in memory ``O(T E K)`` each.

        It is an error where that is more than ``MOST_LEVEL_BYTES``.
        """
        size, path = potentials.n_labels, np.empty(len(potentials.unary), np.int32)
        rows = np.diff(potentials.offsets) * np.where(errors > 0, errors + 2, 0)
        if int(rows.max(initial=0)) * size * 8 > MOST_LEVEL_BYTES:
            s = int(rows.argmax())
            raise ValueError(
                f"sequence {potentials.first + s}: finding its labeling with {errors[s]} wrong "
                f"labels takes {rows[s] * size * 8 / 2**30:.1f} GiB, which grows with the square "
                "of its length. Cut it, or use margin rescaling."
            )
        status = np.empty(len(errors), np.int64)
        chain_level_path(
            chain_arrays(potentials), frozen(labels), most_errors(potentials, most),
            frozen(errors), np.empty((1, size)), np.empty((int(rows.max(initial=0)), size)),
            path, status,
        )  # fmt: skip
        for s in np.flatnonzero(status == NONE)[:1].tolist():
            raise too_many_errors(potentials, s, errors[s])
        return path

    def with_copies(
        self, potentials: ChainPotentials, copies: LabelCopies
    ) -> tuple[Structure, ChainPotentials]:
        """Return the chain over copies of labels, and its potentials."""
        return self, copied_chain(potentials, copies)

    def add_copied_counts(
        self, potentials: ChainPotentials, copies: LabelCopies, found: Counts, out: Counts
    ) -> None:
        """Write weights of the parts of `with_copies` as those of labels and transitions."""
        add_copies_of_chain(potentials.transition_index, copies, found, out)

    def argmax_of_copies(
        self, potentials: ChainPotentials, copies: LabelCopies
    ) -> tuple[CodeArray, FloatArray]:
        """Return the best paths of copies of labels and their scores."""
        count, tables = len(copies.label), len(potentials.transition_index)
        if count <= FEW_COPIES and (tables == 1 or tables * count**2 <= TABLE_CELLS):
            return self.argmax(copied_chain(potentials, copies))
        found, value, status = best_copies(chain_arrays(potentials), copies)
        raise_if_dead(potentials, status)
        return found, value

    def lattice(self, potentials: ChainPotentials) -> Lattice:
        """Return the labelings of the only sequence as paths of a graph."""
        return chain_lattice(potentials)

    def posterior(self, potentials: ChainPotentials) -> Posterior:
        """Return the distribution of the label of each token."""
        from crfkit.structures.chain_posterior import ChainPosterior

        return ChainPosterior(self, potentials)

    def hessian_product(
        self, potentials: ChainPotentials, tangent: ChainPotentials, weight: FloatArray, out: Counts
    ) -> None:
        """Differentiate the expected counts along a direction of the potentials."""
        (node, _), scores = exp_unary(potentials), chain_arrays(potentials)
        factor, _ = exp_pair(scores)
        slope = factor * tangent.pair
        made = CountDerivatives(
            out.unary, np.zeros_like(slope), np.zeros_like(slope), np.empty(len(weight), np.int64)
        )
        work = TangentWorkspace(
            tangent.unary.copy(), np.empty_like(node), np.empty(len(node)),
            np.empty((4, node.shape[1])),
        )  # fmt: skip
        chain_hessian(
            TangentFactors(node, factor, frozen(slope)), scores.transition_index, scores.offsets,
            frozen(weight), work, made,
        )  # fmt: skip
        out.pair[...] += factor * made.flow_slope + slope * made.flow
        failed = made.status == UNDERFLOW
        if failed.any():
            self._differentiate_paths(potentials, tangent, failed, weight, out)

    def add_covariances(
        self,
        potentials: ChainPotentials,
        weight: FloatArray,
        first: int,
        features: TokenFeatures,
        out: FloatArray,
    ) -> None:
        """Add the covariances of weights; where a probability is lost in rounding, too few."""
        (node, _), size = exp_unary(potentials), potentials.n_labels
        factor, _ = exp_pair(chain_arrays(potentials))
        longest, count = int(np.diff(potentials.offsets).max(initial=0)), len(out)
        carried, ahead = np.empty((2, size, count))
        work = CovarianceWorkspace(
            np.empty((longest, size, size)), np.empty((longest, size)), np.empty((2, size)),
            np.full(len(features.labels), -1), np.empty(count, np.int64), np.empty(count),
            carried, ahead,
        )  # fmt: skip
        chain_covariances(
            node, factor, frozen(potentials.offsets), frozen(weight), first, features,
            LEAST_COVARIANCE, work, out,
        )  # fmt: skip

    def _differentiate_paths(
        self,
        potentials: ChainPotentials,
        tangent: ChainPotentials,
        chosen: BoolArray,
        weight: FloatArray,
        out: Counts,
    ) -> None:
        """Differentiate the counts of some sequences, shape (S,), as those of forests."""
        from crfkit.structures.tree import Tree, TreePotentials

        tokens, which = np.repeat(chosen, np.diff(potentials.offsets)), np.flatnonzero(chosen)
        chains = potentials.take(which)
        order = np.concatenate([np.arange(n) for n in np.diff(chains.offsets)])
        paths = TreePotentials(*chains, order - 1, order)
        direction = TreePotentials(*tangent.take(which), order - 1, order)
        counts = Counts(np.empty_like(paths.unary), out.pair)
        try:
            Tree().hessian_product(paths, direction, weight[which], counts)
        except NoPathError:
            self.argmax(potentials)  # raises, and tells where from the start
            raise
        out.unary[tokens] = counts.unary


def _is_long(scores: ChainScores) -> bool:
    """Whether this is one sequence that is worth being cut."""
    return len(scores.offsets) == 2 and len(scores.unary) > LONG_TOKENS


def chain_workspace(potentials: ChainPotentials) -> ChainWorkspace:
    """Return the workspace of the kernel ``chain_sum``."""
    length, size = potentials.unary.shape
    longest = int(np.diff(potentials.offsets).max(initial=0))
    rows = max(min(2 * longest, length), TOGETHER)
    alpha, message = np.empty((2, rows, size))
    return ChainWorkspace(np.empty(length), np.empty((1, size)), alpha, message)


def _rows(potentials: ChainPotentials) -> TransitionRows:
    """Return a transition into each token from the one before it."""
    return rows_before(potentials, tokens_before(potentials.offsets))


def are_interleaved(index: IdArray, factor: FloatArray) -> bool:
    """Whether all share a table that is not too large, and transitions have some probability."""
    size = factor.shape[2]
    fits = size <= MAX_LABELS or (size <= MOST_LABELS and -size % WIDTH >= EMPTY)
    return fits and len(index) == 1 and float(factor.min()) >= TINY


def lane_tables(factor: FloatArray, shift: FloatArray) -> LaneTables:
    """Return the only table for the kernel ``lanes_sum``: columns by threes, filled up with 0."""
    size = factor.shape[1]
    wide = np.zeros((2, size, -(-size // TILE) * TILE))
    wide[:, :, :size] = factor[0], factor[0].T
    forward, backward = wide.reshape(2, size, -1, TILE).transpose(0, 2, 1, 3).reshape(2, -1)
    return LaneTables(frozen(forward), frozen(backward), shift)


def lane_rooms(offsets: IntArray, size: int) -> LaneRooms:
    """Return the workspace of the kernel ``lanes_sum`` for sequences of so many labels."""
    tokens, longest = int(offsets[-1]), int(np.diff(offsets).max())
    steps = WIDTH * min(longest, (tokens + LACKING) // FILLED)
    places = -(-size // TILE) * TILE
    step, cells, block = WIDTH * places, steps * places, WIDTH**2
    order, lanes = np.empty(len(offsets) - 1, np.int64), np.empty((2, WIDTH), np.int64)
    sizes = [cells + step + block, cells, steps, steps, steps, step * places, step + block, WIDTH]
    return LaneRooms(order, np.zeros(longest + 2, np.int64), *lanes, *map(np.empty, sizes))
