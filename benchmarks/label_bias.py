"""Label bias: errors of hidden Markov models, MEMMs and CRFs on the words of rib and rob.

The experiment of Lafferty, McCallum and Pereira (2001, section 5.1): 2,000 words to learn from and
500 to test on, drawn anew for each seed; the least possible errors are known. ``rib_rob.png`` shows
why: what each model says of the label that follows, given the word "rob".
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import _family_plots
import numpy as np
from _sources import ALL_PAIRS, chains, split, wrong

from crfkit import CRFClassifier, MEMMClassifier
from crfkit._types import FloatArray
from crfkit.datasets import make_label_bias_data

N_TRAIN, N_TEST, SEEDS, QUICK_SEEDS = 2000, 500, 20, 2
PENALTIES = (1.0, 0.1, 0.01, 0.001)
PICTURE = 0.01  # the penalty of the models that are drawn
WORD = "rob"


def errors(quick: bool) -> dict[str, Any]:
    """Return the errors of labels and of words, by model and penalty, of each seed."""
    found: dict[str, dict[str, list[float]]] = {}
    least: dict[str, float] = {}
    for seed in range(QUICK_SEEDS if quick else SEEDS):
        data = make_label_bias_data(N_TRAIN + N_TEST, random_state=seed)
        least = {key: data[key] for key in data if key.endswith("_error")}
        parts = split(data, N_TRAIN)
        for c2 in PENALTIES:
            for name, model in chains(c2).items():
                if name == "HMM" and c2 != PENALTIES[0]:
                    continue
                predicted = model.fit(parts.X, parts.y).predict(parts.X_test)
                marks = wrong(parts.y_test, predicted).reshape(-1, 3)
                key = name if name == "HMM" else f"{name}, c2 = {c2:g}"
                row = found.setdefault(key, {"labels": [], "words": []})
                row["labels"].append(float(marks.mean()))
                row["words"].append(float(marks.any(axis=1).mean()))
    return {"train": N_TRAIN, "test": N_TEST, "errors": found, **least}


def steps(model: Any, word: str) -> tuple[FloatArray, FloatArray]:
    """Return the probabilities of the first label, (K,), and of each next one, (T - 1, K, K).

    From those of all labelings of the word; rows of labels that never come are 0.
    """
    labels = list(model.classes_)
    paths = list(itertools.product(labels, repeat=len(word)))
    tokens = [[letter] for letter in word]
    logs = model.sequence_log_proba([tokens] * len(paths), list(map(list, paths)))
    joint = np.exp(logs).reshape((len(labels),) * len(word))
    pairs = [
        joint.sum(axis=tuple(i for i in range(len(word)) if i not in (t - 1, t)))
        for t in range(1, len(word))
    ]
    before = [pair.sum(axis=1, keepdims=True) for pair in pairs]
    shares = [np.divide(pair, row, out=np.zeros_like(pair), where=row > 1e-12)
              for pair, row in zip(pairs, before, strict=True)]  # fmt: skip
    return before[0][:, 0], np.array(shares)


def lattices() -> dict[str, Any]:
    """Return what a MEMM and a CRF say of each step of a word."""
    data = make_label_bias_data(N_TRAIN, random_state=0)
    models = {
        "MEMM": MEMMClassifier(c2=PICTURE, **ALL_PAIRS),
        "CRF": CRFClassifier(c2=PICTURE, **ALL_PAIRS),
    }
    found = {}
    for name, model in models.items():
        first, after = steps(model.fit(data.X, data.y), WORD)
        found[name] = {"first": first.round(6).tolist(), "steps": after.round(6).tolist()}
    return {"word": WORD, "states": data.states, "c2": PICTURE, "models": found}


def cases(quick: bool) -> dict[str, Callable[[], dict[str, Any]]]:
    """Return the measurements by name."""
    return {"errors": functools.partial(errors, quick), "lattices": lattices}


def plot(results: dict[str, Any], folder: Path) -> None:
    """Draw the lattices."""
    if "lattices" in results:
        case = results["lattices"]
        models = {name: (row["first"], row["steps"]) for name, row in case["models"].items()}
        _family_plots.lattices(folder / "rib_rob.png", models, case["word"], case["states"])
