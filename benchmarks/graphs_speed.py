"""Exact inference beside pgmpy, in one process: seconds of both, and how far their answers differ.

All marginals of the variables of a Markov network: pgmpy calibrates a junction tree (`belief
propagation`) and adds its beliefs up, or eliminates variables once for each. Each is given its
network as it takes one; crfkit plans anew each time ("cold"), or has planned graphs of the same
variables before ("planned"), as in a fit. The fastest of a few calls counts.
"""

from __future__ import annotations

import functools
import itertools
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import _measure
import numpy as np

from crfkit.graphs import RandomField
from crfkit.graphs.junction_tree import JunctionTree
from crfkit.graphs.tables import side_by_side

REPEATS = 3
Scope = tuple[int, ...]


def chain(n: int) -> list[Scope]:
    """Return the pairs of a chain."""
    return [(i, i + 1) for i in range(n - 1)]


def grid(n: int) -> list[Scope]:
    """Return the pairs of a grid of n x n."""
    across = [(i * n + j, i * n + j + 1) for i in range(n) for j in range(n - 1)]
    return across + [(i, i + n) for i in range(n * (n - 1))]


def tree(n: int) -> list[Scope]:
    """Return the pairs of a random tree."""
    rng = np.random.default_rng(0)
    return [(int(rng.integers(i)), i) for i in range(1, n)]


def triples(n: int) -> list[Scope]:
    """Return factors of three variables in a row."""
    return [(i, i + 1, i + 2) for i in range(n - 2)]


NETWORKS: dict[str, tuple[list[Scope], int]] = {
    "chain of 100, 5 states": (chain(100), 5),
    "tree of 100, 4 states": (tree(100), 4),
    "grid of 6 x 6, 2 states": (grid(6), 2),
    "grid of 10 x 10, 2 states": (grid(10), 2),
    "triples of 40, 4 states": (triples(40), 4),
    "complete graph of 6, 2 states": (list(itertools.combinations(range(6), 2)), 2),
}


def random_field(scopes: list[Scope], states: int) -> RandomField:
    """Return a field with normal scores of these factors, and of single variables."""
    rng = np.random.default_rng(1)
    every = [(v,) for v in range(1 + max(max(scope) for scope in scopes))] + scopes
    return RandomField((scope, rng.normal(size=[states] * len(scope))) for scope in every)


def network_of(field: RandomField) -> Any:
    """Return the same as pgmpy takes it."""
    from pgmpy.factors.discrete import DiscreteFactor
    from pgmpy.models import DiscreteMarkovNetwork

    network = DiscreteMarkovNetwork()
    network.add_nodes_from(field.nodes)
    network.add_edges_from(field.graph.edges)
    network.add_factors(
        *(DiscreteFactor(list(f.nodes), f.scores.shape, np.exp(f.scores)) for f in field.factors)
    )
    return network


def by_calibration(network: Any) -> dict[Any, Any]:
    """Return all marginals by a calibrated junction tree of pgmpy."""
    from pgmpy.inference import BeliefPropagation

    method = BeliefPropagation(network)
    method.calibrate()
    beliefs = method.get_clique_beliefs()
    home = {v: clique for clique in beliefs for v in clique}
    found = {}
    for v, clique in home.items():
        others = [u for u in clique if u != v]
        found[v] = beliefs[clique].marginalize(others, inplace=False) if others else beliefs[clique]
        found[v].normalize()
    return {v: factor.values for v, factor in found.items()}


def by_elimination(network: Any) -> dict[Any, Any]:
    """Return all marginals by variable elimination of pgmpy, one after the other."""
    from pgmpy.inference import VariableElimination

    method = VariableElimination(network)
    found = {v: method.query([v], show_progress=False).values for v in network.nodes()}
    return {v: values / values.sum() for v, values in found.items()}


def fastest(ask: Callable[[], Any], repeats: int = REPEATS) -> tuple[float, Any]:
    """Return the least seconds of a few calls, and the last answer."""
    answers: list[Any] = []
    times = [_measure.seconds(lambda: answers.append(ask())) for _ in range(repeats)]
    return min(times), answers[-1]


def beside_pgmpy(scopes: list[Scope], states: int) -> dict[str, Any]:
    """Compare the marginals of one network."""
    field = random_field(scopes, states)
    network, budgets = network_of(field), itertools.count(1 << 20)
    ours, tables = field.infer(), field.tables
    planned, _ = fastest(lambda: JunctionTree().sums(tables), 100)
    cold, _ = fastest(lambda: JunctionTree(budget=next(budgets)).sums(tables))
    found: dict[str, Any] = {"planned": planned, "cold": cold}
    for name, ask in {"calibration": by_calibration, "elimination": by_elimination}.items():
        ask(network_of(random_field([(0, 1)], 2)))  # imports
        theirs, answers = fastest(functools.partial(ask, network), 1)
        found[f"pgmpy, {name}"] = theirs
        found[f"times pgmpy's {name}, planned"] = theirs / planned
        found[f"times pgmpy's {name}, cold"] = theirs / cold
        found[f"largest difference from {name}"] = max(
            float(abs(ours.marginals[v] - shares).max()) for v, shares in answers.items()
        )
    return found


def many_graphs(count: int) -> dict[str, Any]:
    """Measure complete graphs of six binary variables in one call: multi-label classification."""
    one = random_field(list(itertools.combinations(range(6), 2)), 2).tables
    graphs = side_by_side([one] * count)
    method = JunctionTree()
    return {
        "graphs": count,
        "seconds of sums": fastest(lambda: method.sums(graphs))[0],
        "seconds of maxima": fastest(lambda: method.maximum(graphs))[0],
    }


def long_chain(count: int) -> dict[str, Any]:
    """Measure a chain of so many variables of three states."""
    tables = random_field(chain(count), 3).tables
    budgets = itertools.count(1 << 20)
    method = JunctionTree()
    return {
        "variables": count,
        "seconds to plan": fastest(lambda: JunctionTree(next(budgets)).plans(tables))[0],
        "seconds of sums": fastest(lambda: method.sums(tables))[0],
        "seconds of maxima": fastest(lambda: method.maximum(tables))[0],
    }


def cases(quick: bool) -> dict[str, Callable[[], dict[str, Any]]]:
    """Return the measurements by name."""
    warnings.simplefilter("ignore")
    chosen = list(NETWORKS.items())[-1:] if quick else list(NETWORKS.items())
    found: dict[str, Callable[[], dict[str, Any]]] = {
        name: functools.partial(beside_pgmpy, *network) for name, network in chosen
    }
    found["many graphs"] = functools.partial(many_graphs, 100 if quick else 1211)
    found["long chain"] = functools.partial(long_chain, 1000 if quick else 100_000)
    return found


def plot(results: dict[str, Any], folder: Path) -> None:
    """Draw nothing: numbers say it all."""


if __name__ == "__main__":
    _measure.write("graphs_speed", {"cases": {name: ask() for name, ask in cases(False).items()}})
