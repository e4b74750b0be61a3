"""Samples and entropies against marginals, of which both need the first half.

    python benchmarks/samples.py

Test sentences of CoNLL-2000 (22 labels) and CoNLL-2002 (9 labels) with the weights of a fit that
converged, and one sequence of 1,000,000 tokens. Seconds are those of the processor on one thread,
all ways in turns: of what a structure does with potentials that are there, and of a whole question
to an estimator, with its attributes looked up. Writes ``results/samples.json``.
"""

from __future__ import annotations

import functools
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

import _measure
import numpy as np
from losses_pass import load

from crfkit import CRFClassifier
from crfkit._types import Potentials
from crfkit.inference import marginals
from crfkit.structures import Structure

CASES = ("conll2000", "conll2002_es", "one sequence, 9 labels", "one sequence, 22 labels")
ROUNDS, LONG_ROUNDS = 9, 3


def in_turns(ways: dict[str, Callable[[], Any]], rounds: int) -> dict[str, float]:
    """Return the median seconds of the processor that each way takes, after a first call."""
    times: dict[str, list[float]] = {name: [] for name in ways}
    for turn in range(rounds + 1):
        for name, way in ways.items():
            started = time.process_time()
            way()
            if turn:
                times[name].append(time.process_time() - started)
    return {name: statistics.median(each) for name, each in times.items()}


def compared(seconds: dict[str, float], tokens: int) -> dict[str, float]:
    """Return nanoseconds a token of marginals, and how many times that the others take."""
    base = seconds.pop("marginals")
    shares = {name: each / base for name, each in seconds.items()}
    return {"marginals, ns a token": base / tokens * 1e9, **shares}


def of_structure(crf: CRFClassifier, X: Any, rounds: int) -> dict[str, Any]:
    """Measure what a structure does with the potentials of all chunks."""
    chunks: list[tuple[Structure, Potentials]] = crf._ask(X, lambda *pair: pair)
    random = np.random.default_rng(0)
    uniforms = [random.random((10, len(scores.unary))) for _, scores in chunks]

    def all_of(way: Callable[..., Any]) -> Callable[[], Any]:
        numbered = list(enumerate(chunks))
        return lambda: [way(n, structure, scores) for n, (structure, scores) in numbered]

    ways = {
        "marginals": all_of(lambda n, structure, scores: marginals(structure, scores)),
        "viterbi": all_of(lambda n, structure, scores: structure.argmax(scores)),
        "entropy": all_of(lambda n, structure, scores: structure.entropy(scores)),
        "sample of 1": all_of(
            lambda n, structure, scores: structure.sample(scores, uniforms[n][:1])
        ),
        "sample of 10": all_of(lambda n, structure, scores: structure.sample(scores, uniforms[n])),
    }
    return compared(in_turns(ways, rounds), X.n_tokens)


def measure(case: str, quick: bool) -> dict[str, Any]:
    """Measure one case."""
    data = load(case)
    long = case not in CASES[:2]
    X = data.X if long else data.X_test
    rounds = 1 if quick else LONG_ROUNDS if long else ROUNDS
    y = [data.codes] if long else data.y
    crf = CRFClassifier(solver="lbfgs", max_iter=5 if quick or long else 200, n_jobs=1)
    crf.fit(data.X, y)
    entropy = crf.entropy(X)
    ask = {
        "marginals": functools.partial(crf.predict_proba, X),
        "predict": functools.partial(crf.predict, X),
        "entropy": functools.partial(crf.entropy, X),
        "sample of 1": functools.partial(crf.sample, X, random_state=0),
        "sample of 10": functools.partial(crf.sample, X, 10, random_state=0),
    }
    return {
        "tokens": X.n_tokens,
        "nats a token": float(entropy.sum() / X.n_tokens),
        "least nats a token": float((entropy / X.lengths).min()),
        "structure": of_structure(crf, X, rounds),
        "estimator": compared(in_turns(ask, rounds), X.n_tokens),
    }


def main() -> None:
    """Measure all cases."""
    quick = "--quick" in sys.argv
    runs = {}
    for case in CASES:
        runs[case] = measure(case, quick)
        print(case, runs[case], flush=True)
    if not quick:
        _measure.write("samples", {"runs": runs})


if __name__ == "__main__":
    main()
