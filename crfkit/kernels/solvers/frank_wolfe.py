"""Block-coordinate Frank-Wolfe on the dual of a margin: many updates, each of one sequence.

An update finds the labeling that violates the margin of a sequence most, a vertex of the marginal
polytope, and gives it shares of others. The value of a vertex is its score plus its cost, weighted;
what of it is not learned is its level.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

from crfkit._types import FloatArray, IntArray
from crfkit.compiler.dispatch import dispatched, implements
from crfkit.compiler.jit import kernel, part
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
    path_score,
    refresh,
)

if TYPE_CHECKING:
    from crfkit.kernels.solvers.marginal_fw import MarginalDual


class FrankWolfeOptions(NamedTuple):
    """How updates are made."""

    pairwise: bool  # whether shares are taken from one vertex, or from all
    most: int  # updates of a sequence, one after the other
    enough: float  # they end where the part in the gap is this share of what it was
    c2: float


class MarginProgress(NamedTuple):
    """What is known of the dual of each sequence."""

    levels: FloatArray  # (S,) the expected level
    gaps: FloatArray  # (S,) its part in the gap before its last update


class VertexDual(NamedTuple):
    """The dual in shares of labelings."""

    options: FrankWolfeOptions
    examples: Examples
    progress: MarginProgress
    active: ActiveSet
    values: FloatArray  # (M,) workspace


@dispatched
def has_room(dual: VertexDual | MarginalDual, s: int, problem: Any) -> bool:
    """Whether a sequence can have as many more shares as it may have updates."""
    raise NotImplementedError


@dispatched
def update(
    dual: VertexDual | MarginalDual, s: int, problem: Any, workspace: Any
) -> tuple[bool, int]:
    """Make an update if one raises the dual; returns whether one does, and `FOUND` or why not."""
    raise NotImplementedError


@kernel
def frank_wolfe_updates(
    order: IntArray, problem: Any, dual: VertexDual | MarginalDual, workspace: Any
) -> tuple[int, int]:
    """Update the sequences of an order, (n,); returns how many before one that needs more room.

    And what came of the last search: `FOUND`, or why there is no update of that sequence.
    """
    refresh(problem, workspace)
    options, gaps = dual.options, dual.progress.gaps
    size: int = order.shape[0]
    for n in range(size):
        s, first = order[n], 0.0
        if problem.offsets[s] == problem.offsets[s + 1] or not dual.examples.weight[s] > 0.0:
            continue
        if not has_room(dual, s, problem):
            return n, FOUND
        for tried in range(options.most):
            rises, status = update(dual, s, problem, workspace)
            if status != FOUND:
                return n, status
            if tried == 0:
                first = gaps[s]
            if not rises or gaps[s] <= options.enough * first:
                break
    return size, FOUND


@kernel
def margin_losses(
    first: int,  # sequences first:last
    last: int,
    problem: Any,
    examples: Examples,
    workspace: Any,
    losses: FloatArray,  # (S,) out
) -> tuple[int, int]:
    """``weight max_y (cost(y) + score(y) - score)``; returns the first without, or -1, and why."""
    refresh(problem, workspace)
    for s in range(first, last):
        losses[s] = 0.0
        if problem.offsets[s] < problem.offsets[s + 1]:
            top, status = _find_worst(s, problem, examples, workspace)
            if status != FOUND:
                return s, status
            gold = Labeling(examples.labels, 0, problem.offsets[s])
            losses[s] = examples.weight[s] * (
                top - path_score(problem, s, gold, examples, workspace)
            )
    return -1, FOUND


@part
def _find_worst(s: int, problem: Any, examples: Examples, workspace: Any) -> tuple[float, int]:
    """Find the labeling of the largest score plus cost, the true one if none has a larger one."""
    gather(problem, s, workspace)
    top, status = best(problem, s, examples, workspace)
    if status == FOUND:
        begin = problem.offsets[s]
        # As the scores of vertices are added up, so that one that is found again has no gap.
        top = path_score(problem, s, Labeling(workspace.paths, 0, 0), examples, workspace)
        gold = path_score(problem, s, Labeling(examples.labels, 0, begin), examples, workspace)
        if not gold > -math.inf:
            status = INFINITE
        elif not top > gold:
            top = gold
            for t in range(begin, problem.offsets[s + 1]):
                workspace.path[t - begin] = examples.labels[0, t]
    return top, status


@implements(has_room, VertexDual)
def _has_room(dual: VertexDual, s: int, problem: Any) -> bool:
    """Whether there is room for as many labelings more."""
    enough: bool = dual.active.counts[s] + dual.options.most <= dual.active.vertices.shape[0]
    return enough


@implements(update, VertexDual)
def _update(dual: VertexDual, s: int, problem: Any, workspace: Any) -> tuple[bool, int]:
    """Move shares from the vertex of the least value, or from all, to the worst labeling.

    From `a` towards `b` the dual rises most at ``2 c2 slope / |f(b) - f(a)|^2`` (Lacoste-Julien,
    Jaggi, Schmidt and Pletscher 2013, algorithm 4), or as far as shares allow.
    """
    options, examples, progress, active, values = dual
    top, status = _find_worst(s, problem, examples, workspace)
    if status != FOUND:
        return False, status
    weight, count = examples.weight[s], active.counts[s]
    value, mean, away = weight * top, 0.0, 0
    for c in range(count):
        vertex = Labeling(active.vertices, c, problem.offsets[s])
        values[c] = weight * path_score(problem, s, vertex, examples, workspace)
        mean += active.alphas[c, s] * values[c]
        if values[c] < values[away]:
            away = c
    progress.gaps[s] = max(value - mean, 0.0)
    slope = value - values[away] if options.pairwise else value - mean
    rises: bool = slope > 0.0
    if rises:
        length, first, last = 1.0, 0, count
        if options.pairwise:
            length, first, last = active.alphas[away, s], away, away + 1
        for c in range(first, last):
            values[c] = weight if options.pairwise else weight * active.alphas[c, s]
        square = add_direction(problem, s, active, first, last, values, workspace)
        if 2.0 * options.c2 * slope < length * square:
            length = 2.0 * options.c2 * slope / square
        factor = -length / (2.0 * options.c2)
        apply_direction(problem, s, active, first, last, factor, workspace)
        _share(s, length, away, problem, dual, workspace)
    return rises, status


@part
def _share(
    s: int, length: float, away: int, problem: Any, dual: VertexDual, workspace: Any
) -> None:
    """Give the labeling that was found some of the shares of others."""
    options, examples, progress, active, _ = dual
    begin, end = problem.offsets[s], problem.offsets[s + 1]
    weight = examples.weight[s]
    found = weight * level(problem, s, Labeling(workspace.paths, 0, 0), examples, workspace)
    if options.pairwise:
        taken = Labeling(active.vertices, away, begin)
        before = weight * level(problem, s, taken, examples, workspace)
        progress.levels[s] += length * (found - before)
        active.alphas[away, s] -= length
    else:
        progress.levels[s] += length * (found - progress.levels[s])
        for c in range(active.counts[s]):
            active.alphas[c, s] *= 1.0 - length
    place = _find(s, begin, end, active, workspace)
    if place == active.counts[s]:
        for t in range(begin, end):
            active.vertices[place, t] = workspace.path[t - begin]
        active.alphas[place, s] = 0.0
        active.counts[s] += 1
    active.alphas[place, s] += length
    _drop(s, begin, end, active)


@part
def _find(s: int, begin: int, end: int, active: ActiveSet, workspace: Any) -> int:
    """Return which vertex of a sequence was found; their number if it is a new one."""
    count: int = active.counts[s]
    for c in range(count):
        same = True
        for t in range(begin, end):
            if active.vertices[c, t] != workspace.path[t - begin]:
                same = False
                break
        if same:
            return c
    return count


@part
def _drop(s: int, begin: int, end: int, active: ActiveSet) -> None:
    """Forget vertices that have no share left; the others keep their order."""
    kept = 0
    for c in range(active.counts[s]):
        if active.alphas[c, s] > 0.0:
            if kept < c:
                active.alphas[kept, s] = active.alphas[c, s]
                for t in range(begin, end):
                    active.vertices[kept, t] = active.vertices[c, t]
            kept += 1
    active.counts[s] = kept
