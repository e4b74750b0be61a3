"""What each loss is good for: right tokens, right sequences and F1 on four data sets.

    python benchmarks/run.py --only losses_compare --cases usaddress      # one data set
    python benchmarks/run.py --only losses_compare --cases ": risk"       # one loss

Mean and deviation over five random splits of a part of each training file. All losses have the same
attributes. The penalty c2 of each loss is chosen on the training part of the first split, of which
a fifth is held out, by what its task is scored by. Losses that are not convex start from the model
of the log loss. Both decodings are scored: the most probable labeling and the most probable labels.
"""

from __future__ import annotations

import functools
import statistics
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import _data
import numpy as np
from sklearn.exceptions import ConvergenceWarning

from crfkit import CRFClassifier, PackedSequences
from crfkit.losses import LabelwiseLoss, RiskLoss
from crfkit.metrics import (
    entity_f1_score,
    flat_accuracy_score,
    segment_f1_score,
    sequence_accuracy_score,
)

SPLITS, MAX_ITER = 5, 150
PENALTIES, QUICK_PENALTIES = (0.01, 0.03, 0.1, 0.3, 1.0), (0.1,)
QUICK = 0.1  # so much of the sequences
LOG = "log"
LOSSES = (LOG, "pseudolikelihood", "softmax_margin", "hinge", "pointwise", "risk", "labelwise")
NOT_CONVEX = {"pointwise", "risk", "labelwise"}
# Those that an estimator starts from the log loss itself.
GIVEN = {"risk": RiskLoss(start="given"), "labelwise": LabelwiseLoss(start="given")}
DECODINGS = ("viterbi", "posterior")
ACCURACY = "token accuracy"


def runs_f1(y: Any, found: Any) -> float:
    """Return the F1 of runs of equal labels."""
    return float(segment_f1_score(y, found, scheme="runs"))


class Task(NamedTuple):
    """How much of a data set is learned from and scored, and what else is scored than tokens."""

    train: int
    test: int
    f1: Callable[[Any, Any], float] | None


TASKS = {
    "conll2000": Task(1500, 2000, entity_f1_score),
    "conll2002_es": Task(2000, 2000, entity_f1_score),
    "ocr_letters": Task(1000, 3000, None),
    "usaddress": Task(1000, 500, runs_f1),
}


class Part(NamedTuple):
    """Attributes and labels of some sequences."""

    X: PackedSequences
    y: list[list[str]]

    def take(self, chosen: np.ndarray) -> Part:
        """Return some of the sequences."""
        return Part(self.X[chosen], [self.y[i] for i in chosen])


def splits(name: str, share: float) -> list[tuple[Part, Part]]:
    """Return parts to learn from and to score."""
    data, task = _data.load(name), TASKS[name]
    every, random = Part(data.X, data.y), np.random.default_rng(0)
    n_train, n_test = int(share * task.train), int(share * task.test)
    found = []
    for _ in range(SPLITS):
        order = random.permutation(len(every.y))
        found.append((every.take(order[:n_train]), every.take(order[n_train : n_train + n_test])))
    return found


def fitted(loss: str, c2: float, part: Part, start: Any) -> CRFClassifier:
    """Return a model that minimizes a loss, from another one's weights if it is not convex."""
    options = {"init": start} if loss in NOT_CONVEX else {}
    with warnings.catch_warnings():  # whether it converged is noted
        warnings.simplefilter("ignore", ConvergenceWarning)
        return CRFClassifier(loss=GIVEN.get(loss, loss), c2=c2, max_iter=MAX_ITER, **options).fit(
            *part
        )


def scores(name: str, crf: CRFClassifier, part: Part) -> dict[str, dict[str, float]]:
    """Return the scores of both decodings, in percent."""
    found, f1 = {}, TASKS[name].f1
    for decoding in DECODINGS:
        y = crf.set_params(decoding=decoding).predict(part.X)
        found[decoding] = {
            ACCURACY: 100.0 * flat_accuracy_score(part.y, y),
            "sequence accuracy": 100.0 * sequence_accuracy_score(part.y, y),
        }
        if f1 is not None:
            found[decoding]["F1"] = 100.0 * f1(part.y, y)
    return found


def own(loss: str) -> str:
    """Return the decoding that makes right what a loss counts."""
    return DECODINGS[loss in NOT_CONVEX]


@functools.cache
def chosen(name: str, loss: str, share: float, penalties: tuple[float, ...]) -> dict[float, float]:
    """Return the score of each penalty on a fifth of the training part of the first split."""
    if len(penalties) == 1:
        return {penalties[0]: 0.0}
    part = splits(name, share)[0][0]
    places = np.arange(len(part.y))
    inner, held = (part.take(places[which]) for which in (places % 5 > 0, places % 5 == 0))
    start = None
    if loss in NOT_CONVEX:
        start = fitted(LOG, best(chosen(name, LOG, share, penalties)), inner, None)
    kind = ACCURACY if TASKS[name].f1 is None else "F1"
    return {
        c2: scores(name, fitted(loss, c2, inner, start), held)[own(loss)][kind] for c2 in penalties
    }


def best(tried: dict[float, float]) -> float:
    """Return the penalty with the largest score, the largest penalty of those."""
    return max(tried, key=lambda c2: (tried[c2], c2))


@functools.cache
def start_of(name: str, split: int, share: float, penalties: tuple[float, ...]) -> CRFClassifier:
    """Return a model of the log loss that others start from."""
    part, _ = splits(name, share)[split]
    return fitted(LOG, best(chosen(name, LOG, share, penalties)), part, None)


def measure(name: str, loss: str, share: float, penalties: tuple[float, ...]) -> dict[str, Any]:
    """Return the scores of a loss over the splits."""
    tried = chosen(name, loss, share, penalties)
    c2, seconds, runs, models = best(tried), [], [], []
    for split, (part, test) in enumerate(splits(name, share)):
        start = start_of(name, split, share, penalties) if loss in NOT_CONVEX else None
        started = time.process_time()
        models.append(fitted(loss, c2, part, start))
        seconds.append(time.process_time() - started)
        runs.append(scores(name, models[-1], test))
    return {
        "train": len(part.y), "test": len(test.y), "c2": c2,
        "scores of penalties": {f"{k:g}": round(value, 2) for k, value in tried.items()},
        "scores": {
            decoding: {kind: spread([run[decoding][kind] for run in runs])
                       for kind in runs[0][decoding]}
            for decoding in DECODINGS
        },
        "processor seconds of a fit": statistics.median(seconds),
        "iterations": statistics.median(crf.n_iter_ for crf in models),
        "converged": sum(bool(crf.converged_) for crf in models),
    }  # fmt: skip


def spread(values: list[float]) -> dict[str, Any]:
    """Return mean, deviation and all values."""
    return {"mean": statistics.mean(values), "deviation": statistics.stdev(values),
            "all": [round(value, 2) for value in values]}  # fmt: skip


def cases(quick: bool) -> dict[str, Callable[[], dict[str, Any]]]:
    """Return the measurements by name."""
    share, penalties = (QUICK, QUICK_PENALTIES) if quick else (1.0, PENALTIES)
    return {
        f"{name}: {loss}": functools.partial(measure, name, loss, share, penalties)
        for name in TASKS
        for loss in LOSSES
    }


def plot(results: dict[str, Any], folder: Path) -> None:
    """Draw nothing: a table says it."""
