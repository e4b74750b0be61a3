"""Collective classification: graph CRFs, and what knows less of graphs.

Planted partitions, after the associative Markov networks of Taskar, Chatalbashev and Koller (2004):
four labels, 1,000 nodes, four of five edges between nodes of one label, words that are right in six
of ten nodes, three or six edges at a node. One graph to learn from, one to choose options by, and
one to judge.

Cora: the labels of 20 papers of each class are known, 500 papers choose options, 1,000 judge, in
the split of Planetoid (Yang, Cohen and Salakhutdinov 2016) and in random ones. Nothing is chosen by
what judges. All attributes and edges are seen in the fit, as is usual for this task.
"""

from __future__ import annotations

import functools
import itertools
import statistics
import time
import warnings
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from _conll import data_home
from sklearn.base import BaseEstimator
from sklearn.pipeline import make_pipeline

from crfkit import UNLABELED, GraphCRF, TokenClassifier
from crfkit.collective import (
    GibbsClassifier,
    IterativeClassifier,
    LabelPropagation,
    NeighborFeatures,
    NodeClassifier,
)
from crfkit.constraints import Known
from crfkit.data import FeatureGraph
from crfkit.datasets import make_planted_partition
from crfkit.graphs.belief_propagation import BeliefPropagation
from crfkit.graphs.tree_reweighted import TreeReweighted

SEEDS, QUICK_SEEDS, SPLITS, QUICK_SPLITS = 5, 1, 10, 1
PENALTIES = (0.3, 1.0, 3.0, 10.0)
A_CLASS, N_VALIDATION, N_TEST = 20, 500, 1000
# With more edges at a node than so many, a method takes minutes, and is left out.
SPARSE, SLOW = 3.0, ("Gibbs sampling",)
Grid = list[dict[str, Any]]


class Method(NamedTuple):
    """What makes an estimator, and the options of which the best ones are chosen."""

    make: Callable[..., BaseEstimator]
    options: Grid
    is_crf: bool = False
    answers: tuple[str, ...] = ()  # methods of inference for predictions; of none, that of the fit


def grid(**values: Iterable[Any]) -> Grid:
    """Return all combinations of options."""
    return [dict(zip(values, each, strict=True)) for each in itertools.product(*values.values())]


def local(c2: float) -> TokenClassifier:
    """Return a classifier of nodes by their attributes."""
    return TokenClassifier(c2=c2, all_possible_states=True)


def alone(c2: float) -> NodeClassifier:
    """Return nodes by themselves."""
    return NodeClassifier(estimator=local(c2))


def iterative(c2: float, **options: Any) -> IterativeClassifier:
    """Return iterative classification."""
    return IterativeClassifier(estimator=local(c2), **options)


def gibbs(c2: float, **options: Any) -> GibbsClassifier:
    """Return Gibbs sampling."""
    return GibbsClassifier(estimator=local(c2), random_state=0, **options)


def spread(c2: float | None = None, **options: Any) -> LabelPropagation:
    """Return label propagation, of a classifier's answers too if there is one."""
    return LabelPropagation(estimator=None if c2 is None else local(c2), **options)


def beside(make: Callable[..., BaseEstimator], hops: Any = (2,), **options: Any) -> BaseEstimator:
    """Return an estimator that gets the attributes of neighbors."""
    return make_pipeline(NeighborFeatures(hops=hops, aggregate="normalized"), make(**options))


def crf(**options: Any) -> GraphCRF:
    """Return a graph CRF, in which neighbors may agree, and no more."""
    return GraphCRF(associative=True, **options)


def fitted(model: Any, X: Any, y: Any) -> tuple[Any, float]:
    """Return a model and the seconds that its fit took."""
    started = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of labels that never settle, of numbers of neighbors
        model.fit(X, y)
    return model, time.perf_counter() - started


def right(found: Any, y: Any) -> float:
    """Return the share of labels that are right."""
    return float(np.mean(np.asarray(found) == np.asarray(y)))


