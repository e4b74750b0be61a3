"""The oracle of chains whose transitions depend on the input: they have attributes.

Each different row of these in a sequence has a slot: a table of potentials of transitions, which
are the weights of transitions plus those of the attributes.
"""

from __future__ import annotations

from crfkit.compiler.dispatch import implements
from crfkit.compiler.jit import part
from crfkit.compiler.simd import WIDTH, fill, total
from crfkit.kernels.chain.oracle import (
    ChainWorkspace,
    InputDependentProblem,
    add_row,
    apply_transitions,
    fill_slots,
    list_transition,
    list_weight,
    move_cells,
    move_row,
    scatter_transitions,
)
from crfkit.kernels.design.tokens import gather_token


@implements(fill_slots, InputDependentProblem)
def _fill_tables(problem: InputDependentProblem, s: int, workspace: ChainWorkspace) -> None:
    """``pair_t[i, j] = v[i, j] + sum_b z[t, b] u[b, i, j]``, once for each slot."""
    known, begin, pair = 0, problem.offsets[s], workspace.pair
    for t in range(begin + 1, problem.offsets[s + 1]):
        workspace.slots[t - begin] = problem.slots[t]
        if problem.slots[t] == known:
            for i in range(problem.n_labels):
                for j in range(pair.shape[2]):
                    pair[known, i, j] = workspace.table[problem.base + i, j]
            gather_token(
                problem.transitions, problem.row_of[t], workspace.flat, workspace.wide,
                workspace.listed, known, workspace.wide_pair,
            )  # fmt: skip
            known += 1


@implements(list_transition, InputDependentProblem)
def _list_own(
    problem: InputDependentProblem, size: int, t: int, i: int, j: int, value: float,
    workspace: ChainWorkspace,
) -> int:  # fmt: skip
    """List the weight of the transition, and those of its attributes."""
    size = list_weight(size, problem.base + i, j, value, problem.bits, workspace)
    design, row, column = problem.transitions, problem.row_of[t], i * workspace.table.shape[1] + j
    for n in range(design.row_ptr[row], design.row_ptr[row + 1]):
        x = value * design.row_values[n * design.stride]
        size = _list_wide(size, design.rows[n], column, x, problem, workspace)
    for n in range(design.cell_ptr[row], design.cell_ptr[row + 1]):
        if design.columns[n] == column:
            workspace.positions[size] = design.positions[n]
            workspace.changes[size] = value * design.cell_values[n * design.stride]
            size += 1
    for f in range(design.dense.shape[1]):
        if design.dense[row, f] != 0.0:
            x = value * design.dense[row, f]
            size = _list_wide(size, design.first_dense + f, column, x, problem, workspace)
    return size


@part
def _list_wide(size: int, h: int, column: int, value: float, problem: InputDependentProblem,
               workspace: ChainWorkspace) -> int:  # fmt: skip
    """List a number of a row of an attribute of transitions, if it is a weight."""
    workspace.positions[size] = problem.wide_first + h * workspace.wide.shape[1] + column
    workspace.changes[size] = value
    weight: int = (problem.wide_bits[h, column // WIDTH] >> (column % WIDTH)) & 1
    return size + weight


@implements(scatter_transitions, InputDependentProblem)
def _scatter_own(problem: InputDependentProblem, s: int, workspace: ChainWorkspace) -> float:
    """Add the flows of each slot to the rows of transitions, and to those of its attributes."""
    rises, rise, known, size = fill(0.0), 0.0, 0, problem.n_labels
    design, flows, scratch = problem.transitions, workspace.wide_flows, workspace.scratch
    for t in range(problem.offsets[s] + 1, problem.offsets[s + 1]):
        if problem.slots[t] != known:
            continue
        for i in range(size):
            rises = add_row(1.0, workspace.flows, known * size + i, problem.bits, problem.base + i,
                            workspace.scratch_table, rises)  # fmt: skip
        row = problem.row_of[t]
        for n in range(design.row_ptr[row], design.row_ptr[row + 1]):
            rises = add_row(design.row_values[n * design.stride], flows, known, problem.wide_bits,
                            design.rows[n], workspace.wide_scratch, rises)  # fmt: skip
        for n in range(design.cell_ptr[row], design.cell_ptr[row + 1]):
            p = design.positions[n]
            change = design.cell_values[n * design.stride] * flows[known, design.columns[n]]
            rise += change * (change + 2.0 * scratch[p])
            scratch[p] += change
        for f in range(design.dense.shape[1]):
            rises = add_row(design.dense[row, f], flows, known, problem.wide_bits,
                            design.first_dense + f, workspace.wide_scratch, rises)  # fmt: skip
        known += 1
    return rise + total(rises)


@implements(apply_transitions, InputDependentProblem)
def _apply_own(
    problem: InputDependentProblem, s: int, factor: float, workspace: ChainWorkspace
) -> None:
    """Move the weights of the attributes of each slot."""
    design, known = problem.transitions, 0
    for t in range(problem.offsets[s] + 1, problem.offsets[s + 1]):
        if problem.slots[t] != known:
            continue
        row = problem.row_of[t]
        for n in range(design.row_ptr[row], design.row_ptr[row + 1]):
            move_row(factor, design.rows[n], workspace.wide_scratch, workspace.wide)
        move_cells(factor, design, row, workspace)
        for f in range(design.dense.shape[1]):
            move_row(factor, design.first_dense + f, workspace.wide_scratch, workspace.wide)
        known += 1
