"""Block-coordinate Frank-Wolfe on chains, on marginals: each run of wrong labels moves by its own.

As `frank_wolfe`, but a sequence has shares of transitions into its tokens instead of labelings.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from crfkit._types import CodeArray, FloatArray, IntArray, LabelArray
from crfkit.compiler.dispatch import implements
from crfkit.compiler.jit import part
from crfkit.kernels.chain.oracle import apply_counts, clear_counts, scatter_counts, slot
from crfkit.kernels.oracle import FOUND, Examples, best, gather
from crfkit.kernels.solvers.frank_wolfe import FrankWolfeOptions, MarginProgress, has_room, update

# A share of less is none.
NO_SHARE = 1e-13


class Edges(NamedTuple):
    """Transitions into tokens that have a share, and room for more."""

    before: LabelArray  # (E, N) the label before; 0 for first tokens
    after: LabelArray  # (E, N) the label
    shares: FloatArray  # (E, N)
    counts: IntArray  # (N,) how many each token has


class MarginalWorkspace(NamedTuple):
    """Room for one sequence, beside that of its oracle."""

    low: FloatArray  # (Q, E) the least scores of paths that end with a transition
    link: IntArray  # (Q, E) the transition before it on that path
    away: CodeArray  # (Q,) a path
    chosen: IntArray  # (Q,) and its transitions
    amounts: FloatArray  # (Q,) how much of its share each token moves


class MarginalDual(NamedTuple):
    """The dual in shares of transitions."""

    options: FrankWolfeOptions
    examples: Examples
    progress: MarginProgress
    edges: Edges
    norms: FloatArray  # (N,) squares of the attributes of each token
    room: MarginalWorkspace


@implements(has_room, MarginalDual)
def _has_room(dual: MarginalDual, s: int, problem: Any) -> bool:
    """Whether there is room for as many transitions more into each token."""
    enough = True
    for t in range(problem.offsets[s], problem.offsets[s + 1]):
        if dual.edges.counts[t] + dual.options.most > dual.edges.shares.shape[0]:
            enough = False
    return enough


@implements(update, MarginalDual)
def _update(dual: MarginalDual, s: int, problem: Any, workspace: Any) -> tuple[bool, int]:
    """Move shares along the runs of tokens in which the best labeling and the worst one differ.

    Each by about what raises the dual most if it alone moved; the line through all of these is
    searched exactly.
    """
    examples, progress, edges, c2 = dual.examples, dual.progress, dual.edges, dual.options.c2
    weight, slope, longest, more = examples.weight[s], 0.0, 0.0, dual.room
    gather(problem, s, workspace)
    top, status = best(problem, s, examples, workspace)
    if status != FOUND:
        return False, status
    progress.gaps[s] = max(weight * (top - _mean(s, problem, edges, workspace)), 0.0)
    if _find_lowest(s, problem, edges, workspace, more):
        slope, longest = _choose_amounts(s, 2.0 * c2 / weight, problem, dual, workspace)
    slope *= weight
    rises: bool = slope > 0.0
    if rises:
        clear_counts(problem, s, workspace)
        _direct(s, weight, problem, workspace, more)
        square, length = scatter_counts(problem, s, workspace), longest
        if 2.0 * c2 * slope < length * square:
            length = 2.0 * c2 * slope / square
        apply_counts(problem, s, -length / (2.0 * c2), workspace)
        begin, cost = problem.offsets[s], examples.cost
        for t in range(begin, problem.offsets[s + 1]):
            row, truth = t - begin, examples.labels[0, t]
            if workspace.active[row]:
                change = cost[truth, workspace.path[row]] - cost[truth, more.away[row]]
                progress.levels[s] += weight * length * more.amounts[row] * change
        _share(s, length, problem, dual, workspace)
    return rises, status


@part
def _mean(s: int, problem: Any, edges: Edges, workspace: Any) -> float:
    """Return the mean score."""
    begin, value = problem.offsets[s], 0.0
    for t in range(begin, problem.offsets[s + 1]):
        for e in range(edges.counts[t]):
            label = edges.after[e, t]
            score = workspace.scores[t - begin, label]
            if t > begin:
                m = slot(workspace.slots, t - begin)
                score += workspace.pair[m, edges.before[e, t], label]
            value += edges.shares[e, t] * score
    return value


@part
def _find_lowest(
    s: int, problem: Any, edges: Edges, workspace: Any, more: MarginalWorkspace
) -> bool:
    """Find the path of the least score among transitions that have a share."""
    begin, end, low = problem.offsets[s], problem.offsets[s + 1], more.low
    for t in range(begin, end):
        row = t - begin
        for e in range(edges.counts[t]):
            least, place = 0.0, 0
            if row > 0:
                before = edges.before[e, t]
                least = math.inf
                for b in range(edges.counts[t - 1]):
                    if edges.after[b, t - 1] == before and low[row - 1, b] < least:
                        least, place = low[row - 1, b], b
                m = slot(workspace.slots, row)
                least += workspace.pair[m, before, edges.after[e, t]]
            low[row, e] = least + workspace.scores[row, edges.after[e, t]]
            more.link[row, e] = place
    row, place = end - begin - 1, 0
    for e in range(edges.counts[end - 1]):
        if low[row, e] < low[row, place]:
            place = e
    found: bool = low[row, place] < math.inf
    for t in range(end - 1, begin - 1, -1):
        more.chosen[t - begin] = place
        more.away[t - begin] = edges.after[place, t]
        place = more.link[t - begin, place]
    return found


@part
def _transition_gain(row: int, workspace: Any, away: CodeArray) -> float:
    """Return how much more the transition into a token scores on the path than on the other one."""
    m, path = slot(workspace.slots, row), workspace.path
    gain: float = workspace.pair[m, path[row - 1], path[row]]
    gain -= workspace.pair[m, away[row - 1], away[row]]
    return gain


@part
def _choose_amounts(
    s: int, rate: float, problem: Any, dual: MarginalDual, workspace: Any
) -> tuple[float, float]:
    """Choose how much of the share of each run moves; returns the slope and the longest step."""
    more = dual.room
    begin, scores, path, away = problem.offsets[s], workspace.scores, workspace.path, more.away
    shares, norms, amounts, active = dual.edges.shares, dual.norms, more.amounts, workspace.active
    slope, longest, row, length = 0.0, math.inf, 0, problem.offsets[s + 1] - begin
    while row < length:
        active[row], amounts[row] = 0, 0.0
        start, gain, square, room = row, 0.0, 4.0, math.inf
        while row < length and path[row] != away[row]:
            gain += scores[row, path[row]] - scores[row, away[row]]
            if row > 0:
                gain += _transition_gain(row, workspace, away)
            room = min(room, shares[more.chosen[row], begin + row])
            square += 2.0 * norms[begin + row]
            active[row] = 1
            row += 1
        if row == start:
            row += 1
            continue
        if row < length:
            gain += _transition_gain(row, workspace, away)
            room = min(room, shares[more.chosen[row], begin + row])
        moved = max(min(room, rate * gain / square), 0.0)
        for r in range(start, row):
            amounts[r] = moved
        if moved > 0.0:
            slope += moved * gain
            longest = min(longest, room / moved)
    return slope, longest


@part
def _direct(s: int, weight: float, problem: Any, workspace: Any, more: MarginalWorkspace) -> None:
    """Write the direction of an update."""
    begin, path, away = problem.offsets[s], workspace.path, more.away
    active, residual, flows = workspace.active, workspace.residual, workspace.flows
    for row in range(problem.offsets[s + 1] - begin):
        change = weight * more.amounts[row]
        if active[row]:
            residual[row, path[row]] += change
            residual[row, away[row]] -= change
        elif row > 0:
            change = weight * more.amounts[row - 1]
        if row > 0 and (active[row] or active[row - 1]):
            first = slot(workspace.slots, row) * problem.n_labels
            flows[first + path[row - 1], path[row]] += change
            flows[first + away[row - 1], away[row]] -= change


@part
def _share(s: int, length: float, problem: Any, dual: MarginalDual, workspace: Any) -> None:
    """Move shares."""
    (before, after, shares, counts), more = dual.edges, dual.room
    begin, path = problem.offsets[s], workspace.path
    for t in range(begin, problem.offsets[s + 1]):
        row = t - begin
        moved = length * more.amounts[row]
        if row > 0 and not workspace.active[row]:
            moved = length * more.amounts[row - 1]
        if not moved > 0.0:
            continue
        last = path[row - 1] if row > 0 else 0
        place = counts[t]
        for e in range(counts[t]):
            if after[e, t] == path[row] and before[e, t] == last:
                place = e
        if place == counts[t]:
            before[place, t], after[place, t], shares[place, t] = last, path[row], 0.0
            counts[t] += 1
        shares[place, t] += moved
        gone = more.chosen[row]
        shares[gone, t] -= moved
        if not shares[gone, t] > NO_SHARE:
            counts[t] -= 1
            final = counts[t]
            before[gone, t], after[gone, t] = before[final, t], after[final, t]
            shares[gone, t] = shares[final, t]
