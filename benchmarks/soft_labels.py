"""Soft labels: a teacher distilled into a small model, and labels with noise.

    python benchmarks/soft_labels.py [--limit 2000] [--only conll2002_es usaddress]

The teacher is an ensemble of two CRFs with different templates, whose marginals are averaged. The
small model has few templates, and a tenth of the teacher's weights or less. A quarter of the
training sequences has labels; the teacher says what it thinks of the others, and, out of fold, of
these. The small model learns from the labels alone, with the most probable labels of the teacher,
and with its probabilities. Latency is that of single sequences, from the words on.

Then labels of a share of the tokens are replaced at random, in all that is learned from: by the
log loss of these labels; of the marginals that models of the other folds have, mixed with the
labels; and by the labelwise loss. And three annotators make as many errors each: the label of the
most votes is learned, or the shares of votes. Writes ``results/soft_labels.json``.
"""

from __future__ import annotations

import argparse
import statistics
import time
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import _measure
import numpy as np
from _conll import Columns
from _data import read_blocks
from sklearn.exceptions import ConvergenceWarning

from crfkit import CRFClassifier, SoftLabels, TemplateFeatures
from crfkit.features import preset
from crfkit.metrics import entity_f1_score, flat_accuracy_score, segment_f1_score
from crfkit.model_selection import cross_val_proba

NAME = "soft_labels"
SMALL = ["lower(w)", "lower(w[-1])", "lower(w[1])", "short_shape(w)", "suffix(w, 2)"]
SMALL_MIN_FREQ = {"conll2002_es": 3, "usaddress": 2}
LABELED = 0.25  # of the sequences of the experiment with a teacher
NOISE = (0.0, 0.1, 0.2, 0.3, 0.4)
NOISY = 400  # sequences of the experiment with noise
MIXED = 0.5  # of what is learned from where labels are there is what the teacher says
TIMED = 300  # sequences that are tagged one by one


def names_f1(y: Any, found: Any) -> float:
    """Return the F1 of names."""
    return float(entity_f1_score(y, found))


def fields_f1(y: Any, found: Any) -> float:
    """Return the F1 of runs of equal labels."""
    return float(segment_f1_score(y, found, scheme="runs"))


class Task(NamedTuple):
    """Words and labels to learn from, and to be scored on."""

    X: list[Columns]
    y: list[list[str]]
    X_test: list[Columns]
    y_test: list[list[str]]
    views: list[list[str]]  # the templates of the members of the teacher
    min_freq: int  # of the attributes of the small model
    f1: Callable[[Any, Any], float]
    c2: float

    def scores(self, predict: Callable[[Any], Any]) -> dict[str, float]:
        """Return the scores of predictions, in per cent."""
        found = predict(self.X_test)
        return {
            "F1": 100.0 * self.f1(self.y_test, found),
            "accuracy": 100.0 * float(flat_accuracy_score(self.y_test, found)),
        }


def load(name: str, limit: int | None) -> Task:
    """Return the first sequences of a set, in an order that is drawn."""
    if name == "conll2002_es":
        parts = [read_blocks(f"conll2002_es/{part}.gz", " ") for part in ("esp.train", "esp.testb")]
        views, f1 = [preset("words"), preset("names")], names_f1
    else:
        parts = [read_blocks(f"usaddress/{part}.tsv.gz", "\t") for part in ("train", "test")]
        views, f1 = [preset("words"), preset("fields")], fields_f1
    order = np.random.default_rng(0).permutation(len(parts[0]))[:limit]
    train = [parts[0][i] for i in order]
    columns = [
        ([[row[:1] for row in rows] for rows in part], [[row[-1] for row in rows] for rows in part])
        for part in (train, parts[1])
    ]
    return Task(*columns[0], *columns[1], views, SMALL_MIN_FREQ[name], f1, 0.3)


def model(task: Task, templates: list[str], min_freq: int = 0, **options: Any) -> CRFClassifier:
    """Return a classifier of words; its attributes occur `min_freq` times at least."""
    features = TemplateFeatures(templates, columns=["w"], min_freq=min_freq)
    return CRFClassifier(features=features, c2=task.c2, **options)


def averaged(parts: list[SoftLabels]) -> SoftLabels:
    """Return the means of two distributions or one."""
    return parts[0] if len(parts) == 1 else parts[0].mixed(parts[1], 0.5)


