"""The best move of a labeling to one label: a minimum cut (Boykov, Veksler and Zabih 2001).

In a move each variable keeps its value or takes the label. Costs are minus the scores, and a
factor of two variables has four of them in a move: ``a`` where both keep theirs, ``b`` and ``c``
where the second or the first takes the label, ``d`` where both do. Where ``a + d <= b + c``, the
least cost is that of a cut (Greig, Porteous and Seheult 1989; Kolmogorov and Zabih 2004), and minus
the maximum flow says that no move is better. With two states, the moves from all 0 to 1 are all
labelings.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from crfkit._types import ByteArray, CodeArray, FloatArray, IntArray
from crfkit.compiler.jit import kernel, part
from crfkit.kernels.graph.arrays import FactorTables
from crfkit.kernels.graph.max_flow import SINK, Network, Trees, flow_through
from crfkit.kernels.graph.scores import score_of

# How far from associative a factor may be, as a share of its costs: sums of weights are rounded.
ROUNDING = 1e-12
ALLOWED = -1


class Choices(NamedTuple):
    """Which choices variables have in a move, and what they cost."""

    barred: ByteArray  # (V, 2) whether a variable may not keep its value, may not take the label
    arcs: CodeArray  # (F,) the arc between the variables of each factor of two
    costs: FloatArray  # (4,) workspace: those of a factor, `a` to `d`
    constant: FloatArray  # (1,)
    odd_factor: IntArray  # (1,) the first factor that is not associative, or `ALLOWED`


@part
def _bar(graph: FactorTables, s: int, label: int, values: IntArray, choices: Choices) -> None:
    """Find which variables may keep their values, and which may take the label."""
    for v in range(graph.variable_ptr[s], graph.variable_ptr[s + 1]):
        choices.barred[v, 0] = 0
        choices.barred[v, 1] = label >= graph.sizes[v] or values[v] == label
    for f in range(graph.factor_ptr[s], graph.factor_ptr[s + 1]):
        if graph.scope_ptr[f + 1] - graph.scope_ptr[f] == 1:
            v, row = graph.scope[graph.scope_ptr[f]], graph.score_ptr[f]
            if graph.scores[row + values[v]] == -math.inf:
                choices.barred[v, 0] = 1
            if label < graph.sizes[v] and graph.scores[row + label] == -math.inf:
                choices.barred[v, 1] = 1


@part
def _cost(graph: FactorTables, place: int, barred: bool) -> float:
    """Return minus a score; inf where the place is barred, and is not looked at."""
    return math.inf if barred else float(-graph.scores[place])


@part
def _add_costs(net: Network, choices: Choices, v: int, kept: float, taken: float) -> None:
    """Add what it costs that a variable keeps its value, or takes the label; inf bars it."""
    if kept == math.inf:
        choices.barred[v, 0] = 1
        kept = 0.0 if taken == math.inf else taken
    if taken == math.inf:
        choices.barred[v, 1] = 1
        taken = kept
    choices.constant[0] += kept
    net.excess[v] += taken - kept


@part
def _add_single(
    graph: FactorTables, f: int, label: int, values: IntArray, net: Network, choices: Choices
) -> None:
    """Add the scores of a factor of one variable."""
    v, row = graph.scope[graph.scope_ptr[f]], graph.score_ptr[f]
    kept = _cost(graph, row + values[v], choices.barred[v, 0] != 0)
    _add_costs(net, choices, v, kept, _cost(graph, row + label, choices.barred[v, 1] != 0))


@part
def _find_costs(
    graph: FactorTables, f: int, label: int, values: IntArray, choices: Choices
) -> None:
    """Write the four costs of a factor of two variables."""
    i, j = graph.scope[graph.scope_ptr[f]], graph.scope[graph.scope_ptr[f] + 1]
    size, start, n = graph.sizes[j], graph.score_ptr[f], 0
    for first in range(2):
        row = start + (label if first else values[i]) * size
        for second in range(2):
            barred = choices.barred[i, first] != 0 or choices.barred[j, second] != 0
            choices.costs[n] = _cost(graph, row + (label if second else values[j]), barred)
            n += 1


@part
def _add_pair(net: Network, choices: Choices, f: int, i: int, j: int) -> None:
    """Add the costs of a factor of two variables, those where one of them has no choice."""
    a, b, c, d = choices.costs[0], choices.costs[1], choices.costs[2], choices.costs[3]
    inf = math.inf
    if (a == inf and b == inf) or (c == inf and d == inf):  # the first has no choice
        taken = a == inf and b == inf
        _add_costs(net, choices, i, inf if taken else 0.0, 0.0 if taken else inf)
        _add_costs(net, choices, j, c if taken else a, d if taken else b)
    elif (a == inf and c == inf) or (b == inf and d == inf):  # the second has none
        taken = a == inf and c == inf
        _add_costs(net, choices, j, inf if taken else 0.0, 0.0 if taken else inf)
        _add_costs(net, choices, i, b if taken else a, d if taken else c)
    else:
        _link(net, choices, f, i, j)


@part
def _link(net: Network, choices: Choices, f: int, i: int, j: int) -> None:
    """Add the costs of a factor whose variables both have a choice."""
    a, b, c, d = choices.costs[0], choices.costs[1], choices.costs[2], choices.costs[3]
    surplus = b + c - a - d
    scale = abs(a) + abs(b) + abs(c) + abs(d)
    if a == math.inf or d == math.inf or surplus < -ROUNDING * scale:
        if choices.odd_factor[0] == ALLOWED:
            choices.odd_factor[0] = f
        return
    forth = back = 0.5 * max(surplus, 0.0)  # where the second alone takes the label, the first
    if b == math.inf or c == math.inf:
        forth = math.inf if b == math.inf else 0.0
        back = math.inf if c == math.inf else 0.0
    arc = choices.arcs[f]
    net.capacity[arc] += forth
    net.capacity[net.reverse[arc]] += back
    choices.constant[0] += a
    first = d - a
    if c < math.inf:
        first = c - a - back
    elif b < math.inf:
        first = d - b + forth
    net.excess[i] += first
    net.excess[j] += d - a - first


@part
def _add_factors(
    graph: FactorTables, s: int, label: int, values: IntArray, net: Network, choices: Choices
) -> None:
    """Add the scores of all factors of a graph."""
    for f in range(graph.factor_ptr[s], graph.factor_ptr[s + 1]):
        first = graph.scope_ptr[f]
        arity = graph.scope_ptr[f + 1] - first
        if arity == 0:
            choices.constant[0] -= graph.scores[graph.score_ptr[f]]
        elif arity == 1:
            _add_single(graph, f, label, values, net, choices)
        else:
            _find_costs(graph, f, label, values, choices)
            _add_pair(net, choices, f, graph.scope[first], graph.scope[first + 1])


@part
def _bind(choices: Choices, net: Network, first: int, last: int) -> bool:
    """Give all that is left to the terminals; whether each variable has a value to take."""
    for v in range(first, last):
        if choices.barred[v, 0] != 0 and choices.barred[v, 1] != 0:
            return False
        if choices.barred[v, 0] != 0:
            choices.constant[0] += net.excess[v]
            net.excess[v] = -math.inf
        elif choices.barred[v, 1] != 0:
            net.excess[v] = math.inf
        elif net.excess[v] < 0.0:
            choices.constant[0] += net.excess[v]
    return True


@kernel
def best_expansion(
    graph: FactorTables, s: int, label: int, values: IntArray,
    net: Network, trees: Trees, choices: Choices,
) -> float:  # fmt: skip
    """Find the best move of a graph; returns its score, -inf where all are barred.

    The tree of the sink then holds the variables that take the label. ``choices.odd_factor`` tells
    of a factor that is not associative, and nothing is found.
    """
    first, last = graph.variable_ptr[s], graph.variable_ptr[s + 1]
    choices.constant[0] = 0.0
    for v in range(first, last):
        net.excess[v] = 0.0
    for a in range(net.start[first], net.start[last]):
        net.capacity[a] = 0.0
    _bar(graph, s, label, values, choices)
    _add_factors(graph, s, label, values, net, choices)
    if choices.odd_factor[0] != ALLOWED or not _bind(choices, net, first, last):
        return -math.inf
    return float(-choices.constant[0] - flow_through(net, trees, first, last))


@kernel
def cut_graphs(
    graph: FactorTables, values: IntArray, bounds: FloatArray,
    net: Network, trees: Trees, choices: Choices,
) -> None:  # fmt: skip
    """Find the best labelings of graphs of two states, from `values`, which are 0."""
    for s in range(len(bounds)):
        bounds[s] = best_expansion(graph, s, 1, values, net, trees, choices)
        if bounds[s] > -math.inf:
            for v in range(graph.variable_ptr[s], graph.variable_ptr[s + 1]):
                values[v] = trees.side[v] == SINK


@kernel
def expand_labels(
    graph: FactorTables, most: int, values: IntArray, rounds: IntArray, kept: IntArray,
    net: Network, trees: Trees, choices: Choices,
) -> None:  # fmt: skip
    """Make the best moves to each label in turn, until none is better or after `most` rounds."""
    for s in range(len(rounds)):
        first, last = graph.variable_ptr[s], graph.variable_ptr[s + 1]
        labels = 0
        for v in range(first, last):
            labels = max(labels, graph.sizes[v])
        score = score_of(graph, s, values)
        rounds[s], idle, label = 0, 0, 0
        while idle < labels and rounds[s] < most:
            idle += 1
            if best_expansion(graph, s, label, values, net, trees, choices) > -math.inf:
                for v in range(first, last):
                    kept[v] = values[v]
                    if trees.side[v] == SINK:
                        values[v] = label
                better = score_of(graph, s, values)
                if better > score:
                    score, idle = better, 0
                else:
                    for v in range(first, last):
                        values[v] = kept[v]
            label += 1
            if label == labels:
                label = 0
                rounds[s] += 1


@part
def _is_metric(graph: FactorTables, start: int, size: int) -> bool:
    """Whether all moves of a table of pairs of labels are cuts."""
    for label in range(size):
        same = graph.scores[start + label * size + label]
        for i in range(size):
            for j in range(size):
                before = graph.scores[start + i * size + j]
                first = graph.scores[start + label * size + j]
                second = graph.scores[start + i * size + label]
                scale = abs(same) + abs(before) + abs(first) + abs(second)
                if scale == math.inf or same + before - first - second < -ROUNDING * scale:
                    return False
    return True


@kernel
def find_odd_factor(graph: FactorTables) -> int:
    """Return a factor of two variables of which some move is no cut, or `ALLOWED`."""
    for f in range(len(graph.score_ptr) - 1):
        a = graph.scope_ptr[f]
        if graph.scope_ptr[f + 1] - a == 2:
            size = graph.sizes[graph.scope[a]]
            same = size == graph.sizes[graph.scope[a + 1]]
            if not same or not _is_metric(graph, graph.score_ptr[f], size):
                return f
    return ALLOWED
