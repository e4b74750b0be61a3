"""The CoNLL-2002 tutorial of sklearn-crfsuite, run twice with only the import lines changed.

    python benchmarks/conll2002_tutorial.py

Features, fit, token metrics, top weights and a randomized search, as in the tutorial; the search
fits the first sentences only. Fits are timed in turns, in processes of their own that have loaded
what they run: `sklearn-crfsuite`, then crfkit with one thread and with all cores, and again.
Writes ``results/conll2002_tutorial.json``.
"""

from __future__ import annotations

import gzip
import json
import sys
import time
import warnings
from collections import Counter
from typing import Any

import _measure
import scipy.stats
from _conll import data_home
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import make_scorer
from sklearn.model_selection import RandomizedSearchCV

SEARCH_SENTENCES, SEARCH_ITERATIONS, CANDIDATES, FOLDS = 600, 50, 4, 3
ROUNDS = 5
Sentence = list[tuple[str, str, str]]


def sentences(part: str) -> list[Sentence]:
    """Return the (word, tag, label) rows of 'esp.train' or 'esp.testb'."""
    path = data_home() / "conll2002_es" / f"{part}.gz"
    text = gzip.open(path, "rt", encoding="utf-8").read()
    blocks = (block.strip() for block in text.split("\n\n"))
    return [
        [tuple(line.split()) for line in block.split("\n")]  # type: ignore[misc]
        for block in blocks if block
    ]  # fmt: skip


def token_features(sentence: Sentence, i: int) -> dict[str, Any]:
    """Return the features of the tutorial: the word, its shape and tag, and its neighbors'."""
    word, tag = sentence[i][:2]
    features = {"bias": 1.0, "word[-3:]": word[-3:], "word[-2:]": word[-2:],
                "word.isdigit()": word.isdigit()}  # fmt: skip
    features |= shared_features("", word, tag)
    if i > 0:
        features |= shared_features("-1:", *sentence[i - 1][:2])
    else:
        features["BOS"] = True
    if i < len(sentence) - 1:
        features |= shared_features("+1:", *sentence[i + 1][:2])
    else:
        features["EOS"] = True
    return features


def shared_features(prefix: str, word: str, tag: str) -> dict[str, Any]:
    """Return the features that a token and its neighbors have."""
    return {
        f"{prefix}word.lower()": word.lower(),
        f"{prefix}word.istitle()": word.istitle(),
        f"{prefix}word.isupper()": word.isupper(),
        f"{prefix}postag": tag,
        f"{prefix}postag[:2]": tag[:2],
    }


def load(part: str) -> tuple[list[list[dict[str, Any]]], list[list[str]]]:
    """Return features and labels."""
    rows = sentences(part)
    X = [[token_features(sentence, i) for i in range(len(sentence))] for sentence in rows]
    return X, [[label for _, _, label in sentence] for sentence in rows]


def package(which: str) -> Any:
    """Return the drop-in of crfkit, or sklearn-crfsuite."""
    if which == "crfkit":
        from crfkit.compat import sklearn_crfsuite
    else:
        import sklearn_crfsuite
    return sklearn_crfsuite


def model(which: str, **params: Any) -> Any:
    """Return the estimator of the tutorial."""
    return package(which).CRF(
        algorithm="lbfgs", c1=0.1, c2=0.1, max_iterations=100, all_possible_transitions=True,
        **params,
    )  # fmt: skip


def timed_fits(which: str) -> dict[str, dict[str, float]]:
    """Return the seconds of fits, by the clock and of the processor."""
    warnings.simplefilter("ignore", ConvergenceWarning)  # max_iterations is meant to be reached
    X, y = load("esp.train")
    threads = {"one thread": {"n_jobs": 1}, "all cores": {}} if which == "crfkit" else {"": {}}
    found = {}
    for name, params in threads.items():
        model(which, **params).fit(X[:20], y[:20])  # kernels are loaded
        crf = model(which, **params)
        started, cpu = time.perf_counter(), time.process_time()
        crf.fit(X, y)
        seconds = time.perf_counter() - started
        found[name] = {"seconds": seconds, "cpu": time.process_time() - cpu}
    return found


