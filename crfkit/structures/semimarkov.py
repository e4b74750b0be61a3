"""Segmentations: each segment has one label."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from crfkit._parallel import ThreadMap
from crfkit._types import (
    CodeArray,
    Counts,
    FloatArray,
    IntArray,
)
from crfkit.compiler.jit import frozen
from crfkit.compiler.simd import padded
from crfkit.kernels.chain.sum import OK, UNDERFLOW
from crfkit.kernels.semimarkov import sum as kernels
from crfkit.kernels.semimarkov.arrays import (
    LogSegmentWorkspace,
    SegmentSums,
    SegmentViterbi,
    SegmentWorkspace,
)
from crfkit.kernels.semimarkov.k_best import PrefixLists, semimarkov_n_best
from crfkit.kernels.semimarkov.max import semimarkov_add_path, semimarkov_max, semimarkov_score
from crfkit.kernels.semimarkov.sum_log import semimarkov_sum_log
from crfkit.structures.base import Capability, NoPathError, Offset, Structure
from crfkit.structures.potentials import SegmentPotentials
from crfkit.structures.segment_tables import (
    are_moderate,
    exponentials,
    filled_up,
    make_spans,
    segment_arrays,
    tilted,
)


class NoSegmentationError(NoPathError):
    """A sequence has no segmentation of finite score.

    Parameters
    ----------
    sequence : int
        Index of the sequence in the data set.
    position : int
        The last position that segments from the start of the sequence lead up to.
    others : tuple of int, default=()
        Further sequences of the batch that are known to have none; there may be more.
    """

    def __init__(self, sequence: int, position: int, others: tuple[int, ...] = ()) -> None:
        self.sequence = sequence
        self.position = position
        self.others = others
        ValueError.__init__(
            self,
            f"sequence {sequence}: no segmentation is allowed: none gets past position {position}, "
            "where every segment is forbidden (score -inf), too short or too long, or every "
            "transition into it is. Allow at least one segment that begins there.",
        )


class SemiMarkov(Structure[SegmentPotentials]):
    """Segments of one label each that follow one another (Sarawagi and Cohen 2004).

    A label at a token has four scores, the columns of the unary scores: that its segment goes on
    there, begins there, ends there, and is this token alone, which adds to the two before. A
    segment has further the score of its length and, where it has a row, the one of that; and each
    transition to the next segment has one. All of them are real: ``-inf`` forbids. A labelling is
    a code for each token, ``k`` where a segment of label ``k`` goes on and ``K + k`` where it
    begins, so that the score of a code is that in its column.

    Sums are those of a scaled recurrence in the linear domain, as in :class:`Chain`, in time
    ``O(T (L K + K**2))`` and memory ``O(T K)``: the scores of a segment are multiplied up from
    those of its tokens while its lengths are tried. Sequences whose scores are spread too far for
    it are summed by logarithms.

    Parameters
    ----------
    offset : SegmentOffset, optional
        Scores that are not learned, added to those of all sequences.
    """

    potentials = SegmentPotentials
    capabilities: ClassVar[frozenset[Capability]] = frozenset({Capability.K_BEST})

    def __init__(self, offset: Offset | None = None) -> None:
        self.offset = offset

    def in_parallel(self, threads: ThreadMap) -> SemiMarkov:
        """Return itself: a sequence is worked on by one thread."""
        return self

    def zeros(self, scores: SegmentPotentials) -> Counts:
        """Return zero weights for the parts of `scores`."""
        return Counts(np.zeros(scores.unary.shape), np.zeros(scores.pair.shape))

    def log_partition(
        self, scores: SegmentPotentials, weight: FloatArray, out: Counts
    ) -> FloatArray:
        """Return log Z of each sequence and the expected counts of its parts.

        Parameters
        ----------
        scores : Potentials
            Potentials of the parts of S sequences.
        weight : ndarray of shape (S,)
            Factor of the expected counts of each sequence.
        out : Counts
            The probabilities that a segment of a label goes on, begins, ends and is alone at a
            token replace ``out.unary``, the expected transitions, lengths and rows are
            added to ``out.pair``.

        Returns
        -------
        ndarray of shape (S,)
            The logarithm of the sum of ``exp(score)`` over all segmentations; 0 for an empty
            sequence.

        Raises
        ------
        NoSegmentationError
            If a sequence has no segmentation of finite score.
        """
        scores, weight = self.with_offset(scores), frozen(weight)
        log_z, status = np.zeros(len(weight)), np.full(len(weight), UNDERFLOW)
        closer = tilted(scores)
        # A line that fits the scores of long lengths may be far from those of short ones.
        for same in (closer,) if closer is scores else (closer, scores):
            if not (status == UNDERFLOW).any():
                break
            todo = np.flatnonzero((status == UNDERFLOW) & are_moderate(same))
            if len(todo):
                self._sum_scaled(same, todo, weight, out, log_z, status)
                _raise_if_dead(scores, status)
        for s in np.flatnonzero(status == UNDERFLOW):
            log_z[s] = self._sum_log(scores, int(s), float(weight[s]), out)
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
        size, (tables, shift) = scores.pair.shape[1], exponentials(scores)
        transposed = frozen(np.ascontiguousarray(tables.transitions.transpose(0, 2, 1)))
        workspace, arrays = segment_workspace(scores), segment_arrays(scores)
        while True:
            flow, lengths, spans = map(
                np.zeros_like, (tables.transitions, tables.lengths, tables.spans)
            )
            kernels.semimarkov_sum(
                tables,
                transposed,
                shift,
                scores.spans.ends,
                scores.spans.starts,
                arrays,
                frozen(todo),
                weight,
                workspace,
                SegmentSums(out.unary, flow, lengths, spans, log_z, status),
            )
            broken = status == kernels.BROKEN
            if not broken.any():
                break
            status[broken] = UNDERFLOW
            todo = todo[status[todo] == OK]
        flow *= tables.transitions
        n_tables = len(flow)
        out.pair[: n_tables * size] += flow[:, :size, :size].reshape(n_tables * size, size)
        rows = n_tables * size + len(lengths)
        out.pair[n_tables * size : rows] += lengths[:, :size]
        out.pair[rows:] += spans[:, :size]

    def _sum_log(self, scores: SegmentPotentials, s: int, weight: float, out: Counts) -> float:
        """Sum one sequence by logarithms."""
        begin, end = int(scores.offsets[s]), int(scores.offsets[s + 1])
        if begin == end:
            return 0.0
        size, length, log_z = scores.pair.shape[1], end - begin, np.empty(len(scores.offsets) - 1)
        workspace = LogSegmentWorkspace(
            np.empty((length + 1, size)),
            np.empty((length, size)),
            np.empty((length, size)),
            np.empty((2, size)),
            np.empty(len(scores.unary)),
        )
        position = semimarkov_sum_log(
            segment_arrays(scores),
            scores.spans.ends,
            scores.spans.starts,
            s,
            weight,
            workspace,
            out.unary,
            out.pair,
            log_z,
        )
        if position >= 0:
            raise NoSegmentationError(scores.first + s, position - begin)
        return float(log_z[s])

    def argmax(self, scores: SegmentPotentials) -> tuple[CodeArray, FloatArray]:
        """Return the codes of the best segmentation of each sequence and its score.

        Parameters
        ----------
        scores : Potentials
            Potentials of the parts of S sequences.

        Returns
        -------
        codes : ndarray of shape (N,)
            ``k`` where a segment of label ``k`` goes on, ``K + k`` where one begins.
        value : ndarray of shape (S,)
            Score of the segmentation; 0 for an empty sequence.

        Raises
        ------
        NoSegmentationError
            If a sequence has no segmentation of finite score.
        """
        scores = self.with_offset(scores)
        size, count = scores.pair.shape[1], len(scores.offsets) - 1
        tables = filled_up(scores)
        width, longest = tables.stay.shape[1], _longest(scores)
        codes: CodeArray = np.empty(len(scores.unary), np.int32)
        value, status = np.empty(count), np.empty(count, np.int64)
        semimarkov_max(
            tables,
            scores.spans.ends,
            frozen(scores.transition_index),
            frozen(scores.offsets),
            size,
            SegmentViterbi(np.empty((longest + 1, width)), np.empty((longest, width)), codes),
            value,
            status,
        )
        _raise_if_dead(scores, status)
        return codes, value

    def k_best(self, scores: SegmentPotentials, k: int) -> tuple[CodeArray, FloatArray]:
        """Return the segmentations of the largest scores of one sequence.

        The list Viterbi algorithm (Seshadri and Sundberg 1994), over segments: in time
        ``O(k T K (L + K))`` at most, and with ``4 k T K`` numbers. Of equal scores, the
        lowest last label comes first, then the shortest last segment, and so on.

        Parameters
        ----------
        scores : Potentials
            Potentials of the parts of one sequence.
        k : int
            How many, at least 1: there may be fewer of a finite score.

        Returns
        -------
        codes : ndarray of shape (n, T)
            As for `max`, the best segmentation first.
        value : ndarray of shape (n,)
            Their scores.

        Raises
        ------
        NoSegmentationError
            If there is no segmentation of finite score.
        """
        shifted, k = self.with_offset(scores), int(k)
        length = len(scores.unary)
        shape = (length + 1, scores.pair.shape[1], k)
        codes, value = np.empty((k, length), np.int32), np.zeros(k)
        if not length:
            return codes[:1], value[:1]
        lists = PrefixLists(
            np.empty(shape), np.empty(shape, np.int64), np.empty(shape), np.empty(shape, np.int64)
        )
        semimarkov_n_best(segment_arrays(shifted), scores.spans.ends, lists, value, codes)
        found = value > -np.inf
        if not found.any():
            self.argmax(scores)  # raises, and tells where
        return codes[found], value[found]

    def score(self, scores: SegmentPotentials, labels: CodeArray) -> FloatArray:
        """Return the score of the given segmentation of each sequence.

        Parameters
        ----------
        scores : Potentials
            Potentials of the parts of S sequences.
        labels : ndarray of shape (N,)
            Codes of all tokens.

        Returns
        -------
        ndarray of shape (S,)
            Sum of the scores of the parts; ``-inf`` for what is forbidden.
        """
        scores = self.with_offset(scores)
        value = np.empty(len(scores.offsets) - 1)
        semimarkov_score(segment_arrays(scores), scores.spans.ends, frozen(labels), value)
        return value

    def add_counts(
        self, scores: SegmentPotentials, labels: CodeArray, weight: FloatArray, out: Counts
    ) -> None:
        """Add a weight to the parts of the segmentation of each sequence.

        Parameters
        ----------
        scores : Potentials
            Tells the sequences; the scores themselves are not read.
        labels : ndarray of shape (N,)
            Codes of all tokens.
        weight : ndarray of shape (S,)
            What is added to each part.
        out : Counts
            Added to.
        """
        arrays, ends = segment_arrays(scores), scores.spans.ends
        semimarkov_add_path(arrays, ends, frozen(labels), frozen(weight), out.unary, out.pair)


def segment_workspace(scores: SegmentPotentials) -> SegmentWorkspace:
    """Return the workspace of the kernel ``semimarkov_sum``, for the longest sequence."""
    rows, width = _longest(scores), padded(scores.pair.shape[1])
    begins, going, ends, message, started, ended, single = np.empty((7, rows, width))
    return SegmentWorkspace(
        np.empty((rows + 1, width)), begins, going, ends, message, started, ended, single,
        np.empty((1, width)), np.empty(len(scores.unary)),
    )  # fmt: skip


def span_probabilities(
    structure: Structure, scores: SegmentPotentials, start: IntArray, stop: IntArray
) -> FloatArray:
    """Return the probabilities that runs of tokens are segments, with each label, shape (n, K).

    Each run gets a row of its own, with the scores of the one it had: what is expected of that row
    is the probability.

    Parameters
    ----------
    structure : SemiMarkov
        Sums.
    scores : Potentials
        Potentials of the parts of S sequences.
    start, stop : ndarray of shape (n,)
        First token of each run, and the one after its last.
    """
    size = scores.n_labels
    spans, first = scores.spans, scores.n_transitions + scores.n_lengths
    ends = np.repeat(np.arange(1, len(scores.unary) + 1), np.diff(spans.end_ptr))
    width = len(scores.unary) + 1
    asked, which = np.unique(stop * width + (stop - start), return_inverse=True)
    listed = ends * width + spans.end_length
    place = np.minimum(np.searchsorted(listed, asked), max(len(listed) - 1, 0))
    old = listed[place] == asked if len(listed) else np.zeros(len(asked), bool)
    own = np.zeros((len(asked), size))
    own[old] = scores.pair[first + spans.end_row[place[old]]]
    kept = ~np.isin(listed, asked)
    rows = np.arange(len(asked)) + len(scores.pair) - first
    every = make_spans(
        len(scores.unary),
        np.concatenate([ends[kept], asked // width]),
        np.concatenate([spans.end_length[kept], asked % width]),
        np.concatenate([spans.end_row[kept], rows]),
    )
    wider = scores._replace(pair=np.concatenate([scores.pair, own]), spans=every)
    expected = structure.zeros(wider)
    structure.log_partition(wider, np.ones(len(scores.offsets) - 1), expected)
    found: FloatArray = expected.pair[len(scores.pair) :][which]
    return found


def _longest(scores: SegmentPotentials) -> int:
    return int(np.diff(scores.offsets).max(initial=0))


def _raise_if_dead(scores: SegmentPotentials, status: IntArray) -> None:
    dead = np.flatnonzero(status >= 0)
    if len(dead):
        s, others = int(dead[0]), tuple((scores.first + dead[1:]).tolist())
        raise NoSegmentationError(scores.first + s, int(status[s] - scores.offsets[s]), others)
