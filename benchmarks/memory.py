"""Peak memory of training: whole fits, and python-crfsuite, each in a process of its own.

The peer trains for as many iterations as it takes until no more is allocated: its solver then has
all its correction pairs. A process imports what it needs and no more: that of python-crfsuite
neither NumPy nor crfkit. The sequences are read one by one, so that no more than one is held as
strings. Beyond the imports is what reading, encoding and training take; "start" is the memory of
numba and scikit-learn alone, or of python-crfsuite.
"""

from __future__ import annotations

import functools
import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import _measure

PEER, PEER_ITERATIONS = "python-crfsuite", 12
# c2 and threads: one, as is the default and as the peer has, or two.
FITS = {"auto, c2=1": (1.0, None), "auto, c2=0.1": (0.1, None), "auto, c2=0.1, 2 threads": (0.1, 2)}
DATASETS = (
    "gmb_ner", "brown_pos", "conll2002_es", "conll2000", "ud_english_ewt", "headers_cora",
    "usaddress",
)  # fmt: skip
QUICK_SEQUENCES = 300


def train(package: str, dataset: str, limit: int | None) -> dict[str, float]:
    """Train in this process and return its memory, in MiB."""
    import _words

    run = crfsuite if package == PEER else functools.partial(crfkit, *FITS[package])
    found = run(_words.stream(dataset, limit))
    peak = _measure.peak_mib()
    return found | {"peak": peak, "beyond the start": peak - found["start"]}


def crfsuite(stream: Iterator[Any]) -> dict[str, float]:
    """Train by python-crfsuite."""
    import pycrfsuite

    start = _measure.rss_mib()
    trainer = pycrfsuite.Trainer(algorithm="lbfgs", verbose=False)
    for attributes, labels in stream:
        trainer.append(attributes, labels)
    encoded = _measure.rss_mib()
    trainer.set_params({"c2": 1.0, "max_iterations": PEER_ITERATIONS})
    trainer.train("")
    return {"start": start, "encoded": encoded}


def crfkit(c2: float, n_jobs: int | None, stream: Iterator[Any]) -> dict[str, float]:
    """Train by crfkit until its own end, on some threads."""
    import numba  # noqa: F401
    import sklearn.base  # noqa: F401

    start = _measure.rss_mib()
    from crfkit import CRFClassifier, SequenceVectorizer

    y: list[list[str]] = []

    def attributes() -> Iterator[list[list[str]]]:
        for tokens, labels in stream:
            y.append(labels)
            yield tokens

    packed = SequenceVectorizer().fit_transform(attributes())
    encoded = _measure.rss_mib()
    CRFClassifier(c1=0.0, c2=c2, n_jobs=n_jobs).fit(packed, y)
    size = packed.nbytes / packed.n_tokens
    return {"start": start, "encoded": encoded, "bytes a token": size}


def measure(dataset: str, limit: int | None) -> dict[str, Any]:
    """Train each in a process of its own."""
    arguments = [dataset, *([] if limit is None else [str(limit)])]
    runs = {name: _measure.in_child("memory.py", name, *arguments) for name in (*FITS, PEER)}
    theirs = runs[PEER]
    shares = {
        name: {key: runs[name][key] / theirs[key] for key in ("peak", "beyond the start")}
        for name in FITS
    }
    return {"MiB": runs, "share of python-crfsuite's": shares}


def cases(quick: bool) -> dict[str, Callable[[], dict[str, Any]]]:
    """Return the measurements by name: the six largest data sets of words, and the smallest."""
    limit = QUICK_SEQUENCES if quick else None
    return {name: functools.partial(measure, name, limit) for name in DATASETS}


def plot(results: dict[str, Any], folder: Path) -> None:
    """Draw nothing: a table says it all."""


if __name__ == "__main__":
    print(json.dumps(train(*sys.argv[1:3], int(sys.argv[3]) if sys.argv[3:] else None)))
