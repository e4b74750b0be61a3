"""Tagging and marginals: tokens a second of crfkit, python-crfsuite and seqlearn.

crfkit and python-crfsuite have the same weights. Each reads its own form (PackedSequences,
ItemSequence), or lists of strings, which both have to look up; against seqlearn, which reads a
sparse matrix of all tokens, crfkit packs one first.
"""

from __future__ import annotations

import functools
import importlib.util
import itertools
import sys
import tempfile
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import _crfsuite
import _data
import _measure
import _plots
import numpy as np
import pycrfsuite
import scipy.sparse as sp

from crfkit import CRFClassifier, PackedSequences

ITERATIONS = 30  # the speed does not need the optimum
REPEATS = 5
MARGINALS = 2_000  # sequences
THREADS = (1, 2)
QUICK_SEQUENCES = 300


def fitted(data: _data.Labeled) -> dict[int, CRFClassifier]:
    """Return a model for each number of threads."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it does not converge, on purpose
        crf = CRFClassifier(solver="lbfgs", max_iter=ITERATIONS, n_jobs=2).fit(data.X, data.y)
    models = {n_jobs: CRFClassifier() for n_jobs in THREADS}
    for n_jobs, model in models.items():
        model.__dict__.update(crf.__dict__ | {"n_jobs": n_jobs})
    return models


def rates(ways: dict[str, Callable[[], Any]], tokens: int) -> dict[str, float]:
    """Return tokens a second, after a call each that is not counted."""
    for way in ways.values():
        way()
    return {name: tokens / t for name, t in _measure.medians(ways, REPEATS).items()}


def speed(dataset: str, limit: int | None) -> dict[str, Any]:
    """Measure tagging and marginals on a data set."""
    data = _data.load(dataset, limit)
    models, X = fitted(data), data.X_test
    strings = list(_data.attributes(X))
    items = [pycrfsuite.ItemSequence(sequence) for sequence in strings]
    with tempfile.TemporaryDirectory() as folder:
        tagger = _crfsuite.same_model(models[1], folder)
    ours, theirs = models[1].predict(X), [tagger.tag(item) for item in items]
    few = X[: min(MARGINALS, len(X))]
    tagging: dict[str, Callable[[], Any]] = {
        "crfsuite": lambda: [tagger.tag(item) for item in items],
        "crfsuite, lists": lambda: [tagger.tag(sequence) for sequence in strings],
    }
    marginals: dict[str, Callable[[], Any]] = {
        "crfsuite": lambda: [_crfsuite.marginals_of(tagger, item) for item in items[: len(few)]]
    }
    for n_jobs, model in models.items():
        tagging[f"{n_jobs} threads"] = functools.partial(model.predict, X)
        marginals[f"{n_jobs} threads"] = functools.partial(model.predict_proba, few)
    pairs = zip(itertools.chain(*ours), itertools.chain(*theirs), strict=True)
    return {
        "sizes": data.sizes(), "tokens": X.n_tokens,
        "tokens with another tag": sum(a != b for a, b in pairs),
        "tagging": compared(rates(tagging, X.n_tokens)),
        "marginals": compared(rates(marginals, few.n_tokens)),
    }  # fmt: skip


def compared(found: dict[str, float]) -> dict[str, Any]:
    """Return the rates, and how many times that of the peer those of crfkit are."""
    theirs = next(iter(found.values()))
    times = {name: rate / theirs for name, rate in found.items() if name.endswith("threads")}
    return {"tokens a second": found, "times the tokens": times}


def matrix_of(X: PackedSequences) -> sp.csr_matrix:
    """Return the attributes as one sparse matrix of all tokens."""
    values = np.ones(len(X.indices)) if X.values is None else X.values
    return sp.csr_matrix((values, X.indices, X.indptr), (X.n_tokens, X.n_features))


def seqlearn_perceptron() -> Any:
    """Return the class of seqlearn, or None; it needs a module that scikit-learn no longer has."""
    if importlib.util.find_spec("seqlearn") is None or importlib.util.find_spec("six") is None:
        print("  seqlearn is not installed: left out", flush=True)
        return None
    import six
    import sklearn.externals

    sys.modules["sklearn.externals.six"] = sklearn.externals.six = six
    from seqlearn.perceptron import StructuredPerceptron

    return StructuredPerceptron


def from_matrix(limit: int | None) -> dict[str, Any]:
    """Measure tagging from a sparse matrix."""
    data = _data.load("conll2000", limit)
    models, matrix = fitted(data), matrix_of(data.X_test)
    lengths = np.diff(data.X_test.offsets)

    def tag(model: CRFClassifier) -> Any:
        return model.predict(PackedSequences.from_flat(matrix, lengths))

    ways: dict[str, Callable[[], Any]] = {
        f"{n_jobs} threads": functools.partial(tag, model) for n_jobs, model in models.items()
    }
    perceptron = seqlearn_perceptron()
    if perceptron is not None:
        flat: Sequence[str] = np.array(list(itertools.chain(*data.y)))
        peer = perceptron(max_iter=1)
        peer.fit(matrix_of(data.X), flat, np.diff(data.X.offsets))
        ways = {"seqlearn": lambda: peer.predict(matrix, lengths)} | ways
    found = rates(ways, data.X_test.n_tokens)
    if perceptron is None:
        return {"tagging": {"tokens a second": found}}
    return {"tokens": data.X_test.n_tokens, "tagging": compared(found)}


def cases(quick: bool) -> dict[str, Callable[[], dict[str, Any]]]:
    """Return the measurements by name."""
    limit = QUICK_SEQUENCES if quick else None
    names = ["conll2000", "ocr_letters", "gmb_ner"]
    return {name: functools.partial(speed, name, limit) for name in names} | {
        "conll2000, from a sparse matrix": functools.partial(from_matrix, limit)
    }


def plot(results: dict[str, Any], folder: Path) -> None:
    """Draw the ratios as bars."""
    _plots.bars(
        folder / "tagging.png",
        {f"{kind}, {name}": case[kind]["times the tokens"]
         for name, case in results.items() for kind in ("tagging", "marginals")
         if "times the tokens" in case.get(kind, {})},
        "times the tokens a second of python-crfsuite (from a matrix: of seqlearn)",
    )  # fmt: skip
