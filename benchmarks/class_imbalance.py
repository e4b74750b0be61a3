"""Names that are rare: weights of tokens, costs and losses that prefer recall.

    python benchmarks/class_imbalance.py [--limit 500]

Names of gmb_ner are learned from a few sentences, most of whose tokens are outside of names. What
is compared finds more of them for some that are wrong: weights of tokens by their labels, of the
log loss and of the pointwise loss; costs of errors, of losses that have one. Writes
``results/class_imbalance.json``.
"""

from __future__ import annotations

import argparse
import time
import warnings
from typing import Any

import _measure
import numpy as np
from _data import read_blocks
from sklearn.exceptions import ConvergenceWarning

from crfkit import CRFClassifier, TemplateFeatures, token_weights
from crfkit.features import preset
from crfkit.metrics import entity_f1_score, entity_precision_score, entity_recall_score

NAME = "class_imbalance"
SENTENCES, TESTED, SPLITS = 500, 2_000, 2
STRENGTHS = (2.0, 5.0)  # of the labels of names, beside 1 of "O"


def half(y: Any) -> dict[str, float]:
    """Return the square roots of the balanced weights of labels."""
    flat = np.array([label for row in y for label in row])
    labels, counts = np.unique(flat, return_counts=True)
    weights = np.sqrt(len(flat) / (len(labels) * counts))
    return dict(zip(labels.tolist(), weights.tolist(), strict=True))


def of_names(y: Any, strength: float) -> dict[str, float]:
    """Return weights, or costs, of labels: 1 of "O", more of all others."""
    return {label: 1.0 if label == "O" else strength for row in y for label in row}


def ways(y: Any) -> dict[str, tuple[dict[str, Any], Any]]:
    """Return options of a classifier, and `class_weight` if there is one, by what they are."""
    found: dict[str, tuple[dict[str, Any], Any]] = {"log loss": ({}, None)}
    for loss in ("log", "pointwise"):
        options = {"loss": loss}
        if loss != "log":
            found[f"{loss} loss"] = (options, None)
        found[f"{loss}, weights: balanced"] = (options, "balanced")
        found[f"{loss}, weights: roots of balanced"] = (options, half(y))
        for strength in STRENGTHS:
            found[f"{loss}, weights: {strength:g} of names"] = (options, of_names(y, strength))
    for loss in ("softmax_margin", "hinge", "risk"):
        found[f"{loss}, cost 1"] = ({"loss": loss}, None)
        for strength in STRENGTHS:
            options = {"loss": loss, "cost": of_names(y, strength)}
            found[f"{loss}, cost {strength:g} of missed names"] = (options, None)
    return found


def scores(y: Any, found: Any) -> dict[str, float]:
    """Return precision, recall and F1 of names, in per cent."""
    measures = {
        "precision": entity_precision_score, "recall": entity_recall_score, "F1": entity_f1_score,
    }  # fmt: skip
    return {name: 100.0 * float(measure(y, found)) for name, measure in measures.items()}


def split(rows: list[Any], number: int, size: int) -> tuple[Any, Any, Any, Any]:
    """Return features and labels to learn from and to be scored on."""
    order = np.random.default_rng(number).permutation(len(rows))[: size + TESTED]
    words = [[[row[0]] for row in rows[i]] for i in order]
    y = [[row[-1] for row in rows[i]] for i in order]
    features = TemplateFeatures(preset("words"), columns=["w"])
    X = features.fit_transform(words[:size])
    return X, y[:size], features.transform(words[size:]), y[size:]


def main() -> None:
    """Measure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--limit", type=int, default=SENTENCES, help="sentences to learn from")
    size = parser.parse_args().limit
    rows = [
        [row for row in block if len(row) > 1 and row[0] != "-DOCSTART-"]
        for block in read_blocks("gmb_ner/gmb.txt.xz", "\t")
    ]
    rows = [block for block in rows if block]
    found: dict[str, list[dict[str, float]]] = {}
    for number in range(SPLITS):
        X, y, X_test, y_test = split(rows, number, size)
        for name, (options, class_weight) in ways(y).items():
            weight = None if class_weight is None else token_weights(y, class_weight)
            started = time.process_time()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ConvergenceWarning)
                crf = CRFClassifier(c2=0.3, random_state=0, **options).fit(X, y, weight)
            seconds = time.process_time() - started
            found.setdefault(name, []).append(
                scores(y_test, crf.predict(X_test)) | {"seconds": seconds}
            )
            print(number, name, found[name][-1], flush=True)
    results = {"sentences": size, "tested": TESTED, "splits": SPLITS}
    cases = {
        name: {key: [each[key] for each in runs] for key in runs[0]} for name, runs in found.items()
    }
    _measure.write(NAME, results | {"cases": cases})


if __name__ == "__main__":
    main()
