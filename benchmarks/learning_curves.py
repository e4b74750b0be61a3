"""Learning curves: models of labels and tokens against models of labels given tokens.

What Ng and Jordan (2001) found for naive Bayes and logistic regression, for these and for what they
are of sequences: a model of both is at its best after few examples, and the other one ends lower
where the model is wrong. Two sources, a hidden Markov model (where it is right) and one of second
order (where it is wrong), and tags of English words. Draws are of the data to learn from; the
sources are drawn anew, too. Models of labels given tokens have an attribute that all tokens have,
as the others have the shares of labels.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import _family_plots
import numpy as np
from _sources import Split, label_error, split, square, with_constant
from sklearn.utils import Bunch

from crfkit.datasets import fetch_ud, make_markov_sequences

NUMBERS = [5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000]
N_TEST, DRAWS, QUICK_DRAWS, QUICK_MOST = 1000, 20, 2, 50
C2 = 0.1
SOURCES = {"hidden Markov source": 0.0, "source of second order": 1.0}
STYLE = {"naive Bayes": "C0.--", "logistic regression": "C3.--", "HMM": "C0.-", "CRF": "C3.-"}
CONDITIONAL = {"logistic regression", "CRF"}
WORDS = {"tags of English words": (False, 5), "tags, with four columns": (True, 3)}


class Both(NamedTuple):
    """The same sequences with symbols alone, and with a constant attribute beside them."""

    symbols: Split
    with_constant: Split


def drawn(alpha: float, draws: int) -> Iterator[Both]:
    """Yield sequences of one random source after the other."""
    for seed in range(draws):
        data = make_markov_sequences(max(NUMBERS) + N_TEST, alpha=alpha, random_state=seed)
        more = Bunch(X=with_constant(data.X), y=data.y)
        yield Both(split(data, max(NUMBERS)), split(more, max(NUMBERS)))


def tagged(overlapping: bool, draws: int) -> Iterator[Both]:
    """Yield training sentences of the English Web Treebank in random orders."""
    mirror = os.environ["CRFKIT_DATA"]
    train, test = (fetch_ud("en_ewt", part, mirror=mirror) for part in ("train", "test"))
    X_train, X_test = ([columns(row, overlapping) for row in part.tokens] for part in (train, test))
    for seed in range(draws):
        order = np.random.default_rng(seed).permutation(len(X_train))[: max(NUMBERS)]
        X, y = [X_train[i] for i in order], [train.tags[i] for i in order]
        plain = Split(X, y, X_test, test.tags)
        more = plain._replace(X=constant_beside(X), X_test=constant_beside(X_test))
        yield Both(plain, more)


def columns(words: list[str], overlapping: bool) -> list[dict[str, str]]:
    """Return the word of each token, and maybe its ending and the words beside it."""
    if not overlapping:
        return [{"word": word} for word in words]
    beside = ["<start>", *words, "<end>"]
    return [{"word": word, "ending": word[-3:], "before": beside[t], "after": beside[t + 2]}
            for t, word in enumerate(words)]  # fmt: skip


def constant_beside(tokens: list[list[dict[str, str]]]) -> list[list[dict[str, str]]]:
    """Return tokens with an attribute that all of them have."""
    return [[{**token, "any": ""} for token in row] for row in tokens]


def measure(quick: bool, make: Callable[[int], Iterator[Both]], draws: int) -> dict[str, Any]:
    """Return the share of wrong labels by model and number of sequences, of each draw."""
    numbers = [n for n in NUMBERS if not quick or n <= QUICK_MOST]
    errors: dict[str, list[list[float]]] = {name: [[] for _ in numbers] for name in square(C2)}
    for parts in make(QUICK_DRAWS if quick else draws):
        for place, n in enumerate(numbers):
            for name, model in square(C2).items():
                given = parts.with_constant if name in CONDITIONAL else parts.symbols
                errors[name][place].append(label_error(model, given.first(n)))
    return {"sequences": numbers, "c2": C2, "errors": errors}


def cases(quick: bool) -> dict[str, Callable[[], dict[str, Any]]]:
    """Return the measurements by name."""
    return {
        **{name: functools.partial(measure, quick, functools.partial(drawn, alpha), DRAWS)
           for name, alpha in SOURCES.items()},
        **{name: functools.partial(measure, quick, functools.partial(tagged, overlapping), draws)
           for name, (overlapping, draws) in WORDS.items()},
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
