"""Training on CoNLL-2000: crfkit against python-crfsuite, same features, same process run.

    python benchmarks/train_conll2000.py                    # everything, about 20 minutes
    python benchmarks/train_conll2000.py --only pass l2     # some parts

Both packages are measured in turns in one process; the parts are: pass (one value and gradient
against one L-BFGS iteration), l2 and l1 (training to the default stopping rules), weights (both far
beyond them, weight by weight), memory_mib (a process each). Writes
``results/train_conll2000.json``. Needs python-crfsuite and the data (CRFKIT_DATA).
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import _conll
import _measure
import numpy as np
import pycrfsuite

from crfkit import CRFClassifier, PackedSequences, SequenceVectorizer
from crfkit._parallel import ThreadMap
from crfkit.data.labels import LabelStream
from crfkit.losses import LogLoss
from crfkit.metrics import entity_f1_score, flat_accuracy_score
from crfkit.objective import Objective
from crfkit.penalties import ElasticNet
from crfkit.scores.selection import choose_features
from crfkit.solvers import LBFGS
from crfkit.structures import Chain

# python-crfsuite's own stopping rule, and one that leaves no doubt about the optimum.
DEFAULT = {"delta": 1e-5, "period": 10}
TIGHT = {"delta": 1e-9, "period": 10, "epsilon": 1e-9, "max_iterations": 600}


class Parts(NamedTuple):
    """The data, as both packages want them."""

    X: Any
    y: Any
    X_test: Any
    y_test: Any
    packed: PackedSequences
    packed_test: PackedSequences


def train_crfsuite(X: Any, y: Any, c1: float, c2: float, **options: Any) -> dict[str, Any]:
    """Train python-crfsuite; returns times, objective and the tagger."""
    trainer = pycrfsuite.Trainer(algorithm="lbfgs", verbose=False)
    trainer.set_params({"c1": c1, "c2": c2, **options})
    for sequence, labels in zip(X, y, strict=True):
        trainer.append(sequence, labels)
    folder = tempfile.mkdtemp()
    path = str(Path(folder) / "model")
    started = time.perf_counter()
    trainer.train(path)
    wall = time.perf_counter() - started
    log = trainer.logparser.iterations
    tagger = pycrfsuite.Tagger()
    tagger.open(path)
    return {
        "seconds": wall,
        "iterations": len(log),
        "seconds_per_iteration": statistics.median(entry["time"] for entry in log),
        "objective": log[-1]["loss"],
        "nonzero": log[-1]["active_features"],
        "tagger": tagger,
    }


def quality(predicted: Any, truth: Any) -> dict[str, float]:
    """Return chunk F1 and token accuracy in percent."""
    return {
        "chunk_f1": 100 * entity_f1_score(truth, predicted),
        "token_accuracy": 100 * flat_accuracy_score(truth, predicted),
    }


def pass_against_iteration(data: Parts) -> dict[str, Any]:
    """Time value-and-gradient passes and python-crfsuite's iterations in turns."""
    X, y, packed = data.X, data.y, data.packed
    stream = LabelStream(y)
    codes = stream.codes_for(stream.classes())
    model = choose_features(packed, codes, len(stream.index))
    w = 0.1 * np.random.default_rng(0).normal(size=model.n_parameters)
    parts = (model, Chain(), LogLoss(), ElasticNet(0.0, 1.0), packed, codes, np.ones(len(codes)))
    times: dict[str, list[float]] = {"crfsuite": [], "1": [], "2": []}
    with ThreadMap(1) as one, ThreadMap(2) as two:
        objectives = {"1": Objective(*parts, one), "2": Objective(*parts, two)}
        for objective in objectives.values():
            objective.value_and_grad(w)
        for _ in range(3):
            theirs = train_crfsuite(X, y, 0.0, 1.0, max_iterations=10)
            times["crfsuite"].append(theirs["seconds_per_iteration"])
            for name, objective in objectives.items():
                passes = [_measure.seconds(lambda o=objective: o.value_and_grad(w))
                          for _ in range(7)]  # fmt: skip
                times[name].append(statistics.median(passes))
    middle = {name: statistics.median(values) for name, values in times.items()}
    return {
        "crfsuite_seconds_per_iteration": middle["crfsuite"],
        "crfkit_seconds_per_pass_1_thread": middle["1"],
        "crfkit_seconds_per_pass_2_threads": middle["2"],
        "ratio_1_thread": middle["crfsuite"] / middle["1"],
        "ratio_2_threads": middle["crfsuite"] / middle["2"],
    }