def asked(model: Any, graph: FeatureGraph, **known: Any) -> tuple[list[Any], float]:
    """Return the labels of a graph, and the seconds that they took."""
    started = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        labels = model.predict([graph], **known)[0]
    return labels, time.perf_counter() - started


def inductive(seed: int, method: Method, size: int, degree: float) -> dict[str, Any]:
    """Return how one method does on graphs that it has not seen."""
    data = make_planted_partition(size, degree=degree, n_graphs=3, random_state=seed)
    best: dict[str, Any] = {"chosen by": -1.0}
    for options in method.options:
        model, seconds = fitted(method.make(**options), data.X[:1], data.y[:1])
        for answers in method.answers or (None,):
            chosen = options if answers is None else options | {"predictions": answers}
            if answers is not None:
                model.set_params(inference=answers)
            score = right(asked(model, data.X[1])[0], data.y[1])
            if score > best["chosen by"]:
                labels, more = asked(model, data.X[2])
                best = {
                    "chosen by": score, "right": right(labels, data.y[2]), "options": str(chosen),
                    "seconds of the fit": seconds, "seconds of the prediction": more,
                }  # fmt: skip
    return best


def gathered(runs: list[dict[str, Any]]) -> dict[str, Any]:
    """Return means and deviations over runs, and the options that were chosen."""
    kinds = [name for name in runs[0] if name != "options"]
    found: dict[str, Any] = {"runs": [run["right"] for run in runs]}
    for name in kinds:
        values = [run[name] for run in runs]
        found[name] = statistics.mean(values)
        if len(values) > 1 and name == "right":
            found["deviation"] = statistics.stdev(values)
    return found | {"options": sorted({run["options"] for run in runs})}


def planted(quick: bool, degree: float) -> dict[str, Any]:
    """Return the figures of each method on planted partitions."""
    size = 200 if quick else 1000
    seeds = range(QUICK_SEEDS if quick else SEEDS)
    found = {}
    for name, method in planted_methods(quick).items():
        if degree > SPARSE and name in SLOW:
            continue
        found[name] = gathered([inductive(seed, method, size, degree) for seed in seeds])
        print(f"  {name}: {100 * found[name]['right']:.1f}", flush=True)
    return {"nodes": size, "degree": degree, "graphs": len(seeds), "methods": found}


def planted_methods(quick: bool) -> dict[str, Method]:
    """Return the methods for graphs that have not been seen."""
    c2 = PENALTIES[1:2] if quick else PENALTIES
    crfs = grid(c2=c2[-2:])
    likelihood = {"inference": TreeReweighted(tol=1e-3), "decoding": "posterior", "max_iter": 30}
    return {
        "independent nodes": Method(alone, grid(c2=c2)),
        "iterative classification": Method(iterative, grid(c2=c2, soft=(False, True))),
        "Gibbs sampling": Method(gibbs, grid(c2=c2)),
        "label propagation of a classifier": Method(
            spread, grid(c2=c2, weight=(0.1, 0.3), method=("harmonic", "spreading"))
        ),
        "AMN, margin": Method(functools.partial(crf, loss="hinge", max_iter=100), crfs, True),
        "AMN, likelihood bounded by trees": Method(
            functools.partial(crf, **likelihood), crfs, True, ("trw", "mean_field")
        ),
    }


@functools.cache
def cora() -> tuple[FeatureGraph, np.ndarray, dict[str, np.ndarray]]:
    """Return the graph, the classes of its nodes and the split of Planetoid."""
    with np.load(data_home() / "graph_cora" / "cora.npz") as file:
        held = {name: file[name] for name in file.files}
    rows = np.ones(len(held["indices"])), held["indices"], held["indptr"]
    X = sp.csr_array(rows, shape=tuple(held["shape"]))
    split = {name: held[name] for name in ("train", "val", "test")}
    return FeatureGraph(X, held["edges"].astype(np.int64)), held["labels"], split


