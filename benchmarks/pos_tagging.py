"""Part-of-speech tagging by the family: the experiment of Lafferty, McCallum and Pereira (2001).

Half of the sentences, drawn at random, to learn from, the others to tag: error, and error of words
that the first half does not have. Models of words and steps alone (HMM, MEMM, CRF), MEMM and CRF
with the paper's spelling features, and taggers that are made to be good. What is `chosen`, penalty
or smoothing, has the fewest errors on a fifth of the sentences to learn from, the others learned.

    CRFKIT_DATA=... python benchmarks/run.py --only pos_tagging --missing   # goes on where it ended
"""

from __future__ import annotations

import functools
import itertools
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import _pos_data
from _pos_data import Halves
from sklearn.exceptions import ConvergenceWarning

from crfkit import CRFClassifier, HMMClassifier, MEMMClassifier, StructuredPerceptron
from crfkit.features import preset
from crfkit.generative.emissions import Categorical, Words
from crfkit.metrics import token_errors
from crfkit.solvers import LBFGS

WORDS = ["col(0)"]
SPELLING = ["col(0)", "spelling(col(0))"]
TAGS = preset("tags")
N_JOBS = 2
MANY = 6_000  # of other sets
MOST_PASSES = {"brown": 60}  # of CRFs and MEMMs: these take many, and gain little by the last ones
QUICK = 400
TO_SEARCH = {"brown": 3_000}  # sentences at most, to choose by
TARGETS = {"1 %": 1.01, "0.01 %": 1.0001}
STEPS: dict[str, Any] = {"all_possible_transitions": True, "boundary_weights": True}
FINE = LBFGS(tol=1e-6, max_iter=400)
PENALTIES = (0.03, 0.1, 0.3)


class Way(NamedTuple):
    """A way to tag.

    Attributes
    ----------
    make : callable
        Makes an estimator with the parameter that is chosen.
    choices : tuple
        Values of it; a single one is taken as it is.
    templates : list of str or None
        Of the attributes; None for estimators that read words.
    """

    make: Callable[[Any], Any]
    choices: tuple[Any, ...]
    templates: list[str] | None = None


def crf(c2: float, **options: Any) -> CRFClassifier:
    """Return a CRF."""
    return CRFClassifier(c2=c2, n_jobs=N_JOBS, **STEPS, **options)


def memm(c2: float) -> MEMMClassifier:
    """Return a maximum-entropy Markov model."""
    return MEMMClassifier(c2=c2, n_jobs=N_JOBS, **STEPS)


def hmm(options: tuple[float, int]) -> HMMClassifier:
    """Return a hidden Markov model of words as they are, and one symbol for all others."""
    alpha, min_freq = options
    return HMMClassifier(emissions=Categorical(alpha=alpha, min_freq=min_freq), n_jobs=N_JOBS)


def suffixes(order: int) -> HMMClassifier:
    """Return a hidden Markov model that guesses unknown words by their ends, as TnT does."""
    return HMMClassifier(
        order=order, emissions=Words(), smoothing="deleted_interpolation", n_jobs=N_JOBS
    )  # fmt: skip


def perceptron(epochs: int) -> StructuredPerceptron:
    """Return an averaged perceptron."""
    return StructuredPerceptron(max_iter=epochs, random_state=0, n_jobs=N_JOBS, **STEPS)


WAYS: dict[str, Way] = {
    "HMM": Way(hmm, tuple(itertools.product((1e-4, 1e-3, 0.01, 0.1), (0, 2)))),
    "MEMM": Way(memm, PENALTIES, WORDS),
    "CRF": Way(crf, PENALTIES, WORDS),
    "MEMM, spelling": Way(memm, PENALTIES, SPELLING),
    "CRF, spelling": Way(crf, PENALTIES, SPELLING),
    "HMM, suffixes": Way(suffixes, (1,)),
    "HMM of order 2, suffixes": Way(suffixes, (2,)),
    "averaged perceptron": Way(perceptron, (5, 10), TAGS),
    "CRF, templates": Way(functools.partial(crf, decoding="posterior"), PENALTIES[1:], TAGS),
}


