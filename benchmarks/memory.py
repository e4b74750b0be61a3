"""Peak memory of training: each solver, and python-crfsuite, in a process of its own.

The attributes are read sequence by sequence, so that no more than one is held as strings. Beyond
the encoded data is what training adds to the memory that is in use when the data are encoded.
"""

from __future__ import annotations

import functools
import json
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import _measure

ITERATIONS = 10
PACKAGES = ("lbfgs", "oeg", "python-crfsuite")
QUICK_SEQUENCES = 300


def train(package: str, dataset: str, limit: int | None) -> dict[str, float]:
    """Train for some iterations in this process and return its memory, in MiB."""
    import _crfsuite
    import _data

    from crfkit import CRFClassifier, SequenceVectorizer

    X, y = _data.stream(dataset, limit)
    before = _measure.rss_mib()
    found = {"before": before}
    if package == "python-crfsuite":
        peer = _crfsuite.trainer(X, y)
        encoded = _measure.rss_mib()
        peer.run(c2=1.0, max_iterations=ITERATIONS)
    else:
        packed = SequenceVectorizer().fit_transform(X)
        encoded = _measure.rss_mib()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # some iterations are not enough, on purpose
            CRFClassifier(solver=package, max_iter=ITERATIONS, n_jobs=2).fit(packed, y)
        found["bytes a token"] = packed.nbytes / packed.n_tokens
    peak = _measure.peak_mib()
    return found | {"encoded": encoded, "peak": peak, "beyond the encoded data": peak - encoded}


def measure(dataset: str, limit: int | None) -> dict[str, Any]:
    """Train each in a process of its own."""
    arguments = [dataset, *([] if limit is None else [str(limit)])]
    runs = {name: _measure.in_child("memory.py", name, *arguments) for name in PACKAGES}
    theirs = runs["python-crfsuite"]
    shares = {
        name: {key: runs[name][key] / theirs[key] for key in ("peak", "beyond the encoded data")}
        for name in PACKAGES[:-1]
    }
    return {"MiB": runs, "share of python-crfsuite's": shares}


def cases(quick: bool) -> dict[str, Callable[[], dict[str, Any]]]:
    """Return the measurements by name."""
    limit = QUICK_SEQUENCES if quick else None
    return {name: functools.partial(measure, name, limit) for name in ("conll2000", "gmb_ner")}


def plot(results: dict[str, Any], folder: Path) -> None:
    """Draw nothing: a table says it all."""


if __name__ == "__main__":
    print(json.dumps(train(*sys.argv[1:3], int(sys.argv[3]) if sys.argv[3:] else None)))