def drawn(classes: np.ndarray, seed: int) -> dict[str, np.ndarray]:
    """Return a random split: so many nodes of each class to learn from, others."""
    order = np.random.default_rng(seed).permutation(len(classes))
    train = np.concatenate([order[classes[order] == k][:A_CLASS] for k in np.unique(classes)])
    rest = order[~np.isin(order, train)]
    return {"train": train, "val": rest[:N_VALIDATION],
            "test": rest[N_VALIDATION : N_VALIDATION + N_TEST]}  # fmt: skip


def transductive(split: dict[str, np.ndarray], method: Method) -> dict[str, Any]:
    """Return how one method does on the nodes of one graph whose labels it was not told."""
    graph, classes, _ = cora()
    y: list[Any] = [UNLABELED] * len(classes)
    for node in split["train"].tolist():
        y[node] = int(classes[node])
    known: dict[str, Any] = {"constraints": Known([y])} if method.is_crf else {"known": [y]}
    best: dict[str, Any] = {"chosen by": -1.0}
    for options in method.options:
        model, seconds = fitted(method.make(**options), [graph], [y])
        labels, more = asked(model, graph, **known)
        found = np.array(labels)
        score = right(found[split["val"]], classes[split["val"]])
        if score > best["chosen by"]:
            best = {
                "chosen by": score, "right": right(found[split["test"]], classes[split["test"]]),
                "options": str(options), "seconds of the fit": seconds,
                "seconds of the prediction": more,
            }  # fmt: skip
    return best


def papers(quick: bool, is_random: bool) -> dict[str, Any]:
    """Return the figures of each method on Cora."""
    _, classes, split = cora()
    splits = [split]
    if is_random:
        splits = [drawn(classes, seed) for seed in range(QUICK_SPLITS if quick else SPLITS)]
    found = {}
    for name, method in cora_methods(quick).items():
        found[name] = gathered([transductive(each, method) for each in splits])
        print(f"  {name}: {100 * found[name]['right']:.1f}", flush=True)
    return {"splits": len(splits), "methods": found}


def cora_methods(quick: bool) -> dict[str, Method]:
    """Return the methods for one graph in which some labels are known."""
    c2 = (0.1,) if quick else (0.01, 0.1, 1.0)
    methods, alphas = ("harmonic", "spreading"), (0.5, 0.8, 0.9, 0.95)
    plain = [{"method": "harmonic"}, *grid(method=methods[1:], alpha=alphas)]
    both = grid(c2=c2, method=methods, weight=(0.1,) if quick else (0.1, 0.3, 1.0))
    relations = grid(c2=c2, soft=(False, True), aggregate=("count", "proportion"), max_iter=(20,))
    # Ten sweeps of messages are enough for weights.
    sums = BeliefPropagation(max_iter=10, tol=1e-2, schedule="sweeps")
    crfs = grid(c2=(0.1,), inference=(sums,), decoding=("posterior",), max_iter=(12,))
    return {
        "independent nodes": Method(alone, grid(c2=c2)),
        "label propagation": Method(spread, plain),
        "iterative classification": Method(iterative, relations),
        "Gibbs sampling": Method(gibbs, grid(c2=c2)),
        "graph CRF": Method(crf, crfs, True),
        "attributes of neighbors": Method(
            functools.partial(beside, alone), grid(c2=c2, hops=[(2,), (3,)])
        ),
        "the same, iterative classification": Method(
            functools.partial(beside, iterative), relations
        ),
        "the same, graph CRF": Method(functools.partial(beside, crf), crfs, True),
        "the same, label propagation": Method(functools.partial(beside, spread), both),
    }


def cases(quick: bool) -> dict[str, Callable[[], dict[str, Any]]]:
    """Return the measurements by name."""
    return {
        "planted partition, three edges at a node": functools.partial(planted, quick, 3.0),
        "planted partition, six edges at a node": functools.partial(planted, quick, 6.0),
        "cora, split of Planetoid": functools.partial(papers, quick, False),
        "cora, random splits": functools.partial(papers, quick, True),
    }


def plot(results: dict[str, Any], folder: Path) -> None:
    """Draw nothing: the tables tell all."""
