"""Genes by losses: Table 1 of Gross, Russakovsky, Do and Batzoglou (2006), curves, wrong labels.

    python benchmarks/run.py --only losses_genes --share 1       # all of each genome, not 2/5

Three labels and a weight for each trimer and label, started from counts as they do, and labeled by
the most probable label of each base; and the same with weights of trimers at transitions, of which
counts have none. Each half of a genome is learned from, and tested on the other. "Sp" is the share
of what is found that is right.

Wrong labels: so many of the labels that are learned from are others, drawn at random; tests are on
right ones. Of two sources of `make_markov_sequences`, where a chain is wrong about the second, and
of the synthetic genome.
"""

from __future__ import annotations

import functools
import itertools
import statistics
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import _gene_data
import numpy as np
from _gene_data import TRIMERS, Labels, Part
from sklearn.exceptions import ConvergenceWarning

from crfkit import CRFClassifier, SequenceVectorizer
from crfkit.datasets import make_markov_sequences
from crfkit.losses import LabelwiseLoss, RiskLoss
from crfkit.metrics import flat_accuracy_score
from crfkit.solvers import LBFGS

SHARE, QUICK_SHARE = 0.4, 0.1
MAX_ITER, C2 = 120, 0.01
COUNTS, LOG, POINTWISE, RISK, LABELWISE = "counts", "log", "pointwise", "risk", "labelwise"
FROM_LOG, FROM_POINTWISE = "labelwise, from log", "labelwise, from pointwise"
MODELS = (COUNTS, LOG, POINTWISE, LABELWISE, FROM_LOG)
# Those that are compared where labels are wrong; what the last ones start from.
NOISY = (COUNTS, LOG, POINTWISE, RISK, FROM_LOG, FROM_POINTWISE)
STARTS = {RISK: LOG, FROM_LOG: LOG, FROM_POINTWISE: POINTWISE}
# Iterations whose weights are scored.
SCORED = {*range(0, 12, 2), *range(12, 60, 6), *range(60, 1000, 20)}
RATES = (0.0, 0.1, 0.2, 0.3, 0.4)
SOURCES = {"first-order source": 0.0, "second-order source": 1.0}
MARKOV_SIZE, MARKOV_SEEDS = 400, 5
Trace = list[tuple[float, Any]]
ALL = {"all_possible_states": True, "all_possible_transitions": True, "decoding": "posterior"}


class Recorded(LBFGS):
    """L-BFGS that keeps objective and weights of each iteration, of all stages of a loss."""

    def solve(self, objective: Any, start: Any, callback: Any = None) -> Any:
        """Minimize an objective."""

        def told(record: Any, parameters: Any) -> bool:
            self.path.append((record.value, np.array(parameters)))
            return False if callback is None else bool(callback(record, parameters))

        return super().solve(objective, start, told)


def estimator(model: str, start: Any, path: Trace | None = None) -> CRFClassifier:
    """Return what is to be fitted; `start` is a fitted model, if not counts."""
    loss: Any = LOG if model == COUNTS else model
    if model.startswith(LABELWISE):
        loss = LabelwiseLoss(start="given")
    elif model == RISK:
        loss = RiskLoss(start="given")
    solver: Any = LBFGS()
    if path is not None:
        solver = Recorded()
        solver.path = path
    return CRFClassifier(
        c2=C2, loss=loss, solver=solver, max_iter=0 if model == COUNTS else MAX_ITER,
        init="counts" if start is None else start, **ALL,
    )  # fmt: skip


def fitted(crf: CRFClassifier, part: Part) -> CRFClassifier:
    """Return a model that learned from a part."""
    with warnings.catch_warnings():  # whether it converged is noted
        warnings.simplefilter("ignore", ConvergenceWarning)
        return crf.fit(*part)


def curve(crf: CRFClassifier, path: Trace, parts: list[Part]) -> dict[str, list[float]]:
    """Return the objective a base, and the accuracies, of some of the weights that were kept."""
    fit, _ = crf._task(*parts[0], None)
    found: dict[str, list[float]] = {"iteration": [], "objective": [], "train": [], "test": []}
    for iteration, (value, parameters) in enumerate(path):
        if iteration not in SCORED and iteration != len(path) - 1:
            continue
        model = crf._with(fit.attributes(parameters))
        found["iteration"].append(iteration)
        found["objective"].append(round(value / parts[0].X.n_tokens, 6))
        for name, part in zip(("train", "test"), parts, strict=True):
            found[name].append(round(100.0 * model.score(*part), 2))
    return found


def half(model: str, parts: list[Part], with_curve: bool) -> dict[str, Any]:
    """Return the scores of a model that learned from the first of two parts."""
    start = fitted(estimator(LOG, None), parts[0]) if model == FROM_LOG else None
    path: Trace = []
    started = time.process_time()
    crf = fitted(estimator(model, start, path), parts[0])
    seconds = time.process_time() - started
    return {
        "scores": {name: _gene_data.scores(part.y, crf.predict(part.X))
                   for name, part in zip(("train", "test"), parts, strict=True)},
        "log-likelihood a base": round(float(np.sum(crf.sequence_log_proba(*parts[0])))
                                       / parts[0].X.n_tokens, 6),
        "curve": curve(crf, path, parts) if with_curve else {},
        "iterations": crf.n_iter_, "converged": bool(crf.converged_),
        "processor seconds of a fit": round(seconds, 2),
    }  # fmt: skip


