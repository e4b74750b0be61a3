"""Potentials of the structures, one record each, and the arrays that kernels read."""

from __future__ import annotations

from typing import NamedTuple, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from crfkit._types import (
    BoolArray,
    FloatArray,
    IdArray,
    IntArray,
    Potentials,
    ReadSpans,
    listed_for,
)
from crfkit.compiler.jit import frozen
from crfkit.compiler.simd import WIDTH, padded
from crfkit.kernels.chain import sum as chain_kernels
from crfkit.kernels.chain.arrays import ChainExponentials, ChainScores, TransitionRows
from crfkit.kernels.semimarkov import arrays as kernels

P = TypeVar("P", bound=Potentials)

# Sequences are summed by logarithms where a score that they read of a step, a length, a row, an end
# or a single token is further from 0. A share that is not lost in the recurrence, times the
# exponential of one that is not, is neither 0 nor infinite.
LARGE = 200.0


class _ChainArrays(NamedTuple):
    unary: FloatArray  # (N, K) score of each label at each token
    # (M, K, K) tables of the scores of each transition from a label (axis 1) to the next (axis 2);
    # of a sparse chain, the scores of some transitions, (1, E)
    pair: FloatArray
    transition_index: IdArray
    offsets: IntArray
    first: int = 0


class ChainPotentials(_ChainArrays, Potentials):
    """Potentials of chains (:class:`Chain`, :class:`SparseChain`)."""

    __slots__ = ()

    @classmethod
    def of(
        cls, unary: FloatArray, pair: FloatArray, offsets: IntArray, first: int = 0
    ) -> ChainPotentials:
        """Return potentials of which all transitions share one table, or each token has its own."""
        return cls(unary, pair, np.arange(len(pair), dtype=np.uint32), offsets, first)

    def take_tokens(self: P, tokens: IntArray, offsets: IntArray) -> P:
        """Return the potentials of the chosen tokens, shape (n,), which are those of sequences."""
        index = self.transition_index
        table = index[tokens] if len(index) > 1 else index
        return self._with(
            unary=self.unary[tokens], transition_index=table, offsets=offsets, first=0
        )

    @property
    def n_labels(self: Potentials) -> int:
        """How many labels K a token may have."""
        return int(self.unary.shape[1])

    @property
    def n_codes(self: Potentials) -> int:
        """How many codes a token may have: K."""
        return int(self.unary.shape[1])

    @property
    def is_dense(self: Potentials) -> bool:
        """Whether each pair of labels has a score."""
        return self.pair.shape[1:] == (self.n_labels, self.n_labels)

    def in_order(self: P, order: IntArray) -> P:
        """Return the potentials with the labels in another order, shape (K,)."""
        return self._with(unary=self.unary[:, order], pair=self.pair[:, order][:, :, order])


class Spans(NamedTuple):
    """Segments that have scores of their own: which row of scores each of them has.

    Listed twice: by the token they end at, and by the one they begin at. Read-only.
    """

    end_ptr: IntArray  # (N + 1,) where the segments that end at a token are listed, and the end
    end_length: IntArray  # (n,) their lengths, rising for each token
    end_row: IntArray  # (n,) their rows
    start_ptr: IntArray  # the same by the token that segments begin at
    start_length: IntArray
    start_row: IntArray

    @property
    def ends(self) -> kernels.SpanIndex:
        """The segments by the token they end at, as kernels read them."""
        return kernels.SpanIndex(*self[:3])

    @property
    def starts(self) -> kernels.SpanIndex:
        """The segments by the token they begin at, as kernels read them."""
        return kernels.SpanIndex(*self[3:])

    def taken(self, tokens: IntArray) -> Spans:
        """Return the segments of the chosen tokens, shape (n,), which are those of sequences."""
        ends = listed_for(tokens, self.end_ptr, self.end_length, self.end_row)
        starts = listed_for(tokens, self.start_ptr, self.start_length, self.start_row)
        return Spans(*map(frozen, (*ends, *starts)))


class _SegmentArrays(NamedTuple):
    unary: FloatArray  # (N, 4 K) of each label: that its segment goes on, begins, ends, is alone
    pair: FloatArray  # (R, K) rows of transitions, of lengths, and of those that segments share
    transition_index: IdArray
    offsets: IntArray
    first: int
    n_transitions: int  # the first rows of `pair`: M tables from label to label, K rows each
    n_lengths: int  # then, a row for each length of a segment: 1, 2, ..., L
    spans: Spans  # which segments have the rows after these


