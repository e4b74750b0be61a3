"""Training on CoNLL-2000 to the default stopping rules: crfkit against python-crfsuite.

    python benchmarks/train_conll2000.py                    # everything, about 15 minutes
    python benchmarks/train_conll2000.py --only l2          # some parts

Same features, same process run; the parts are: l2 and l1 (training to the default stopping rules),
weights (both far beyond them, weight by weight). What it takes to come near the optimum, passes,
tagging and memory are measured by ``run.py``. Writes ``results/train_conll2000.json``. Needs
python-crfsuite and the data (CRFKIT_DATA).
"""

from __future__ import annotations

import argparse
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import _conll
import _crfsuite
import _measure

from crfkit import CRFClassifier, PackedSequences, SequenceVectorizer
from crfkit.metrics import entity_f1_score, flat_accuracy_score
from crfkit.solvers import LBFGS

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
    trainer = _crfsuite.trainer(X, y)
    path = str(Path(tempfile.mkdtemp()) / "model")
    log = trainer.run(path, c1=c1, c2=c2, **options)
    return {
        "seconds": log[-1].at,
        "iterations": len(log),
        "objective": log[-1].loss,
        "nonzero": trainer.logparser.iterations[-1]["active_features"],
        "tagger": _crfsuite.open_tagger(path),
    }


def quality(predicted: Any, truth: Any) -> dict[str, float]:
    """Return chunk F1 and token accuracy in percent."""
    return {
        "chunk_f1": 100 * entity_f1_score(truth, predicted),
        "token_accuracy": 100 * flat_accuracy_score(truth, predicted),
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


MEASUREMENTS: dict[str, Callable[[Parts], dict[str, Any]]] = {
    "l2": lambda data: full_training(data, 0.0, 1.0),
    "l1": lambda data: full_training(data, 1.0, 0.0),
    "weights": same_weights,
}


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="+", choices=sorted(MEASUREMENTS), default=None)
    arguments = parser.parse_args()
    (X, y), (X_test, y_test) = _conll.load("train"), _conll.load("test")
    vectorizer = SequenceVectorizer()
    packed = vectorizer.fit_transform(X)
    parts = Parts(X, y, X_test, y_test, packed, vectorizer.transform(X_test))
    for name in arguments.only or MEASUREMENTS:
        found = {name: MEASUREMENTS[name](parts)}
        _measure.write("train_conll2000", _measure.read("train_conll2000") | found)


if __name__ == "__main__":
    main()
