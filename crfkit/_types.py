"""Small records that travel between the layers.

Letters for sizes, here and everywhere: ``N`` tokens, ``S`` sequences, ``K`` labels, ``D``
attributes, ``T`` the length of one sequence.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
SingleArray = NDArray[np.float32]
IntArray = NDArray[np.int64]
PtrArray = NDArray[np.uint64]
IdArray = NDArray[np.uint32]
CodeArray = NDArray[np.int32]
ByteArray = NDArray[np.uint8]
BoolArray = NDArray[np.bool_]
LabelArray = NDArray[np.uint16]
PlaceArray = NDArray[np.uint16] | NDArray[np.uint32]  # of 16 bits where these are enough
ObjectArray = NDArray[np.object_]
PLACES: tuple[Any, Any] = np.uint16, np.uint32  # types of `PlaceArray`
MOST_PLACES = 1 << 16  # that numbers of 16 bits tell apart
Random = np.random.RandomState


def listed_for(tokens: IntArray, ptr: IntArray, *lists: IntArray) -> tuple[IntArray, ...]:
    """Return pointers and lists of what is listed for the chosen tokens alone."""
    counts = ptr[1:][tokens] - ptr[:-1][tokens]  # of few tokens, in time for these
    fewer = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    entries = np.arange(fewer[-1]) + np.repeat(ptr[:-1][tokens] - fewer[:-1], counts)
    return (fewer, *(each[entries] for each in lists))


def taken_rows(offsets: IntArray, sequences: IntArray) -> tuple[IntArray, IntArray]:
    """Return where chosen sequences start, and the end, (n + 1,), and their rows, in turn."""
    begin, lengths = offsets[:-1][sequences], np.diff(offsets)[sequences]
    taken = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    return taken, np.arange(taken[-1]) + np.repeat(begin - taken[:-1], lengths)


class Potentials:
    """Scores of the parts of a batch of sequences, in nats; ``-inf`` forbids a part.

    The interface of the records of all structures, each of which is a NamedTuple that also derives
    from this class (:class:`crfkit.structures.ChainPotentials`). A token has a code out of C, and a
    code stands for a label: code ``c`` for the label ``c % K``.

    Attributes
    ----------
    unary : ndarray of shape (N, W)
        Scores of tokens; the first C columns are those of the codes.
    pair : ndarray
        Scores of parts of several tokens.
    transition_index : ndarray of shape (N,) or (1,)
        The table of `pair` that the transition into each token has (that of a first token is not
        used), or one for all.
    offsets : ndarray of shape (S + 1,)
        Where the sequences start in `unary`, and the end: ``offsets[0] == 0``.
    first : int
        Index of the first sequence in the whole data set, for messages.
    """

    __slots__ = ()

    if TYPE_CHECKING:

        @property
        def unary(self) -> FloatArray: ...  # noqa: D102
        @property
        def pair(self) -> FloatArray: ...  # noqa: D102
        @property
        def transition_index(self) -> IdArray: ...  # noqa: D102
        @property
        def offsets(self) -> IntArray: ...  # noqa: D102
        @property
        def first(self) -> int: ...  # noqa: D102

    @property
    def n_labels(self) -> int:
        """How many labels K a token may have."""
        raise NotImplementedError

    @property
    def n_codes(self) -> int:
        """How many codes C a token may have, a multiple of K."""
        raise NotImplementedError

    @property
    def is_dense(self) -> bool:
        """Whether each pair of labels has a score, so that the labels can be put in any order."""
        raise NotImplementedError

    def take_tokens(self, tokens: IntArray, offsets: IntArray) -> Self:
        """Return the potentials of the chosen tokens, shape (n,), which are those of sequences.

        `offsets` tells where these start. The index of the first sequence is not kept.
        """
        raise NotImplementedError

    def in_order(self, order: IntArray) -> Self:
        """Return the potentials with the labels in another order, shape (K,), if they are dense."""
        raise NotImplementedError

    def arrays(self) -> tuple[FloatArray, FloatArray]:
        """Return the arrays of scores: what gradients and directions have too."""
        return self.unary, self.pair

    def with_arrays(self, unary: FloatArray, pair: FloatArray) -> Self:
        """Return potentials of the same parts with other scores."""
        return self._with(unary=unary, pair=pair)

    def plus_unary(self, added: FloatArray) -> Self:
        """Return potentials with something added to the scores of codes of tokens, (N, C)."""
        unary = self.unary.copy()
        unary[:, : added.shape[1]] += added
        return self._with(unary=unary)

    def clamp(self, allowed: BoolArray) -> Self:
        """Return potentials that forbid the codes that are not allowed, shape (N, C)."""
        unary = self.unary.copy()
        unary[:, : allowed.shape[1]][~allowed] = -np.inf
        return self._with(unary=unary)

    def take(self, sequences: IntArray) -> Self:
        """Return the potentials of the chosen sequences, shape (n,)."""
        offsets, tokens = taken_rows(self.offsets, sequences)
        return self.take_tokens(tokens, offsets)

    def run(self, sequences: slice) -> Self:
        """Return the potentials of a run of sequences."""
        chosen = np.arange(sequences.start, sequences.stop)
        return self.take(chosen)._with(first=self.first + sequences.start)

    def one(self, s: int) -> Self:
        """Return the potentials of a sequence alone."""
        return self.run(slice(s, s + 1))

    def each(self) -> Iterator[Self]:
        """Yield the potentials of one sequence after the other."""
        return map(self.one, range(len(self.offsets) - 1))

    def _with(self, **changes: Any) -> Self:
        record: Any = self
        changed: Self = record._replace(**changes)
        return changed


class Counts(NamedTuple):
    """Weights of the parts, of the same shapes as the scores they belong to.

    Expected counts of the parts, or, from a loss, the gradient with respect to the scores.
    """

    unary: FloatArray
    pair: FloatArray


class IterationRecord(NamedTuple):
    """One line of the training log."""

    iteration: int  # from 1; 0 is the start
    value: float  # the objective: loss plus penalty
    gradient_norm: float  # Euclidean, of the (pseudo-)gradient; NaN where the solver has none
    evaluations: int  # of value and gradient so far; of mini-batches, passes over the data
    nonzero: int  # weights that are not zero
    seconds: float  # wall time since the solver started
    gap: float = math.nan  # the value is at most this much above its optimum; NaN: not known
    mistakes: int = -1  # sequences of a pass with a wrong prediction; -1 where not counted


class SolverResult(NamedTuple):
    """What a solver returns."""

    parameters: FloatArray  # (P,) of the last finished iteration
    value: float  # the objective there
    n_iter: int
    converged: bool  # whether a stopping rule of the solver was met
    message: str  # why it stopped and, where it did not converge, what to try
    history: list[IterationRecord]  # one record an iteration
    interrupted: bool = False  # whether the user stopped it
    gap: float = math.nan  # the value is at most this much above the optimum; NaN: not known
    solver: str = ""  # the class that found them, or several one after the other; "": who was asked


Frame = Any  # a pandas or polars data frame; neither is a dependency


LEVELS = ("sequences", "spans", "tokens")  # of what a confidence may be


class Segment(NamedTuple):
    """A segment: its first token, the one after its last, its label."""

    start: int
    stop: int
    label: Hashable


class BoundedLabels(NamedTuple):
    """Labels of a sequence that keep the rules, and how good others may be.

    Of chains and their kin, `method` is "viterbi", "product" (of automata), "relaxation" or
    "integer program"; of graphs, the search.
    """

    labels: list[Any]  # as `predict` gives them
    score: float
    bound: float  # no labels that keep the rules have a larger score
    method: str  # how they were found
    is_optimal: bool  # whether no others are better, but for rounding


class ProbableSegment(NamedTuple):
    """A segment and its probability."""

    start: int
    stop: int
    label: Hashable
    probability: float


class RankedLabels(NamedTuple):
    """One of the best labelings of a sequence."""

    labels: list[Any]  # of the tokens, or the spans that these say there are
    score: float
    probability: float  # NaN of a model without probabilities


class ReadSpans(NamedTuple):
    """Spans of all sequences: the first token of each, the one after its last, its type: (n,)."""

    start: IntArray
    stop: IntArray
    type: IntArray


class LabelReading(NamedTuple):
    """What codes say of spans.

    A span begins at a token whose code `opens` one after the code before it, takes in all that
    follow as long as each `continues` the one before, and is one if the last `closes` it.
    """

    types: list[Any]  # the labels of spans, (Y,)
    type_of: IntArray  # (C,) which of these a code has, -1 outside
    opens: BoolArray  # (C + 1, C) code (axis 1) after code (axis 0), the last row at the start
    continues: BoolArray  # (C, C) code (axis 1) goes on with the span of the code before (axis 0)
    closes: BoolArray  # (C, C + 1) the code (axis 0) is the last before code (axis 1), or the end

    def taken(self, codes: IntArray) -> LabelReading:
        """Return what other codes say, of which each is read as one of these: `codes`, (n,)."""
        ends = np.append(codes, len(self.type_of))
        return LabelReading(
            self.types, self.type_of[codes], self.opens[np.ix_(ends, codes)],
            self.continues[np.ix_(codes, codes)], self.closes[np.ix_(codes, ends)],
        )  # fmt: skip

    def spans(self, codes: CodeArray, offsets: IntArray) -> ReadSpans:
        """Return the spans that the codes of tokens, (N,), stand for; one below 0 is of none."""
        size = len(self.type_of)
        codes = np.where(codes < 0, size, codes).astype(np.int64)
        before, behind = np.append(size, codes[:-1]), np.append(codes[1:], size)
        if not len(codes):
            before = behind = codes
        filled = offsets[:-1] < offsets[1:]
        before[offsets[:-1][filled]] = behind[offsets[1:][filled] - 1] = size
        said, pairs = codes < size, (codes < size) & (behind < size)
        start = np.flatnonzero(said)[self.opens[before[said], codes[said]]]
        goes_on = np.zeros(len(codes), bool)
        goes_on[pairs] = self.continues[codes[pairs], behind[pairs]]
        last = np.flatnonzero(~goes_on)
        last = last[np.searchsorted(last, start)]
        closed = self.closes[codes[last], behind[last]]
        start, last = start[closed], last[closed]
        return ReadSpans(start, last + 1, self.type_of[codes[start]])