@functools.lru_cache(maxsize=1)
def load(name: str, features: str, share: float) -> _gene_data.Genome:
    """Return a genome, kept for the next model."""
    return _gene_data.load(name, features, share)


def table(name: str, features: str, model: str, share: float) -> dict[str, Any]:
    """Return the scores of a model, mean over the halves."""
    genome = load(name, features, share)
    with_curve = model != COUNTS and features == TRIMERS
    halves = [half(model, parts, with_curve) for parts in ([*genome], [*genome][::-1])]
    return {
        "sizes": genome.sizes(),
        "scores": {
            part: {kind: round(statistics.mean(one["scores"][part][kind] for one in halves), 2)
                   for kind in halves[0]["scores"][part]}
            for part in ("train", "test")
        },
        "halves": halves,
    }  # fmt: skip


def wrong(y: Labels, rate: float, random: np.random.Generator) -> Labels:
    """Return labels of which some are others."""
    classes = sorted({label for row in y for label in row})
    found = []
    for row in y:
        codes = np.array([classes.index(label) for label in row])
        changed = random.uniform(size=len(row)) < rate
        codes[changed] += random.integers(1, len(classes), size=int(changed.sum()))
        found.append([classes[code] for code in (codes % len(classes)).tolist()])
    return found


def markov(alpha: float, seed: int, size: int) -> list[Part]:
    """Return sequences of a source of first or second order, to learn from and to test on."""
    data = make_markov_sequences(2 * size, alpha=alpha, n_successors=3, n_emitted=8,
                                 random_state=seed)  # fmt: skip
    X = SequenceVectorizer().fit_transform(data.X)
    return [Part(X[:size], data.y[:size]), Part(X[size:], data.y[size:])]


def noise(name: str, rate: float, share: float) -> dict[str, Any]:
    """Return the accuracies of losses where labels are wrong."""
    if name in SOURCES:
        size = int(share / SHARE * MARKOV_SIZE)
        pairs = [markov(SOURCES[name], seed, size) for seed in range(MARKOV_SEEDS)]
    else:
        genome = load(name, TRIMERS, share)
        pairs = [[*genome], [*genome][::-1]]
    scores: dict[str, list[float]] = {}
    for seed, (train, test) in enumerate(pairs):
        noisy = Part(train.X, wrong(train.y, rate, np.random.default_rng(seed)))
        models: dict[str, Any] = {}
        for model in NOISY:
            start = models.get(STARTS.get(model, ""))
            models[model] = crf = fitted(estimator(model, start), noisy)
            accuracy = flat_accuracy_score(test.y, crf.predict(test.X))
            scores.setdefault(model, []).append(100.0 * accuracy)
    return {
        "accuracy": {model: spread(values) for model, values in scores.items()},
        "minus log": {
            model: spread([a - b for a, b in zip(scores[model], scores[LOG], strict=True)])
            for model in NOISY
        },
    }


def spread(values: list[float]) -> dict[str, Any]:
    """Return mean, deviation and all values."""
    return {"mean": round(statistics.mean(values), 3),
            "deviation": round(statistics.stdev(values), 3),
            "all": [round(value, 2) for value in values]}  # fmt: skip


def cases(quick: bool) -> dict[str, Callable[[], dict[str, Any]]]:
    """Return the measurements by name."""
    share = QUICK_SHARE if quick else SHARE
    found: dict[str, Callable[[], dict[str, Any]]] = {}
    for name, features in itertools.product(_gene_data.NAMES, _gene_data.FEATURES):
        for model in MODELS:
            found[f"{name}, {features}: {model}"] = functools.partial(
                table, name, features, model, share
            )
    for name in (*SOURCES, _gene_data.SYNTHETIC):
        for rate in RATES:
            found[f"noise, {name}: {100 * rate:g} %"] = functools.partial(noise, name, rate, share)
    return found


def plot(results: dict[str, Any], folder: Path) -> None:
    """Draw objective and accuracies by iterations, of the first half of each genome."""
    import matplotlib

    matplotlib.use("agg")
    from matplotlib import pyplot

    models = [model for model in MODELS if model != COUNTS]
    names = [name for name in _gene_data.NAMES if f"{name}, {TRIMERS}: {LOG}" in results]
    if not names:
        return
    figure, axes = pyplot.subplots(
        len(names), len(models), figsize=(3.4 * len(models), 2.8 * len(names)), squeeze=False,
        layout="constrained",
    )  # fmt: skip
    for row, name in zip(axes, names, strict=True):
        for ax, model in zip(row, models, strict=True):
            case = results.get(f"{name}, {TRIMERS}: {model}")
            if case is None:
                continue
            found = case["halves"][0]["curve"]
            for part, color in (("train", "C0"), ("test", "C1")):
                ax.plot(found["iteration"], found[part], color, label=f"accuracy, {part}")
            ax.set(title=f"{name}: {model}", xlabel="iterations", ylabel="accuracy, %")
            other = ax.twinx()
            other.plot(found["iteration"], [-v for v in found["objective"]], "k:",
                       label="minus the objective")  # fmt: skip
            other.tick_params(labelsize=6)
            ax.legend(fontsize=6, loc="lower right")
    figure.savefig(folder / "losses_genes.png", dpi=110)
    pyplot.close(figure)
