"""The averaged perceptron, PA and AROW: seconds an epoch, F1, memory, against python-crfsuite.

Both run in one process, in turns, on one thread. CRFsuite shuffles by a generator that goes on from
one training to the next, so that its runs differ as ours do by their seeds. The drop-in, which
shuffles as CRFsuite does in a process that trains for the first time, is compared weight by weight.
"""

from __future__ import annotations

import functools
import json
import statistics
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import _crfsuite
import _data
import _measure

from crfkit import SequenceVectorizer, StructuredPerceptron
from crfkit.compat import pycrfsuite
from crfkit.compat.crfsuite import load_crfsuite
from crfkit.metrics import entity_f1_score, flat_accuracy_score

PEER = "python-crfsuite"
# What CRFsuite's algorithms are called here, with its own ways of averaging.
OURS: dict[str, dict[str, Any]] = {
    "ap": {"update": "perceptron", "averaging": "average"},
    "pa": {"update": "pa1", "averaging": "average"},
    "arow": {"update": "arow", "averaging": None},
}
EPOCHS, SEEDS = 10, 5
QUICK_SEQUENCES, QUICK_SEEDS = 300, 2


def fit(data: Any, algorithm: str, seed: int, epochs: int) -> Any:
    """Return a model of some epochs."""
    model = StructuredPerceptron(
        max_iter=epochs, random_state=seed, n_jobs=1, **OURS[algorithm]
    )  # fmt: skip
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # so many epochs are what is wanted
        return model.fit(data.X, data.y)


def quality(predicted: Any, truth: Any) -> dict[str, float]:
    """Return chunk F1 and token accuracy in percent."""
    return {
        "f1": 100 * entity_f1_score(truth, predicted),
        "accuracy": 100 * flat_accuracy_score(truth, predicted),
    }


def run_ours(data: Any, algorithm: str, seed: int) -> dict[str, Any]:
    """Return the seconds of the epochs, those of the whole fit, and the quality on new data."""
    started = time.perf_counter()
    model = fit(data, algorithm, seed, EPOCHS)
    seconds = time.perf_counter() - started
    ends = [0.0, *(record.seconds for record in model.training_log_ if record.iteration)]
    epochs = [after - before for before, after in zip(ends[:-1], ends[1:], strict=True)]
    return {"epochs": epochs, "fit": seconds, **quality(model.predict(data.X_test), data.y_test)}


def run_peer(trainer: Any, test: list[Any], data: Any, folder: str) -> dict[str, Any]:
    """Return the same of python-crfsuite."""
    path = str(Path(folder) / "model")
    log = trainer.run(path, max_iterations=EPOCHS)
    tagger = _crfsuite.open_tagger(path)
    found = [tagger.tag(sequence) for sequence in test]
    return {"epochs": [entry.seconds for entry in log], "fit": log[-1].at,
            **quality(found, data.y_test)}  # fmt: skip


def measure(algorithm: str, limit: int | None, seeds: int) -> dict[str, Any]:
    """Train both in turns."""
    data = _data.load("conll2000", limit)
    trainer = _crfsuite.trainer_of(data, algorithm)
    test = list(_data.attributes(data.X_test))
    fit(data, algorithm, 0, 1)  # compiles
    runs: dict[str, list[dict[str, Any]]] = {"crfkit": [], PEER: []}
    with tempfile.TemporaryDirectory() as folder:
        for seed in range(seeds):
            runs["crfkit"].append(run_ours(data, algorithm, seed))
            runs[PEER].append(run_peer(trainer, test, data, folder))
    summary = {name: summarized(found) for name, found in runs.items()}
    ours, theirs = summary["crfkit"], summary[PEER]
    keys = ("seconds an epoch", "seconds of the first epoch", "seconds of the fit")
    return {
        "sizes": data.sizes(), "epochs": EPOCHS, "seeds": seeds, "runs": summary,
        "times the seconds": {key: theirs[key] / ours[key] for key in keys},
        "difference of the mean F1": ours["f1"]["mean"] - theirs["f1"]["mean"],
    }  # fmt: skip


