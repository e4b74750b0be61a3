"""The oracle of linear chains for compiled solvers.

Weights are a vector (L,), as `AlignedWeights` lays it out: rows of ``W >= K`` numbers, whole
vectors of eight; the last K rows of the table are those of transitions. Weights of first and last
labels are those of two more attributes. Row ``t - begin`` of what belongs to a sequence is that of
token ``t``.

Where transitions depend on the input, each different row of their attributes in a sequence has a
slot: a table of K rows of potentials of transitions.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from crfkit._types import CodeArray, FloatArray, IdArray, IntArray
from crfkit.compiler.dispatch import dispatched, implements
from crfkit.compiler.jit import part
from crfkit.compiler.simd import WIDTH, add, fill, load, store, total
from crfkit.kernels.chain.max import viterbi_path
from crfkit.kernels.chain.sum import OK
from crfkit.kernels.design.tokens import (
    Design,
    TokenWeights,
    add_row,
    apply_row,
    apply_token,
    clear_row,
    gather_token,
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


class ChainProblem(NamedTuple):
    """A chain whose transitions are homogeneous."""

    offsets: IntArray  # (S + 1,)
    n_labels: int
    design: Design
    base: int  # H - K, the first row of transitions


class InputDependentProblem(NamedTuple):
    """A chain whose transitions have attributes; the first fields are those of `ChainProblem`."""

    offsets: IntArray
    n_labels: int
    design: Design
    base: int
    transitions: Design  # of the distinct rows of attributes; columns are W i + j
    row_of: IntArray  # (N,) the distinct row of each token
    slots: IntArray  # (N,) its slot in the sequence: 0, 1, ... where they come first


class ChainWorkspace(NamedTuple):
    """Weights, and room for one sequence; the last fields are of `InputDependentProblem`."""

    weights: TokenWeights
    scores: FloatArray  # (Q, W)
    best: FloatArray  # (Q, W)
    path: CodeArray  # (Q,)
    paths: CodeArray  # (1, Q) the same
    positions: IdArray  # (n,) those of the weights
    changes: FloatArray  # (n,)
    residual: FloatArray  # (Q, W) of labels
    active: IntArray  # (Q,) 0 where the residual of a token is 0
    flows: FloatArray  # (R K, W) of transitions, for R slots
    pair: FloatArray  # (R, K, W) potentials of transitions; those of the table, where all share one
    slots: IdArray  # (Q,) the slot of the transition into each token, or (1,) where all share one
    wide_pair: FloatArray  # (R, K W) the same as `pair`
    wide_flows: FloatArray  # (R, K W) the same as `flows`
    wide: TokenWeights  # those of attributes of transitions, in a table (G, K W)


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
        gather_token(problem.design, t, workspace.weights, t - begin, workspace.scores)
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


@implements(list_transition, ChainProblem)
def _list_shared(
    problem: ChainProblem, size: int, t: int, i: int, j: int, value: float,
    workspace: ChainWorkspace,
) -> int:  # fmt: skip
    """List the weight of the transition."""
    return list_weight(size, problem.base + i, j, value, workspace.weights)


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
            for side in range(2):
                label = a if side == 0 else b
                size = list_token(size, problem.design, t, label, 1.0 - 2.0 * side,
                                  workspace.weights)  # fmt: skip
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
    """``scratch += X' residual``, transitions too; returns the rise of ``|scratch|^2``."""
    rise, rises, begin = 0.0, fill(0.0), problem.offsets[s]
    for t in range(begin, problem.offsets[s + 1]):
        if workspace.active[t - begin]:
            rise, rises = scatter_token(problem.design, t, workspace.residual, t - begin,
                                        workspace.weights, rise, rises)  # fmt: skip
    return rise + total(rises) + scatter_transitions(problem, s, workspace)


@implements(scatter_transitions, ChainProblem)
def _scatter_shared(problem: ChainProblem, s: int, workspace: ChainWorkspace) -> float:
    """Add the flows to the rows of transitions."""
    rises = fill(0.0)
    for i in range(problem.n_labels):
        rises = add_row(1.0, workspace.flows, i, problem.base + i, workspace.weights, rises)
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
    begin = problem.offsets[s]
    for t in range(begin, problem.offsets[s + 1]):
        if workspace.active[t - begin]:
            apply_token(problem.design, t, factor, workspace.weights)
    for i in range(problem.n_labels):
        apply_row(factor, problem.base + i, workspace.weights)
    apply_transitions(problem, s, factor, workspace)


@implements(apply_transitions, ChainProblem)
def _apply_none(problem: ChainProblem, s: int, factor: float, workspace: ChainWorkspace) -> None:
    """Do nothing: transitions have no attributes."""
