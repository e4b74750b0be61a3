"""An upper bound of the largest score, by messages from factors to variables.

Messages move scores: what a factor tells a variable is added to the scores of its states, and
subtracted from the table of the factor. No score of a labeling changes, so the largest scores of
all variables and tables together are no less than any (the dual of the local polytope; Globerson
and Jaakkola 2007, Sontag, Globerson and Jaakkola 2011). Variables take turns, forth and back. Each
collects what its factors have for its states, and gives equal shares to those that lead on: on
graphs of pairs the sequential reweighted messages of Kolmogorov (2006), on others those of his
article of 2015. No turn makes the bound larger.

A state that loses more than the distance of the bound to a score that was found is in no better
labeling, and is left out from then on (as are those that a score of -inf forbids): their messages
are inf, and their scores -inf.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from crfkit._types import ByteArray, FloatArray, IntArray
from crfkit.compiler.jit import kernel, part
from crfkit.kernels.graph.arrays import FactorTables

# What an entry of a scope has before it and after it.
EARLIER, LATER = 1, 2


class Messages(NamedTuple):
    """Scores of states, and what factors of two variables and more tell them.

    A is the number of entries of all scopes; such an entry is a variable in a factor.
    """

    single: FloatArray  # (X,) scores of states, from factors of one variable; -inf of no use
    sent: FloatArray  # (M,) messages, of each entry in turn
    sent_ptr: IntArray  # (A + 1,) where those of an entry start
    factor: IntArray  # (A,) the factor of an entry
    order: ByteArray  # (A,) whether variables of its factor have turns `EARLIER`, `LATER`
    entries: IntArray  # (A,) those of each variable in turn, of factors of two variables and more
    entry_ptr: IntArray  # (V + 1,) where those of a variable start
    belief: FloatArray  # (K,) workspace: scores of the states of one variable
    broken: IntArray  # (K,) workspace: how many scores of -inf a state has
    digits: IntArray  # (R,) workspace: the states of the variables of a factor


@part
def _from_second(graph: FactorTables, messages: Messages, f: int) -> None:
    """Tell the first variable of a factor of two what the table has for its states.

    Where places are known not to be negative, the compiler makes vectors of such loops.
    """
    a, place = graph.scope_ptr[f], max(0, graph.score_ptr[f])
    to, other = max(0, messages.sent_ptr[a]), max(0, messages.sent_ptr[a + 1])
    columns = messages.sent_ptr[a + 2] - other
    for i in range(other - to):
        best = -math.inf
        for j in range(columns):
            score = graph.scores[place + i * columns + j] - messages.sent[other + j]
            best = max(best, score)
        messages.sent[to + i] = best


@part
def _from_first(graph: FactorTables, messages: Messages, f: int) -> None:
    """Tell the second variable of a factor of two what the table has for its states."""
    a, place = graph.scope_ptr[f], max(0, graph.score_ptr[f])
    other, to = max(0, messages.sent_ptr[a]), max(0, messages.sent_ptr[a + 1])
    columns = messages.sent_ptr[a + 2] - to
    for j in range(columns):
        messages.sent[to + j] = -math.inf
    for i in range(to - other):
        taken = messages.sent[other + i]
        for j in range(columns):
            score = graph.scores[place + i * columns + j] - taken
            messages.sent[to + j] = max(messages.sent[to + j], score)


@part
def first_digits(graph: FactorTables, messages: Messages, f: int) -> None:
    """Start with the first entry of a table."""
    for n in range(graph.scope_ptr[f + 1] - graph.scope_ptr[f]):
        messages.digits[n] = 0


@part
def next_digits(graph: FactorTables, messages: Messages, f: int) -> None:
    """Go on to the next entry of a table: the last variable is fastest."""
    first = graph.scope_ptr[f]
    n = graph.scope_ptr[f + 1] - first - 1
    while n >= 0:
        messages.digits[n] += 1
        if messages.digits[n] < graph.sizes[graph.scope[first + n]]:
            return
        messages.digits[n] = 0
        n -= 1


@part
def _left(graph: FactorTables, messages: Messages, f: int, place: int, but: int) -> float:
    """Return the score of an entry of a table less what was sent, but not to one variable."""
    first = graph.scope_ptr[f]
    score = float(graph.scores[place])
    for n in range(graph.scope_ptr[f + 1] - first):
        if n != but:
            score -= messages.sent[messages.sent_ptr[first + n] + messages.digits[n]]
    return score


@part
def _from_all(graph: FactorTables, messages: Messages, f: int, a: int) -> None:
    """Tell a variable of a factor what the table has for its states."""
    to, n = messages.sent_ptr[a], a - graph.scope_ptr[f]
    for x in range(to, messages.sent_ptr[a + 1]):
        messages.sent[x] = -math.inf
    first_digits(graph, messages, f)
    for place in range(graph.score_ptr[f], graph.score_ptr[f + 1]):
        score = _left(graph, messages, f, place, n)
        x = to + messages.digits[n]
        if score > messages.sent[x]:
            messages.sent[x] = score
        next_digits(graph, messages, f)


@part
def _collect(graph: FactorTables, messages: Messages, a: int) -> None:
    """Let a factor tell one of its variables all that it has for its states."""
    f = messages.factor[a]
    if graph.scope_ptr[f + 1] - graph.scope_ptr[f] > 2:
        _from_all(graph, messages, f, a)
    elif a == graph.scope_ptr[f]:
        _from_second(graph, messages, f)
    else:
        _from_first(graph, messages, f)


@part
def leave_out(graph: FactorTables, messages: Messages, v: int, k: int) -> None:
    """Leave out a state of a variable from now on."""
    messages.single[graph.state_ptr[v] + k] = -math.inf
    for e in range(messages.entry_ptr[v], messages.entry_ptr[v + 1]):
        messages.sent[messages.sent_ptr[messages.entries[e]] + k] = math.inf


@part
def find_belief(graph: FactorTables, messages: Messages, v: int) -> float:
    """Find the scores of the states of a variable, with what they were told; returns the largest.

    States that a factor has nothing for are left out.
    """
    first, largest = graph.state_ptr[v], -math.inf
    for k in range(graph.sizes[v]):
        score = messages.single[first + k]
        if score > -math.inf:
            for e in range(messages.entry_ptr[v], messages.entry_ptr[v + 1]):
                score += messages.sent[messages.sent_ptr[messages.entries[e]] + k]
        if not score > -math.inf:
            leave_out(graph, messages, v, k)
        messages.belief[k] = score
        largest = max(largest, score)
    return largest


@part
def _update(graph: FactorTables, messages: Messages, v: int, back: bool, gap: float) -> float:
    """Let a variable have its turn; a state that loses more than `gap` is left out.

    Returns the score of the best state.
    """
    given, taken = (EARLIER, LATER) if back else (LATER, EARLIER)
    givers = takers = 0
    for e in range(messages.entry_ptr[v], messages.entry_ptr[v + 1]):
        a = messages.entries[e]
        if messages.order[a] & taken:
            _collect(graph, messages, a)
            givers += 1
        if messages.order[a] & given:
            takers += 1
    largest = find_belief(graph, messages, v)
    for k in range(graph.sizes[v]):
        if messages.belief[k] > -math.inf and largest - messages.belief[k] > gap:
            leave_out(graph, messages, v, k)
            messages.belief[k] = -math.inf
    share = 1.0 / max(givers, takers, 1)
    for e in range(messages.entry_ptr[v], messages.entry_ptr[v + 1]):
        a = messages.entries[e]
        if messages.order[a] & given:
            to = messages.sent_ptr[a]
            for k in range(graph.sizes[v]):
                if messages.belief[k] > -math.inf:
                    messages.sent[to + k] -= share * (messages.belief[k] - largest)
    return largest


@kernel
def pass_messages(graph: FactorTables, s: int, messages: Messages, back: bool, gap: float) -> float:
    """Let all variables of a graph have their turns, from the first on or from the last back.

    Returns what no labeling of the states that are left scores more than, if factors have two
    variables or more: each factor has told all that it has left to the last of its variables that
    had a turn, and what a variable gives takes nothing from its best state.
    """
    total, (first, last) = 0.0, (graph.variable_ptr[s], graph.variable_ptr[s + 1])
    for n in range(last - first):
        total += _update(graph, messages, last - 1 - n if back else first + n, back, gap)
    return total


@part
def constants(graph: FactorTables, s: int) -> float:
    """Return the scores of factors that have no variables."""
    total = 0.0
    for f in range(graph.factor_ptr[s], graph.factor_ptr[s + 1]):
        if graph.scope_ptr[f + 1] == graph.scope_ptr[f]:
            total += graph.scores[graph.score_ptr[f]]
    return total
