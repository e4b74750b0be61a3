"""``crfkit train --cross-validate``."""

from __future__ import annotations

import argparse
from statistics import fmean, pstdev
from typing import Any

from sklearn.base import clone
from sklearn.model_selection import KFold

from crfkit._progress import working
from crfkit.cli._evaluate import print_report
from crfkit.cli._models import plain_tokens
from crfkit.cli.formats import Labeled
from crfkit.labels.sequences import names_of
from crfkit.metrics import entity_f1_score, flat_accuracy_score
from crfkit.metrics.segments import are_typed_tags
from crfkit.progress import ProgressBar


def cross_validate(
    arguments: argparse.Namespace, crf: Any, features: Any, labeled: Labeled, bar: ProgressBar
) -> None:
    """Train without each part of the data in turn, and print how the models do on these parts."""
    X, y, weight = labeled
    n_folds = arguments.cross_validate
    if len(X) < n_folds:
        raise ValueError(f"--cross-validate {n_folds}: the file has {len(X)} sequences.")
    folds = KFold(n_folds, shuffle=True, random_state=arguments.seed).split(X)
    truth: list[Any] = []
    predicted: list[Any] = []
    values: dict[str, list[float]] = {}
    model = clone(crf)
    if "early_stopping" in model.get_params(deep=False):
        model.set_params(early_stopping=False)  # the file of --dev may hold what is judged
    if arguments.c2 == "auto":
        raise ValueError("--cross-validate needs one penalty: --c2 auto chooses by itself.")
    with working("folds", n_folds, "folds") as task:
        for number, (train, test) in enumerate(folds, 1):
            own = None if weight is None else weight[train]
            known = [X[place] for place in train], [y[place] for place in train], own
            found = _predict(model, features, known, [X[place] for place in test])
            if bar.interrupted:
                raise KeyboardInterrupt
            true = [y[place] for place in test]
            scores = _scores(true, found)
            for name, value in scores.items():
                values.setdefault(name, []).append(value)
            if not arguments.quiet:
                bar.clear_line()
                print(f"fold {number} of {n_folds}: {_written(scores)}", flush=True)
            truth += true
            predicted += found
            task.update(number)
    bar.clear_line()
    if not arguments.quiet:
        spread = {name: f"{fmean(each):.4f} ± {pstdev(each):.4f}" for name, each in values.items()}
        print("mean: " + ", ".join(f"{name} {text}" for name, text in spread.items()))
    print_report(truth, predicted, arguments, vars(crf).get("scheme_"))


def _predict(model: Any, features: Any, known: tuple[Any, Any, Any], X: list[Any]) -> list[Any]:
    """Return the labels of sequences by a model of others."""
    X_train, y, weight = known
    made = plain_tokens(model, X_train) if features is None else features.fit_transform(X_train)
    model.fit(made, y, sample_weight=weight)
    packed = plain_tokens(model, X) if features is None else features.transform(X)
    return [[*map(str, labels)] for labels in model.predict(packed)]


def _scores(truth: list[Any], predicted: list[Any]) -> dict[str, float]:
    """Return the accuracy of tokens, and where labels are tags the F1 of entities."""
    scores = {"accuracy": float(flat_accuracy_score(truth, predicted))}
    if are_typed_tags(names_of(*truth, *predicted)):
        scores["F1"] = float(entity_f1_score(truth, predicted, zero_division=0))
    return scores


def _written(scores: dict[str, float]) -> str:
    return ", ".join(f"{name} {value:.4f}" for name, value in scores.items())
