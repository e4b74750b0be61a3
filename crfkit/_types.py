"""Small records that travel between the layers.

Letters for sizes, here and everywhere: ``N`` tokens, ``S`` sequences, ``K`` labels, ``D``
attributes, ``T`` the length of one sequence.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
SingleArray = NDArray[np.float32]
IntArray = NDArray[np.int64]
PtrArray = NDArray[np.uint64]
IdArray = NDArray[np.uint32]
CodeArray = NDArray[np.int32]
Random = np.random.RandomState


class Chunk(NamedTuple):
    """A run of consecutive sequences, the unit of work of one thread.

    Attributes
    ----------
    first : int
        Index of the first sequence in the whole data set.
    offsets : ndarray of shape (S + 1,)
        Token positions in the whole data set at which the sequences start, and the end.
    """

    first: int
    offsets: IntArray

    @property
    def tokens(self) -> slice:
        """The tokens of the chunk within the whole data set."""
        return slice(int(self.offsets[0]), int(self.offsets[-1]))

    @property
    def sequences(self) -> slice:
        """The sequences of the chunk within the whole data set."""
        return slice(self.first, self.first + len(self.offsets) - 1)


class Spans(NamedTuple):
    """Segments that have scores of their own: which row of scores each of them has.

    Listed twice: by the token they end at, and by the one they begin at.

    Attributes
    ----------
    end_ptr, start_ptr : ndarray of shape (N + 1,)
        Where the segments that end (begin) at a token are listed, and the end.
    end_length, start_length : ndarray of shape (n,)
        Their lengths, rising for each token.
    end_row, start_row : ndarray of shape (n,)
        Their rows.
    """

    end_ptr: IntArray
    end_length: IntArray
    end_row: IntArray
    start_ptr: IntArray
    start_length: IntArray
    start_row: IntArray

    def taken(self, tokens: IntArray) -> Spans:
        """Return the segments of the chosen tokens, shape (n,), which are those of sequences."""
        ends = listed_for(tokens, self.end_ptr, self.end_length, self.end_row)
        starts = listed_for(tokens, self.start_ptr, self.start_length, self.start_row)
        return Spans(*ends, *starts)


def listed_for(tokens: IntArray, ptr: IntArray, *lists: IntArray) -> tuple[IntArray, ...]:
    """Return pointers and lists of what is listed for the chosen tokens alone."""
    counts = ptr[1:][tokens] - ptr[:-1][tokens]  # of few tokens, in time for these
    fewer = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    entries = np.arange(fewer[-1]) + np.repeat(ptr[:-1][tokens] - fewer[:-1], counts)
    return (fewer, *(each[entries] for each in lists))


class SegmentParts(NamedTuple):
    """What the rows of the pair scores of segments are, and which segments have one.

    Attributes
    ----------
    n_steps : int
        The first rows: ``M`` tables of steps from label to label, K rows each.
    n_lengths : int
        Then, a row for each length of a segment: 1, 2, ..., L.
    spans : Spans
        The rows after these are shared by the segments that have one.
    """

    n_steps: int
    n_lengths: int
    spans: Spans


class Potentials(NamedTuple):
    """Scores of the parts of a batch of sequences, in nats; ``-inf`` forbids a part.

    Those of segments (:class:`crfkit.structures.SemiMarkov`) have four scores for each label at a
    token, shape (N, 4 K), and rows of pair scores, shape (R, K).

    Attributes
    ----------
    unary : ndarray of shape (N, K)
        Score of each label at each token.
    pair : ndarray of shape (M, K, K)
        Tables of the scores of each step from a label (axis 1) to the next (axis 2).
    offsets : ndarray of shape (S + 1,)
        Where the sequences start in `unary`, and the end: ``offsets[0] == 0``.
    first : int, default=0
        Index of the first sequence in the whole data set, for messages.
    table : ndarray of shape (N,) or (1,), optional
        The table of the step into each token (that of a first token is not used), or one for all.
        If not given, ``M`` is 1 or ``N``, and each token has its own.
    segments : SegmentParts, optional
        What the rows of the pair scores of segments are.
    """

    unary: FloatArray
    pair: FloatArray
    offsets: IntArray
    first: int = 0
    table: IdArray | None = None
    segments: SegmentParts | None = None

    @property
    def transition_index(self) -> IdArray:
        """The table of the step into each token, shape (N,), or (1,) where all share one."""
        if self.table is not None:
            return self.table
        return np.arange(len(self.pair), dtype=np.uint32)

    def taken(self, tokens: IntArray, offsets: IntArray) -> Potentials:
        """Return the scores of the chosen tokens, shape (n,), which are those of sequences.

        `offsets` tells where these start. The index of the first sequence is not kept.
        """
        table, parts = self.transition_index, self.segments
        return self._replace(
            unary=self.unary[tokens],
            offsets=offsets,
            first=0,
            table=table[tokens] if len(table) > 1 else table,
            segments=parts and parts._replace(spans=parts.spans.taken(tokens)),
        )

    def each(self) -> Iterator[Potentials]:
        """Yield the scores of one sequence after the other."""
        bounds = zip(self.offsets[:-1].tolist(), self.offsets[1:].tolist(), strict=True)
        for s, (begin, end) in enumerate(bounds):
            one = self.taken(np.arange(begin, end), np.array([0, end - begin]))
            yield one._replace(first=self.first + s)

    @property
    def n_codes(self) -> int:
        """How many codes a token may have; their scores are the first columns of `unary`."""
        return int(self.unary.shape[1] if self.segments is None else 2 * self.pair.shape[1])


class Counts(NamedTuple):
    """Weights of the parts, of the same shapes as the scores they belong to.

    Expected counts of the parts, or, from a loss, the gradient with respect to the scores.
    """

    unary: FloatArray
    pair: FloatArray


class IterationRecord(NamedTuple):
    """One line of the training log.

    Attributes
    ----------
    iteration : int
        Number of the iteration, from 1; 0 is the start.
    value : float
        The objective: loss plus penalty.
    gradient_norm : float
        Euclidean norm of the (pseudo-)gradient; NaN where the solver has none.
    evaluations : int
        Evaluations of value and gradient so far; of a solver that works with mini-batches, passes
        over the data.
    nonzero : int
        Number of weights that are not zero.
    seconds : float
        Wall time since the solver started.
    gap : float, default=nan
        The objective is at most this much above its optimum; NaN where that is not known.
    mistakes : int, default=-1
        Sequences of a pass of which a predicted label was wrong; -1 where these are not counted.
    """

    iteration: int
    value: float
    gradient_norm: float
    evaluations: int
    nonzero: int
    seconds: float
    gap: float = math.nan
    mistakes: int = -1


class SolverResult(NamedTuple):
    """What a solver returns.

    Attributes
    ----------
    parameters : ndarray of shape (P,)
        The parameters of the last finished iteration.
    value : float
        The objective there.
    n_iter : int
        Number of iterations.
    converged : bool
        Whether a stopping rule of the solver was met.
    message : str
        Why it stopped and, where it did not converge, what to try.
    history : list of IterationRecord
        One record an iteration.
    interrupted : bool
        Whether the user stopped it.
    gap : float
        The value is at most this much above the optimum; NaN where that is not known.
    """

    parameters: FloatArray
    value: float
    n_iter: int
    converged: bool
    message: str
    history: list[IterationRecord]
    interrupted: bool = False
    gap: float = math.nan


Frame = Any  # a pandas or polars data frame; neither is a dependency


class Segment(NamedTuple):
    """A segment: its first token, the one after its last, its label."""

    start: int
    stop: int
    label: Hashable


class ProbableSegment(NamedTuple):
    """A segment and its probability."""

    start: int
    stop: int
    label: Hashable
    probability: float
