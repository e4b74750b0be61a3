"""Multi-label classification of scenes: independent labels, a tree of them, all pairs.

Boutell et al. (2004); trees and full graphs as of Finley and Joachims (2008). Inference is exact.
The penalty is chosen by the log-likelihood of three folds of the training data.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from _conll import data_home

from crfkit import GraphCRF
from crfkit.graphs import (
    chow_liu,
    complete,
    multilabel_graphs,
    multilabel_indicators,
    multilabel_labels,
)

LABELS = ("beach", "sunset", "foliage", "field", "mountain", "urban")
PENALTIES = (0.3, 1.0, 3.0)
GRAPHS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "independent": lambda Y: np.zeros((0, 2), int),
    "tree of Chow and Liu": chow_liu,
    "all pairs": lambda Y: complete(Y.shape[1]),
}
N_FOLDS, QUICK_EXAMPLES = 3, 60


@functools.cache
def read(part: str, most: int | None) -> tuple[np.ndarray, np.ndarray]:
    """Return features and indicators of labels."""
    with np.load(data_home() / "scene_multilabel" / "scene.npz", allow_pickle=False) as stored:
        return stored[f"X_{part}"][:most].astype(float), stored[f"y_{part}"][:most]


def measure(name: str, most: int | None) -> dict[str, Any]:
    """Return the errors of labels and of examples, and the log-likelihood."""
    (X, Y), (X_test, Y_test) = (read(part, most) for part in ("train", "test"))
    edges = GRAPHS[name](Y)
    train, test = (multilabel_graphs(x, edges, LABELS) for x in (X, X_test))
    truth = multilabel_labels(Y_test)
    started = time.process_time()
    c2 = max(PENALTIES, key=lambda value: held_out(train, multilabel_labels(Y), value))
    chosen = time.process_time()
    model = GraphCRF(c2=c2).fit(train, multilabel_labels(Y))
    fitted = time.process_time()
    found = {}
    for decoding in ("viterbi", "posterior"):
        predicted = multilabel_indicators(model.set_params(decoding=decoding).predict(test))
        found[decoding] = {
            "Hamming loss": float((predicted != Y_test).mean()),
            "exact match": float((predicted == Y_test).all(axis=1).mean()),
        }
    return {
        "edges": edges.tolist(), "c2": c2, **found,
        "mean log-likelihood": float(model.sequence_log_proba(test, truth).mean()),
        "processor seconds of the choice": chosen - started,
        "processor seconds of the fit": fitted - chosen,
    }  # fmt: skip


def held_out(data: Any, labels: Any, c2: float) -> float:
    """Return the log-likelihood of folds, each given the others."""
    fold = np.arange(len(data)) % N_FOLDS
    total = 0.0
    for k in range(N_FOLDS):
        model = GraphCRF(c2=c2).fit(data[fold != k], labels[fold != k])
        total += float(model.sequence_log_proba(data[fold == k], labels[fold == k]).sum())
    return total


def cases(quick: bool) -> dict[str, Callable[[], dict[str, Any]]]:
    """Return the measurements by name."""
    most = QUICK_EXAMPLES if quick else None
    return {name: functools.partial(measure, name, most) for name in GRAPHS}


def plot(results: dict[str, Any], folder: Path) -> None:
    """Draw nothing: a table says it."""
