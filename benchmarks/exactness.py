"""The largest deviations from enumeration, long doubles and finite differences.

    python benchmarks/exactness.py

Thousands of random problems, the same oracles as the tests. Writes ``results/exactness.json``.
"""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import _measure
import numpy as np

from crfkit import CRFClassifier
from crfkit._parallel import ThreadMap
from crfkit.datasets import ingredient_features, load_ingredients
from crfkit.objective.batch import Objective
from crfkit.objective.penalties import ElasticNet
from crfkit.structures import Chain
from tests.objective.test_batch import make_data, make_objective
from tests.oracles import (
    chain_paths,
    enumerated_sum,
    finite_difference,
    log_domain_sum,
    random_scores,
)


def against_enumeration(scale: float, problems: int) -> dict[str, float]:
    """Return the largest relative error of log Z and Viterbi, and absolute ones of marginals."""
    worst = {"log_z_relative": 0.0, "marginals": 0.0, "steps": 0.0, "viterbi_relative": 0.0}
    rng = np.random.default_rng(0)
    for seed in range(problems):
        lengths = rng.integers(1, 6, size=2).tolist()
        scores = random_scores(
            seed, lengths, int(rng.integers(1, 5)), own_steps=seed % 2 == 0, scale=scale,
            forbidden=0.4 * (seed % 3 == 0),
        )  # fmt: skip
        out = Chain().zeros(scores)
        log_z = Chain().log_partition(scores, np.ones(2), out)
        expected_z, expected = enumerated_sum(scores, np.ones(2))
        _, value = Chain().argmax(scores)
        best = [max(score for _, score in chain_paths(scores, s)) for s in range(2)]
        found = {
            "log_z_relative": relative(log_z, expected_z),
            "marginals": np.abs(out.unary - expected.unary).max(),
            "steps": np.abs(out.pair - expected.pair).max(),
            "viterbi_relative": relative(value, np.array(best)),
        }
        worst = {name: max(worst[name], float(found[name])) for name in worst}
    return worst


def relative(found: np.ndarray, expected: np.ndarray) -> float:
    """Return the largest difference relative to the size of what is expected, at least 1."""
    return float((np.abs(found - expected) / np.maximum(np.abs(expected), 1.0)).max())


def long_sequence(scale: float) -> dict[str, float]:
    """Return deviations from long-double sums on a sequence of 100,000 tokens."""
    scores = random_scores(0, [100_000], 3, scale=scale)
    out = Chain().zeros(scores)
    log_z = Chain().log_partition(scores, np.ones(1), out)
    expected_z, marginals = log_domain_sum(scores, 0)
    return {
        "log_z_relative": relative(log_z, np.array([expected_z])),
        "marginals": float(np.abs(out.unary - marginals).max()),
    }


def gradient_deviation(problems: int) -> float:
    """Return the largest difference of the objective's gradient and finite differences."""
    worst = 0.0
    for seed in range(problems):
        rng = np.random.default_rng(seed)
        data, codes = make_data(rng)
        with ThreadMap(1) as threads:
            objective = make_objective(
                data, codes, threads, ElasticNet(0.0, 0.3), boundaries=True,
                weight=rng.random(len(codes)),
            )  # fmt: skip
            w = rng.normal(size=objective.n_parameters)
            _, gradient = objective.value_and_grad(w)
            numeric = finite_difference(partial(value_of, objective), w, 1e-3)
            worst = max(worst, np.abs(gradient - numeric).max())
    return float(worst)


def value_of(objective: Objective, w: np.ndarray) -> float:
    """Return the value alone."""
    return objective.value_and_grad(w)[0]


def equal_for_threads() -> bool:
    """Whether fits with 1, 2 and 4 threads agree to the last bit."""
    corpus = load_ingredients()
    X = [ingredient_features(tokens) for tokens in corpus.tokens]
    models = [CRFClassifier(c2=0.1, n_jobs=n).fit(X, corpus.tags) for n in (1, 2, 4)]
    first = models[0]
    return all(
        np.array_equal(first.coef_.data, model.coef_.data)
        and np.array_equal(first.transitions_, model.transitions_)
        and all(map(np.array_equal, first.predict_proba(X), model.predict_proba(X)))
        for model in models[1:]
    )


def main() -> None:
    """Run the measurement."""
    _measure.write(
        "exactness",
        {
            "enumeration": {f"scale {s:g}": against_enumeration(s, 1000) for s in (1.0, 1e3, 1e4)},
            "100,000 tokens": {f"scale {s:g}": long_sequence(s) for s in (1.0, 1e4)},
            "gradient_against_finite_differences": gradient_deviation(30),
            "bit_equal_for_1_2_4_threads": equal_for_threads(),
        },
    )


if __name__ == "__main__":
    main()
