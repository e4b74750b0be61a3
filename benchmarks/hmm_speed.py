"""An iteration of EM of hidden Markov models: crfkit beside hmmlearn, from the same start.

Tokens are drawn from a hidden Markov model, in sequences of 1,000 and of 25 tokens: one of 30
symbols, or vectors of 4 numbers (diagonal and full covariances). Both learn without labels, from
the same probabilities and without priors; hmmlearn by its default (``implementation="log"``) and by
``"scaling"``. All in one process, in turns: an iteration of hmmlearn is a fit of one, one of crfkit
the difference between fits of six and of two, by four. Processor seconds with one thread; and with
two, if nothing else runs on the machine, seconds of the clock. All have to reach the same
log-likelihood after the first iteration.
"""

from __future__ import annotations

import gc
import logging
import os
import statistics
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import _measure
import numpy as np
import scipy.sparse as sp
from decoding import peak_mib, processor_seconds

from crfkit import HMMClassifier
from crfkit.data import PackedSequences
from crfkit.generative import Additive
from crfkit.generative.emissions import Categorical, Gaussian, GaussianTables, SymbolTables

TOKENS, QUICK_TOKENS = 1_000_000, 40_000
LENGTHS, LABELS = (1000, 25), (5, 10)
EMISSIONS = ("symbols", "diag", "full")
SYMBOLS, FEATURES = 30, 4
IMPLEMENTATIONS = ("log", "scaling")
REPEATS = 3
CRFKIT = "crfkit"
FEW, MORE = 2, 6  # iterations of the fits of crfkit
QUIET = 0.5  # the load of a machine on which nothing else runs, before the first case


def drawn(emission: str, length: int, n_labels: int, n_tokens: int) -> Any:
    """Return sequences that are drawn from a hidden Markov model."""
    random = np.random.RandomState(length + n_labels)
    steps = random.dirichlet(np.ones(n_labels), n_labels) / 2 + np.eye(n_labels) / 2
    bounds, uniform = np.cumsum(steps, axis=1), random.uniform(size=n_tokens)
    codes = np.zeros(n_tokens, np.int64)
    for t in range(1, n_tokens):
        if t % length:
            codes[t] = min(np.searchsorted(bounds[codes[t - 1]], uniform[t]), n_labels - 1)
        else:
            codes[t] = random.randint(n_labels)
    offsets = np.arange(0, n_tokens + 1, length)
    if emission == "symbols":
        bounds = np.cumsum(random.dirichlet(np.ones(SYMBOLS), n_labels), axis=1)
        found = (bounds[codes] < random.uniform(size=(n_tokens, 1))).sum(axis=1)
        symbols = np.minimum(found, SYMBOLS - 1)
        entries = np.ones(n_tokens), symbols, np.arange(n_tokens + 1)
        return PackedSequences(sp.csr_array(entries, shape=(n_tokens, SYMBOLS)), offsets=offsets)
    means = 2.0 * random.standard_normal((n_labels, FEATURES))
    rows = means[codes] + random.standard_normal((n_tokens, FEATURES))
    return PackedSequences(dense=rows, offsets=offsets)


def start(emission: str, n_labels: int) -> dict[str, Any]:
    """Return the probabilities that both start from."""
    random = np.random.RandomState(0)
    found = {
        "start": random.dirichlet(np.ones(n_labels)),
        "transitions": random.dirichlet(np.ones(n_labels), n_labels),
    }
    if emission == "symbols":
        return found | {"symbols": random.dirichlet(np.full(SYMBOLS, 5.0), n_labels)}
    covariance = np.full((n_labels, FEATURES), 4.0)
    if emission == "full":
        covariance = covariance[:, :, None] * np.eye(FEATURES)
    means = random.standard_normal((n_labels, FEATURES))
    return found | {"means": means, "covariance": covariance}


def ours(emission: str, n_labels: int, data: Any, n_jobs: int) -> Callable[[int], HMMClassifier]:
    """Return what fits a model of crfkit for some iterations."""
    given = start(emission, n_labels)
    if emission == "symbols":
        family: Any = Categorical(alpha=0.0)
        tables: Any = SymbolTables.from_probabilities(np.ascontiguousarray(given["symbols"].T))
    else:
        family = Gaussian(emission, prior=0.0)
        tables = GaussianTables(given["means"], given["covariance"])

    def fit(n_iter: int) -> HMMClassifier:
        hmm = HMMClassifier.from_probabilities(
            range(n_labels), given["start"], given["transitions"], tables, emissions=family,
            n_states=n_labels, smoothing=Additive(alpha=0.0), tol=0.0, max_iter=n_iter,
            warm_start=True, n_jobs=n_jobs,
        )  # fmt: skip
        return hmm.fit(data)

    return fit


