"""The oracle of linear chains for compiled solvers.

Weights are a flat vector (L,), as `AlignedWeights` lays it out: rows of ``W >= K`` numbers, whole
vectors of eight; the last K rows of the table are those of transitions. Numbers of rows that are no
weights are 0 and stay 0. Weights of first and last labels are those of two more attributes. Row
``t - begin`` of what belongs to a sequence is that of token ``t``.

Where transitions depend on the input, each different row of their attributes in a sequence has a
slot: a table of K rows of potentials of transitions.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from crfkit._types import ByteArray, CodeArray, FloatArray, IdArray, IntArray
from crfkit.compiler.dispatch import dispatched, implements
from crfkit.compiler.jit import part
from crfkit.compiler.simd import (
    WIDTH,
    add,
    fill,
    load,
    multiply_add,
    store,
    subtract,
    total,
    where_bits,
)
from crfkit.kernels.chain._viterbi import viterbi_path
from crfkit.kernels.chain.sum import OK
from crfkit.kernels.design.tokens import DenseList, TokenDesign, clear_row, gather_token
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


class ChainProblem(NamedTuple):
    """A chain whose transitions are homogeneous."""

    offsets: IntArray  # (S + 1,)
    n_labels: int
    design: TokenDesign
    bits: ByteArray  # (H, V) which numbers of rows are weights
    base: int  # H - K, the first row of transitions


class InputDependentProblem(NamedTuple):
    """A chain whose transitions have attributes; the first fields are those of `ChainProblem`."""

    offsets: IntArray
    n_labels: int
    design: TokenDesign
    bits: ByteArray
    base: int
    transitions: TokenDesign  # of the distinct rows of attributes; columns are W i + j
    row_of: IntArray  # (N,) the distinct row of each token
    slots: IntArray  # (N,) its slot in the sequence: 0, 1, ... where they come first
    wide_first: int  # where the rows of attributes of transitions start in the vector
    wide_bits: ByteArray  # (G, V) which numbers of these are weights


class ChainWorkspace(NamedTuple):
    """Weights, and room for one sequence; the last fields are of `InputDependentProblem`."""

    flat: FloatArray  # (L,) weights
    table: FloatArray  # (H, W) their rows
    listed: DenseList
    scores: FloatArray  # (Q, W)
    best: FloatArray  # (Q, W)
    path: CodeArray  # (Q,)
    paths: CodeArray  # (1, Q) the same
    positions: IdArray  # (n,)
    changes: FloatArray  # (n,)
    scratch: FloatArray  # (L,) zeros
    scratch_table: FloatArray  # (H, W) its rows
    residual: FloatArray  # (Q, W) of labels
    active: IntArray  # (Q,) 0 where the residual of a token is 0
    flows: FloatArray  # (R K, W) of transitions, for R slots
    pair: FloatArray  # (R, K, W) potentials of transitions; those of the table, where all share one
    slots: IdArray  # (Q,) the slot of the transition into each token, or (1,) where all share one
    wide_pair: FloatArray  # (R, K W) the same as `pair`
    wide_flows: FloatArray  # (R, K W) the same as `flows`
    wide: FloatArray  # (G, K W) weights of attributes of transitions
    wide_scratch: FloatArray  # (G, K W) those in the scratch


@dispatched
def fill_slots(problem: Any, s: int, workspace: Any) -> None:
    """Compute the potentials of transitions that are not the same everywhere."""
    raise NotImplementedError


@dispatched
def list_transition(
    problem: Any, size: int, t: int, i: int, j: int, value: float, workspace: Any
) -> int:
    """List the weights of the transition into a token, times a number; returns how many are."""
    raise NotImplementedError


@dispatched
def scatter_transitions(problem: Any, s: int, workspace: Any) -> float:
    """Add the flows to the scratch; returns the rise of its square."""
    raise NotImplementedError


@dispatched
def apply_transitions(problem: Any, s: int, factor: float, workspace: Any) -> None:
    """Move the weights of transitions along the scratch, which is 0 then."""
    raise NotImplementedError


@part
def slot(slots: IdArray, row: int) -> int:
    """Return the table of the transition into a token."""
    number: int = slots[0] if slots.shape[0] == 1 else slots[row]
    return number


@implements(refresh, ChainProblem, InputDependentProblem)
def _refresh(problem: ChainProblem, workspace: ChainWorkspace) -> None:
    """Do nothing: what sequences share is read from the weights."""


@implements(fill_slots, ChainProblem)
def _fill_none(problem: ChainProblem, s: int, workspace: ChainWorkspace) -> None:
    """Do nothing: all transitions share the weights."""


@implements(gather, ChainProblem, InputDependentProblem)
def _gather(problem: ChainProblem, s: int, workspace: ChainWorkspace) -> None:
    """``scores[t - begin, k] = sum_a x[t, a] w[a, k]``; 0 for numbers beyond the labels."""
    begin = problem.offsets[s]
    for t in range(begin, problem.offsets[s + 1]):
        clear_row(workspace.scores, t - begin)
        gather_token(
            problem.design, t, workspace.flat, workspace.table, workspace.listed, t - begin,
            workspace.scores,
        )  # fmt: skip
    fill_slots(problem, s, workspace)


@part
def add_cost(
    row: int,
    label: int,
    cost: FloatArray,  # (K, W) of each label (column) where another is true (row)
    target: FloatArray,  # (Q, W) scores, added to
) -> None:
    """``target[row, k] += cost[label, k]``."""
    for k in range(0, target.shape[1], WIDTH):
        store(add(load(target, row, k), load(cost, label, k)), target, row, k)


@implements(best, ChainProblem, InputDependentProblem)
def _best(
    problem: ChainProblem, s: int, examples: Examples, workspace: ChainWorkspace
) -> tuple[float, int]:
    """Find the path of the largest score; of equal ones as the kernel `chain_max` does."""
    begin = problem.offsets[s]
    if examples.cost.shape[0] > 0:
        for t in range(begin, problem.offsets[s + 1]):
            add_cost(t - begin, examples.labels[0, t], examples.cost, workspace.scores)
    value, last = math.nan, problem.offsets[s + 1] - begin - 1
    status = viterbi_path(workspace.scores, workspace.pair, workspace.slots, 0, last + 1,
                          workspace.best, workspace.path)  # fmt: skip
    if status == OK:
        value = workspace.best[last, workspace.path[last]]
    return value, FOUND if abs(value) < math.inf else INFINITE


@implements(path_score, ChainProblem, InputDependentProblem)
def _path_score(
    problem: ChainProblem, s: int, labeling: Labeling, examples: Examples, workspace: ChainWorkspace
) -> float:
    """``sum_t scores_t(y_t) + sum_{t > 1} pair_t(y_{t-1}, y_t)``."""
    begin, value, before = problem.offsets[s], 0.0, 0
    for t in range(begin, problem.offsets[s + 1]):
        label = labeling.codes[labeling.row, labeling.shift + t - begin]
        value += workspace.scores[t - begin, label]
        if t > begin:
            value += workspace.pair[slot(workspace.slots, t - begin), before, label]
        before = label
    return value


@implements(level, ChainProblem, InputDependentProblem)
def _level(
    problem: ChainProblem, s: int, labeling: Labeling, examples: Examples, workspace: ChainWorkspace
) -> float:
    """Return the cost: all scores are learned."""
    return total_cost(problem, s, labeling, examples)


@part
def list_weight(size: int, h: int, label: int, value: float, bits: ByteArray,
          workspace: ChainWorkspace) -> int:  # fmt: skip
    """List a number of a row, if it is a weight; returns how many are listed."""
    workspace.positions[size] = h * workspace.table.shape[1] + label
    workspace.changes[size] = value
    weight: int = (bits[h, label // WIDTH] >> (label % WIDTH)) & 1
    return size + weight


@implements(list_transition, ChainProblem)
def _list_shared(
    problem: ChainProblem, size: int, t: int, i: int, j: int, value: float,
    workspace: ChainWorkspace,
) -> int:  # fmt: skip
    """List the weight of the transition."""
    return list_weight(size, problem.base + i, j, value, problem.bits, workspace)


@part
def _list_token(size: int, t: int, one: int, other: int, problem: ChainProblem,
                workspace: ChainWorkspace) -> int:  # fmt: skip
    """List the attributes of a token for a label minus those for another one."""
    design = problem.design
    for n in range(design.row_ptr[t], design.row_ptr[t + 1]):
        x, h = design.row_values[n * design.stride], design.rows[n]
        size = list_weight(size, h, one, x, problem.bits, workspace)
        size = list_weight(size, h, other, -x, problem.bits, workspace)
    for n in range(design.cell_ptr[t], design.cell_ptr[t + 1]):
        column, x = design.columns[n], design.cell_values[n * design.stride]
        if column == one or column == other:
            workspace.positions[size] = design.positions[n]
            workspace.changes[size] = x if column == one else -x
            size += 1
    for f in range(design.dense.shape[1]):
        x, h = design.dense[t, f], design.first_dense + f
        if x != 0.0:
            size = list_weight(size, h, one, x, problem.bits, workspace)
            size = list_weight(size, h, other, -x, problem.bits, workspace)
    return size


@implements(list_difference, ChainProblem, InputDependentProblem)
def _list_difference(
    problem: ChainProblem, s: int, one: Labeling, other: Labeling, workspace: ChainWorkspace
) -> int:
    """List what differs token by token, and at transitions."""
    begin, size, a_before, b_before = problem.offsets[s], 0, 0, 0
    for t in range(begin, problem.offsets[s + 1]):
        a = one.codes[one.row, one.shift + t - begin]
        b = other.codes[other.row, other.shift + t - begin]
        if a != b:
            size = _list_token(size, t, a, b, problem, workspace)
        if t > begin and (a != b or a_before != b_before):
            size = list_transition(problem, size, t, a_before, a, 1.0, workspace)
            size = list_transition(problem, size, t, b_before, b, -1.0, workspace)
        a_before, b_before = a, b
    return size


@implements(add_direction, ChainProblem, InputDependentProblem)
def _add_direction(
    problem: ChainProblem, s: int, active: ActiveSet, first: int, last: int, shares: FloatArray,
    workspace: ChainWorkspace,
) -> float:  # fmt: skip
    """Count what differs and scatter the counts."""
    clear_counts(problem, s, workspace)
    whole = 0.0
    for c in range(first, last):
        whole += shares[c]
    begin, before = problem.offsets[s], 0
    for t in range(begin, problem.offsets[s + 1]):
        row, label = t - begin, workspace.path[t - begin]
        workspace.residual[row, label] += whole
        if t > begin:
            flow = slot(workspace.slots, row) * problem.n_labels + before
            workspace.flows[flow, label] += whole
        before = label
        workspace.active[row] = 0
    for c in range(first, last):
        for t in range(begin, problem.offsets[s + 1]):
            row, label = t - begin, active.vertices[c, t]
            workspace.residual[row, label] -= shares[c]
            if t > begin:
                flow = slot(workspace.slots, row) * problem.n_labels + active.vertices[c, t - 1]
                workspace.flows[flow, label] -= shares[c]
            if label != workspace.path[row]:
                workspace.active[row] = 1
    return scatter_counts(problem, s, workspace)


@part
def clear_counts(problem: ChainProblem, s: int, workspace: ChainWorkspace) -> None:
    """Set the counts of labels and of transitions of a sequence to 0."""
    begin, end, top = problem.offsets[s], problem.offsets[s + 1], 0
    for t in range(begin, end):
        clear_row(workspace.residual, t - begin)
        if t > begin:
            top = max(top, slot(workspace.slots, t - begin))
    for row in range((top + 1) * problem.n_labels):
        clear_row(workspace.flows, row)


@part
def scatter_counts(problem: ChainProblem, s: int, workspace: ChainWorkspace) -> float:
    """``scratch[a, k] += sum_t x[t, a] residual[t, k]``, transitions too.

    Returns the rise of ``|scratch|^2``.
    """
    design, residual, scratch = problem.design, workspace.residual, workspace.scratch
    rises, rise, begin = fill(0.0), 0.0, problem.offsets[s]
    for t in range(begin, problem.offsets[s + 1]):
        row = t - begin
        if workspace.active[row] == 0:
            continue
        for n in range(design.row_ptr[t], design.row_ptr[t + 1]):
            rises = add_row(design.row_values[n * design.stride], residual, row, problem.bits,
                            design.rows[n], workspace.scratch_table, rises)  # fmt: skip
        for n in range(design.cell_ptr[t], design.cell_ptr[t + 1]):
            p = design.positions[n]
            change = design.cell_values[n * design.stride] * residual[row, design.columns[n]]
            rise += change * (change + 2.0 * scratch[p])
            scratch[p] += change
        for f in range(design.dense.shape[1]):
            if design.dense[t, f] != 0.0:
                rises = add_row(design.dense[t, f], residual, row, problem.bits,
                                design.first_dense + f, workspace.scratch_table, rises)  # fmt: skip
    return rise + total(rises) + scatter_transitions(problem, s, workspace)


@part
def add_row(value: float, source: FloatArray, row: int, bits: Any, h: int, table: FloatArray,
            rises: FloatArray) -> FloatArray:  # fmt: skip
    """``table[h] += value source[row]`` for the weights of a row; returns the rise of squares."""
    x = fill(value)
    for k in range(0, table.shape[1], WIDTH):
        before = load(table, h, k)
        after = multiply_add(x, where_bits(bits[h, k // WIDTH], load(source, row, k)), before)
        rises = multiply_add(subtract(after, before), add(after, before), rises)
        store(after, table, h, k)
    return rises


@implements(scatter_transitions, ChainProblem)
def _scatter_shared(problem: ChainProblem, s: int, workspace: ChainWorkspace) -> float:
    """Add the flows to the rows of transitions."""
    rises = fill(0.0)
    for i in range(problem.n_labels):
        rises = add_row(1.0, workspace.flows, i, problem.bits, problem.base + i,
                        workspace.scratch_table, rises)  # fmt: skip
    return total(rises)


@implements(apply_direction, ChainProblem, InputDependentProblem)
def _apply_direction(
    problem: ChainProblem, s: int, active: ActiveSet, first: int, last: int, factor: float,
    workspace: ChainWorkspace,
) -> None:  # fmt: skip
    """Apply the counts."""
    apply_counts(problem, s, factor, workspace)


@part
def apply_counts(problem: ChainProblem, s: int, factor: float, workspace: ChainWorkspace) -> None:
    """``w += factor scratch`` wherever a sequence has weights; the scratch is 0 then."""
    design, begin = problem.design, problem.offsets[s]
    for t in range(begin, problem.offsets[s + 1]):
        if workspace.active[t - begin] == 0:
            continue
        for n in range(design.row_ptr[t], design.row_ptr[t + 1]):
            move_row(factor, design.rows[n], workspace.scratch_table, workspace.table)
        move_cells(factor, design, t, workspace)
        for f in range(design.dense.shape[1]):
            if design.dense[t, f] != 0.0:
                h = design.first_dense + f
                move_row(factor, h, workspace.scratch_table, workspace.table)
    for i in range(problem.n_labels):
        move_row(factor, problem.base + i, workspace.scratch_table, workspace.table)
    apply_transitions(problem, s, factor, workspace)


@implements(apply_transitions, ChainProblem)
def _apply_none(problem: ChainProblem, s: int, factor: float, workspace: ChainWorkspace) -> None:
    """Do nothing: transitions have no attributes."""


@part
def move_cells(factor: float, design: TokenDesign, t: int, workspace: ChainWorkspace) -> None:
    """``w += factor scratch`` for the single weights of a token; the scratch is 0 then."""
    for n in range(design.cell_ptr[t], design.cell_ptr[t + 1]):
        p = design.positions[n]
        workspace.flat[p] += factor * workspace.scratch[p]
        workspace.scratch[p] = 0.0


@part
def move_row(factor: float, h: int, scratch: FloatArray, table: FloatArray) -> None:
    """``table[h] += factor scratch[h]``; the row of the scratch is 0 then."""
    x = fill(factor)
    for k in range(0, table.shape[1], WIDTH):
        store(multiply_add(x, load(scratch, h, k), load(table, h, k)), table, h, k)
        store(fill(0.0), scratch, h, k)