def tutorial(which: str) -> dict[str, Any]:
    """Run the tutorial with one of the packages and return its results."""
    if which == "crfkit":
        from crfkit.compat.sklearn_crfsuite import metrics
    else:
        from sklearn_crfsuite import metrics

    warnings.simplefilter("ignore", ConvergenceWarning)
    (X_train, y_train), (X_test, y_test) = load("esp.train"), load("esp.testb")
    crf = model(which)
    crf.fit(X_train, y_train)
    crf.predict(X_test[:20])
    started = time.perf_counter()
    y_pred = crf.predict(X_test)
    predicted = time.perf_counter() - started
    labels = list(crf.classes_)
    labels.remove("O")
    ordered = sorted(labels, key=lambda name: (name[1:], name[0]))
    results = {
        "predict seconds": predicted,
        "iterations": len(crf.training_log_.iterations),
        "losses": [entry["loss"] for entry in crf.training_log_.iterations],
        "classes": list(crf.classes_),
        "flat f1": metrics.flat_f1_score(y_test, y_pred, average="weighted", labels=labels),
        "token accuracy": crf.score(X_test, y_test),
        "report": metrics.flat_classification_report(y_test, y_pred, labels=ordered, digits=3),
        "top transitions": Counter(crf.transition_features_).most_common(5),
        "unlikely transitions": Counter(crf.transition_features_).most_common()[-3:],
        "top state features": Counter(crf.state_features_).most_common(5),
        "attributes": crf.num_attributes_,
    }
    labels_scorer = make_scorer(metrics.flat_f1_score, average="weighted", labels=labels)
    space = {"c1": scipy.stats.expon(scale=0.5), "c2": scipy.stats.expon(scale=0.05)}
    base = package(which).CRF(
        algorithm="lbfgs", max_iterations=SEARCH_ITERATIONS, all_possible_transitions=True
    )
    search = RandomizedSearchCV(
        base, space, cv=FOLDS, n_iter=CANDIDATES, scoring=labels_scorer, random_state=0
    )
    started = time.perf_counter()
    search.fit(X_train[:SEARCH_SENTENCES], y_train[:SEARCH_SENTENCES])
    results["search seconds"] = time.perf_counter() - started
    results["search scores"] = search.cv_results_["mean_test_score"].tolist()
    results["search best"] = search.best_params_
    return results


def below(losses: list[float], least: float) -> int | None:
    """Return the first iteration that is not above an objective; None where none is."""
    return next((number for number, loss in enumerate(losses, 1) if loss <= least), None)


def main() -> None:
    """Run the tutorial in a process for each package, and compare; fits in turns."""
    script, names = "conll2002_tutorial.py", ("sklearn-crfsuite", "crfkit")
    runs = {name: _measure.in_child(script, name) for name in names}
    rounds = [
        {name: _measure.in_child(script, name, "fit") for name in names} for _ in range(ROUNDS)
    ]
    theirs, ours = runs["sklearn-crfsuite"], runs["crfkit"]
    theirs["fit"] = [each["sklearn-crfsuite"][""] for each in rounds]
    ours["fit"] = [each["crfkit"] for each in rounds]
    gaps = {
        "objective, relative": ours["losses"][-1] / theirs["losses"][-1] - 1.0,
        "iterations until below its last objective": below(ours["losses"], theirs["losses"][-1]),
        "flat f1": ours["flat f1"] - theirs["flat f1"],
        "search scores": [
            a - b for a, b in zip(ours["search scores"], theirs["search scores"], strict=True)
        ],
        "reports equal": ours["report"] == theirs["report"],
    }
    search = {"sentences": SEARCH_SENTENCES, "iterations": SEARCH_ITERATIONS,
              "candidates": CANDIDATES, "folds": FOLDS}  # fmt: skip
    _measure.write("conll2002_tutorial", {"gaps": gaps, "search": search, **runs})


if __name__ == "__main__":
    if len(sys.argv) > 1:
        print(json.dumps((timed_fits if sys.argv[2:] else tutorial)(sys.argv[1])))
    else:
        main()
