"""Block-coordinate Frank-Wolfe on chains, on marginals: each run of wrong labels moves by its own.

As `frank_wolfe`, but a sequence has shares of transitions into its tokens instead of labelings.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from crfkit._types import CodeArray, FloatArray, IntArray, LabelArray
from crfkit.compiler.jit import kernel, part
from crfkit.kernels.chain.oracle import apply_counts, clear_counts, scatter_counts, slot
from crfkit.kernels.oracle import FOUND, Examples, best, gather, refresh
from crfkit.kernels.solvers.frank_wolfe import FrankWolfeOptions, MarginProgress

# A share of less is none.
NO_SHARE = 1e-13


class Edges(NamedTuple):
    """Transitions into tokens that have a share, and room for more."""

    before: LabelArray  # (E, N) the label before; 0 for first tokens
    after: LabelArray  # (E, N) the label
    shares: FloatArray  # (E, N)
    counts: IntArray  # (N,) how many each token has


class MarginalDual(NamedTuple):
    """The dual in shares of transitions."""

    options: FrankWolfeOptions
    examples: Examples
    progress: MarginProgress
    edges: Edges
    norms: FloatArray  # (N,) squares of the attributes of each token


class MarginalWorkspace(NamedTuple):
    """Room for one sequence, beside that of its oracle."""

    low: FloatArray  # (Q, E) the least scores of paths that end with a transition
    link: IntArray  # (Q, E) the transition before it on that path
    away: CodeArray  # (Q,) a path
    chosen: IntArray  # (Q,) and its transitions
    amounts: FloatArray  # (Q,) how much of its share each token moves


@kernel
def marginal_updates(
    order: IntArray,  # (n,) sequences
    problem: Any,
    dual: MarginalDual,
    workspace: Any,
    more: MarginalWorkspace,
) -> tuple[int, int]:
    """Make updates; returns how many sequences had theirs before one that needs more room.

    And what came of the last search: `FOUND`, or why there is no update of that sequence. The best
    labeling and the worst one that has a share differ in runs of tokens. Shares move along each run
    by about what raises the dual most if it alone moved; the line through all of these is searched
    exactly.
    """
    refresh(problem, workspace)
    options, examples, gaps = dual.options, dual.examples, dual.progress.gaps
    size: int = order.shape[0]
    for n in range(size):
        s, first = order[n], 0.0
        begin, end = problem.offsets[s], problem.offsets[s + 1]
        if begin == end or not examples.weight[s] > 0.0:
            continue
        if not _has_room(begin, end, options.most, dual.edges):
            return n, FOUND
        for tried in range(options.most):
            gather(problem, s, workspace)
            top, status = best(problem, s, examples, workspace)
            if status != FOUND:
                return n, status
            rises = _update(s, top, problem, dual, workspace, more)
            if tried == 0:
                first = gaps[s]
            if not rises or gaps[s] <= options.enough * first:
                break
    return size, FOUND


@part
def _has_room(begin: int, end: int, most: int, edges: Edges) -> bool:
    """Whether each token can have so many more transitions."""
    enough = True
    for t in range(begin, end):
        if edges.counts[t] + most > edges.shares.shape[0]:
            enough = False
    return enough


@part
def _update(
    s: int, top: float, problem: Any, dual: MarginalDual, workspace: Any, more: MarginalWorkspace
) -> bool:
    """Make an update of a sequence, if one raises the dual; returns whether one does."""
    examples, progress, edges, c2 = dual.examples, dual.progress, dual.edges, dual.options.c2
    weight, slope, longest = examples.weight[s], 0.0, 0.0
    mean = _mean(s, problem, edges, workspace)
    progress.gaps[s] = max(weight * (top - mean), 0.0)
    if _find_lowest(s, problem, edges, workspace, more):
        slope, longest = _choose_amounts(s, 2.0 * c2 / weight, problem, dual, workspace, more)
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
        _share(s, length, problem, edges, workspace, more)
    return rises


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
    s: int, rate: float, problem: Any, dual: MarginalDual, workspace: Any, more: MarginalWorkspace
) -> tuple[float, float]:
    """Choose how much of the share of each run moves; returns the slope and the longest step."""
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
def _share(
    s: int, length: float, problem: Any, edges: Edges, workspace: Any, more: MarginalWorkspace
) -> None:
    """Move shares."""
    before, after, shares, counts = edges.before, edges.after, edges.shares, edges.counts
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
