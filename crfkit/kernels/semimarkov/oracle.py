"""The oracle of segments whose transitions share their scores, for compiled solvers.

Each part of a token (it is inside, first, last or single), each length and each segment that has
attributes is a row of the design, and reads weights as a token of a chain does. ``Q``: tokens of
the longest sequence; rows of ``K`` labels are filled up to ``W``, whole vectors of eight; the
``-inf`` there of lengths keeps those labels from being found.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from crfkit._types import CodeArray, FloatArray, IdArray, IntArray
from crfkit.compiler.dispatch import implements
from crfkit.compiler.jit import kernel, part
from crfkit.compiler.simd import WIDTH, add, fill, load, multiply_add, store, total
from crfkit.kernels.chain.sum import OK
from crfkit.kernels.design.tokens import (
    Design,
    TokenWeights,
    add_row,
    apply_row,
    apply_token,
    clear_row,
    gather_tokens,
    list_token,
    list_weight,
    scatter_token,
)
from crfkit.kernels.oracle import (
    FOUND,
    INFINITE,
    ActiveSet,
    Examples,
    Labeling,
    add_direction,
    apply_direction,
    best,
    gather,
    level,
    list_difference,
    path_score,
    refresh,
    total_cost,
)
from crfkit.kernels.semimarkov.arrays import SegmentTables, SegmentViterbi, SpanIndex
from crfkit.kernels.semimarkov.max import _best_label, _best_segmentation, _find

# Parts of a token.
INSIDE, FIRST, LAST, SINGLE = 0, 1, 2, 3


class SegmentProblem(NamedTuple):
    """Segments whose transitions are homogeneous.

    Rows of the design are those of each part of all tokens, then of lengths, then of segments.
    """

    offsets: IntArray  # (S + 1,)
    n_labels: int
    design: Design
    base: int  # the first row of the weights of transitions
    parts: IntArray  # (n,) the parts of tokens that have rows
    of_parts: IntArray  # (n + 1,) the first row of each, and that of lengths
    of_spans: IntArray  # (N + 1,) the first row of segments, at the first tokens of sequences
    spans: SpanIndex  # the segments with rows, by the token they end at: numbers in the sequence
    fixed_transitions: FloatArray  # (1, K, W) what is not learned of the scores of transitions
    fixed_lengths: FloatArray  # (L, W) and of lengths
    most: IntArray  # (W / 8,) the longest length of eight labels


class SegmentWorkspace(NamedTuple):
    """Weights, and room for one sequence."""

    weights: TokenWeights
    scores: FloatArray  # (4 Q, W) of parts of tokens, begun anew after each Q
    stay: FloatArray  # (Q, W) a view of these: of going on; costs are added
    start: FloatArray  # (Q, W) of beginning, of which going on is a part
    finish: FloatArray  # (Q, W) of ending
    alone: FloatArray  # (Q, W) of being alone
    transitions: FloatArray  # (1, K, W)
    lengths: FloatArray  # (L, W)
    spans: FloatArray  # (R, W) of segments with attributes
    best: FloatArray  # (Q + 1, W)
    begins: FloatArray  # (Q, W)
    table: IdArray  # (1,) the table of transitions: 0
    path: CodeArray  # (Q,)
    paths: CodeArray  # (1, Q) the same
    positions: IdArray  # (n,) those of the weights
    changes: FloatArray  # (n,)
    residual: FloatArray  # (n Q + L + R, W) counts of parts, lengths and segments
    flows: FloatArray  # (K, W) and of transitions


@implements(refresh, SegmentProblem)
def _refresh(problem: SegmentProblem, workspace: SegmentWorkspace) -> None:
    """Compute the scores of transitions and lengths: what is added to them, plus their weights."""
    table, fixed, out = workspace.weights.table, problem.fixed_transitions, workspace.transitions
    for i in range(problem.n_labels):
        for j in range(table.shape[1]):
            out[0, i, j] = fixed[0, i, j] + table[problem.base + i, j]
    n_parts: int = problem.parts.shape[0]
    first, lengths = problem.of_parts[n_parts], workspace.lengths
    for d in range(lengths.shape[0]):
        for p in range(0, lengths.shape[1], WIDTH):
            store(load(problem.fixed_lengths, d, p), lengths, d, p)
    gather_tokens(problem.design, first, first + lengths.shape[0], workspace.weights, 0, lengths)


@implements(gather, SegmentProblem)
def _gather(problem: SegmentProblem, s: int, workspace: SegmentWorkspace) -> None:
    """Compute the scores of tokens and of segments with attributes; beginning holds going on."""
    begin, room, scores = problem.offsets[s], workspace.stay.shape[0], workspace.scores
    length, first = problem.offsets[s + 1] - begin, False
    for i in range(problem.parts.shape[0]):
        at, t = problem.parts[i] * room, problem.of_parts[i] + begin
        first = first or problem.parts[i] == FIRST
        for row in range(at, at + length):
            clear_row(scores, row)
        gather_tokens(problem.design, t, t + length, workspace.weights, at, scores)
    for row in range(length):
        for p in range(0, scores.shape[1], WIDTH):
            own = load(workspace.start, row, p) if first else fill(0.0)
            store(add(load(workspace.stay, row, p), own), workspace.start, row, p)
    low, high = problem.of_spans[begin], problem.of_spans[begin + length]
    for row in range(high - low):
        clear_row(workspace.spans, row)
    gather_tokens(problem.design, low, high, workspace.weights, 0, workspace.spans)


@part
def _add_costs(begin: int, length: int, examples: Examples, size: int,
               workspace: SegmentWorkspace) -> bool:  # fmt: skip
    """Add costs to the scores of going on and beginning; returns whether all are finite."""
    stay, start, cost, zeros = workspace.stay, workspace.start, examples.cost, fill(0.0)
    for row in range(length):
        for p in range(0, stay.shape[1], WIDTH):
            going, begun = load(stay, row, p), load(start, row, p)
            zeros = multiply_add(add(going, begun), fill(0.0), zeros)  # NaN, if not finite
            ended = add(load(workspace.finish, row, p), load(workspace.alone, row, p))
            zeros = multiply_add(ended, fill(0.0), zeros)
            if cost.shape[0] > 0:
                label = examples.labels[0, begin + row]
                store(add(going, load(cost, label, p)), stay, row, p)
                store(add(begun, load(cost, label, size + p)), start, row, p)
    return total(zeros) == 0.0


@implements(best, SegmentProblem)
def _best(
    problem: SegmentProblem, s: int, examples: Examples, workspace: SegmentWorkspace
) -> tuple[float, int]:
    """Find the segmentation of the largest score; of equal ones as `_best_segmentation` says."""
    begin, size, value = problem.offsets[s], problem.n_labels, math.nan
    length = problem.offsets[s + 1] - begin
    status: int = INFINITE
    if _add_costs(begin, length, examples, size, workspace):
        tables = SegmentTables(
            workspace.stay, workspace.start, workspace.finish, workspace.alone,
            workspace.transitions, workspace.lengths, workspace.spans, problem.most,
        )  # fmt: skip
        search = SegmentViterbi(workspace.best, workspace.begins, workspace.path)
        status = _best_segmentation(
            tables, problem.spans, workspace.table, size, 0, length, begin, search
        )
        if status == OK:
            value = workspace.best[length, _best_label(workspace.best, length, size)]
            status = FOUND if abs(value) < math.inf else INFINITE
    return value, status


@part
def _code(labeling: Labeling, row: int) -> int:
    """Return the code of a token."""
    code: int = labeling.codes[labeling.row, labeling.shift + row]
    return code


@part
def _ends(labeling: Labeling, row: int, length: int, size: int) -> bool:
    """Whether a segment ends at a token: a next one begins, or none follows."""
    return row + 1 == length or _code(labeling, row + 1) >= size


@part
def _span(problem: SegmentProblem, t: int, d: int) -> int:
    """Return the number of a segment that ends at a token, -1 if it has no attributes."""
    spans = problem.spans
    q = _find(spans.length, spans.ptr[t], spans.ptr[t + 1], d)
    return spans.row[q] if q >= 0 else -1


@implements(path_score, SegmentProblem)
def _path_score(
    problem: SegmentProblem, s: int, labeling: Labeling, examples: Examples,
    workspace: SegmentWorkspace,
) -> float:  # fmt: skip
    """Add up the scores of the parts of a segmentation, with costs."""
    begin, size, value, first, before = problem.offsets[s], problem.n_labels, 0.0, 0, 0
    length = problem.offsets[s + 1] - begin
    for row in range(length):
        code = _code(labeling, row)
        label = code if code < size else code - size
        value += workspace.stay[row, label] if code < size else workspace.start[row, label]
        if code >= size:
            if row > 0:
                value += workspace.transitions[0, before, label]
            first = row
        if _ends(labeling, row, length, size):
            d, before = row - first + 1, label
            value += workspace.finish[row, label]
            if d == 1:
                value += workspace.alone[row, label]
            value += (
                workspace.lengths[d - 1, label] if d <= workspace.lengths.shape[0] else -math.inf
            )
            number = _span(problem, begin + row, d)
            if number >= 0:
                value += workspace.spans[number, label]
    return value


@implements(level, SegmentProblem)
def _level(
    problem: SegmentProblem, s: int, labeling: Labeling, examples: Examples,
    workspace: SegmentWorkspace,
) -> float:  # fmt: skip
    """Add to the cost how much more a segmentation scores than the true one by what is fixed."""
    gold = _fixed_score(problem, s, Labeling(examples.labels, 0, problem.offsets[s]))
    more: float = total_cost(problem, s, labeling, examples) - gold
    fixed: float = _fixed_score(problem, s, labeling)
    return more + fixed


@part
def _fixed_score(problem: SegmentProblem, s: int, labeling: Labeling) -> float:
    """Add up what is not learned of the score of an allowed segmentation."""
    size, value, first, before = problem.n_labels, 0.0, 0, 0
    length = problem.offsets[s + 1] - problem.offsets[s]
    for row in range(length):
        code = _code(labeling, row)
        label = code if code < size else code - size
        if code >= size:
            if row > 0:
                value += problem.fixed_transitions[0, before, label]
            first = row
        if _ends(labeling, row, length, size):
            value += problem.fixed_lengths[row - first, label]
            before = label
    return value


@part
def _has(what: int, code: int, ends: bool, size: int) -> bool:
    """Whether a token counts for a part."""
    if what == INSIDE:
        return True
    return (what == LAST or code >= size) and (what == FIRST or ends)


@kernel
def _list_segment(count: int, s: int, t: int, d: int, label: int, sign: float,
                  problem: SegmentProblem, workspace: SegmentWorkspace) -> int:  # fmt: skip
    """List the length of a segment that ends at a token, and the attributes of its own."""
    design, weights, number = problem.design, workspace.weights, _span(problem, t, d)
    if d <= workspace.lengths.shape[0]:
        n_parts: int = problem.parts.shape[0]
        row = problem.of_parts[n_parts] + d - 1
        count = list_token(count, design, row, label, sign, weights)
    if number >= 0:
        row = problem.of_spans[problem.offsets[s]] + number
        count = list_token(count, design, row, label, sign, weights)
    return count


@implements(list_difference, SegmentProblem)
def _list_difference(
    problem: SegmentProblem, s: int, one: Labeling, other: Labeling, workspace: SegmentWorkspace
) -> int:
    """List what differs token by token, at transitions and where segments end."""
    begin, size, count = problem.offsets[s], problem.n_labels, 0
    length, first_a, first_b, before_a, before_b = problem.offsets[s + 1] - begin, 0, 0, 0, 0
    for row in range(length):
        t, a, b = begin + row, _code(one, row), _code(other, row)
        label_a, label_b = (a if a < size else a - size), (b if b < size else b - size)
        ends_a, ends_b = _ends(one, row, length, size), _ends(other, row, length, size)
        if a != b or ends_a != ends_b:
            count = _list_token(count, t, a, ends_a, b, ends_b, problem, workspace)
        if row > 0 and (a != b or (a >= size and before_a != before_b)):
            if a >= size:
                h = problem.base + before_a
                count = list_weight(count, h, label_a, 1.0, workspace.weights)
            if b >= size:
                h = problem.base + before_b
                count = list_weight(count, h, label_b, -1.0, workspace.weights)
        first_a, first_b = (row if a >= size else first_a), (row if b >= size else first_b)
        if ends_a != ends_b or label_a != label_b or first_a != first_b:
            if ends_a:
                d = row - first_a + 1
                count = _list_segment(count, s, t, d, label_a, 1.0, problem, workspace)
            if ends_b:
                d = row - first_b + 1
                count = _list_segment(count, s, t, d, label_b, -1.0, problem, workspace)
        before_a, before_b = (label_a if ends_a else before_a), (label_b if ends_b else before_b)
    return count


@kernel
def _list_token(count: int, t: int, a: int, ends_a: bool, b: int, ends_b: bool,
                problem: SegmentProblem, workspace: SegmentWorkspace) -> int:  # fmt: skip
    """List the attributes of a token for a code, minus those for another, part by part."""
    size = problem.n_labels
    for i in range(problem.parts.shape[0]):
        what, row = problem.parts[i], problem.of_parts[i] + t
        has_a, has_b = _has(what, a, ends_a, size), _has(what, b, ends_b, size)
        if has_a == has_b and a % size == b % size:
            continue
        for side in range(2):
            code, has = (a, has_a) if side == 0 else (b, has_b)
            if has:
                count = list_token(count, problem.design, row, code % size, 1.0 - 2.0 * side,
                                   workspace.weights)  # fmt: skip
    return count


@kernel
def _add_counts(s: int, labeling: Labeling, share: float, problem: SegmentProblem,
                workspace: SegmentWorkspace) -> None:  # fmt: skip
    """Add a share to the counts of the parts of a segmentation."""
    begin, size, room = problem.offsets[s], problem.n_labels, workspace.stay.shape[0]
    residual, n_parts, first, before = workspace.residual, problem.parts.shape[0], 0, 0
    length, n_lengths = problem.offsets[s + 1] - begin, workspace.lengths.shape[0]
    for row in range(length):
        code, ends = _code(labeling, row), _ends(labeling, row, length, size)
        label = code if code < size else code - size
        for i in range(n_parts):
            if _has(problem.parts[i], code, ends, size):
                residual[i * room + row, label] += share
        if code >= size:
            if row > 0:
                workspace.flows[before, label] += share
            first = row
        if ends:
            d, before = row - first + 1, label
            if d <= n_lengths:
                residual[n_parts * room + d - 1, label] += share
            number = _span(problem, begin + row, d)
            if number >= 0:
                residual[n_parts * room + n_lengths + number, label] += share


@part
def _block(i: int, s: int, problem: SegmentProblem,
           workspace: SegmentWorkspace) -> tuple[int, int, int]:  # fmt: skip
    """Return the first row of a part, or of lengths or segments, how many, and where counts are."""
    n_parts, room = problem.parts.shape[0], workspace.stay.shape[0]
    begin, n_lengths = problem.offsets[s], workspace.lengths.shape[0]
    length = problem.offsets[s + 1] - begin
    if i < n_parts:
        return problem.of_parts[i] + begin, length, i * room
    if i == n_parts:
        return problem.of_parts[i], min(length, n_lengths), i * room
    first = problem.of_spans[begin]
    return first, problem.of_spans[begin + length] - first, n_parts * room + n_lengths


@part
def _is_zero(residual: FloatArray, row: int) -> bool:
    """Whether there is nothing in a row."""
    for k in range(residual.shape[1]):
        if residual[row, k] != 0.0:
            return False
    return True


@implements(add_direction, SegmentProblem)
def _add_direction(
    problem: SegmentProblem, s: int, active: ActiveSet, first: int, last: int, shares: FloatArray,
    workspace: SegmentWorkspace,
) -> float:  # fmt: skip
    """Count what differs and scatter the counts."""
    residual, whole = workspace.residual, 0.0
    for i in range(problem.parts.shape[0] + 2):
        _, count, at = _block(i, s, problem, workspace)
        for row in range(at, at + count):
            clear_row(residual, row)
    for i in range(problem.n_labels):
        clear_row(workspace.flows, i)
    for c in range(first, last):
        whole += shares[c]
    _add_counts(s, Labeling(workspace.paths, 0, 0), whole, problem, workspace)
    for c in range(first, last):
        vertex = Labeling(active.vertices, c, problem.offsets[s])
        _add_counts(s, vertex, -shares[c], problem, workspace)
    rise, rises = 0.0, fill(0.0)
    for i in range(problem.parts.shape[0] + 2):
        t, count, at = _block(i, s, problem, workspace)
        for row in range(count):
            if not _is_zero(residual, at + row):
                rise, rises = scatter_token(problem.design, t + row, residual, at + row,
                                            workspace.weights, rise, rises)  # fmt: skip
    for i in range(problem.n_labels):
        rises = add_row(1.0, workspace.flows, i, problem.base + i, workspace.weights, rises)
    return rise + total(rises)


@implements(apply_direction, SegmentProblem)
def _apply_direction(
    problem: SegmentProblem, s: int, active: ActiveSet, first: int, last: int, factor: float,
    workspace: SegmentWorkspace,
) -> None:  # fmt: skip
    """Apply the counts."""
    for i in range(problem.parts.shape[0] + 2):
        t, count, at = _block(i, s, problem, workspace)
        for row in range(count):
            if not _is_zero(workspace.residual, at + row):
                apply_token(problem.design, t + row, factor, workspace.weights)
    for i in range(problem.n_labels):
        apply_row(factor, problem.base + i, workspace.weights)
    refresh(problem, workspace)