def theirs(emission: str, n_labels: int, implementation: str) -> Any:
    """Return a model of hmmlearn that makes one iteration."""
    from hmmlearn import hmm

    given = start(emission, n_labels)
    options: dict[str, Any] = {"init_params": "", "n_iter": 1, "implementation": implementation}
    if emission == "symbols":
        model = hmm.CategoricalHMM(n_labels, n_features=SYMBOLS, **options)
        model.emissionprob_ = given["symbols"]
    else:
        model = hmm.GaussianHMM(
            n_labels, emission, covars_prior=0.0, covars_weight=1.0, min_covar=0.0, **options
        )
        model.means_, model.n_features = given["means"], FEATURES
        model.covars_ = given["covariance"]
    model.startprob_, model.transmat_ = given["start"], given["transitions"]
    return model


def rows_of(emission: str, data: Any) -> Any:
    """Return tokens in the form of hmmlearn."""
    return data.indices[:, None].astype(np.int64) if emission == "symbols" else data.dense


def iteration_of(fit: Callable[[int], Any], clock: Callable[[Callable[[], Any]], float]) -> float:
    """Return the seconds of one iteration."""
    few, more = (clock(lambda n=n: fit(n)) for n in (FEW, MORE))  # type: ignore[misc]
    return (more - few) / (MORE - FEW)


def wall_seconds(way: Callable[[], Any]) -> float:
    """Return the seconds of a call by the clock, without collections of garbage."""
    gc.disable()
    try:
        return _measure.seconds(way)
    finally:
        gc.enable()


def compare(emission: str, length: int, n_labels: int, n_tokens: int, quiet: bool) -> Any:
    """Return seconds of an iteration, ratios and peak memory."""
    logging.getLogger("hmmlearn").setLevel(logging.ERROR)
    data = drawn(emission, length, n_labels, n_tokens)
    rows = rows_of(emission, data)
    one, two = (ours(emission, n_labels, data, n_jobs) for n_jobs in (1, 2))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that few iterations are not enough
        values = {CRFKIT: one(1).log_likelihood_}  # compiles
        used = {CRFKIT: median_of(one, processor_seconds)}
        wall = {CRFKIT: median_of(two, wall_seconds)} if quiet else {}
        peaks = {CRFKIT: peak_mib(lambda: one(1))}
        for implementation in IMPLEMENTATIONS:
            name, model = f"hmmlearn, {implementation}", theirs(emission, n_labels, implementation)
            started = time.perf_counter()
            found: list[float] = []
            peaks[name] = peak_mib(
                lambda model=model, found=found: found.append(
                    processor_seconds(lambda: model.fit(rows, data.lengths))
                )
            )
            used[name], seconds = found[0], time.perf_counter() - started
            wall |= {name: seconds} if quiet else {}
            values[name] = float(model.score(rows, data.lengths))
    return {
        "tokens": n_tokens,
        "seconds of an iteration": used,
        "times as fast": {name: used[name] / used[CRFKIT] for name in used if name != CRFKIT},
        "with two threads": {
            "seconds of an iteration": wall,
            "times as fast": {name: wall[name] / wall[CRFKIT] for name in wall if name != CRFKIT},
        },
        "log-likelihood after one iteration": values,
        "agree to": max(abs(v / values[CRFKIT] - 1.0) for v in values.values()),
        "peak MiB": peaks,
    }


def median_of(fit: Callable[[int], Any], clock: Callable[[Callable[[], Any]], float]) -> float:
    """Return the seconds of one iteration, the median of some."""
    return statistics.median(iteration_of(fit, clock) for _ in range(REPEATS))


def cases(quick: bool) -> dict[str, Callable[[], Any]]:
    """Return the cases by name."""
    tokens, quiet = QUICK_TOKENS if quick else TOKENS, os.getloadavg()[0] < QUIET
    return {
        f"{emission}, {n_labels} labels, {length} tokens": (
            lambda e=emission, t=length, k=n_labels: compare(e, t, k, tokens, quiet)
        )
        for emission in EMISSIONS
        for n_labels in LABELS
        for length in LENGTHS
    }


def plot(results: dict[str, Any], folder: Path) -> None:
    """Draw nothing: the table says it."""
