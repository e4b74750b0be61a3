"""Labels that a model asks for: F1 by the number of tokens that are labeled (Settles, Craven 2008).

A pool of sentences without labels, a few that are labeled at random, and rounds: learn (starting
from the last model), ask a query function which sentences of the pool tell most, label these until
the budget of the round is spent. Budgets are tokens, so that long sentences have their price. Means
over draws of the first sentences; the target is 95 % of the F1 of a model of the whole pool.
"""

from __future__ import annotations

import functools
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import _data
import _tasks
import numpy as np
from _tasks import Part, Split

from crfkit import CRFClassifier, active_learning
from crfkit.metrics import entity_f1_score

Query = Callable[[Any, Any], Any]
SEEDS, QUICK_SEEDS = 3, 1
FIRST, GROWTH, MOST = 1500, 1.5, 140_000  # tokens
QUICK_POOL, QUICK_MOST = 200, 3000
POOLS = {"conll2002_es": 8323, "gmb_ner": 10_000}
TESTED, CANDIDATES = 1500, 2500
SHARE = 0.95  # of the F1 of all labels
RANDOM = "random"


def dense(model: Any, X: Any) -> Any:
    """Return sequence entropies, times how similar sentences are to the others."""
    return active_learning.information_density(active_learning.sequence_entropy(model, X), X)


QUERIES: dict[str, Query | None] = {
    RANDOM: None,
    "least confidence": active_learning.least_confidence,
    "margin": active_learning.margin,
    "10-best entropy": active_learning.n_best_entropy,
    "sequence entropy": active_learning.sequence_entropy,
    "token entropy": active_learning.token_entropy,
    "mean token entropy": functools.partial(active_learning.token_entropy, mean=True),
    "information density": dense,
}


def budgets(most: int) -> list[int]:
    """Return the numbers of labeled tokens after each round."""
    found = [FIRST]
    while found[-1] * GROWTH < most:
        found.append(int(found[-1] * GROWTH))
    return found


@functools.lru_cache(maxsize=1)
def load(name: str, quick: bool) -> Split:
    """Return the pool and what is judged: of Spanish the official parts."""
    size, tested = (QUICK_POOL, QUICK_POOL) if quick else (POOLS[name], TESTED)
    if name == "conll2002_es":
        data = _data.load(name)
        return Split(Part(data.X[:size], data.y[:size]), Part(data.X_test[:tested],
                     data.y_test[:tested]))  # fmt: skip
    return _tasks.split(_tasks.names(name, size + tested), size, tested, 0)


def score(model: CRFClassifier, test: Part) -> float:
    """Return the F1, in percent."""
    return 100.0 * float(entity_f1_score(test.y, model.predict(test.X)))


def until(order: np.ndarray, lengths: np.ndarray, budget: int) -> list[int]:
    """Return the first sentences of an order whose tokens spend a budget."""
    count = int(np.searchsorted(np.cumsum(lengths[order]), budget)) + 1
    found: list[int] = order[:count].tolist()
    return found


def curve(data: Split, query: Query | None, seed: int, most: int, target: float) -> dict[str, Any]:
    """Return the F1 of each round, up to the target."""
    random, pool = np.random.default_rng(seed), data.train
    lengths = pool.X.lengths
    chosen = until(random.permutation(len(pool.y)), lengths, FIRST)
    points: list[tuple[int, float]] = []
    seconds, model = 0.0, None
    for budget in budgets(most):
        rest = np.setdiff1d(np.arange(len(pool.y)), chosen)
        rest = random.permutation(rest)[:CANDIDATES]
        if model is not None:
            spent, started = int(lengths[chosen].sum()), time.process_time()
            if query is not None:
                rest = rest[np.argsort(-np.asarray(query(model, pool.X[rest])), kind="stable")]
            seconds += time.process_time() - started
            chosen = chosen + until(rest, lengths, budget - spent)
        model = _tasks.fitted(
            pool.take(chosen), 0.1, max_iter=60, init="zeros" if model is None else model
        )
        points.append((int(lengths[chosen].sum()), score(model, data.test)))
        if points[-1][1] >= target:
            break
    return {"points": points, "processor seconds of queries": seconds,
            "tokens to the target": reached(points, target)}  # fmt: skip


def reached(points: list[tuple[int, float]], target: float) -> float | None:
    """Return the tokens at which a curve crosses the target, between two rounds by a line."""
    if points[0][1] >= target:
        return float(points[0][0])
    for (few, low), (many, high) in zip(points, points[1:], strict=False):
        if high >= target:
            return few + (many - few) * (target - low) / (high - low)
    return None


def measure(name: str, kind: str, quick: bool) -> dict[str, Any]:
    """Return the curves of a query function over draws of the first sentences."""
    data, most = load(name, quick), QUICK_MOST if quick else MOST
    full = whole(name, quick)
    runs = [
        curve(data, QUERIES[kind], seed, most, SHARE * full)
        for seed in range(QUICK_SEEDS if quick else SEEDS)
    ]
    tokens = [run["tokens to the target"] for run in runs]
    return {
        "full F1": full, "pool tokens": data.train.X.n_tokens,
        "pool sentences": len(data.train.y), "curves": [run["points"] for run in runs],
        "tokens to the target": None if None in tokens else _tasks.spread(tokens),
        "processor seconds of queries": statistics.mean(
            run["processor seconds of queries"] for run in runs
        ),
    }  # fmt: skip


@functools.cache
def whole(name: str, quick: bool) -> float:
    """Return the F1 of a model of the whole pool."""
    data = load(name, quick)
    return score(_tasks.fitted(data.train, 0.1), data.test)


def cases(quick: bool) -> dict[str, Callable[[], dict[str, Any]]]:
    """Return the measurements by name."""
    return {
        f"{name}: {kind}": functools.partial(measure, name, kind, quick)
        for name in POOLS
        for kind in QUERIES
    }


def plot(results: dict[str, Any], folder: Path) -> None:
    """Draw the mean curves."""
    import matplotlib

    matplotlib.use("agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(
        1, len(POOLS), figsize=(5.0 * len(POOLS), 3.8), squeeze=False, layout="constrained"
    )
    for axis, name in zip(axes.flat, POOLS, strict=True):
        for key, case in results.items():
            of, _, kind = key.partition(": ")
            if of == name:
                rounds = min(map(len, case["curves"]))
                mean = np.mean([one[:rounds] for one in case["curves"]], axis=0)
                axis.plot(*mean.T, label=kind, marker=".",
                          **({"color": "k", "ls": "--"} if kind == RANDOM else {}))  # fmt: skip
                axis.axhline(SHARE * case["full F1"], color="0.6", lw=0.8)
        axis.set(title=name, xscale="log", xlabel="labeled tokens", ylabel="test F1")
        axis.grid(alpha=0.3)
        axis.legend(fontsize="x-small")
    figure.savefig(folder / "active_learning.png", dpi=100)
    pyplot.close(figure)