def summarized(runs: list[dict[str, Any]]) -> dict[str, Any]:
    """Return medians of seconds, and means and deviations of what is in percent."""
    found: dict[str, Any] = {
        "seconds an epoch": statistics.median(s for run in runs for s in run["epochs"]),
        "seconds of the first epoch": statistics.median(run["epochs"][0] for run in runs),
        "seconds of the fit": statistics.median(run["fit"] for run in runs),
    }
    for key in ("f1", "accuracy"):
        values = [run[key] for run in runs]
        found[key] = {"mean": statistics.mean(values), "deviation": statistics.stdev(values),
                      "all": values}  # fmt: skip
    return found


def same_order(algorithm: str, limit: int | None) -> dict[str, Any]:
    """Return how far the drop-in's weights are from those of python-crfsuite's first training."""
    data = _data.load("conll2000", limit)
    trainer = _crfsuite.trainer_of(data, algorithm)
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "model")
        trainer.run(path, max_iterations=EPOCHS)
        # Both models are read by the same reader: CRFsuite's own text has six digits.
        theirs = weights_of(path)
        mine = pycrfsuite.Trainer(algorithm, {"max_iterations": EPOCHS}, verbose=False)
        for sequence, labels in zip(_data.attributes(data.X), data.y, strict=True):
            mine.append(sequence, labels)
        mine.train(path)
        ours = weights_of(path)
    logs = [[entry["loss"] for entry in log.logparser.iterations] for log in (mine, trainer)]
    keys = ours.keys() | theirs.keys()
    return {
        "weights": len(keys), "epochs": EPOCHS,
        "largest weight": max(map(abs, theirs.values())),
        "largest difference": max(abs(ours.get(k, 0.0) - theirs.get(k, 0.0)) for k in keys),
        "largest difference of a loss": max(abs(a - b) for a, b in zip(*logs, strict=True)),
    }  # fmt: skip


def weights_of(path: str) -> dict[Any, float]:
    """Return the weights of a model of CRFsuite by their names."""
    model = load_crfsuite(path)
    return dict(model.state_features_) | dict(model.transition_features_)


def memory(package: str, limit: int | None) -> dict[str, float]:
    """Train in this process and return its memory, in MiB."""
    X, y = _data.stream("conll2000", limit)
    if package == PEER:
        peer = _crfsuite.trainer(X, y, "ap")
        encoded = _measure.rss_mib()
        peer.run(max_iterations=EPOCHS)
    else:
        packed = SequenceVectorizer().fit_transform(X)
        encoded = _measure.rss_mib()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # so many epochs are what is wanted
            StructuredPerceptron(max_iter=EPOCHS, random_state=0, n_jobs=1).fit(packed, y)
    peak = _measure.peak_mib()
    return {"encoded": encoded, "peak": peak, "beyond the encoded data": peak - encoded}


IN_CHILD: dict[str, Callable[[str, int | None], dict[str, Any]]] = {
    "same_order": same_order,
    "memory": memory,
}


def apart(kind: str, names: list[str], limit: int | None) -> dict[str, Any]:
    """Measure each in a process of its own."""
    more = [] if limit is None else [str(limit)]
    return {name: _measure.in_child("perceptron.py", kind, name, *more) for name in names}


def cases(quick: bool) -> dict[str, Callable[[], dict[str, Any]]]:
    """Return the measurements by name."""
    limit, seeds = (QUICK_SEQUENCES, QUICK_SEEDS) if quick else (None, SEEDS)
    found: dict[str, Callable[[], dict[str, Any]]] = {
        f"conll2000, {name}": functools.partial(measure, name, limit, seeds) for name in OURS
    }
    found["same order"] = functools.partial(apart, "same_order", list(OURS), limit)
    found["memory"] = functools.partial(apart, "memory", ["crfkit", PEER], limit)
    return found


def plot(results: dict[str, Any], folder: Path) -> None:
    """Draw nothing: a table says it all."""


if __name__ == "__main__":
    chosen, what = sys.argv[1:3]
    print(json.dumps(IN_CHILD[chosen](what, int(sys.argv[3]) if sys.argv[3:] else None)))