def quietly(call: Callable[..., Any], *arguments: Any) -> Any:
    """Return what a fit returns; passes may be too few for its tolerance."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return call(*arguments)


def inputs(parts: Halves, templates: list[str] | None) -> tuple[Any, Any]:
    """Return what the estimators of a way read of both parts."""
    if templates is None:
        return parts.train.words, parts.test.words
    return _pos_data.packed(parts, templates)


def judged(model: Any, parts: Halves, X: Any) -> dict[str, float]:
    """Return the errors in percent, and the time of tagging."""
    started = time.process_time()
    predicted = model.predict(X)
    seconds = time.process_time() - started
    found = token_errors(parts.test.tags, predicted, parts.test.words, parts.known())
    return {
        "error": 100.0 * found.overall, "known": 100.0 * found.known,
        "unknown": 100.0 * found.unknown, "unknown share": 100.0 * found.unknown_share,
        "tokens a second": parts.test.n_tokens / seconds,
    }  # fmt: skip


def search(way: Way, parts: Halves) -> dict[str, float]:
    """Return the error with each choice."""
    X, X_test = inputs(parts, way.templates)
    return {
        str(choice): judged(
            quietly(way.make(choice).fit, X, parts.train.tags), parts, X_test
        )["error"]
        for choice in way.choices
    }  # fmt: skip


def measure(set_name: str, way_name: str, limit: int | None) -> dict[str, Any]:
    """Return the errors of a way to tag on a set."""
    way, parts = WAYS[way_name], _pos_data.halves(set_name, limit)
    chosen, tried = way.choices[0], {}
    if len(way.choices) > 1:
        tried = search(way, _pos_data.search_parts(parts.train, TO_SEARCH.get(set_name, MANY)))
        chosen = min(way.choices, key=lambda choice: tried[str(choice)])
    X, X_test = inputs(parts, way.templates)
    model = way.make(chosen)
    if set_name in MOST_PASSES and isinstance(model, (CRFClassifier, MEMMClassifier)):
        model.set_params(max_iter=MOST_PASSES[set_name])
    started = time.process_time()
    quietly(model.fit, X, parts.train.tags)
    seconds = time.process_time() - started
    return {
        "sizes": sizes(parts), "chosen": chosen, "error by choice": tried,
        **judged(model, parts, X_test), "seconds of the fit": seconds,
        "passes": model.n_iter_, "converged": model.converged_,
    }  # fmt: skip


def sizes(parts: Halves) -> dict[str, int]:
    """Return how much there is of everything."""
    return {
        "sentences": len(parts.train.words), "tokens": parts.train.n_tokens,
        "labels": len({tag for tags in parts.train.tags for tag in tags}),
        "words": len(parts.known()), "tokens to tag": parts.test.n_tokens,
    }  # fmt: skip


def starts(set_name: str, templates: list[str], limit: int | None) -> dict[str, Any]:
    """Return how many passes a CRF takes from zeros, and from the weights of a MEMM."""
    parts, c2 = _pos_data.halves(set_name, limit), PENALTIES[1]
    X, _ = inputs(parts, templates)
    started = time.process_time()
    local = quietly(memm(c2).fit, X, parts.train.tags)
    found: dict[str, Any] = {"seconds of the MEMM": time.process_time() - started, "c2": c2}
    logs = {
        name: quietly(crf(c2, solver=FINE, init=init).fit, X, parts.train.tags).training_log_
        for name, init in (("zeros", "zeros"), ("MEMM", local))
    }
    optimum = min(log[-1].value for log in logs.values())
    for name, log in logs.items():
        found[name] = {"first": log[0].value / optimum} | {
            target: next(record.evaluations for record in log if record.value <= goal * optimum)
            for target, goal in TARGETS.items()
        }
    return found


def cases(quick: bool) -> dict[str, Callable[[], dict[str, Any]]]:
    """Return the measurements by name."""
    limit = QUICK if quick else None
    found: dict[str, Callable[[], dict[str, Any]]] = {
        f"{name}: {way}": functools.partial(measure, name, way, limit)
        for name in _pos_data.SETS for way in WAYS
    }  # fmt: skip
    for name in _pos_data.SETS if quick else list(_pos_data.SETS)[:2]:
        for told, templates in (("words", WORDS), ("spelling", SPELLING)):
            found[f"{name}: starts, {told}"] = functools.partial(starts, name, templates, limit)
    return found


def plot(results: dict[str, Any], folder: Path) -> None:
    """Draw nothing: a table says it all."""
