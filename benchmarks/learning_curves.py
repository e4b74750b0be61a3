"""Learning curves: models of labels and tokens against models of labels given tokens.

What Ng and Jordan (2001) found for naive Bayes and logistic regression, for these and for what they
are of sequences: a model of both is at its best after few examples, and the other one ends lower
where the model is wrong. Two sources, a hidden Markov model (where it is right) and one of second
order (where it is wrong), and tags of English words. Draws are of the data to learn from; the
sources are drawn anew, too.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import _family_plots
import numpy as np
from _sources import Split, label_error, split, square

from crfkit.datasets import fetch_ud, make_markov_sequences

NUMBERS = [5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000]
N_TEST, DRAWS, QUICK_DRAWS, QUICK_MOST = 1000, 20, 2, 50
WORD_DRAWS = 5
C2 = 0.1
SOURCES = {"hidden Markov source": 0.0, "source of second order": 1.0}
STYLE = {"naive Bayes": "C0.--", "logistic regression": "C3.--", "HMM": "C0.-", "CRF": "C3.-"}
WORDS = "tags of English words"


def drawn(alpha: float, draws: int) -> Iterator[Split]:
    """Yield sequences of one random source after the other."""
    for seed in range(draws):
        data = make_markov_sequences(max(NUMBERS) + N_TEST, alpha=alpha, random_state=seed)
        yield split(data, max(NUMBERS))


def tagged(draws: int) -> Iterator[Split]:
    """Yield training sentences of the English Web Treebank in random orders."""
    mirror = os.environ["CRFKIT_DATA"]
    train, test = (fetch_ud("en_ewt", part, mirror=mirror) for part in ("train", "test"))
    tokens, X_test = ([[[word] for word in row] for row in part.tokens] for part in (train, test))
    for seed in range(draws):
        order = np.random.default_rng(seed).permutation(len(tokens))[: max(NUMBERS)]
        yield Split(
            [tokens[i] for i in order], [train.tags[i] for i in order], X_test, test.tags
        )  # fmt: skip


def measure(quick: bool, make: Callable[[int], Iterator[Split]], draws: int) -> dict[str, Any]:
    """Return the share of wrong labels by model and number of sequences, of each draw."""
    numbers = [n for n in NUMBERS if not quick or n <= QUICK_MOST]
    errors: dict[str, list[list[float]]] = {name: [[] for _ in numbers] for name in square(C2)}
    for parts in make(QUICK_DRAWS if quick else draws):
        for place, n in enumerate(numbers):
            for name, model in square(C2).items():
                errors[name][place].append(label_error(model, parts.first(n)))
    return {"sequences": numbers, "c2": C2, "errors": errors}


def cases(quick: bool) -> dict[str, Callable[[], dict[str, Any]]]:
    """Return the measurements by name."""
    return {
        **{name: functools.partial(measure, quick, functools.partial(drawn, alpha), DRAWS)
           for name, alpha in SOURCES.items()},
        WORDS: functools.partial(measure, quick, tagged, WORD_DRAWS),
    }  # fmt: skip


def plot(results: dict[str, Any], folder: Path) -> None:
    """Draw the curves."""
    panels = {
        name: {
            model: (case["sequences"], [[100 * error for error in row] for row in rows])
            for model, rows in case["errors"].items()
        }
        for name, case in results.items()
    }
    _family_plots.curves(
        folder / "learning_curves.png",
        panels,
        "sequences to learn from",
        "wrong labels, %",
        STYLE,
        "log",
    )