def full_training(parts: Parts, c1: float, c2: float) -> dict[str, Any]:
    """Train both to their default stopping rules."""
    theirs = train_crfsuite(parts.X, parts.y, c1, c2, **DEFAULT)
    tagger = theirs.pop("tagger")
    theirs |= quality([tagger.tag(sequence) for sequence in parts.X_test], parts.y_test)
    crf = CRFClassifier(c1=c1, c2=c2, n_jobs=2)
    wall = _measure.seconds(lambda: crf.fit(parts.packed, parts.y))
    ours = {
        "seconds": wall,
        "iterations": crf.n_iter_,
        "evaluations": crf.training_log_[-1].evaluations,
        "objective": crf.objective_,
        "nonzero": crf.training_log_[-1].nonzero,
        "parameters": crf.n_parameters_,
        **quality(crf.predict(parts.packed_test), parts.y_test),
    }
    return {
        "crfsuite": theirs,
        "crfkit": ours,
        "relative_difference_of_objectives": crf.objective_ / theirs["objective"] - 1,
        "ratio_seconds": theirs["seconds"] / wall,
    }


def same_weights(data: Parts) -> dict[str, Any]:
    """Train both far beyond their defaults and compare every weight."""
    X, y, packed = data.X, data.y, data.packed
    theirs = train_crfsuite(X, y, 0.0, 1.0, **TIGHT)
    info = theirs["tagger"].info()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # either may end at the precision of the objective
        solver = LBFGS(tol=1e-12, gtol=1e-8, max_iter=2000)
        crf = CRFClassifier(c2=1.0, solver=solver, n_jobs=2).fit(packed, y)
    ours = dict(crf.state_features_) | dict(crf.transition_features_)
    reference = dict(info.state_features) | dict(info.transitions)
    keys = ours.keys() | reference.keys()
    differences = [abs(ours.get(key, 0.0) - reference.get(key, 0.0)) for key in keys]
    return {
        "weights_compared": len(keys),
        "largest_weight": max(abs(weight) for weight in reference.values()),
        "largest_difference": max(differences),
        "crfsuite_objective": theirs["objective"],
        "crfkit_objective": crf.objective_,
    }


def memory_of(package: str) -> dict[str, float]:
    """Train for ten iterations in this process and return its peak memory, in MiB.

    Both read the attributes sentence by sentence, so that no more than one is held as strings.
    """
    y = _conll.labels("train")
    before = _measure.peak_mib()
    if package == "crfsuite":
        train_crfsuite(_conll.stream("train"), y, 0.0, 1.0, max_iterations=10)
        return {"before": before, "peak": _measure.peak_mib()}
    packed = SequenceVectorizer().fit_transform(_conll.stream("train"))
    encoded = _measure.peak_mib()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # ten iterations are not enough, on purpose
        CRFClassifier(max_iter=10, n_jobs=2).fit(packed, y)
    return {
        "before": before,
        "encoded": encoded,
        "peak": _measure.peak_mib(),
        "bytes_per_token": packed.nbytes / packed.n_tokens,
    }


def memory(_: Parts) -> dict[str, Any]:
    """Train each in a process of its own."""
    return {
        name: _measure.in_child("train_conll2000.py", "--memory-of", name)
        for name in ("crfkit", "crfsuite")
    }


MEASUREMENTS: dict[str, Callable[[Parts], dict[str, Any]]] = {
    "pass": pass_against_iteration,
    "l2": lambda data: full_training(data, 0.0, 1.0),
    "l1": lambda data: full_training(data, 1.0, 0.0),
    "weights": same_weights,
    "memory_mib": memory,
}


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="+", choices=sorted(MEASUREMENTS), default=None)
    parser.add_argument("--memory-of", choices=["crfkit", "crfsuite"])
    arguments = parser.parse_args()
    if arguments.memory_of:
        print(json.dumps(memory_of(arguments.memory_of)))
        return
    (X, y), (X_test, y_test) = _conll.load("train"), _conll.load("test")
    vectorizer = SequenceVectorizer()
    packed = vectorizer.fit_transform(X)
    parts = Parts(X, y, X_test, y_test, packed, vectorizer.transform(X_test))
    for name in arguments.only or MEASUREMENTS:
        found = {name: MEASUREMENTS[name](parts)}
        _measure.write("train_conll2000", _measure.read("train_conll2000") | found)


if __name__ == "__main__":
    main()
