"""Segmentations: each segment has one label."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from crfkit._types import (
    BoolArray,
    CodeArray,
    Counts,
    FloatArray,
    IntArray,
    LabelReading,
    ReadSpans,
)
from crfkit.compiler.jit import frozen
from crfkit.kernels.chain.copies import LabelCopies
from crfkit.kernels.chain.sum import OK, UNDERFLOW
from crfkit.kernels.semimarkov import sum as kernels
from crfkit.kernels.semimarkov.arrays import (
    LogSegmentWorkspace,
    SegmentPrefixes,
    SegmentSums,
    SegmentViterbi,
    SegmentWorkspace,
)
from crfkit.kernels.semimarkov.conditionals import (
    SegmentBounds,
    segment_bounds,
    semimarkov_add_conditionals,
    semimarkov_conditionals,
)
from crfkit.kernels.semimarkov.k_best import semimarkov_k_best
from crfkit.kernels.semimarkov.max import semimarkov_add_path, semimarkov_max, semimarkov_score
from crfkit.kernels.semimarkov.sum import semimarkov_sum_log
from crfkit.structures.base import Capability, NoSegmentationError, Offset, Structure, longest
from crfkit.structures.copies import add_copies_of_segments, copied_segments
from crfkit.structures.k_best import (
    RankedCodes,
    empty_lists,
    empty_paths,
    labelings_at_most,
    ranked,
)
from crfkit.structures.lattice import Lattice, segment_lattice
from crfkit.structures.posterior import Posterior
from crfkit.structures.potentials import (
    SegmentPotentials,
    are_moderate,
    exponentials,
    filled_up,
    restricted_tables,
    segment_arrays,
    tilted,
)


class SemiMarkov(Structure[SegmentPotentials]):
    """Segments of one label each that follow one another (Sarawagi and Cohen 2004).

    A label at a token has four scores, the columns of the unary scores: that its segment goes on
    there, begins there, ends there, and is this token alone, which adds to the two before. A
    segment has further the score of its length and, where it has a row, the one of that; and each
    transition to the next segment has one. All of them are real: ``-inf`` forbids. A labeling is
    a code for each token, ``k`` where a segment of label ``k`` goes on and ``K + k`` where it
    begins, so that the score of a code is that in its column.

    Sums are those of a scaled recurrence in the linear domain, as in :class:`Chain`, in time
    ``O(T (L K + K**2))`` and memory ``O(T K)``: the scores of a segment are multiplied up from
    those of its tokens while its lengths are tried. Sequences whose scores are spread too far for
    it are summed by logarithms. The best segmentation and the k best ones, each found from those
    before as in :class:`Chain`, are, of equal scores, those of the lowest last label, then the
    shortest last segment, and so on.

    Sums and searches raise NoSegmentationError where a sequence has no segmentation of
    finite score.

    Parameters
    ----------
    offset : SegmentOffset, optional
        Scores that are not learned, added to those of all sequences.
    """

    potentials = SegmentPotentials
    capabilities: ClassVar[frozenset[Capability]] = frozenset(
        {
            Capability.K_BEST,
            Capability.POSTERIOR,
            Capability.HESSIAN_PRODUCT,
            Capability.CONDITIONALS,
            Capability.SPANS,
            Capability.SAMPLE,
            Capability.ENTROPY,
            Capability.COPIES,
        }
    )

    def __init__(self, offset: Offset | None = None) -> None:
        self.offset = offset

    def log_partition(
        self, potentials: SegmentPotentials, weight: FloatArray, out: Counts
    ) -> FloatArray:
        """Return log Z, and the expected counts.

        The probabilities that a segment of a label goes on, begins, ends and is alone at a token
        replace ``out.unary``; expected transitions, lengths and rows are added to ``out.pair``.
        """
        scores, weight = self.with_offset(potentials), frozen(weight)
        log_z, status = np.zeros(len(weight)), np.full(len(weight), UNDERFLOW)
        closer = tilted(scores)
        # A line that fits the scores of long lengths may be far from those of short ones.
        for same in (closer,) if closer is scores else (closer, scores):
            if not (status == UNDERFLOW).any():
                break
            todo = np.flatnonzero((status == UNDERFLOW) & are_moderate(same))
            if len(todo):
                self._sum_scaled(same, todo, weight, out, log_z, status)
                raise_if_dead(scores, status)
        for s in np.flatnonzero(status == UNDERFLOW).tolist():
            size = int(scores.offsets[s + 1] - scores.offsets[s])
            if size:
                workspace = log_workspace(size, len(scores.unary), scores.n_labels)
                status[s] = semimarkov_sum_log(
                    segment_arrays(scores), s, float(weight[s]), workspace, *out, log_z
                )
                raise_if_dead(scores, status)
        return log_z

    def _sum_scaled(
        self,
        scores: SegmentPotentials,
        todo: IntArray,
        weight: FloatArray,
        out: Counts,
        log_z: FloatArray,
        status: IntArray,
    ) -> None:
        """Sum in the linear domain what can be of some sequences; the status tells what."""
        size, raised, arrays = scores.n_labels, exponentials(scores), segment_arrays(scores)
        tables = raised.tables
        workspace = segment_workspace(longest(scores), *tables.stay.shape)
        while True:
            added = (np.zeros_like(tables.transitions), np.zeros_like(tables.lengths),
                     np.zeros_like(tables.spans))  # fmt: skip
            sums = SegmentSums(out.unary, *added, log_z, status)
            kernels.semimarkov_sum(arrays, raised, frozen(todo), weight, workspace, sums)
            broken = status == kernels.BROKEN
            if not broken.any():
                break
            status[broken] = UNDERFLOW
            todo = todo[status[todo] == OK]
        flow = np.multiply(sums.flow, tables.transitions, out=sums.flow)[:, :size, :size]
        parts = flow.reshape(-1, size), sums.lengths[:, :size], sums.spans[:, :size]
        out.pair[...] += np.concatenate(parts)

    def posterior(self, potentials: SegmentPotentials) -> Posterior:
        """Return the distribution of the code of each token."""
        from crfkit.structures.segment_posterior import SegmentPosterior

        return SegmentPosterior(self.with_offset(potentials))

    def hessian_product(
        self,
        potentials: SegmentPotentials,
        tangent: SegmentPotentials,
        weight: FloatArray,
        out: Counts,
    ) -> None:
        """Differentiate the expected counts along a direction of the potentials."""
        from crfkit.structures.segment_posterior import SegmentPosterior

        posterior = SegmentPosterior(self.with_offset(potentials))
        posterior.differentiate(Counts(*tangent.arrays()), weight, out)

    def argmax(self, potentials: SegmentPotentials) -> tuple[CodeArray, FloatArray]:
        """Return the codes of the best segmentation of each sequence and its score."""
        scores = self.with_offset(potentials)
        tables, count = filled_up(scores), len(scores.offsets) - 1
        value, status = np.empty(count), np.empty(count, np.int64)
        room = _search_room(scores, len(scores.unary), tables.stay.shape[1])
        semimarkov_max(segment_arrays(scores), tables, room, value, status)
        raise_if_dead(scores, status)
        return room.codes, value

    def restricted(
        self, potentials: SegmentPotentials, steps: BoolArray, which: IntArray | None = None
    ) -> tuple[SemiMarkov, SegmentPotentials]:
        """Return the structure, and potentials without some steps to the next segment."""
        rows, size = potentials.n_transitions, potentials.n_labels
        tables = potentials.pair[:rows].reshape(rows // size, size, size)
        tables, index = restricted_tables(tables, potentials.transition_index, steps, which)
        first = tables.reshape(len(tables) * size, size)
        pair = np.concatenate([first, potentials.pair[rows:]])
        return self, potentials._replace(
            pair=pair, transition_index=index, n_transitions=len(first)
        )

    def conditional_scores(self, potentials: SegmentPotentials, labels: CodeArray) -> FloatArray:
        """Return the scores of the codes of each token, all others given, shape (N, 2 K).

        A token may begin a segment, with any label if the next one does too, else with the label
        that the next one goes on with; or it goes on with the label before it.
        """
        scores, codes = self.with_offset(potentials), frozen(labels)
        out = np.empty((len(codes), scores.n_codes))
        semimarkov_conditionals(segment_arrays(scores), codes, _bounds(scores, codes), out)
        return out

    def add_conditional_counts(
        self, potentials: SegmentPotentials, labels: CodeArray, weight: FloatArray, out: Counts
    ) -> None:
        """Write the weights, (N, 2 K), of `conditional_scores` as weights of their parts."""
        out.unary[...], codes = 0.0, frozen(labels)
        semimarkov_add_conditionals(
            segment_arrays(potentials), codes, _bounds(potentials, codes), frozen(weight), *out
        )

    def k_best(self, potentials: SegmentPotentials, k: int) -> RankedCodes:
        """Return the codes of the k best segmentations of each sequence, and their scores."""
        scores, most = self.with_offset(potentials), labelings_at_most(potentials, k)
        tables = filled_up(scores)
        room = _search_room(scores, 0, tables.stay.shape[1])
        rows, choices = 2 * longest(scores) + 1, max(scores.n_labels, scores.n_lengths)
        lists = empty_lists(potentials, most, rows, choices)
        found = empty_paths(potentials, most)
        semimarkov_k_best(segment_arrays(scores), tables, frozen(most), room, lists, found)
        return ranked(self, potentials, found)

    def with_copies(
        self, potentials: SegmentPotentials, copies: LabelCopies
    ) -> tuple[Structure, SegmentPotentials]:
        """Return the segments of copies of labels, and their potentials with what is added here."""
        return SemiMarkov(), copied_segments(self.with_offset(potentials), copies)

    def add_copied_counts(
        self, potentials: SegmentPotentials, copies: LabelCopies, found: Counts, out: Counts
    ) -> None:
        """Write weights of the parts of `with_copies` as those of segments of labels."""
        add_copies_of_segments(potentials, copies, found, out)

    def argmax_of_copies(
        self, potentials: SegmentPotentials, copies: LabelCopies
    ) -> tuple[CodeArray, FloatArray]:
        """Return the best segmentations of copies of labels and their scores."""
        structure, copied = self.with_copies(potentials, copies)
        return structure.argmax(copied)

    def lattice(self, potentials: SegmentPotentials) -> Lattice:
        """Return the segmentations of the only sequence as paths of a graph."""
        return segment_lattice(self.with_offset(potentials))

    def span_probabilities(
        self,
        potentials: SegmentPotentials,
        reading: LabelReading,
        start: IntArray,
        stop: IntArray,
        type: IntArray,
    ) -> FloatArray:
        """Return the probability of each span, shape (n,): a segment with a label of the type."""
        from crfkit.structures.segment_spans import segment_probabilities

        return segment_probabilities(self, potentials, reading, ReadSpans(start, stop, type))

    def likely_spans(
        self, potentials: SegmentPotentials, reading: LabelReading, threshold: float
    ) -> tuple[IntArray, IntArray, IntArray, FloatArray]:
        """Return the spans of at least some probability."""
        from crfkit.structures.segment_spans import likely_segments

        return likely_segments(self, potentials, reading, threshold)

    def sample(self, potentials: SegmentPotentials, uniforms: FloatArray) -> CodeArray:
        """Return codes of segmentations drawn from the last segment to the first, (n, N)."""
        from crfkit.structures.segment_samples import sample_segmentations

        return sample_segmentations(self.with_offset(potentials), uniforms)

    def entropy(self, potentials: SegmentPotentials) -> FloatArray:
        """Return the entropy of the segmentations of each sequence, shape (S,)."""
        from crfkit.structures.segment_samples import segment_entropies

        return segment_entropies(self.with_offset(potentials))

    def score(self, potentials: SegmentPotentials, labels: CodeArray) -> FloatArray:
        """Return the score of a segmentation of each sequence, shape (S,)."""
        scores = self.with_offset(potentials)
        value = np.empty(len(scores.offsets) - 1)
        semimarkov_score(segment_arrays(scores), frozen(labels), value)
        return value

    def add_counts(
        self, potentials: SegmentPotentials, labels: CodeArray, weight: FloatArray, out: Counts
    ) -> None:
        """Add `weight`, shape (S,), to the parts of a segmentation of each sequence."""
        semimarkov_add_path(segment_arrays(potentials), frozen(labels), frozen(weight), *out)


def _search_room(scores: SegmentPotentials, n_codes: int, width: int) -> SegmentViterbi:
    """Return the workspace of searches for the best segmentation, with so many codes."""
    rows, codes = longest(scores), np.empty(n_codes, np.int32)
    return SegmentViterbi(np.empty((rows + 1, width)), np.empty((rows, width)), codes)


def _bounds(scores: SegmentPotentials, codes: CodeArray) -> SegmentBounds:
    """Return where segments begin around each token."""
    bounds = SegmentBounds(*np.empty((2, len(codes)), np.int64))
    segment_bounds(codes, scores.n_labels, frozen(scores.offsets), bounds)
    return SegmentBounds(*map(frozen, bounds))


def segment_workspace(rows: int, n_tokens: int, width: int) -> SegmentWorkspace:
    """Return the workspace of ``semimarkov_sum``, for sequences of so many tokens at most."""
    prefixes = segment_prefixes(rows, n_tokens, width)
    return SegmentWorkspace(prefixes, *np.empty((5, rows, width)))


def segment_prefixes(rows: int, n_tokens: int, width: int) -> SegmentPrefixes:
    """Return the workspace of the forward recurrence."""
    begins, going = np.empty((2, rows, width))
    return SegmentPrefixes(
        np.empty((rows + 1, width)), begins, going, np.empty((1, width)), np.empty(n_tokens)
    )


def log_workspace(rows: int, n_tokens: int, size: int) -> LogSegmentWorkspace:
    """Return the workspace of ``semimarkov_sum_log``."""
    begins, ends = np.empty((2, rows, size))
    return LogSegmentWorkspace(
        np.empty((rows + 1, size)), begins, ends, np.empty((2, size)), np.empty(n_tokens)
    )


def raise_if_dead(scores: SegmentPotentials, status: IntArray) -> None:
    """Raise the error of sequences whose status is the position that no segment leads to."""
    dead = np.flatnonzero(status >= 0)
    if len(dead):
        s, others = int(dead[0]), tuple((scores.first + dead[1:]).tolist())
        raise NoSegmentationError(scores.first + s, int(status[s] - scores.offsets[s]), others)
