"""The distribution of the codes of tokens of segments."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from crfkit._types import BoolArray, Counts, FloatArray, IntArray
from crfkit.compiler.jit import frozen
from crfkit.kernels.chain.sum import OK, UNDERFLOW
from crfkit.kernels.semimarkov.arrays import SegmentExponentials, SegmentScores, SegmentTables
from crfkit.kernels.semimarkov.log_posterior import (
    LogPartTangents,
    LogSegmentMessages,
    Measures,
    semimarkov_posterior_log,
    semimarkov_pull_back_log,
)
from crfkit.kernels.semimarkov.posterior import InsideRooms, SegmentMessages, semimarkov_posterior
from crfkit.kernels.semimarkov.pull_back import (
    LEAST,
    PartTangents,
    SegmentGradient,
    SlopeRooms,
    semimarkov_pull_back,
)
from crfkit.structures.base import longest
from crfkit.structures.posterior import Posterior
from crfkit.structures.potentials import (
    SegmentPotentials,
    are_moderate,
    exponentials,
    segment_arrays,
    tilted,
    transposed,
)
from crfkit.structures.semimarkov import SemiMarkov, log_workspace, raise_if_dead, segment_prefixes


class _Pass(NamedTuple):
    """Sequences that are summed in the linear domain, and what is kept of their sums."""

    scores: SegmentScores
    raised: SegmentExponentials
    messages: SegmentMessages


class SegmentPosterior(Posterior):
    """What is known of the codes of tokens, given the potentials with what a structure adds.

    Sums are those of the linear domain, as those of `SemiMarkov`. Sequences whose scores are
    spread too far for it, and those that are asked about a code of a vanishing probability, are
    summed by logarithms.
    """

    def __init__(self, potentials: SegmentPotentials) -> None:
        self._potentials, count = potentials, len(potentials.offsets) - 1
        self._sizes, self._scores = np.diff(potentials.offsets), segment_arrays(potentials)
        self._norm = np.empty(len(potentials.unary))
        self._logs: dict[int, LogSegmentMessages] = {}
        self._passes: list[_Pass] = []
        self.log_z = np.zeros(count)
        self.marginals = np.empty((len(potentials.unary), potentials.n_codes))
        self._in_pass, status = np.full(count, -1), np.full(count, UNDERFLOW)
        closer = tilted(potentials)
        for same in (closer,) if closer is potentials else (closer, potentials):
            todo = np.flatnonzero((status == UNDERFLOW) & are_moderate(same))
            if len(todo):
                self._sum(same, todo, status)
        for s in np.flatnonzero(self._in_pass < 0).tolist():
            begin, end = potentials.offsets[s : s + 2]
            if begin < end:
                self.marginals[begin:end] = np.exp(self._logarithms(s).marginals)
        self.marginals = frozen(self.marginals)

    def _sum(self, scores: SegmentPotentials, todo: IntArray, status: IntArray) -> None:
        """Sum some sequences in the linear domain, if they can be."""
        raised, arrays = exponentials(scores), segment_arrays(scores)
        width, length = raised.tables.stay.shape[1], longest(scores)
        rows = len(scores.unary) + len(scores.offsets) - 1
        prefixes = segment_prefixes(rows, len(scores.unary), width)
        messages = SegmentMessages(prefixes, *np.empty((3, rows, width)))
        rooms = InsideRooms(*(np.empty((n, width)) for n in (length, scores.n_lengths, 1)))
        semimarkov_posterior(
            arrays, raised, frozen(todo), messages, rooms, self.marginals, self.log_z, status
        )
        raise_if_dead(scores, status)
        status[status != OK] = UNDERFLOW
        self._in_pass[todo[status[todo] == OK]] = len(self._passes)
        self._passes.append(_Pass(arrays, raised, messages))

    def _logarithms(self, s: int) -> LogSegmentMessages:
        """Return what is known of a sequence that is not empty, by sums of logarithms."""
        if s not in self._logs:
            length, size = int(self._sizes[s]), self._potentials.n_labels
            sums = log_workspace(length, 0, size)._replace(norm=self._norm)
            behind, follow = np.empty((2, length, size))
            messages = LogSegmentMessages(sums, behind, follow, np.empty((length, 2 * size)))
            values = np.empty(self._scores.n_lengths)
            log_z = self.log_z if self._in_pass[s] < 0 else self.log_z.copy()
            status = np.full(len(log_z), OK)
            status[s] = semimarkov_posterior_log(self._scores, s, values, messages, log_z)
            raise_if_dead(self._potentials, status)
            self._logs[s] = messages
        return self._logs[s]

    def log_probability(self, tokens: IntArray, codes: IntArray) -> FloatArray:
        """Return the logarithms of probabilities of codes at tokens."""
        shares = self.marginals[tokens, codes]
        with np.errstate(divide="ignore"):
            found: FloatArray = np.log(shares)
        offsets = self._potentials.offsets
        small = (shares < LEAST) & (self._potentials.unary[tokens, codes] > -np.inf)
        where = np.searchsorted(offsets, tokens[small], side="right") - 1
        places = np.flatnonzero(small)
        for s in np.unique(where).tolist():
            chosen = places[where == s]
            known = self._logarithms(s).marginals
            found[chosen] = known[tokens[chosen] - offsets[s], codes[chosen]]
        return found

    def pull_back(self, slopes: FloatArray, out: Counts) -> None:
        """Write the gradient of a function of the marginals."""
        size = self._potentials.n_labels
        none = Counts(np.zeros((0, 4 * size)), np.zeros((0, size)))
        self._collect(slopes, np.ones(len(self.log_z)), none, out)

    def differentiate(self, tangent: Counts, weight: FloatArray, out: Counts) -> None:
        """Write the derivatives of the expected counts along a direction of the potentials.

        Codes collect what differs from the mean of their token.
        """
        slopes = tangent.unary[:, : self._potentials.n_codes]
        slopes = slopes - np.sum(self.marginals * slopes, axis=1, keepdims=True)
        slopes *= self.marginals * np.repeat(weight, self._sizes)[:, None]
        self._collect(slopes, weight, tangent, out)

    def _collect(
        self, slopes: FloatArray, weight: FloatArray, tangent: Counts, out: Counts
    ) -> None:
        """Write the covariances of parts with what codes and other parts collect."""
        slopes, left = frozen(slopes), np.ones(len(self.log_z), bool)
        for n, each in enumerate(self._passes):
            chosen = np.flatnonzero(self._in_pass == n)
            left[chosen] = self._collect_scaled(each, chosen, slopes, weight, tangent, out)
        unary, pair = map(frozen, tangent)
        for s in np.flatnonzero(left & (self._sizes > 0)).tolist():
            length, size = int(self._sizes[s]), self._potentials.n_labels
            measures = Measures(np.zeros((length + 1, size)), *np.empty((3, length, size)))
            known, parts = self._logarithms(s), LogPartTangents(float(weight[s]), unary, pair)
            centered = self._centered(s, slopes, weight[s], tangent) if len(pair) else slopes
            semimarkov_pull_back_log(self._scores, s, known, centered, parts, measures, out)

    def _centered(self, s: int, slopes: FloatArray, weight: float, tangent: Counts) -> FloatArray:
        """Return slopes by which all segmentations of a sequence collect 0 in the mean."""
        one, size, (begin, end) = (
            self._potentials.take(np.array([s])), self._potentials.n_labels,
            self._potentials.offsets[s : s + 2],
        )  # fmt: skip
        counts = Counts(np.zeros_like(one.unary), np.zeros_like(one.pair))
        SemiMarkov().log_partition(one, np.ones(1), counts)
        whole = np.sum(counts.unary[:, 2 * size :] * tangent.unary[begin:end, 2 * size :])
        mean = weight * (whole + np.sum(counts.pair * tangent.pair)) / (end - begin)
        less = slopes.copy()
        less[begin:end] -= mean * self.marginals[begin:end]
        return frozen(less)

    def _collect_scaled(
        self,
        known: _Pass,
        chosen: IntArray,
        slopes: FloatArray,
        weight: FloatArray,
        tangent: Counts,
        out: Counts,
    ) -> BoolArray:
        """Do this in the linear domain; returns for which sequences it cannot be done, (n,)."""
        size, tables = self._potentials.n_labels, known.raised.tables
        rows, width = longest(self._potentials), tables.stay.shape[1]
        stay, start, begins, ends, *others = np.empty((9, rows, width))
        alpha, (vector, weighed) = np.empty((rows + 1, width)), np.empty((2, 1, width))
        rooms = SlopeRooms(stay, start, alpha, vector, weighed, begins, ends, *others)
        tangents = _part_tangents(self._potentials, tables, weight, tangent)
        made = SegmentGradient(
            out.unary, np.zeros_like(tables.transitions), np.zeros_like(tangents.transitions),
            np.zeros_like(tables.lengths), np.zeros_like(tables.spans),
            np.empty(len(self.log_z), np.int64),
        )  # fmt: skip
        semimarkov_pull_back(
            known.scores, known.raised, frozen(chosen), known.messages, self.marginals,
            slopes, tangents, rooms, made,
        )  # fmt: skip
        flow = np.multiply(made.flow, tables.transitions, out=made.flow)
        if len(made.passing):
            flow += made.passing * tangents.transitions
        flow = flow[:, :size, :size].reshape(-1, size)
        out.pair[...] += np.concatenate([flow, made.lengths[:, :size], made.spans[:, :size]])
        failed: BoolArray = made.status[chosen] != OK
        return failed


def _part_tangents(
    scores: SegmentPotentials, tables: SegmentTables, weight: FloatArray, tangent: Counts
) -> PartTangents:
    """Return what parts other than codes collect, in columns for whole vectors."""
    size, (unary, pair) = scores.n_labels, tangent
    added = ((0, 0), (0, tables.stay.shape[1] - size))
    count, rows = (scores.n_transitions // size, scores.n_lengths) if len(pair) else (0, 0)
    steps = np.pad(pair[: count * size].reshape(count, size, size), ((0, 0), added[1], added[1]))
    steps *= tables.transitions[:count]
    finish, alone = unary[:, 2 * size : 3 * size], unary[:, 3 * size :]
    lengths, spans = pair[count * size : count * size + rows], pair[count * size + rows :]
    wide = [frozen(np.pad(block, added)) for block in (finish, alone, lengths, spans)]
    return PartTangents(
        frozen(weight), wide[0], wide[1], wide[2], wide[3], frozen(steps), transposed(steps)
    )
