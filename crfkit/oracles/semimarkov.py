"""The oracle of segments whose transitions share their scores."""

from __future__ import annotations

import numpy as np

from crfkit._parallel import ThreadMap
from crfkit._types import FloatArray
from crfkit.compiler.jit import frozen
from crfkit.data import PackedSequences
from crfkit.kernels.semimarkov.oracle import SegmentProblem, SegmentWorkspace
from crfkit.oracles.base import Oracle, register_oracle
from crfkit.oracles.label_order import LabelOrder
from crfkit.oracles.segment_rows import SegmentRows
from crfkit.oracles.token_design import make_token_design
from crfkit.oracles.weights import aligned
from crfkit.potentials.semimarkov import TOKEN_PARTS, SemiMarkovModel
from crfkit.structures import SemiMarkov, Structure


class SegmentOracle(Oracle):
    """Segments without attributes of transitions in compiled form.

    The structure adds the scores that are not learned.
    """

    def __init__(
        self, model: SemiMarkovModel, structure: Structure, data: PackedSequences,
        order: LabelOrder, threads: ThreadMap,
    ) -> None:  # fmt: skip
        rows = SegmentRows(model, structure, data, order, data.offsets, set())
        self.order, self.weights = order, rows.weights
        of_spans = np.zeros(data.n_tokens + 1, np.int64)
        of_spans[data.offsets] = rows.of_groups
        self._n_spans = int(np.diff(rows.of_groups).max(initial=0))
        design = make_token_design(rows.weights, rows.with_dense(), threads)
        self.problem = SegmentProblem(
            frozen(data.offsets), model.n_labels, design, rows.weights.base, frozen(rows.parts),
            frozen(rows.of_parts), frozen(of_spans), rows.spans.ends,
            frozen(rows.fixed.transitions[:, : model.n_labels]),
            frozen(rows.fixed.lengths[: rows.n_lengths]), rows.fixed.longest,
        )  # fmt: skip

    def workspace(self, flat: FloatArray) -> SegmentWorkspace:
        """Return weights, shape (L,), and room for a sequence, for one thread."""
        problem, width = self.problem, self.weights.width
        longest, n_lengths = (
            int(np.diff(problem.offsets).max(initial=0)),
            len(problem.fixed_lengths),
        )
        n_spans, path = self._n_spans, np.zeros(longest, np.int32)
        weights = self.weights.for_tokens(flat, problem.design.dense.shape[1], self._most_changes())
        scores = aligned(len(TOKEN_PARTS) * longest, width)
        stay, start, finish, alone = scores.reshape(len(TOKEN_PARTS), longest, width)
        return SegmentWorkspace(
            weights, scores, stay, start, finish, alone, problem.fixed_transitions.copy(),
            problem.fixed_lengths.copy(), aligned(n_spans, width), aligned(longest + 1, width),
            aligned(longest, width), np.zeros(1, np.uint32), path, path[None], weights.positions,
            weights.changes, aligned(len(problem.parts) * longest + n_lengths + n_spans, width),
            aligned(problem.n_labels, width),
        )  # fmt: skip

    def _most_changes(self) -> int:
        """Return how many changes of weights two segmentations of a sequence list at most."""
        problem, design = self.problem, self.problem.design
        rows, cells = np.diff(design.row_ptr), np.diff(design.cell_ptr)
        of_rows, n_dense = rows + cells + 1, int(design.dense.shape[1])
        first = problem.of_parts[-1]
        of_tokens = of_rows[:first].reshape(len(problem.parts), -1).sum(axis=0)
        before = np.concatenate([[0], np.cumsum(of_tokens)])
        of_parts = np.diff(before[problem.offsets]).max(initial=0)
        longest = int(np.diff(problem.offsets).max(initial=0))
        of_token = len(problem.parts) * n_dense + 2 * int(of_rows[first:].max(initial=0)) + 1
        return int(2 * (of_parts + longest * of_token)) + 1


def _make(
    model: SemiMarkovModel, structure: Structure, data: PackedSequences, order: LabelOrder,
    threads: ThreadMap,
) -> SegmentOracle | None:  # fmt: skip
    if not model.homogeneous or model.extra_blocks:
        return None
    return SegmentOracle(model, structure, data, order, threads)


register_oracle(SemiMarkovModel, SemiMarkov, _make)
