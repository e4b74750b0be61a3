"""The parts that a linear model scores a labeling by, and the weights of each."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from crfkit._types import CodeArray, FloatArray
from crfkit.data import PackedSequences
from crfkit.data.names import name_array
from crfkit.inspection.weight_tables import KINDS
from crfkit.labels.segmentation import segmentation_of
from crfkit.potentials.blocks import NAMES_OF, SEGMENTS, TOKENS, TRANSITIONS

# Which attributes the rows of sparse tables are of.
ATTRIBUTES_OF = {
    "coef_": TOKENS, "first_coef_": TOKENS, "last_coef_": TOKENS, "single_coef_": TOKENS,
    "dual_coef_": TOKENS,
    "transition_coef_": TRANSITIONS, "segment_coef_": SEGMENTS,
}  # fmt: skip


class Part(NamedTuple):
    """A part of a labeling: what its score is read from."""

    table: str  # the fitted attribute
    row: int  # the row of features, or of the table
    column: int  # of the table
    position: int  # the token, or the first of the segment
    source: int  # of transitions, the token before; -1 for none
    from_label: int  # -1 for none
    label: int


class Term(NamedTuple):
    """A value times a weight: what it adds to a difference of scores.

    What the other labeling has counts as less, so that terms add up to the difference.
    """

    position: int  # the token; of segments, of lengths, the first one
    source: int  # of transitions, the token that they come from; -1 for none
    kind: str  # as of `Weight`
    attribute: Any
    from_label: Any
    label: Any
    value: float  # of the attribute; 1 where there is none
    weight: float
    contribution: float


class Scored:
    """One sequence, and the fitted weights that its labelings are scored by."""

    def __init__(self, fitted: dict[str, Any], labels: list[Any], data: PackedSequences) -> None:
        self.fitted, self.labels, self.data = fitted, labels, data
        self.of_segments = "length_scores_" in self.fitted
        segments = data.segments
        self.rows = {
            TOKENS: data, TRANSITIONS: data.transitions,
            SEGMENTS: None if segments is None else segments.rows,
        }  # fmt: skip

    def parts(self, codes: CodeArray) -> Iterator[Part]:
        """Yield the parts of the labeling that codes of tokens stand for, each once."""
        parts = self._of_segments(codes) if self.of_segments else self._of_tokens(codes)
        return (part for part in parts if self.fitted.get(part.table) is not None)

    def difference(self, codes: CodeArray, others: CodeArray | None = None) -> list[Term]:
        """Return what makes the score of a labeling, less that of another one, if given."""
        own = dict.fromkeys(self.parts(codes))
        theirs = dict.fromkeys([] if others is None else self.parts(others))
        terms = [t for part in own if part not in theirs for t in self.terms(part, 1.0)]
        terms += [t for part in theirs if part not in own for t in self.terms(part, -1.0)]
        return terms

    def terms(self, part: Part, sign: float) -> Iterator[Term]:
        """Yield the attributes of a part that are there and have a weight."""
        before = None if part.from_label < 0 else self.labels[part.from_label]
        label, table = self.labels[part.label], self.fitted[part.table]
        kind, source = KINDS[part.table], -1 if before is None else part.source
        for attribute, value, weight in self._weighted(part, table):
            if weight != 0.0:
                yield Term(
                    part.position, source, kind, attribute, before, label, value, weight,
                    sign * value * weight,
                )  # fmt: skip

    def _weighted(self, part: Part, table: Any) -> Iterator[tuple[Any, float, float]]:
        """Yield the attributes of a part, their values and weights."""
        if part.table not in ATTRIBUTES_OF:
            weight = table[part.column] if table.ndim == 1 else table[part.row, part.column]
            yield self._row_name(part), 1.0, float(weight)
            return
        of = ATTRIBUTES_OF[part.table]
        columns, values = row_of(self.rows[of], part.row)
        weights = sp.csr_array(table)[columns][:, [part.column]].toarray()[:, 0]
        names = self.fitted.get(NAMES_OF[of])
        named = columns.tolist() if names is None else name_array(names)[columns].tolist()
        yield from zip(named, values.tolist(), weights.tolist(), strict=True)

    def _row_name(self, part: Part) -> Any:
        """Return what the row of a table is about beside two labels; None for nothing else."""
        if part.table == "length_scores_":
            return part.row + 1
        second_order = part.table == "second_order_transitions_"
        return self.labels[part.row] if second_order and part.row < len(self.labels) else None

    def _of_tokens(self, codes: CodeArray) -> Iterator[Part]:
        """Yield the parts of a labeling of tokens that may be joined in any way."""
        own, data = codes.tolist(), self.data
        for t, k in enumerate(own):
            yield Part("coef_", t, k, t, -1, -1, k)
            yield Part("dual_coef_", t, k, t, -1, -1, k)
        source, target = (ends.tolist() for ends in data.ends)
        for row, (s, t) in enumerate(zip(source, target, strict=True)):
            if s >= 0:
                yield from self._transition(row, s, t, own[s], own[t])
        if self.fitted.get("second_order_transitions_") is not None:
            yield from self._after_two(own)
        if self.fitted.get("start_weights_") is not None and own:
            order = data.topology
            first = [0] if order is None else order.first_tokens.tolist()
            last = [len(own) - 1] if order is None else order.last_tokens.tolist()
            yield from (Part("start_weights_", 0, own[t], t, -1, -1, own[t]) for t in first)
            yield from (Part("end_weights_", 0, own[t], t, -1, -1, own[t]) for t in last)

    def _transition(self, row: int, s: int, t: int, i: int, j: int) -> Iterator[Part]:
        """Yield the parts of a transition from token s to token t."""
        yield Part("transitions_", i, j, t, s, i, j)
        if self.rows[TRANSITIONS] is not None:
            yield Part("transition_coef_", row, i * len(self.labels) + j, t, s, i, j)

    def _after_two(self, own: list[int]) -> Iterator[Part]:
        """Yield the parts of labels after two others; second tokens of sequences have one."""
        size = len(self.labels)
        for t, (i, j) in enumerate(pairwise(own), start=1):
            before = own[t - 2] if t > 1 else size
            yield Part("second_order_transitions_", before, i * size + j, t, t - 1, i, j)

    def _of_segments(self, codes: CodeArray) -> Iterator[Part]:
        """Yield the parts of a segmentation."""
        found = segmentation_of(codes, self.data.offsets, len(self.labels))
        start, stop, label = (part.tolist() for part in found)
        listed = self._listed(found.start, found.stop)
        for n, (begin, end, k) in enumerate(zip(start, stop, label, strict=True)):
            yield from (Part("coef_", t, k, t, -1, -1, k) for t in range(begin, end))
            yield Part("first_coef_", begin, k, begin, -1, -1, k)
            yield Part("last_coef_", end - 1, k, end - 1, -1, -1, k)
            if end - begin == 1:
                yield Part("single_coef_", begin, k, begin, -1, -1, k)
            # Segments are told apart by where they end, too.
            yield Part("length_scores_", end - begin - 1, k, begin, end, -1, k)
            if listed[n] >= 0:
                yield Part("segment_coef_", listed[n], k, begin, end, -1, k)
            if n:
                yield from self._transition(begin, begin - 1, begin, label[n - 1], k)
        if start:
            yield Part("start_weights_", 0, label[0], 0, -1, -1, label[0])
            last = len(codes) - 1
            yield Part("end_weights_", 0, label[-1], last, -1, -1, label[-1])

    def _listed(self, start: Any, stop: Any) -> list[int]:
        """Return the rows of attributes of segments, -1 for none."""
        segments = self.data.segments
        if segments is None:
            return [-1] * len(start)
        found = segments.find(start, stop)
        if not len(segments.row):
            return found.tolist()  # type: ignore[no-any-return]
        rows = np.where(found >= 0, segments.row[found], -1)
        return rows.tolist()  # type: ignore[no-any-return]


def row_of(features: PackedSequences | None, row: int) -> tuple[Any, FloatArray]:
    """Return the numbers of the attributes that a row has, and their values."""
    if features is None:
        return np.zeros(0, np.int64), np.zeros(0)
    matrix = features.take_tokens(np.array([row])).to_csr()
    used = matrix.data != 0.0
    return matrix.indices[used].astype(np.int64), matrix.data[used]
