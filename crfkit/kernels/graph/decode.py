"""Labelings read off messages, and better ones by changes of single variables."""

from __future__ import annotations

import math
from typing import NamedTuple

from crfkit._types import ByteArray, FloatArray, IntArray
from crfkit.compiler.jit import kernel, part
from crfkit.kernels.graph.arrays import FactorTables
from crfkit.kernels.graph.reweighted import (
    Messages,
    constants,
    find_belief,
    first_digits,
    leave_out,
    next_digits,
    pass_messages,
)
from crfkit.kernels.graph.scores import entry_of, score_of, sum_singles

# Sweeps of changes of single variables, at most; checks in a row without progress.
MOST_SWEEPS, MOST_IDLE = 20, 5
# Passes of a dive, at most, beside as many as went before; the shares of the distance of the bound
# to the best score that states may lose in it.
MOST_ROUNDS, FIRST_SHARE, LEAST_SHARE = 100, 0.5, 0.02
# How far a bound may be from a score, as a share, for both to be the same but for rounding.
ROUNDING = 1e-10


# A value that no other is known to be better than, and one that may not be the best any more.
SETTLED, OPEN = 1, 2


class Labelings(NamedTuple):
    """The best labelings so far, and one that is tried."""

    values: IntArray  # (V,) the best
    score: FloatArray  # (S,) of it; -inf where none was found that is allowed
    bound: FloatArray  # (S,) no labeling has a larger score
    n_iter: IntArray  # (S,)
    trial: IntArray  # (V,) workspace
    known: ByteArray  # (V,) workspace: whether a variable has a value, `SETTLED` or `OPEN`


@part
def _add_score(messages: Messages, k: int, score: float) -> None:
    """Add to the score of a state; what forbids it is counted."""
    if score == -math.inf:
        messages.broken[k] += 1
    else:
        messages.belief[k] += score


@part
def _count_known(graph: FactorTables, f: int, known: ByteArray) -> int:
    """Return how many variables of a factor have values."""
    count = 0
    for a in range(graph.scope_ptr[f], graph.scope_ptr[f + 1]):
        count += known[graph.scope[a]] != 0
    return count


@part
def _fits(graph: FactorTables, messages: Messages, f: int, trial: Labelings) -> bool:
    """Whether an entry of a table has the known values."""
    first = graph.scope_ptr[f]
    for n in range(graph.scope_ptr[f + 1] - first):
        v = graph.scope[first + n]
        if trial.known[v] != 0 and trial.trial[v] != messages.digits[n]:
            return False
    return True


@part
def _add_largest(graph: FactorTables, messages: Messages, a: int, k: int, found: Labelings) -> None:
    """Add the largest score of a state in a table, of entries that have the known values."""
    f = messages.factor[a]
    first, best = graph.scope_ptr[f], -math.inf
    first_digits(graph, messages, f)
    for place in range(graph.score_ptr[f], graph.score_ptr[f + 1]):
        if messages.digits[a - first] == k and _fits(graph, messages, f, found):
            score = float(graph.scores[place])
            for n in range(graph.scope_ptr[f + 1] - first):
                if found.known[graph.scope[first + n]] == 0 and first + n != a:
                    score -= messages.sent[messages.sent_ptr[first + n] + messages.digits[n]]
            best = max(best, score)
        next_digits(graph, messages, f)
    _add_score(messages, k, best)


@part
def _add_factor(graph: FactorTables, messages: Messages, a: int, found: Labelings) -> None:
    """Add what a factor has for the states of a variable, given the values that are known."""
    f = messages.factor[a]
    v, first = graph.scope[a], graph.scope_ptr[f]
    unknown = graph.scope_ptr[f + 1] - first - _count_known(graph, f, found.known)
    if unknown == 1:  # the variable itself, which has no value now
        kept, found.trial[v] = found.trial[v], 0
        place = entry_of(graph, f, found.trial)
        found.trial[v] = 1
        stride = entry_of(graph, f, found.trial) - place
        found.trial[v] = kept
        for k in range(graph.sizes[v]):
            _add_score(messages, k, graph.scores[place + k * stride])
    elif unknown == graph.scope_ptr[f + 1] - first:
        for k in range(graph.sizes[v]):
            _add_score(messages, k, messages.sent[messages.sent_ptr[a] + k])
    else:
        for k in range(graph.sizes[v]):
            _add_largest(graph, messages, a, k, found)


@part
def _choose(graph: FactorTables, messages: Messages, v: int, found: Labelings, start: int) -> None:
    """Give a variable the best state given what is known: `start`, if none is better."""
    found.known[v] = 0
    for k in range(graph.sizes[v]):
        messages.belief[k] = 0.0
        messages.broken[k] = 0
        _add_score(messages, k, messages.single[graph.state_ptr[v] + k])
    for e in range(messages.entry_ptr[v], messages.entry_ptr[v + 1]):
        _add_factor(graph, messages, messages.entries[e], found)
    best = start
    for k in range(graph.sizes[v]):
        fewer = messages.broken[k] - messages.broken[best]
        if fewer < 0 or (fewer == 0 and messages.belief[k] > messages.belief[best]):
            best = k
    found.trial[v] = best
    found.known[v] = OPEN