def out_of_fold(crf: CRFClassifier, X: Any, y: Any) -> SoftLabels:
    """Return what models of the other folds say of each."""
    return SoftLabels(*cross_val_proba(crf, X, y, cv=3))


def seconds_each(predict: Callable[[Any], Any], X: list[Columns]) -> float:
    """Return the median of the processor seconds that a sequence takes."""
    found = []
    for rows in X[:TIMED]:
        started = time.process_time()
        predict([rows])
        found.append(time.process_time() - started)
    return statistics.median(found[len(found) // 10 :])


def distill(task: Task) -> dict[str, Any]:
    """Return the scores of the teacher, and of the small model by what it learned from."""
    count = int(LABELED * len(task.X))
    X, y, others = task.X[:count], task.y[:count], task.X[count:]
    members = [model(task, view).fit(X, y) for view in task.views]

    def say(rows: Any) -> SoftLabels:
        return averaged([SoftLabels(m.predict_proba(rows), m.classes_) for m in members])

    own = averaged([out_of_fold(model(task, view), X, y) for view in task.views])
    told, gold = say(others), SoftLabels.from_labels(y)

    def small() -> CRFClassifier:  # of pairs that are expected once at least
        return model(task, SMALL, task.min_freq).set_params(min_freq=1)

    learned = {
        "labels": small().fit(X, y),
        "soft labels": small().fit(X, gold.mixed(own, MIXED).pruned(0.01)),
        "labels, and the teacher's of the rest": small().fit([*X, *others], [*y, *told.argmax()]),
        "labels, and probabilities of the rest": small().fit(
            [*X, *others], gold + told.pruned(0.01)
        ),
        "all labels": small().fit(task.X, task.y),
    }
    teacher = {
        "weights": sum(m.n_parameters_ for m in members),
        "seconds": seconds_each(lambda rows: say(rows).argmax(), task.X_test),
        **task.scores(lambda rows: say(rows).argmax()),
    }
    return {
        "labeled": count, "unlabeled": len(others), "teacher": teacher,
        "small": {
            name: {
                "weights": crf.n_parameters_, "seconds": seconds_each(crf.predict, task.X_test),
                **task.scores(crf.predict),
            }
            for name, crf in learned.items()
        },
    }  # fmt: skip


def noisy(y: list[list[str]], share: float, seed: int = 1) -> list[list[str]]:
    """Return labels of which a share is drawn from the other labels."""
    random, labels = np.random.default_rng(seed), sorted({label for row in y for label in row})

    def drawn(label: str) -> str:
        if random.random() >= share:
            return label
        return labels[(labels.index(label) + random.integers(1, len(labels))) % len(labels)]

    return [[drawn(label) for label in row] for row in y]


def with_noise(task: Task) -> dict[str, Any]:
    """Return the scores of ways to learn, by the share of labels that are wrong."""
    found = {}
    for share in NOISE:
        X, y, view = task.X[:NOISY], noisy(task.y[:NOISY], share), task.views[0]
        crf = model(task, view)
        soft = SoftLabels.from_labels(y).mixed(out_of_fold(crf, X, y), MIXED).pruned(0.01)
        votes = SoftLabels.from_votes([noisy(task.y[:NOISY], share, seed) for seed in (1, 2, 3)])
        found[f"{share:g}"] = {
            "labels": task.scores(model(task, view).fit(X, y).predict),
            "soft labels": task.scores(model(task, view).fit(X, soft).predict),
            "labelwise": task.scores(
                model(task, view, loss="labelwise", decoding="posterior").fit(X, y).predict
            ),
            "most votes": task.scores(model(task, view).fit(X, votes.argmax()).predict),
            "shares of votes": task.scores(model(task, view).fit(X, votes).predict),
        }
        print(share, found[f"{share:g}"], flush=True)
    return found


def main() -> None:
    """Measure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--limit", type=int, default=2_000, help="sequences to learn from")
    parser.add_argument("--only", nargs="+", default=list(SMALL_MIN_FREQ))
    arguments = parser.parse_args()
    results = _measure.read(NAME)
    for name in arguments.only:
        started, task = time.process_time(), load(name, arguments.limit)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            parts = {"distilled": distill(task), "noise": with_noise(task)}
        parts["processor seconds"] = time.process_time() - started
        results.setdefault("cases", {})[name] = parts
        _measure.write(NAME, results)


if __name__ == "__main__":
    main()
