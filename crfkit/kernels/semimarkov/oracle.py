"""The oracle of segments whose transitions share their scores, for compiled solvers.

Weights are the flat vector of the parameters (P,), in their own order. ``Q``: tokens of the longest
sequence; ``C = 4 K``: scores of a token, of going on, beginning, ending and being alone; rows of
``K`` labels are filled up to ``W``, whole vectors of eight. Row ``t - begin`` of what belongs to a
sequence is that of token ``t``.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from crfkit._types import CodeArray, FloatArray, IdArray, IntArray
from crfkit.compiler.dispatch import implements
from crfkit.compiler.jit import kernel, part
from crfkit.kernels.chain.sum import OK
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


class SegmentAttributes(NamedTuple):
    """Attributes of tokens or of segments, and their weights."""

    indptr: IntArray  # (N + 1,) where those of each token (or row) start
    indices: IdArray  # (nnz,)
    values: FloatArray  # (nnz,) or (1,)
    stride: int  # 0 where all values are 1 and one is kept, else 1
    dense: FloatArray  # (N, F)
    n_sparse: int  # the first attribute that is a dense feature
    ptr: IntArray  # (D + 1,) where the weights of each attribute start
    columns: IdArray  # (P1,) their columns
    first: int  # the position of the first weight


class SegmentProblem(NamedTuple):
    """Segments whose transitions are homogeneous."""

    offsets: IntArray  # (S + 1,)
    n_labels: int
    tokens: SegmentAttributes
    rows: SegmentAttributes
    before: IntArray  # (P2,) labels before the transitions that have a weight
    after: IntArray  # (P2,) and after them
    first_transition: int  # the position of the first of these weights
    transitions: IntArray  # (K, K) the position of each, -1 where there is none
    length_ptr: IntArray  # (L + 1,) where functions that are not 0 at a length start
    functions: IntArray  # (n,) which they are
    function_values: FloatArray  # (n,)
    lengths: IntArray  # (F, K) the positions of their weights, -1 for none
    starts: IntArray  # (K,) or (0,) positions of the weights of first labels
    ends: IntArray  # (K,) or (0,) and of last ones
    end_ptr: IntArray  # (N + 1,) which segments with a row end at a token
    end_length: IntArray  # (n,) their lengths, rising
    end_row: IntArray  # (n,) their rows of attributes
    end_number: IntArray  # (n,) of each row in the sequence: 0, 1, ... where they come first
    fixed_transitions: FloatArray  # (1, W, W) what is not learned of the scores of transitions
    fixed_lengths: FloatArray  # (L, W) and of lengths
    most: IntArray  # (W / 8,) the longest length of eight labels


class SegmentWorkspace(NamedTuple):
    """Weights, and room for one sequence."""

    flat: FloatArray  # (P,) weights
    scores: FloatArray  # (Q, C)
    stay: FloatArray  # (Q, W) scores of going on, costs added
    start: FloatArray  # (Q, W) of beginning
    finish: FloatArray  # (Q, W) of ending
    alone: FloatArray  # (Q, W) of being alone
    transitions: FloatArray  # (1, W, W)
    lengths: FloatArray  # (L, W)
    rows: FloatArray  # (R, W) of segments with attributes
    best: FloatArray  # (Q + 1, W)
    begins: FloatArray  # (Q, W)
    table: IdArray  # (1,) the table of transitions: 0
    path: CodeArray  # (Q,)
    paths: CodeArray  # (1, Q) the same
    marks: FloatArray  # (C,) zeros
    positions: IdArray  # (n,)
    changes: FloatArray  # (n,)
    scratch: FloatArray  # (P,) zeros


@implements(refresh, SegmentProblem)
@part
def _refresh(problem: SegmentProblem, workspace: SegmentWorkspace) -> None:
    """Write the scores of transitions and lengths: what is added to them, plus their weights."""
    flat, places = workspace.flat, problem.lengths
    for n in range(problem.before.shape[0]):
        i, j = problem.before[n], problem.after[n]
        weight = flat[problem.first_transition + n]
        workspace.transitions[0, i, j] = problem.fixed_transitions[0, i, j] + weight
    for d in range(problem.length_ptr.shape[0] - 1):
        for k in range(places.shape[1]):
            workspace.lengths[d, k] = problem.fixed_lengths[d, k]
        for n in range(problem.length_ptr[d], problem.length_ptr[d + 1]):
            f = problem.functions[n]
            for k in range(places.shape[1]):
                if places[f, k] >= 0:
                    workspace.lengths[d, k] += problem.function_values[n] * flat[places[f, k]]


@part
def _add_attributes(t: int, flat: FloatArray, entries: SegmentAttributes, row: int,
                    out: FloatArray) -> None:  # fmt: skip
    """``out[row, c] += sum_a x[t, a] w[a, c]``."""
    ptr, columns = entries.ptr, entries.columns
    for n in range(entries.indptr[t], entries.indptr[t + 1]):
        a, x = entries.indices[n], entries.values[n * entries.stride]
        for p in range(ptr[a], ptr[a + 1]):
            out[row, columns[p]] += x * flat[entries.first + p]
    for f in range(entries.dense.shape[1]):
        x, a = entries.dense[t, f], entries.n_sparse + f
        for p in range(ptr[a], ptr[a + 1]):
            out[row, columns[p]] += x * flat[entries.first + p]


@implements(gather, SegmentProblem)
def _gather(problem: SegmentProblem, s: int, workspace: SegmentWorkspace) -> None:
    """Write the scores of tokens and of segments with attributes; beginning holds going on."""
    begin, end, size = problem.offsets[s], problem.offsets[s + 1], problem.n_labels
    flat, scores = workspace.flat, workspace.scores
    for t in range(begin, end):
        row = t - begin
        for c in range(scores.shape[1]):
            scores[row, c] = 0.0
        _add_attributes(t, flat, problem.tokens, row, scores)
        for k in range(size):
            scores[row, size + k] += scores[row, k]
    for k in range(problem.starts.shape[0]):
        scores[0, size + k] += flat[problem.starts[k]]
        scores[end - begin - 1, 2 * size + k] += flat[problem.ends[k]]
    known = 0
    for q in range(problem.end_ptr[begin], problem.end_ptr[end]):
        if problem.end_number[q] == known:
            for k in range(size):
                workspace.rows[known, k] = 0.0
            _add_attributes(problem.end_row[q], flat, problem.rows, known, workspace.rows)
            known += 1


@part
def _split_scores(begin: int, end: int, examples: Examples, size: int,
                  workspace: SegmentWorkspace) -> bool:  # fmt: skip
    """Split scores by what they are of, and add costs; returns whether all are finite."""
    scores, cost, finite = workspace.scores, examples.cost, True
    for row in range(end - begin):
        for c in range(scores.shape[1]):
            finite &= abs(scores[row, c]) < math.inf
        for k in range(size):
            workspace.stay[row, k] = scores[row, k]
            workspace.start[row, k] = scores[row, size + k]
            workspace.finish[row, k] = scores[row, 2 * size + k]
            workspace.alone[row, k] = scores[row, 3 * size + k]
        if cost.shape[0] > 0:
            label = examples.labels[0, begin + row]
            for k in range(size):
                workspace.stay[row, k] += cost[label, k]
                workspace.start[row, k] += cost[label, size + k]
    return finite


@implements(best, SegmentProblem)
def _best(
    problem: SegmentProblem, s: int, examples: Examples, workspace: SegmentWorkspace
) -> tuple[float, int]:
    """Find the segmentation of the largest score; of equal ones as `_best_segmentation` says."""
    begin, end, value = problem.offsets[s], problem.offsets[s + 1], math.nan
    status: int = INFINITE
    if _split_scores(begin, end, examples, problem.n_labels, workspace):
        tables = SegmentTables(
            workspace.stay, workspace.start, workspace.finish, workspace.alone,
            workspace.transitions, workspace.lengths, workspace.rows, problem.most,
        )  # fmt: skip
        ends = SpanIndex(problem.end_ptr, problem.end_length, problem.end_number)
        search = SegmentViterbi(workspace.best, workspace.begins, workspace.path)
        status = _best_segmentation(
            tables, ends, workspace.table, problem.n_labels, 0, end - begin, begin, search
        )
        if status == OK:
            label = _best_label(workspace.best, end - begin, problem.n_labels)
            value = workspace.best[end - begin, label]
            status = FOUND if abs(value) < math.inf else INFINITE
    return value, status


@implements(path_score, SegmentProblem)
def _path_score(
    problem: SegmentProblem,
    s: int,
    labeling: Labeling,
    examples: Examples,
    workspace: SegmentWorkspace,
) -> float:
    """Add up the scores of the parts of a segmentation, and costs."""
    codes, c, shift = labeling.codes, labeling.row, labeling.shift
    begin, size, scores = problem.offsets[s], problem.n_labels, workspace.scores
    length, value, paid = problem.offsets[s + 1] - begin, 0.0, 0.0
    first, before = 0, 0
    for row in range(length):
        code = codes[c, shift + row]
        label = code if code < size else code - size
        value += scores[row, code]
        if examples.cost.shape[0] > 0:
            paid += examples.cost[examples.labels[0, begin + row], code]
        if code >= size:
            if row > 0:
                value += workspace.transitions[0, before, label]
            first = row
        if row + 1 == length or codes[c, shift + row + 1] >= size:
            value = _add_ending(value, begin + row, row, row - first + 1, label, problem, workspace)
            before = label
    return value + paid


@part
def _add_ending(value: float, t: int, row: int, d: int, label: int, problem: SegmentProblem,
                workspace: SegmentWorkspace) -> float:  # fmt: skip
    """Add the scores of a segment that ends: of that, of its length and of its attributes."""
    size = problem.n_labels
    value += workspace.scores[row, 2 * size + label]
    if d == 1:
        value += workspace.scores[row, 3 * size + label]
    value += workspace.lengths[d - 1, label] if d <= workspace.lengths.shape[0] else -math.inf
    q = _find(problem.end_length, problem.end_ptr[t], problem.end_ptr[t + 1], d)
    if q >= 0:
        value += workspace.rows[problem.end_number[q], label]
    return value


@implements(level, SegmentProblem)
def _level(
    problem: SegmentProblem,
    s: int,
    labeling: Labeling,
    examples: Examples,
    workspace: SegmentWorkspace,
) -> float:
    """Add to the cost how much more a segmentation scores than the true one by what is fixed."""
    gold = _fixed_score(problem, s, Labeling(examples.labels, 0, problem.offsets[s]))
    more: float = total_cost(problem, s, labeling, examples) - gold
    fixed: float = _fixed_score(problem, s, labeling)
    return more + fixed


@part
def _fixed_score(problem: SegmentProblem, s: int, labeling: Labeling) -> float:
    """Add up what is not learned of the score of an allowed segmentation."""
    codes, c, shift = labeling.codes, labeling.row, labeling.shift
    length, value, first, before = problem.offsets[s + 1] - problem.offsets[s], 0.0, 0, 0
    for row in range(length):
        code = codes[c, shift + row]
        label = code if code < problem.n_labels else code - problem.n_labels
        if code >= problem.n_labels:
            if row > 0:
                value += problem.fixed_transitions[0, before, label]
            first = row
        if row + 1 == length or codes[c, shift + row + 1] >= problem.n_labels:
            value += problem.fixed_lengths[row - first, label]
            before = label
    return value


@part
def _list(size: int, position: int, value: float, workspace: SegmentWorkspace) -> int:
    """List a change of a weight, if there is such a weight; returns how many are listed."""
    if position < 0:
        return size
    workspace.positions[size] = position
    workspace.changes[size] = value
    return size + 1


@part
def _mark(code: int, ends: bool, size: int, value: float, marks: FloatArray) -> None:
    """Add to the columns of a token what counts for its code, and for whether its segment ends."""
    label = code if code < size else code - size
    marks[label] += value
    if code >= size:
        marks[size + label] += value
    if ends:
        marks[2 * size + label] += value
        if code >= size:
            marks[3 * size + label] += value


@part
def _list_attributes(count: int, t: int, entries: SegmentAttributes,
                     workspace: SegmentWorkspace) -> int:  # fmt: skip
    """List ``x[t, a] marks[c]`` for the weights of the attributes of a token."""
    ptr, columns, marks = entries.ptr, entries.columns, workspace.marks
    for n in range(entries.indptr[t], entries.indptr[t + 1]):
        a, x = entries.indices[n], entries.values[n * entries.stride]
        for p in range(ptr[a], ptr[a + 1]):
            if marks[columns[p]] != 0.0:
                count = _list(count, entries.first + p, x * marks[columns[p]], workspace)
    for f in range(entries.dense.shape[1]):
        x, a = entries.dense[t, f], entries.n_sparse + f
        for p in range(ptr[a], ptr[a + 1]):
            if marks[columns[p]] != 0.0:
                count = _list(count, entries.first + p, x * marks[columns[p]], workspace)
    return count


@kernel
def _list_segment(count: int, t: int, d: int, label: int, sign: float, problem: SegmentProblem,
                  workspace: SegmentWorkspace) -> int:  # fmt: skip
    """List the length of a segment that ends at a token, and the attributes of its own."""
    if d < problem.length_ptr.shape[0]:
        for n in range(problem.length_ptr[d - 1], problem.length_ptr[d]):
            position = problem.lengths[problem.functions[n], label]
            count = _list(count, position, sign * problem.function_values[n], workspace)
    q = _find(problem.end_length, problem.end_ptr[t], problem.end_ptr[t + 1], d)
    if q >= 0:
        workspace.marks[label] = sign
        count = _list_attributes(count, problem.end_row[q], problem.rows, workspace)
        workspace.marks[label] = 0.0
    return count


@kernel
def _list_token(count: int, t: int, code: int, ends: bool, other: int, other_ends: bool,
                problem: SegmentProblem, workspace: SegmentWorkspace) -> int:  # fmt: skip
    """List the attributes of a token for a code, minus those for another."""
    size, marks = problem.n_labels, workspace.marks
    if code != other or ends != other_ends:
        _mark(code, ends, size, 1.0, marks)
        _mark(other, other_ends, size, -1.0, marks)
        count = _list_attributes(count, t, problem.tokens, workspace)
        _mark(code, ends, size, -1.0, marks)
        _mark(other, other_ends, size, 1.0, marks)
    return count


@part
def _list_bounds(count: int, positions: IntArray, label: int, other: int,
                 workspace: SegmentWorkspace) -> int:  # fmt: skip
    """List the first or last label, minus another one, where these have weights."""
    if positions.shape[0] > 0 and label != other:
        count = _list(count, positions[label], 1.0, workspace)
        count = _list(count, positions[other], -1.0, workspace)
    return count


@implements(list_difference, SegmentProblem)
@part
def _list_difference(
    problem: SegmentProblem, s: int, one: Labeling, other: Labeling, workspace: SegmentWorkspace
) -> int:
    """List what differs token by token, at transitions and where segments end."""
    begin, size = problem.offsets[s], problem.n_labels
    last = problem.offsets[s + 1] - begin - 1
    count, first_a, first_b, before_a, before_b = 0, 0, 0, 0, 0
    for row in range(last + 1):
        t = begin + row
        a, b = one.codes[one.row, one.shift + row], other.codes[other.row, other.shift + row]
        label_a, label_b = (a if a < size else a - size), (b if b < size else b - size)
        ends_a = row == last or one.codes[one.row, one.shift + row + 1] >= size
        ends_b = row == last or other.codes[other.row, other.shift + row + 1] >= size
        count = _list_token(count, t, a, ends_a, b, ends_b, problem, workspace)
        if row == 0:
            count = _list_bounds(count, problem.starts, label_a, label_b, workspace)
        elif a != b or (a >= size and before_a != before_b):
            if a >= size:
                count = _list(count, problem.transitions[before_a, label_a], 1.0, workspace)
            if b >= size:
                count = _list(count, problem.transitions[before_b, label_b], -1.0, workspace)
        if row == last:
            count = _list_bounds(count, problem.ends, label_a, label_b, workspace)
        first_a, first_b = (row if a >= size else first_a), (row if b >= size else first_b)
        if ends_a != ends_b or label_a != label_b or first_a != first_b:
            if ends_a:
                d = row - first_a + 1
                count = _list_segment(count, t, d, label_a, 1.0, problem, workspace)
            if ends_b:
                d = row - first_b + 1
                count = _list_segment(count, t, d, label_b, -1.0, problem, workspace)
        before_a, before_b = (label_a if ends_a else before_a), (label_b if ends_b else before_b)
    return count


@implements(add_direction, SegmentProblem)
def _add_direction(
    problem: SegmentProblem, s: int, active: ActiveSet, first: int, last: int, shares: FloatArray,
    workspace: SegmentWorkspace,
) -> float:  # fmt: skip
    """List the difference to each vertex, and add it to the scratch."""
    found, square, scratch = Labeling(workspace.paths, 0, 0), 0.0, workspace.scratch
    for c in range(first, last):
        vertex = Labeling(active.vertices, c, problem.offsets[s])
        for n in range(_list_difference(problem, s, found, vertex, workspace)):
            p, change = workspace.positions[n], shares[c] * workspace.changes[n]
            square += change * (change + 2.0 * scratch[p])
            scratch[p] += change
    return square


@implements(apply_direction, SegmentProblem)
def _apply_direction(
    problem: SegmentProblem, s: int, active: ActiveSet, first: int, last: int, factor: float,
    workspace: SegmentWorkspace,
) -> None:  # fmt: skip
    """List the differences again, and move the weights along the scratch."""
    found, scratch = Labeling(workspace.paths, 0, 0), workspace.scratch
    for c in range(first, last):
        vertex = Labeling(active.vertices, c, problem.offsets[s])
        for n in range(_list_difference(problem, s, found, vertex, workspace)):
            p = workspace.positions[n]
            workspace.flat[p] += factor * scratch[p]
            scratch[p] = 0.0
    _refresh(problem, workspace)