class SegmentPotentials(_SegmentArrays, Potentials):
    """Potentials of segments (:class:`SemiMarkov`)."""

    __slots__ = ()

    @property
    def n_labels(self) -> int:
        """How many labels K a token may have."""
        return int(self.pair.shape[1])

    @property
    def n_codes(self) -> int:
        """How many codes a token may have: going on with each label, beginning with it."""
        return 2 * int(self.pair.shape[1])

    @property
    def is_dense(self) -> bool:
        """Whether each pair of labels has a score: always."""
        return True

    def take_tokens(self, tokens: IntArray, offsets: IntArray) -> Self:
        """Return the potentials of the chosen tokens, shape (n,), which are those of sequences."""
        taken = ChainPotentials.take_tokens(self, tokens, offsets)
        return taken._replace(spans=self.spans.taken(tokens))

    def in_order(self, order: IntArray) -> Self:
        """Return the potentials with the labels in another order, shape (K,)."""
        size, rows = self.n_labels, self.n_transitions
        pair = self.pair[:, order]
        pair[:rows] = pair[:rows].reshape(-1, size, size)[:, order].reshape(-1, size)
        columns = np.concatenate([order + role * size for role in range(4)])
        return self._replace(unary=self.unary[:, columns], pair=pair)


class SegmentOffset(NamedTuple):
    """Scores that :class:`SemiMarkov` adds to the transitions and lengths of all sequences.

    The potentials that a solver sees are then linear in the weights, and finite: products and
    differences of them are those of what is learned.
    """

    transitions: FloatArray  # (K, K) from a label to the next; -inf forbids
    lengths: FloatArray  # (L, K)

    @property
    def is_hard(self) -> bool:
        """Whether all of them are 0 or ``-inf``."""
        return not any(each[each > -np.inf].any() for each in self)

    def added_to(self, potentials: SegmentPotentials) -> SegmentPotentials:
        """Return the sum of the potentials and the offset."""
        pair, n_steps = potentials.pair.copy(), potentials.n_transitions
        pair[:n_steps] += np.tile(self.transitions, (n_steps // len(self.transitions), 1))
        pair[n_steps : n_steps + len(self.lengths)] += self.lengths
        return potentials._replace(pair=pair)


def chain_arrays(scores: Potentials) -> ChainScores:
    """Return the arrays of the potentials, as kernels read them."""
    return ChainScores(
        frozen(scores.unary), frozen(scores.pair), frozen(scores.transition_index),
        frozen(scores.offsets),
    )  # fmt: skip


def rows_before(potentials: Potentials, before: IntArray) -> TransitionRows:
    """Return a transition into each token from the one before it, (N,), -1 for none."""
    return TransitionRows(
        frozen(before), frozen(np.arange(len(before))), frozen(potentials.transition_index),
        frozen(potentials.offsets),
    )  # fmt: skip


def exp_unary(scores: Potentials | ChainScores) -> tuple[FloatArray, FloatArray]:
    """Return ``exp(unary - shift)`` and the shift: the largest score of each token."""
    node, shift = np.empty(scores.unary.shape), np.empty(len(scores.unary))
    chain_kernels.chain_shift(frozen(scores.unary), node, shift)
    return frozen(exp_in_place(node)), frozen(shift)


def exp_in_place(array: FloatArray) -> FloatArray:
    """Return an array, in C order, with the exponentials of its numbers written over them."""
    chain_kernels.exponentials(array.reshape(1, -1))
    return array


def chain_exponentials(scores: ChainScores) -> ChainExponentials:
    """Return the exponentials of the scores of chains, as kernels read them."""
    (node, shift), (factor, pair_shift) = exp_unary(scores), exp_pair(scores)
    return ChainExponentials(node, shift, factor, transposed(factor), pair_shift)


def exp_pair(scores: ChainScores) -> tuple[FloatArray, FloatArray]:
    """Return ``exp(pair - shift)`` and the shift that makes the largest entry of each table 1."""
    starts = scores.offsets[:-1]
    starts = starts[starts < len(scores.unary)]
    return exp_tables(scores.pair, scores.transition_index, starts)


def exp_tables(
    pair: FloatArray, index: IdArray, without: IntArray
) -> tuple[FloatArray, FloatArray]:
    """Return ``exp(pair - shift)``, shift as `exp_pair`; none leads into the tokens `without`."""
    factor = pair.copy()
    if len(index) > 1:
        used = np.zeros(len(factor), bool)
        used[np.delete(index, without)] = True
        factor[~used] = 0.0
    shift = factor.max(axis=(1, 2), initial=-np.inf)
    shift[shift == -np.inf] = 0.0
    factor -= shift[:, None, None]
    return frozen(np.exp(factor, out=factor)), frozen(shift)


def table_losses(pair: FloatArray, factor: FloatArray, shift: FloatArray) -> FloatArray:
    """Return ``- factor log factor`` of tables that `exp_tables` has made, 0 where a factor is."""
    with np.errstate(invalid="ignore"):
        losses: FloatArray = factor * (shift[:, None, None] - pair)
    losses[factor == 0.0] = 0.0
    return frozen(losses)


def transposed(tables: FloatArray) -> FloatArray:
    """Return tables of transitions with the labels that these lead to first."""
    return frozen(np.ascontiguousarray(tables.transpose(0, 2, 1)))


def restricted_tables(
    pair: FloatArray, index: IdArray, steps: BoolArray, which: IntArray | None = None
) -> tuple[FloatArray, IdArray]:
    """Return tables of transitions, and which of them tokens have, without some steps.

    `pair`, (M, K, K), and `index` are those of potentials; see :meth:`Structure.restricted`.
    """
    if which is None or not len(which):
        return np.where(steps if which is None else steps[0], pair, -np.inf), index
    keys = index.astype(np.int64) * len(steps) + which
    used, places = np.unique(keys, return_inverse=True)
    table, limit = np.divmod(used, len(steps))
    return np.where(steps[limit], pair[table], -np.inf), places.astype(np.uint32)


def make_spans(n_tokens: int, stop: IntArray, length: IntArray, row: IntArray) -> Spans:
    """Return segments with rows, (n,) each, as structures read them; `stop` is exclusive."""
    sides: list[NDArray[np.int64]] = []
    for token in (stop - 1, stop - length):
        order = np.lexsort((length, token))
        counts = np.bincount(token, minlength=n_tokens)
        ptr = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        sides += [ptr, length[order].astype(np.int64), row[order].astype(np.int64)]
    return Spans(*(frozen(side) for side in sides))


def of_spans(potentials: P, spans: ReadSpans) -> tuple[P, ReadSpans, IntArray]:
    """Return the potentials of the sequences that have spans, the spans, and whose each is, (n,).

    Sequences without one need not be summed.
    """
    sequence = np.searchsorted(potentials.offsets, spans.start, side="right") - 1
    chosen, place = np.unique(sequence, return_inverse=True)
    if len(chosen) == len(potentials.offsets) - 1:
        return potentials, spans, sequence
    own = potentials.take(chosen)
    less = potentials.offsets[sequence] - own.offsets[place]
    return own, ReadSpans(spans.start - less, spans.stop - less, spans.type), place


def no_spans(n_tokens: int) -> Spans:
    """Return that no segment has a row."""
    none = np.zeros(0, np.int64)
    return make_spans(n_tokens, none, none, none)


def segment_arrays(scores: SegmentPotentials) -> kernels.SegmentScores:
    """Return the arrays of the potentials, as kernels read them."""
    return kernels.SegmentScores(
        frozen(scores.unary), frozen(scores.pair), frozen(scores.transition_index),
        frozen(scores.offsets), scores.n_transitions, scores.n_lengths, scores.spans.ends,
        scores.spans.starts,
    )  # fmt: skip


def are_moderate(scores: SegmentPotentials) -> NDArray[np.bool_]:
    """Whether no score that a sequence reads may make a product overflow, shape (S,)."""
    size, sizes = scores.n_labels, np.diff(scores.offsets)
    blocks = np.split(scores.pair, [scores.n_transitions, scores.n_transitions + scores.n_lengths])
    blocks[1] = blocks[1][: int(sizes.max(initial=0))]
    steps, lengths, rows = map(_are_far, blocks)
    shortest = np.flatnonzero(lengths)[:1]
    moderate: NDArray[np.bool_] = np.all(sizes[:, None] <= shortest, axis=1)
    ends = _are_far(scores.unary[:, 2 * size :])
    if not (steps.any() or rows.any() or ends.any()):
        return moderate
    far = ends | np.any(steps.reshape(-1, size), axis=1)[scores.transition_index]
    tokens = np.repeat(np.arange(len(far)), np.diff(scores.spans.end_ptr))
    far[tokens[rows[scores.spans.end_row]]] = True
    count: IntArray = np.concatenate([[0], np.cumsum(far)])[scores.offsets]
    moderate &= np.diff(count) == 0
    return moderate


def _are_far(block: FloatArray) -> NDArray[np.bool_]:
    """Whether a score of each row is too far from 0, and not forbidden, shape (n,)."""
    far: NDArray[np.bool_] = np.any((np.abs(block) > LARGE) & (block > -np.inf), axis=1)
    return far


def tilted(scores: SegmentPotentials) -> SegmentPotentials:
    """Return scores of the same segmentations in which those of lengths are closer to 0.

    A segment of length ``d`` goes on at ``d - 1`` tokens, so that ``c_k (d - 1)`` may move from the
    score of its length to those of its tokens: no segmentation changes its score, no part its
    expected count. Of labels with a score far from 0, ``c_k`` is the slope of the line through
    ``(1, 0)`` that fits the scores of lengths best, where all of these come closer to 0.
    """
    size = scores.n_labels
    rows = slice(scores.n_transitions, scores.n_transitions + scores.n_lengths)
    slope = _slopes(scores.pair[rows])
    if not slope.any():
        return scores
    unary, pair = scores.unary.copy(), scores.pair.copy()
    unary[:, :size] += slope
    pair[rows] -= slope * np.arange(scores.n_lengths)[:, None]
    return scores._replace(unary=unary, pair=pair)


def _slopes(lengths: FloatArray) -> FloatArray:
    """Return ``c_k``, shape (K,), 0 for labels whose scores are left as they are."""
    slopes, far = np.zeros(lengths.shape[1]), np.flatnonzero(_are_far(lengths.T))
    if not len(far):
        return slopes
    allowed = np.isfinite(lengths[:, far])
    known = np.where(allowed, lengths[:, far], 0.0)
    more = np.arange(float(len(lengths)))[:, None] * allowed
    with np.errstate(all="ignore"):  # what is no number comes no closer
        best = (more * known).sum(axis=0) / (more**2).sum(axis=0)
        rest, before = (np.abs(each).max(axis=0) for each in (known - best * more, known))
        closer = rest < before
    slopes[far[closer]] = best[closer]
    return slopes


def _wide(block: FloatArray) -> FloatArray:
    """Return rows in columns for whole vectors, of ``-inf`` where added."""
    added = padded(block.shape[1]) - block.shape[1]
    return np.pad(block, ((0, 0), (0, added)), constant_values=-np.inf)


def filled_up(scores: SegmentPotentials) -> kernels.SegmentTables:
    """Return the scores of each kind in columns for whole vectors, of ``-inf`` where added."""
    of_tokens = _parted(scores.unary, scores.pair.shape[1], -np.inf)
    return kernels.SegmentTables(*of_tokens, *_filled_pairs(scores))


def _parted(
    unary: FloatArray, size: int, added: float
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Return the scores of each kind that tokens have in columns for whole vectors."""
    width = padded(size)
    stay, start, finish, alone = (np.full((len(unary), width), added) for _ in range(4))
    kernels.semimarkov_part(frozen(unary), size, stay, start, finish, alone)
    return frozen(stay), frozen(start), frozen(finish), frozen(alone)


def _filled_pairs(scores: SegmentPotentials) -> tuple[FloatArray, FloatArray, FloatArray, IntArray]:
    """Return the last tables of `SegmentTables`: pair scores in columns for whole vectors."""
    size = scores.n_labels
    width = padded(size)
    n_tables, rows = scores.n_transitions // size, scores.n_transitions + scores.n_lengths
    transitions = np.full((n_tables, width, width), -np.inf)
    transitions[:, :size, :size] = scores.pair[: scores.n_transitions].reshape(n_tables, size, size)
    lengths = _wide(scores.pair[scores.n_transitions : rows])
    vectors = lengths.reshape(len(lengths), width // WIDTH, WIDTH)
    allowed = vectors.max(axis=2) > -np.inf
    longest = len(lengths) - np.argmax(allowed[::-1], axis=0)
    longest[~allowed.any(axis=0)] = 0
    spans = _wide(scores.pair[rows:])
    return frozen(transitions), frozen(lengths), frozen(spans), frozen(longest.astype(np.int64))


def exponentials(scores: SegmentPotentials) -> kernels.SegmentExponentials:
    """Return the exponentials of the scores, 0 in columns that are added."""
    size, pairs = scores.pair.shape[1], _filled_pairs(scores)
    shifted, shift = np.empty(scores.unary.shape), np.empty(len(scores.unary))
    kernels.semimarkov_shift(frozen(scores.unary), size, LARGE, shifted, shift)
    of_tokens = _parted(exp_in_place(shifted), size, 0.0)
    # What is larger is not read: the sequences that have it are summed by logarithms.
    transitions, lengths, spans = (frozen(np.exp(np.minimum(each, LARGE))) for each in pairs[:3])
    tables = kernels.SegmentTables(*of_tokens, transitions, lengths, spans, pairs[3])
    return kernels.SegmentExponentials(tables, transposed(transitions), frozen(shift))
