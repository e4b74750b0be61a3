"""Many labels: Czech morphological tags, with scores for observed steps only, and CRFsuite.

    python benchmarks/large_labels.py

crfkit passes over, and tags and gives marginals of, the Czech data with all 1,435 labels. As
python-crfsuite (and crfkit with a table of all pairs of labels) would take hours, they are compared
on the first sentences alone, which have fewer labels; all get the same attributes. Seconds of one
thread are those of the processor, as other programs may run; those of two threads pass on the
clock. Each part runs in a process of its own. Writes ``results/large_labels.json``.
"""

from __future__ import annotations

import gzip
import json
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import _measure
import numpy as np
import pycrfsuite
from _conll import data_home
from sklearn.exceptions import ConvergenceWarning

from crfkit import CRFClassifier, PackedSequences, TemplateFeatures
from crfkit._parallel import ThreadMap
from crfkit.data.labels import LabelStream
from crfkit.losses import LogLoss
from crfkit.objective.batch import Objective
from crfkit.objective.penalties import ElasticNet
from crfkit.potentials import chain_blocks as steps
from crfkit.potentials.linear import choose_features

AFFIXES = [f"{kind}(w, {size})" for kind in ("prefix", "suffix") for size in range(1, 5)]
TEMPLATES = ["w", "w[-1]", "w[+1]", *AFFIXES]
SMALL, SMALL_TEST = 600, 200  # sentences of the comparison
ITERATIONS = 15  # of the model of all labels that tags
REPEATS = 3

Sentences = list[list[tuple[str, str]]]


def read(part: str) -> Sentences:
    """Return the sentences of 'train' or 'test', each a list of (word, tag)."""
    path = data_home() / "ud_czech_mix" / f"{part}.conllu.gz"
    text = gzip.open(path, "rt", encoding="utf-8").read()
    blocks = ([line.split("\t") for line in block.split("\n")] for block in text.split("\n\n"))
    rows = ([(row[1], row[4]) for row in block if row[0].isdigit()] for block in blocks)
    return [sentence for sentence in rows if sentence]


class Data:
    """Packed attributes and labels of some sentences for training and for tagging."""

    def __init__(self, train: Sentences, test: Sentences) -> None:
        features = TemplateFeatures(TEMPLATES, columns=["w"])
        self.train = features.fit_transform(words(train))
        self.test = features.transform(words(test))
        self.y = [[tag for _, tag in sentence] for sentence in train]
        self.truth = [[tag for _, tag in sentence] for sentence in test]
        stream = LabelStream(self.y)
        self.n_labels = len(stream.classes())
        self.codes = stream.codes_for(stream.classes())

    def sizes(self) -> dict[str, int]:
        """Return what there is of everything."""
        model = choose_features(self.train, self.codes, self.n_labels)
        return {
            "tokens": self.train.n_tokens, "tokens of the test": self.test.n_tokens,
            "labels": self.n_labels, "attributes": self.train.n_features,
            "weights of attributes": model.state.n_parameters,
            "observed pairs of labels": len(model.transition_from),
        }  # fmt: skip


def words(sentences: Sentences) -> list[list[tuple[str]]]:
    """Return the words alone."""
    return [[(word,) for word, _ in sentence] for sentence in sentences]


def fastest(function: Callable[[], Any], n_jobs: int) -> float:
    """Return the seconds of the fastest of a few calls: other programs only add to them."""
    clock = time.process_time if n_jobs == 1 else time.perf_counter
    times = []
    for _ in range(REPEATS):
        started = clock()
        function()
        times.append(clock() - started)
    return min(times)


def seconds_of_pass(data: Data, n_jobs: int) -> float:
    """Return the seconds of the fastest of a few passes."""
    model = choose_features(data.train, data.codes, data.n_labels)
    w = 0.1 * np.random.default_rng(0).normal(size=model.n_parameters)
    with ThreadMap(n_jobs) as threads:
        objective = Objective(
            model, model.structure, LogLoss(), ElasticNet(0.0, 1.0), data.train, data.codes,
            np.ones(len(data.codes)), threads,
        )  # fmt: skip
        objective.value_and_grad(w)
        return fastest(lambda: objective.value_and_grad(w), n_jobs)