@part
def _improve(
    graph: FactorTables, messages: Messages, found: Labelings, first: int, last: int
) -> bool:
    """Change single variables for the better; whether there were any."""
    changed = False
    for v in range(first, last):
        if found.known[v] == OPEN:
            before = found.trial[v]
            _choose(graph, messages, v, found, before)
            found.known[v] = SETTLED
            if found.trial[v] != before:
                changed = True
                _open_neighbors(graph, messages, found, v)
    return changed


@part
def _open_neighbors(graph: FactorTables, messages: Messages, found: Labelings, v: int) -> None:
    """Have the variables looked at again that share a factor with one that has changed."""
    for e in range(messages.entry_ptr[v], messages.entry_ptr[v + 1]):
        f = messages.factor[messages.entries[e]]
        for a in range(graph.scope_ptr[f], graph.scope_ptr[f + 1]):
            if graph.scope[a] != v:
                found.known[graph.scope[a]] = OPEN


@kernel
def decode(graph: FactorTables, s: int, messages: Messages, found: Labelings) -> None:
    """Choose values one variable after the other, each given those before."""
    first, last = graph.variable_ptr[s], graph.variable_ptr[s + 1]
    for v in range(first, last):
        found.known[v] = 0
    for v in range(first, last):
        _choose(graph, messages, v, found, 0)


@kernel
def keep_if_better(graph: FactorTables, s: int, messages: Messages, found: Labelings) -> None:
    """Improve the labeling that is tried, whose values are all open; keep it if it is best."""
    first, last = graph.variable_ptr[s], graph.variable_ptr[s + 1]
    sweeps = 0
    while sweeps < MOST_SWEEPS and _improve(graph, messages, found, first, last):
        sweeps += 1
    score = score_of(graph, s, found.trial)
    if score > found.score[s]:
        found.score[s] = score
        for v in range(first, last):
            found.values[v] = found.trial[v]


@part
def _count_open(graph: FactorTables, s: int, messages: Messages) -> int:
    """Return how many variables have several states left."""
    count = 0
    for v in range(graph.variable_ptr[s], graph.variable_ptr[s + 1]):
        states = 0
        for x in range(graph.state_ptr[v], graph.state_ptr[v + 1]):
            states += messages.single[x] > -math.inf
        count += states > 1
    return count


@part
def _fix_first(graph: FactorTables, s: int, messages: Messages) -> None:
    """Leave the first variable that has several states its best one."""
    for v in range(graph.variable_ptr[s], graph.variable_ptr[s + 1]):
        largest, best, states = find_belief(graph, messages, v), -1, 0
        for k in range(graph.sizes[v]):
            states += messages.belief[k] > -math.inf
            if best < 0 and messages.belief[k] == largest:
                best = k
        if states > 1:
            for k in range(graph.sizes[v]):
                if k != best:
                    leave_out(graph, messages, v, k)
            return


@kernel
def dive(graph: FactorTables, s: int, messages: Messages, found: Labelings, gap: float) -> None:
    """Leave out states that lose less and less, until a labeling is left; keep it if it is best.

    Where no state loses anything, one variable gets a value. Nothing is proved by that; the
    messages are of no use for a bound afterwards.
    """
    share, rounds = FIRST_SHARE, 0
    while rounds < MOST_ROUNDS + found.n_iter[s]:
        pass_messages(graph, s, messages, False, share * gap)
        pass_messages(graph, s, messages, True, share * gap)
        count = _count_open(graph, s, messages)
        if count == 0:
            break
        share *= 0.5
        if share < LEAST_SHARE:
            _fix_first(graph, s, messages)
            share = FIRST_SHARE
        rounds += 1
    decode(graph, s, messages, found)
    sum_singles(graph, s, messages.single)
    keep_if_better(graph, s, messages, found)


@kernel
def maximize_graphs(
    graph: FactorTables, most: int, tol: float, dives: bool, messages: Messages, found: Labelings
) -> None:
    """Lower the bound of each graph until it is the score of a labeling, or falls no more.

    `found` may have labelings with their scores from before, else scores are ``-inf``. Without
    dives, states whose single scores are ``-inf`` then are in no better labelings.
    """
    for s in range(len(found.score)):
        idle, gap, rounding, constant = 0, math.inf, 0.0, constants(graph, s)
        found.bound[s] = math.inf
        found.n_iter[s] = 0
        while found.n_iter[s] < most and idle < MOST_IDLE:
            found.n_iter[s] += 1
            pass_messages(graph, s, messages, False, gap)
            bound = pass_messages(graph, s, messages, True, gap) + constant
            decode(graph, s, messages, found)
            keep_if_better(graph, s, messages, found)
            score, before = found.score[s], found.bound[s]
            found.bound[s] = max(score, min(before, bound))
            if found.bound[s] == score:
                break
            rounding = ROUNDING * (1.0 + abs(found.bound[s]))
            gap = found.bound[s] - score + rounding
            if gap <= 2.0 * rounding:
                break
            fallen = before - found.bound[s]
            idle = 0 if fallen > tol * (1.0 + abs(found.bound[s])) else idle + 1
        if dives and found.bound[s] > found.score[s] and gap > 2.0 * rounding:
            known = found.score[s] > -math.inf
            dive(graph, s, messages, found, gap if known else 1.0 + abs(found.bound[s]))
