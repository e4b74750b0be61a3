"""Largest scores of factor graphs: seconds, scores and bounds, and cuts beside PyMaxflow.

`uai` and its folder `associative` are models of the UAI competition of 2014, with the largest
scores that were computed otherwise (`answers.tsv`, `optima.tsv`). The images are grids of 400 x 400
nodes: scores of two labels that are normal, and the same cost for each pair of neighbors that
differ; PyMaxflow builds its grid from arrays, crfkit from the tables of factors, and both times are
from there to the labels, in turns. `many labels` are such grids of ten labels, `spin glass` a grid
of normal pair scores, `snakes` the test images with random scores of single labels and of directed
pairs, the same for all, as they are early in a fit.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import _measure
import numpy as np
from _conll import data_home

from crfkit._types import FloatArray, IntArray
from crfkit.compiler.jit import frozen
from crfkit.graphs.expansion import ExpansionMoves
from crfkit.graphs.integer_program import IntegerProgram
from crfkit.graphs.methods import MaxMethod
from crfkit.graphs.minimum_cut import MinimumCut
from crfkit.graphs.mplp import MPLP
from crfkit.graphs.tables import side_by_side
from crfkit.io import read_uai
from crfkit.kernels.graph.arrays import FactorTables

SIDE, QUICK_SIDE = 400, 40
STRENGTHS = (0.1, 0.5, 1.0, 2.0)
REPEATS = 5
TIME_LIMIT, QUICK_LIMIT = 30.0, 1.0
# Graphs with more entries of tables are not given to the integer program.
MOST_ENTRIES = 60_000


def grid(singles: FloatArray, pair: FloatArray) -> FactorTables:
    """Return a grid: scores of the labels of nodes, (n, m, K), and of pairs, (K, K) or (E, K, K).

    Pairs along the rows come first, then those along the columns.
    """
    places = np.arange(singles[..., 0].size).reshape(singles.shape[:2])
    ends = [(places[:, :-1], places[:, 1:]), (places[:-1], places[1:])]
    source, target = (np.concatenate([pair[i].ravel() for pair in ends]) for i in range(2))
    nodes, edges, states = places.size, len(source), singles.shape[2]
    tables = np.broadcast_to(pair, (edges, states, states))
    sizes = np.full(nodes, states)
    arity = np.repeat([1, 2], [nodes, edges])
    arrays = (
        sizes, starts(sizes), np.concatenate([places.ravel(), np.c_[source, target].ravel()]),
        starts(arity), np.concatenate([singles.ravel(), tables.ravel()]), starts(states**arity),
        np.array([0, nodes]), np.array([0, nodes + edges]),
    )  # fmt: skip
    return FactorTables(*map(frozen, arrays))


def starts(lengths: IntArray) -> IntArray:
    return np.append(0, np.cumsum(lengths))


def found_by(methods: dict[str, MaxMethod], graph: FactorTables) -> dict[str, Any]:
    """Return seconds, the sums of scores and bounds, and the share of graphs that is certified."""
    results = {}
    for name, method in methods.items():
        first = time.perf_counter()
        found = method.maximum(graph)
        seconds = time.perf_counter() - first
        if name != "milp":  # which compiles nothing
            seconds = _measure.medians({name: lambda m=method: m.maximum(graph)}, REPEATS)[name]
        results[name] = {
            "seconds": seconds,
            "score": float(found.score.sum()),
            "bound": None if np.isinf(found.bound).any() else float(found.bound.sum()),
            "certified": float(found.exact.mean()),
        }  # fmt: skip
    return results


def of_model(path: str, optimum: float | None, quick: bool) -> dict[str, Any]:
    """Return what is found of a model of the competition; an integer program, if all else fails."""
    model = data_home() / "uai" / f"{path}.xz"
    field = read_uai(model, model.with_suffix(".evid"))
    graph = field.tables
    methods: dict[str, MaxMethod] = {"mplp": MPLP()}
    if "associative" in path:
        methods |= {"expansion": ExpansionMoves()}
        if max(field.sizes) == 2:
            methods = {"cut": MinimumCut(), "mplp": MPLP()}
    results = found_by(methods, graph)
    certified = max(result["certified"] for result in results.values())
    if certified < 1.0 and len(graph.scores) <= MOST_ENTRIES:
        limit = QUICK_LIMIT if quick else TIME_LIMIT
        results |= found_by({"milp": IntegerProgram(time_limit=limit)}, graph)
    return {
        "variables": len(field.sizes), "states": max(field.sizes), "factors": len(field.factors),
        "arity": int(np.diff(graph.scope_ptr).max()), "optimum": optimum, "methods": results,
    }  # fmt: skip


def against_pymaxflow(side: int, strength: float) -> dict[str, Any]:
    """Return the seconds of both for a cut, and how far their scores are apart."""
    import maxflow

    labels = np.random.default_rng(0).normal(size=(side, side))  # the score of label 1
    singles = np.stack([np.zeros_like(labels), labels], axis=-1)
    graph = grid(singles, -strength * (1.0 - np.eye(2)))
    last: dict[str, Any] = {}

    def theirs() -> None:
        network = maxflow.Graph[float](side * side, 2 * side * side)
        nodes = network.add_grid_nodes((side, side))
        network.add_grid_edges(nodes, strength)
        network.add_grid_tedges(nodes, np.maximum(-labels, 0.0), np.maximum(labels, 0.0))
        flow = network.maxflow()
        last["their score"] = float(np.maximum(labels, 0.0).sum() - flow)
        last["their labels"] = network.get_grid_segments(nodes)

    def ours() -> None:
        last["ours"] = MinimumCut().maximum(graph)

    ours()
    times = _measure.medians({"crfkit": ours, "PyMaxflow": theirs}, REPEATS)
    found = last["ours"]
    return {
        "strength": strength, "nodes": side * side, "seconds": times,
        "ratio": times["crfkit"] / times["PyMaxflow"], "score": float(found.score[0]),
        "their score": last["their score"], "certified": float(found.exact.mean()),
        "equal labels": float((found.values == last["their labels"].ravel()).mean()),
    }  # fmt: skip


def many_labels(side: int) -> dict[str, Any]:
    random = np.random.default_rng(1)
    graph = grid(random.normal(size=(side, side, 10)), -0.6 * (1.0 - np.eye(10)))
    methods = {"expansion": ExpansionMoves(), "mplp": MPLP(max_iter=100)}
    return {"nodes": side * side, "states": 10, "methods": found_by(methods, graph)}


def spin_glass(side: int, quick: bool) -> dict[str, Any]:
    random = np.random.default_rng(2)
    pairs = random.normal(size=(2 * side * (side - 1), 1, 1)) * (2.0 * np.eye(2) - 1.0)
    graph = grid(0.1 * random.normal(size=(side, side, 2)), pairs)
    limit = QUICK_LIMIT if quick else TIME_LIMIT
    methods = {"mplp": MPLP(), "milp": IntegerProgram(time_limit=limit)}
    return {"nodes": side * side, "states": 2, "methods": found_by(methods, graph)}


def snakes(count: int) -> dict[str, Any]:
    random = np.random.default_rng(3)
    shapes = np.load(data_home() / "snakes" / "snakes.npz")["test_shapes"][:count]
    along = random.normal(size=(2, 11, 11))
    graphs = []
    for rows, columns in shapes.tolist():
        pairs = np.repeat(along, [rows * (columns - 1), (rows - 1) * columns], axis=0)
        graphs.append(grid(2.0 * random.normal(size=(rows, columns, 11)), pairs))
    methods = {f"mplp, {most} passes": MPLP(max_iter=most) for most in (5, 20, 1000)}
    results = found_by(methods, side_by_side(graphs))
    return {"graphs": len(graphs), "nodes": int(shapes.prod(axis=1).sum()), "methods": results}


def models(quick: bool) -> dict[str, Callable[[], dict[str, Any]]]:
    """Return the models of the competition, with the largest scores that are known."""
    home = data_home() / "uai"
    found = {}
    for file, folder in (("associative/optima.tsv", "associative/"), ("answers.tsv", "")):
        for line in (home / file).read_text(encoding="utf-8").splitlines()[1:]:
            name, *_, best = line.split("\t")
            optimum = float(best) if best else None
            found[folder + name] = functools.partial(of_model, folder + name, optimum, quick)
    return {name: found[name] for name in list(found)[:: 8 if quick else 1]}


def cases(quick: bool) -> dict[str, Callable[[], dict[str, Any]]]:
    """Return the measurements by name."""
    side = QUICK_SIDE if quick else SIDE
    return {
        **models(quick),
        **{
            f"cut, strength {strength:g}": functools.partial(against_pymaxflow, side, strength)
            for strength in STRENGTHS
        },
        "many labels": functools.partial(many_labels, side // 4),
        "spin glass": functools.partial(spin_glass, 5 if quick else 16, quick),
        "snakes": functools.partial(snakes, 10 if quick else 100),
    }


def plot(results: dict[str, Any], folder: Path) -> None:
    """Nothing: the pages have tables."""