def fit(data: Data, iterations: int) -> CRFClassifier:
    """Return a model after a few iterations."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return CRFClassifier(max_iter=iterations, n_jobs=2).fit(data.train, data.y)


def tagging(crf: CRFClassifier, data: Data, n_jobs: int) -> dict[str, float]:
    """Return tokens a second of tagging and of marginals."""
    crf.n_jobs = n_jobs
    runs = {"tagging": crf.predict, "marginals": crf.predict_proba}
    for function in runs.values():
        function(data.test[:20])
    return {
        name: data.test.n_tokens / fastest(lambda f=f: f(data.test), n_jobs)
        for name, f in runs.items()
    }


def all_labels() -> dict[str, Any]:
    """Measure crfkit on all of the data."""
    data = Data(read("train"), read("test"))
    passes = {f"{n} threads": seconds_of_pass(data, n) for n in (1, 2)}
    peak = _measure.peak_mib()
    crf = fit(data, ITERATIONS)
    return {
        "sizes": data.sizes(),
        "seconds a pass": passes,
        "peak MiB of passes": peak,
        "token accuracy": crf.score(data.test, data.truth),
        "tokens a second": {f"{n} threads": tagging(crf, data, n) for n in (1, 2)},
        "peak MiB": _measure.peak_mib(),
    }


def few_sentences() -> Data:
    """Return the data of the comparison."""
    return Data(read("train")[:SMALL], read("test")[:SMALL_TEST])


def small(dense: bool) -> dict[str, Any]:
    """Measure crfkit on the first sentences, with a list or a table of step scores."""
    if dense:
        steps.SPARSE_LABELS = sys.maxsize
    data = few_sentences()
    crf = fit(data, 2)
    return {
        "sizes": data.sizes(),
        "seconds a pass": {f"{n} threads": seconds_of_pass(data, n) for n in (1, 2)},
        "tokens a second": {f"{n} threads": tagging(crf, data, n) for n in (1, 2)},
        "peak MiB": _measure.peak_mib(),
    }


def strings(packed: PackedSequences) -> list[list[list[str]]]:
    """Return the attributes as python-crfsuite wants them."""
    names, indptr = packed.feature_names, packed.indptr
    assert names is not None
    found = names[packed.indices].tolist()
    tokens = [found[b:e] for b, e in zip(indptr[:-1], indptr[1:], strict=True)]
    return [tokens[b:e] for b, e in zip(packed.offsets[:-1], packed.offsets[1:], strict=True)]


def crfsuite() -> dict[str, Any]:
    """Measure python-crfsuite on the first sentences."""
    data = few_sentences()
    trainer = pycrfsuite.Trainer(algorithm="lbfgs", verbose=False)
    trainer.set_params({"c1": 0.0, "c2": 1.0, "max_iterations": 2})
    for sequence, labels in zip(strings(data.train), data.y, strict=True):
        trainer.append(sequence, labels)
    tagger = pycrfsuite.Tagger()
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "model")
        trainer.train(path)
        tagger.open(path)
        items = [pycrfsuite.ItemSequence(sequence) for sequence in strings(data.test)]
        started = time.process_time()
        for sequence in items:
            tagger.tag(sequence)
        tagged = time.process_time() - started
        labels = tagger.labels()
        started = time.process_time()
        for sequence in items[:20]:
            tagger.set(sequence)
            for t in range(len(sequence.items())):
                for label in labels:
                    tagger.marginal(label, t)
        marginals = time.process_time() - started
        few = sum(len(sequence.items()) for sequence in items[:20])
    entries = trainer.logparser.iterations
    return {
        "seconds an iteration": min(entry["time"] for entry in entries),
        "tokens a second": {"tagging": data.test.n_tokens / tagged, "marginals": few / marginals},
        "peak MiB": _measure.peak_mib(),
    }


PARTS = {
    "crfkit, all labels": all_labels,
    "crfkit, first sentences": lambda: small(dense=False),
    "crfkit with a table, first sentences": lambda: small(dense=True),
    "python-crfsuite, first sentences": crfsuite,
}


def main() -> None:
    """Run the benchmark."""
    if len(sys.argv) > 1:
        print(json.dumps(PARTS[sys.argv[1]]()))
        return
    results = {name: _measure.in_child("large_labels.py", name) for name in PARTS}
    ours = results["crfkit, first sentences"]
    for name, tokens in (("a table", "crfkit with a table"), ("CRFsuite", "python-crfsuite")):
        theirs = results[f"{tokens}, first sentences"]
        spent = theirs.get("seconds an iteration") or theirs["seconds a pass"]["1 threads"]
        ratio = spent / ours["seconds a pass"]["1 threads"]
        results[f"{name}: times the seconds of a pass, one thread"] = ratio
    _measure.write("large_labels", results)


if __name__ == "__main__":
    main()
