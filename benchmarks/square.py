"""The square of naive Bayes, logistic regression, HMM and CRF, with the MEMM between.

All learn from the same attributes of the recipe ingredients that are shipped: words alone, and
attributes that overlap. ``square.png`` shows what each takes to depend on what.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import _family_plots
import numpy as np
from sklearn.model_selection import KFold

from crfkit import CRFClassifier, HMMClassifier, MEMMClassifier, TokenClassifier
from crfkit.datasets import load_ingredients
from crfkit.features import TemplateFeatures, window
from crfkit.metrics import flat_accuracy_score

WORDS = ["lower(w)"]
OVERLAPPING = [window("lower(w)", -1, 1), "shape(w)", "affixes(lower(w), 3)"]
FOLDS, QUICK_FOLDS = 5, 2


def models() -> dict[str, Any]:
    """Return the models, not fitted."""
    every = {"all_possible_states": True}
    steps = every | {"all_possible_transitions": True, "boundary_weights": True}
    return {
        "naive Bayes": HMMClassifier(order=0, emissions="multinomial"),
        "logistic regression": TokenClassifier(**every),
        "HMM": HMMClassifier(emissions="multinomial"),
        "MEMM": MEMMClassifier(**steps),
        "CRF": CRFClassifier(**steps),
    }


def errors(templates: list[Any], folds: int) -> dict[str, Any]:
    """Return wrong labels and -log P(y | x) a token, on lines that were held out."""
    corpus = load_ingredients()
    y, found = corpus.tags, {name: {"wrong": [], "loss": []} for name in models()}
    for train, test in KFold(folds, shuffle=True, random_state=0).split(y):
        features = TemplateFeatures(templates, columns=["w"])
        X = features.fit_transform([corpus.tokens[i] for i in train])
        X_test = features.transform([corpus.tokens[i] for i in test])
        known, truth = ([y[i] for i in part] for part in (train, test))
        # A label that no line to learn from has makes any labeling impossible.
        possible = np.array([set(tags) <= {tag for row in known for tag in row} for tags in truth])
        n_tokens = sum(len(row) for row, keep in zip(truth, possible, strict=True) if keep)
        for name, model in models().items():
            model.fit(X, known)
            found[name]["wrong"].append(1.0 - flat_accuracy_score(truth, model.predict(X_test)))
            told = model.sequence_log_proba(X_test, truth)[possible]
            found[name]["loss"].append(float(-told.sum() / n_tokens))
    return found


def cases(quick: bool) -> dict[str, Callable[[], dict[str, Any]]]:
    """Return the measurements by name."""
    folds = QUICK_FOLDS if quick else FOLDS
    return {
        "words": functools.partial(errors, WORDS, folds),
        "overlapping": functools.partial(errors, OVERLAPPING, folds),
    }


def plot(results: dict[str, Any], folder: Path) -> None:
    """Draw the graphs."""
    _family_plots.square(folder / "square.png")
