"""The oracle of chains whose transitions depend on the input: they have attributes.

Each different row of these in a sequence has a slot: a table of potentials of transitions, which
are the weights of transitions plus those of the attributes.
"""

from __future__ import annotations

from crfkit.compiler.dispatch import implements
from crfkit.compiler.simd import fill, total
from crfkit.kernels.chain.oracle import (
    ChainWorkspace,
    InputDependentProblem,
    apply_transitions,
    fill_slots,
    list_transition,
    scatter_transitions,
)
from crfkit.kernels.design.tokens import (
    add_row,
    apply_token,
    gather_token,
    list_token,
    list_weight,
    scatter_token,
)


@implements(fill_slots, InputDependentProblem)
def _fill_tables(problem: InputDependentProblem, s: int, workspace: ChainWorkspace) -> None:
    """``pair_t[i, j] = v[i, j] + sum_b z[t, b] u[b, i, j]``, once for each slot."""
    known, begin, pair = 0, problem.offsets[s], workspace.pair
    for t in range(begin + 1, problem.offsets[s + 1]):
        workspace.slots[t - begin] = problem.slots[t]
        if problem.slots[t] == known:
            for i in range(problem.n_labels):
                for j in range(pair.shape[2]):
                    pair[known, i, j] = workspace.weights.table[problem.base + i, j]
            gather_token(problem.transitions, problem.row_of[t], workspace.wide, known,
                         workspace.wide_pair)  # fmt: skip
            known += 1


@implements(list_transition, InputDependentProblem)
def _list_own(
    problem: InputDependentProblem, size: int, t: int, i: int, j: int, value: float,
    workspace: ChainWorkspace,
) -> int:  # fmt: skip
    """List the weight of the transition, and those of its attributes."""
    weights, column = workspace.weights, i * workspace.scores.shape[1] + j
    size = list_weight(size, problem.base + i, j, value, weights)
    return list_token(size, problem.transitions, problem.row_of[t], column, value, workspace.wide)


@implements(scatter_transitions, InputDependentProblem)
def _scatter_own(problem: InputDependentProblem, s: int, workspace: ChainWorkspace) -> float:
    """Add the flows of each slot to the rows of transitions, and to those of its attributes."""
    rise, rises, known, size = 0.0, fill(0.0), 0, problem.n_labels
    for t in range(problem.offsets[s] + 1, problem.offsets[s + 1]):
        if problem.slots[t] == known:
            for i in range(size):
                rises = add_row(1.0, workspace.flows, known * size + i, problem.base + i,
                                workspace.weights, rises)  # fmt: skip
            rise, rises = scatter_token(problem.transitions, problem.row_of[t],
                                        workspace.wide_flows, known, workspace.wide, rise,
                                        rises)  # fmt: skip
            known += 1
    return rise + total(rises)


@implements(apply_transitions, InputDependentProblem)
def _apply_own(
    problem: InputDependentProblem, s: int, factor: float, workspace: ChainWorkspace
) -> None:
    """Move the weights of the attributes of each slot."""
    known = 0
    for t in range(problem.offsets[s] + 1, problem.offsets[s + 1]):
        if problem.slots[t] == known:
            apply_token(problem.transitions, problem.row_of[t], factor, workspace.wide)
            known += 1
